#include "memory_pool.h"

namespace loader {
namespace {

constexpr std::align_val_t kAlignment{4096};

}  // namespace

BatchPool::~BatchPool() { close(); }

uint8_t* BatchPool::acquire(uint64_t size) {
  uint8_t* too_small = nullptr;
  {
    const std::lock_guard lock(mutex_);
    for (size_t i = free_.size(); i-- > 0;) {
      uint8_t* memory = free_[i];
      if (size != 0 && sizes_.at(memory) < size) continue;
      free_.erase(free_.begin() + static_cast<ptrdiff_t>(i));
      return memory;
    }
    // Make room for a larger one.
    if (!free_.empty()) {
      too_small = free_.back();
      free_.pop_back();
    }
  }
  if (too_small != nullptr) free(too_small);
  if (size == 0) return allocate(size_);
  // Batches differ little, so a reserve lets most of them use the same memory.
  const uint64_t reserved = size + size / 8;
  uint8_t* const memory = allocate(reserved);
  if (memory == nullptr) return nullptr;
  const std::lock_guard lock(mutex_);
  sizes_[memory] = reserved;
  return memory;
}

uint8_t* BatchPool::allocate(uint64_t size) {
  if (memory_ != nullptr) return memory_->allocate(size);
  void* memory = device_ != nullptr ? device_->allocate_output(size)
                                    : ::operator new(static_cast<size_t>(size), kAlignment, std::nothrow);
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
  {
    const std::lock_guard lock(mutex_);
    sizes_.erase(memory);
  }
  if (memory_ != nullptr) {
    memory_->free(memory);
  } else if (device_ != nullptr) {
    device_->free_output(memory);
  } else {
    ::operator delete(memory, kAlignment);
  }
}

}  // namespace loader
