// Reads and writes objects of a far store, for the tests: opens libl3_data_net.so as libl3_data does.
//
// Usage: store_probe [OPTIONS] URL COMMAND...
//   read KEY OFFSET SIZE       read a range
//   tail KEY SIZE              read the last bytes
//   parts KEY OFFSET:SIZE...   submit these reads at once
//   many KEY COUNT SIZE        submit COUNT reads at scattered places at once
//   cancel KEY COUNT SIZE MS   the same, and cancel them after MS milliseconds
//   put KEY FILE [RANGES]      write an object; RANGES is a file with lines "OFFSET SIZE", the samples of a shard
//   fork KEY SIZE              read the last bytes, then again in a child and in the parent
//   close KEY SIZE             read the last bytes, close the store, and count threads and descriptors that are left
//   name KEY                   print what messages call the object
// Options: --module FILE, --timeout MS, --attempts N, --connections N, --certificates FILE, --hedge,
// --object-size N (that reads expect), --out FILE (for the bytes). A fault is printed on one line; the exit status
// is 1.
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/crc32.h"
#include "base/files.h"
#include "loader/store.h"

namespace {

using loader::Read;
using loader::Store;
using loader::StoreFault;

struct Options {
  loader::StoreOptions store;
  std::string module, out;
  uint64_t object_size = 0;
  std::vector<std::string> words;
};

uint64_t number(const std::string& text) { return std::strtoull(text.c_str(), nullptr, 10); }

[[noreturn]] void usage() {
  std::fprintf(stderr, "usage: store_probe [OPTIONS] URL COMMAND...; see tests/store_probe.cpp\n");
  std::exit(2);
}

int report(const StoreFault& fault) {
  std::printf("fault status=%d errno=%d offset=%lld reason=%s\n", static_cast<int>(fault.status), fault.system_error,
              fault.offset == L3_DATA_NONE ? -1LL : static_cast<long long>(fault.offset), fault.reason.c_str());
  return 1;
}

std::unique_ptr<Store> open_store(const Options& options, StoreFault& fault) {
  void* const library = dlopen(options.module.c_str(), RTLD_NOW | RTLD_LOCAL);
  void* const entry = library == nullptr ? nullptr : dlsym(library, loader::kNetEntry);
  if (entry == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    std::exit(2);
  }
  const auto open = reinterpret_cast<loader::OpenNetStore>(entry);
  return std::unique_ptr<Store>(open(loader::kNetVersion, options.words[0].c_str(), options.store, fault));
}

// Reads of an object, all submitted at once.
class Reads {
 public:
  Reads(Store& store, const Options& options)
      : options_(options), object_(store.open(options.words[2])), channel_(store.make_channel(L3_READING_AUTO)) {}

  void add(uint64_t offset, uint64_t size) {
    bytes_.emplace_back(size);
    Read read;
    read.object = object_.get();
    read.offset = offset;
    read.size = size;
    read.object_size = options_.object_size;
    read.context = this;
    read.finish = [](Read& done, const StoreFault& fault) { static_cast<Reads*>(done.context)->finish(done, fault); };
    reads_.push_back(read);
  }

  void submit() {
    std::vector<Read*> pointers;
    for (size_t i = 0; i < reads_.size(); ++i) {
      reads_[i].to = bytes_[i].data();
      pointers.push_back(&reads_[i]);
    }
    faults_.resize(reads_.size());
    left_ = reads_.size();
    began_ = std::chrono::steady_clock::now();
    channel_->submit(pointers);
  }
  void cancel() { channel_->cancel(); }
  void wait() {
    std::unique_lock lock(mutex_);
    done_.wait(lock, [this] { return left_ == 0; });
    took_ = std::chrono::steady_clock::now() - began_;
  }

  int print_each() const {
    int result = 0;
    for (size_t i = 0; i < reads_.size(); ++i) {
      if (faults_[i]) {
        result = report(faults_[i]);
      } else {
        std::printf("size=%zu crc32=%u attempts=%u shared=%u\n", bytes_[i].size(), base::crc32(bytes_[i], 0),
                    reads_[i].times.attempts, reads_[i].times.shared);
      }
    }
    return result;
  }

  int print_all() const {
    uint32_t crc = 0, attempts = 0, most = 0, hedged = 0;
    std::map<std::string, size_t> reasons;
    bool is_ordered = true;
    for (size_t i = 0; i < reads_.size(); ++i) {
      const loader::RequestTimes& times = reads_[i].times;
      if (faults_[i]) ++reasons[faults_[i].reason];
      crc = base::crc32(bytes_[i], crc);
      attempts += times.attempts;
      most = std::max(most, times.attempts);
      hedged += times.hedged ? 1 : 0;
      if (!faults_[i] && !(0 < times.queued && times.queued <= times.sent && times.sent <= times.answered &&
                           times.answered <= times.finished)) {
        is_ordered = false;
      }
    }
    for (const auto& [reason, count] : reasons) std::printf("faults=%zu reason=%s\n", count, reason.c_str());
    std::printf("reads=%zu crc32=%u attempts=%u most=%u hedged=%u ordered=%d seconds=%.3f\n", reads_.size(), crc,
                attempts, most, hedged, is_ordered, std::chrono::duration<double>(took_).count());
    return reasons.empty() ? 0 : 1;
  }

 private:
  void finish(Read& read, const StoreFault& fault) {
    const std::lock_guard lock(mutex_);
    faults_[static_cast<size_t>(&read - reads_.data())] = fault;
    if (--left_ == 0) done_.notify_all();
  }

  const Options& options_;
  std::unique_ptr<loader::Object> object_;
  std::unique_ptr<loader::Channel> channel_;
  std::vector<Read> reads_;
  std::vector<std::vector<uint8_t>> bytes_;
  std::vector<StoreFault> faults_;
  std::mutex mutex_;
  std::condition_variable done_;
  size_t left_ = 0;
  std::chrono::steady_clock::time_point began_;
  std::chrono::steady_clock::duration took_{};
};

int read_one(Store& store, const Options& options, uint64_t offset, uint64_t size, bool from_end) {
  const std::unique_ptr<loader::Object> object = store.open(options.words[2]);
  std::vector<uint8_t> bytes(size);
  Read read;
  read.object = object.get();
  read.offset = offset;
  read.size = size;
  read.to = bytes.data();
  read.from_end = from_end;
  read.object_size = options.object_size;
  StoreFault fault;
  store.read({&read, 1}, {&fault, 1});
  if (fault) return report(fault);
  bytes.resize(read.size);
  if (!options.out.empty()) {
    std::ofstream(options.out, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  }
  std::printf("size=%zu crc32=%u object_size=%llu attempts=%u hedged=%d\n", bytes.size(), base::crc32(bytes, 0),
              static_cast<unsigned long long>(read.object_size), read.times.attempts, read.times.hedged);
  return 0;
}

int read_many(Store& store, const Options& options, int64_t cancel_after) {
  const std::unique_ptr<loader::Object> object = store.open(options.words[2]);
  const uint64_t count = number(options.words[3]), size = number(options.words[4]);
  uint64_t whole = options.object_size;
  if (whole == 0) {
    uint8_t last = 0;
    Read read;
    read.object = object.get();
    read.size = 1;
    read.to = &last;
    read.from_end = true;
    StoreFault fault;
    store.read({&read, 1}, {&fault, 1});
    if (fault) return report(fault);
    whole = read.object_size;
  }
  if (whole < size) usage();
  Reads reads(store, options);
  // The test computes the same places.
  for (uint64_t i = 0; i < count; ++i) reads.add((i * 2654435761 + 12345) % (whole - size + 1), size);
  reads.submit();
  if (cancel_after >= 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(cancel_after));
    reads.cancel();
  }
  reads.wait();
  return reads.print_all();
}

int put(Store& store, const Options& options) {
  std::vector<uint8_t> bytes;
  if (base::read_file(options.words[3], bytes) != 0) usage();
  std::vector<l3_range> samples;
  if (options.words.size() > 4) {
    std::ifstream ranges(options.words[4]);
    for (l3_range range{}; ranges >> range.offset >> range.size;) samples.push_back(range);
  }
  std::mutex mutex;
  uint64_t sent = 0;
  loader::Upload upload;
  upload.key = options.words[2];
  upload.size = bytes.size();
  upload.samples = samples;
  upload.read = [&](uint64_t offset, std::span<uint8_t> to) {
    std::memcpy(to.data(), bytes.data() + offset, to.size());
    return StoreFault{};
  };
  upload.sent = [&](uint64_t more) {
    const std::lock_guard lock(mutex);
    sent += more;
  };
  if (const StoreFault fault = store.put(upload)) return report(fault);
  std::printf("size=%zu sent=%llu\n", bytes.size(), static_cast<unsigned long long>(sent));
  return 0;
}

int read_in_child(Store& store, const Options& options) {
  const uint64_t size = number(options.words[3]);
  int result = read_one(store, options, 0, size, true);
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    result = read_one(store, options, 0, size, true);
    std::fflush(stdout);
    _exit(result);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) return 2;
  result |= read_one(store, options, 0, size, true);
  return result | (WIFEXITED(status) ? WEXITSTATUS(status) : 2);
}

ptrdiff_t entries(const char* folder) {
  return std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator());
}

int count_what_is_left(std::unique_ptr<Store> store, const Options& options) {
  const auto descriptors = entries("/proc/self/fd"), threads = entries("/proc/self/task");
  const int result = read_one(*store, options, 0, number(options.words[3]), true);
  store.reset();
  std::printf("descriptors=%td threads=%td\n", entries("/proc/self/fd") - descriptors,
              entries("/proc/self/task") - threads);
  return result;
}

Options parse(int count, char** words) {
  Options options;
  options.module =
      std::filesystem::canonical("/proc/self/exe").parent_path().parent_path() / "loader/libl3_data_net.so";
  std::map<std::string, std::string> values;
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    if (word == "--hedge") {
      options.store.hedge = true;
    } else if (word.starts_with("--") && i + 1 < count) {
      values[word] = words[++i];
    } else {
      options.words.push_back(word);
    }
  }
  for (const auto& [name, value] : values) {
    const auto small = static_cast<uint32_t>(number(value));
    if (name == "--module") options.module = value;
    if (name == "--out") options.out = value;
    if (name == "--object-size") options.object_size = number(value);
    if (name == "--certificates") options.store.certificates = value;
    if (name == "--timeout") options.store.timeout_ms = small;
    if (name == "--attempts") options.store.attempts = small;
    if (name == "--connections") options.store.connections = small;
  }
  if (options.words.size() < 3) usage();
  return options;
}

int run(const Options& options) {
  StoreFault fault;
  std::unique_ptr<Store> store = open_store(options, fault);
  if (store == nullptr) return report(fault);
  const std::vector<std::string>& words = options.words;
  const std::string& command = words[1];
  const size_t count = words.size();
  if (command == "name") {
    std::printf("store=%s object=%s\n", store->name().c_str(), store->open(words[2])->name().c_str());
    return 0;
  }
  if (command == "read" && count == 5) return read_one(*store, options, number(words[3]), number(words[4]), false);
  if (command == "tail" && count == 4) return read_one(*store, options, 0, number(words[3]), true);
  if (command == "many" && count == 5) return read_many(*store, options, -1);
  if (command == "cancel" && count == 6) return read_many(*store, options, static_cast<int64_t>(number(words[5])));
  if (command == "put" && count >= 4) return put(*store, options);
  if (command == "fork" && count == 4) return read_in_child(*store, options);
  if (command == "close" && count == 4) return count_what_is_left(std::move(store), options);
  if (command != "parts") usage();
  Reads reads(*store, options);
  for (size_t i = 3; i < count; ++i) {
    const size_t colon = words[i].find(':');
    reads.add(number(words[i].substr(0, colon)), number(words[i].substr(colon + 1)));
  }
  reads.submit();
  reads.wait();
  return reads.print_each();
}

}  // namespace

int main(int count, char** words) { return run(parse(count, words)); }
