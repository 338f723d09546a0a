// Implements token_features.h.
#include "encode/token_features.h"

#include <bit>
#include <cstring>

namespace l3 {
namespace {

using FourFloats = float __attribute__((vector_size(16)));

}  // namespace

void FeatureReader::read_row(uint32_t y, uint32_t r, const TokenScales& scales,
                             std::vector<std::unique_ptr<FeatureBlock>>& blocks) {
  const uint32_t w = tile_.width, count = feature_count(c_);
  const size_t row = size_t{y} * w;
  own_.find(tile_.values[c_].data(), y);
  if (hole_ >= 0) own_.fill_holes(hole_);
  errors_.find(tile_.errors[c_].data(), y);
  for (uint32_t i = 0; i < cross_.size(); ++i) cross_[i].find(tile_.values[c_ - 1 - i].data(), y);
  for (uint32_t f = 0; f <= count; ++f) {
    const uint32_t tap = f < count ? tap_of(f) : 0;
    const uint32_t i = tap < 16 ? tap - 14 : (tap - 16) / kTapsOfWord;
    const int32_t* of = tap == 0                 ? tile_.values[c_].data() + row
                        : tap < 8                ? own_[tap]
                        : tap < 14               ? errors_[tap - 8]
                        : tap < 16               ? tile_.errors[c_ - 1 - i].data() + row
                        : tap % kTapsOfWord == 3 ? tile_.values[c_ - 1 - i].data() + row
                                                 : cross_[i][tap % kTapsOfWord];
    const int32_t* less = tap < 8 ? own_[kTokenW] : tap < 16 ? nullptr : cross_[i][kTokenW];
    for_blocks([&](uint32_t block, uint32_t from, uint32_t x) {
      blocks[block]->at[f][r * kBlockEdge + x] = static_cast<float>(of[from + x] - (less ? less[from + x] : 0));
    });
  }
  for_blocks([&](uint32_t block, uint32_t from, uint32_t x) {
    const uint32_t at = from + x;
    const float scale = scales.of[scale_level(own_, errors_, at)];
    const bool counts = tile_.symbols[row + at] == kMatchNone;
    const float error = std::abs(static_cast<float>(tile_.errors[c_][row + at]));
    blocks[block]->scale[r * kBlockEdge + x] = scale;
    blocks[block]->weight[r * kBlockEdge + x] = counts ? 1 / (scale * (scale + error)) : 0;
  });
}

void clear_outside(FeatureBlock& block, uint32_t count) {
  if (block.columns == kBlockEdge) return;
  // Uses memset, since GCC 12 wrongly assumes alignment if this is a loop.
  const size_t bytes = (kBlockEdge - block.columns) * sizeof(float);
  for (uint32_t r = 0; r < block.rows; ++r) {
    const uint32_t first = r * kBlockEdge + block.columns;
    std::memset(block.weight + first, 0, bytes);
    for (uint32_t f = 0; f <= count; ++f) std::memset(block.at[f] + first, 0, bytes);
  }
}

void add_products(const float (*rows)[kBlockEdge * kBlockEdge], const float* weight, uint32_t count, uint32_t numbers,
                  double* sums) {
  alignas(16) float weighted[kBlockEdge * kBlockEdge];
  for (uint32_t i = 0; i < count; ++i) {
    for (uint32_t x = 0; x < numbers; ++x) weighted[x] = rows[i][x] * weight[x];
    for (uint32_t j = 0; j <= i; ++j) {
      FourFloats sum = {};
      for (uint32_t x = 0; x < numbers; x += 4) {
        FourFloats a, b;
        std::memcpy(&a, weighted + x, sizeof(a));
        std::memcpy(&b, rows[j] + x, sizeof(b));
        sum += a * b;
      }
      *sums++ += static_cast<double>(sum[0] + sum[1] + (sum[2] + sum[3]));
    }
  }
}

int64_t cost_of(const FeatureBlock& block, const TapWeights& weights, uint32_t count) {
  const uint32_t numbers = block.rows * kBlockEdge;
  alignas(16) float sum[kBlockEdge * kBlockEdge];
  for (uint32_t x = 0; x < numbers; ++x) sum[x] = block.at[count][x];
  for (uint32_t f = 0; f < count; ++f) {
    const float weight = static_cast<float>(weights.of[tap_of(f)]) / (1 << kWeightShift);
    if (weight == 0) continue;
    for (uint32_t x = 0; x < numbers; ++x) sum[x] -= weight * block.at[f][x];
  }
  int64_t cost = 0;
  for (uint32_t x = 0; x < numbers; ++x) {
    const float size = (sum[x] < 0 ? -sum[x] : sum[x]) + block.scale[x];
    const float ratio = block.weight[x] > 0 ? size / block.scale[x] : 1;
    cost += std::bit_cast<int32_t>(ratio) - (127 << 23);
  }
  return cost;
}

}  // namespace l3
