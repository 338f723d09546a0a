// Resizes, pads, turns and recolours decoded regions: what l3_cuda_change asks for. loader/src/resample.cpp does the
// same on a processor, with the same operations in the same order, so all values are equal.
//
// The first kernel computes the taps of both axes. In the second one a warp makes 32 samples of a row at a time, a lane
// each. It combines rows of pixels into shared memory, piece by piece, and each lane combines its columns of that.
#include "changes.h"
#include "cuda_warp.cuh"
#include "launch.h"
#include "output.cuh"
#include "stages.h"

namespace l3 {

constexpr uint32_t kChangeWarps = 8, kChangeBlocks = 16;  // for each image
constexpr uint32_t kPiece = 128;                          // columns in shared memory
constexpr uint32_t kSharedBytes = kChangeWarps * kPiece * kMaxChannels * 4;

L3_INLINE bool is_changed(const ImageState& state) { return state.change != nullptr && state.before_model.ok(); }

L3_INLINE void fill_table(uint8_t* scratch, const TapTable& table, const base::ResizeAxis& axis, bool is_fine,
                          uint32_t most_precision) {
  uint32_t* const firsts = reinterpret_cast<uint32_t*>(scratch + table.first);
  uint32_t* const counts = reinterpret_cast<uint32_t*>(scratch + table.count);
  uint32_t* const weights = reinterpret_cast<uint32_t*>(scratch + table.weights);
  const uint32_t precision = base::precision_of(axis, most_precision);
  for (uint32_t i = threadIdx.x; i < axis.total; i += kChangeWarps * kLanes) {
    const int64_t at = base::content_at(axis, i);
    firsts[i] = kNone;
    counts[i] = 0;
    if (at < 0) continue;
    const uint32_t number = axis.window + static_cast<uint32_t>(at);
    const base::Taps taps = base::taps_of(axis, number);
    firsts[i] = base::first_stored(axis, taps);
    counts[i] = taps.count;
    uint32_t* const own = weights + uint64_t{i} * table.sample;
    const auto put = [&](uint32_t tap, uint32_t weight) { own[tap * table.tap] = weight; };
    if (axis.filter <= base::kNearestExact) {
      put(0, is_fine ? __float_as_uint(1.0f) : 1u << 14);
    } else if (is_fine) {
      base::put_fine_weights(axis, number, taps, [&](uint32_t tap, float w) { put(tap, __float_as_uint(w)); });
    } else {
      base::put_weights(axis, number, taps, precision,
                        [&](uint32_t tap, int32_t w) { put(tap, static_cast<uint32_t>(w)); });
    }
  }
}

__global__ void __launch_bounds__(kChangeWarps* kLanes) taps_kernel(const __grid_constant__ Batch batch) {
  const uint32_t i = blockIdx.x;
  const ImageState& state = batch.states[i];
  if (!is_changed(state)) return;
  const l3_cuda_change& change = *state.change;
  const ChangeLayout layout = lay_out(change, state.out.channels);
  uint8_t* const scratch = static_cast<uint8_t*>(change.scratch);
  const bool is_fine = change.bits > 8;
  fill_table(scratch, layout.rows, axis_of(change.rows), is_fine, base::kMostRowPrecision);
  fill_table(scratch, layout.columns, axis_of(change.columns), is_fine,
             base::most_column_precision(axis_of(change.columns)));
}

// The samples of a pixel, and sums of them. All loops over them are unrolled, so that they stay in registers.
struct Samples {
  uint32_t of[kMaxChannels] = {};
  template <class Function>
  L3_INLINE static void each(uint32_t count, const Function& function) {
#pragma unroll
    for (uint32_t c = 0; c < kMaxChannels; ++c) {
      if (c < count) function(c);
    }
  }
};

// One image for a warp. kUsed: how many channels are used if that is known when this is compiled. Then samples have at
// most 8 bits, nothing is blended, and nothing is limited between the passes. 0: anything.
template <uint32_t kUsed>
struct Changer {
  const Output& result;
  const l3_cuda_change& change;
  const uint8_t* scratch;
  ChangeLayout layout;
  uint32_t pixel_bytes;  // of the region
  uint64_t row_bytes;
  // Bits of the sums of each pass. The first one's keep a fraction, unless samples are limited between the passes.
  uint32_t row_shift, column_shift, fraction;
  bool column_picks;

  L3_INLINE uint32_t used() const { return kUsed != 0 ? kUsed : change.used; }
  L3_INLINE bool is_wide() const { return kUsed == 0 && change.bits > 8; }
  L3_INLINE bool blends() const { return kUsed == 0 && change.blends != 0; }
  L3_INLINE uint32_t between() const { return kUsed == 0 ? change.limit_between : uint32_t{base::kKeepBetween}; }

  L3_INLINE uint32_t word(uint64_t part, uint64_t at) const { return load_global_word(scratch + part + 4 * at); }
  L3_INLINE uint32_t sample(const uint8_t* pixel, uint32_t channel) const {
    return is_wide() ? load_global_u16(pixel + 2 * channel) : load_global_u8(pixel + channel);
  }
  L3_INLINE const uint8_t* pixel_at(uint32_t row, uint32_t column) const {
    return scratch + row * row_bytes + static_cast<uint64_t>(column) * pixel_bytes;
  }

  // A pixel of the region, blended with the background if that is wanted.
  L3_INLINE Samples load(const uint8_t* from) const {
    Samples pixel;
    Samples::each(used(), [&](uint32_t c) { pixel.of[c] = sample(from, c); });
    if (!blends()) return pixel;
    const uint32_t most = (1u << change.bits) - 1;
    const uint32_t alpha = sample(from, (is_wide() ? pixel_bytes / 2 : pixel_bytes) - 1);
    Samples::each(used(), [&](uint32_t c) {
      pixel.of[c] = base::blended(pixel.of[c], __float2uint_rn(change.background[c]), alpha, most, change.blends == 2);
    });
    return pixel;
  }

  L3_INLINE const uint8_t* weights_of(const TapTable& table, uint32_t number) const {
    return scratch + table.weights + uint64_t{4} * number * table.sample;
  }

  // Combines the rows of one column: integers, or the bits of floats for wide samples.
  L3_INLINE Samples combine(uint32_t row, uint32_t first, uint32_t taps, uint32_t column) const {
    const uint8_t* at = pixel_at(first, column);
    const uint8_t* weight = weights_of(layout.rows, row);
    Samples sums;
    if (is_wide()) {
      for (uint32_t tap = 0; tap < taps; ++tap, at += row_bytes, weight += 4) {
        const Samples pixel = load(at);
        const float by = __uint_as_float(load_global_word(weight));
        Samples::each(used(), [&](uint32_t c) {
          const float sum = __fmaf_rn(static_cast<float>(pixel.of[c]), by, __uint_as_float(sums.of[c]));
          sums.of[c] = __float_as_uint(sum);
        });
      }
      return sums;
    }
    Samples::each(used(), [&](uint32_t c) { sums.of[c] = 1u << (row_shift - 1); });
    for (uint32_t tap = 0; tap < taps; ++tap, at += row_bytes, weight += 4) {
      const Samples pixel = load(at);
      const uint32_t by = load_global_word(weight);
      Samples::each(used(), [&](uint32_t c) { sums.of[c] += by * pixel.of[c]; });
    }
    const int32_t most = (1 << change.bits) - 1;
    Samples::each(used(), [&](uint32_t c) {
      int32_t sum = static_cast<int32_t>(sums.of[c]) >> row_shift;
      if (between() == base::kLimitAfterRows) sum = sum < 0 ? 0 : sum > most ? most : sum;
      sums.of[c] = static_cast<uint32_t>(sum);
    });
    return sums;
  }

  // Combines the columns of each row, rounds and limits that, and combines these.
  L3_INLINE void combine_limited(uint32_t row, uint32_t row_first, uint32_t row_taps, uint32_t column, uint32_t first,
                                 uint32_t taps, float (&samples)[kMaxChannels]) const {
    Samples sums;
    Samples::each(used(), [&](uint32_t c) { sums.of[c] = 1u << (row_shift - 1); });
    for (uint32_t y = 0; y < row_taps; ++y) {
      Samples across;
      const uint8_t* at = pixel_at(row_first + y, first);
      const uint8_t* weight = weights_of(layout.columns, column);
      for (uint32_t tap = 0; tap < taps; ++tap, at += pixel_bytes, weight += 4 * layout.columns.tap) {
        const Samples pixel = load(at);
        const uint32_t by = load_global_word(weight);
        Samples::each(used(), [&](uint32_t c) { across.of[c] += by * pixel.of[c]; });
      }
      const uint32_t by = load_global_word(weights_of(layout.rows, row) + 4 * y);
      Samples::each(used(), [&](uint32_t c) {
        const int32_t sum = static_cast<int32_t>(across.of[c]);
        sums.of[c] += by * static_cast<uint32_t>(base::limited_sample(sum, column_shift, most_sample()));
      });
    }
    Samples::each(used(),
                  [&](uint32_t c) { samples[c] = __int2float_rn(static_cast<int32_t>(sums.of[c]) >> row_shift); });
  }
  L3_INLINE int32_t most_sample() const { return (1 << change.bits) - 1; }
  // 2^-n.
  L3_INLINE static float power_of_two(uint32_t n) { return __uint_as_float((127 - n) << 23); }

  // The samples of result `column` of `row`, for each used channel; all lanes take part. Returns whether it is content.
  L3_INLINE bool make(uint32_t row, uint32_t column, uint32_t* shared, float (&samples)[kMaxChannels]) const {
    const uint32_t row_first = word(layout.rows.first, row), row_taps = word(layout.rows.count, row);
    if (row_first == kNone) return false;  // the same for all lanes
    const bool is_inside = column < change.columns.total;
    const uint32_t first = is_inside ? word(layout.columns.first, column) : kNone;
    const uint32_t taps = first != kNone ? word(layout.columns.count, column) : 0;
    if (between() == base::kLimitAfterColumns) {
      combine_limited(row, row_first, row_taps, column, first, taps, samples);
      return first != kNone;
    }
    uint32_t begin = first, end = first != kNone ? first + taps : 0;
    for (int step = 16; step > 0; step /= 2) {
      const uint32_t other_begin = __shfl_xor_sync(kAllLanes, begin, step);
      const uint32_t other_end = __shfl_xor_sync(kAllLanes, end, step);
      begin = begin < other_begin ? begin : other_begin;
      end = end > other_end ? end : other_end;
    }
    Samples sums;  // the bits of floats for wide samples
    uint32_t next = first, left = taps;
    const uint8_t* weight = weights_of(layout.columns, column);
    for (uint32_t piece = begin; piece < end; piece += kPiece) {
      const uint32_t piece_end = piece + kPiece < end ? piece + kPiece : end;
      __syncwarp();
      for (uint32_t x = piece + lane_number(); x < piece_end; x += kLanes) {
        const Samples made = combine(row, row_first, row_taps, x);
        Samples::each(used(), [&](uint32_t c) { shared[c * kPiece + x - piece] = made.of[c]; });
      }
      __syncwarp();
      for (; left > 0 && next < piece_end; --left, ++next, weight += 4 * layout.columns.tap) {
        const uint32_t by = load_global_word(weight);
        Samples::each(used(), [&](uint32_t c) {
          const uint32_t value = shared[c * kPiece + next - piece];
          if (!is_wide()) {
            sums.of[c] += value * by;
          } else if (column_picks) {
            sums.of[c] = value;
          } else {
            const float sum = __fmaf_rn(__uint_as_float(value), __uint_as_float(by), __uint_as_float(sums.of[c]));
            sums.of[c] = __float_as_uint(sum);
          }
        });
      }
    }
    Samples::each(used(), [&](uint32_t c) {
      const int32_t sum = static_cast<int32_t>(sums.of[c]);
      if (is_wide()) {
        samples[c] = __uint_as_float(sums.of[c]);
      } else if (between() == base::kLimitAfterRows) {
        samples[c] = __int2float_rn(base::limited_sample(sum, column_shift, most_sample()));
      } else {
        samples[c] = __fmul_rn(__int2float_rn(sum), power_of_two(column_shift + fraction));
      }
    });
    return first != kNone;
  }

  L3_INLINE void change_colours(float (&samples)[kMaxChannels]) const {
    if (change.mixes != 0) {
      float made[kMaxChannels] = {};
      Samples::each(change.channels, [&](uint32_t c) {
        float sum = change.offset[c];
        Samples::each(used(), [&](uint32_t from) {
          const float factor = change.factor[c][from];
          if (factor != 0) sum = __fadd_rn(sum, __fmul_rn(factor, samples[from]));
        });
        made[c] = sum;
      });
      Samples::each(change.channels, [&](uint32_t c) { samples[c] = made[c]; });
    }
    if (change.clamps == 0 && is_float()) return;
    Samples::each(change.channels, [&](uint32_t c) { samples[c] = limited(samples[c]); });
  }

  L3_INLINE bool is_float() const { return result.type >= L3_CUDA_F16 && result.type <= L3_CUDA_F32; }
  L3_INLINE float limited(float sample) const { return sample < 0 ? 0 : sample > change.most ? change.most : sample; }

  L3_INLINE void store(uint8_t* to, uint32_t channel, float sample) const {
    if (is_float()) {
      const float value = __fmaf_rn(sample, result.scale[channel], result.bias[channel]);
      if (result.type == L3_CUDA_F32) return store_global(to, __float_as_uint(value));
      return store_global_half(to, result.type == L3_CUDA_F16 ? half_of(value) : bfloat_of(value));
    }
    const int32_t number = __float2int_rn(sample);
    const uint32_t word = static_cast<uint32_t>(number);
    if (result.type == L3_CUDA_U8) return store_global_byte(to, word);
    if (result.type == L3_CUDA_I32) return store_global(to, word);
    if (result.type == L3_CUDA_I64) return store_global_two(to, uint2{word, static_cast<uint32_t>(number >> 31)});
    store_global_half(to, word);
  }
};

template <uint32_t kUsed>
L3_INLINE void change_image(const ImageState& state, uint32_t* shared) {
  const l3_cuda_change& change = *state.change;
  const base::ResizeAxis rows = axis_of(change.rows), columns = axis_of(change.columns);
  const Output& result = state.result;
  const uint32_t pixel_bytes = static_cast<uint32_t>(state.out.pixel_step);
  const bool row_picks = rows.filter <= base::kNearestExact, column_picks = columns.filter <= base::kNearestExact;
  const uint32_t fraction = change.bits > 8 ? 0 : base::fraction_of(columns, change.bits, change.limit_between);
  const Changer<kUsed> changer{result,
                               change,
                               static_cast<const uint8_t*>(change.scratch),
                               lay_out(change, state.out.channels),
                               pixel_bytes,
                               static_cast<uint64_t>(columns.region) * pixel_bytes,
                               (row_picks ? 14 : base::precision_of(rows, base::kMostRowPrecision)) - fraction,
                               column_picks ? 14 : base::precision_of(columns, base::most_column_precision(columns)),
                               fraction,
                               column_picks};
  const uint32_t across = (columns.total + kLanes - 1) / kLanes;
  const uint64_t works = uint64_t{across} * rows.total;
  for (uint64_t work = blockIdx.x % kChangeBlocks * kChangeWarps + threadIdx.x / kLanes; work < works;
       work += kChangeBlocks * kChangeWarps) {
    const uint32_t row = static_cast<uint32_t>(work / across);
    const uint32_t column = static_cast<uint32_t>(work % across) * kLanes + lane_number();
    float samples[kMaxChannels] = {};
    if (changer.make(row, column, shared, samples)) {
      changer.change_colours(samples);
    } else {
      Samples::each(kMaxChannels, [&](uint32_t c) { samples[c] = change.pad_value[c]; });
    }
    if (column >= columns.total) continue;
    const uint64_t x = change.transposed != 0 ? row : column, y = change.transposed != 0 ? column : row;
    uint8_t* const to = result.first + y * result.row_step + x * static_cast<uint64_t>(result.pixel_step);
    Samples::each(change.channels, [&](uint32_t c) { changer.store(to + c * result.channel_step, c, samples[c]); });
  }
}

__global__ void __launch_bounds__(kChangeWarps* kLanes, 3) change_kernel(const __grid_constant__ Batch batch) {
  extern __shared__ uint4 shared[];
  const ImageState& state = batch.states[blockIdx.x / kChangeBlocks];
  if (!is_changed(state)) return;
  const l3_cuda_change& change = *state.change;
  const bool is_usual = change.bits <= 8 && change.blends == 0 && change.limit_between == base::kKeepBetween;
  uint32_t* const own = reinterpret_cast<uint32_t*>(shared) + threadIdx.x / kLanes * kPiece * kMaxChannels;
  if (is_usual && change.used == 3) return change_image<3>(state, own);
  if (is_usual && change.used == 1) return change_image<1>(state, own);
  change_image<0>(state, own);
}

cudaError_t load_changes() {
  const cudaError_t error = load(taps_kernel);
  return error == cudaSuccess ? load(change_kernel) : error;
}

cudaError_t change_images(const Batch& batch, cudaStream_t stream) {
  if (batch.changes == 0) return cudaSuccess;
  const cudaError_t error = launch(taps_kernel, batch.count, kChangeWarps * kLanes, 0, stream, batch);
  if (error != cudaSuccess) return error;
  return launch(change_kernel, batch.count * kChangeBlocks, kChangeWarps * kLanes, kSharedBytes, stream, batch);
}

}  // namespace l3
