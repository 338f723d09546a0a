// Bytes in memory that are neither cleared nor copied when they grow.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace bridge {

// std::vector writes zeros over what is about to be overwritten, which costs as much as encoding does. Throws
// std::bad_alloc like it.
class Buffer {
 public:
  // Room for at least `size` bytes; what was inside is lost. The room is kept and used again by later calls.
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

  // Keeps the first `size` bytes, at most as many as there are.
  void truncate(size_t size) { size_ = size < size_ ? size : size_; }

  size_t size() const { return size_; }
  std::span<const uint8_t> bytes() const { return {bytes_.get(), size_}; }

 private:
  std::unique_ptr<uint8_t[]> bytes_;
  size_t capacity_ = 0;
  size_t size_ = 0;
};

}  // namespace bridge
