// Decodes fast tiles of samples up to 8 bits (sections 6.3 and 7 of the spec), each by a warp. This does not use the
// engine of codec/, which has a lane per column: 32 lanes for a row of one channel. Here eight lanes share a row of a
// block, with four samples each, and up to four blocks are decoded in parallel: all channels of a strip, and of a tile
// with one or two channels also the next strips, each a row behind the strip to its left. The results must equal the
// engine's, including the place of the first fault.
#pragma once

#include "cuda_warp.cuh"
#include "engine/fast.h"
#include "output.cuh"

namespace l3 {

constexpr uint32_t kBlockLanes = 8;  // a lane per group of a row
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

// Does for four pixels what to_image() in codec/ does for one, kCount times.
template <uint32_t kCount, uint32_t kChannels>
L3_INLINE void fours_to_image(uint32_t transform, uint32_t mask, uint32_t (&fours)[kCount][kChannels]) {
  static_assert(kChannels >= 3);
  switch (transform) {
    case 1:
      for (uint32_t* c : fours) {
        c[0] = add_four(c[0], c[1]) & mask;
        c[2] = add_four(c[2], c[1]) & mask;
      }
      break;
    case 2:
      for (uint32_t* c : fours) {
        c[0] = add_four(c[0], c[1]) & mask;
        c[2] = add_four(c[2], average_four(c[0], c[1])) & mask;
      }
      break;
    case 3:
      for (uint32_t* c : fours) {
        c[2] = add_four(c[2], c[1]) & mask;
        c[0] = add_four(c[0], average_four(c[2], c[1])) & mask;
      }
      break;
    case 4:
      for (uint32_t* c : fours) {
        const uint32_t signs = mask ^ (mask >> 1 & 0x7F7F7F7F);
        const uint32_t t = subtract_four(c[1], half_of_four(c[2], signs));
        c[1] = add_four(c[2], t) & mask;
        c[2] = subtract_four(t, half_of_four(c[0], signs)) & mask;
        c[0] = add_four(c[0], c[2]) & mask;
      }
      break;
    default: break;
  }
}

// Four fields of up to 8 bits, each in a half of a word: fields 0 and 2, and fields 1 and 3.
struct FourFields {
  uint32_t even, odd;
  // `fields` are the lowest `width` bits, in both halves.
  L3_INLINE static FourFields of(uint32_t bits, uint32_t width, uint32_t fields) {
    const uint32_t pairs = __byte_perm(bits, bits >> 2 * width, 0x5410);
    return {pairs & fields, pairs >> width & fields};
  }
};

// The shared memory of a warp in addition to the row above.
template <uint32_t kChannels>
struct FastScratch {
  // Here they take no registers.
  FourPixels<kChannels> out;
  uint32_t transform, height;
  // For each row of each block, its groups in halves of words: the width in the upper four bits, below it where the
  // codes begin, counted from the block's codes in units of four bits. A block has nine rows, so that lanes read
  // different banks.
  uint4 groups[4 * (kBandRows + 1)];
  uint32_t samples[kBandRows * kLanes];  // four to a word, by row, block and group
  // Tables. By predictor: whether a is NE (as a mask), the factors of the average, of NW and of W; the last one times
  // 2^16, and the order of bytes that makes a carry.
  uint4 factors[kPredictors];
  uint2 more_factors[kPredictors];
  uint2 of_widths[9];  // by width: the bits of a code, in both halves, and what is added to a code
  uint32_t bits_of_fields[(kMaxWidthBits + 2) * 4];  // by D and bit: this bit of each of eight fields
};
static_assert(sizeof(FastScratch<1>) <= 2048, "32 warps have room in a multiprocessor with 100 KB");

template <uint32_t kChannels>
class FourWideDecoder {
 public:
  // `line` has eight words for each channel of each strip.
  L3_INLINE FourWideDecoder(const TileShape& shape, const TileEntry& entry, const TilePlace& place,
                            FastScratch<kChannels>& scratch, uint32_t* line)
      : width_(shape.width),
        bits_(shape.bits),
        payload_(entry.payload),
        payload_bytes_(entry.payload_bytes),
        scratch_(scratch),
        line_(line),
        strip_(kStrips > 1 ? lane_number() / kBlockLanes / kChannels : 0),
        channel_(kStrips > 1 ? lane_number() / kBlockLanes % kChannels
                             : smaller(lane_number() / kBlockLanes, kChannels - 1)),
        group_(lane_number() % kBlockLanes),
        first_lane_(lane_number() & ~(kBlockLanes - 1)),
        left_lane_((lane_number() - (kStrips > 1 ? kChannels : 0) * kBlockLanes) % kLanes | (kBlockLanes - 1)),
        mask_(((1u << shape.bits) - 1) * 0x01010101u) {
    fill_tables();
    // All lanes write the same.
    scratch_.transform = entry.parameters;
    scratch_.height = shape.height;
    scratch_.out = FourPixels<kChannels>(place);
  }

  L3_INLINE Fault decode() {
    Fault fault = read_origins();
    for (uint32_t y = 0; y < scratch_.height && fault.reason == Reason::none; y += kBandRows) {
      const uint32_t rows = smaller(kBandRows, scratch_.height - y);
      for (uint32_t x = 0; x < width_ && fault.reason == Reason::none; x += kStrips * kLanes) {
        fault = read_blocks(x, rows);
        if (fault.reason != Reason::none) break;
        reconstruct(x);
        write(x, y, rows);
      }
    }
    return fault.reason != Reason::none ? fault : check_end();
  }

 private:
  static constexpr uint32_t kStrips = kMaxChannels / kChannels;  // decoded at once
  static constexpr uint32_t kBlocks = kStrips * kChannels;
  static constexpr uint32_t kRowStep = 4 / kStrips;  // from a row of a lane to the next one, when rows are written

  // Returns 32 bits of the payload from any bit on, which lies in this word. Bits after its end are undefined.
  // `last_pair` is the number of the word before the last one.
  L3_INLINE uint32_t window(uint32_t bit, uint32_t word, uint32_t last_pair) const {
    word = smaller(word, last_pair);
    const uint8_t* const from = payload_ + 4 * word;
    return shift_right_of_two(load_global_word(from), load_global_word(from + 4), bit - 32 * word);
  }

  L3_INLINE Fault read_origins() {
    const uint32_t words = ceil_div(width_, kLanes) * kBlockLanes;
    for (uint32_t c = 0; c < kChannels; ++c) {
      const uint32_t origin = load_u16(payload_ + 2 * c);
      if (origin >> bits_ != 0) return {Reason::origin_range, 2 * c};
      for (uint32_t i = lane_number(); i < words; i += kLanes) line_[c * words + i] = origin * 0x01010101u;
    }
    __syncwarp();
    at_ = 2 * kChannels;  // payloads have at least 16 bytes
    return {};
  }

  // The groups of a row of a strip, or 0 if the tile has no such strip.
  L3_INLINE uint32_t groups_at(uint32_t x) const {
    if (kStrips > 1 && x >= width_) return 0;
    return smaller(kRowGroups, (width_ - x + kGroupSamples - 1) / kGroupSamples);
  }

  // Reads the headers and widths of the blocks. The size of a block gives the place of the next one. A lane reads the
  // widths of a row, and keeps those of its own block. Faults are looked for when all blocks are read; what comes after
  // a fault is harmless.
  L3_INLINE Fault read_blocks(uint32_t x, uint32_t rows) {
    const uint32_t row = group_, bit = lane_number() / kBlockLanes;
    const uint32_t bits_of_fields = shared_address(&scratch_.bits_of_fields[bit]);
    const uint32_t last_pair = payload_bytes_ / 4 - 2;
    const uint32_t value_of_bit = kept(1u << bit);
    Block own{at_, 0, 0, 0};
    uint32_t groups_of_row = groups_at(x), groups = kept(row < rows ? groups_of_row : 0);
#pragma unroll
    for (uint32_t b = 0; b < kBlocks; ++b) {
      if (b > 0 && b % kChannels == 0) {
        if (x + b / kChannels * kLanes >= width_) break;
        groups_of_row = groups_at(x + b / kChannels * kLanes);
        groups = row < rows ? groups_of_row : 0;
      }
      const uint8_t* const header = payload_ + smaller(at_, payload_bytes_ - 2);
      Block block{at_, load_global_u8(header), smaller(load_global_u8(header + 1), kMaxWidthBits + 1), 0};
      const uint32_t width_bits = block.width_bits;
      const uint32_t fields_at = at_ + 2 + row * width_bits;
      block.fields = window(8 * fields_at, fields_at / 4, last_pair) & lowest_bits(groups * width_bits);
      // Each lane adds a bit of the row's fields.
      const uint32_t ones = __popc(block.fields & load_shared_word_here(bits_of_fields + 16 * width_bits));
      const uint32_t total = sum_of_lanes(ones * value_of_bit) + (block.first >> 3) * (groups_of_row * rows);
      at_ += 2 + 8 * width_bits + (total + 1) / 2;
      if (lane_number() >= b * kBlockLanes) own = block;
    }
    if (kStrips > 1) groups = row < rows ? groups_at(x + strip_ * kLanes) : 0;
    return keep_widths(own, groups);
  }

  struct Block {
    uint32_t at, first, width_bits, fields;  // `first` is the header's first byte, and `width_bits` its second one
  };

  // The lowest bit of each of eight fields.
  L3_INLINE static uint32_t lowest_of_fields(uint32_t width_bits) {
    return width_bits == 1 ? 0xFFu : width_bits == 2 ? 0x5555u : width_bits == 3 ? 0x249249u : 0x11111111u;
  }
  // The inclusive running sum over a block's lanes.
  L3_INLINE static uint32_t sum_of_eight(uint32_t v) {
    return add_from_below<4>(add_from_below<2>(add_from_below<1>(v)));
  }

  // Stores the groups of the lane's row in shared memory. Returns the first fault of the blocks.
  L3_INLINE Fault keep_widths(const Block& block, uint32_t groups) {
    const uint32_t width_bits = block.width_bits, base = block.first >> 3;
    const uint32_t ones = lowest_bits(width_bits) * 0x00010001u;
    const FourFields of_low = FourFields::of(block.fields, width_bits, ones);
    const FourFields of_high = FourFields::of(block.fields >> 4 * width_bits, width_bits, ones);
    const uint32_t low = (of_low.even + (of_low.odd << 8) + base * 0x01010101u) & lowest_bits(8 * groups);
    const uint32_t high =
        (of_high.even + (of_high.odd << 8) + base * 0x01010101u) & lowest_bits(groups > 4 ? 8 * groups - 32 : 0);
    const uint32_t sums = low * 0x01010101u;
    const uint32_t sums_above = high * 0x01010101u + (sums >> 24) * 0x01010101u;
    const uint32_t of_row = sums_above >> 24;
    const uint32_t so_far = sum_of_eight(of_row);
    predictor_ = block.first & 7;
    const uint32_t codes_at = block.at + 2 + 8 * width_bits;
    codes_ = 8 * codes_at;

    const uint32_t too_wide = (127 - bits_) * 0x01010101u;
    const bool fits = (((low + too_wide) | (high + too_wide)) & 0x80808080) == 0;
    const bool is_header = width_bits <= kMaxWidthBits && predictor_ < kPredictors && base <= bits_;
    if (!__all_sync(kAllLanes, fits && is_header) || at_ > payload_bytes_) {
      const uint32_t total = __shfl_sync(kAllLanes, so_far, first_lane_ + kBlockLanes - 1);
      return first_fault(block.at, codes_at, codes_at + (total + 1) / 2, is_header, fits);
    }

    const uint32_t begin = (so_far - of_row) * 0x00010001u;
    const uint32_t starts = sums - low, starts_above = sums_above - high;
    const uint32_t widths = low << 4, widths_above = high << 4;
    scratch_.groups[lane_number() + lane_number() / kBlockLanes] =
        make_uint4(__byte_perm(starts, widths, 0x5140) + begin, __byte_perm(starts, widths, 0x7362) + begin,
                   __byte_perm(starts_above, widths_above, 0x5140) + begin,
                   __byte_perm(starts_above, widths_above, 0x7362) + begin);
    __syncwarp();
    return {};
  }

  // Finds the first fault, given each lane's part of its block, where the block's codes begin, and where it ends.
  L3_INLINE Fault first_fault(uint32_t at, uint32_t codes_at, uint32_t end, bool is_header, bool fits) const {
    const bool row_fits = (__ballot_sync(kAllLanes, !fits) >> first_lane_ & 0xFF) == 0;
    Reason reason = Reason::none;
    if (at + 2 > payload_bytes_) {
      reason = Reason::block_truncated;
    } else if (!is_header) {
      reason = Reason::block_header;
    } else if (codes_at > payload_bytes_) {
      reason = Reason::block_truncated;
    } else if (!row_fits) {
      reason = Reason::block_width;
    } else if (end > payload_bytes_) {
      reason = Reason::block_truncated;
    }
    const uint32_t lane = __ffs(__ballot_sync(kAllLanes, reason != Reason::none)) - 1;
    return {static_cast<Reason>(__shfl_sync(kAllLanes, static_cast<uint32_t>(reason), lane)),
            __shfl_sync(kAllLanes, at, lane)};
  }

  // Keeps the compiler from computing the value again where it is used.
  L3_INLINE static uint32_t kept(uint32_t v) { return __shfl_sync(kAllLanes, v, lane_number()); }

  // A prediction is avg(n, avg(a, b)) or 0, minus NW or 0, plus W or 0. a is N, NE or NW, b is N or NW.
  static constexpr uint32_t kW = 1u << kPredictW, kN = 1u << kPredictN, kGradient = 1u << kPredictGradient,
                            kSmooth = 1u << kPredictSmooth, kThreeQuarters = 1u << kPredictThreeQuarters,
                            kTurn = 1u << kPredictTurn;
  L3_INLINE void fill_tables() {
    const uint32_t i = lane_number();
    if (i < kPredictors) {
      const auto bit_if = [i](uint32_t predictors) { return predictors >> i & 1; };
      const uint32_t plus_w = bit_if(~(kN | kSmooth));
      scratch_.factors[i] =
          make_uint4(0u - bit_if(kSmooth | kTurn), bit_if(~kW), 0u - bit_if(~(kW | kN | kSmooth)), plus_w);
      scratch_.more_factors[i] = uint2{plus_w << 16, plus_w != 0 ? 0x3232u : 0x4444u};
    }
    if (i <= 8) {
      const uint32_t ones = lowest_bits(i);
      // Half the range of a code is subtracted. 0x200 keeps numbers above 0; samples count modulo 256 at most.
      scratch_.of_widths[i] = uint2{ones * 0x00010001u, 0x02000200u - (ones - (ones >> 1)) * 0x00010001u};
    }
    const uint32_t width_bits = i / 4, bit = i % 4;
    if (width_bits <= kMaxWidthBits + 1) {
      const bool has_bit = bit < width_bits && width_bits <= kMaxWidthBits;
      scratch_.bits_of_fields[i] = has_bit ? lowest_of_fields(width_bits) << bit : 0;
    }
  }

  // Converts codes to samples, row by row, four samples per word.
  L3_INLINE void reconstruct(uint32_t x) {
    const uint32_t x_of_strip = x + strip_ * kLanes;
    const bool has_line = lane_number() < kBlocks * kBlockLanes && x_of_strip < width_;
    const uint32_t words = ceil_div(width_, kLanes) * kBlockLanes;
    uint32_t* const line = line_ + channel_ * words + x_of_strip / kGroupSamples + group_;
    uint32_t n = has_line ? *line : 0;

    // Where bytes of neighbours are: in n, or in the word of the lane to the left or right. The first lane has the
    // sample to its left in the lowest byte of that word. In the tile's first column NW and W are N.
    const bool is_first = group_ == 0, at_edge = x_of_strip == 0;
    const uint32_t order_of_nw = !is_first ? 0x2107 : at_edge ? 0x2100 : 0x2104;
    // The value to the right of the last column is the sample above the last column.
    const uint32_t to_edge = smaller(kLanes, width_ - x_of_strip) - 1 - kGroupSamples * group_;
    const uint32_t order_of_ne = 0x4321 - (to_edge < kGroupSamples ? 1u << 4 * to_edge : 0);
    const auto is_one_of = [this](uint32_t predictors) { return (predictors >> predictor_ & 1) != 0; };
    const uint32_t order_of_a = kept(is_one_of(kN | kGradient | kThreeQuarters) ? 0x3210
                                     : is_one_of(kSmooth | kTurn)               ? order_of_ne
                                                                                : order_of_nw);
    const uint32_t order_of_b = kept(is_one_of(kN | kGradient) ? 0x3210 : order_of_nw);
    const uint4 factors = load_shared_four_here(shared_address(&scratch_.factors[predictor_]));
    const uint32_t ne_in_a = factors.x, with_average = factors.y, minus_nw = factors.z, plus_w = factors.w;
    const uint2 more = load_shared_two_here(shared_address(&scratch_.more_factors[predictor_]));
    const uint32_t plus_w_above = more.x, order_of_carry = more.y;
    const uint32_t with_w = kept(is_first ? 0x10000 : 0), with_n = kept(at_edge ? 1 : 0);
    const uint32_t nw_order = kept(order_of_nw), last_pair = payload_bytes_ / 4 - 2;
    const uint32_t widths = shared_address(scratch_.of_widths);
    const uint32_t last_before = __shfl_sync(kAllLanes, n, left_lane_) >> 24;
    uint32_t w_before = strip_ == 0 ? corner_ : last_before;
    corner_ = last_before;
    uint32_t groups =
        shared_address(&scratch_.groups[lane_number() / kBlockLanes * (kBandRows + 1)]) + 2 * group_ - 16 * strip_;
    uint32_t samples = shared_address(&scratch_.samples[lane_number()]) - 4 * kLanes * strip_;
    uint32_t left = shared_address(&scratch_.samples[left_lane_]) + 3 - 4 * kLanes * strip_;
#pragma unroll(kStrips == 1 ? 8 : kStrips == 2 ? 3 : 1)
    for (uint32_t step = 0; step < kBandRows + kStrips - 1; ++step) {
      const bool has_row = kStrips == 1 || step - strip_ < kBandRows;
      const uint32_t group = has_row ? load_shared_half_here(groups) : 0;
      uint32_t w = dot_unsigned(n, with_n, 0);
      if (!at_edge && has_row) w = load_shared_u8_here<0>(left);
      const uint32_t width = group >> 12;
      const uint2 of_width = load_shared_two_here(widths + 8 * width);
      const uint32_t code_at = codes_ + 4 * group - (width << 14);
      const FourFields codes = FourFields::of(window(code_at, code_at / 32, last_pair), width, of_width.x);
      const uint32_t below = value_below(n, w_before);
      const uint32_t above = __shfl_down_sync(kAllLanes, n, 1);
      const uint32_t nw = bytes_of(n, below, nw_order);
      const uint32_t a = bytes_of(n, (above & ne_in_a) | (below & ~ne_in_a), order_of_a);
      const uint32_t b = bytes_of(n, below, order_of_b);
      const uint32_t p = average_four(n, average_four(a, b));
      uint32_t even = codes.even + of_width.y + (p & kEven) * with_average + (nw & kEven) * minus_nw;
      uint32_t odd =
          codes.odd + of_width.y + __byte_perm(p, 0, 0x4341) * with_average + __byte_perm(nw, 0, 0x4341) * minus_nw;

      // Sums of the row, in the upper halves; those in the lower halves stay below 2^16.
      even += (even + odd) * plus_w_above;
      odd += even * plus_w;
      const uint32_t sums = sum_of_eight(odd + w * with_w);
      const uint32_t carry = bytes_of(sums - odd, 0, order_of_carry);
      const uint32_t row = __byte_perm(even + carry, odd + carry, 0x6240) & mask_;
      if (has_row) {
        n = row;
        w_before = w;
        store_shared_word(samples, n);
      }
      if (kStrips > 1) __syncwarp();
      groups += 16;
      samples += 4 * kLanes;
      left += 4 * kLanes;
    }
    if (has_line) *line = n;
    __syncwarp();
  }

  // Reads what a lane has of rows from `row` on: four pixels of each row, or of each fourth row.
  template <uint32_t kCount>
  L3_INLINE void read_pixels(uint32_t strip, uint32_t row, uint32_t (&fours)[kCount][kChannels]) const {
#pragma unroll
    for (uint32_t i = 0; i < kCount; ++i) {
#pragma unroll
      for (uint32_t c = 0; c < kChannels; ++c) {
        fours[i][c] = scratch_.samples[(row + i * kRowStep) * kLanes + (strip * kChannels + c) * kBlockLanes + group_];
      }
    }
    if constexpr (kChannels >= 3) fours_to_image(scratch_.transform, mask_, fours);
  }

  // Writes the rows to the output.
  L3_INLINE void write(uint32_t x, uint32_t y, uint32_t rows) const {
    const uint32_t index = lane_number() / kBlockLanes, strip = index % kStrips, row = index / kStrips;
    const uint32_t column = x + strip * kLanes + kGroupSamples * group_;
    if (scratch_.out.takes_words(x, y, kStrips * kLanes, kBandRows)) {
      uint32_t fours[kBandRows / kRowStep][kChannels];
      read_pixels(strip, row, fours);
      scratch_.out.put_words_of_rows(column, y + row, kRowStep, fours);
    } else {
#pragma unroll 1
      for (uint32_t r = row; r < rows; r += kRowStep) {
        uint32_t four[1][kChannels];
        read_pixels(strip, r, four);
        scratch_.out.put(column, y + r, four[0]);
      }
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

  const uint32_t width_, bits_;
  const uint8_t* payload_;
  const uint32_t payload_bytes_;
  FastScratch<kChannels>& scratch_;
  uint32_t* line_;
  const uint32_t strip_, channel_;  // of the lane's block; lanes past the last block repeat its work
  const uint32_t group_, first_lane_;
  const uint32_t left_lane_;  // the last one of the block to the left: of the strip before, maybe in the turn before
  const uint32_t mask_;
  uint32_t at_ = 0;                     // position in the payload
  uint32_t codes_ = 0, predictor_ = 0;  // of the lane's block
  uint32_t corner_ = 0;                 // the last sample of the row above in the turn before
};

}  // namespace l3
