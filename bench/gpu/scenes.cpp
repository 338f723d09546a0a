#include "scenes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <vector>

namespace gpu_bench {
namespace {

// splitmix64's last steps: a number from a number.
uint64_t mixed(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

class Dice {
 public:
  explicit Dice(uint64_t seed) : state_(mixed(seed + 1)) {}
  uint64_t next() { return mixed(state_ += 0x9E3779B97F4A7C15); }
  // From `low` up to `high`.
  float between(float low, float high) {
    return low + (high - low) * static_cast<float>(next() >> 40) / static_cast<float>(1 << 24);
  }
  uint32_t roll(uint32_t sides) { return static_cast<uint32_t>((next() >> 32) * sides >> 32); }
  // Nearly normal, of deviation 1.
  float normal() {
    const uint64_t bits = next();
    int32_t sum = 0;
    for (int i = 0; i < 4; ++i) sum += static_cast<int32_t>(bits >> (16 * i) & 0xFFFF);
    return static_cast<float>(sum - 2 * 0xFFFF) / 37837.0f;
  }

 private:
  uint64_t state_;
};

// Smooth noise from -1 to 1 that changes every `period` pixels, row by row.
class Waves {
 public:
  Waves(uint64_t seed, float period) : seed_(seed), step_(1 / std::max(period, 1.5f)) {}

  void add_row(uint32_t y, float weight, std::vector<float>& row) const {
    const float v = static_cast<float>(y) * step_;
    const auto j = static_cast<uint32_t>(v);
    const float fraction = v - static_cast<float>(j);
    float left = 0, right = knot(0, j, fraction);
    uint32_t before = UINT32_MAX;
    for (size_t x = 0; x < row.size(); ++x) {
      const float u = static_cast<float>(x) * step_;
      const auto i = static_cast<uint32_t>(u);
      if (i != before) {
        left = i == before + 1 ? right : knot(i, j, fraction);
        right = knot(i + 1, j, fraction);
        before = i;
      }
      row[x] += weight * (left + (right - left) * (u - static_cast<float>(i)));
    }
  }

 private:
  float at(uint32_t i, uint32_t j) const {
    return static_cast<float>(mixed(seed_ + i * 0x9E3779B97F4A7C15 + j * 0xD1B54A32D192ED03) >> 40) /
               static_cast<float>(1 << 23) -
           1;
  }
  float knot(uint32_t i, uint32_t j, float fraction) const { return at(i, j) + (at(i, j + 1) - at(i, j)) * fraction; }

  uint64_t seed_;
  float step_;
};

struct Material {
  std::array<float, 3> colour;
  float texture;  // how much its brightness varies
  float slope;    // of its brightness, from left to right
  float metres;   // how far away; 0: as far as the ground is there
  uint8_t label;
};

// Which material is where.
struct Layout {
  Layout(uint32_t columns, uint32_t rows, uint64_t seed) : width(columns), height(rows), dice(seed) {
    map.resize(size_t{width} * height);
    horizon = static_cast<float>(height) * dice.between(0.42f, 0.5f);
    scale = std::max(static_cast<float>(width), 1.8f * static_cast<float>(height)) / 2048;
    add({{200, 208, 218}, 5, 4, 0, 23}, 0, 0, static_cast<float>(width), static_cast<float>(height), Shape::box);
    add({{92, 91, 94}, 15, 8, 0, 7}, 0, horizon, static_cast<float>(width), static_cast<float>(height), Shape::box);
    houses();
    trees();
    marks();
    things();
  }

  enum class Shape { box, oval };

  void add(const Material& material, float left, float top, float right, float bottom, Shape shape) {
    const uint32_t index = static_cast<uint32_t>(materials.size());
    if (index > UINT8_MAX) return;
    materials.push_back(material);
    fill(static_cast<uint8_t>(index), left, top, right, bottom, shape);
  }

  void fill(uint8_t index, float left, float top, float right, float bottom, Shape shape) {
    const auto clamp = [](float value, uint32_t maximum) {
      return static_cast<uint32_t>(std::clamp(value, 0.0f, static_cast<float>(maximum)));
    };
    const uint32_t y1 = clamp(bottom, height);
    for (uint32_t y = clamp(top, height); y < y1; ++y) {
      float x0 = left, x1 = right;
      if (shape == Shape::oval) {
        const float v = 2 * (static_cast<float>(y) - top) / (bottom - top) - 1;
        const float half = (right - left) / 2 * std::sqrt(std::max(0.0f, 1 - v * v));
        x0 = (left + right) / 2 - half;
        x1 = (left + right) / 2 + half;
      }
      const uint32_t first = clamp(x0, width), last = clamp(x1, width);
      if (first < last) std::memset(map.data() + size_t{y} * width + first, index, last - first);
    }
  }

  void houses() {
    for (float x = 0; x < static_cast<float>(width);) {
      const float wide = scale * dice.between(120, 420), top = horizon * dice.between(0.0f, 0.75f);
      const float light = dice.between(60, 190), metres = dice.between(18, 70);
      add({{light + 14, light, light - 18}, dice.between(10, 26), dice.between(-30, 30), metres, 11}, x, top, x + wide,
          horizon + scale * 30, Shape::box);
      const auto glass = static_cast<uint8_t>(std::min<size_t>(materials.size(), UINT8_MAX));
      add({{light / 2, light / 2 + 4, light / 2 + 12}, 12, 20, metres, 11}, 0, 0, 0, 0, Shape::box);
      const float step = scale * dice.between(34, 60);
      for (float u = x + step / 2; u + step / 2 < x + wide; u += step) {
        for (float v = top + step / 2; v + step < horizon; v += 1.5f * step) {
          fill(glass, u, v, u + step / 2, v + 0.9f * step, Shape::box);
        }
      }
      x += wide;
    }
  }

  void trees() {
    for (uint32_t i = 0; i < 7; ++i) {
      const float x = dice.between(0, static_cast<float>(width)), size = scale * dice.between(60, 220);
      const float top = horizon - size * dice.between(0.6f, 1.5f), metres = dice.between(12, 40);
      add({{66, 84, 52}, 46, 0, metres, 21}, x, top, x + size, top + 1.2f * size, Shape::oval);
      add({{60, 52, 44}, 24, 10, metres, 21}, x + 0.46f * size, top + size, x + 0.54f * size, horizon + scale * 40,
          Shape::box);
    }
  }

  void marks() {
    const auto white = static_cast<uint8_t>(materials.size());
    add({{196, 196, 190}, 12, 0, 0, 7}, 0, 0, 0, 0, Shape::box);
    for (uint32_t i = 0; i < 14; ++i) {
      const float y = horizon + (static_cast<float>(height) - horizon) * dice.between(0.1f, 1);
      const float far = (y - horizon) / (static_cast<float>(height) - horizon);
      const float x = static_cast<float>(width) * (0.5f + (dice.between(-1.5f, 1.5f) * far));
      fill(white, x, y, x + scale * 90 * far + 2, y + scale * 30 * far + 1, Shape::box);
    }
  }

  void things() {
    for (uint32_t i = 0; i < 12; ++i) {  // cars, the near ones over the far ones
      const float far = (static_cast<float>(i) + 1) / 12, metres = 6 / far;
      const float size = scale * 330 * far, x = dice.between(-size, static_cast<float>(width));
      const float bottom = horizon + (static_cast<float>(height) - horizon) * far * dice.between(0.5f, 0.85f);
      const float hue = dice.between(0, 60), light = dice.between(30, 160);
      add({{light + hue, light, light + 40 - hue}, 9, 26, metres, 26}, x, bottom - 0.42f * size, x + size, bottom,
          Shape::box);
      add({{light / 2, light / 2, light / 2 + 8}, 14, -30, metres, 26}, x + 0.15f * size, bottom - 0.62f * size,
          x + 0.85f * size, bottom - 0.2f * size, Shape::oval);
      add({{34, 34, 36}, 8, 0, metres, 26}, x + 0.1f * size, bottom - 0.14f * size, x + 0.3f * size,
          bottom + 0.06f * size, Shape::oval);
    }
    for (uint32_t i = 0; i < 9; ++i) {  // poles and people
      const float x = dice.between(0, static_cast<float>(width)), tall = scale * dice.between(70, 420);
      const float wide = scale * dice.between(5, 26), metres = dice.between(8, 30);
      add({{86, 82, 80}, 14, 20, metres, static_cast<uint8_t>(wide > 14 * scale ? 24 : 17)}, x,
          horizon + scale * 60 - tall, x + wide, horizon + scale * 60, Shape::box);
    }
  }

  uint32_t width, height;
  Dice dice;
  float horizon = 0, scale = 1;
  std::vector<Material> materials;
  std::vector<uint8_t> map;
};

formats::Image blank(uint32_t width, uint32_t height, formats::Colour colour, uint32_t bits) {
  formats::Image image;
  image.width = width;
  image.height = height;
  image.colour = colour;
  image.bits = bits;
  image.pixels.resize(size_t{width} * height * formats::channels(colour) * formats::bytes_per_sample(bits));
  return image;
}

// Light before the sensor, and then what the sensor makes of it.
class Camera {
 public:
  Camera(const Layout& layout, uint64_t seed) : layout_(layout), seed_(seed) {
    for (const float period : {260.0f, 70.0f, 22.0f, 8.0f, 3.0f})
      waves_.emplace_back(seed + waves_.size(), period * layout.scale);
  }

  void take_rows(uint32_t first, uint32_t last, uint8_t* out) const {
    const uint32_t width = layout_.width;
    std::array<std::vector<float>, 3> light;  // of three rows, which the lens blurs into each other
    const auto clamped = [&](uint32_t y, int by) {
      return static_cast<uint32_t>(std::clamp<int64_t>(int64_t{y} + by, 0, layout_.height - 1));
    };
    for (size_t i = 0; i < light.size(); ++i) light[i] = light_of_row(clamped(first, static_cast<int>(i) - 1));
    std::vector<float> blurred(light[0].size()), grain(light[0].size());
    for (uint32_t y = first; y < last; ++y) {
      for (size_t i = 0; i < blurred.size(); ++i) blurred[i] = (light[0][i] + 2 * light[1][i] + light[2][i]) / 4;
      make_grain(y, grain);
      for (uint32_t x = 0; x < width; ++x) {
        const size_t left = 3 * size_t{x > 0 ? x - 1 : 0}, right = 3 * size_t{std::min(x + 1, width - 1)};
        for (size_t c = 0; c < 3; ++c) {
          const float value = (blurred[left + c] + 2 * blurred[3 * size_t{x} + c] + blurred[right + c]) / 4;
          const float noise = (grain[left + c] + 6 * grain[3 * size_t{x} + c] + grain[right + c]) / 8;
          // More light, more noise, but less in proportion.
          const float seen = value + noise * (kGrain + kShot * std::sqrt(std::max(value, 0.0f)));
          out[3 * (size_t{y} * width + x) + c] = static_cast<uint8_t>(std::clamp(seen + 0.5f, 0.0f, 255.0f));
        }
      }
      std::swap(light[0], light[1]);
      std::swap(light[1], light[2]);
      light[2] = light_of_row(clamped(y, 2));
    }
  }

 private:
  static constexpr float kGrain = 0.9f, kShot = 0.09f;

  std::vector<float> light_of_row(uint32_t y) const {
    std::vector<float> texture(layout_.width), light(3 * size_t{layout_.width});
    float weight = 0.5f;
    for (const Waves& waves : waves_) {
      waves.add_row(y, weight, texture);
      weight *= 0.62f;
    }
    const uint8_t* map = layout_.map.data() + size_t{y} * layout_.width;
    for (uint32_t x = 0; x < layout_.width; ++x) {
      const Material& material = layout_.materials[map[x]];
      const float shade = material.texture * texture[x] +
                          material.slope * (static_cast<float>(x) / static_cast<float>(layout_.width) - 0.5f);
      for (size_t c = 0; c < 3; ++c) light[3 * size_t{x} + c] = material.colour[c] + shade;
    }
    return light;
  }

  // Of three channels, of deviation 1 or so; half of it is common to them.
  void make_grain(uint32_t y, std::vector<float>& grain) const {
    Dice dice(mixed(seed_) + y);
    for (size_t x = 0; x < layout_.width; ++x) {
      const float common = dice.normal();
      for (size_t c = 0; c < 3; ++c) grain[3 * x + c] = 0.95f * common + 0.3f * dice.normal();
    }
  }

  const Layout& layout_;
  uint64_t seed_;
  std::vector<Waves> waves_;
};

// A layout's map with ragged edges, as people and nets draw them.
std::vector<uint8_t> ragged_row(const Layout& layout, const Waves& across, const Waves& fine, uint32_t y) {
  std::vector<float> shift(layout.width);
  across.add_row(y, 9, shift);
  fine.add_row(y, 3, shift);
  std::vector<uint8_t> row(layout.width);
  for (uint32_t x = 0; x < layout.width; ++x) {
    const float wanted = layout.scale * shift[x];
    const auto from = [&](uint32_t at, uint32_t size) {
      return static_cast<size_t>(std::clamp(static_cast<float>(at) + wanted, 0.0f, static_cast<float>(size - 1)));
    };
    row[x] = layout.map[from(y, layout.height) * layout.width + from(x, layout.width)];
  }
  return row;
}

}  // namespace

formats::Image draw_street(uint32_t width, uint32_t height, uint64_t seed, base::Parallel& parallel) {
  constexpr uint32_t kBand = 64;  // rows that a thread draws at a time
  const Layout layout(width, height, seed);
  const Camera camera(layout, seed);
  formats::Image image = blank(width, height, formats::Colour::rgb, 8);
  parallel.for_each((height + kBand - 1) / kBand, [&](uint64_t band) {
    const auto first = static_cast<uint32_t>(band) * kBand;
    camera.take_rows(first, std::min(height, first + kBand), image.pixels.data());
  });
  return image;
}

formats::Image draw_labels(uint32_t width, uint32_t height, uint64_t seed, bool with_palette) {
  const Layout layout(width, height, seed);
  const Waves across(seed + 11, 40 * layout.scale), fine(seed + 12, 7 * layout.scale);
  formats::Image image = blank(width, height, with_palette ? formats::Colour::palette : formats::Colour::gray, 8);
  for (uint32_t y = 0; y < height; ++y) {
    const std::vector<uint8_t> row = ragged_row(layout, across, fine, y);
    for (uint32_t x = 0; x < width; ++x) image.pixels[size_t{y} * width + x] = layout.materials[row[x]].label;
  }
  if (with_palette) {
    Dice dice(3);
    for (int i = 0; i < 34 * 3; ++i) image.palette.push_back(static_cast<uint8_t>(dice.roll(256)));
  }
  return image;
}

formats::Image draw_depth(uint32_t width, uint32_t height, uint64_t seed) {
  const Layout layout(width, height, seed);
  const Waves across(seed + 21, 40 * layout.scale), fine(seed + 22, 7 * layout.scale),
      holes(seed + 23, 26 * layout.scale);
  formats::Image image = blank(width, height, formats::Colour::gray, 16);
  Dice dice(seed);
  std::vector<float> missing;
  for (uint32_t y = 0; y < height; ++y) {
    const std::vector<uint8_t> row = ragged_row(layout, across, fine, y);
    missing.assign(width, 0);
    holes.add_row(y, 1, missing);
    const float below = (static_cast<float>(y) - layout.horizon) / (static_cast<float>(height) - layout.horizon);
    for (uint32_t x = 0; x < width; ++x) {
      const Material& material = layout.materials[row[x]];
      float metres = material.metres;
      if (metres == 0) metres = below > 0.02f ? 5 / below : 0;  // the ground; none in the sky
      metres += metres * 0.004f * dice.normal() + material.slope * static_cast<float>(x) * 2e-3f / layout.scale / 10;
      const bool edge = x > 0 && row[x] != row[x - 1];
      const bool seen = metres > 0 && missing[x] < 0.72f && !edge;
      // As stereo cameras store it: 1/256 of a metre.
      const auto value = static_cast<uint16_t>(seen ? std::clamp(metres * 256, 1.0f, 65535.0f) : 0);
      std::memcpy(image.pixels.data() + 2 * (size_t{y} * width + x), &value, 2);
    }
  }
  return image;
}

}  // namespace gpu_bench
