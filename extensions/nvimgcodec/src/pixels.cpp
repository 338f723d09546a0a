#include "pixels.h"

#include <cstring>

namespace l3_nvimgcodec {
namespace {

// One channel of one row, which begins at `to` and whose pixels are `step` bytes apart.
template <class In, class Out>
void write_row(const In* from, const Source& source, int part, uint8_t* to, ptrdiff_t step, uint32_t greatest) {
  const uint32_t from_greatest = (uint32_t{1} << source.bits) - 1;
  const uint32_t channels = source.channels;
  // At most 65535 * 65535 + 32767, which is less than 2^32.
  const auto scale = [&](uint32_t sample) { return (sample * greatest + from_greatest / 2) / from_greatest; };
  const auto write = [&](const auto& sample_at) {
    for (uint32_t x = 0; x < source.width; ++x) {
      const auto value = static_cast<Out>(sample_at(from + size_t{x} * channels));
      std::memcpy(to + static_cast<ptrdiff_t>(x) * step, &value, sizeof(value));
    }
  };
  if (part == kOpaque) {
    write([&](const In*) { return greatest; });
  } else if (part == kLuma) {
    // The weights add up to 65536.
    write([&](const In* pixel) {
      return scale((pixel[0] * 19595u + pixel[1] * 38470u + pixel[2] * 7471u + 32768u) >> 16);
    });
  } else if (greatest == from_greatest) {
    write([&](const In* pixel) { return uint32_t{pixel[part]}; });
  } else {
    write([&](const In* pixel) { return scale(pixel[part]); });
  }
}

template <class In, class Out>
void write_all(const Source& source, const Target& target) {
  const Turn turn = Turn::of(target.orientation);
  const uint32_t out_width = turn.is_transposed ? source.height : source.width;
  const uint32_t out_height = turn.is_transposed ? source.width : source.height;
  // Where the source's first pixel goes, and how far one column and one row of the source lead from there.
  const auto pixel = static_cast<ptrdiff_t>(target.pixel) * (turn.mirrors_x ? -1 : 1);
  const auto row = static_cast<ptrdiff_t>(target.row) * (turn.mirrors_y ? -1 : 1);
  const size_t first =
      (turn.mirrors_x ? (out_width - 1) * target.pixel : 0) + (turn.mirrors_y ? (out_height - 1) * target.row : 0);
  const ptrdiff_t column_step = turn.is_transposed ? row : pixel;
  const ptrdiff_t row_step = turn.is_transposed ? pixel : row;
  const uint32_t greatest = (uint32_t{1} << target.bits) - 1;

  const size_t in_row = size_t{source.width} * source.channels;
  for (uint32_t y = 0; y < source.height; ++y) {
    const In* const from = static_cast<const In*>(source.samples) + y * in_row;
    for (uint32_t c = 0; c < target.count; ++c) {
      uint8_t* const to = target.channel[c] + first + static_cast<ptrdiff_t>(y) * row_step;
      write_row<In, Out>(from, source, target.parts[c], to, column_step, greatest);
    }
  }
}

}  // namespace

Turn Turn::of(uint32_t orientation) {
  const bool mirrors_x = orientation == 2 || orientation == 3 || orientation == 6 || orientation == 7;
  const bool mirrors_y = orientation == 3 || orientation == 4 || orientation == 7 || orientation == 8;
  return {orientation >= 5, mirrors_x, mirrors_y};
}

void write_pixels(const Source& source, const Target& target) {
  if (source.bits > 8) {
    target.is_wide ? write_all<uint16_t, uint16_t>(source, target) : write_all<uint16_t, uint8_t>(source, target);
  } else {
    target.is_wide ? write_all<uint8_t, uint16_t>(source, target) : write_all<uint8_t, uint8_t>(source, target);
  }
}

}  // namespace l3_nvimgcodec
