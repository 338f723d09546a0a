// Memory that is reused, for files in progress and for batches.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <vector>

#include "loader/device.h"

namespace loader {

// Memory aligned to 256 bytes, not initialised.
class Bytes {
 public:
  Bytes() = default;
  // data() is null if there is not enough memory.
  explicit Bytes(uint64_t size)
      : bytes_(static_cast<uint8_t*>(::operator new(static_cast<size_t>(size), kAlignment, std::nothrow))),
        size_(bytes_ != nullptr ? size : 0) {}

  uint8_t* data() const { return bytes_.get(); }
  uint64_t size() const { return size_; }

 private:
  static constexpr std::align_val_t kAlignment{256};
  struct Free {
    void operator()(uint8_t* bytes) const { ::operator delete(bytes, kAlignment); }
  };

  std::unique_ptr<uint8_t, Free> bytes_;
  uint64_t size_ = 0;
};

// Memory for files. Keeps free memory, at most `most` bytes in all.
class FilePool {
 public:
  explicit FilePool(uint64_t maximum) : most_(maximum) {}

  // Returns at least `size` bytes, or none if there is not enough memory.
  Bytes acquire(uint64_t size) {
    {
      const std::lock_guard lock(mutex_);
      // The memory used last is most likely in the caches.
      for (size_t i = free_.size(); i-- > 0;) {
        if (free_[i].size() < size) continue;
        Bytes found = std::move(free_[i]);
        free_.erase(free_.begin() + static_cast<ptrdiff_t>(i));
        kept_ -= found.size();
        return found;
      }
      // None is large enough: free a small one to make room for a larger one.
      if (!free_.empty()) {
        kept_ -= free_.back().size();
        free_.pop_back();
      }
    }
    return Bytes((size + kStep) / kStep * kStep);
  }
  void release(Bytes bytes) {
    const std::lock_guard lock(mutex_);
    const uint64_t size = bytes.size();
    if (bytes.data() == nullptr || size > most_ - kept_) return;
    try {
      free_.push_back(std::move(bytes));
      kept_ += size;
    } catch (const std::bad_alloc&) {
      // Not kept.
    }
  }

 private:
  static constexpr uint64_t kStep = 4096;

  std::mutex mutex_;
  std::vector<Bytes> free_;
  uint64_t kept_ = 0, most_;
};

// Where a pool takes memory for batches that processes share.
class BatchMemory {
 public:
  virtual ~BatchMemory() = default;
  // Returns null if there is not enough memory.
  virtual uint8_t* allocate(uint64_t size) = 0;
  virtual void free(uint8_t* memory) = 0;
  // How many batches are in use beside those of the pipeline.
  virtual size_t held() const = 0;
};

// Memory for batches, which may outlive the loader.
class BatchPool {
 public:
  BatchPool(uint64_t size, size_t keep, std::shared_ptr<Device> device, std::shared_ptr<BatchMemory> memory = nullptr)
      : size_(size), keep_(keep), device_(std::move(device)), memory_(std::move(memory)) {
    free_.reserve(keep);  // returning memory must not fail
  }
  ~BatchPool();
  BatchPool(const BatchPool&) = delete;
  BatchPool& operator=(const BatchPool&) = delete;

  // Returns memory of the size of all batches, or of `size` bytes if they differ. Returns null if there is not enough.
  uint8_t* acquire(uint64_t size = 0);
  // Returns memory to the pool. If the batch was delivered, the work that is in `stream` now still uses it.
  void release(uint8_t* memory, void* stream, bool was_delivered);
  // Frees memory that must not be used again.
  void drop(uint8_t* memory) { free(memory); }
  // From now on, returned memory is freed.
  void close();

  Device* device() const { return device_.get(); }

 private:
  void free(uint8_t* memory);
  uint8_t* allocate(uint64_t size);

  std::mutex mutex_;
  std::vector<uint8_t*> free_;
  std::map<uint8_t*, uint64_t> sizes_;  // of all memory, if batches differ
  uint64_t size_;
  size_t keep_;
  std::shared_ptr<Device> device_;
  std::shared_ptr<BatchMemory> memory_;
};

}  // namespace loader
