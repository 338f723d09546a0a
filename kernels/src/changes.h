// Where the scratch memory of a changed image has its parts. For host and device code.
#pragma once

#include "base/resize_rules.h"
#include "batch.h"

namespace l3 {

static_assert(sizeof(base::ResizeAxis) == sizeof(l3_cuda_axis));
static_assert(base::kArea == uint32_t{L3_CUDA_AREA} && base::kBilinear == uint32_t{L3_CUDA_BILINEAR});

L3_INLINE base::ResizeAxis axis_of(const l3_cuda_axis& a) {
  return {a.box, a.resized,       a.window, a.content, a.before,          a.out,          a.total,
          a.pad, a.interpolation, a.first,  a.region,  a.source_mirrored, a.out_mirrored, a.precision};
}

// The taps of the samples of an axis.
struct TapTable {
  uint64_t first;        // where the first taps are, 32 bits each; kNone is padding with a value
  uint64_t count;        // how many taps each sample has, 32 bits each
  uint64_t weights;      // 32 bits each: integers, or floats for samples above 8 bits
  uint32_t sample, tap;  // how far apart the weights of two samples are, and those of two taps
};

struct ChangeLayout {
  uint32_t sample_bytes;
  TapTable rows, columns;
  uint64_t all;  // the size of the memory; the samples are at its beginning
};

L3_INLINE uint64_t take_part(uint64_t& taken, uint64_t bytes) {
  const uint64_t at = taken;
  taken += (bytes + 15) / 16 * 16;
  return at;
}

// `by_tap`: the weights of one tap are adjacent, because neighbouring lanes make neighbouring samples.
L3_INLINE TapTable lay_out(const base::ResizeAxis& axis, bool by_tap, uint64_t& taken) {
  const uint32_t taps = base::most_taps(axis);
  TapTable table{};
  table.first = take_part(taken, uint64_t{4} * axis.total);
  table.count = take_part(taken, uint64_t{4} * axis.total);
  table.weights = take_part(taken, uint64_t{4} * axis.total * taps);
  table.sample = by_tap ? 1 : taps;
  table.tap = by_tap ? axis.total : 1;
  return table;
}

// `channels` are those of the decoded image.
L3_INLINE ChangeLayout lay_out(const l3_cuda_change& change, uint32_t channels) {
  ChangeLayout layout{};
  layout.sample_bytes = change.bits > 8 ? 2 : 1;
  uint64_t taken = 0;
  (void)take_part(taken, uint64_t{change.columns.region} * change.rows.region * channels * layout.sample_bytes);
  layout.rows = lay_out(axis_of(change.rows), false, taken);
  layout.columns = lay_out(axis_of(change.columns), true, taken);
  layout.all = taken;
  return layout;
}

}  // namespace l3
