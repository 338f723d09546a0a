#include "share_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

namespace loader {
namespace {

// A loader keeps no more failures than these. It only counts the others.
constexpr uint64_t kMaxFailures = 1000;

uint64_t align(uint64_t at) { return (at + 63) / 64 * 64; }

// A time of another process. Zero stays zero, which means that a step did not happen.
uint64_t moved(uint64_t time, uint64_t from, uint64_t to) {
  if (time == 0) return 0;
  return from + time > to ? from + time - to : 1;
}

void end_texts(l3_data_error& error) { error.file[sizeof error.file - 1] = error.reason[sizeof error.reason - 1] = 0; }

}  // namespace

struct SharedLayout::Head {
  Place place;
  uint64_t position, begun;
  uint32_t units, repeats, failed, failures, has_fault;
  l3_batch_times times;
  l3_data_error fault;
};

SharedLayout::SharedLayout(const Units& units, const Sharing& sharing) : units_(units), sharing_(sharing) {
  const uint64_t most = sharing.batch_size;
  head_at_ = align(units.batch_bytes());
  ids_at_ = align(head_at_ + sizeof(Head));
  labels_at_ = ids_at_ + most * sizeof(int64_t);
  failures_at_ = align(labels_at_ + most * sizeof(int64_t));
  failures_ = std::min(most, kMaxFailures);
}

void SharedLayout::write(const Job& job, uint64_t begun, uint8_t* buffer) const {
  Head head{};
  head.place = {job.epoch, job.begin};
  head.position = job.position;
  head.begun = begun;
  head.units = job.units;
  head.repeats = job.repeats;
  head.failed = job.failed;
  head.failures = static_cast<uint32_t>(job.failures.size());
  head.has_fault = job.fault.has_value();
  head.times = job.times;
  if (job.fault) {
    head.fault = *job.fault;
    head.units = head.repeats = 0;  // it may not have been opened
  }
  std::memcpy(buffer + head_at_, &head, sizeof head);
  std::copy_n(job.ids.data(), head.units, reinterpret_cast<int64_t*>(buffer + ids_at_));
  std::copy_n(job.labels.data(), head.units, reinterpret_cast<int64_t*>(buffer + labels_at_));
  std::copy_n(job.failures.data(), std::min<uint64_t>(failures_, head.failures),
              reinterpret_cast<l3_failure*>(buffer + failures_at_));
}

bool SharedLayout::read(const uint8_t* buffer, Place place, uint64_t begun, uint32_t on_error, BatchPool& pool,
                        Job& job) const {
  Head head;
  std::memcpy(&head, buffer + head_at_, sizeof head);
  const uint64_t next = share_at(sharing_, place.position).next;
  if (head.place != place || head.position != next || head.units > sharing_.batch_size || head.repeats > head.units ||
      head.failures > sharing_.batch_size || head.failed > sharing_.batch_size) {
    return false;
  }
  job.epoch = place.epoch;
  job.begin = place.position;
  job.position = next;
  job.units = head.units;
  job.repeats = head.repeats;
  job.failed = head.failed;
  job.times = head.times;
  for (uint64_t* const time : {&job.times.begun, &job.times.fetched, &job.times.decode_begun, &job.times.decoded}) {
    *time = moved(*time, head.begun, begun);
  }
  if (head.has_fault != 0) {
    end_texts(head.fault);
    if (head.fault.status == L3_OK) return false;
    job.fault = head.fault;
    return true;
  }
  const auto* const ids = reinterpret_cast<const int64_t*>(buffer + ids_at_);
  const auto* const labels = reinterpret_cast<const int64_t*>(buffer + labels_at_);
  const auto* const failures = reinterpret_cast<const l3_failure*>(buffer + failures_at_);
  job.ids.assign(ids, ids + head.units);
  job.labels.assign(labels, labels + head.units);
  job.failures.assign(failures, failures + std::min<uint64_t>(failures_, head.failures));
  for (l3_failure& failure : job.failures) {
    end_texts(failure.error);
    if (failure.error.status == L3_OK) return false;
  }
  if (!job.failures.empty()) job.failures.resize(head.failures, job.failures.back());          // they are only counted
  if (job.units == 0 || (!job.failures.empty() && on_error == L3_ON_ERROR_FAIL)) return true;  // not delivered
  job.memory = pool.acquire();
  if (job.memory == nullptr) {
    l3_data_error& fault = job.fault.emplace();
    fault.status = L3_ERROR_MEMORY;
    std::strcpy(fault.reason, "no memory for a batch");
    return true;
  }
  for (const Tensor& tensor : units_.tensors()) {
    std::memcpy(job.memory + tensor.place, buffer + tensor.place, tensor.image_bytes * job.units);
  }
  return true;
}

// ------------------------------------------------------------------------------------------------------- the leader

namespace {

Descriptor make_file(uint64_t bytes) {
  Descriptor file(memfd_create("l3-batch", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  // Allocates everything now: a page that is missing later would be a signal.
  if (!file || fallocate(file.get(), 0, 0, static_cast<off_t>(bytes)) != 0) return {};
  return file;
}

bool seal(const Descriptor& file) {
  if (fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0) return false;
  (void)!fcntl(file.get(), F_ADD_SEALS, F_SEAL_FUTURE_WRITE);  // jobs only read; before Linux 5.1 this is not enforced
  return true;
}

uint8_t* map(const Descriptor& file, uint64_t bytes, int protection) {
  void* const memory = mmap(nullptr, bytes, protection, MAP_SHARED, file.get(), 0);
  if (memory == MAP_FAILED) return nullptr;
  (void)!madvise(memory, bytes, MADV_DONTFORK);  // children would keep it alive
  return static_cast<uint8_t*>(memory);
}

}  // namespace

bool has_shared_memory() {
  const Descriptor file = make_file(1);
  return file && seal(file);
}

SharedMemory::~SharedMemory() {
  for (const auto& [memory, buffer] : buffers_) munmap(const_cast<uint8_t*>(memory), bytes_);
}

uint8_t* SharedMemory::allocate(uint64_t size) {
  if (size > bytes_) return nullptr;
  Descriptor file = make_file(bytes_);
  if (!file) return nullptr;
  uint8_t* const memory = map(file, bytes_, PROT_READ | PROT_WRITE);
  if (memory == nullptr) return nullptr;
  const std::lock_guard lock(mutex_);
  if (!seal(file)) {
    munmap(memory, bytes_);
    return nullptr;
  }
  try {
    buffers_.emplace(memory, Buffer{next_, std::move(file)});
    ++next_;
  } catch (const std::bad_alloc&) {
    munmap(memory, bytes_);
    return nullptr;
  }
  return memory;
}

void SharedMemory::free(uint8_t* memory) {
  const std::lock_guard lock(mutex_);
  buffers_.erase(memory);
  munmap(memory, bytes_);
}

uint32_t SharedMemory::number_of(const uint8_t* memory) const {
  const std::lock_guard lock(mutex_);
  return buffers_.at(memory).number;
}

const Descriptor& SharedMemory::file_of(const uint8_t* memory) const {
  const std::lock_guard lock(mutex_);
  return buffers_.at(memory).file;  // stays there until the buffer is freed
}

// --------------------------------------------------------------------------------------------------- the other jobs

SharedView::SharedView(const Descriptor& file, uint64_t bytes) {
  struct stat told {};
  if (fstat(file.get(), &told) != 0 || !S_ISREG(told.st_mode) || static_cast<uint64_t>(told.st_size) < bytes) return;
  const int seals = fcntl(file.get(), F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) return;
  data_ = map(file, bytes, PROT_READ);
  bytes_ = data_ != nullptr ? bytes : 0;
}

SharedView::~SharedView() {
  if (data_ != nullptr) munmap(const_cast<uint8_t*>(data_), bytes_);
}

}  // namespace loader
