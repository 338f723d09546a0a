// A byte buffer that does not clear or copy its contents when it grows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace bridge {

// std::vector would first fill its memory with zeros, which takes as long as encoding. Throws std::bad_alloc.
class Buffer {
 public:
  // Makes room for `size` bytes. The old contents are lost. Later calls use the same memory again if it is large
  // enough.
  uint8_t* reset(size_t size) {
    if (size > capacity_) {
      bytes_.reset();
      capacity_ = 0;
      bytes_ = std::make_unique_for_overwrite<uint8_t[]>(size);
      capacity_ = size;
    }
    size_ = size;
    return bytes_.get();
  }

  // Keeps only the first `size` bytes. Does nothing if there are fewer.
  void truncate(size_t size) { size_ = size < size_ ? size : size_; }

  size_t size() const { return size_; }
  std::span<const uint8_t> bytes() const { return {bytes_.get(), size_}; }

 private:
  std::unique_ptr<uint8_t[]> bytes_;
  size_t capacity_ = 0;
  size_t size_ = 0;
};

}  // namespace bridge
