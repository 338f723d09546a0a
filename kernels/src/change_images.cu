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
                          uint32_t most_precision, uint32_t thread, uint32_t threads) {
  uint32_t* const firsts = reinterpret_cast<uint32_t*>(scratch + table.first);
  uint32_t* const counts = reinterpret_cast<uint32_t*>(scratch + table.count);
  uint32_t* const weights = reinterpret_cast<uint32_t*>(scratch + table.weights);
  const uint32_t precision = base::precision_of(axis, most_precision);
  for (uint32_t i = thread; i < axis.total; i += threads) {
    const int64_t at = base::content_at(axis, i);
    firsts[i] = kNone;
    counts[i] = 0;
    if (at < 0) continue;
    const uint32_t number = axis.window + static_cast<uint32_t>(at);
    const base::Taps taps = base::taps_of(axis, number);
    firsts[i] = base::first_stored(axis, taps);
    counts[i] = taps.count;
    uint32_t* const own = weights + uint64_t{i} * table.stride;
    if (axis.filter <= base::kNearestExact) {
      own[0] = is_fine ? __float_as_uint(1.0f) : 1u << 14;
    } else if (is_fine) {
      base::put_fine_weights(axis, number, taps, [&](uint32_t tap, float w) { own[tap] = __float_as_uint(w); });
    } else {
      base::put_weights(axis, number, taps, precision,
                        [&](uint32_t tap, int32_t w) { own[tap] = static_cast<uint32_t>(w); });
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
  fill_table(scratch, layout.rows, axis_of(change.rows), is_fine, base::kMostRowPrecision, threadIdx.x,
             kChangeWarps * kLanes);
  fill_table(scratch, layout.columns, axis_of(change.columns), is_fine, base::kMostColumnPrecision, threadIdx.x,
             kChangeWarps * kLanes);
}

// One image for a warp.
struct Changer {
  const Output& result;
  const l3_cuda_change& change;
  uint32_t channels;  // of a pixel of the region
  const uint8_t* scratch;
  ChangeLayout layout;
  uint32_t row_pixels;  // of the region
  uint32_t row_precision, column_precision;
  bool row_picks, column_picks;

  L3_INLINE uint32_t word(uint64_t part, uint64_t at) const {
    return reinterpret_cast<const uint32_t*>(scratch + part)[at];
  }

  // A sample of the region, blended with the background if that is wanted.
  L3_INLINE uint32_t sample(uint32_t row, uint32_t column, uint32_t channel) const {
    const uint64_t at = (uint64_t{row} * row_pixels + column) * channels;
    const bool is_wide = change.bits > 8;
    const auto load = [&](uint64_t place) -> uint32_t {
      return is_wide ? reinterpret_cast<const uint16_t*>(scratch)[place] : scratch[place];
    };
    const uint32_t own = load(at + channel);
    if (change.blends == 0) return own;
    const uint32_t most = (1u << change.bits) - 1, alpha = load(at + channels - 1);
    const uint32_t behind = __float2uint_rn(change.background[channel]);
    const uint64_t sum = uint64_t{own} * (change.blends == 2 ? most : alpha) + uint64_t{behind} * (most - alpha);
    const uint64_t blended = (sum + most / 2) / most;
    return blended < most ? static_cast<uint32_t>(blended) : most;
  }

  // Combines the rows of one column and channel.
  L3_INLINE uint32_t combine(uint32_t row, uint32_t first, uint32_t taps, uint32_t column, uint32_t channel) const {
    const uint64_t weights = uint64_t{row} * layout.rows.stride;
    if (change.bits > 8) {
      float sum = 0;
      for (uint32_t tap = 0; tap < taps; ++tap) {
        const float own = static_cast<float>(sample(first + tap, column, channel));
        sum = __fmaf_rn(own, __uint_as_float(word(layout.rows.weights, weights + tap)), sum);
      }
      return __float_as_uint(sum);
    }
    const uint32_t shift = (row_picks ? 14 : row_precision) - base::fraction_of(change.bits, change.limit_between);
    int32_t sum = 1 << (shift - 1);
    for (uint32_t tap = 0; tap < taps; ++tap) {
      sum += static_cast<int32_t>(word(layout.rows.weights, weights + tap)) *
             static_cast<int32_t>(sample(first + tap, column, channel));
    }
    sum >>= shift;
    if (change.limit_between == base::kLimitAfterRows) {
      const int32_t most = (1 << change.bits) - 1;
      sum = sum < 0 ? 0 : sum > most ? most : sum;
    }
    return static_cast<uint32_t>(sum);
  }

  // Combines the columns of each row, rounds and limits that, and combines these.
  L3_INLINE float combine_limited(uint32_t row, uint32_t row_first, uint32_t row_taps, uint32_t column, uint32_t first,
                                  uint32_t taps, uint32_t channel) const {
    const uint64_t row_weights = uint64_t{row} * layout.rows.stride, weights = uint64_t{column} * layout.columns.stride;
    const float unit = power_of_two(column_precision);
    int32_t sum = 1 << (row_precision - 1);
    for (uint32_t y = 0; y < row_taps; ++y) {
      int32_t across = 0;
      for (uint32_t tap = 0; tap < taps; ++tap) {
        across += static_cast<int32_t>(word(layout.columns.weights, weights + tap)) *
                  static_cast<int32_t>(sample(row_first + y, first + tap, channel));
      }
      sum += static_cast<int32_t>(word(layout.rows.weights, row_weights + y)) *
             half_up(__fmul_rn(__int2float_rn(across), unit));
    }
    return __int2float_rn(sum >> row_precision);
  }
  // The nearest sample; a half becomes the larger one.
  L3_INLINE int32_t half_up(float value) const {
    const float most = static_cast<float>((1u << change.bits) - 1);
    return static_cast<int32_t>(__fadd_rn(value < 0 ? 0 : value > most ? most : value, 0.5f));
  }
  // 2^-n.
  L3_INLINE static float power_of_two(uint32_t n) { return __uint_as_float((127 - n) << 23); }

  // The samples of result `column` of `row`, for each used channel; all lanes take part. Returns whether it is content.
  L3_INLINE bool make(uint32_t row, uint32_t column, uint32_t* shared, float* samples) const {
    const uint32_t row_first = word(layout.rows.first, row), row_taps = word(layout.rows.count, row);
    if (row_first == kNone) return false;  // the same for all lanes
    const bool is_inside = column < change.columns.total;
    const uint32_t first = is_inside ? word(layout.columns.first, column) : kNone;
    const uint32_t taps = first != kNone ? word(layout.columns.count, column) : 0;
    const uint64_t weights = uint64_t{column} * layout.columns.stride;
    if (change.limit_between == base::kLimitAfterColumns) {
      for (uint32_t c = 0; c < change.used; ++c) {
        samples[c] = combine_limited(row, row_first, row_taps, column, first, taps, c);
      }
      return first != kNone;
    }
    uint32_t begin = first, end = first != kNone ? first + taps : 0;
    for (int step = 16; step > 0; step /= 2) {
      const uint32_t other_begin = __shfl_xor_sync(kAllLanes, begin, step);
      const uint32_t other_end = __shfl_xor_sync(kAllLanes, end, step);
      begin = begin < other_begin ? begin : other_begin;
      end = end > other_end ? end : other_end;
    }
    const bool is_fine = change.bits > 8;
    int32_t sums[kMaxChannels] = {};
    float fine[kMaxChannels] = {};
    for (uint32_t piece = begin; piece < end; piece += kPiece) {
      const uint32_t piece_end = piece + kPiece < end ? piece + kPiece : end;
      __syncwarp();
      for (uint32_t x = piece + lane_number(); x < piece_end; x += kLanes) {
        for (uint32_t c = 0; c < change.used; ++c) {
          shared[c * kPiece + x - piece] = combine(row, row_first, row_taps, x, c);
        }
      }
      __syncwarp();
      for (uint32_t tap = 0; tap < taps; ++tap) {
        const uint32_t x = first + tap;
        if (x < piece || x >= piece_end) continue;
        const uint32_t weight = word(layout.columns.weights, weights + tap);
        for (uint32_t c = 0; c < change.used; ++c) {
          const uint32_t value = shared[c * kPiece + x - piece];
          if (is_fine) {
            fine[c] = column_picks ? __uint_as_float(value)
                                   : __fmaf_rn(__uint_as_float(value), __uint_as_float(weight), fine[c]);
          } else {
            sums[c] += static_cast<int32_t>(value) * static_cast<int32_t>(weight);
          }
        }
      }
    }
    // A power of two, so nothing is rounded.
    const uint32_t fraction =
        (is_fine ? 0 : base::fraction_of(change.bits, change.limit_between)) + (column_picks ? 14 : column_precision);
    const float unit = power_of_two(fraction);
    for (uint32_t c = 0; c < change.used; ++c) {
      samples[c] = is_fine ? fine[c] : __fmul_rn(__int2float_rn(sums[c]), unit);
      if (change.limit_between == base::kLimitAfterRows) samples[c] = __int2float_rn(half_up(samples[c]));
    }
    return first != kNone;
  }

  L3_INLINE void change_colours(float* samples) const {
    if (change.mixes != 0) {
      float made[kMaxChannels];
      for (uint32_t c = 0; c < change.channels; ++c) {
        float sum = change.offset[c];
        for (uint32_t from = 0; from < change.used; ++from) {
          const float factor = change.factor[c][from];
          if (factor != 0) sum = __fadd_rn(sum, __fmul_rn(factor, samples[from]));
        }
        made[c] = sum;
      }
      for (uint32_t c = 0; c < change.channels; ++c) samples[c] = made[c];
    }
    if (change.clamps == 0) return;
    for (uint32_t c = 0; c < change.channels; ++c) samples[c] = limited(samples[c]);
  }

  L3_INLINE float limited(float sample) const { return sample < 0 ? 0 : sample > change.most ? change.most : sample; }

  L3_INLINE void store(uint8_t* to, uint32_t channel, float sample) const {
    const bool is_float = result.type >= L3_CUDA_F16 && result.type <= L3_CUDA_F32;
    if (is_float) {
      const float value = __fmaf_rn(sample, result.scale[channel], result.bias[channel]);
      if (result.type == L3_CUDA_F32) return store_global(to, __float_as_uint(value));
      return store_global_half(to, result.type == L3_CUDA_F16 ? half_of(value) : bfloat_of(value));
    }
    const uint32_t number = __float2uint_rn(limited(sample));
    if (result.type == L3_CUDA_U8) return store_global_byte(to, number);
    if (result.type == L3_CUDA_I32) return store_global(to, number);
    if (result.type == L3_CUDA_I64) return store_global_two(to, uint2{number, 0});
    store_global_half(to, number);
  }
};

__global__ void __launch_bounds__(kChangeWarps* kLanes) change_kernel(const __grid_constant__ Batch batch) {
  extern __shared__ uint4 shared[];
  const uint32_t i = blockIdx.x / kChangeBlocks;
  const ImageState& state = batch.states[i];
  if (!is_changed(state)) return;
  const l3_cuda_change& change = *state.change;
  const base::ResizeAxis rows = axis_of(change.rows), columns = axis_of(change.columns);
  const Output& result = state.result;
  const Changer changer{result,
                        change,
                        state.out.channels,
                        static_cast<const uint8_t*>(change.scratch),
                        lay_out(change, state.out.channels),
                        change.columns.region,
                        base::precision_of(rows, base::kMostRowPrecision),
                        base::precision_of(columns, base::kMostColumnPrecision),
                        rows.filter <= base::kNearestExact,
                        columns.filter <= base::kNearestExact};
  const uint32_t warp = threadIdx.x / kLanes;
  uint32_t* const own_shared = reinterpret_cast<uint32_t*>(shared) + warp * kPiece * kMaxChannels;
  const uint32_t across = (columns.total + kLanes - 1) / kLanes;
  const uint64_t works = uint64_t{across} * rows.total;
  for (uint64_t work = blockIdx.x % kChangeBlocks * kChangeWarps + warp; work < works;
       work += kChangeBlocks * kChangeWarps) {
    const uint32_t row = static_cast<uint32_t>(work / across);
    const uint32_t column = static_cast<uint32_t>(work % across) * kLanes + lane_number();
    float samples[kMaxChannels];
    if (changer.make(row, column, own_shared, samples)) {
      changer.change_colours(samples);
    } else {
      for (uint32_t c = 0; c < kMaxChannels; ++c) samples[c] = change.pad_value[c];
    }
    if (column >= columns.total) continue;
    const uint64_t x = change.transposed != 0 ? row : column, y = change.transposed != 0 ? column : row;
    uint8_t* const to = result.first + y * result.row_step + x * static_cast<uint64_t>(result.pixel_step);
    for (uint32_t c = 0; c < change.channels; ++c) changer.store(to + c * result.channel_step, c, samples[c]);
  }
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
