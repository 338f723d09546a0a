// The encoder's arithmetic on the samples of a tile: features, normal equations, choice of classes, errors.
// It uses only integers (and floats that are exact), so every processor target computes the same numbers.
#pragma once

#include <bit>
#include <type_traits>

#include "engine/dense_context_kernels.h"

namespace l3 {

constexpr uint32_t kFitLevels = 24;  // activity levels that the fit distinguishes

// The features that the fit uses in place of taps. Values of a channel's neighbours are differences from the W of that
// channel, so W itself has no feature. Errors are used as they are.
constexpr uint32_t kMaxFeatures = 21;
L3_INLINE constexpr uint32_t feature_count(uint32_t channel) { return 13 + 4 * cross_channels(channel); }

L3_INLINE constexpr uint32_t tap_of(uint32_t feature) {
  if (feature < 13) return feature + 1;
  const uint32_t cross = (feature - 13) / 4, i = (feature - 13) % 4;
  return i == 0 ? 14 + cross : (kCrossWord + cross) * kTapsOfWord + i;
}

// Sums of products of pairs of features, the target being the last one: the lower triangle, row by row.
constexpr uint32_t kMaxProducts = (kMaxFeatures + 1) * (kMaxFeatures + 2) / 2;

// Sums of predictions are kept times 2^kSumShift in 32 bits, so that they are modulo 2^16.
constexpr uint32_t kSumShift = 16;

// The cost of an error e is 256 log2(kCostOne + a e + b (e^2 / 4)), with a and b for each level, 16 bits each.
constexpr int32_t kCostOne = 4096;

// Tables that the rounds of a fit share.
struct FitScales {
  int16_t scale[kFitLevels][256];  // weight of a sample in the normal equations, by level and |error|
  int16_t cost[kFitLevels][2];     // a and b
};

// The rows of a block in an order in which each quarter has rows of both halves.
constexpr uint8_t kRowOrder[kBlockEdge] = {0, 1, 8, 9, 4, 5, 12, 13, 2, 3, 10, 11, 6, 7, 14, 15};

// A class is given up if the first quarters of a block cost more than with the best class so far by this fraction of
// the block's cost.
constexpr uint32_t kClearly = 16;

// The features of a block's samples, 16 to a row, the rows in this order. Rows below the image are all zero.
struct BlockFeatures {
  alignas(64) int16_t features[kMaxFeatures + 1][kBlockSamples];
  alignas(64) int16_t base[kBlockSamples];  // W
  alignas(64) int16_t value[kBlockSamples];
  alignas(64) int16_t level[kBlockSamples];
  uint32_t x, y, columns;  // as many columns as are inside the image
  uint32_t rows_left;      // from y to the last row of the image

  L3_INLINE bool has_row(uint32_t r) const { return kRowOrder[r] < rows_left; }
};

template <class S>  // a ShortVectors
struct FitKernels : ContextKernels<S> {
  using R = typename S::Narrow;  // for rows of 16 numbers
  using Row = typename R::Shorts;
  using ContextKernels<S>::scale_rows;
  static constexpr uint32_t kMaxPairs = (kMaxFeatures + 1) / 2;

  // The activity level that the fit uses for 16 samples, from their neighbours' errors and the gradients.
  L3_INLINE static Row fit_level(const NeighbourRow& own, const NeighbourRow& error, const int16_t* error_before,
                                 uint32_t k) {
    const auto size_of = [&](Neighbour n) { return R::magnitude(R::load(error.at[n] + k)); };
    const Row near = size_of(kW) + size_of(kN);
    Row activity = near + near + near;
    const Row far = size_of(kNW) + size_of(kNE);
    activity += far + far;
    const Row corner = R::load(own.at[kNW] + k);
    activity += R::magnitude(R::load(own.at[kW] + k) - corner) + R::magnitude(R::load(own.at[kN] + k) - corner);
    if (error_before != nullptr) activity += R::magnitude(R::load(error_before + k)) << 2;
    return R::lesser(R::levels_of(activity + static_cast<int16_t>(kActivityFloor)), R::all(kFitLevels - 1));
  }

  // Reads the first `rows` rows of a block.
  L3_INLINE static void read_block(const DensePlanes& planes, uint32_t channel, uint32_t block, BlockFeatures& out,
                                   uint32_t rows = kBlockEdge) {
    const uint32_t x = block % planes.blocks_across * kBlockEdge;
    const uint32_t y0 = block / planes.blocks_across * kBlockEdge;
    if (planes.height - y0 < kBlockEdge) __builtin_memset(&out, 0, sizeof(out));
    out.x = x;
    out.y = y0;
    out.columns = smaller(kBlockEdge, planes.width - x);
    out.rows_left = planes.height - y0;
    const uint32_t cross = cross_channels(channel);
    for (uint32_t r = 0; r < rows; ++r) {
      if (!out.has_row(r)) continue;
      const uint32_t y = y0 + kRowOrder[r];
      const size_t at = y * planes.pitch + x;
      NeighbourRow own, error, other[2];
      find_neighbours(planes.samples[channel], planes.pitch, x, y, own);
      find_neighbours(planes.errors[channel], planes.pitch, x, y, error);
      const int16_t* error_before = cross > 0 ? planes.errors[channel - 1] + at : nullptr;
      for (uint32_t b = 0; b < cross; ++b) {
        find_neighbours(planes.samples[channel - 1 - b], planes.pitch, x, y, other[b]);
      }
      for (uint32_t k = 0; k < kBlockEdge; k += R::kShorts) {
        const uint32_t to = r * kBlockEdge + k;
        const Row w = R::load(own.at[kW] + k);
        R::store(out.base + to, w);
        R::store(out.value + to, R::load(planes.samples[channel] + at + k));
        for (uint32_t i = 0; i < 7; ++i) R::store(out.features[i] + to, R::load(own.at[i + 1] + k) - w);
        for (uint32_t i = 0; i < 6; ++i) R::store(out.features[7 + i] + to, R::load(error.at[i] + k));
        for (uint32_t b = 0; b < cross; ++b) {
          int16_t(*to_features)[kBlockSamples] = out.features + 13 + 4 * b;
          const Row other_w = R::load(other[b].at[kW] + k);
          R::store(to_features[0] + to, R::load(planes.errors[channel - 1 - b] + at + k));
          R::store(to_features[1] + to, R::load(other[b].at[kN] + k) - other_w);
          R::store(to_features[2] + to, R::load(other[b].at[kNW] + k) - other_w);
          R::store(to_features[3] + to, R::load(planes.samples[channel - 1 - b] + at + k) - other_w);
        }
        R::store(out.level + to, fit_level(own, error, error_before, k));
      }
    }
  }

  // Adds up the scaled products of features for each class, using every `step`-th block.
  static void accumulate(const DensePlanes& planes, uint32_t channel, const FitScales& scales, uint32_t step,
                         int64_t* products) {
    const uint32_t count = feature_count(channel);
    BlockFeatures block;
    alignas(64) int16_t scale[kBlockSamples];
    for (uint32_t b = 0; b < planes.block_count(); b += step) {
      read_block(planes, channel, b, block);
      __builtin_memset(scale, 0, sizeof(scale));
      for (uint32_t r = 0; r < kBlockEdge; ++r) {
        if (!block.has_row(r)) continue;
        const int16_t* errors = planes.errors[channel] + (block.y + kRowOrder[r]) * planes.pitch + block.x;
        uint16_t place[kBlockEdge];
        for (uint32_t k = 0; k < kBlockEdge; k += R::kShorts) {
          const Row p = (R::load(block.level + r * kBlockEdge + k) << 8) + R::magnitude(R::load(errors + k));
          __builtin_memcpy(place + k, &p, sizeof(p));
        }
        for (uint32_t k = 0; k < block.columns; ++k) scale[r * kBlockEdge + k] = (&scales.scale[0][0])[place[k]];
      }
      for (uint32_t i = 0; i < kBlockSamples; i += S::kShorts) {
        S::store(block.features[count] + i, S::load(block.value + i) - S::load(block.base + i));
      }
      scale_rows(block.features, count + 1, scale);
      S::add_triangle(block.features, count + 1, products + planes.classes[channel][b] * kMaxProducts);
    }
  }

  // Adds up the cost of a block's samples with a predictor whose weights are in pairs, relative to no errors at all.
  // sums[q] is the cost of the first q + 1 quarters of the block. Returns false once one is not below its limit.
  template <uint32_t kPairs>
  L3_INLINE static bool add_costs(const BlockFeatures& block,
                                  const typename S::Interleaved (*paired)[kBlockSamples / S::kShorts],
                                  const typename S::Interleaved* costs, const int32_t* weights, int16_t maximum,
                                  uint32_t quarters, const uint32_t* limits, uint32_t* sums) {
    constexpr uint32_t kVectorsOfQuarter = kBlockSamples / S::kShorts / 4;
    constexpr int32_t kMinCost = std::bit_cast<int32_t>(static_cast<float>(kCostOne)) >> 15;
    typename S::Sums weight[kPairs];
    for (uint32_t p = 0; p < kPairs; ++p) weight[p] = S::all_pairs(weights[p]);
    typename S::Sums total{};
    for (uint32_t i = 0; i < quarters * kVectorsOfQuarter; ++i) {
      typename S::InterleavedSums sum{S::all_pairs(32), S::all_pairs(32)};
      for (uint32_t p = 0; p < kPairs; ++p) sum.add(paired[p][i], weight[p]);
      sum.low >>= kWeightShift;
      sum.high >>= kWeightShift;
      const uint32_t at = i * S::kShorts;
      const auto predicted = S::between(S::narrow(sum) + S::load(block.base + at), 0, maximum);
      const auto error = S::magnitude(S::load(block.value + at) - predicted);
      const auto size = (typename VectorTypes<sizeof(error)>::U16)error;  // its square needs all 16 bits
      const auto square = size * size >> 2;
      const typename S::Interleaved turns = S::interleave(error, (typename S::Shorts)square);
      using Floats = typename S::Floats;
      const auto cost = [&](const auto& v, const auto& by) {
        const auto sum_of_one = S::multiply_pairs(v, (typename S::Sums)by) + kCostOne;
        return (typename S::Sums) __builtin_convertvector(sum_of_one, Floats) >> 15;
      };
      total += cost(turns.low, costs[i].low) + cost(turns.high, costs[i].high) - 2 * kMinCost;
      if ((i + 1) % kVectorsOfQuarter != 0) continue;
      const uint32_t quarter = i / kVectorsOfQuarter;
      sums[quarter] = 0;
      for (uint32_t k = 0; k < S::kSums; ++k) sums[quarter] += static_cast<uint32_t>(total[k]);
      if (sums[quarter] >= limits[quarter]) return false;
    }
    return true;
  }

  template <uint32_t kPairs>
  static void assign_as(const DensePlanes& planes, uint32_t channel, const FitScales& scales,
                        const TapWeights* predictors, const uint32_t* class_costs, uint32_t classes, bool half) {
    const uint32_t count = feature_count(channel);
    const int16_t maximum = static_cast<int16_t>((1u << planes.bits) - 1);
    int32_t weights[kMaxClasses][kPairs];
    for (uint32_t k = 0; k < classes; ++k) {
      for (uint32_t p = 0; p < kPairs; ++p) {
        const auto weight = [&](uint32_t f) { return f < count ? predictors[k].of[tap_of(f)] : 0; };
        weights[k][p] = S::pair_of(weight(2 * p), weight(2 * p + 1));
      }
    }
    constexpr uint32_t kVectors = kBlockSamples / S::kShorts;
    const uint32_t quarters = half ? 2 : 4, last = quarters - 1, shift = half ? 1 : 0;
    const uint32_t vectors = kVectors / 4 * quarters;
    BlockFeatures block;
    typename S::Interleaved paired[kPairs][kVectors], costs[kVectors];
    for (uint32_t b = 0; b < planes.block_count(); ++b) {
      read_block(planes, channel, b, block, 4 * quarters);
      // Samples outside the image cost the same for all classes.
      alignas(64) int16_t scale[2][kBlockSamples] = {};
      for (uint32_t r = 0; r < 4 * quarters; ++r) {
        for (uint32_t k = 0; k < block.columns && block.has_row(r); ++k) {
          const uint32_t i = r * kBlockEdge + k;
          scale[0][i] = scales.cost[block.level[i]][0];
          scale[1][i] = scales.cost[block.level[i]][1];
        }
      }
      for (uint32_t i = 0; i < vectors; ++i) {
        const uint32_t at = i * S::kShorts;
        costs[i] = S::interleave(S::load(scale[0] + at), S::load(scale[1] + at));
        for (uint32_t p = 0; p < kPairs; ++p) {
          const auto second = 2 * p + 1 < count ? S::load(block.features[2 * p + 1] + at) : S::all(0);
          paired[p][i] = S::interleave(S::load(block.features[2 * p] + at), second);
        }
      }
      const uint32_t old = planes.classes[channel][b];
      uint32_t best_class = old, best_sums[4], limits[4] = {UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX};
      add_costs<kPairs>(block, paired, costs, weights[old], maximum, quarters, limits, best_sums);
      for (uint32_t k = 0; k < classes; ++k) {
        const uint32_t best = best_sums[last] + (class_costs[best_class] >> shift);
        if (k == old || class_costs[k] >> shift >= best) continue;
        for (uint32_t q = 0; q < last; ++q) limits[q] = best_sums[q] + best_sums[last] / kClearly;
        limits[last] = best - (class_costs[k] >> shift);
        uint32_t sums[4];
        if (!add_costs<kPairs>(block, paired, costs, weights[k], maximum, quarters, limits, sums)) continue;
        best_class = k;
        __builtin_memcpy(best_sums, sums, sizeof(sums));
      }
      planes.classes[channel][b] = static_cast<uint8_t>(best_class);
    }
  }

  // Gives each block the class with the lowest cost, including the cost of coding the class. With `half`, looks at only
  // half of the samples.
  static void assign(const DensePlanes& planes, uint32_t channel, const FitScales& scales, const TapWeights* predictors,
                     const uint32_t* class_costs, uint32_t classes, bool half) {
    constexpr decltype(&assign_as<kMaxPairs>) kFunctions[] = {assign_as<7>, assign_as<9>, assign_as<11>};
    kFunctions[cross_channels(channel)](planes, channel, scales, predictors, class_costs, classes, half);
  }

  // A predictor's weights in pairs, as evaluate() uses them, without those of the errors at W and WW.
  template <uint32_t kCross>
  struct PairedWeights {
    static constexpr uint32_t kPairs = 6 + 3 * kCross - (kCross == 2 ? 1 : 0);
    int32_t of[kPairs];

    L3_INLINE void read(const int8_t* w) {
      for (uint32_t i = 0; i < 4; ++i) of[i] = R::pair_of(w[2 * i], w[2 * i + 1]);
      of[4] = R::pair_of(w[9], w[10]);
      of[5] = R::pair_of(w[11], w[13]);
      for (uint32_t i = 0; i < 2 * kCross; ++i) of[6 + i] = R::pair_of(w[16 + 2 * i], w[17 + 2 * i]);
      if (kCross > 0) of[kPairs - 1] = R::pair_of(w[14], w[15]);
    }
  };

  // With kGuess, the errors at W and WW are left out: they are known only sample by sample, which is slow.
  template <uint32_t kCross, bool kGuess>
  static void evaluate_as(const DensePlanes& planes, uint32_t channel, const TapWeights* predictors,
                          uint64_t (*sums)[2]) {
    const int16_t maximum = static_cast<int16_t>((1u << planes.bits) - 1);
    PairedWeights<kCross> paired[kMaxClasses];
    uint32_t read = 0;                     // one bit per class
    uint64_t level_sums[kFitLevels] = {};  // the count in the upper 32 bits, the sum in the lower 32
    for (uint32_t y = 0; y < planes.height; ++y) {
      int16_t* const errors = planes.errors[channel] + y * planes.pitch;
      int32_t e_w = y == 0 ? 0 : errors[-static_cast<ptrdiff_t>(planes.pitch)];
      int32_t e_ww = e_w;
      errors[-1] = errors[-2] = static_cast<int16_t>(e_w);
      for (uint32_t x = 0; x < planes.width; x += kBlockEdge) {
        const uint32_t k_class = planes.classes[channel][y / kBlockEdge * planes.blocks_across + x / kBlockEdge];
        const int8_t* w = predictors[k_class].of;
        if ((read >> k_class & 1) == 0) {
          paired[k_class].read(w);
          read |= 1u << k_class;
        }
        const int32_t* weights = paired[k_class].of;
        const size_t at = y * planes.pitch + x;
        NeighbourRow own, error, other[2];
        find_neighbours(planes.samples[channel], planes.pitch, x, y, own);
        find_neighbours(planes.errors[channel], planes.pitch, x, y, error);
        for (uint32_t b = 0; b < kCross; ++b) {
          find_neighbours(planes.samples[channel - 1 - b], planes.pitch, x, y, other[b]);
        }
        const int16_t* const value = planes.samples[channel] + at;
        int32_t sum[kBlockEdge];
        int16_t twice[kBlockEdge];  // the predictions, before they are clamped to the range
        for (uint32_t k = 0; k < kBlockEdge; k += R::kShorts) {
          const auto pair = [&](const int16_t* a, const int16_t* b) {
            return R::interleave(R::load(a + k), R::load(b + k));
          };
          typename R::InterleavedSums total{R::all_pairs(32), R::all_pairs(32)};
          for (uint32_t i = 0; i < 4; ++i) {
            total.add(pair(own.at[2 * i], own.at[2 * i + 1]), R::all_pairs(weights[i]));
          }
          if (y != 0) {
            total.add(pair(error.at[kN], error.at[kNW]), R::all_pairs(weights[4]));
            total.add(pair(error.at[kNE], error.at[kNN]), R::all_pairs(weights[5]));
          }
          for (uint32_t b = 0; b < kCross; ++b) {
            const int16_t* current = planes.samples[channel - 1 - b] + at;
            total.add(pair(other[b].at[kW], other[b].at[kN]), R::all_pairs(weights[6 + 2 * b]));
            total.add(pair(other[b].at[kNW], current), R::all_pairs(weights[7 + 2 * b]));
          }
          if constexpr (kCross > 0) {
            total.add(pair(planes.errors[channel - 1] + at, planes.errors[channel - kCross] + at),
                      R::all_pairs(weights[PairedWeights<kCross>::kPairs - 1]));
          }
          if constexpr (kGuess) {
            total.low >>= kWeightShift - 1;
            total.high >>= kWeightShift - 1;
            R::store(twice + k, R::narrow(total));
          } else {
            total.low <<= kSumShift;
            total.high <<= kSumShift;
            R::store_sums(sum + k, total);
          }
        }
        // Stores what follows from `twice`. Returns whether no prediction was out of range.
        const auto store_row = [&] {
          Row changed{};
          for (uint32_t k = 0; k < kBlockEdge; k += R::kShorts) {
            const Row v = R::load(value + k), exact = R::load(twice + k);
            const Row clamped = R::between(exact, 0, static_cast<int16_t>(2 * maximum + 1));
            const Row e = R::between(v - (clamped >> 1), kMinError, kMaxError);
            R::store(planes.predicted[channel] + at + k, clamped);
            R::store(errors + x + k, e);
            changed |= (v - e) ^ (exact >> 1);
          }
          return !R::any(changed);
        };
        if constexpr (kGuess) {
          store_row();
          continue;
        }
        // In row 0 the errors of all upper neighbours are W's.
        const uint32_t w_w = static_cast<uint32_t>(y == 0 ? w[8] + w[9] + w[10] + w[11] + w[13] : w[8]) << kSumShift;
        const uint32_t w_ww = static_cast<uint32_t>(w[12]) << kSumShift;
        const auto predict_row = [&](auto clamps) {
          int32_t before = e_w, before_that = e_ww;
          for (uint32_t k = 0; k < kBlockEdge; ++k) {
            const int32_t s =
                static_cast<int32_t>(static_cast<uint32_t>(sum[k]) + w_ww * static_cast<uint32_t>(before_that) +
                                     w_w * static_cast<uint32_t>(before));
            const int32_t p = s >> (kSumShift + kWeightShift);
            twice[k] = static_cast<int16_t>(s >> (kSumShift + kWeightShift - 1));
            before_that = before;
            before = value[k] - p;
            if constexpr (clamps) {
              const int32_t clamped = p < 0 ? 0 : p > maximum ? maximum : p;
              before = value[k] - clamped;
              before = before < kMinError ? kMinError : before > kMaxError ? kMaxError : before;
            }
          }
        };
        // Few predictions are out of range, and the chain from error to error is shorter without clamping. So try that.
        predict_row(std::false_type());
        if (!store_row()) {
          predict_row(std::true_type());
          store_row();
        }
        e_w = errors[x + kBlockEdge - 1];
        e_ww = errors[x + kBlockEdge - 2];
        if (sums != nullptr) {
          if (x != 0 || y == 0) error.at[kW] = errors + x - 1;
          if (x == 0) error.at[kW] = errors - 1;
          if (y == 0) error.at[kN] = error.at[kNW] = error.at[kNE] = error.at[kW];
          int16_t level[kBlockEdge], size[kBlockEdge];
          for (uint32_t k = 0; k < kBlockEdge; k += R::kShorts) {
            R::store(level + k, fit_level(own, error, kCross > 0 ? planes.errors[channel - 1] + at : nullptr, k));
            const Row p = R::load(planes.predicted[channel] + at + k) >> 1;
            R::store(size + k, R::magnitude(R::load(value + k) - p));
          }
          const uint32_t columns = smaller(kBlockEdge, planes.width - x);
          for (uint32_t k = 0; k < columns; ++k) {
            level_sums[static_cast<uint16_t>(level[k])] += uint64_t{1} << 32 | static_cast<uint16_t>(size[k]);
          }
        }
      }
      fill_margins(errors, planes.width, planes.pitch);
    }
    for (uint32_t level = 0; sums != nullptr && level < kFitLevels; ++level) {
      sums[level][0] += level_sums[level] >> 32;
      sums[level][1] += level_sums[level] & 0xFFFFFFFF;
    }
  }

  // Predicts every sample with its block's class and fills `errors` and `predicted`. If `sums` is not null, it
  // receives the number of samples and the sum of their |errors| for each fit level.
  static void evaluate(const DensePlanes& planes, uint32_t channel, const TapWeights* predictors, uint64_t (*sums)[2]) {
    constexpr decltype(&evaluate_as<0, false>) kFunctions[] = {evaluate_as<0, false>, evaluate_as<1, false>,
                                                               evaluate_as<2, false>};
    kFunctions[cross_channels(channel)](planes, channel, predictors, sums);
  }

  // Like evaluate(), approximate but much faster.
  static void guess(const DensePlanes& planes, uint32_t channel, const TapWeights* predictors) {
    constexpr decltype(&evaluate_as<0, true>) kFunctions[] = {evaluate_as<0, true>, evaluate_as<1, true>,
                                                              evaluate_as<2, true>};
    kFunctions[cross_channels(channel)](planes, channel, predictors, nullptr);
  }
};

// Pointers to these functions, for the target that is chosen at run time.
struct DenseKernels {
  void (*accumulate)(const DensePlanes&, uint32_t, const FitScales&, uint32_t, int64_t*);
  void (*assign)(const DensePlanes&, uint32_t, const FitScales&, const TapWeights*, const uint32_t*, uint32_t, bool);
  void (*evaluate)(const DensePlanes&, uint32_t, const TapWeights*, uint64_t (*)[2]);
  void (*guess)(const DensePlanes&, uint32_t, const TapWeights*);
  void (*accumulate_activity)(const DensePlanes&, uint32_t, const uint8_t*, const int16_t*, uint32_t, int64_t*);
  void (*read_symbols)(const DensePlanes&, uint32_t, const uint8_t*, uint8_t*, uint16_t*);
};

template <class S>
constexpr DenseKernels kernels_of() {
  using K = FitKernels<S>;
  return {K::accumulate, K::assign, K::evaluate, K::guess, K::accumulate_activity, K::read_symbols};
}

}  // namespace l3
