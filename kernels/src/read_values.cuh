// Reads the samples that a token model lists (section 14.2 of the spec). A warp reads in parallel what TokenModelReader
// in codec/ reads one by one.
#pragma once

#include "cuda_warp.cuh"
#include "models/token_model_reader.h"

namespace l3 {

// A bit string that lanes can read at any position. It continues with zeros after its end.
class BitFields {
 public:
  L3_INLINE BitFields(const uint8_t* bytes, uint32_t size) : bytes_(bytes), size_(size) {}

  // Returns `count` bits (at most 16) from bit `at` on.
  L3_INLINE uint32_t field(uint32_t at, uint32_t count) const {
    const uint32_t first = at / 8;
    const uint32_t window = byte(first) | byte(first + 1) << 8 | byte(first + 2) << 16;
    return window >> at % 8 & ((1u << count) - 1);
  }
  // Returns whether `at` bits use all bytes, and the rest of the last byte is zero.
  L3_INLINE bool ends_at(uint32_t at) const {
    return ceil_div(at, 8) == size_ && (at % 8 == 0 || byte(size_ - 1) >> at % 8 == 0);
  }

 private:
  L3_INLINE uint32_t byte(uint32_t i) const { return i < size_ ? bytes_[i] : 0; }

  const uint8_t* bytes_;
  uint32_t size_;
};

// All functions return the same in all lanes.
class ValueLists {
 public:
  template <class Reader>
  L3_INLINE ValueLists(const Reader& reader, TokenTables& tables)
      : bits_(reader.value_bytes(), reader.value_size()), tables_(tables) {}

  L3_INLINE bool read() {
    if (tables_.listing == Listing::ranks && !read_ranks()) return false;
    if (tables_.listing == Listing::colours && !read_colours()) return false;
    return bits_.ends_at(at_);
  }

 private:
  L3_INLINE uint32_t take(uint32_t count) {
    const uint32_t value = bits_.field(at_, count);
    at_ += count;
    return value;
  }

  L3_INLINE bool read_ranks() {
    uint32_t first = 0;
    for (uint32_t c = 0; c < tables_.channels; ++c) {
      const uint32_t count = take(16);
      if (count == 0 || first + count > kMaxValues) return false;
      if (lane_number() == 0) put_list(c, first, count);
      if (!read_list(tables_.values + first, count)) return false;
      first += count;
    }
    return true;
  }
  L3_INLINE void put_list(uint32_t c, uint32_t first, uint32_t count) const {
    tables_.first_value[c] = first;
    tables_.value_count[c] = count;
    tables_.depth[c] = TokenModelReader::depth_of(count);
  }

  // Reads a list, one block of gaps at a time.
  L3_INLINE bool read_list(uint16_t* values, uint32_t count) {
    static_assert(kValueBlock == kLanes);
    const uint32_t maximum = (1u << tables_.bits) - 1;
    uint32_t value = take(16);
    const uint32_t minimum = take(16);
    if (minimum == 0 || value > maximum) return false;
    if (lane_number() == 0) values[0] = static_cast<uint16_t>(value);
    for (uint32_t first = 1; first < count; first += kValueBlock) {
      const uint32_t width = take(5);
      if (width > 16) return false;
      const bool is_there = first + lane_number() < count;
      const uint32_t gap = is_there ? minimum + bits_.field(at_ + lane_number() * width, width) : 0;
      const uint32_t here = value + running_sum(gap);
      if (__any_sync(kAllLanes, here > maximum)) return false;
      if (is_there) values[first + lane_number()] = static_cast<uint16_t>(here);
      value = __shfl_sync(kAllLanes, here, kLanes - 1);
      at_ += smaller(kValueBlock, count - first) * width;
    }
    return true;
  }

  L3_INLINE bool read_colours() {
    const uint32_t count = take(16), channels = tables_.channels, bits = tables_.bits;
    if (count == 0 || count > kMaxValues || count * channels > kMaxValues) return false;
    if (lane_number() == 0) put_list(0, 0, count);
    for (uint32_t i = lane_number(); i < count * channels; i += kLanes) {
      tables_.values[i] = static_cast<uint16_t>(bits_.field(at_ + i * bits, bits));
    }
    at_ += count * channels * bits;
    return true;
  }

  const BitFields bits_;
  TokenTables& tables_;
  uint32_t at_ = 0;  // position in bits
};

}  // namespace l3
