// The rules of resizing, for processors and GPUs. They use integers, and floats only where no product can be fused with
// a sum, so that every machine computes the same tables. Kernels and sample positions are those of
// torchvision.transforms.v2 with antialias=True and of Pillow.
//
// Both axes of an image are resized alone. Along an axis, a *box* of the upright image is resized; a *window* of the
// result is kept; it is padded; and it may be mirrored.
#pragma once

#include <cstdint>

#ifdef __CUDACC__
#define L3_RULE __host__ __device__ inline
#define L3_MEMBER_RULE __host__ __device__
#else
#define L3_RULE inline
#define L3_MEMBER_RULE
#endif

namespace base {

enum Filter : uint32_t {
  kNearest = 0,       // torch's "nearest"
  kNearestExact = 1,  // torch's "nearest-exact"
  kBilinear = 2,
  kBicubic = 3,  // a = -0.5
  kArea = 4,     // Pillow's BOX
};

// Whether samples are rounded and limited after each pass. Bicubic interpolation of bytes to integers does so in
// Pillow and torchvision, first along the rows of the upright image; what is beyond black and white is then lost.
// kLimitAfterColumns combines the columns first.
enum Between : uint32_t { kKeepBetween = 0, kLimitAfterColumns = 1, kLimitAfterRows = 2 };

enum PadMode : uint32_t { kPadValue = 0, kPadEdge = 1, kPadReflect = 2 };

// a * b + c, rounded once.
#ifdef __CUDA_ARCH__
__device__ inline float fused(float a, float b, float c) { return __fmaf_rn(a, b, c); }
#else
inline float fused(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
#endif

// No member exceeds 2^24.
struct ResizeAxis {
  uint32_t box;              // samples of the box
  uint32_t resized;          // samples that they become
  uint32_t window;           // the first resized sample that is kept
  uint32_t content;          // how many are kept
  uint32_t before;           // samples of padding before them
  uint32_t out;              // samples of the output
  uint32_t total;            // the same and samples after it, which are padding with a value
  uint32_t pad;              // a PadMode
  uint32_t filter;           // a Filter
  uint32_t first;            // the first sample of the box that is needed: the region begins there
  uint32_t region;           // how many are needed
  uint32_t source_mirrored;  // the region is stored in reverse
  uint32_t out_mirrored;     // the output is written in reverse
  uint32_t precision;        // of rounded weights; 0: of shared ones (see below)
};

// The samples of the box that make a sample.
struct Taps {
  uint32_t first, count;
};

// Which sample of the content is at a position of the output; -1: padding with a value.
L3_RULE int64_t content_at(const ResizeAxis& axis, uint32_t position) {
  if (position >= axis.out) return -1;
  const int64_t at =
      (axis.out_mirrored != 0 ? int64_t{axis.out} - 1 - position : int64_t{position}) - int64_t{axis.before};
  const int64_t count = axis.content;
  if (at >= 0 && at < count) return at;
  if (axis.pad == kPadValue) return -1;
  if (axis.pad == kPadEdge || count == 1) return at < 0 ? 0 : count - 1;
  const int64_t period = 2 * (count - 1);
  const int64_t in_period = (at % period + period) % period;
  return in_period < count ? in_period : period - in_period;
}

// How much a filter reaches to each side, in halves of max(box, resized) / resized.
L3_RULE int64_t reach_of(uint32_t filter) { return filter == kBilinear ? 2 : filter == kBicubic ? 4 : 1; }

struct AreaScale {
  double scale, filter;
  L3_MEMBER_RULE explicit AreaScale(const ResizeAxis& axis)
      : scale(static_cast<double>(axis.box) / axis.resized), filter(scale < 1 ? 1 : scale) {}
  L3_MEMBER_RULE double centre_of(uint32_t number) const { return (number + 0.5) * scale; }
};

// `number` is the number of the resized sample.
L3_RULE Taps taps_of(const ResizeAxis& axis, uint32_t number) {
  if (axis.filter <= kNearestExact) {
    // In single precision, as torch computes it on processors.
    const float scale = static_cast<float>(axis.box) / static_cast<float>(axis.resized);
    float at = static_cast<float>(number) * scale;
    if (axis.filter == kNearestExact) {
      const float centre = fused(scale, static_cast<float>(number) + 0.5f, -0.5f);
      at = (centre > 0 ? centre : 0.0f) + 0.5f;
    }
    const uint32_t place = static_cast<uint32_t>(at);
    return {place < axis.box ? place : axis.box - 1, 1};
  }
  if (axis.filter == kArea) {
    // In double precision, as Pillow does it: here a rounding error decides whether a sample takes part.
    const AreaScale scale(axis);
    const double centre = scale.centre_of(number), support = 0.5 * scale.filter;
    const double first = centre - support + 0.5, end = centre + support + 0.5;
    const uint32_t begin = first > 0 ? static_cast<uint32_t>(first) : 0;
    const uint32_t stop = end < axis.box ? static_cast<uint32_t>(end) : axis.box;
    return {begin, stop > begin ? stop - begin : 0};
  }
  // Positions in units of 1 / (2 * resized) samples of the box.
  const int64_t box = axis.box, resized = axis.resized;
  const int64_t centre = (2 * int64_t{number} + 1) * box;
  const int64_t support = reach_of(axis.filter) * (box > resized ? box : resized);
  int64_t first = centre - support + resized;
  first = first > 0 ? first / (2 * resized) : 0;
  int64_t end = (centre + support + resized) / (2 * resized);
  end = end < box ? end : box;
  return {static_cast<uint32_t>(first), static_cast<uint32_t>(end > first ? end - first : 0)};
}

// The weight of a tap, not normalised, in units of 2^-20.
L3_RULE int64_t weight_of(const ResizeAxis& axis, uint32_t number, uint32_t tap) {
  constexpr int kBits = 20;
  constexpr int64_t kOne = int64_t{1} << kBits;
  if (axis.filter <= kNearestExact) return kOne;
  if (axis.filter == kArea) {
    const AreaScale scale(axis);
    const double at = (tap - scale.centre_of(number) + 0.5) * (1.0 / scale.filter);
    return at > -0.5 && at <= 0.5 ? kOne : 0;
  }
  const int64_t box = axis.box, resized = axis.resized;
  const int64_t unit = 2 * (box > resized ? box : resized);
  const int64_t signed_distance = (2 * int64_t{tap} + 1) * resized - (2 * int64_t{number} + 1) * box;
  const int64_t distance = signed_distance < 0 ? -signed_distance : signed_distance;
  if (axis.filter == kBilinear) return distance < unit ? (unit - distance) * kOne / unit : 0;
  if (distance >= 2 * unit) return 0;
  const int64_t x = distance * kOne / unit;
  const int64_t square = (x * x) >> kBits;
  const int64_t cube = (square * x) >> kBits;
  if (distance < unit) return (3 * cube - 5 * square) / 2 + kOne;
  return (5 * square - cube) / 2 - 4 * x + 2 * kOne;
}

// Weights of 16 bits add up to 2^precision exactly, so that flat areas stay flat. The largest is below 2^15.
L3_RULE uint32_t precision_of(const ResizeAxis& axis, uint32_t most) {
  if (axis.precision != 0) return axis.precision;
  uint32_t precision = 14;
  for (uint64_t size = 2 * uint64_t{axis.resized}; size <= axis.box && precision < most; size *= 2) ++precision;
  return precision;
}
constexpr uint32_t kMostRowPrecision = 20;  // of the first pass, which combines rows of samples
// The second pass combines columns of what the first gave. Samples of at most 8 bits then have 16 with sign, overshoot
// and a fraction. Sums have 32: where hundreds of columns become one, weights need more of them.
L3_RULE uint32_t bits_for_weights(const ResizeAxis& columns) { return columns.box / 256 >= columns.resized ? 4 : 0; }
L3_RULE uint32_t most_column_precision(const ResizeAxis& columns) { return 16 + bits_for_weights(columns); }
L3_RULE uint32_t fraction_of(const ResizeAxis& columns, uint32_t bits, uint32_t between) {
  return between == kKeepBetween ? 14 - bits - bits_for_weights(columns) : 0;
}

// The sum of the first taps' weights out of `sum`, as a number of 2^-precision, rounded.
L3_RULE int64_t share_of(int64_t weights, int64_t sum, uint32_t precision) {
  const int64_t product = (weights << precision) + sum / 2;
  // Rounds down also below 0.
  return product >= 0 ? product / sum : -((-product + sum - 1) / sum);
}

// The most taps of a sample.
L3_RULE uint32_t most_taps(const ResizeAxis& axis) {
  if (axis.filter <= kNearestExact) return 1;
  const uint64_t larger = axis.box > axis.resized ? axis.box : axis.resized;
  const uint64_t most = static_cast<uint64_t>(reach_of(axis.filter)) * larger / axis.resized + 2;
  return static_cast<uint32_t>(most < axis.region ? most : axis.region);
}

// The first tap of a sample in the region as it is stored.
L3_RULE uint32_t first_stored(const ResizeAxis& axis, const Taps& taps) {
  const uint32_t begin = taps.first - axis.first;
  return axis.source_mirrored != 0 ? axis.region - begin - taps.count : begin;
}

// Rounded weights are those that torchvision and Pillow use for bytes: each is rounded alone. They serve where samples
// are limited between the passes. A product and a sum must not be fused, so that GPUs compute the same.
#ifdef __CUDA_ARCH__
__device__ inline double times(double a, double b) { return __dmul_rn(a, b); }
__device__ inline double plus(double a, double b) { return __dadd_rn(a, b); }
#else
inline double times(double a, double b) { return a * b; }
inline double plus(double a, double b) { return a + b; }
#endif

L3_RULE double bicubic_weight(const ResizeAxis& axis, uint32_t number, uint32_t tap) {
  const double scale = static_cast<double>(axis.box) / axis.resized;
  const double at = plus(plus(tap, 0.5), -times(number + 0.5, scale));
  const double scaled = scale > 1 ? times(at, 1.0 / scale) : at, x = scaled < 0 ? -scaled : scaled;
  if (x < 1) return plus(times(times(plus(times(1.5, x), -2.5), x), x), 1);
  if (x < 2) return times(plus(times(plus(times(plus(x, -5), x), 8), x), -4), -0.5);
  return 0;
}

// Calls put(tap, weight) as below, with doubles that add up to about 1.
template <class Put>
L3_RULE void put_bicubic_weights(const ResizeAxis& axis, uint32_t number, const Taps& taps, const Put& put) {
  double sum = 0;
  for (uint32_t tap = 0; tap < taps.count; ++tap) sum = plus(sum, bicubic_weight(axis, number, taps.first + tap));
  for (uint32_t tap = 0; tap < taps.count; ++tap) {
    put(axis.source_mirrored != 0 ? taps.count - 1 - tap : tap, bicubic_weight(axis, number, taps.first + tap) / sum);
  }
}

// A sample of alpha / most in front of a background, rounded; `is_premultiplied`: it is multiplied by alpha already.
// Samples have at most 16 bits, so no sum exceeds 32.
L3_RULE uint32_t blended(uint32_t sample, uint32_t background, uint32_t alpha, uint32_t most, bool is_premultiplied) {
  const uint32_t behind = background * (most - alpha) + most / 2;
  if (!is_premultiplied) return (sample * alpha + behind) / most;
  const uint32_t sum = sample + behind / most;
  return sum < most ? sum : most;
}

// The largest precision with which all weights have 16 bits.
inline uint32_t rounded_precision(const ResizeAxis& axis) {
  double most = 0;
  for (uint32_t i = 0; i < axis.resized; ++i) {
    put_bicubic_weights(axis, i, taps_of(axis, i), [&](uint32_t, double w) { most = w > most ? w : most; });
  }
  uint32_t precision = 0;
  while (precision < 22 && static_cast<int>(0.5 + most * (1 << (precision + 1))) < 1 << 15) ++precision;
  return precision;
}

// Decides what happens between the passes if samples of `bits` bits become integers, or floats, and sets the precision
// of both axes accordingly. `is_on_its_side`: the rows of the stored image are columns of the upright image.
inline Between settle_between(ResizeAxis& rows, ResizeAxis& columns, uint32_t bits, bool is_float,
                              bool is_on_its_side) {
  const bool of_rows = rows.filter == kBicubic, of_columns = columns.filter == kBicubic;
  rows.precision = columns.precision = 0;
  if (bits > 8 || is_float || (!of_rows && !of_columns)) return kKeepBetween;
  if (of_rows) rows.precision = rounded_precision(rows);
  if (of_columns) columns.precision = rounded_precision(columns);
  return of_rows && of_columns && !is_on_its_side ? kLimitAfterColumns : kLimitAfterRows;
}

// The sum of rounded weights and samples as a sample.
L3_RULE int32_t limited_sample(int32_t sum, uint32_t precision, int32_t most) {
  const int32_t rounded = (sum + (1 << (precision - 1))) >> precision;
  return rounded < 0 ? 0 : rounded > most ? most : rounded;
}

template <class Put>
L3_RULE void put_rounded_weights(const ResizeAxis& axis, uint32_t number, const Taps& taps, const Put& put) {
  const double one = 1 << axis.precision;
  put_bicubic_weights(axis, number, taps, [&](uint32_t tap, double weight) {
    const double scaled = times(weight, one);
    put(tap, static_cast<int32_t>(scaled < 0 ? plus(scaled, -0.5) : plus(scaled, 0.5)));
  });
}

// Calls put(tap, weight) for each tap of a sample, in no particular order; taps count from first_stored(). The weights
// are integers that add up to 2^precision.
template <class Put>
L3_RULE void put_weights(const ResizeAxis& axis, uint32_t number, const Taps& taps, uint32_t precision,
                         const Put& put) {
  if (axis.precision != 0) return put_rounded_weights(axis, number, taps, put);
  int64_t sum = 0;
  for (uint32_t tap = 0; tap < taps.count; ++tap) sum += weight_of(axis, number, taps.first + tap);
  if (sum == 0) sum = 1;
  int64_t weights = 0, shares = 0;
  for (uint32_t tap = 0; tap < taps.count; ++tap) {
    weights += weight_of(axis, number, taps.first + tap);
    const int64_t share = share_of(weights, sum, precision);
    put(axis.source_mirrored != 0 ? taps.count - 1 - tap : tap, static_cast<int32_t>(share - shares));
    shares = share;
  }
}
// The same with floats, which add up to about 1.
template <class Put>
L3_RULE void put_fine_weights(const ResizeAxis& axis, uint32_t number, const Taps& taps, const Put& put) {
  int64_t sum = 0;
  for (uint32_t tap = 0; tap < taps.count; ++tap) sum += weight_of(axis, number, taps.first + tap);
  if (sum == 0) sum = 1;
  for (uint32_t tap = 0; tap < taps.count; ++tap) {
    const double weight = static_cast<double>(weight_of(axis, number, taps.first + tap)) / static_cast<double>(sum);
    put(axis.source_mirrored != 0 ? taps.count - 1 - tap : tap, static_cast<float>(weight));
  }
}

}  // namespace base
