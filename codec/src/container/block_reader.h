// Reads the blocks of the fast method (spec, section 7): their bytes, and where the codes of each group begin.
#pragma once

#include <cstring>

#include "container/format.h"

namespace l3 {

// Reads a payload block by block. A vector load may reach past the bytes that it needs, so the last blocks are read
// from a copy that is followed by zeros. Nothing outside the payload is ever accessed.
class PayloadReader {
 public:
  using Window = const uint8_t*;
  static constexpr uint32_t kReach = kMaxBlockBytes + 80;  // how many bytes after window() may be read

  L3_INLINE PayloadReader(const uint8_t* bytes, uint32_t size) : bytes_(bytes), size_(size) {}

  // `at` is at most the payload's size, and never lower than in an earlier call.
  L3_INLINE const uint8_t* window(uint32_t at) {
    if (size_ - at >= kReach) return bytes_ + at;
    if (!copied_) {
      copied_ = true;
      copied_from_ = at;
      std::memcpy(tail_, bytes_ + at, size_ - at);
      std::memset(tail_ + (size_ - at), 0, sizeof(tail_) - (size_ - at));
    }
    return tail_ + (at - copied_from_);
  }

 private:
  const uint8_t* bytes_;
  uint32_t size_;
  uint32_t copied_from_ = 0;
  bool copied_ = false;
  uint8_t tail_[2 * kReach];
};

// The widths of a block's groups, and where the codes of each group begin, in units of four bits: a group of width b
// takes b units. A row of eight groups is one u64, one byte per group.
struct BlockWidths {
  uint64_t width[kBandRows];
  uint64_t start[kBandRows];  // of each group, relative to the start of the row
  uint32_t row_start[kBandRows];
  uint32_t total;  // in units of four bits
  bool valid;      // no width is above the bits of a sample

  // Spreads eight fields of `count` bits to one byte each.
  L3_INLINE static uint64_t spread_fields(uint64_t fields, uint32_t count) {
    constexpr uint64_t kEach = 0x0101010101010101u;
    fields &= (uint64_t{1} << (8 * count)) - 1;
    fields = (fields | fields << (32 - 4 * count)) & (((uint64_t{1} << (4 * count)) - 1) * 0x0000000100000001u);
    fields = (fields | fields << (16 - 2 * count)) & (((uint64_t{1} << (2 * count)) - 1) * 0x0001000100010001u);
    return (fields | fields << (8 - count)) & (((uint64_t{1} << count) - 1) * kEach);
  }

  L3_INLINE static BlockWidths parse(const uint8_t* fields, uint32_t width_bits, uint32_t base, uint32_t rows,
                                     uint32_t groups, uint32_t bits) {
    constexpr uint64_t kEach = 0x0101010101010101u;
    const uint64_t present = groups == kRowGroups ? ~uint64_t{0} : (uint64_t{1} << (8 * groups)) - 1;
    BlockWidths result;
    uint64_t over = 0;
    uint32_t at = 0;
    for (uint32_t r = 0; r < rows; ++r) {
      const uint64_t row = (spread_fields(load_u64(fields + r * width_bits), width_bits) + base * kEach) & present;
      over |= row + (127 - bits) * kEach;
      const uint64_t sums = row * kEach;  // inclusive running sums: at most 8 * 31, so no byte overflows
      result.width[r] = row;
      result.start[r] = sums - row;
      result.row_start[r] = at;
      at += static_cast<uint32_t>(sums >> 56);
    }
    result.total = at;
    result.valid = (over & 0x80 * kEach) == 0;
    return result;
  }
};

}  // namespace l3
