#include "redis_put.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <condition_variable>
#include <new>
#include <utility>

#include "loader/shard_format.h"

namespace loader::redis {
namespace {

constexpr uint64_t kMaxUploading = uint64_t{16} << 20;  // bytes that wait for their answers

// The values of an object that are on their way.
class Values {
 public:
  Values(Engine& engine, const Upload& upload) : engine_(engine), upload_(upload) {}
  ~Values() { wait(0); }
  Values(const Values&) = delete;
  Values& operator=(const Values&) = delete;

  // Sets a key to a part of the object. Returns false if anything has failed.
  bool add(const std::string& key, uint64_t offset, uint64_t size) {
    wait(size < kMaxUploading ? kMaxUploading - size : 0);
    report();
    if (has_failed()) return false;
    Jobs jobs;
    Job& job = jobs.emplace_back();
    job.step = Job::Step::kSet;
    job.key = key;
    job.slot = slot_of(key);
    job.begin = offset;
    job.context = this;
    job.finish = &Values::finish;
    job.value.resize(size);
    if (size > 0) {
      if (const StoreFault fault = upload_.read(offset, job.value)) return fail(fault);
    }
    {
      const std::lock_guard lock(mutex_);
      ++count_;
      uploading_ += size;
    }
    engine_.submit(jobs);
    return true;
  }

  // Waits for all answers.
  StoreFault finish() {
    wait(0);
    report();
    const std::lock_guard lock(mutex_);
    return fault_;
  }

 private:
  static void finish(Job& job, const StoreFault& fault) {
    Values& values = *static_cast<Values*>(job.context);
    const std::lock_guard lock(values.mutex_);
    --values.count_;
    values.uploading_ -= job.value.size();
    if (!fault) values.stored_ += job.value.size();
    if (fault && !values.fault_) {
      copy_fault(fault, values.fault_);
      values.fault_.offset = job.begin;
    }
    values.wake_.notify_one();
  }

  // Waits until at most `most` bytes are on their way; if it is 0, until no value is.
  void wait(uint64_t most) {
    std::unique_lock lock(mutex_);
    wake_.wait(lock, [&] { return most == 0 ? count_ == 0 : uploading_ <= most; });
  }

  void report() {
    uint64_t bytes = 0;
    {
      const std::lock_guard lock(mutex_);
      bytes = std::exchange(stored_, 0);
    }
    if (bytes > 0 && upload_.sent) upload_.sent(bytes);
  }

  bool has_failed() {
    const std::lock_guard lock(mutex_);
    return static_cast<bool>(fault_);
  }

  bool fail(const StoreFault& fault) {
    const std::lock_guard lock(mutex_);
    if (!fault_) fault_ = fault;
    return false;
  }

  Engine& engine_;
  const Upload& upload_;
  std::mutex mutex_;
  std::condition_variable wake_;
  uint64_t count_ = 0, uploading_ = 0, stored_ = 0;
  StoreFault fault_;
};

StoreFault too_long(uint64_t offset) {
  return {L3_ERROR_LIMIT, 0, offset, "Redis stores at most 512 MiB under one key"};
}

// Where the index of a shard begins, which is at the end of the upload.
StoreFault find_index(const Upload& upload, uint64_t& index) {
  const StoreFault no_shard{L3_ERROR_ARGUMENT, 0, L3_DATA_NONE, "this is no shard: it has no valid footer"};
  if (upload.size < kFooterBytes) return no_shard;
  std::array<uint8_t, kFooterBytes> footer;
  if (StoreFault fault = upload.read(upload.size - kFooterBytes, footer)) return fault;
  index = load_u64(&footer[footer::kIndexOffset]);
  uint64_t size = 0;
  const bool fits = index < upload.size && shard_size(footer.data() + footer.size(), upload.size - index, size);
  return fits ? StoreFault() : no_shard;
}

StoreFault check_samples(const Upload& upload, uint64_t index) {
  for (const l3_range& sample : upload.samples) {
    if (sample.offset > index || sample.size > index - sample.offset) {
      return {L3_ERROR_ARGUMENT, 0, sample.offset, "a sample ends after the shard's index begins"};
    }
    if (sample.size > kMaxValue) return too_long(sample.offset);
  }
  return upload.size - index > kMaxValue ? too_long(index) : StoreFault();
}

}  // namespace

StoreFault put_object(Engine& engine, const std::string& prefix, const Upload& upload) {
  const std::string key = prefix + "/" + upload.key;
  Values values(engine, upload);
  if (!is_shard(upload.key)) {
    if (!upload.samples.empty()) {
      return {L3_ERROR_UNSUPPORTED, 0, L3_DATA_NONE, "a shard in Redis needs a name that ends in .l3s"};
    }
    if (upload.size > kMaxValue) return too_long(0);
    (void)values.add(key, 0, upload.size);
    return values.finish();
  }
  uint64_t index = 0;
  if (StoreFault fault = find_index(upload, index)) return fault;
  if (StoreFault fault = check_samples(upload, index)) return fault;
  for (size_t i = 0; i < upload.samples.size(); ++i) {
    if (!values.add(sample_key(key, i), upload.samples[i].offset, upload.samples[i].size)) break;
  }
  // The index comes last: a shard that has one is complete.
  if (StoreFault fault = values.finish()) return fault;
  (void)values.add(index_key(key), index, upload.size - index);
  return values.finish();
}

void copy_fault(const StoreFault& from, StoreFault& to) noexcept {
  try {
    to = from;
  } catch (const std::bad_alloc&) {
    to.status = from.status;
    to.system_error = from.system_error;
    to.offset = from.offset;
    to.reason.clear();
  }
}

}  // namespace loader::redis
