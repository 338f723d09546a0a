// Decodes fast tiles of samples up to 8 bits (sections 6.3 and 7 of the spec), each by a warp. This does not use the
// engine of codec/, which has a lane per column: 32 lanes for a row of one channel. Here eight lanes share a row of a
// channel, with four samples each, and all channels of a tile are decoded in parallel. That takes a third of the
// instructions. The results must equal the engine's, including the place of the first fault.
#pragma once

#include "cuda_warp.cuh"
#include "engine/fast.h"
#include "output.cuh"

namespace l3 {

constexpr uint32_t kPlaneLanes = 8;  // a lane per group of a row
constexpr uint32_t kEven = 0x00FF00FF;

// ---- four samples per word

L3_INLINE uint32_t average_four(uint32_t a, uint32_t b) { return (a | b) - (((a ^ b) & 0xFEFEFEFE) >> 1); }
L3_INLINE uint32_t add_four(uint32_t a, uint32_t b) {
  return ((a & 0x7F7F7F7F) + (b & 0x7F7F7F7F)) ^ ((a ^ b) & 0x80808080);
}
L3_INLINE uint32_t subtract_four(uint32_t a, uint32_t b) {
  return ((a | 0x80808080) - (b & 0x7F7F7F7F)) ^ ((a ^ ~b) & 0x80808080);
}
// Halves four signed numbers and rounds down. `signs` has the sign bit of each number.
L3_INLINE uint32_t half_of_four(uint32_t a, uint32_t signs) { return (a >> 1 & 0x7F7F7F7F) | (a & signs); }

// Does for four pixels what to_image() in codec/ does for one.
L3_INLINE void four_to_image(uint32_t transform, uint32_t mask, uint32_t* c) {
  switch (transform) {
    case 1:
      c[0] = add_four(c[0], c[1]) & mask;
      c[2] = add_four(c[2], c[1]) & mask;
      break;
    case 2:
      c[0] = add_four(c[0], c[1]) & mask;
      c[2] = add_four(c[2], average_four(c[0], c[1])) & mask;
      break;
    case 3:
      c[2] = add_four(c[2], c[1]) & mask;
      c[0] = add_four(c[0], average_four(c[2], c[1])) & mask;
      break;
    case 4: {
      const uint32_t signs = mask ^ (mask >> 1 & 0x7F7F7F7F);
      const uint32_t t = subtract_four(c[1], half_of_four(c[2], signs));
      const uint32_t green = add_four(c[2], t) & mask;
      const uint32_t blue = subtract_four(t, half_of_four(c[0], signs)) & mask;
      c[0] = add_four(c[0], blue) & mask;
      c[1] = green;
      c[2] = blue;
      break;
    }
    default: break;
  }
}

// The shared memory of a warp in addition to the row above.
struct FastScratch {
  uint4 widths[4 * kBandRows];           // of a row's groups, by channel and row: widths, and where codes begin
  uint32_t samples[kBandRows * kLanes];  // four to a word, by row, channel and group
};

template <uint32_t kChannels>
class FourWideDecoder {
 public:
  // `line` has eight words for each channel of each strip.
  L3_INLINE FourWideDecoder(const TileShape& shape, const TileEntry& entry, const FourPixels<kChannels>& out,
                            FastScratch& scratch, uint32_t* line)
      : width_(shape.width),
        height_(shape.height),
        bits_(shape.bits),
        payload_(entry.payload),
        payload_bytes_(entry.payload_bytes),
        last_pair_(entry.payload_bytes / 4 - 2),
        transform_(entry.parameters),
        out_(out),
        scratch_(scratch),
        line_(line),
        channel_(smaller(lane_number() / kPlaneLanes, kChannels - 1)),
        has_channel_(lane_number() / kPlaneLanes < kChannels),
        group_(lane_number() % kPlaneLanes),
        first_lane_(lane_number() & ~(kPlaneLanes - 1)),
        mask_(((1u << shape.bits) - 1) * 0x01010101u) {}

  L3_INLINE Fault decode() {
    Fault fault = read_origins();
    for (uint32_t y = 0; y < height_ && fault.reason == Reason::none; y += kBandRows) {
      const uint32_t rows = smaller(kBandRows, height_ - y);
      for (uint32_t x = 0; x < width_ && fault.reason == Reason::none; x += kLanes) {
        fault = read_blocks(x, rows);
        if (fault.reason != Reason::none) break;
        reconstruct(x, rows);
        write(x, y, rows);
      }
    }
    return fault.reason != Reason::none ? fault : check_end();
  }

 private:
  // Returns 32 bits of the payload from any bit on. Bits after its end are undefined.
  L3_INLINE uint32_t window(uint32_t bit) const {
    const uint32_t word = smaller(bit / 32, last_pair_);
    const uint8_t* const from = payload_ + 4 * word;
    return shift_right_of_two(load_global_word(from), load_global_word(from + 4), (bit - 32 * word) & 63);
  }

  L3_INLINE Fault read_origins() {
    const uint32_t words = ceil_div(width_, kLanes) * kPlaneLanes;
    for (uint32_t c = 0; c < kChannels; ++c) {
      const uint32_t origin = load_u16(payload_ + 2 * c);
      if (origin >> bits_ != 0) return {Reason::origin_range, 2 * c};
      for (uint32_t i = lane_number(); i < words; i += kLanes) line_[c * words + i] = origin * 0x01010101u;
    }
    __syncwarp();
    at_ = 2 * kChannels;  // payloads have at least 16 bytes
    return {};
  }

  // Reads the headers and widths of the blocks of a strip. The size of a block gives the place of the next one. A lane
  // reads the widths of a row, and keeps those of its own channel.
  L3_INLINE Fault read_blocks(uint32_t x, uint32_t rows) {
    const uint32_t groups = smaller(kRowGroups, ceil_div(width_ - x, kGroupSamples));
    const uint32_t row = group_;
    uint32_t own_fields = 0, own_header = 0;
#pragma unroll
    for (uint32_t c = 0; c < kChannels; ++c) {
      const uint32_t left = payload_bytes_ - at_;
      if (left < 2) return {Reason::block_truncated, at_};
      const uint32_t header = window(8 * at_) & 0xFFFF;
      const uint32_t base = header >> 3 & 31, width_bits = header >> 8 & 7;
      if (header >> 11 != 0 || (header & 7) >= kPredictors || base > bits_ || width_bits > kMaxWidthBits) {
        return {Reason::block_header, at_};
      }
      const uint32_t codes_at = 2 + 8 * width_bits;
      if (left < codes_at) return {Reason::block_truncated, at_};
      const uint32_t of_row = row < rows ? groups * width_bits : 0;
      const uint32_t fields = window(8 * (at_ + 2 + row * width_bits)) & lowest_bits(of_row);
      if (base + (1u << width_bits) - 1 > bits_ && !widths_fit(fields, base, width_bits)) {
        return {Reason::block_width, at_};
      }
      uint32_t sum = 0;
      for (uint32_t b = 0; b < width_bits; ++b) {
        sum += static_cast<uint32_t>(__popc(fields & lowest_of_fields(width_bits) << b)) << b;
      }
      const uint32_t total = sum_of_lanes(lane_number() < kPlaneLanes ? sum : 0) + base * groups * rows;
      const uint32_t block_bytes = codes_at + (total + 1) / 2;
      if (left < block_bytes) return {Reason::block_truncated, at_};
      if (channel_ == c) {
        own_fields = fields;
        own_header = header;
        codes_ = 8 * (at_ + codes_at);
      }
      at_ += block_bytes;
    }
    predictor_ = own_header & 7;
    spread_widths(own_fields, own_header, row < rows ? groups : 0);
    return {};
  }

  // The lowest bit of each of eight fields.
  L3_INLINE static uint32_t lowest_of_fields(uint32_t width_bits) {
    return width_bits == 1 ? 0xFFu : width_bits == 2 ? 0x5555u : width_bits == 3 ? 0x249249u : 0x11111111u;
  }
  L3_INLINE bool widths_fit(uint32_t fields, uint32_t base, uint32_t width_bits) const {
    // Fields of groups that do not exist are zero. A base that is too large was refused before.
    bool fits = true;
    for (uint32_t g = 0; g < kRowGroups; ++g) {
      fits = fits && base + (fields & ((1u << width_bits) - 1)) <= bits_;
      fields >>= width_bits;
    }
    return __all_sync(kAllLanes, fits);
  }
  // The inclusive running sum over a plane's lanes.
  L3_INLINE static uint32_t sum_of_eight(uint32_t v) {
    return add_from_below<4>(add_from_below<2>(add_from_below<1>(v)));
  }
  // Spreads four fields to four bytes.
  L3_INLINE static uint32_t spread(uint32_t fields, uint32_t width_bits) {
    const uint32_t two = (1u << 2 * width_bits) - 1, one = (1u << width_bits) - 1;
    fields = (fields | fields << (16 - 2 * width_bits)) & (two * 0x00010001u);
    return (fields | fields << (8 - width_bits)) & (one * 0x01010101u);
  }
  // Stores the widths of the lane's row, and where its codes begin, in shared memory.
  L3_INLINE void spread_widths(uint32_t fields, uint32_t header, uint32_t groups) {
    const uint32_t base = (header >> 3 & 31) * 0x01010101u, width_bits = header >> 8 & 7;
    const uint32_t there = groups >= 4 ? ~0u : (1u << 8 * groups) - 1;
    const uint32_t there_above = groups >= 8 ? ~0u : groups <= 4 ? 0u : (1u << 8 * (groups - 4)) - 1;
    const uint32_t low = (spread(fields & ((1u << 4 * width_bits) - 1), width_bits) + base) & there;
    const uint32_t high = (spread(fields >> 4 * width_bits, width_bits) + base) & there_above;
    const uint32_t sums = low * 0x01010101u;
    const uint32_t sums_above = high * 0x01010101u + (sums >> 24) * 0x01010101u;
    const uint32_t of_row = sums_above >> 24;
    const uint32_t so_far = sum_of_eight(of_row);
    row_start_ = so_far - of_row;
    __syncwarp();  // all lanes have read the previous strip
    scratch_.widths[lane_number()] = make_uint4(low, high, sums - low, sums_above - high);
    __syncwarp();
  }

  // The terms of a plane's predictor: avg(n, avg(a, b)) or 0, minus NW or 0.
  struct Choice {
    uint32_t a_is_n, a_is_ne, b_is_n, b_is_ne;  // NW if neither; each is all ones or all zeros
    uint32_t wants_average, wants_nw;
    uint32_t runs;  // the samples of a row are a running sum
  };
  L3_INLINE Choice choice() const {
    // The shuffle keeps the compiler from computing them again in each row.
    const auto bits_if = [this](uint32_t predictors) {
      return __shfl_sync(kAllLanes, 0u - (predictors >> predictor_ & 1), lane_number());
    };
    constexpr uint32_t kN = 1u << kPredictN, kGradient = 1u << kPredictGradient, kSmooth = 1u << kPredictSmooth,
                       kThreeQuarters = 1u << kPredictThreeQuarters, kTurn = 1u << kPredictTurn,
                       kHalf = 1u << kPredictHalf, kW = 1u << kPredictW;
    return {bits_if(kN | kGradient | kThreeQuarters),
            bits_if(kTurn),
            bits_if(kN | kGradient),
            bits_if(kSmooth),
            bits_if(~kW),
            bits_if(kGradient | kThreeQuarters | kTurn | kHalf),
            bits_if(~(kN | kSmooth))};
  }
  L3_INLINE static uint32_t choose(uint32_t which, uint32_t a, uint32_t b) { return (a & which) | (b & ~which); }

  // Converts codes to samples, row by row, four samples per word.
  L3_INLINE void reconstruct(uint32_t x, uint32_t rows) {
    const Choice of = choice();
    const bool first_strip = x == 0;
    const uint32_t words = ceil_div(width_, kLanes) * kPlaneLanes;
    uint32_t* const line = line_ + channel_ * words + x / kGroupSamples + group_;
    uint32_t n = has_channel_ ? *line : 0;
    // The value to the right of the last column is the sample above the last column.
    const uint32_t edge = smaller(kLanes, width_ - x) - 1;
    uint32_t ne_order = 0x4321;
    if (edge / kGroupSamples == group_) {
      const uint32_t place = 4 * (edge % kGroupSamples);
      ne_order = (ne_order & ~(0xFu << place)) | (edge % kGroupSamples) << place;
    }
    uint32_t nw_before = corner_;
    corner_ = __shfl_sync(kAllLanes, n, first_lane_ + kPlaneLanes - 1) >> 24;
    uint32_t next_left = 0;
    uint32_t widths = shared_address(&scratch_.widths[first_lane_]) + group_;
    uint32_t* samples = &scratch_.samples[lane_number()];
    const uint32_t mask = __shfl_sync(kAllLanes, mask_, lane_number());  // as in choice()
    for (uint32_t r = 0; r < rows; ++r, widths += 16, samples += kLanes) {
      const uint32_t width = load_shared_u8_here<0>(widths);
      const uint32_t row_start = __shfl_sync(kAllLanes, row_start_, first_lane_ + r);
      const uint32_t codes = window(codes_ + 4 * (row_start + load_shared_u8_here<8>(widths)));
      // Samples 0 and 2 are the halves of one word, samples 1 and 3 of another.
      const uint32_t fields = lowest_bits(width) * 0x00010001u;
      uint32_t even = __byte_perm(codes, codes >> 2 * width, 0x5410) & fields;
      uint32_t odd = __byte_perm(codes >> width, codes >> 3 * width, 0x5410) & fields;

      const uint32_t before =
          __shfl_sync(kAllLanes, first_strip ? n : left_, first_lane_ + (first_strip ? 0 : r)) & 0xFF;
      const uint32_t nw_of_first = first_strip ? before : nw_before;
      nw_before = before;
      uint32_t below = __shfl_up_sync(kAllLanes, n, 1);
      if (group_ == 0) below = nw_of_first << 24;
      const uint32_t above = __shfl_down_sync(kAllLanes, n, 1);
      const uint32_t nw = __byte_perm(n, below, 0x2107);
      const uint32_t ne = __byte_perm(n, above, ne_order);
      const uint32_t a = choose(of.a_is_n, n, choose(of.a_is_ne, ne, nw));
      const uint32_t b = choose(of.b_is_n, n, choose(of.b_is_ne, ne, nw));
      const uint32_t p = average_four(n, average_four(a, b)) & of.wants_average, less = nw & of.wants_nw;
      // Subtract half the range of a code, (1 << width) / 2. For a width of 0 this gives 2^15 in the lower half, which
      // is harmless, since samples count modulo 256 at most. The constant keeps the halves from borrowing from each
      // other.
      const uint32_t offset = 0x08008800u - ((fields + 0x00010001u) >> 1);
      even += (p & kEven) - (less & kEven) + offset;
      odd += __byte_perm(p, 0, 0x4341) - __byte_perm(less, 0, 0x4341) + offset;
      even &= kEven;
      odd &= kEven;

      const uint32_t low_pair = (even + odd) << 16;
      odd += (even + low_pair) & of.runs;
      even += low_pair & of.runs;
      const uint32_t own = odd >> 16;
      const uint32_t carry = ((sum_of_eight(own) - own + before) & of.runs) * 0x00010001u;
      n = __byte_perm(even + carry, odd + carry, 0x6240) & mask;
      const uint32_t last = __shfl_sync(kAllLanes, n, first_lane_ + kPlaneLanes - 1) >> 24;
      if (group_ == r) next_left = last;
      *samples = n;
    }
    left_ = next_left;
    if (has_channel_) *line = n;
    __syncwarp();
  }

  // Writes the rows of the strip to the output. A lane has four pixels of each.
  L3_INLINE void write(uint32_t x, uint32_t y, uint32_t rows) const {
    for (uint32_t r = lane_number() / kPlaneLanes; r < rows; r += kLanes / kPlaneLanes) {
      uint32_t four[kChannels];
#pragma unroll
      for (uint32_t c = 0; c < kChannels; ++c) four[c] = scratch_.samples[r * kLanes + c * kPlaneLanes + group_];
      if constexpr (kChannels >= 3) four_to_image(transform_, mask_, four);
      out_.put(x + kGroupSamples * group_, y + r, four);
    }
    __syncwarp();
  }

  L3_INLINE Fault check_end() const {
    if (payload_bytes_ - at_ >= kUnit) return {Reason::tile_leftover, at_};
    for (uint32_t i = at_; i < payload_bytes_; ++i) {
      if (payload_[i] != 0) return {Reason::tile_padding, i};
    }
    return {};
  }

  const uint32_t width_, height_, bits_;
  const uint8_t* payload_;
  const uint32_t payload_bytes_, last_pair_, transform_;  // last_pair_: the word before the last one
  const FourPixels<kChannels>& out_;
  FastScratch& scratch_;
  uint32_t* line_;
  const uint32_t channel_;
  const bool has_channel_;  // lanes past the last channel repeat its work and store nothing
  const uint32_t group_, first_lane_;
  const uint32_t mask_;
  uint32_t at_ = 0;                                     // position in the payload
  uint32_t codes_ = 0, predictor_ = 0, row_start_ = 0;  // of the lane's channel; of the row that is its group's number
  uint32_t left_ = 0;                                   // the last sample of that row in the previous strip
  uint32_t corner_ = 0;                                 // the last sample of the row above in the previous strip
};

}  // namespace l3
