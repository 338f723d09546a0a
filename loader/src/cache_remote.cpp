#include "cache_remote.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/hex.h"

namespace loader {
namespace {

// A node of a job is near. If it is silent for so long, the data set's store is faster.
constexpr uint32_t kTimeout = 2000;  // milliseconds
// How long a place is left alone after a failure: longer each time.
constexpr uint64_t kFirstPause = 2'000'000'000, kLongestPause = 120'000'000'000;  // nanoseconds
constexpr uint64_t kFullPause = 30'000'000'000;

std::string key_of(const Digest& data_set, const Shard& shard, uint64_t number) {
  return base::hexadecimal(data_set) + "/" + std::string(file_of(shard)) + "/" + std::to_string(number);
}

// Keys in Redis begin with a name. The caller need not choose one.
std::string with_name(const std::string& url) {
  if (!url.starts_with("redis")) return url;
  const size_t host = url.find("://") + 3;
  const size_t slash = std::min(url.find('/', host), url.size());
  return slash + 1 < url.size() ? url : url.substr(0, slash) + "/l3cache";
}

}  // namespace

std::unique_ptr<CacheRemote> CacheRemote::open(const std::string& url, const CachePlan& plan,
                                               const StoreOptions& options, StoreFault& fault) {
  StoreOptions own = options;
  own.timeout_ms = own.timeout_ms == 0 ? kTimeout : std::min(own.timeout_ms, kTimeout);
  own.attempts = 1;
  std::unique_ptr<Store> store = open_store(with_name(url), own, fault);
  if (store == nullptr) return nullptr;
  return std::unique_ptr<CacheRemote>(new CacheRemote(std::move(store), plan.data_set()));
}

std::unique_ptr<Object> CacheRemote::object_of(const Shard& shard, uint64_t number) const {
  return store_->open(key_of(data_set_, shard, number));
}

void CacheRemote::direct(Read& read, const Shard& shard, std::unique_ptr<Object>& own) {
  own = object_of(shard, read.sample);
  read.object = own.get();
  read.offset -= read.sample_offset;
  read.object_size = 0;
  read.sample = kNoSample;
}

void CacheRemote::failed(uint64_t, const StoreFault& fault) {
  if (fault.system_error == ENOENT || fault.system_error == ECANCELED || fault.status == L3_ERROR_TRUNCATED) return;
  // All reads that are on their way fail together, which counts once.
  const uint64_t now = steady_ns();
  uint64_t until = down_until_.load(std::memory_order_relaxed);
  const uint32_t times = std::min(failures_.load(std::memory_order_relaxed), 8u);
  if (until > now || !down_until_.compare_exchange_strong(until, now + std::min(kFirstPause << times, kLongestPause))) {
    return;
  }
  failures_.fetch_add(1, std::memory_order_relaxed);
}

void CacheRemote::succeeded() { failures_.store(0, std::memory_order_relaxed); }

StoreFault CacheRemote::keep(const Shard& shard, uint64_t sample, uint64_t, std::span<const uint8_t> bytes) {
  Upload upload;
  upload.key = key_of(data_set_, shard, sample - shard.first_sample);
  upload.size = bytes.size();
  upload.read = [bytes](uint64_t offset, std::span<uint8_t> to) {
    if (!to.empty()) std::memcpy(to.data(), bytes.data() + offset, to.size());
    return StoreFault{};
  };
  StoreFault fault = store_->put(upload);
  if (fault && fault.system_error == ENOSPC) {
    full_until_.store(steady_ns() + kFullPause, std::memory_order_relaxed);
  } else if (fault) {
    failed(sample, fault);
  }
  return fault;
}

}  // namespace loader
