// Reads and writes objects of a Redis store, for far_redis_test.py.
//
// Usage: redis_probe [--timeout MS] [--attempts N] [--connections N] [--ca FILE] URL COMMAND
//   name                          prints the store's name
//   read KEY OFFSET SIZE          writes a part of an object to the standard output
//   sized KEY OFFSET SIZE TOTAL   the same, of an object that must have TOTAL bytes
//   tail KEY SIZE                 writes the end of an object, and reports its size
//   sample KEY N OFFSET SIZE AT LENGTH   writes a part of sample N, which is at AT in its shard
//   put KEY FILE [RANGES]         RANGES: a file with "offset size" lines, one for each sample
//   compare KEY FILE RANGES ROUNDS [fork|cancel]   reads all samples at once and compares them; before that, it forks
//                                 and reads in the child too, or submits and cancels them
// Exit status: 0, or 1 after "fault STATUS ERRNO OFFSET: REASON" on the standard error.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "redis_store.h"

namespace {

using loader::Read;
using loader::StoreFault;
using Bytes = std::vector<uint8_t>;

int say(const StoreFault& fault) {
  std::fprintf(stderr, "fault %d %d %lld: %s\n", static_cast<int>(fault.status), fault.system_error,
               fault.offset == L3_DATA_NONE ? -1LL : static_cast<long long>(fault.offset), fault.reason.c_str());
  return 1;
}

Bytes load(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::vector<l3_range> load_ranges(const std::string& path) {
  std::ifstream file(path);
  std::vector<l3_range> ranges;
  for (l3_range range{}; file >> range.offset >> range.size;) ranges.push_back(range);
  return ranges;
}

int read_one(loader::Store& store, Read read) {
  Bytes to(read.size);
  read.to = to.data();
  StoreFault fault;
  store.read({&read, 1}, {&fault, 1});
  if (fault) return say(fault);
  if (read.from_end) std::fprintf(stderr, "size %llu\n", static_cast<unsigned long long>(read.object_size));
  return std::fwrite(to.data(), 1, read.size, stdout) == read.size ? 0 : 1;
}

int put(loader::Store& store, const std::string& key, const std::string& path, const std::string& ranges) {
  const Bytes bytes = load(path);
  const std::vector<l3_range> samples = ranges.empty() ? std::vector<l3_range>() : load_ranges(ranges);
  uint64_t sent = 0;
  loader::Upload upload;
  upload.key = key;
  upload.size = bytes.size();
  upload.samples = samples;
  upload.sent = [&](uint64_t count) { sent += count; };
  upload.read = [&](uint64_t offset, std::span<uint8_t> to) {
    std::memcpy(to.data(), bytes.data() + offset, to.size());
    return StoreFault();
  };
  if (const StoreFault fault = store.put(upload)) return say(fault);
  std::fprintf(stderr, "sent %llu\n", static_cast<unsigned long long>(sent));
  return 0;
}

// All samples of a shard, in memory of their own.
struct Samples {
  Samples(const loader::Object& object, const std::vector<l3_range>& ranges)
      : reads(ranges.size()), faults(ranges.size()), finished(ranges.size()) {
    for (size_t i = 0; i < ranges.size(); ++i) {
      Read& read = reads[i];
      memory.push_back(std::make_unique<uint8_t[]>(ranges[i].size));
      read.object = &object;
      read.to = memory.back().get();
      read.offset = read.sample_offset = ranges[i].offset;
      read.size = read.sample_size = ranges[i].size;
      read.sample = i;
      read.context = this;
      read.finish = [](Read& done, const StoreFault& fault) {
        Samples& all = *static_cast<Samples*>(done.context);
        const auto number = static_cast<size_t>(&done - all.reads.data());
        const std::lock_guard lock(all.mutex);
        all.faults[number] = fault;
        ++all.finished[number];
        if (++all.count == all.reads.size()) all.wake.notify_one();
      };
      pointers.push_back(&read);
    }
  }
  void wait() {
    std::unique_lock lock(mutex);
    wake.wait(lock, [&] { return count >= reads.size(); });
  }

  std::vector<Read> reads;
  std::vector<Read*> pointers;
  std::vector<std::unique_ptr<uint8_t[]>> memory;
  std::vector<StoreFault> faults;
  std::vector<int> finished;
  size_t count = 0;
  std::mutex mutex;
  std::condition_variable wake;
};

int compare_once(loader::Channel& channel, const loader::Object& object, const Bytes& bytes,
                 const std::vector<l3_range>& ranges) {
  Samples samples(object, ranges);
  channel.submit(samples.pointers);
  samples.wait();
  size_t repeated = 0;
  for (size_t i = 0; i < ranges.size(); ++i) {
    if (samples.faults[i]) return say(samples.faults[i]);
    const loader::RequestTimes& times = samples.reads[i].times;
    if (std::memcmp(samples.memory[i].get(), bytes.data() + ranges[i].offset, ranges[i].size) != 0 ||
        samples.finished[i] != 1 || times.attempts == 0 || times.queued > times.sent || times.sent > times.answered ||
        times.answered > times.finished) {
      std::fprintf(stderr, "sample %zu is wrong\n", i);
      return 1;
    }
    repeated += times.attempts > 1;
  }
  std::fprintf(stderr, "read %zu repeated %zu\n", ranges.size(), repeated);
  return 0;
}

int cancel_once(loader::Channel& channel, const loader::Object& object, const std::vector<l3_range>& ranges) {
  Samples samples(object, ranges);
  channel.submit(samples.pointers);
  if (ranges.size() % 2 == 1) usleep(2000);
  channel.cancel();
  samples.wait();
  for (size_t i = 0; i < ranges.size(); ++i) {
    const bool ended = !samples.faults[i] || samples.faults[i].system_error == ECANCELED;
    if (!ended || samples.finished[i] != 1) return 1;
  }
  return 0;
}

int compare(loader::Store& store, const std::string& key, const std::string& path, const std::string& range_path,
            int rounds, const std::string& how) {
  const Bytes bytes = load(path);
  const std::vector<l3_range> ranges = load_ranges(range_path);
  const std::unique_ptr<loader::Object> object = store.open(key);
  const std::unique_ptr<loader::Channel> channel = store.make_channel({});
  for (int i = 0; i < rounds; ++i) {
    if (how == "cancel" && cancel_once(*channel, *object, ranges) != 0) return 1;
    if (compare_once(*channel, *object, bytes, ranges) != 0) return 1;
    if (how == "fork") {
      const pid_t child = fork();
      if (child == 0) _exit(compare_once(*channel, *object, bytes, ranges));
      int status = 0;
      waitpid(child, &status, 0);
      if (status != 0) return 1;
    }
    // The test breaks something after each of these lines.
    std::printf("round %d\n", i);
    std::fflush(stdout);
  }
  return 0;
}

int run(loader::Store& store, const std::vector<std::string>& words) {
  const auto number = [&](size_t at) {
    return static_cast<uint64_t>(std::strtoull(words.at(at).c_str(), nullptr, 10));
  };
  const std::string& command = words.at(0);
  if (command == "name") return std::printf("%s\n", store.name().c_str()) < 0;
  const std::unique_ptr<loader::Object> object = store.open(words.at(1));
  Read read;
  read.object = object.get();
  if (command == "put") return put(store, words.at(1), words.at(2), words.size() > 3 ? words[3] : "");
  if (command == "compare") {
    return compare(store, words.at(1), words.at(2), words.at(3), static_cast<int>(number(4)),
                   words.size() > 5 ? words[5] : "");
  }
  if (command == "tail") {
    read.from_end = true;
    read.size = number(2);
    return read_one(store, read);
  }
  const size_t at = command == "sample" ? 3 : 2;
  read.offset = number(at);
  read.size = number(at + 1);
  if (command == "sized") read.object_size = number(4);
  if (command == "sample") {
    read.sample = number(2);
    read.sample_offset = number(5);
    read.sample_size = number(6);
  }
  return read_one(store, read);
}

}  // namespace

int main(int count, char** arguments) {
  std::vector<std::string> words(arguments + 1, arguments + count);
  loader::StoreOptions options;
  while (words.size() > 1 && words[0].starts_with("--")) {
    const auto value = static_cast<uint32_t>(std::strtoul(words[1].c_str(), nullptr, 10));
    if (words[0] == "--timeout") options.timeout_ms = value;
    if (words[0] == "--attempts") options.attempts = value;
    if (words[0] == "--connections") options.connections = value;
    if (words[0] == "--ca") options.certificates = words[1];
    words.erase(words.begin(), words.begin() + 2);
  }
  if (words.size() < 2) return 2;
  StoreFault fault;
  const std::unique_ptr<loader::Store> store = loader::open_redis(words[0], options, fault);
  if (store == nullptr) return say(fault);
  words.erase(words.begin());
  return run(*store, words);
}
