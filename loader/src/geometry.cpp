#include "loader/geometry.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "sampler.h"

namespace loader {
namespace {

// The uses of a unit's random numbers. New ones come last, so that seeds keep their meaning.
enum Choice : uint64_t {
  kChooseColumn = 1,
  kChooseRow = 2,
  kChooseFlip = 3,
  kChooseVerticalFlip = 4,
  kChooseTurns = 5,
  kChooseBrightness = 6,
  kChooseContrast = 7,
  kChooseSaturation = 8,
  kChooseHue = 9,
  kChooseBox = 16,  // and the next 4 * kBoxTries
};
constexpr uint64_t kBoxTries = 10;
constexpr uint32_t kMostEdge = 1 << 20;

class Draw {
 public:
  explicit Draw(uint64_t random) : random_(random) {}
  uint64_t below(uint64_t what, uint64_t count) const { return scale_to(hash_of(random_, what), count); }
  // From `least` up to, but not including, `most`.
  double between(uint64_t what, double least, double most) const {
    constexpr double kUnit = 1.0 / (uint64_t{1} << 53);
    return least + (most - least) * (static_cast<double>(hash_of(random_, what) >> 11) * kUnit);
  }

 private:
  uint64_t random_;
};

// Where a part begins that is in the centre: half the rest, rounded to even as torchvision does.
uint32_t half_of(uint32_t rest) { return rest / 2 + (rest % 4 == 3 ? 1 : 0); }

uint32_t nearest(double value) { return static_cast<uint32_t>(std::nearbyint(value)); }

// Draws a box as torchvision's RandomResizedCrop does.
Box draw_box(const l3_loader_options& options, Size image, const Draw& draw) {
  const double area = static_cast<double>(image.width) * image.height;
  const double least = std::log(static_cast<double>(options.ratio[0]));
  const double most = std::log(static_cast<double>(options.ratio[1]));
  for (uint64_t i = 0; i < kBoxTries; ++i) {
    const uint64_t what = kChooseBox + 4 * i;
    const double wanted = area * draw.between(what, options.scale[0], options.scale[1]);
    const double ratio = std::exp(draw.between(what + 1, least, most));
    const double width = std::nearbyint(std::sqrt(wanted * ratio)), height = std::nearbyint(std::sqrt(wanted / ratio));
    if (width < 1 || height < 1 || width > image.width || height > image.height) continue;
    Box box{0, 0, static_cast<uint32_t>(width), static_cast<uint32_t>(height)};
    box.x = static_cast<uint32_t>(draw.below(what + 2, uint64_t{image.width} - box.width + 1));
    box.y = static_cast<uint32_t>(draw.below(what + 3, uint64_t{image.height} - box.height + 1));
    return box;
  }
  // The centre, with the nearest ratio that is allowed.
  const double ratio = static_cast<double>(image.width) / image.height;
  Box box{0, 0, image.width, image.height};
  if (ratio < static_cast<double>(options.ratio[0])) {
    box.height = std::clamp(nearest(image.width / static_cast<double>(options.ratio[0])), 1u, image.height);
  } else if (ratio > static_cast<double>(options.ratio[1])) {
    box.width = std::clamp(nearest(image.height * static_cast<double>(options.ratio[1])), 1u, image.width);
  }
  box.x = (image.width - box.width) / 2;
  box.y = (image.height - box.height) / 2;
  return box;
}

// At least 1, and not much more than any image may have.
uint32_t whole_part(uint64_t number, uint64_t by, uint64_t of) {
  return static_cast<uint32_t>(std::clamp<uint64_t>(number * by / of, 1, 2 * kMostEdge));
}

// Plans an axis of the upright image. `is_reversed`: the image is stored in reverse along it. Sets `needed` to where
// the region begins in the stored image, whose length along the axis is `length`.
base::ResizeAxis plan_axis(uint32_t length, uint32_t box_at, uint32_t box, uint32_t resized, uint32_t window,
                           uint32_t content, uint32_t before, uint32_t out, uint32_t pad, base::Filter filter,
                           bool is_reversed, bool out_mirrored, uint32_t& needed) {
  base::ResizeAxis axis{};
  axis.box = box;
  axis.resized = resized;
  axis.window = window;
  axis.content = content;
  axis.before = before;
  axis.out = axis.total = out;
  axis.pad = pad;
  axis.filter = box == resized ? base::kNearest : filter;  // the samples stay as they are
  axis.source_mirrored = is_reversed ? 1 : 0;
  axis.out_mirrored = out_mirrored ? 1 : 0;
  const base::Taps last = base::taps_of(axis, window + content - 1);
  axis.first = base::taps_of(axis, window).first;
  axis.region = last.first + std::max(last.count, 1u) - axis.first;
  const uint32_t at = box_at + axis.first;
  needed = is_reversed ? length - at - axis.region : at;
  return axis;
}

}  // namespace

Size resized_size(uint32_t resize, Size from, uint32_t width, uint32_t height) {
  // Rounds down as torchvision does.
  const bool is_wide = from.width > from.height;
  switch (resize) {
    case L3_RESIZE_EXACT: return {width, height};
    case L3_RESIZE_SHORTER:
      return is_wide ? Size{whole_part(width, from.width, from.height), width}
                     : Size{width, whole_part(width, from.height, from.width)};
    case L3_RESIZE_LONGEST:
      return is_wide ? Size{width, whole_part(width, from.height, from.width)}
                     : Size{whole_part(width, from.width, from.height), width};
    default: return from;
  }
}

Size size_of_pixels(Size from, uint64_t pixels) {
  const uint64_t all = uint64_t{from.width} * from.height;
  if (all <= pixels) return from;
  const double factor = std::sqrt(static_cast<double>(pixels) / static_cast<double>(all));
  const auto scaled = [&](uint32_t edge) { return std::max(static_cast<uint32_t>(edge * factor), 1u); };
  Size size{scaled(from.width), scaled(from.height)};
  // A side of one pixel may leave too many.
  size.width = static_cast<uint32_t>(std::min<uint64_t>(size.width, pixels));
  size.height = static_cast<uint32_t>(std::min<uint64_t>(size.height, pixels / size.width));
  return size;
}

Geometry geometry_of(const Steps& steps, base::Filter filter) {
  const Size image = upright(steps.stored, steps.orientation);
  const auto [columns_reversed, rows_reversed, is_transposed] = lie_of(steps.orientation);
  const bool x_out = steps.mirrored_x != (steps.turns == 1 || steps.turns == 2);
  const bool y_out = steps.mirrored_y != (steps.turns == 2 || steps.turns == 3);
  uint32_t x = 0, y = 0;
  const base::ResizeAxis along_x = plan_axis(
      image.width, steps.box.x, steps.box.width, steps.resized.width, steps.window.x, steps.window.width, steps.left,
      steps.padded.width, steps.pad_mode, filter, is_transposed ? rows_reversed : columns_reversed, x_out, x);
  const base::ResizeAxis along_y = plan_axis(
      image.height, steps.box.y, steps.box.height, steps.resized.height, steps.window.y, steps.window.height, steps.top,
      steps.padded.height, steps.pad_mode, filter, is_transposed ? columns_reversed : rows_reversed, y_out, y);
  Geometry geometry;
  geometry.columns = is_transposed ? along_y : along_x;
  geometry.rows = is_transposed ? along_x : along_y;
  geometry.x = is_transposed ? y : x;
  geometry.y = is_transposed ? x : y;
  geometry.is_on_its_side = is_transposed;
  geometry.transposed = is_transposed != (steps.turns % 2 == 1);
  return geometry;
}

const char* draw_steps(const l3_loader_options& options, Size stored, uint32_t orientation, uint64_t random,
                       const l3_box* given, Steps& steps) {
  const Draw draw(random);
  steps.stored = stored;
  steps.orientation = orientation >= 1 && orientation <= 8 ? orientation : 1;
  const Size image = upright(stored, steps.orientation);
  steps.box = {0, 0, image.width, image.height};
  if (options.box == L3_BOX_GIVEN) {
    if (given->width == 0 || given->height == 0 || given->x >= image.width || given->y >= image.height ||
        given->width > image.width - given->x || given->height > image.height - given->y) {
      return "the box is empty or reaches outside the image";
    }
    steps.box = {given->x, given->y, given->width, given->height};
  } else if (options.box == L3_BOX_RANDOM) {
    steps.box = draw_box(options, image, draw);
  }
  Size size{steps.box.width, steps.box.height};
  if (options.pad == L3_PAD_LETTERBOX) {
    // The side that decides becomes exactly that of the letterbox.
    const uint64_t width = options.pad_width, height = options.pad_height;
    const bool by_width = width * size.height <= height * size.width;
    const uint64_t of = by_width ? size.width : size.height;
    const uint64_t by = by_width ? width : height;
    const auto scaled = [&](uint32_t edge) {
      return static_cast<uint32_t>(std::max<uint64_t>((2 * edge * by + of) / (2 * of), 1));
    };
    size = by_width ? Size{options.pad_width, std::min(scaled(size.height), options.pad_height)}
                    : Size{std::min(scaled(size.width), options.pad_width), options.pad_height};
  } else {
    size = resized_size(options.resize, size, options.resize_width, options.resize_height);
  }
  if (size.width > kMostEdge || size.height > kMostEdge)
    return "the resized image would be larger than 2^20 pixels along an edge";
  steps.resized = size;
  steps.window = {0, 0, size.width, size.height};
  if (options.crop != L3_CROP_NONE) {
    if (size.width < options.crop_width || size.height < options.crop_height) return "this is less than the crop";
    const uint32_t columns = size.width - options.crop_width, rows = size.height - options.crop_height;
    steps.window = {half_of(columns), half_of(rows), options.crop_width, options.crop_height};
    if (options.crop == L3_CROP_RANDOM) {
      steps.window.x = static_cast<uint32_t>(draw.below(kChooseColumn, uint64_t{columns} + 1));
      steps.window.y = static_cast<uint32_t>(draw.below(kChooseRow, uint64_t{rows} + 1));
    }
  }
  steps.padded = {steps.window.width, steps.window.height};
  if (options.pad != L3_PAD_NONE) {
    if (options.pad_width < steps.window.width || options.pad_height < steps.window.height) {
      return "this is more than the pad";
    }
    steps.padded = {options.pad_width, options.pad_height};
    steps.left = (options.pad_width - steps.window.width) / 2;
    steps.top = (options.pad_height - steps.window.height) / 2;
    steps.pad_mode = options.pad_mode;
  }
  steps.mirrored_x = options.flip != 0 && draw.below(kChooseFlip, 2) == 1;
  steps.mirrored_y = options.flip_vertical != 0 && draw.below(kChooseVerticalFlip, 2) == 1;
  steps.turns = options.turn == L3_TURN_RANDOM ? static_cast<uint32_t>(draw.below(kChooseTurns, 4)) : options.turn;
  return nullptr;
}

// --------------------------------------------------------------------------------------------------------- colours

Jitter draw_jitter(const l3_loader_options& options, uint64_t random) {
  const Draw draw(random);
  const auto factor = [&](Choice what, float by) {
    const double size = static_cast<double>(by);
    return by == 0 ? 1.0f : static_cast<float>(draw.between(what, std::max(0.0, 1 - size), 1 + size));
  };
  Jitter jitter;
  jitter.brightness = factor(kChooseBrightness, options.brightness);
  jitter.contrast = factor(kChooseContrast, options.contrast);
  jitter.saturation = factor(kChooseSaturation, options.saturation);
  const double hue = static_cast<double>(options.hue);
  if (hue != 0) jitter.hue = static_cast<float>(draw.between(kChooseHue, -hue, hue));
  return jitter;
}

namespace {

// ITU-R BT.601, as Pillow and torchvision use it.
constexpr float kLuma[3] = {0.299f, 0.587f, 0.114f};

using Matrix = std::array<std::array<double, 4>, 3>;  // the last column is the offset

Matrix product(const Matrix& after, const Matrix& before) {
  Matrix result{};
  for (size_t row = 0; row < 3; ++row) {
    for (size_t column = 0; column < 4; ++column) {
      for (size_t i = 0; i < 3; ++i) result[row][column] += after[row][i] * before[i][column];
    }
    result[row][3] += after[row][3];
  }
  return result;
}

// Mixes colours with their brightness: 1 keeps them, 0 makes them gray.
Matrix saturation_by(double factor) {
  Matrix result{};
  for (size_t row = 0; row < 3; ++row) {
    for (size_t column = 0; column < 3; ++column) {
      result[row][column] = (1 - factor) * static_cast<double>(kLuma[column]) + (row == column ? factor : 0);
    }
  }
  return result;
}

// Turns the colours around the axis of grays, in YIQ: the brightness stays.
Matrix hue_by(double part_of_circle) {
  constexpr double kPi = 3.14159265358979323846;
  const double c = std::cos(2 * kPi * part_of_circle), s = std::sin(2 * kPi * part_of_circle);
  const Matrix to_yiq = {{{0.299, 0.587, 0.114, 0}, {0.5959, -0.2746, -0.3213, 0}, {0.2115, -0.5227, 0.3112, 0}}};
  const Matrix turn = {{{1, 0, 0, 0}, {0, c, -s, 0}, {0, s, c, 0}}};
  // The inverse of to_yiq.
  const auto& m = to_yiq;
  Matrix back{};
  double determinant = 0;
  for (size_t i = 0; i < 3; ++i) {
    determinant += m[0][i] * (m[1][(i + 1) % 3] * m[2][(i + 2) % 3] - m[1][(i + 2) % 3] * m[2][(i + 1) % 3]);
  }
  for (size_t row = 0; row < 3; ++row) {
    for (size_t column = 0; column < 3; ++column) {
      const size_t a = (column + 1) % 3, b = (column + 2) % 3, r = (row + 1) % 3, q = (row + 2) % 3;
      back[row][column] = (m[a][r] * m[b][q] - m[a][q] * m[b][r]) / determinant;
    }
  }
  return product(back, product(turn, to_yiq));
}

Matrix jitter_matrix(const Jitter& jitter, double most) {
  Matrix result = {{{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}}};
  const double brightness = static_cast<double>(jitter.brightness), contrast = static_cast<double>(jitter.contrast);
  for (size_t i = 0; i < 3; ++i) {
    result[i][i] = brightness * contrast;
    result[i][3] = (1 - contrast) * most / 2;  // around the middle of the range
  }
  result = product(saturation_by(static_cast<double>(jitter.saturation)), result);
  return jitter.hue == 0 ? result : product(hue_by(static_cast<double>(jitter.hue)), result);
}

}  // namespace

uint32_t channels_of(const l3_tensor_options& wanted, uint32_t channels) {
  const bool has_alpha = channels == 2 || channels == 4;
  const uint32_t colours = wanted.channels == L3_CHANNELS_RGB    ? 3
                           : wanted.channels == L3_CHANNELS_GRAY ? 1
                           : channels >= 3                       ? 3
                                                                 : 1;
  return colours + (has_alpha && wanted.alpha == L3_TRANSPARENCY_KEEP ? 1 : 0);
}

Colours colours_of(const l3_tensor_options& wanted, uint32_t channels, uint32_t bits, uint32_t out_bits,
                   const Jitter& jitter) {
  const bool has_alpha = channels == 2 || channels == 4;
  const uint32_t in_colours = channels >= 3 ? 3 : 1;
  Colours colours;
  colours.from = channels;
  colours.to = channels_of(wanted, channels);
  const uint32_t out_colours = colours.to - (has_alpha && wanted.alpha == L3_TRANSPARENCY_KEEP ? 1 : 0);
  colours.composes = has_alpha && wanted.alpha == L3_TRANSPARENCY_BLEND;
  colours.used = colours.composes || (has_alpha && wanted.alpha == L3_TRANSPARENCY_DROP) ? in_colours : channels;
  const double most_in = static_cast<double>((1u << bits) - 1), most = static_cast<double>((1u << out_bits) - 1);
  const double depth = bits == out_bits ? 1.0 : most / most_in;
  colours.most = static_cast<float>(most);
  for (uint32_t i = 0; i < 4; ++i)
    colours.background[i] = std::clamp(wanted.background[i], 0.0f, static_cast<float>(most_in));

  Matrix matrix = {{{depth, 0, 0, 0}, {0, depth, 0, 0}, {0, 0, depth, 0}}};
  if (in_colours == 1) matrix = {{{depth, 0, 0, 0}, {depth, 0, 0, 0}, {depth, 0, 0, 0}}};
  const bool changes = wanted.jitter != 0;
  if (changes) {
    const Matrix change = jitter_matrix(jitter, most);
    // All three rows of a gray image are the same, so the result is that of RGB and stays gray.
    matrix = product(change, matrix);
  }
  if (out_colours == 1 && in_colours == 3) {
    for (size_t column = 0; column < 4; ++column) {
      double sum = 0;
      for (size_t row = 0; row < 3; ++row) sum += static_cast<double>(kLuma[row]) * matrix[row][column];
      matrix[0][column] = sum;
    }
  }
  for (uint32_t row = 0; row < out_colours; ++row) {
    for (uint32_t column = 0; column < in_colours; ++column) {
      colours.factor[row][column] = static_cast<float>(matrix[row][column]);
    }
    colours.offset[row] = static_cast<float>(matrix[row][3]);
  }
  if (colours.to > out_colours) colours.factor[colours.to - 1][channels - 1] = static_cast<float>(depth);
  colours.clamps = changes;
  colours.is_same = depth == 1 && !changes && out_colours == in_colours && colours.to <= colours.from;
  return colours;
}

}  // namespace loader
