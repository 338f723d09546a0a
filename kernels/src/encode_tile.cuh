// Encodes a tile as constant, fast or raw, by a warp, as TileEncoder of codec/ does on a processor: the results are
// equal. A lane has a column of a strip, and later two groups of a block.
#pragma once

#include "container/check.h"
#include "cuda_warp.cuh"
#include "encode.h"
#include "engine/fast_choices.h"

namespace l3 {

struct CudaEncodeWarp : CudaWarp {
  // Lane l has groups l and l + 32.
  struct GroupWidths {
    uint32_t of[2];
  };
  L3_INLINE static uint32_t greatest(const GroupWidths& widths) {
    return __reduce_max_sync(kAllLanes, max(widths.of[0], widths.of[1]));
  }
  L3_INLINE static uint32_t sum_raised(const GroupWidths& widths, uint32_t floor) {
    return sum_of_lanes(max(widths.of[0], floor) + max(widths.of[1], floor));
  }
};

// The shared memory of a warp.
struct alignas(16) TileEncodeRoom {
  uint16_t samples[kMaxChannels][1 + kBandRows][kLanes];  // the row above the strip, then the strip, transformed
  uint16_t left[kMaxChannels][1 + kBandRows];             // what is to the left of it, if anything is
  uint16_t residuals[kBandRows][kLanes];                  // of a channel
  uint32_t pending[ceil_div(3 + kMaxBlockBytes, 4) + 1];  // the end of the payload that is not written yet
};
static_assert(offsetof(TileEncodeRoom, residuals) % 8 == 0);

template <class Sample>
class WarpTileEncoder {
 public:
  using W = CudaEncodeWarp;

  L3_INLINE WarpTileEncoder(const SourceState& state, uint32_t tile, TileEncodeRoom& room, uint8_t* payload)
      : shape_(state.head.tile_shape(tile)),
        row_step_(state.row_step),
        pixel_step_(state.pixel_step),
        channel_step_(state.channel_step),
        first_(state.pixels + uint64_t{tile / state.head.tiles_across} * state.head.tile_height * row_step_ +
               uint64_t{tile % state.head.tiles_across} * state.head.tile_width * pixel_step_),
        room_(room),
        payload_(payload) {}

  // Returns false if a sample is above 2^bits - 1.
  L3_INLINE bool encode(IndexEntry& entry) {
    const Scan scan = scan_samples();
    entry = {};
    if (!scan.in_range) return false;
    if (scan.is_constant) {
      entry.head = static_cast<uint32_t>(Method::constant);
      entry.offset = sample(0, 0, 0) | (shape_.channels > 1 ? sample(0, 0, 1) << 16 : 0);
      entry.check = shape_.channels < 3 ? 0 : sample(0, 0, 2) | (shape_.channels > 3 ? sample(0, 0, 3) << 16 : 0);
      return true;
    }
    choose_transform();
    Method method = Method::fast;
    uint32_t bytes = encode_fast();
    if (bytes == 0) {
      method = Method::raw;
      transform_ = 0;
      bytes = encode_raw();
    }
    __syncwarp();
    entry.head = static_cast<uint32_t>(method) | transform_ << 8 | bytes / kUnit << 16;
    entry.check = check_of<W>(payload_, bytes / 4);
    return true;
  }

 private:
  struct Scan {
    bool in_range, is_constant;
  };

  L3_INLINE uint32_t mask() const { return (1u << shape_.bits) - 1; }
  L3_INLINE uint32_t sample(uint32_t x, uint32_t y, uint32_t c) const {
    const uint8_t* const from = first_ + y * row_step_ + x * pixel_step_ + c * channel_step_;
    return sizeof(Sample) == 1 ? load_global_u8(from) : load_global_u16(from);
  }
  L3_INLINE void load_pixel(uint32_t x, uint32_t y, CudaLanes* channels) const {
#pragma unroll
    for (uint32_t c = 0; c < kMaxChannels; ++c) channels[c].v = c < shape_.channels ? sample(x, y, c) : 0;
  }
  L3_INLINE void load_predicted(uint32_t x, uint32_t y, CudaLanes* channels) const {
    load_pixel(x, y, channels);
    from_image<W>(transform_, shape_.bits, {mask()}, channels);
  }
  // Columns outside the tile repeat the last pixel.
  L3_INLINE uint32_t column(uint32_t x) const { return smaller(x + lane_number(), shape_.width - 1); }

  L3_INLINE Scan scan_samples() const {
    const bool all_fit = shape_.bits == 8 * sizeof(Sample);
    CudaLanes first[kMaxChannels], here[kMaxChannels];
    load_pixel(0, 0, first);
    uint32_t seen = 0, differ = 0;
    for (uint32_t y = 0; y < shape_.height; ++y) {
      for (uint32_t x = 0; x < shape_.width; x += kLanes) {
        load_pixel(column(x), y, here);
#pragma unroll
        for (uint32_t c = 0; c < kMaxChannels; ++c) {
          seen |= here[c].v;
          differ |= here[c].v ^ first[c].v;
        }
      }
      if (all_fit && __any_sync(kAllLanes, differ != 0)) break;
    }
    return {__any_sync(kAllLanes, (seen & ~mask()) != 0) == 0, __any_sync(kAllLanes, differ != 0) == 0};
  }

  // Maps a residual to a number with as many bits as its code: 0, -1, 1, -2 ... to 0, 1, 2, 3 ...
  L3_INLINE uint32_t folded(uint32_t residual) const {
    const uint32_t rest = 32 - shape_.bits, top = residual << rest;
    return (top << 1 ^ static_cast<uint32_t>(static_cast<int32_t>(top) >> 31)) >> rest;
  }
  L3_INLINE static uint32_t length(uint32_t v) { return 32 - static_cast<uint32_t>(__clz(static_cast<int>(v))); }
  // Adds the width that each group needs, in all four lanes of it, for two residuals at once.
  L3_INLINE void add_widths(uint32_t a, uint32_t b, uint32_t& of_a, uint32_t& of_b) const {
    uint32_t any = folded(a) | folded(b) << 16;
    any |= __shfl_xor_sync(kAllLanes, any, 1);
    any |= __shfl_xor_sync(kAllLanes, any, 2);
    of_a += length(any & 0xFFFF);
    of_b += length(any >> 16);
  }

  // The first choice whose widths, over all lanes, have the least sum.
  template <uint32_t kChoices>
  L3_INLINE static uint32_t least_of(const uint32_t (&widths)[kChoices]) {
    uint32_t best = 0, minimum = ~0u;
#pragma unroll
    for (uint32_t i = 0; i < kChoices; ++i) {
      const uint32_t sum = sum_of_lanes(widths[i]);
      if (sum < minimum) {
        minimum = sum;
        best = i;
      }
    }
    return best;
  }

  // ---- the colour transform

  L3_INLINE void choose_transform() {
    if (shape_.channels < 3) return;
    uint32_t widths[kTransforms] = {};
    for (uint32_t x = 0; x < shape_.width; x += kLanes) {
      for (uint32_t y = smaller(kSampledRow, shape_.height - 1); y < shape_.height; y += kSampledStep) {
        CudaLanes row[kMaxChannels], above[kMaxChannels];
        load_pixel(column(x), y, row);
        load_pixel(column(x), y == 0 ? 0 : y - 1, above);
#pragma unroll
        for (uint32_t transform = 0; transform < kTransforms; ++transform) {
          widths[transform] += sampled_widths(transform, row, above);
        }
      }
    }
    transform_ = least_of(widths);
  }

  L3_INLINE uint32_t sampled_widths(uint32_t transform, const CudaLanes* row, const CudaLanes* above) const {
    CudaLanes own[3] = {row[0], row[1], row[2]}, n[3] = {above[0], above[1], above[2]};
    from_image<W>(transform, shape_.bits, {mask()}, own);
    from_image<W>(transform, shape_.bits, {mask()}, n);
    uint32_t residuals[3];
#pragma unroll
    for (uint32_t c = 0; c < 3; ++c) {
      // Lane 0 gets its own value from below, and lane 31 from above.
      const CudaLanes w{__shfl_up_sync(kAllLanes, own[c].v, 1)};
      const Above<CudaLanes> of{n[c], {__shfl_up_sync(kAllLanes, n[c].v, 1)}, W::shift_down(n[c])};
      residuals[c] = (own[c] - w - above_term<W>(kSampledPredictor, of)).v;
    }
    uint32_t widths = 0, nothing = 0;
    add_widths(residuals[0], residuals[1], widths, widths);
    add_widths(residuals[2], 0, widths, nothing);
    return widths;
  }

  // ---- the method fast

  // Returns the size of the payload, or 0 if it would not be smaller than a raw one.
  L3_INLINE uint32_t encode_fast() {
    for (uint32_t i = lane_number(); i < kPendingWords; i += kLanes) room_.pending[i] = 0;
    CudaLanes origin[kMaxChannels];
    load_predicted(0, 0, origin);
    __syncwarp();
#pragma unroll
    for (uint32_t c = 0; c < kMaxChannels; ++c) {
      if (lane_number() == c && c < shape_.channels) put_bits(16 * c, origin[c].v);
    }
    append(2 * shape_.channels);
    const uint32_t raw = shape_.raw_bytes();
    for (uint32_t y = 0; y < shape_.height; y += kBandRows) {
      const uint32_t rows = smaller(kBandRows, shape_.height - y);
      for (uint32_t x = 0; x < shape_.width; x += kLanes) {
        load_strip(x, y, rows, origin);
        for (uint32_t c = 0; c < shape_.channels; ++c) {
          const uint32_t bytes = encode_block(x, rows, c);
          if (at_ + bytes >= raw) return 0;
          append(bytes);
        }
      }
    }
    const uint32_t padded = static_cast<uint32_t>(pad_to_unit(at_));
    if (padded >= raw) return 0;
    for (uint32_t i = at_ / 4 + lane_number(); i < padded / 4; i += kLanes) {
      store_global(payload_ + 4 * i, i == at_ / 4 ? room_.pending[0] : 0);
    }
    return padded;
  }

  L3_INLINE void load_strip(uint32_t x, uint32_t y, uint32_t rows, const CudaLanes* origin) {
    const uint32_t lane = lane_number();
    CudaLanes here[kMaxChannels];
    __syncwarp();  // all lanes have read the previous strip
    for (uint32_t r = 0; r <= rows; ++r) {
      const bool has_row = y + r != 0;
      if (has_row) load_predicted(column(x), y + r - 1, here);
#pragma unroll
      for (uint32_t c = 0; c < kMaxChannels; ++c) {
        room_.samples[c][r][lane] = static_cast<uint16_t>(has_row ? here[c].v : origin[c].v);
      }
    }
    if (x != 0 && lane <= rows) {
      const bool has_row = y + lane != 0;
      if (has_row) load_predicted(x - 1, y + lane - 1, here);
#pragma unroll
      for (uint32_t c = 0; c < kMaxChannels; ++c) {
        room_.left[c][lane] = static_cast<uint16_t>(has_row ? here[c].v : origin[c].v);
      }
    }
    __syncwarp();
  }

  // What the predictors look at.
  struct Neighbours {
    Above<CudaLanes> above;
    CudaLanes w, own;
  };
  L3_INLINE Neighbours neighbours_in(uint32_t x, uint32_t c, uint32_t r) const {
    const uint32_t lane = lane_number();
    const uint32_t n = room_.samples[c][r][lane], own = room_.samples[c][r + 1][lane];
    uint32_t nw = __shfl_up_sync(kAllLanes, n, 1), w = __shfl_up_sync(kAllLanes, own, 1);
    if (lane == 0) {
      nw = x == 0 ? n : room_.left[c][r];
      w = x == 0 ? n : room_.left[c][r + 1];
    }
    // Lane 31 gets its own N, and columns outside the tile repeat the last one: NE of a strip's last column is N.
    return {{{n}, {nw}, {__shfl_down_sync(kAllLanes, n, 1)}}, {w}, {own}};
  }
  L3_INLINE static uint32_t residual(const Neighbours& of, uint32_t predictor) {
    const CudaLanes without = of.own - above_term<W>(predictor, of.above);
    return (runs_along_row(predictor) ? without - of.w : without).v;
  }

  // The predictor that needs the fewest bits.
  L3_INLINE uint32_t choose_predictor(uint32_t x, uint32_t rows, uint32_t c) const {
    const uint32_t present = x + lane_number() < shape_.width ? ~0u : 0u;
    uint32_t widths[kPredictors] = {}, nothing = 0;
    for (uint32_t r = 0; r < rows; ++r) {
      const Neighbours of = neighbours_in(x, c, r);
#pragma unroll
      for (uint32_t p = 0; p < kPredictors; p += 2) {
        const uint32_t other = p + 1 < kPredictors ? residual(of, p + 1) & present : 0;
        add_widths(residual(of, p) & present, other, widths[p], p + 1 < kPredictors ? widths[p + 1] : nothing);
      }
    }
    return least_of(widths);
  }

  // Puts the block of a channel behind the payload, and returns its size.
  L3_INLINE uint32_t encode_block(uint32_t x, uint32_t rows, uint32_t c) {
    const uint32_t lane = lane_number();
    const uint32_t predictor = choose_predictor(x, rows, c);
    for (uint32_t r = 0; r < kBandRows; ++r) {
      const uint32_t here = r < rows ? residual(neighbours_in(x, c, r), predictor) : 0;
      room_.residuals[r][lane] = static_cast<uint16_t>(x + lane < shape_.width ? here : 0);
    }
    __syncwarp();
    const uint32_t groups = smaller(kRowGroups, ceil_div(shape_.width - x, kGroupSamples));
    uint2 four[2];  // the residuals of the lane's groups
    typename W::GroupWidths widths;
#pragma unroll
    for (uint32_t i = 0; i < 2; ++i) {
      four[i] = *reinterpret_cast<const uint2*>(&room_.residuals[4 * i + lane / kRowGroups][4 * (lane % kRowGroups)]);
      widths.of[i] = length(folded(four[i].x) | folded(four[i].x >> 16) | folded(four[i].y) | folded(four[i].y >> 16));
    }
    const WidthPlan plan = plan_widths<W>(widths, kRowGroups * kBandRows - rows * groups);
    uint32_t fields[2];
#pragma unroll
    for (uint32_t i = 0; i < 2; ++i) {
      const bool present = 4 * i + lane / kRowGroups < rows && lane % kRowGroups < groups;
      fields[i] = present ? max(widths.of[i], plan.base) - plan.base : 0;
      widths.of[i] = present ? fields[i] + plan.base : 0;
    }
    const uint32_t sums = running_sum(widths.of[0] | widths.of[1] << 16);
    const uint32_t totals = __shfl_sync(kAllLanes, sums, kLanes - 1);
    const uint32_t starts[2] = {(sums & 0xFFFF) - widths.of[0], (totals & 0xFFFF) + (sums >> 16) - widths.of[1]};
    const uint32_t codes_at = 2 + 8 * plan.width_bits;

    const uint32_t from = 8 * (at_ % 4);
    if (lane == 0) put_bits(from, predictor | plan.base << 3 | plan.width_bits << 8);
#pragma unroll
    for (uint32_t i = 0; i < 2; ++i) {
      put_bits(from + 16 + (lane + kLanes * i) * plan.width_bits, fields[i]);
      put_codes(from + 8 * codes_at + 4 * starts[i], four[i], widths.of[i], shape_.width - x - 4 * (lane % kRowGroups));
    }
    return codes_at + ((totals & 0xFFFF) + (totals >> 16) + 1) / 2;
  }

  // Codes of samples outside the tile are 0; `count` says how many are inside, if that is less than 4.
  L3_INLINE void put_codes(uint32_t bit, uint2 four, uint32_t width, uint32_t count) {
    const uint32_t range = 1u << width, half = range >> 1;
    uint32_t codes[kGroupSamples];
#pragma unroll
    for (uint32_t i = 0; i < kGroupSamples; ++i) {
      const uint32_t here = (i < 2 ? four.x : four.y) >> (i % 2 * 16);
      codes[i] = i < count ? (here + half) & (range - 1) : 0;
    }
    const uint32_t low = codes[0] | codes[1] << width, high = codes[2] | codes[3] << width;
    if constexpr (sizeof(Sample) == 1) {
      put_bits(bit, low | high << 2 * width);
    } else {
      put_bits(bit, low);
      put_bits(bit + 2 * width, high);
    }
  }

  // ---- the end of the payload

  static constexpr uint32_t kPendingWords = sizeof(TileEncodeRoom::pending) / 4;

  // Sets bits that are still zero, from a bit of `pending` on.
  L3_INLINE void put_bits(uint32_t bit, uint32_t value) {
    if (value == 0) return;
    const uint32_t word = bit / 32, shift = bit % 32;
    atomicOr(&room_.pending[word], value << shift);
    if (shift != 0 && value >> (32 - shift) != 0) atomicOr(&room_.pending[word + 1], value >> (32 - shift));
  }
  // Moves the payload's end, and writes the words that are now complete.
  L3_INLINE void append(uint32_t bytes) {
    const uint32_t words = (at_ % 4 + bytes) / 4;
    __syncwarp();
    for (uint32_t i = lane_number(); i < words; i += kLanes) {
      store_global(payload_ + (at_ & ~3u) + 4 * i, room_.pending[i]);
    }
    const uint32_t last = room_.pending[words];
    __syncwarp();
    for (uint32_t i = lane_number(); i <= words; i += kLanes) room_.pending[i] = i == 0 ? last : 0;
    at_ += bytes;
    __syncwarp();
  }

  // ---- the method raw

  L3_INLINE uint32_t encode_raw() {
    const uint32_t bytes = shape_.raw_bytes(), samples = shape_.width * shape_.height * shape_.channels;
    for (uint32_t i = lane_number(); i < bytes / 4; i += kLanes) {
      uint32_t word = 0;
      for (uint32_t number = 32 * i / shape_.bits; number < samples && number * shape_.bits < 32 * (i + 1); ++number) {
        const uint32_t pixel = number / shape_.channels;
        const uint32_t value = sample(pixel % shape_.width, pixel / shape_.width, number % shape_.channels);
        const int32_t shift = static_cast<int32_t>(number * shape_.bits - 32 * i);
        word |= shift < 0 ? value >> -shift : value << shift;
      }
      store_global(payload_ + 4 * i, word);
    }
    return bytes;
  }

  const TileShape shape_;
  const uint64_t row_step_, pixel_step_, channel_step_;
  const uint8_t* const first_;
  TileEncodeRoom& room_;
  uint8_t* const payload_;
  uint32_t transform_ = 0;
  uint32_t at_ = 0;  // the size of the payload so far
};

}  // namespace l3
