// The arithmetic of the fit of a token model: features, normal equations, choice of classes. Sums of floats are added
// in the same order on every processor target.
#pragma once

#include "engine/dense_fit_kernels.h"
#include "engine/token_kernels.h"

namespace l3 {

// The expected |error|, by the activity around the sample, and the cost of each class, in units of 2^-15 bits.
struct TokenScales {
  float of[kScaleLevels];
  int32_t class_costs[kMaxClasses];
};

// The features of a block's samples, 16 to a row, which the weights of a predictor multiply. Taps whose weights add up
// to a constant are stored as differences from W. The last one is the target. Rows without samples that are coded by
// tokens are left out.
struct FeatureBlock {
  uint32_t samples;  // a multiple of 32
  alignas(64) float at[kMaxFeatures + 1][kBlockPixels];
  alignas(64) float weight[kBlockPixels];   // 0 for samples that are not coded by tokens
  alignas(64) float inverse[kBlockPixels];  // of the expected |error|; 0 for the same ones
};

template <class S>  // a ShortVectors
struct TokenFitKernels : TokenKernelsOf<S> {
  using Base = TokenKernelsOf<S>;
  using Base::all;
  using Base::any_escapes;
  using Base::find_neighbours;
  using Base::find_values;
  using Base::float_bits;
  using Base::kInts;
  using Base::larger;
  using Base::lesser;
  using Base::load;
  using Base::magnitude;
  using Base::read_terms;
  using Base::store;
  using typename Base::Floats;
  using typename Base::Ints;
  using typename Base::Terms;

  L3_INLINE static Floats load(const float* from) {
    Floats v;
    __builtin_memcpy(&v, from, sizeof(v));
    return v;
  }
  L3_INLINE static void store(float* to, const Floats& v) { __builtin_memcpy(to, &v, sizeof(v)); }
  L3_INLINE static Floats floats_of(const Ints& v) { return __builtin_convertvector(v, Floats); }
  L3_INLINE static Floats magnitude(const Floats& v) { return (Floats)((Ints)v & 0x7FFFFFFF); }

  // The levels of the scales of 16 samples: two per octave of the activity.
  L3_INLINE static void read_levels(const TokenRow& own, const TokenRow& errors, int32_t* levels) {
    for (uint32_t k = 0; k < kBlockEdge; k += kInts) {
      const auto size_of = [&](TokenNeighbour n) { return magnitude(load(errors.at[n] + k)); };
      const Ints near = size_of(kTokenW) + size_of(kTokenN), corner = load(own.at[kTokenNw] + k);
      const Ints sum = near + near + size_of(kTokenNw) + size_of(kTokenNe) +
                       magnitude(load(own.at[kTokenW] + k) - corner) + magnitude(load(own.at[kTokenN] + k) - corner);
      store(levels + k, lesser((float_bits(sum + 1) >> 22) - (127 << 1), all(kScaleLevels - 1)));
    }
  }

  // Counts the samples that are coded by tokens and adds up their |errors|, by level.
  static void add_scales(const TokenPlanes& planes, uint32_t c, uint64_t (*sums)[2]) {
    TokenRow own, errors;
    for (uint32_t y = 0; y < planes.height; ++y) {
      for (uint32_t x = 0; x < planes.width; x += kBlockEdge) {
        const size_t at = y * planes.pitch + x;
        if (!any_escapes(planes.symbols + at)) continue;
        find_values(planes, c, x, y, own);
        find_neighbours(planes.errors[c], planes.pitch, x, y, errors);
        int32_t level[kBlockEdge];
        read_levels(own, errors, level);
        for (uint32_t k = 0; k < kBlockEdge; ++k) {
          if (planes.symbols[at + k] != kMatchNone) continue;
          const int32_t error = planes.errors[c][at + k];
          sums[level[k]][0] += 1;
          sums[level[k]][1] += static_cast<uint32_t>(error < 0 ? -error : error);
        }
      }
    }
  }

  static void read_block(const TokenPlanes& planes, uint32_t c, uint32_t b, const TokenScales& scales,
                         FeatureBlock& block) {
    const uint32_t x = b % planes.blocks_across * kBlockEdge, y0 = b / planes.blocks_across * kBlockEdge;
    const uint32_t count = feature_count(c);
    block.samples = 0;
    TokenRow own, errors, other[2];
    for (uint32_t y = y0; y < smaller(y0 + kBlockEdge, planes.height); ++y) {
      const size_t at = y * planes.pitch + x;
      if (!any_escapes(planes.symbols + at)) continue;
      const uint32_t to = block.samples;
      block.samples += kBlockEdge;
      find_values(planes, c, x, y, own);
      find_neighbours(planes.errors[c], planes.pitch, x, y, errors);
      const auto put = [&](uint32_t f, uint32_t k, const Ints& v) { store(block.at[f] + to + k, floats_of(v)); };
      for (uint32_t k = 0; k < kBlockEdge; k += kInts) {
        const Ints w = load(own.at[kTokenW] + k);
        for (uint32_t i = 0; i < 7; ++i) put(i, k, load(own.at[i + 1] + k) - w);
        for (uint32_t i = 0; i < 6; ++i) put(7 + i, k, load(errors.at[i] + k));
        put(count, k, load(planes.values[c] + at + k) - w);
      }
      for (uint32_t i = 0; i < cross_channels(c); ++i) {
        const int32_t* const values = planes.values[c - 1 - i];
        find_neighbours(values, planes.pitch, x, y, other[i]);
        for (uint32_t k = 0; k < kBlockEdge; k += kInts) {
          const Ints w = load(other[i].at[kTokenW] + k);
          const uint32_t f = 13 + 4 * i;
          put(f, k, load(planes.errors[c - 1 - i] + at + k));
          put(f + 1, k, load(other[i].at[kTokenN] + k) - w);
          put(f + 2, k, load(other[i].at[kTokenNw] + k) - w);
          put(f + 3, k, load(values + at + k) - w);
        }
      }
      int32_t level[kBlockEdge];
      float scale[kBlockEdge];
      read_levels(own, errors, level);
      for (uint32_t k = 0; k < kBlockEdge; ++k) scale[k] = scales.of[level[k]];
      int32_t escapes[kBlockEdge];
      for (uint32_t k = 0; k < kBlockEdge; ++k) escapes[k] = planes.symbols[at + k] == kMatchNone ? -1 : 0;
      for (uint32_t k = 0; k < kBlockEdge; k += kInts) {
        const Floats expected = load(scale + k), error = magnitude(floats_of(load(planes.errors[c] + at + k)));
        const auto put_escape = [&](float* row, const Floats& v) {
          store(row + to + k, (Floats)((Ints)v & load(escapes + k)));
        };
        put_escape(block.weight, 1 / (expected * (expected + error)));
        put_escape(block.inverse, 1 / expected);
      }
    }
    if (block.samples % 32 == 0) return;
    const size_t bytes = kBlockEdge * sizeof(float);
    for (uint32_t f = 0; f <= count; ++f) __builtin_memset(block.at[f] + block.samples, 0, bytes);
    __builtin_memset(block.weight + block.samples, 0, bytes);
    __builtin_memset(block.inverse + block.samples, 0, bytes);
    block.samples += kBlockEdge;
  }

  // sums[j] += the dot product of a and b[j].
  template <uint32_t kCount>
  L3_INLINE static void add_dots(const float* a, const float (*b)[kBlockPixels], uint32_t samples, double* sums) {
    constexpr uint32_t kParts = kBlockEdge / kInts;
    Floats total[kCount][kParts] = {};
    for (uint32_t x = 0; x < samples; x += kBlockEdge) {
      for (uint32_t part = 0; part < kParts; ++part) {
        const Floats v = load(a + x + part * kInts);
        for (uint32_t j = 0; j < kCount; ++j) total[j][part] += v * load(b[j] + x + part * kInts);
      }
    }
    using Quad = typename VectorTypes<16>::F32;
    for (uint32_t j = 0; j < kCount; ++j) {
      Quad quads[4];
      __builtin_memcpy(quads, total[j], sizeof(quads));
      const Quad sum = (quads[0] + quads[1]) + (quads[2] + quads[3]);
      sums[j] += static_cast<double>((sum[0] + sum[1]) + (sum[2] + sum[3]));
    }
  }

  // Adds the weighted dot products of all pairs of rows: the lower triangle, row by row.
  static void add_triangle(const float (*rows)[kBlockPixels], uint32_t count, const float* weight, uint32_t samples,
                           double* sums) {
    alignas(64) float weighted[kBlockPixels];
    for (uint32_t i = 0; i < count; ++i) {
      for (uint32_t x = 0; x < samples; x += kInts) store(weighted + x, load(rows[i] + x) * load(weight + x));
      uint32_t j = 0;
      for (; j + 4 <= i + 1; j += 4) add_dots<4>(weighted, rows + j, samples, sums + j);
      for (; j <= i; ++j) add_dots<1>(weighted, rows + j, samples, sums + j);
      sums += i + 1;
    }
  }

  // Adds up the weighted products of features for each class. Sets `seen` for the classes of blocks with samples.
  static void accumulate(const TokenPlanes& planes, uint32_t c, const TokenScales& scales, double* products,
                         bool* seen) {
    FeatureBlock block;
    for (uint32_t b = 0; b < planes.block_count(); ++b) {
      if (planes.still[b] != 0) continue;
      read_block(planes, c, b, scales, block);
      if (block.samples == 0) continue;
      const uint32_t k = planes.classes[c][b];
      seen[k] = true;
      add_triangle(block.at, feature_count(c) + 1, block.weight, block.samples, products + k * kMaxProducts);
    }
  }

  // The cost of a block's errors with a predictor: about 2^15 log2((|error| + scale) / scale), summed over its samples.
  // Stops early once it passes `bound`.
  L3_INLINE static int32_t cost_of(const FeatureBlock& block, const float* weights, uint32_t count, int32_t bound) {
    constexpr uint32_t kParts = 32 / kInts;
    Ints total = all(0);
    int32_t cost = 0;
    for (uint32_t x = 0; x < block.samples; x += 32) {
      Floats error[kParts];
      for (uint32_t part = 0; part < kParts; ++part) error[part] = load(block.at[count] + x + part * kInts);
      for (uint32_t f = 0; f < count; ++f) {
        for (uint32_t part = 0; part < kParts; ++part) error[part] -= weights[f] * load(block.at[f] + x + part * kInts);
      }
      for (uint32_t part = 0; part < kParts; ++part) {
        const Floats ratio = magnitude(error[part]) * load(block.inverse + x + part * kInts) + 1;
        total += ((Ints)ratio - (127 << 23)) >> 8;
      }
      cost = 0;
      for (uint32_t k = 0; k < kInts; ++k) cost += total[k];
      if (cost >= bound) break;
    }
    return cost;
  }

  // Gives each block the class with the lowest cost, including the cost of coding the class.
  static void assign(const TokenPlanes& planes, uint32_t c, const TokenScales& scales, const TapWeights* predictors,
                     uint32_t classes) {
    const uint32_t count = feature_count(c);
    float weights[kMaxClasses][kMaxFeatures];
    for (uint32_t k = 0; k < classes; ++k) {
      for (uint32_t f = 0; f < count; ++f) {
        weights[k][f] = static_cast<float>(predictors[k].of[tap_of(f)]) / (1 << kWeightShift);
      }
    }
    FeatureBlock block;
    for (uint32_t b = 0; b < planes.block_count(); ++b) {
      if (planes.still[b] != 0) continue;
      read_block(planes, c, b, scales, block);
      int32_t best = INT32_MAX;
      uint32_t best_class = 0;
      for (uint32_t k = 0; k < classes; ++k) {
        const int32_t of_class = scales.class_costs[k];
        if (of_class >= best) continue;
        const int32_t cost = of_class + cost_of(block, weights[k], count, best - of_class);
        if (cost >= best) continue;
        best = cost;
        best_class = k;
      }
      planes.classes[c][b] = static_cast<uint8_t>(best_class);
    }
  }

  // Adds up the products of activity terms and of |error|, the last one, weighted by what `activity` expects.
  static void accumulate_activity(const TokenPlanes& planes, uint32_t c, const uint8_t* activity, double* products) {
    const uint32_t count = 9 + cross_channels(c);
    alignas(64) float rows[kActivityTerms + 1][kBlockPixels];
    alignas(64) float weight[kBlockPixels];
    Terms terms;
    uint32_t filled = 0;
    for (uint32_t y = 0; y < planes.height; ++y) {
      for (uint32_t x = 0; x < planes.width; x += kBlockEdge) {
        const size_t at = y * planes.pitch + x;
        if (!any_escapes(planes.symbols + at)) continue;
        read_terms(planes, c, x, y, terms);
        int32_t escapes[kBlockEdge];
        for (uint32_t k = 0; k < kBlockEdge; ++k) escapes[k] = planes.symbols[at + k] == kMatchNone ? -1 : 0;
        for (uint32_t k = 0; k < kBlockEdge; k += kInts) {
          Floats sum = floats_of(all(kActivityFloor));
          for (uint32_t i = 0; i < count; ++i) {
            const Floats term = floats_of(load(terms.of[i] + k));
            store(rows[i] + filled + k, term);
            sum += static_cast<float>(activity[i]) * term;
          }
          store(rows[count] + filled + k, magnitude(floats_of(load(planes.errors[c] + at + k))));
          const Floats expected = sum / 64 + 0.55f;
          store(weight + filled + k, (Floats)((Ints)(1 / (expected * expected)) & load(escapes + k)));
        }
        filled += kBlockEdge;
        if (filled < kBlockPixels) continue;
        add_triangle(rows, count + 1, weight, filled, products);
        filled = 0;
      }
    }
    add_triangle(rows, count + 1, weight, filled, products);
  }
};

// Pointers to these functions, for the target that is chosen at run time.
struct TokenKernels {
  void (*find_matches)(const TokenPlanes&, bool, bool);
  void (*predict)(const TokenPlanes&, uint32_t, const TapWeights*, uint32_t);
  void (*read_octaves)(const TokenPlanes&, const uint8_t*, uint8_t*);
  void (*read_symbols)(const TokenPlanes&, uint32_t, const uint8_t*, uint32_t, TokenPlace*);
  void (*add_scales)(const TokenPlanes&, uint32_t, uint64_t (*)[2]);
  void (*accumulate)(const TokenPlanes&, uint32_t, const TokenScales&, double*, bool*);
  void (*assign)(const TokenPlanes&, uint32_t, const TokenScales&, const TapWeights*, uint32_t);
  void (*accumulate_activity)(const TokenPlanes&, uint32_t, const uint8_t*, double*);
};

template <class S>
constexpr TokenKernels token_kernels_of() {
  using K = TokenFitKernels<S>;
  return {K::find_matches, K::predict,    K::read_octaves, K::read_symbols,
          K::add_scales,   K::accumulate, K::assign,       K::accumulate_activity};
}

}  // namespace l3
