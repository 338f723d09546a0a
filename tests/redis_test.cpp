// Tests of the parts of the Redis store: URLs, replies, slots, keys. far_redis_test.py tests it with servers.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "loader/shard_format.h"
#include "redis_cluster.h"
#include "redis_job.h"
#include "redis_protocol.h"
#include "redis_store.h"
#include "redis_url.h"

namespace {

using namespace loader::redis;
using loader::Read;
using loader::StoreFault;
using State = ReplyParser::State;

Url good(const char* text, const char* password = nullptr) {
  Url url;
  const StoreFault fault = parse_url(text, password, url);
  EXPECT_FALSE(fault) << text << ": " << fault.reason;
  return url;
}

TEST(Urls, HaveParts) {
  const Url plain = good("redis://host/name");
  EXPECT_FALSE(plain.is_secure);
  EXPECT_EQ(plain.address, (Address{"host", 6379}));
  EXPECT_EQ(plain.database, 0u);
  EXPECT_EQ(plain.prefix, "name");
  EXPECT_EQ(plain.name(), "redis://host:6379/name");

  const Url full = good("rediss://us%40er:p%3Aa%2fss@[::1]:7000/3/a/b%20c/");
  EXPECT_TRUE(full.is_secure);
  EXPECT_EQ(full.user, "us@er");
  EXPECT_EQ(full.password, "p:a/ss");
  EXPECT_EQ(full.address, (Address{"::1", 7000}));
  EXPECT_EQ(full.database, 3u);
  EXPECT_EQ(full.prefix, "a/b c");
  EXPECT_EQ(full.name(), "rediss://[::1]:7000/3/a/b c");

  EXPECT_EQ(good("redis://:secret@h/n").password, "secret");
  EXPECT_EQ(good("redis://h/n", "secret").password, "secret");
  EXPECT_EQ(good("redis://me@h/n", "secret").user, "me");
  EXPECT_EQ(good("redis://:mine@h/n", "secret").password, "mine");
  EXPECT_EQ(good("redis://h/5").prefix, "5");
  EXPECT_EQ(good("redis://h/0/5").prefix, "5");
  EXPECT_EQ(good("redis://h/a/5").prefix, "a/5");
}

TEST(Urls, ThatAreWrong) {
  for (const char* text : {"",
                           "http://h/n",
                           "redis:/h/n",
                           "redis://",
                           "redis://h",
                           "redis://h/",
                           "redis:///n",
                           "redis://h:/n",
                           "redis://h:0/n",
                           "redis://h:65536/n",
                           "redis://h:1x/n",
                           "redis://h:-1/n",
                           "redis://::1/n",
                           "redis://[::1/n",
                           "redis://[::1]7/n",
                           "redis://h/%",
                           "redis://h/%2",
                           "redis://h/%zz",
                           "redis://h/a%0Ab",
                           "redis://h/n?x=1",
                           "redis://h/n#x",
                           "redis://me@h/n",
                           "redis://a%:b@h/n",
                           "redis://a:%b@h/n",
                           "redis://h/99999999999/n",
                           "redis://h a/n",
                           "redis://h/1/",
                           "redis://h/1//"}) {
    Url url;
    const StoreFault fault = parse_url(text, nullptr, url);
    if (std::strcmp(text, "redis://h/1/") == 0 || std::strcmp(text, "redis://h/1//") == 0) {
      EXPECT_EQ(url.prefix, "1");  // a number alone is a name
      continue;
    }
    EXPECT_EQ(fault.status, L3_ERROR_ARGUMENT) << text;
  }
  Url url;
  EXPECT_TRUE(parse_url("redis://h/" + std::string(10000, 'n'), nullptr, url));
  const StoreFault fault = parse_url("redis://user:geheim@:x/n", nullptr, url);
  EXPECT_TRUE(fault);
  EXPECT_EQ(fault.reason.find("geheim"), std::string::npos);
}

TEST(Slots, AreCrc16) {
  EXPECT_EQ(crc16("123456789"), 0x31C3);
  EXPECT_EQ(crc16(""), 0);
  EXPECT_EQ(slot_of("foo"), 12182u);  // from the documentation of CLUSTER KEYSLOT and of hash tags
  EXPECT_EQ(slot_of("somekey"), 11058u);
  EXPECT_EQ(slot_of("foo{hash_tag}"), 2515u);
  EXPECT_EQ(slot_of("{user1000}.following"), slot_of("{user1000}.followers"));
  EXPECT_EQ(slot_of("foo{}{bar}"), crc16("foo{}{bar}") % kSlots);
  EXPECT_EQ(slot_of("foo{{bar}}zap"), crc16("{bar") % kSlots);
  EXPECT_EQ(slot_of("a{b"), crc16("a{b") % kSlots);
}

struct Parsed {
  State state;
  size_t used;
  Reply reply;
  std::string bulk;
};
// With the text in two pieces, and where possible without a copy.
Parsed parse(const std::string& text, uint64_t most, bool takes_array, size_t split, bool direct) {
  std::string to(most, '?');
  ReplyParser parser;
  parser.expect(reinterpret_cast<uint8_t*>(to.data()), most, takes_array);
  size_t used = 0;
  for (const size_t end : {split, text.size()}) {
    while (used < end && parser.state() == State::kMore) {
      const std::span<uint8_t> place = parser.place();
      if (direct && !place.empty()) {
        const size_t count = std::min(place.size(), end - used);
        std::memcpy(place.data(), text.data() + used, count);
        parser.received(count);
        used += count;
      } else {
        const size_t count = parser.take(reinterpret_cast<const uint8_t*>(text.data()) + used, end - used);
        EXPECT_LE(count, end - used);
        used += count;
      }
    }
  }
  return {parser.state(), used, parser.reply(), to};
}

void expect_state(const std::string& text, State state, uint64_t most = 16, bool takes_array = false) {
  const size_t step = text.size() > 1000 ? 997 : 1;
  for (size_t split = 0; split <= text.size(); split += step) {
    for (const bool direct : {false, true}) {
      EXPECT_EQ(static_cast<int>(parse(text, most, takes_array, split, direct).state), static_cast<int>(state))
          << text.substr(0, 60) << " split at " << split;
    }
  }
}

TEST(Replies, AreParsedInAllSplits) {
  const std::string value("a\r\nb\0c", 6), text = std::string("$6\r\n") + value + "\r\n+rest\r\n";
  for (size_t split = 0; split <= text.size(); ++split) {
    for (const bool direct : {false, true}) {
      const Parsed parsed = parse(text, 10, false, split, direct);
      EXPECT_EQ(parsed.state, State::kDone);
      EXPECT_EQ(parsed.used, 12u);
      EXPECT_EQ(parsed.reply.type, Reply::kBulk);
      EXPECT_EQ(parsed.reply.integer, 6);
      EXPECT_EQ(parsed.bulk, value + "????");
    }
  }
  EXPECT_EQ(parse("+OK\r\n", 0, false, 2, false).reply.text, "OK");
  EXPECT_EQ(parse("-ERR no\r\n", 0, false, 2, false).reply.type, Reply::kError);
  EXPECT_EQ(parse(":-12\r\n", 0, false, 2, false).reply.integer, -12);
  EXPECT_EQ(parse("$-1\r\n", 0, false, 2, false).reply.type, Reply::kNil);
  EXPECT_EQ(parse("*-1\r\n", 0, false, 2, false).reply.type, Reply::kNil);
  for (const char* fine : {"$0\r\n\r\n", "+\r\n", ":0\r\n", "$16\r\n0123456789abcdef\r\n"}) {
    expect_state(fine, State::kDone);
  }
}

TEST(Replies, ThatAreHostile) {
  for (const char* broken : {"\r\n",
                             "\n",
                             "x\r\n",
                             "$\r\n",
                             "$x\r\n",
                             "$1x\r\n",
                             "$ 1\r\n",
                             "$+1\r\n",
                             "$-2\r\n",
                             "$17\r\n",
                             ":\r\n",
                             ":1 \r\n",
                             "$99999999999999999999\r\n",
                             ":99999999999999999999\r\n",
                             "$9223372036854775807\r\n",
                             "*1\r\n",
                             "*0\r\n",
                             "$1\n",
                             "+OK\n",
                             "$1\r\nab\r\n",
                             "$1\r\na\n\n",
                             "$0\r\n\n",
                             "_\r\n",
                             "%1\r\n",
                             ">1\r\n",
                             "$000000000000000000000000001\r\n"}) {
    expect_state(broken, State::kBroken);
  }
  expect_state("+" + std::string(70000, 'a'), State::kBroken);
  expect_state("-" + std::string(70000, 'a') + "\r\n", State::kBroken);
  expect_state("+" + std::string(60000, 'a'), State::kMore);
  expect_state("$10000000000000000000000000", State::kBroken);
  expect_state("$5\r\nab", State::kMore);
  // Arrays.
  expect_state("*2\r\n*1\r\n:1\r\n*0\r\n", State::kDone, 0, true);
  expect_state("*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n", State::kDone, 0, true);
  expect_state("*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n", State::kBroken, 0, true);
  expect_state("*300000\r\n", State::kBroken, 0, true);
  expect_state("*9223372036854775807\r\n", State::kBroken, 0, true);
  expect_state("*-2\r\n", State::kBroken, 0, true);
  expect_state("*2\r\n$2000\r\n", State::kBroken, 0, true);
  expect_state("*1\r\n+" + std::string(2000, 'a') + "\r\n", State::kBroken, 0, true);
  expect_state("*2\r\n$-1\r\n$1\r\na\r\n", State::kDone, 0, true);
}

TEST(Replies, OfAClusterAreSlots) {
  const std::string text =
      "*3\r\n*4\r\n:0\r\n:5460\r\n*4\r\n$9\r\n127.0.0.1\r\n:7000\r\n$2\r\nid\r\n*0\r\n*3\r\n$0\r\n\r\n:7003\r\n$"
      "1\r\nx\r\n"
      "*3\r\n:5461\r\n:5461\r\n*2\r\n$-1\r\n:7001\r\n*3\r\n:5462\r\n:16383\r\n*2\r\n$1\r\n?\r\n:7002\r\n";
  const Address from{"seed", 6379};
  std::vector<SlotRange> ranges;
  for (size_t split = 0; split <= text.size(); ++split) {
    const Parsed parsed = parse(text, 0, true, split, false);
    ASSERT_EQ(parsed.state, State::kDone);
    ASSERT_TRUE(parse_slots(parsed.reply, from, ranges));
    ASSERT_EQ(ranges.size(), 2u);  // nobody knows where the third is
    EXPECT_EQ(ranges[0].last, 5460u);
    EXPECT_EQ(ranges[0].master, (Address{"127.0.0.1", 7000}));
    EXPECT_EQ(ranges[1].first, 5461u);
    EXPECT_EQ(ranges[1].master, (Address{"seed", 7001}));
  }
  for (const char* wrong : {":1\r\n", "*1\r\n:1\r\n", "*1\r\n*2\r\n:0\r\n+x\r\n", "*1\r\n*2\r\n:-1\r\n:5\r\n",
                            "*1\r\n*2\r\n:6\r\n:5\r\n", "*1\r\n*2\r\n:0\r\n:16384\r\n"}) {
    EXPECT_FALSE(parse_slots(parse(wrong, 0, true, 1, false).reply, from, ranges)) << wrong;
  }
}

TEST(Redirections, LeadToNodes) {
  const Address from{"seed", 6379};
  uint32_t slot = 0;
  Address to;
  EXPECT_TRUE(parse_redirection("MOVED 3999 127.0.0.1:6381", from, slot, to));
  EXPECT_EQ(slot, 3999u);
  EXPECT_EQ(to, (Address{"127.0.0.1", 6381}));
  EXPECT_TRUE(parse_redirection("ASK 0 ::1:6381", from, slot, to));
  EXPECT_EQ(to, (Address{"::1", 6381}));
  EXPECT_TRUE(parse_redirection("MOVED 5 :6382", from, slot, to));
  EXPECT_EQ(to, (Address{"seed", 6382}));
  for (const char* wrong :
       {"MOVED", "MOVED 1", "MOVED 16384 h:1", "MOVED -1 h:1", "MOVED x h:1", "MOVED 1 h", "MOVED 1 h:", "MOVED 1 h:0",
        "MOVED 1 h:99999", "MOVED 1 h/x@y:1", "MOVED  1 h:1", "MOVED 1 ?:1"}) {
    EXPECT_FALSE(parse_redirection(wrong, from, slot, to)) << wrong;
  }
}

TEST(Errors, HaveKinds) {
  EXPECT_EQ(kind_of_error("NOAUTH Authentication required."), ErrorKind::kDenied);
  EXPECT_EQ(kind_of_error("LOADING Redis is loading"), ErrorKind::kBusy);
  EXPECT_EQ(kind_of_error("BUSY"), ErrorKind::kBusy);
  EXPECT_EQ(kind_of_error("BUSYKEY exists"), ErrorKind::kFails);
  EXPECT_EQ(kind_of_error("OOM command not allowed"), ErrorKind::kFull);
  EXPECT_EQ(kind_of_error("ERR max number of clients reached"), ErrorKind::kBusy);
  EXPECT_EQ(kind_of_error(""), ErrorKind::kFails);
}

TEST(Errors, KeepSecrets) {
  const Secrets secrets{"anna", "geheim"};
  EXPECT_EQ(secrets.safe_text("ERR no\x01\xFF"), "ERR no??");
  EXPECT_EQ(secrets.safe_text("ERR unknown command 'AUTH' 'anna'"), "ERR");
  EXPECT_EQ(secrets.safe_text("wrong: geheim"), "an error");
  EXPECT_EQ((Secrets{"", "ERR"}).safe_text("ERR x"), "an error");
  EXPECT_EQ(secrets.safe_text(std::string(1000, 'x')).size(), 200u);
}

TEST(Keys, OfReads) {
  uint8_t byte = 0;
  Read read;
  read.to = &byte;
  read.size = 10;
  read.offset = 105;
  read.sample = 7;
  read.sample_offset = 100;
  read.sample_size = 20;
  const auto commands = [&](const char* key) {
    Job job;
    const StoreFault fault = prepare_read(job, read, "set", key);
    std::string text;
    if (fault) return fault.reason;
    begin_exchange(job, text);
    return text;
  };
  EXPECT_EQ(commands("a.l3s"), "*4\r\n$8\r\nGETRANGE\r\n$11\r\nset/a.l3s/7\r\n$1\r\n5\r\n$2\r\n14\r\n");
  read.offset = 100;
  read.size = 20;
  EXPECT_EQ(commands("a.l3s"), "*2\r\n$3\r\nGET\r\n$11\r\nset/a.l3s/7\r\n");
  Job job;
  read.size = 21;
  EXPECT_EQ(prepare_read(job, read, "set", "a.l3s").status, L3_ERROR_ARGUMENT);
  read.offset = 99;
  EXPECT_EQ(prepare_read(job, read, "set", "a.l3s").status, L3_ERROR_ARGUMENT);
  read.sample_size = UINT64_MAX;
  EXPECT_EQ(prepare_read(job, read, "set", "a.l3s").status, L3_ERROR_LIMIT);
  read.sample = loader::kNoSample;
  EXPECT_EQ(prepare_read(job, read, "set", "a.l3s").status, L3_ERROR_UNSUPPORTED);
  read.offset = UINT64_MAX;
  EXPECT_EQ(prepare_read(job, read, "set", "a.json").status, L3_ERROR_LIMIT);
  read.offset = 0;
  EXPECT_EQ(commands("a/b.json"), "*4\r\n$8\r\nGETRANGE\r\n$12\r\nset/a/b.json\r\n$1\r\n0\r\n$2\r\n20\r\n");
  read.from_end = true;
  read.size = 63;
  EXPECT_EQ(prepare_read(job, read, "set", "a.l3s").status, L3_ERROR_UNSUPPORTED);
  read.size = 0;
  EXPECT_EQ(prepare_read(job, read, "set", "a").status, L3_ERROR_ARGUMENT);
  std::vector<uint8_t> place(64);
  read.to = place.data();
  read.size = 64;
  EXPECT_EQ(commands("a.l3s"),
            "*4\r\n$8\r\nGETRANGE\r\n$15\r\nset/a.l3s/index\r\n$3\r\n-64\r\n$2\r\n-1\r\n"
            "*2\r\n$6\r\nSTRLEN\r\n$15\r\nset/a.l3s/index\r\n");
}

// Answers the job's command. The bytes of a bulk are not needed.
Outcome answer(Job& job, std::vector<Reply> replies, StoreFault& fault, std::string& command) {
  command.clear();
  begin_exchange(job, command);
  command = command.substr(0, command.find("\r\n$11"));
  bool is_wrong = false, is_last = false;
  for (const Reply& reply : replies) is_last = take_reply(job, reply, is_wrong);
  EXPECT_TRUE(is_last);
  EXPECT_FALSE(is_wrong);
  return conclude(job, Secrets{}, fault);
}

TEST(Reads, OfAKeyThatSomebodySetsMeanwhile) {
  const auto bulk = [](int64_t size) { return Reply{Reply::kBulk, size, "", {}}; };
  const auto integer = [](int64_t value) { return Reply{Reply::kInteger, value, "", {}}; };
  const std::string range = "*4\r\n$8\r\nGETRANGE", exists = "*2\r\n$6\r\nEXISTS";
  uint8_t bytes[10];
  Read read;
  read.to = bytes;
  read.size = 10;
  read.offset = 105;
  read.sample = 7;
  read.sample_offset = 100;
  read.sample_size = 20;
  StoreFault fault;
  std::string command;
  Job job;
  ASSERT_FALSE(prepare_read(job, read, "set", "a.l3s"));
  EXPECT_EQ(answer(job, {bulk(0)}, fault, command), Outcome::kGoesOn);
  EXPECT_EQ(command, range);
  EXPECT_EQ(answer(job, {integer(1)}, fault, command), Outcome::kGoesOn);
  EXPECT_EQ(command, exists);
  Job again = job;
  EXPECT_EQ(answer(job, {bulk(10)}, fault, command), Outcome::kFinished);
  EXPECT_EQ(command, range);
  EXPECT_FALSE(fault);
  // A value that ends before the read does.
  EXPECT_EQ(answer(again, {bulk(0)}, fault, command), Outcome::kFinished);
  EXPECT_EQ(fault.status, L3_ERROR_TRUNCATED);
  EXPECT_EQ(fault.offset, 105u);
  // No key.
  Job missing;
  ASSERT_FALSE(prepare_read(missing, read, "set", "a.l3s"));
  EXPECT_EQ(answer(missing, {bulk(0)}, fault, command), Outcome::kGoesOn);
  EXPECT_EQ(answer(missing, {integer(0)}, fault, command), Outcome::kFinished);
  EXPECT_EQ(fault.system_error, ENOENT);
  // An end that was set between its two commands.
  std::vector<uint8_t> place(64);
  read.to = place.data();
  read.size = 64;
  read.from_end = true;
  fault = {};
  Job end;
  ASSERT_FALSE(prepare_read(end, read, "set", "a.json"));
  EXPECT_EQ(answer(end, {bulk(0), integer(80)}, fault, command), Outcome::kGoesOn);
  EXPECT_EQ(answer(end, {integer(1)}, fault, command), Outcome::kGoesOn);
  EXPECT_EQ(answer(end, {bulk(64), integer(80)}, fault, command), Outcome::kFinished);
  EXPECT_FALSE(fault);
  EXPECT_EQ(read.object_size, 80u);
}

TEST(Shards, HaveTheSizeOfTheirFooter) {
  std::vector<uint8_t> footer(loader::kFooterBytes);
  const uint8_t* const end = footer.data() + footer.size();
  uint64_t size = 0;
  EXPECT_FALSE(shard_size(end, 64, size));
  std::memcpy(footer.data(), loader::kFooterSignature.data(), loader::kFooterSignature.size());
  loader::store(&footer[loader::footer::kIndexOffset], uint64_t{4096});
  loader::store(&footer[loader::footer::kIndexSize], uint64_t{100});
  EXPECT_TRUE(shard_size(end, 164, size));
  EXPECT_EQ(size, 4096u + 164);
  EXPECT_FALSE(shard_size(end, 163, size));
  EXPECT_FALSE(shard_size(end, 165, size));
  EXPECT_FALSE(shard_size(end, 63, size));
  loader::store(&footer[loader::footer::kIndexOffset], UINT64_MAX - 100);
  EXPECT_FALSE(shard_size(end, 164, size));
}

TEST(Stores, MakeNoRequestToOpen) {
  StoreFault fault;
  const auto store = loader::open_redis("redis://u:geheim@127.0.0.1:1/set", {}, fault);
  ASSERT_NE(store, nullptr);
  EXPECT_EQ(store->name(), "redis://127.0.0.1:1/set");
  EXPECT_EQ(store->open("index.json")->name(), "redis://127.0.0.1:1/set/index.json");
  EXPECT_TRUE(store->is_far());
  EXPECT_TRUE(store->keeps_samples_apart());
  EXPECT_EQ(loader::open_redis("redis://x", {}, fault), nullptr);
  EXPECT_EQ(fault.status, L3_ERROR_ARGUMENT);
}

}  // namespace
