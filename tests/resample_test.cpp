// Resampler and geometry_of() against a plain implementation of each step, in double precision and one step at a time.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <random>

#include "base/exif.h"
#include "loader/geometry.h"
#include "loader/tensor_writer.h"

namespace {

using namespace loader;

// Pixels of one channel.
struct Plane {
  uint32_t width = 0, height = 0;
  std::vector<double> at;

  Plane(uint32_t w, uint32_t h) : width(w), height(h), at(size_t{w} * h) {}
  double& operator()(uint32_t x, uint32_t y) { return at[size_t{y} * width + x]; }
  double operator()(uint32_t x, uint32_t y) const { return at[size_t{y} * width + x]; }
};

Plane map(uint32_t width, uint32_t height, const std::function<double(uint32_t, uint32_t)>& from) {
  Plane out(width, height);
  for (uint32_t y = 0; y < height; ++y) {
    for (uint32_t x = 0; x < width; ++x) out(x, y) = from(x, y);
  }
  return out;
}

// What the numbers of EXIF mean: where the first row and the first column of the stored image are.
Plane upright_of(const Plane& p, uint32_t orientation) {
  const uint32_t w = p.width, h = p.height;
  switch (orientation) {
    case 2: return map(w, h, [&](uint32_t x, uint32_t y) { return p(w - 1 - x, y); });          // top, right
    case 3: return map(w, h, [&](uint32_t x, uint32_t y) { return p(w - 1 - x, h - 1 - y); });  // bottom, right
    case 4: return map(w, h, [&](uint32_t x, uint32_t y) { return p(x, h - 1 - y); });          // bottom, left
    case 5: return map(h, w, [&](uint32_t x, uint32_t y) { return p(y, x); });                  // left, top
    case 6: return map(h, w, [&](uint32_t x, uint32_t y) { return p(y, h - 1 - x); });          // right, top
    case 7: return map(h, w, [&](uint32_t x, uint32_t y) { return p(w - 1 - y, h - 1 - x); });  // right, bottom
    case 8: return map(h, w, [&](uint32_t x, uint32_t y) { return p(w - 1 - y, x); });          // left, bottom
    default: return p;
  }
}

double kernel(base::Filter filter, double x) {
  x = std::abs(x);
  if (filter == base::kBilinear) return std::max(0.0, 1 - x);
  constexpr double kA = -0.5;
  if (x < 1) return ((kA + 2) * x - (kA + 3)) * x * x + 1;
  return x < 2 ? (((x - 5) * x + 8) * x - 4) * kA : 0;
}

// The weights of all samples of a row for one sample of the result.
std::vector<double> weights_of(base::Filter filter, uint32_t in, uint32_t out, uint32_t i) {
  std::vector<double> weights(in);
  if (filter <= base::kNearestExact) {
    const float scale = static_cast<float>(in) / static_cast<float>(out);
    const float centre = std::max(std::fma(scale, static_cast<float>(i) + 0.5f, -0.5f), 0.0f);
    const float at = filter == base::kNearest ? static_cast<float>(i) * scale : centre + 0.5f;
    weights[std::min(static_cast<uint32_t>(std::floor(at)), in - 1)] = 1;
    return weights;
  }
  const double scale = static_cast<double>(in) / out, stretch = std::max(scale, 1.0), centre = scale * (i + 0.5);
  double sum = 0;
  for (uint32_t j = 0; j < in; ++j) {
    const double x = (j - centre + 0.5) * (1 / stretch);
    weights[j] = kernel(filter, x);
    if (filter == base::kArea) {  // as Pillow: a sample at the very edge may take part or not
      const bool is_inside = j >= static_cast<uint32_t>(std::max(centre - 0.5 * stretch + 0.5, 0.0)) &&
                             j < static_cast<uint32_t>(centre + 0.5 * stretch + 0.5);
      weights[j] = is_inside && x > -0.5 && x <= 0.5 ? 1 : 0;
    }
    sum += weights[j];
  }
  for (double& weight : weights) weight /= sum;
  return weights;
}

// With `limit` above 0, samples are whole numbers from 0 to that after the first pass.
Plane resized(const Plane& p, uint32_t width, uint32_t height, base::Filter filter, double limit) {
  Plane wide(width, p.height);
  for (uint32_t x = 0; x < width; ++x) {
    const std::vector<double> weights = weights_of(filter, p.width, width, x);
    for (uint32_t y = 0; y < p.height; ++y) {
      for (uint32_t j = 0; j < p.width; ++j) wide(x, y) += weights[j] * p(j, y);
    }
  }
  if (limit > 0) {
    for (double& sample : wide.at) sample = std::nearbyint(std::clamp(sample, 0.0, limit));
  }
  Plane out(width, height);
  for (uint32_t y = 0; y < height; ++y) {
    const std::vector<double> weights = weights_of(filter, p.height, height, y);
    for (uint32_t j = 0; j < p.height; ++j) {
      if (weights[j] == 0) continue;
      for (uint32_t x = 0; x < width; ++x) out(x, y) += weights[j] * wide(x, j);
    }
  }
  return out;
}

uint32_t reflected(int64_t at, uint32_t count) {
  if (count == 1) return 0;
  while (at < 0 || at >= count) at = at < 0 ? -at : 2 * (int64_t{count} - 1) - at;
  return static_cast<uint32_t>(at);
}

Plane follow(const Steps& steps, base::Filter filter, const Plane& stored, double pad, double limit = 0) {
  const Plane whole = upright_of(stored, steps.orientation);
  const Plane box = map(steps.box.width, steps.box.height,
                        [&](uint32_t x, uint32_t y) { return whole(steps.box.x + x, steps.box.y + y); });
  const Plane resize = resized(box, steps.resized.width, steps.resized.height, filter, limit);
  const Plane window = map(steps.window.width, steps.window.height,
                           [&](uint32_t x, uint32_t y) { return resize(steps.window.x + x, steps.window.y + y); });
  const Plane padded = map(steps.padded.width, steps.padded.height, [&](uint32_t column, uint32_t row) {
    int64_t x = int64_t{column} - steps.left, y = int64_t{row} - steps.top;
    const bool is_inside = x >= 0 && y >= 0 && x < window.width && y < window.height;
    if (!is_inside && steps.pad_mode == L3_PAD_VALUE) return pad;
    if (steps.pad_mode == L3_PAD_EDGE) {
      x = std::clamp<int64_t>(x, 0, window.width - 1);
      y = std::clamp<int64_t>(y, 0, window.height - 1);
    }
    return window(reflected(x, window.width), reflected(y, window.height));
  });
  Plane turned = map(padded.width, padded.height, [&](uint32_t x, uint32_t y) {
    return padded(steps.mirrored_x ? padded.width - 1 - x : x, steps.mirrored_y ? padded.height - 1 - y : y);
  });
  for (uint32_t i = 0; i < steps.turns; ++i) {
    const Plane before = turned;  // what was on the right is now at the top
    turned = map(before.height, before.width, [&](uint32_t x, uint32_t y) { return before(before.width - 1 - y, x); });
  }
  return turned;
}

class Dice {
 public:
  explicit Dice(uint32_t seed) : engine_(seed) {}
  uint32_t operator()() { return static_cast<uint32_t>(engine_()); }

 private:
  std::mt19937 engine_;
};

struct Picture {
  uint32_t width, height, channels, bits;
  std::vector<uint8_t> bytes;

  Picture(uint32_t w, uint32_t h, uint32_t c, uint32_t b, Dice& dice)
      : width(w), height(h), channels(c), bits(b), bytes(size_t{w} * h * c * (b > 8 ? 2 : 1)) {
    const bool is_hard = dice() % 2 == 0;  // black and white, which makes the most of each error
    for (size_t i = 0; i < size_t{w} * h * c; ++i) {
      const uint32_t most = (1u << b) - 1;
      const uint32_t sample = is_hard ? (dice() % 2) * most : dice() & most;
      if (b > 8) {
        const auto wide = static_cast<uint16_t>(sample);
        std::memcpy(&bytes[2 * i], &wide, 2);
      } else {
        bytes[i] = static_cast<uint8_t>(sample);
      }
    }
  }
  Plane plane(uint32_t channel) const {
    return map(width, height, [&](uint32_t x, uint32_t y) -> double {
      const size_t i = (size_t{y} * width + x) * channels + channel;
      if (bits <= 8) return bytes[i];
      uint16_t wide = 0;
      std::memcpy(&wide, &bytes[2 * i], 2);
      return wide;
    });
  }
  // The region that a geometry needs, as libl3 decodes it.
  std::vector<uint8_t> region(const Geometry& geometry) const {
    const size_t pixel = size_t{channels} * (bits > 8 ? 2 : 1);
    std::vector<uint8_t> out;
    EXPECT_LE(geometry.x + geometry.region_width(), width);
    EXPECT_LE(geometry.y + geometry.region_height(), height);
    for (uint32_t y = 0; y < geometry.region_height(); ++y) {
      const uint8_t* from = bytes.data() + ((size_t{geometry.y} + y) * width + geometry.x) * pixel;
      out.insert(out.end(), from, from + geometry.region_width() * pixel);
    }
    return out;
  }
};

uint32_t dice_up_to(Dice& dice, uint32_t most) { return 1 + dice() % most; }

Steps any_steps(const Picture& picture, Dice& dice, bool may_resize) {
  Steps steps;
  steps.stored = {picture.width, picture.height};
  steps.orientation = dice_up_to(dice, 8);
  const Size image = upright(steps.stored, steps.orientation);
  steps.box.width = dice_up_to(dice, image.width);
  steps.box.height = dice_up_to(dice, image.height);
  steps.box.x = dice() % (image.width - steps.box.width + 1);
  steps.box.y = dice() % (image.height - steps.box.height + 1);
  steps.resized = {steps.box.width, steps.box.height};
  if (may_resize) steps.resized = {dice_up_to(dice, 90), dice_up_to(dice, 90)};
  steps.window.width = dice_up_to(dice, steps.resized.width);
  steps.window.height = dice_up_to(dice, steps.resized.height);
  steps.window.x = dice() % (steps.resized.width - steps.window.width + 1);
  steps.window.y = dice() % (steps.resized.height - steps.window.height + 1);
  steps.pad_mode = dice() % 3;
  steps.left = dice() % 9;
  steps.top = dice() % 9;
  steps.padded = {steps.left + steps.window.width + dice() % 9, steps.top + steps.window.height + dice() % 9};
  steps.mirrored_x = dice() % 2 == 0;
  steps.mirrored_y = dice() % 2 == 0;
  steps.turns = dice() % 4;
  return steps;
}

// Runs a Resampler for values of a type, CHW, without changing colours.
template <class Value>
std::vector<Value> run(Resampler& resampler, const Picture& picture, Geometry geometry, uint32_t type, float pad) {
  geometry.set_between(picture.bits, type);
  l3_tensor_options wanted{};
  const Colours colours = colours_of(wanted, picture.channels, picture.bits, picture.bits, Jitter{});
  Values values;
  values.type = type;
  std::fill_n(values.pad, 4, pad);
  values.row_stride = sizeof(Value) * geometry.width();
  values.plane_stride = values.row_stride * geometry.height();
  std::vector<Value> out(size_t{geometry.width()} * geometry.height() * picture.channels);
  const std::vector<uint8_t> region = picture.region(geometry);
  resampler.run(region.data(), picture.bits, geometry, colours, values, reinterpret_cast<uint8_t*>(out.data()));
  return out;
}

TEST(Resample, DoesEachStepAsItIsDefined) {
  Dice dice(1);
  Resampler resampler;
  for (uint32_t i = 0; i < 1500; ++i) {
    const uint32_t bits = std::array<uint32_t, 5>{1, 4, 8, 12, 16}[i % 5];
    const Picture picture(dice_up_to(dice, 120), dice_up_to(dice, 120), 1 + i / 5 % 4, bits, dice);
    const auto filter = static_cast<base::Filter>(i / 3 % 5);
    const Steps steps = any_steps(picture, dice, i % 7 != 0);
    const Geometry geometry = geometry_of(steps, filter);
    ASSERT_EQ((Size{geometry.width(), geometry.height()}), steps.output());
    const float most = static_cast<float>((1u << bits) - 1), pad = most / 3;
    const std::vector<float> found = run<float>(resampler, picture, geometry, L3_VALUE_F32, pad);
    // Weights of 16 bits and 6 bits of a fraction between the passes.
    const double allowed = filter <= base::kNearestExact ? 0 : bits > 8 ? 1e-5 * most : 4e-4 * most;
    const size_t plane = size_t{geometry.width()} * geometry.height();
    for (uint32_t c = 0; c < picture.channels; ++c) {
      const Plane expected = follow(steps, filter, picture.plane(c), pad);
      double worst = 0;
      for (size_t at = 0; at < plane; ++at) {
        worst = std::max(worst, std::abs(static_cast<double>(found[c * plane + at]) - expected.at[at]));
      }
      ASSERT_LE(worst, allowed) << "case " << i << ", filter " << filter << ", orientation " << steps.orientation
                                << ", turns " << steps.turns << ", bits " << bits;
    }
  }
}

TEST(Resample, RoundsAndLimitsIntegers) {
  Dice dice(2);
  Resampler resampler;
  for (uint32_t i = 0; i < 200; ++i) {
    const Picture picture(dice_up_to(dice, 60), dice_up_to(dice, 60), 1 + i % 3, i % 2 == 0 ? 8 : 11, dice);
    const Geometry geometry =
        geometry_of(any_steps(picture, dice, true), picture.bits == 8 ? base::kBilinear : base::kBicubic);
    const std::vector<float> exact = run<float>(resampler, picture, geometry, L3_VALUE_F32, 7);
    const std::vector<int64_t> wide = run<int64_t>(resampler, picture, geometry, L3_VALUE_I64, 7);
    const std::vector<int32_t> less = run<int32_t>(resampler, picture, geometry, L3_VALUE_I32, 7);
    const std::vector<int16_t> least = run<int16_t>(resampler, picture, geometry, L3_VALUE_I16, 7);
    std::vector<uint8_t> bytes;
    if (picture.bits == 8) bytes = run<uint8_t>(resampler, picture, geometry, L3_VALUE_U8, 7);
    for (size_t at = 0; at < exact.size(); ++at) {
      const float most = static_cast<float>((1u << picture.bits) - 1);
      const auto expected = static_cast<int64_t>(std::nearbyint(std::clamp(exact[at], 0.0f, most)));
      ASSERT_EQ(wide[at], expected);
      ASSERT_EQ(less[at], expected);
      ASSERT_EQ(least[at], expected);
      if (picture.bits == 8) {
        ASSERT_EQ(bytes[at], expected);
      }
    }
  }
}

// As torchvision and Pillow do it: in between, samples are bytes. One that lies halfway may become either neighbour.
TEST(Resample, MakesBytesBetweenBicubicPasses) {
  Dice dice(6);
  Resampler resampler;
  for (uint32_t i = 0; i < 400; ++i) {
    const uint32_t bits = i % 3 == 0 ? 4 : 8;
    const Picture picture(dice_up_to(dice, 60), dice_up_to(dice, 60), 1 + i % 4, bits, dice);
    const Steps steps = any_steps(picture, dice, true);
    if (steps.resized.width == steps.box.width || steps.resized.height == steps.box.height) continue;
    const Geometry geometry = geometry_of(steps, base::kBicubic);
    const std::vector<uint8_t> found = run<uint8_t>(resampler, picture, geometry, L3_VALUE_U8, 7);
    const double most = (1u << bits) - 1;
    const size_t plane = size_t{geometry.width()} * geometry.height();
    for (uint32_t c = 0; c < picture.channels; ++c) {
      const Plane expected = follow(steps, base::kBicubic, picture.plane(c), 7, most);
      for (size_t at = 0; at < plane; ++at) {
        ASSERT_NEAR(found[c * plane + at], std::clamp(expected.at[at], 0.0, most), 2.2) << "case " << i;
      }
    }
  }
}

// Combines the rows of a plane of bytes as torchvision does, in integers.
Plane combined(const Plane& plane, uint32_t height) {
  if (height == plane.height) return plane;
  base::ResizeAxis axis{};
  axis.box = axis.region = plane.height;
  axis.resized = axis.content = axis.out = axis.total = height;
  axis.filter = base::kBicubic;
  axis.precision = base::rounded_precision(axis);
  Plane out(plane.width, height);
  for (uint32_t y = 0; y < height; ++y) {
    const base::Taps taps = base::taps_of(axis, y);
    std::vector<int64_t> sums(plane.width, int64_t{1} << (axis.precision - 1));
    base::put_rounded_weights(axis, y, taps, [&](uint32_t tap, int32_t weight) {
      for (uint32_t x = 0; x < plane.width; ++x) sums[x] += weight * static_cast<int64_t>(plane(x, taps.first + tap));
    });
    for (uint32_t x = 0; x < plane.width; ++x) {
      out(x, y) = static_cast<double>(std::clamp<int64_t>(sums[x] >> axis.precision, 0, 255));
    }
  }
  return out;
}

TEST(Resample, MakesTheBicubicBytesOfTorchvision) {
  Dice dice(7);
  Resampler resampler;
  const auto transposed = [](const Plane& plane) {
    return map(plane.height, plane.width, [&](uint32_t x, uint32_t y) { return plane(y, x); });
  };
  for (const auto& [from, to] : {std::pair{Size{1500, 2}, Size{200, 300}}, std::pair{Size{1500, 2}, Size{1500, 300}},
                                 std::pair{Size{1500, 2}, Size{200, 2}}, std::pair{Size{1024, 9}, Size{3, 4}},
                                 std::pair{Size{50, 70}, Size{61, 47}}, std::pair{Size{4096, 3}, Size{2, 3}}}) {
    for (int again = 0; again < 4; ++again) {
      const Picture picture(from.width, from.height, 3, 8, dice);
      Steps steps;
      steps.stored = from;
      steps.box = {0, 0, from.width, from.height};
      steps.resized = steps.padded = to;
      steps.window = {0, 0, to.width, to.height};
      const std::vector<uint8_t> found =
          run<uint8_t>(resampler, picture, geometry_of(steps, base::kBicubic), L3_VALUE_U8, 0);
      for (uint32_t c = 0; c < 3; ++c) {
        const Plane wide = transposed(combined(transposed(picture.plane(c)), to.width));
        const Plane expected = combined(wide, to.height);
        for (size_t at = 0; at < expected.at.size(); ++at) {
          ASSERT_EQ(found[c * expected.at.size() + at], static_cast<uint8_t>(expected.at[at]))
              << from.width << " x " << from.height << " to " << to.width << " x " << to.height;
        }
      }
    }
  }
}

// Thousands of samples become few: their weights need enough bits.
TEST(Resample, IsExactWhereMuchBecomesLittle) {
  Dice dice(8);
  Resampler resampler;
  for (const Size from : {Size{4096, 1}, Size{1, 4096}, Size{4096, 64}, Size{65536, 2}}) {
    Picture picture(from.width, from.height, 1, 8, dice);
    for (size_t i = 0; i < picture.bytes.size(); ++i) picture.bytes[i] = i / 7 % 3 == 0 ? 255 : 0;
    for (const base::Filter filter : {base::kBilinear, base::kBicubic, base::kArea}) {
      Steps steps;
      steps.stored = from;
      steps.box = {0, 0, from.width, from.height};
      steps.resized = steps.padded = {2, 3};
      steps.window = {0, 0, 2, 3};
      const std::vector<float> found = run<float>(resampler, picture, geometry_of(steps, filter), L3_VALUE_F32, 0);
      const Plane expected = resized(picture.plane(0), 2, 3, filter, 0);
      for (size_t at = 0; at < found.size(); ++at) {
        ASSERT_NEAR(static_cast<double>(found[at]), expected.at[at], 0.001 * 255) << from.width << ", " << filter;
      }
    }
  }
}

// The weights add up, so that nothing changes where nothing is to be seen.
TEST(Resample, KeepsFlatAreasFlat) {
  Dice dice(3);
  Resampler resampler;
  for (const uint32_t size : {1u, 2u, 3u, 17u, 100u, 999u}) {
    for (const base::Filter filter : {base::kBilinear, base::kBicubic, base::kArea}) {
      Picture picture(997, 5, 1, 8, dice);
      std::fill(picture.bytes.begin(), picture.bytes.end(), uint8_t{255});
      Steps steps;
      steps.stored = {997, 5};
      steps.box = {0, 0, 997, 5};
      steps.resized = steps.padded = {size, 3};
      steps.window = {0, 0, size, 3};
      for (const float value : run<float>(resampler, picture, geometry_of(steps, filter), L3_VALUE_F32, 0)) {
        ASSERT_EQ(value, 255.0f) << size;
      }
    }
  }
}

// A region of 2^20 pixels along an edge, and results that need all of it or one pixel.
TEST(Resample, TakesTheLongestEdges) {
  Dice dice(4);
  Resampler resampler;
  constexpr uint32_t kEdge = 1 << 20;
  const Picture picture(kEdge, 1, 1, 8, dice);
  double mean = 0;
  for (const uint8_t sample : picture.bytes) mean += sample;
  mean /= kEdge;
  Steps steps;
  steps.stored = {kEdge, 1};
  steps.box = {0, 0, kEdge, 1};
  steps.resized = steps.padded = {1, 1};
  steps.window = {0, 0, 1, 1};
  const std::vector<float> one = run<float>(resampler, picture, geometry_of(steps, base::kArea), L3_VALUE_F32, 0);
  EXPECT_NEAR(static_cast<double>(one[0]), mean, 0.5);
  steps.resized = {kEdge, kEdge};
  steps.window = {kEdge - 1, 12345, 1, 1};
  const std::vector<float> last = run<float>(resampler, picture, geometry_of(steps, base::kBicubic), L3_VALUE_F32, 0);
  EXPECT_EQ(last[0], static_cast<float>(picture.bytes.back()));
}

TEST(Geometry, SizesAreThoseOfTorchvision) {
  EXPECT_EQ(resized_size(L3_RESIZE_SHORTER, {500, 375}, 256, 0), (Size{341, 256}));
  EXPECT_EQ(resized_size(L3_RESIZE_SHORTER, {375, 500}, 256, 0), (Size{256, 341}));
  EXPECT_EQ(resized_size(L3_RESIZE_LONGEST, {500, 375}, 256, 0), (Size{256, 192}));
  EXPECT_EQ(resized_size(L3_RESIZE_LONGEST, {1, 4096}, 16, 0), (Size{1, 16}));
  EXPECT_EQ(resized_size(L3_RESIZE_EXACT, {5, 7}, 11, 13), (Size{11, 13}));
  EXPECT_EQ(size_of_pixels({1000, 500}, 125000), (Size{500, 250}));
  EXPECT_EQ(size_of_pixels({100, 50}, 125000), (Size{100, 50}));
  for (const uint64_t pixels : {1u, 7u, 1000u}) {
    const Size size = size_of_pixels({1, 1u << 20}, pixels);
    EXPECT_LE(uint64_t{size.width} * size.height, pixels);
    EXPECT_EQ(size.width, 1u);
  }
}

TEST(Colours, GrayAndBackAndAlpha) {
  Dice dice(5);
  Resampler resampler;
  const Picture picture(9, 5, 4, 8, dice);
  Steps steps;
  steps.stored = steps.resized = steps.padded = {9, 5};
  steps.box = steps.window = {0, 0, 9, 5};
  const Geometry geometry = geometry_of(steps, base::kBilinear);
  const auto values_of = [&](const l3_tensor_options& wanted, const Jitter& jitter) {
    const Colours colours = colours_of(wanted, 4, 8, 8, jitter);
    EXPECT_EQ(colours.to, channels_of(wanted, 4));
    Values values;
    values.type = L3_VALUE_F32;
    values.layout = L3_LAYOUT_HWC;
    values.row_stride = 4 * 9 * colours.to;
    std::vector<float> out(size_t{9} * 5 * colours.to);
    resampler.run(picture.bytes.data(), 8, geometry, colours, values, reinterpret_cast<uint8_t*>(out.data()));
    return out;
  };
  l3_tensor_options wanted{};
  wanted.channels = L3_CHANNELS_GRAY;
  wanted.alpha = L3_TRANSPARENCY_DROP;
  const std::vector<float> gray = values_of(wanted, {});
  ASSERT_EQ(gray.size(), 45u);
  wanted.alpha = L3_TRANSPARENCY_BLEND;
  wanted.channels = L3_CHANNELS_STORED;
  wanted.background[1] = 200;
  const std::vector<float> blended = values_of(wanted, {});
  wanted = {};
  const std::vector<float> kept = values_of(wanted, {});
  for (size_t i = 0; i < 45; ++i) {
    const uint8_t* p = &picture.bytes[4 * i];
    EXPECT_NEAR(static_cast<double>(gray[i]), 0.299 * p[0] + 0.587 * p[1] + 0.114 * p[2], 1e-3);
    for (size_t c = 0; c < 3; ++c) {
      const double behind = c == 1 ? 200 : 0, alpha = p[3] / 255.0;
      EXPECT_NEAR(static_cast<double>(blended[3 * i + c]), p[c] * alpha + behind * (1 - alpha), 0.51);
    }
    for (size_t c = 0; c < 4; ++c) EXPECT_EQ(kept[4 * i + c], static_cast<float>(p[c]));
  }
  // A change of colours: grays stay gray, nothing leaves the range, and nothing happens without a change.
  wanted.jitter = 1;
  wanted.alpha = L3_TRANSPARENCY_DROP;
  const std::vector<float> same = values_of(wanted, {});
  Jitter half;
  half.saturation = 0;
  const std::vector<float> flat = values_of(wanted, half);
  Jitter around;
  around.hue = 0.5f;
  around.brightness = 3;
  const std::vector<float> turned = values_of(wanted, around);
  for (size_t i = 0; i < 45; ++i) {
    for (size_t c = 0; c < 3; ++c) {
      EXPECT_NEAR(static_cast<double>(same[3 * i + c]), picture.bytes[4 * i + c], 1e-3);
      EXPECT_NEAR(static_cast<double>(flat[3 * i + c]), static_cast<double>(gray[i]), 1e-3);
      EXPECT_GE(turned[3 * i + c], 0.0f);
      EXPECT_LE(turned[3 * i + c], 255.0f);
    }
  }
}

TEST(Exif, HasAnOrientationOrNone) {
  const std::vector<uint8_t> little = {'I', 'I', '*', 0, 8, 0, 0, 0, 1, 0, 0x12, 1, 3, 0, 1, 0, 0, 0, 6, 0, 0, 0};
  const std::vector<uint8_t> big = {'M', 'M', 0, '*', 0, 0, 0, 8, 0, 1, 1, 0x12, 0, 3, 0, 0, 0, 1, 0, 8, 0, 0};
  EXPECT_EQ(base::orientation_of(little.data(), little.size()), 6u);
  EXPECT_EQ(base::orientation_of(big.data(), big.size()), 8u);
  EXPECT_EQ(base::orientation_of(nullptr, 0), 1u);
  for (const std::vector<uint8_t>& exif : {little, big}) {
    for (size_t size = 0; size < exif.size(); ++size) {
      const std::vector<uint8_t> cut(exif.begin(), exif.begin() + static_cast<ptrdiff_t>(size));
      EXPECT_EQ(base::orientation_of(cut.data(), cut.size()), 1u);
    }
    for (size_t at = 0; at < exif.size(); ++at) {
      for (const int value : {0, 9, 127, 255}) {
        std::vector<uint8_t> changed = exif;
        changed[at] = static_cast<uint8_t>(value);
        EXPECT_LE(base::orientation_of(changed.data(), changed.size()), 8u);
        base::set_upright(changed.data(), changed.size());
        EXPECT_EQ(base::orientation_of(changed.data(), changed.size()), 1u);
      }
    }
  }
}

}  // namespace
