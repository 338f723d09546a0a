#include "memory_pool.h"

namespace loader {
namespace {

constexpr std::align_val_t kAlignment{4096};

}  // namespace

BatchPool::~BatchPool() { close(); }

uint8_t* BatchPool::acquire() {
  {
    const std::lock_guard lock(mutex_);
    if (!free_.empty()) {
      uint8_t* memory = free_.back();
      free_.pop_back();
      return memory;
    }
  }
  if (memory_ != nullptr) return memory_->allocate(size_);
  void* memory = device_ != nullptr ? device_->allocate_output(size_)
                                    : ::operator new(static_cast<size_t>(size_), kAlignment, std::nothrow);
  return static_cast<uint8_t*>(memory);
}

void BatchPool::release(uint8_t* memory, void* stream, bool was_delivered) {
  if (memory == nullptr) return;
  if (device_ != nullptr && was_delivered) device_->use_until(memory, stream);
  {
    const std::lock_guard lock(mutex_);
    if (free_.size() < keep_) {
      free_.push_back(memory);
      return;
    }
  }
  free(memory);
}

void BatchPool::close() {
  std::vector<uint8_t*> all;
  {
    const std::lock_guard lock(mutex_);
    keep_ = 0;
    all.swap(free_);
  }
  for (uint8_t* memory : all) free(memory);
}

void BatchPool::free(uint8_t* memory) {
  if (memory_ != nullptr) {
    memory_->free(memory);
  } else if (device_ != nullptr) {
    device_->free_output(memory);
  } else {
    ::operator delete(memory, kAlignment);
  }
}

}  // namespace loader
