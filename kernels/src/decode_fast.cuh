// Decodes fast tiles of samples up to 8 bits (sections 6.3 and 7 of the spec), each by a warp. This does not use the
// engine of codec/, which has a lane per column: 32 lanes for a row of one channel. Here eight lanes share a row of a
// block, with four samples each, and four blocks that follow each other are decoded in a turn, whatever their channels
// and strips are. The results must equal the engine's, including the place of the first fault.
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

// Tables, which all warps of a thread block share.
struct FastTables {
  // A prediction is avg(n, avg(a, b)) or 0, minus NW or 0, plus W or 0. a is N, NE or NW, b is N or NW.
  static constexpr uint32_t kW = 1u << kPredictW, kN = 1u << kPredictN, kGradient = 1u << kPredictGradient,
                            kSmooth = 1u << kPredictSmooth, kThreeQuarters = 1u << kPredictThreeQuarters,
                            kTurn = 1u << kPredictTurn;

  // By predictor: whether a is NE (as a mask), the factors of the average, of NW and of W; the last one times 2^16, and
  // the order of bytes that makes a carry.
  uint4 factors[kPredictors];
  uint2 more_factors[kPredictors];
  uint2 of_widths[9];  // by width: the bits of a code, in both halves, and what is added to a code
  uint32_t bits_of_fields[(kMaxWidthBits + 2) * 4];  // by D and bit: this bit of each of eight fields

  // Called by 32 threads, whose number is i.
  L3_INLINE void fill(uint32_t i) {
    if (i < kPredictors) {
      const auto bit_if = [i](uint32_t predictors) { return predictors >> i & 1; };
      const uint32_t plus_w = bit_if(~(kN | kSmooth));
      factors[i] = make_uint4(0u - bit_if(kSmooth | kTurn), bit_if(~kW), 0u - bit_if(~(kW | kN | kSmooth)), plus_w);
      more_factors[i] = uint2{plus_w << 16, plus_w != 0 ? 0x3232u : 0x4444u};
    }
    if (i <= 8) {
      const uint32_t ones = lowest_bits(i);
      // Half the range of a code is subtracted. 0x200 keeps numbers above 0; samples count modulo 256 at most.
      of_widths[i] = uint2{ones * 0x00010001u, 0x02000200u - (ones - (ones >> 1)) * 0x00010001u};
    }
    const uint32_t width_bits = i / 4, bit = i % 4;
    if (width_bits <= kMaxWidthBits + 1) {
      const bool has_bit = bit < width_bits && width_bits <= kMaxWidthBits;
      bits_of_fields[i] = has_bit ? lowest_of_fields(width_bits) << bit : 0;
    }
  }

 private:
  // The lowest bit of each of eight fields.
  L3_INLINE static uint32_t lowest_of_fields(uint32_t width_bits) {
    return width_bits == 1 ? 0xFFu : width_bits == 2 ? 0x5555u : width_bits == 3 ? 0x249249u : 0x11111111u;
  }
};
// They are where the shared memory begins.
L3_INLINE FastTables& fast_tables() {
  extern __shared__ uint4 shared[];
  return *reinterpret_cast<FastTables*>(shared);
}

// The shared memory of a warp in addition to the row above.
template <uint32_t kChannels>
struct FastScratch {
  // Blocks have spots in turn. With three channels, up to two blocks of a turn belong to a strip that ends in the next
  // turn, and must stay.
  static constexpr uint32_t kSpots = kChannels == 3 ? 6 : 4;
  static constexpr uint32_t kRowWords = kSpots * kBlockLanes + 4;  // lanes that read groups use different banks
  // Here they take no registers.
  FourPixels<kChannels> out;
  uint32_t transform, height, bits;
  uint32_t whole_blocks;  // of a band: those before its partial strip
  // Four samples to a word, by row, spot and group. Before a row of a block is decoded, its groups are there, in halves
  // of words: the width in the upper four bits, below it where the codes begin, counted from the block's codes in units
  // of four bits. They leave the last word, for its sample is read until the row is decoded.
  alignas(16) uint32_t samples[kBandRows * kRowWords];
};

template <uint32_t kChannels>
class FourWideDecoder {
 public:
  // `line` has eight words for each channel of each strip.
  L3_INLINE FourWideDecoder(const TileShape& shape, const TileEntry& entry, const TilePlace& place,
                            FastScratch<kChannels>& scratch, uint32_t* line)
      : width_(shape.width),
        payload_(entry.payload),
        payload_bytes_(entry.payload_bytes),
        scratch_(scratch),
        line_(line),
        blocks_(ceil_div(shape.width, kLanes) * kChannels),
        group_(lane_number() % kBlockLanes),
        first_lane_(lane_number() & ~(kBlockLanes - 1)),
        left_lane_((lane_number() - kChannels * kBlockLanes) % kLanes | (kBlockLanes - 1)),
        mask_(((1u << shape.bits) - 1) * 0x01010101u) {
    // All lanes write the same.
    scratch_.transform = entry.parameters;
    scratch_.height = shape.height;
    scratch_.bits = shape.bits;
    scratch_.whole_blocks = shape.width / kLanes * kChannels;
    scratch_.out = FourPixels<kChannels>(place);
  }

  L3_INLINE Fault decode() {
    Fault fault = read_origins();
    for (uint32_t y = 0; y < scratch_.height && fault.reason == Reason::none; y += kBandRows) {
      const uint32_t rows = smaller(kBandRows, scratch_.height - y);
      uint32_t x = 0, written = 0;
      for (uint32_t first = 0; first < blocks_; first += kAtOnce) {
        const uint32_t spot = spot_of(first);
        fault = read_blocks(first, rows, spot);
        if (fault.reason != Reason::none) break;
        reconstruct(first, spot);
        const uint32_t end = smaller(first + kAtOnce, blocks_);
        for (; written + kChannels <= end; written += kStrips * kChannels, x += kStrips * kLanes) write(x, y, rows);
      }
    }
    return fault.reason != Reason::none ? fault : check_end();
  }

 private:
  static constexpr uint32_t kAtOnce = 4;                         // blocks that are decoded in a turn
  static constexpr uint32_t kStrips = kAtOnce / kChannels;       // written at once
  static constexpr uint32_t kChain = (kAtOnce - 1) / kChannels;  // blocks of a turn to the left of another one
  static constexpr uint32_t kSpots = FastScratch<kChannels>::kSpots, kRowWords = FastScratch<kChannels>::kRowWords;
  static constexpr uint32_t kRowStep = 4 / kStrips;  // from a row of a lane to the next one, when rows are written

  // Returns 32 bits of the payload from any bit on, which lies in this word. Bits after its end are undefined.
  // `last_pair` is the number of the word before the last one.
  L3_INLINE uint32_t window(uint32_t bit, uint32_t word, uint32_t last_pair) const {
    word = smaller(word, last_pair);
    const uint8_t* const from = payload_ + 4 * word;
    return shift_right_of_two(load_global_word(from), load_global_word(from + 4), bit - 32 * word);
  }

  L3_INLINE Fault read_origins() {
    const uint32_t words = blocks_ / kChannels * kBlockLanes;
    for (uint32_t c = 0; c < kChannels; ++c) {
      const uint32_t origin = load_u16(payload_ + 2 * c);
      if (origin >> scratch_.bits != 0) return {Reason::origin_range, 2 * c};
      for (uint32_t i = lane_number(); i < words; i += kLanes) {
        line_[(i / kBlockLanes * kChannels + c) * kBlockLanes + group_] = origin * 0x01010101u;
      }
    }
    __syncwarp();
    at_ = 2 * kChannels;  // payloads have at least 16 bytes
    return {};
  }

  // The groups of a row of a block, or 0 if there is no such block.
  L3_INLINE uint32_t groups_of(uint32_t block) const {
    if (block >= blocks_) return 0;
    return block + kChannels >= blocks_ ? ceil_div((width_ - 1) % kLanes + 1, kGroupSamples) : kRowGroups;
  }

  // Reads the headers and widths of a turn's blocks.
  L3_INLINE Fault read_blocks(uint32_t first, uint32_t rows, uint32_t spot) {
    return first + kAtOnce <= scratch_.whole_blocks ? read_blocks_of<true>(first, rows, spot)
                                                    : read_blocks_of<false>(first, rows, spot);
  }
  // The size of a block gives the place of the next one. A lane reads the widths of a row, and keeps those of its own
  // block. Faults are looked for when all blocks are read; what comes after a fault is harmless. With `kWhole` there
  // are four blocks of eight groups in a row.
  template <bool kWhole>
  L3_INLINE Fault read_blocks_of(uint32_t first, uint32_t rows, uint32_t spot) {
    const uint32_t row = group_, bit = lane_number() / kBlockLanes;
    const uint32_t bits_of_fields = shared_address(&fast_tables().bits_of_fields[bit]);
    const uint32_t last_pair = payload_bytes_ / 4 - 2;
    const uint32_t value_of_bit = kept(1u << bit);
    Block own{0, 0, 0, 0};
    uint32_t groups_of_row = kWhole ? kRowGroups : groups_of(first), groups = kept(row < rows ? groups_of_row : 0);
#pragma unroll
    for (uint32_t b = 0; b < kAtOnce; ++b) {
      if (!kWhole && b > 0 && (b % kChannels == 0 || kAtOnce % kChannels != 0)) {
        if (first + b >= blocks_) break;
        groups_of_row = groups_of(first + b);
        groups = row < rows ? groups_of_row : 0;
      }
      const uint8_t* const header = payload_ + smaller(at_, payload_bytes_ - 2);
      Block block{0, load_global_u8(header), smaller(load_global_u8(header + 1), kMaxWidthBits + 1), 0};
      const uint32_t width_bits = block.width_bits;
      const uint32_t fields_at = at_ + 2 + row * width_bits;
      block.fields = window(8 * fields_at, fields_at / 4, last_pair) & lowest_bits(groups * width_bits);
      // Each lane adds a bit of the row's fields.
      const uint32_t ones = __popc(block.fields & load_shared_word_here(bits_of_fields + 16 * width_bits));
      const uint32_t total = sum_of_lanes(ones * value_of_bit) + (block.first >> 3) * (groups_of_row * rows);
      block.codes_at = at_ + 2 + 8 * width_bits;
      at_ = block.codes_at + (total + 1) / 2;
      if (lane_number() >= b * kBlockLanes) own = block;
    }
    const uint32_t of_own = kWhole ? kRowGroups : groups_of(first + lane_number() / kBlockLanes);
    return keep_widths(own, row < rows ? of_own : 0, spot);
  }

  struct Block {
    uint32_t codes_at;           // where its codes begin
    uint32_t first, width_bits;  // the header's first and second byte
    uint32_t fields;             // of the lane's row
  };

  // The inclusive running sum over a block's lanes.
  L3_INLINE static uint32_t sum_of_eight(uint32_t v) {
    return add_from_below<4>(add_from_below<2>(add_from_below<1>(v)));
  }

  // Stores the groups of the lane's row in shared memory. Returns the first fault of the blocks.
  L3_INLINE Fault keep_widths(const Block& block, uint32_t groups, uint32_t spot) {
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
    codes_ = 8 * block.codes_at;

    const uint32_t too_wide = (127 - scratch_.bits) * 0x01010101u;
    const bool fits = (((low + too_wide) | (high + too_wide)) & 0x80808080) == 0;
    const bool is_header = width_bits <= kMaxWidthBits && predictor_ < kPredictors && base <= scratch_.bits;
    if (!__all_sync(kAllLanes, fits && is_header) || at_ > payload_bytes_) {
      const uint32_t total = __shfl_sync(kAllLanes, so_far, first_lane_ + kBlockLanes - 1);
      return first_fault(block.codes_at - 2 - 8 * width_bits, block.codes_at, block.codes_at + (total + 1) / 2,
                         is_header, fits);
    }

    const uint32_t begin = (so_far - of_row) * 0x00010001u;
    const uint32_t starts = sums - low, starts_above = sums_above - high;
    const uint32_t widths = low << 4, widths_above = high << 4;
    reinterpret_cast<uint4*>(scratch_.samples)[(group_ * kRowWords + spot * kBlockLanes) / 4] =
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

  // The spot of the lane's block.
  L3_INLINE static uint32_t spot_of(uint32_t first) {
    return kSpots == kAtOnce ? lane_number() / kBlockLanes : (first + lane_number() / kBlockLanes) % kSpots;
  }

  // Converts codes to samples, row by row, four samples per word. The block to the left is kChannels blocks before: in
  // this turn, or in the one before.
  L3_INLINE void reconstruct(uint32_t first, uint32_t spot) {
    const uint32_t block = first + lane_number() / kBlockLanes;
    const bool has_block = block < blocks_;
    uint32_t* const line = line_ + kBlockLanes * first + lane_number();
    uint32_t n = has_block ? *line : 0;

    // Where bytes of neighbours are: in n, or in the word of the lane to the left or right. If the block to the left is
    // of the turn before, the first lane has the sample to its left in the lowest byte of that word. In the tile's
    // first column NW and W are N.
    const bool is_first = group_ == 0, at_edge = block < kChannels;
    const bool left_in_turn = lane_number() / kBlockLanes >= kChannels;
    const uint32_t order_of_nw = !is_first || left_in_turn ? 0x2107 : at_edge ? 0x2100 : 0x2104;
    const uint32_t lane_to_left = !is_first ? lane_number() - 1 : left_in_turn ? left_lane_ : kLanes - 1;
    // The value to the right of the last column is the sample above the last column.
    const uint32_t last = block + kChannels >= blocks_ ? (width_ - 1) % kLanes : kLanes - 1;
    const uint32_t to_edge = last - kGroupSamples * group_;
    const uint32_t order_of_ne = 0x4321 - (1u << 4 * smaller(to_edge, kGroupSamples));
    const uint4 factors = load_shared_four_here(shared_address(&fast_tables().factors[predictor_]));
    const uint32_t ne_in_a = factors.x, with_average = factors.y, minus_nw = factors.z, plus_w = factors.w;
    const uint2 more = load_shared_two_here(shared_address(&fast_tables().more_factors[predictor_]));
    const uint32_t plus_w_above = more.x, order_of_carry = more.y;
    using Of = FastTables;
    const auto is_one_of = [this](uint32_t predictors) { return (predictors >> predictor_ & 1) != 0; };
    const uint32_t order_of_a = kept(is_one_of(Of::kN | Of::kGradient | Of::kThreeQuarters) ? 0x3210
                                     : is_one_of(Of::kSmooth | Of::kTurn)                   ? order_of_ne
                                                                                            : order_of_nw);
    const uint32_t order_of_b = kept(is_one_of(Of::kN | Of::kGradient) ? 0x3210 : order_of_nw);
    const uint32_t with_w = kept(is_first && !left_in_turn ? 0x10000 : 0);
    const uint32_t order_of_left = kept(left_in_turn && plus_w != 0 ? 0x4242 : 0x4444);
    const uint32_t nw_order = kept(order_of_nw), last_pair = payload_bytes_ / 4 - 2;
    const uint32_t widths = shared_address(fast_tables().of_widths);
    uint32_t w_before = corner_;  // of a block of the turn before
    corner_ = __shfl_sync(kAllLanes, n, left_lane_) >> 24;
    constexpr uint32_t kSpotBytes = 4 * kBlockLanes, kRowBytes = 4 * kRowWords;
    const uint32_t spots = shared_address(scratch_.samples);
    const uint32_t groups = spots + kSpotBytes * spot + 2 * group_, samples = spots + kSpotBytes * spot + 4 * group_;
    // Where W is, in the tile's first column the first byte of the row above.
    const uint32_t left_spot = spot < kChannels ? spot + kSpots - kChannels : spot - kChannels;
    const uint32_t left = at_edge ? samples - kRowBytes : spots + kSpotBytes * left_spot + kSpotBytes - 1;
#pragma unroll
    for (uint32_t row = 0; row < kBandRows; ++row) {
      const uint32_t group = load_shared_half_here(groups + kRowBytes * row);
      uint32_t w = n & 0xFF;
      if (row > 0 || !at_edge) w = load_shared_u8_here<0>(left + kRowBytes * row);
      const uint32_t width = group >> 12;
      const uint2 of_width = load_shared_two_here(widths + 8 * width);
      const uint32_t code_at = codes_ + 4 * group - (width << 14);
      const FourFields codes = FourFields::of(window(code_at, code_at / 32, last_pair), width, of_width.x);
      const uint32_t below = value_of_lane_or(n, lane_to_left, w_before);
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
      even += carry;
      odd += carry;
      // What the blocks to the left in this turn add to W: the last sample of the nearest one, which gets the same from
      // the one to its left.
      if constexpr (kChain > 0) {
        uint32_t of_left = __shfl_sync(kAllLanes, odd, left_lane_);
        uint32_t sum = of_left;
#pragma unroll
        for (uint32_t i = 1; i < kChain; ++i) {
          of_left = __shfl_sync(kAllLanes, bytes_of(of_left, 0, order_of_left), left_lane_);
          sum += of_left;
        }
        const uint32_t carry_of_left = bytes_of(sum, 0, order_of_left);
        even += carry_of_left;
        odd += carry_of_left;
      }
      n = __byte_perm(even, odd, 0x6240) & mask_;
      w_before = w;
      __syncwarp();  // other lanes have read what was here
      store_shared_word(samples + kRowBytes * row, n);
    }
    if (has_block) *line = n;
    __syncwarp();
  }

  // Reads what a lane has of rows from `row` on: four pixels of each row, or of each fourth row. `spot` is that of the
  // first channel.
  template <uint32_t kCount>
  L3_INLINE void read_pixels(uint32_t spot, uint32_t row, uint32_t (&fours)[kCount][kChannels]) const {
#pragma unroll
    for (uint32_t i = 0; i < kCount; ++i) {
#pragma unroll
      for (uint32_t c = 0; c < kChannels; ++c) {
        fours[i][c] = scratch_.samples[(row + i * kRowStep) * kRowWords + (spot + c) * kBlockLanes + group_];
      }
    }
    if constexpr (kChannels >= 3) fours_to_image(scratch_.transform, mask_, fours);
  }

  // Writes the rows to the output.
  L3_INLINE void write(uint32_t x, uint32_t y, uint32_t rows) const {
    const uint32_t index = lane_number() / kBlockLanes, strip = index % kStrips, row = index / kStrips;
    const uint32_t column = x + strip * kLanes + kGroupSamples * group_;
    const uint32_t spot = (kStrips == 1 ? x / kLanes : strip) * kChannels % kSpots;
    if (scratch_.out.takes_words(x, y, kStrips * kLanes, kBandRows)) {
      uint32_t fours[kBandRows / kRowStep][kChannels];
      read_pixels(spot, row, fours);
      scratch_.out.put_words_of_rows(column, y + row, kRowStep, fours);
    } else {
#pragma unroll 1
      for (uint32_t r = row; r < rows; r += kRowStep) {
        uint32_t four[1][kChannels];
        read_pixels(spot, r, four);
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

  const uint32_t width_;
  const uint8_t* payload_;
  const uint32_t payload_bytes_;
  FastScratch<kChannels>& scratch_;
  uint32_t* line_;
  const uint32_t blocks_;  // of a band
  const uint32_t group_, first_lane_;
  const uint32_t left_lane_;  // the last one of the block to the left, which may be of the turn before
  const uint32_t mask_;
  uint32_t at_ = 0;                     // position in the payload
  uint32_t codes_ = 0, predictor_ = 0;  // of the lane's block
  uint32_t corner_ = 0;                 // the last sample of the row above in the block to the left
};

}  // namespace l3
