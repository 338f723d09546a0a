// Tests the parts of the stores on HTTP that need no server: addresses, answers, pacing, and which reads travel
// together.
#include <gtest/gtest.h>

#include <array>
#include <cerrno>

#include "http_answer.h"
#include "http_url.h"
#include "pacing.h"
#include "range_job.h"
#include "read_queue.h"

namespace {

using namespace loader;
using namespace loader::net;
using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(Url, IsSplit) {
  WebUrl url;
  std::string reason;
  ASSERT_TRUE(parse_url("https://Us%20er:p%40ss@Example.COM:8443/a b/c%2Fd/../e?x=1", url, reason)) << reason;
  EXPECT_EQ(url.user, "Us er");
  EXPECT_EQ(url.password, "p@ss");
  EXPECT_EQ(url.target.origin, "https://example.com:8443");
  EXPECT_EQ(url.target.path, "/a%20b/c%2Fd/../e");
  EXPECT_EQ(url.target.query, "x=1");
  EXPECT_EQ(url.target.host(), "example.com:8443");
  EXPECT_EQ(url.target.scheme(), "https");

  ASSERT_TRUE(parse_url("http://[::1]:80", url, reason)) << reason;
  EXPECT_EQ(url.target.url(), "http://[::1]/");
  for (const char* const wrong :
       {"http://", "ftp://host/", "file:///etc/passwd", "http://host:99999/", "http://host/#a"}) {
    EXPECT_FALSE(parse_url(wrong, url, reason)) << wrong;
    EXPECT_FALSE(reason.empty());
  }
}

TEST(Url, EncodesKeys) {
  EXPECT_EQ(encode("a b+c=d~e/\xC3\xA9.l3s", true), "a%20b%2Bc%3Dd~e/%C3%A9.l3s");
  EXPECT_EQ(encode("a/b", false), "a%2Fb");
  std::string text;
  EXPECT_TRUE(decode("http%3a%2F%2fhost+x", text));
  EXPECT_EQ(text, "http://host+x");
  for (const char* const wrong : {"%", "%1", "%1g", "%-1", "a%"}) EXPECT_FALSE(decode(wrong, text)) << wrong;
}

TEST(Url, FollowsOnlyTheSameServer) {
  const Target from{"http://host", "/a/b", ""};
  Target to;
  std::string reason;
  for (const auto& [location, url] : {std::pair{"c?d=1", "http://host/a/c?d=1"},
                                      {"/x", "http://host/x"},
                                      {"http://HOST:80/y#z", "http://host/y"},
                                      {"https://host/y", "https://host/y"},
                                      {"//host/y", "http://host/y"}}) {
    EXPECT_TRUE(follow(from, location, to, reason)) << location << ": " << reason;
    EXPECT_EQ(to.url(), url);
  }
  for (const char* const location : {"http://other/", "http://host.other/", "file:///etc/passwd", "http://host:81/",
                                     "https://host:444/", "gopher://host/", "//other/", "http://host@other/"}) {
    reason.clear();
    EXPECT_FALSE(follow(from, location, to, reason)) << location;
    EXPECT_NE(reason.find("redirects to"), std::string::npos);
  }
  EXPECT_FALSE(follow({"https://host", "/", ""}, "http://host/", to, reason));
  EXPECT_FALSE(follow({"http://host:8080", "/", ""}, "https://host/", to, reason));
  EXPECT_FALSE(follow({"http://host:8080", "/", ""}, "https://host:8080/", to, reason));
  EXPECT_TRUE(follow({"http://[::1]", "/", ""}, "https://[::1]/", to, reason));
}

Answer answer(std::initializer_list<const char*> lines) {
  Answer result;
  for (const char* const line : lines) take_header(result, line);
  return result;
}

TEST(Answer, TakesHeaders) {
  const Answer good = answer({"HTTP/1.1 206 Partial Content\r\n", "content-LENGTH: 10\r\n",
                              "Content-Range:bytes 5-14/20\r\n", "ETag: \"a\"\r\n", "Content-Encoding: identity\r\n"});
  EXPECT_EQ(good.status, 206);
  EXPECT_EQ(good.length, 10U);
  EXPECT_TRUE(good.has_range && good.has_total && !good.is_malformed && !good.is_encoded);
  EXPECT_EQ(good.first, 5U);
  EXPECT_EQ(good.last, 14U);
  EXPECT_EQ(good.total, 20U);
  EXPECT_EQ(good.etag, "\"a\"");
  EXPECT_FALSE(answer({"HTTP/2 206 \r\n", "Content-Range: bytes 5-14/*\r\n"}).has_total);
  const Answer empty = answer({"HTTP/1.1 416 x", "Content-Range: bytes */0"});
  EXPECT_TRUE(empty.has_total && !empty.has_range && empty.total == 0 && !empty.is_malformed);
  for (const char* const range : {"bytes 5-4/20", "bytes 5-20/20", "bytes -5/20", "octets 5-14/20", "bytes 5-14",
                                  "bytes */*", "bytes 0-18446744073709551615/*", "bytes 5-14/20x", ""}) {
    const std::string line = std::string("Content-Range: ") + range;
    EXPECT_TRUE(answer({"HTTP/1.1 206 x", line.c_str()}).is_malformed) << range;
  }
  EXPECT_TRUE(answer({"HTTP/1.1 200 x", "Content-Length: 5", "Content-Length: 6"}).is_malformed);
  EXPECT_TRUE(answer({"HTTP/1.1 206 x", "Content-Range: bytes 5-14/20", "Content-Range: bytes 6-15/20"}).is_malformed);
  EXPECT_TRUE(answer({"HTTP/1.1 200 x", "Content-Encoding: gzip"}).is_encoded);
  // A new status line begins anew.
  EXPECT_FALSE(answer({"HTTP/1.1 100 x", "Content-Length: 5", "HTTP/1.1 200 x"}).length);
}

TEST(Answer, TellsHowLongToWait) {
  EXPECT_EQ(answer({"Retry-After: 7"}).retry_after, seconds(7));
  EXPECT_EQ(answer({"Retry-After: 7000"}).retry_after, seconds(60));
  EXPECT_EQ(answer({"Retry-After: Wed, 21 Oct 2015 07:28:00 GMT"}).retry_after, seconds(0));
  std::array<char, 64> text{};
  const time_t later = time(nullptr) + 30;
  std::strftime(text.data(), text.size(), "Retry-After: %a, %d %b %Y %H:%M:%S GMT", std::gmtime(&later));
  const auto wait = answer({text.data()}).retry_after;
  ASSERT_TRUE(wait);
  EXPECT_GT(*wait, seconds(27));
  EXPECT_LE(*wait, seconds(30));
  EXPECT_FALSE(answer({"Retry-After: soon"}).retry_after);
}

TEST(Answer, ReportsFaults) {
  Answer denied;
  denied.status = 403;
  denied.code = "AccessDenied";
  denied.message = "No.";
  EXPECT_EQ(status_fault(denied).system_error, EACCES);
  EXPECT_EQ(status_fault(denied).reason, "the server answered 403 (AccessDenied: No.)");
  EXPECT_EQ(xml_text("<Error><Code>A</Code><Message>&lt;b&gt; &amp;lt;</Message></Error>", "Message"), "<b> &lt;");
  EXPECT_EQ(xml_text("<Code>A", "Code"), "");
  EXPECT_EQ(printable("a\x1b[31m\n\xff"), "a?[31m ?");
}

TEST(Pacing, WindowGrowsAndHalves) {
  Window window(256);
  EXPECT_EQ(window.size(), 64U);
  for (int i = 0; i < 64; ++i) window.succeed();
  EXPECT_EQ(window.size(), 128U);
  const Time start = Clock::now();
  window.congest(start, start + seconds(1));
  EXPECT_EQ(window.size(), 64U);
  window.congest(start, start + seconds(2));  // sent before it was halved
  EXPECT_EQ(window.size(), 64U);
  for (int i = 0; i < 65; ++i) window.succeed();
  EXPECT_EQ(window.size(), 65U);
  for (int i = 2; i < 20; ++i) window.congest(start + seconds(i), start + seconds(i));
  EXPECT_EQ(window.size(), 1U);
  Window small(3);
  for (int i = 0; i < 9; ++i) small.succeed();
  EXPECT_EQ(small.size(), 3U);
}

TEST(Pacing, WaitsLongerAndLonger) {
  Backoff backoff(1);
  milliseconds most{};
  for (int i = 0; i < 1000; ++i) {
    EXPECT_LE(backoff.after(1), milliseconds(100));
    EXPECT_LE(backoff.after(3), milliseconds(400));
    most = std::max(most, backoff.after(40));
  }
  EXPECT_LE(most, milliseconds(5000));
  EXPECT_GT(most, milliseconds(4000));
}

TEST(Pacing, KnowsSlowAnswers) {
  AnswerTimes times;
  for (int i = 0; i < 7; ++i) times.add(milliseconds(10));
  EXPECT_FALSE(times.patience());
  times.add(milliseconds(10));
  EXPECT_EQ(times.patience(), milliseconds(40));
  for (int i = 0; i < 64; ++i) times.add(milliseconds(1));
  EXPECT_EQ(times.patience(), milliseconds(20));
}

// ----------------------------------------------------------------------------------------------------------- reads

struct Reader {
  explicit Reader(uint64_t offset, uint64_t size, const Object* object) : bytes(size) {
    read.object = object;
    read.offset = offset;
    read.size = size;
    read.to = bytes.data();
    read.context = this;
    read.finish = [](Read& done, const StoreFault& why) {
      Reader& reader = *static_cast<Reader*>(done.context);
      ++reader.finished;
      reader.fault = why;
    };
  }
  std::vector<uint8_t> bytes;
  Read read;
  StoreFault fault;
  int finished = 0;
};

WebObject object_a("a", {"http://host", "/a", ""}), object_b("b", {"http://host", "/b", ""});

std::vector<uint64_t> take_places(ReadQueue& queue) {
  std::vector<uint64_t> places;
  for (const RangeJob::Piece& piece : queue.take()) places.push_back(piece.first);
  return places;
}

TEST(ReadQueue, JoinsNeighbours) {
  constexpr uint64_t kKiB = 1 << 10, kMiB = 1 << 20;
  std::vector<std::unique_ptr<Reader>> readers;
  ReadQueue queue;
  const auto add = [&](uint64_t offset, uint64_t size, const Object& object = object_a, uint64_t owner = 1) {
    readers.push_back(std::make_unique<Reader>(offset, size, &object));
    queue.add(readers.back()->read, owner);
  };
  add(200 * kKiB, kKiB);
  add(201 * kKiB, kKiB, object_b);
  add(100 * kKiB, 36 * kKiB);           // the gap before the first is 64 KiB
  add(201 * kKiB + 64 * kKiB + 1, 10);  // its gap is larger
  add(201 * kKiB, kKiB);
  add(201 * kKiB, kKiB);
  EXPECT_EQ(take_places(queue),
            (std::vector<uint64_t>{100 * kKiB, 200 * kKiB, 201 * kKiB, 201 * kKiB, 265 * kKiB + 1}));
  EXPECT_EQ(take_places(queue), (std::vector<uint64_t>{201 * kKiB}));
  EXPECT_TRUE(queue.empty());

  for (uint64_t i = 0; i < 10; ++i) add(i * kMiB, kMiB);
  EXPECT_EQ(take_places(queue).size(), 8U);
  EXPECT_EQ(take_places(queue).size(), 2U);
  add(0, 9 * kMiB);
  add(9 * kMiB, 1);
  EXPECT_EQ(take_places(queue).size(), 1U);
  EXPECT_EQ(take_places(queue).size(), 1U);

  add(0, 1, object_a, 7);
  add(2, 1, object_a, 8);
  std::vector<uint64_t> taken;
  for (int i = 0; i < 2; ++i) queue.take_of(8, [&](const Read& read) { taken.push_back(read.offset); });
  EXPECT_EQ(taken, std::vector<uint64_t>{2});
  EXPECT_EQ(queue.take_first()->offset, 0U);
  EXPECT_EQ(queue.take_first(), nullptr);
  EXPECT_TRUE(queue.empty());
}

Answer partial(uint64_t first, uint64_t last, uint64_t total) {
  Answer result;
  result.status = 206;
  result.has_range = result.has_total = true;
  result.first = first;
  result.last = last;
  result.total = total;
  return result;
}

std::vector<uint8_t> bytes_from(uint64_t first, uint64_t count) {
  std::vector<uint8_t> bytes;
  for (uint64_t i = 0; i < count; ++i) bytes.push_back(static_cast<uint8_t>(first + i));
  return bytes;
}

TEST(RangeJob, HandsOutAndResumes) {
  Reader first(10, 5, &object_a), second(20, 5, &object_a), beyond(28, 5, &object_a);
  RangeJob job;
  job.fill({{&first.read, 1, 10, 15}, {&second.read, 1, 20, 25}, {&beyond.read, 2, 28, 33}});
  Part wanted = job.wanted();
  EXPECT_EQ(job.request(wanted).headers.front(), "Range: bytes=10-32");
  // The object ends before the last read.
  Verdict verdict = job.judge(wanted, partial(10, 29, 30));
  ASSERT_EQ(verdict.next, Next::kTake);
  ASSERT_TRUE(job.begin(verdict.got, partial(10, 29, 30)));
  EXPECT_EQ(beyond.fault.status, L3_ERROR_TRUNCATED);
  job.take(bytes_from(10, 12));
  EXPECT_EQ(first.finished, 1);
  EXPECT_EQ(first.bytes, bytes_from(10, 5));
  EXPECT_EQ(second.finished, 0);
  const RequestTimes times = first.read.times;
  first.read = {};  // its caller may use the memory for something else
  // The answer broke there.
  wanted = job.wanted();
  EXPECT_EQ(job.request(wanted).headers.front(), "Range: bytes=22-24");
  EXPECT_EQ(job.judge(wanted, partial(22, 24, 31)).next, Next::kRetry);  // another object
  verdict = job.judge(wanted, partial(22, 24, 30));
  ASSERT_TRUE(job.begin(verdict.got, partial(22, 24, 30)));
  job.take(bytes_from(22, 3));
  EXPECT_EQ(second.finished, 0);  // more bytes could still come
  job.succeed();
  EXPECT_EQ(second.bytes, bytes_from(20, 5));
  EXPECT_EQ(second.finished + first.finished + beyond.finished, 3);
  EXPECT_FALSE(first.fault || second.fault);
  EXPECT_EQ(times.shared, 2U);
}

TEST(RangeJob, RefusesOtherAnswers) {
  Reader reader(10, 5, &object_a);
  RangeJob job;
  job.fill({{&reader.read, 1, 10, 15}});
  const Part wanted = job.wanted();
  for (const Answer& wrong : {partial(9, 13, 30), partial(10, 15, 30), partial(10, 13, 30), partial(11, 14, 30)}) {
    EXPECT_EQ(job.judge(wanted, wrong).fault.system_error, EPROTO);
  }
  Answer short_one = partial(10, 14, 30);
  short_one.length = 4;
  EXPECT_EQ(job.judge(wanted, short_one).next, Next::kFail);
  short_one.length = 5;
  EXPECT_EQ(job.judge(wanted, short_one).next, Next::kTake);
  Answer whole;
  whole.status = 200;
  whole.length = 5;
  EXPECT_EQ(job.judge(wanted, whole).fault.reason, "the server does not support ranges");
  Answer beyond;
  beyond.status = 416;
  EXPECT_EQ(job.judge(wanted, beyond).fault.status, L3_ERROR_TRUNCATED);
  reader.read.object_size = 29;
  EXPECT_FALSE(job.begin({10, 5, false, 30}, partial(10, 14, 30)));
  EXPECT_EQ(reader.fault.reason, "the object has 30 bytes instead of 29");
}

TEST(RangeJob, ReadsFromTheEnd) {
  Reader reader(0, 8, &object_a);
  reader.read.from_end = true;
  RangeJob job;
  job.fill({{&reader.read, 1, 0, 0}});
  EXPECT_EQ(job.request(job.wanted()).headers.front(), "Range: bytes=-8");
  EXPECT_EQ(job.judge(job.wanted(), partial(21, 28, 30)).next, Next::kFail);  // not the end
  EXPECT_EQ(job.judge(job.wanted(), partial(23, 29, 30)).next, Next::kFail);  // fewer than there are
  EXPECT_EQ(job.judge(job.wanted(), partial(22, 29, 30)).next, Next::kTake);
  // A server without such ranges says how large the object is.
  Answer whole;
  whole.status = 200;
  whole.length = 30;
  const Verdict again = job.judge(job.wanted(), whole);
  ASSERT_EQ(again.next, Next::kAgain);
  job.learn(again);
  EXPECT_EQ(job.request(job.wanted()).headers.front(), "Range: bytes=22-29");
  EXPECT_EQ(job.judge(job.wanted(), whole).next, Next::kFail);
  ASSERT_TRUE(job.begin({22, 8, false, 30}, partial(22, 29, 30)));
  job.take(bytes_from(22, 8));
  job.succeed();
  EXPECT_EQ(reader.bytes, bytes_from(22, 8));
  EXPECT_EQ(reader.read.object_size, 30U);
}

}  // namespace
