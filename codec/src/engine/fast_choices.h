// What the encoder of the method fast chooses, for processors and GPUs alike: they write the same files.
#pragma once

#include "engine/fast.h"

namespace l3 {

// The colour transform is chosen by the widths that residuals of some rows need with one predictor: the first of these
// rows, the distance to the next one, and the predictor.
constexpr uint32_t kSampledRow = 3;
constexpr uint32_t kSampledStep = 16;
constexpr uint32_t kSampledPredictor = kPredictTurn;

// A block's base width and width bits, and their cost.
struct WidthPlan {
  uint32_t base, width_bits;
  uint32_t bits;  // for widths and codes together
};

// The cheapest way to code these widths. `absent` of them are zero because their groups lie outside the tile.
template <class W>
L3_INLINE WidthPlan plan_widths(const typename W::GroupWidths& widths, uint32_t absent) {
  const uint32_t maximum = W::greatest(widths);
  WidthPlan best{maximum, 0, 4 * maximum * (64 - absent)};
  for (uint32_t d = 1; d <= kMaxWidthBits; ++d) {
    const uint32_t span = (1u << d) - 1;
    const uint32_t base = maximum > span ? maximum - span : 0;
    const uint32_t bits = 64 * d + 4 * (W::sum_raised(widths, base) - absent * base);
    if (bits < best.bits) best = {base, d, bits};
    if (base == 0) break;
  }
  return best;
}

}  // namespace l3
