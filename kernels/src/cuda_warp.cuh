// A warp of a GPU. A lane variable is a register, and lanes exchange values by shuffles. codec/src/engine/vector_warp.h
// documents the functions.
#pragma once

#include "cuda_instructions.cuh"
#include "engine/warp_concepts.h"

namespace l3 {

// One number per lane. Only the lowest 16 bits count. Code that depends on the higher bits masks them off.
struct CudaLanes {
  uint32_t v;

  L3_INLINE friend CudaLanes operator+(CudaLanes a, CudaLanes b) { return {a.v + b.v}; }
  L3_INLINE friend CudaLanes operator-(CudaLanes a, CudaLanes b) { return {a.v - b.v}; }
  L3_INLINE friend CudaLanes operator&(CudaLanes a, CudaLanes b) { return {a.v & b.v}; }
  L3_INLINE friend CudaLanes operator^(CudaLanes a, CudaLanes b) { return {a.v ^ b.v}; }
  L3_INLINE friend CudaLanes operator*(CudaLanes a, uint32_t b) { return {a.v * b}; }
  L3_INLINE friend CudaLanes operator>>(CudaLanes a, int count) { return {a.v >> count}; }
};

// Reads a payload in place. It loads only the bytes that a field needs.
class CudaReader {
 public:
  L3_INLINE CudaReader(const uint8_t* bytes, uint32_t) : bytes_(bytes) {}
  L3_INLINE const uint8_t* window(uint32_t at) const { return bytes_ + at; }

 private:
  const uint8_t* bytes_;
};

// Returns `bits` bits (at most 16) from bit `at` on.
L3_INLINE uint32_t load_field(const uint8_t* bytes, uint32_t at, uint32_t bits) {
  if (bits == 0) return 0;
  const uint8_t* p = bytes + at / 8;
  const uint32_t shift = at % 8;
  uint32_t window = p[0];
  if (shift + bits > 8) window |= static_cast<uint32_t>(p[1]) << 8;
  if (shift + bits > 16) window |= static_cast<uint32_t>(p[2]) << 16;
  return window >> shift & ((1u << bits) - 1);
}

// The inclusive running sum over the lanes.
L3_INLINE uint32_t running_sum(uint32_t v) {
  for (uint32_t step = 1; step < kLanes; step *= 2) {
    const uint32_t below = __shfl_up_sync(kAllLanes, v, step);
    if (lane_number() >= step) v += below;
  }
  return v;
}

L3_INLINE uint32_t sum_of_lanes(uint32_t v) { return __reduce_add_sync(kAllLanes, v); }

// The widths of a block's 64 groups: lane l holds groups l and l + 32.
struct CudaWidths {
  uint32_t width[2];
  uint32_t start[2];  // in units of four bits
  uint32_t total;
  bool valid;

  L3_INLINE static CudaWidths parse(const uint8_t* fields, uint32_t width_bits, uint32_t base, uint32_t rows,
                                    uint32_t groups, uint32_t bits) {
    CudaWidths result;
    uint32_t before = 0;
    bool fits = true;
    for (uint32_t i = 0; i < 2; ++i) {
      const uint32_t group = lane_number() + i * kLanes;
      const bool present = group / kRowGroups < rows && group % kRowGroups < groups;
      const uint32_t width = present ? base + load_field(fields, group * width_bits, width_bits) : 0;
      fits = fits && width <= bits;
      const uint32_t sum = running_sum(width);
      result.width[i] = width;
      result.start[i] = before + sum - width;
      before += __shfl_sync(kAllLanes, sum, kLanes - 1);
    }
    result.total = before;
    result.valid = __all_sync(kAllLanes, fits);
    return result;
  }
};

struct CudaWarp {
  using Lanes = CudaLanes;
  using Words = CudaLanes;
  using Reader = CudaReader;
  using Widths = CudaWidths;

  // The row above the current band, in shared memory: 32 samples for each strip and channel.
  struct Line {
    uint16_t* samples;
    uint32_t channels;
    L3_INLINE Lanes load(uint32_t strip, uint32_t channel) const {
      return {samples[(strip * channels + channel) * kLanes + lane_number()]};
    }
    L3_INLINE void store(uint32_t strip, uint32_t channel, Lanes value) {
      samples[(strip * channels + channel) * kLanes + lane_number()] = static_cast<uint16_t>(value.v);
    }
  };

  L3_INLINE static Lanes splat(uint32_t value) { return {value}; }
  L3_INLINE static Lanes average(Lanes a, Lanes b) { return {(a.v + b.v + 1) >> 1}; }
  L3_INLINE static Lanes shift_left(Lanes a, int count) { return {a.v << count}; }
  L3_INLINE static Lanes shift_right_signed(Lanes a, int count) {
    return {static_cast<uint32_t>(static_cast<int32_t>(a.v << 16) >> (16 + count))};
  }

  L3_INLINE static Lanes shift_up(Lanes a, Lanes before) {
    const uint32_t below = __shfl_up_sync(kAllLanes, a.v, 1);
    const uint32_t last_before = __shfl_sync(kAllLanes, before.v, kLanes - 1);
    return {lane_number() == 0 ? last_before : below};
  }
  L3_INLINE static Lanes shift_down(Lanes a) { return {__shfl_down_sync(kAllLanes, a.v, 1)}; }
  L3_INLINE static Lanes last(Lanes a) { return {__shfl_sync(kAllLanes, a.v, kLanes - 1)}; }
  L3_INLINE static Lanes first(Lanes a) { return {__shfl_sync(kAllLanes, a.v, 0)}; }
  L3_INLINE static Lanes choose_lane(uint32_t lane, Lanes a, Lanes b) { return lane_number() == lane ? a : b; }
  L3_INLINE static Lanes scan_add(Lanes a) { return {running_sum(a.v)}; }

  template <class Sample>
  L3_INLINE static Lanes residuals(const uint8_t* codes, const Widths& widths, uint32_t row) {
    const uint32_t half = row * kRowGroups / kLanes;
    const uint32_t source = row * kRowGroups % kLanes + lane_number() / kGroupSamples;
    const uint32_t width = __shfl_sync(kAllLanes, widths.width[half], source);
    const uint32_t start = __shfl_sync(kAllLanes, widths.start[half], source);
    const uint32_t code = load_field(codes, 4 * start + lane_number() % kGroupSamples * width, width);
    return {code - ((1u << width) >> 1)};
  }

  L3_INLINE static Lanes bit_fields(const uint8_t* bytes, uint64_t at, uint32_t step, uint32_t bits, uint32_t count) {
    if (lane_number() >= count) return {0};
    return {load_field(bytes, static_cast<uint32_t>(at) + lane_number() * step, bits)};
  }

  L3_INLINE static Words word_lane_numbers() { return {lane_number() + 1}; }
  // All bytes that are checked here lie at multiples of 4.
  L3_INLINE static Words load_words(const uint8_t* p) { return {reinterpret_cast<const uint32_t*>(p)[lane_number()]}; }
  L3_INLINE static Words load_words_part(const uint8_t* p, uint32_t count) {
    return {lane_number() < count ? reinterpret_cast<const uint32_t*>(p)[lane_number()] : 0};
  }
  L3_INLINE static Words first_words(uint32_t count, Words a, Words b) { return lane_number() < count ? a : b; }
  L3_INLINE static Words rotate_left_15(Words a) { return {__funnelshift_l(a.v, a.v, 15)}; }
  L3_INLINE static uint32_t sum_words(Words a) { return sum_of_lanes(a.v); }
};

static_assert(FastMethodWarp<CudaWarp>);

}  // namespace l3
