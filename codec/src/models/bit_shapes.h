// The shapes of a bit model, and where tiles have them (sections 24.3 and 24.4 of the spec), for processors and GPUs
// alike.
#pragma once

#include "models/model_parts.h"

namespace l3 {

constexpr uint32_t kMaxShapes = 1024, kMaxShapeEdge = 64, kMaxShapeRows = 8192;
constexpr uint32_t kShapeEdgeBits = 6, kShapeCountBits = 10;
constexpr uint32_t kShapeListHeadBytes = 4;
// Of the numbers that say which shape is put and where: the bits of a parameter, and how many zeros a number may have.
constexpr uint32_t kParameterBits = 3, kMaxZeros = 12;

struct BitShape {
  uint16_t first_row;  // of BitShapes::rows
  uint8_t width, height;
};
static_assert(kMaxShapeRows < 1u << 16);

struct BitShapes {
  uint32_t count;      // 0 if the model has no shapes
  uint32_t number[3];  // parameters of numbers: of which shape, of columns, of rows
  BitShape of[kMaxShapes];
  uint64_t rows[kMaxShapeRows];  // bit i is column i
};

// How many shapes a tile may have.
L3_INLINE constexpr uint32_t max_listed_shapes(uint32_t width, uint32_t height) { return 8 + width * height / 128; }

// The lowest bit that is set, 64 if there is none.
L3_INLINE uint32_t lowest_of_64(uint64_t bits) {
#if defined(__CUDA_ARCH__)
  return bits == 0 ? 64 : static_cast<uint32_t>(__ffsll(static_cast<long long>(bits))) - 1;
#else
  return bits == 0 ? 64 : static_cast<uint32_t>(__builtin_ctzll(bits));
#endif
}
// The lowest `count` bits, up to 64.
L3_INLINE constexpr uint64_t lowest_bits_of_64(uint32_t count) {
  return count < 64 ? (uint64_t{1} << count) - 1 : ~uint64_t{0};
}

// Reads a row of a shape. Returns false if a change is out of range.
L3_INLINE bool read_shape_row(BitReader& bits, uint32_t width, uint64_t above, uint64_t& row) {
  const uint64_t from_0 = above & ~(above << 1), from_1 = ~above & above << 1;  // changes of the row above
  row = 0;
  uint32_t colour = 0, last = 0, next = 0;  // the last change, and the first column where the next one may be
  while (true) {
    uint32_t change = smaller(width, lowest_of_64((colour == 0 ? from_0 : from_1) & ~lowest_bits_of_64(next)));
    if (bits.take(1) == 0) {
      if (bits.take(1) != 0) {
        change += 2 * bits.take(1) - 1;
      } else if (bits.take(1) != 0) {
        change += 4 * bits.take(1) - 2;
      } else {
        change = bits.take(7);
      }
    }
    if (change < next || change > width) return false;  // also where it is below 0
    if (colour == 1) row |= lowest_bits_of_64(change) & ~lowest_bits_of_64(last);
    if (change == width) return true;
    last = change;
    next = change + 1;
    colour ^= 1;
  }
}

// Reads the shapes of a model. Returns false if they are invalid. On a GPU, the lanes of a warp write the same: nothing
// may be written that changes again.
L3_INLINE bool read_shapes(BitReader& bits, BitShapes& shapes) {
  for (uint32_t& parameter : shapes.number) parameter = bits.take(kParameterBits);
  const uint32_t count = bits.take(kShapeCountBits) + 1;
  shapes.count = count;
  uint32_t rows = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t width = bits.take(kShapeEdgeBits) + 1, height = bits.take(kShapeEdgeBits) + 1;
    if (height > kMaxShapeRows - rows) return false;
    shapes.of[i] = {static_cast<uint16_t>(rows), static_cast<uint8_t>(width), static_cast<uint8_t>(height)};
    for (uint64_t row = 0, end = rows + height; rows < end; ++rows) {
      if (!read_shape_row(bits, width, row, row)) return false;
      shapes.rows[rows] = row;
    }
  }
  return true;
}

// The list at the begin of a payload, which says where a tile has shapes.
class ShapeList {
 public:
  // Whether there is a list, and states of this many lanes behind it. The functions below must only be called then.
  L3_INLINE static bool is_in(const uint8_t* payload, uint32_t payload_bytes, uint32_t lanes) {
    if (payload_bytes < kShapeListHeadBytes) return false;
    const uint32_t size = ShapeList(payload).bytes();
    return size != 0 && size <= payload_bytes && payload_bytes - size >= 4 * lanes;
  }
  L3_INLINE explicit ShapeList(const uint8_t* payload) : payload_(payload) {}

  L3_INLINE uint32_t bytes() const { return kUnit * load_u16(payload_); }
  // Calls put(shape, x, y) for each shape of a tile: its first column and its first row are x and y, and may be outside
  // the tile. Returns false if the list is invalid; until then, it calls put().
  template <class Put>
  L3_INLINE bool read(const BitShapes& shapes, uint32_t width, uint32_t height, const Put& put) const {
    BitReader bits(payload_ + kShapeListHeadBytes, bytes() - kShapeListHeadBytes);
    const uint32_t count = load_u16(payload_ + 2);
    if (count > max_listed_shapes(width, height)) return false;
    int32_t x = 0, y = 0;
    uint32_t area = 0;
    for (uint32_t i = 0; i < count; ++i) {
      uint32_t number[3];
      for (uint32_t k = 0; k < 3; ++k) {
        if (!take_number(bits, shapes.number[k], number[k])) return false;
      }
      if (number[0] >= shapes.count) return false;
      const BitShape& shape = shapes.of[number[0]];
      x += signed_of(number[1]);
      y += signed_of(number[2]);
      const int32_t top = y - shape.height;
      if (x + shape.width <= 0 || x >= static_cast<int32_t>(width) || y <= 0 || top >= static_cast<int32_t>(height)) {
        return false;
      }
      area += uint32_t{shape.width} * shape.height;
      if (area > width * height) return false;
      put(shape, x, top);
      x += shape.width;
    }
    return bits.has_zeros_left();
  }

 private:
  L3_INLINE static bool take_number(BitReader& bits, uint32_t parameter, uint32_t& number) {
    uint32_t zeros = 0;
    for (; bits.take(1) == 0; ++zeros) {
      if (zeros == kMaxZeros) return false;
    }
    const uint32_t high = (1u << zeros) - 1 + bits.take(zeros);
    number = high << parameter | bits.take(parameter);
    return true;
  }
  L3_INLINE static int32_t signed_of(uint32_t number) {
    const auto half = static_cast<int32_t>((number + 1) / 2);
    return number % 2 == 1 ? half : -half;
  }

  const uint8_t* payload_;
};

}  // namespace l3
