#include "loader/resample.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "loader/tensor_writer.h"
#include "resample_rows.h"
#include "row_writer.h"

namespace loader {
namespace {

constexpr size_t kStep = 16;   // ResampleRows works on multiples of this
constexpr size_t kSlack = 64;  // that may be read after a row
constexpr uint32_t kBand = 16;

size_t up_to(size_t size, size_t multiple) { return (size + multiple - 1) / multiple * multiple; }

void combine(const uint8_t* const* rows, const int16_t* weights, uint32_t taps, uint32_t shift, size_t width,
             int16_t* out) {
  constexpr size_t kBlock = 64;
  for (size_t x = 0; x < width; x += kBlock) {
    const size_t count = std::min(kBlock, width - x);
    int32_t sums[kBlock];
    std::fill_n(sums, kBlock, 1 << (shift - 1));
    for (uint32_t tap = 0; tap < taps; ++tap) {
      const uint8_t* row = rows[tap] + x;
      const int32_t weight = weights[tap];
      for (size_t i = 0; i < count; ++i) sums[i] += weight * row[i];
    }
    for (size_t i = 0; i < count; ++i) out[x + i] = static_cast<int16_t>(sums[i] >> shift);
  }
}

void pick(const int16_t* row, const uint32_t* first, const int16_t* weights, uint32_t groups, size_t count,
          int32_t* out) {
  const size_t taps = size_t{groups} * kGroup;
  for (size_t i = 0; i < count; ++i, weights += taps) {
    const int16_t* from = row + first[i];
    int32_t sum = 0;
    for (size_t tap = 0; tap < taps; ++tap) sum += int32_t{from[tap]} * weights[tap];
    out[i] = sum;
  }
}

void combine_fine(const uint16_t* const* rows, const float* weights, uint32_t taps, size_t width, float* out) {
  for (size_t x = 0; x < width; ++x) {
    float sum = 0;
    for (uint32_t tap = 0; tap < taps; ++tap) sum = std::fma(static_cast<float>(rows[tap][x]), weights[tap], sum);
    out[x] = sum;
  }
}

void pick_fine(const float* row, const uint32_t* first, const float* weights, uint32_t taps, size_t stride,
               size_t count, float* out) {
  for (size_t i = 0; i < count; ++i) {
    float sum = 0;
    for (uint32_t tap = 0; tap < taps; ++tap) sum = std::fma(row[first[i] + tap], weights[tap * stride + i], sum);
    out[i] = sum;
  }
}

void row_to_f16(const float* row, size_t count, float scale, float bias, uint16_t* out) {
  for (size_t i = 0; i < count; ++i) out[i] = to_f16(std::fma(row[i], scale, bias));
}
void row_to_bf16(const float* row, size_t count, float scale, float bias, uint16_t* out) {
  for (size_t i = 0; i < count; ++i) out[i] = to_bf16(std::fma(row[i], scale, bias));
}
void row_to_f32(const float* row, size_t count, float scale, float bias, float* out) {
  for (size_t i = 0; i < count; ++i) out[i] = std::fma(row[i], scale, bias);
}

// All values are in the range of the type.
template <class Out>
void to_integers(const float* row, size_t count, Out* out) {
  for (size_t i = 0; i < count; ++i) out[i] = static_cast<Out>(std::nearbyint(row[i]));
}

void row_to_u8(const float* row, size_t count, uint8_t* out) {
  for (size_t i = 0; i < count; ++i) out[i] = static_cast<uint8_t>(std::nearbyint(std::clamp(row[i], 0.0f, 255.0f)));
}

constexpr ResampleRows kPortable = {combine,    pick,        combine_fine, pick_fine,
                                    row_to_f16, row_to_bf16, row_to_f32,   row_to_u8};

// Puts the samples of one pixel after the other: `step` values of `size` bytes lie between those of `to`.
void spread(const uint8_t* from, size_t count, size_t size, size_t step, uint8_t* to) {
  const auto copy = [&](auto value) {
    using T = decltype(value);
    const T* in = reinterpret_cast<const T*>(from);
    T* out = reinterpret_cast<T*>(to);
    for (size_t i = 0; i < count; ++i) out[i * step] = in[i];
  };
  switch (size) {
    case 1: return copy(uint8_t{});
    case 2: return copy(uint16_t{});
    case 4: return copy(uint32_t{});
    default: return copy(uint64_t{});
  }
}

template <class T>
void split_row(const T* pixels, uint32_t width, uint32_t channels, T* const* rows) {
  for (uint32_t c = 0; c < channels; ++c) {
    for (uint32_t x = 0; x < width; ++x) rows[c][x] = pixels[size_t{x} * channels + c];
  }
}

// Blends a row with the background, by the alpha of the last channel.
template <class T>
void compose_row(const Colours& colours, uint32_t width, uint32_t most, T* const* rows) {
  const uint32_t kept = colours.from - 1;
  const T* alpha = rows[kept];
  for (uint32_t c = 0; c < kept; ++c) {
    const uint32_t behind = static_cast<uint32_t>(std::nearbyint(colours.background[c]));
    for (uint32_t x = 0; x < width; ++x) {
      rows[c][x] = static_cast<T>(base::blended(rows[c][x], behind, alpha[x], most, colours.is_premultiplied));
    }
  }
}

}  // namespace

const ResampleRows& resample_rows() {
#ifdef L3_HAS_AVX2_ROWS
  static const bool has_avx2 = row_writer() != nullptr;
  if (has_avx2) return kAvx2ResampleRows;
#endif
#ifdef L3_HAS_NEON_ROWS
  static const char* const asked = std::getenv("L3_CPU");
  if (asked == nullptr || std::strcmp(asked, "portable") != 0) return kNeonResampleRows;
#endif
  return kPortable;
}

void Geometry::set_between(uint32_t bits, uint32_t type) {
  const bool is_float = type >= L3_VALUE_F16 && type <= L3_VALUE_F32;
  between = base::settle_between(rows, columns, bits, is_float, is_on_its_side);
}

// `by_tap`: the fine weights of one tap are adjacent, else those of one sample.
void Resampler::fill(Table& table, const base::ResizeAxis& axis, uint32_t most_precision, bool is_fine, bool by_tap) {
  // Images of one size need the same taps.
  if (table.is_fine == is_fine && std::memcmp(&table.of, &axis, sizeof axis) == 0) return;
  table.of = axis;
  table.is_fine = is_fine;
  const uint32_t out = axis.total;
  table.first.assign(out, 0);
  table.count.assign(out, 0);
  table.precision = base::precision_of(axis, most_precision);
  table.picks = axis.filter <= base::kNearestExact;
  table.begin = out;
  table.end = 0;
  const uint32_t most = base::most_taps(axis);
  table.stride = static_cast<uint32_t>(is_fine ? most : up_to(most, kGroup));
  const size_t size = table.picks ? 0 : size_t{out} * table.stride;
  is_fine ? table.fine.assign(size, 0) : table.weights.assign(size, 0);
  // Taps of the second pass may begin earlier, with weights of zero, so that reading all of them stays near the row.
  const uint32_t room = axis.region + (is_fine ? 0 : kGroup);
  const uint32_t last_first = room > table.stride ? room - table.stride : 0;
  for (uint32_t i = 0; i < out; ++i) {
    const int64_t at = base::content_at(axis, i);
    if (at < 0) continue;
    table.begin = std::min(table.begin, i);
    table.end = i + 1;
    const uint32_t number = axis.window + static_cast<uint32_t>(at);
    const base::Taps taps = base::taps_of(axis, number);
    const uint32_t first = base::first_stored(axis, taps);
    table.first[i] = by_tap && !table.picks ? std::min(first, last_first) : first;
    table.count[i] = taps.count;
    if (table.picks) continue;
    const uint32_t skipped = first - table.first[i];
    if (is_fine) {
      base::put_fine_weights(axis, number, taps, [&](uint32_t tap, float weight) {
        table.fine[by_tap ? size_t{skipped + tap} * out + i : size_t{i} * table.stride + tap] = weight;
      });
    } else {
      base::put_weights(axis, number, taps, table.precision, [&](uint32_t tap, int32_t weight) {
        table.weights[size_t{i} * table.stride + skipped + tap] = static_cast<int16_t>(weight);
      });
    }
  }
}

// Splits the region into channels.
void Resampler::split(const uint8_t* pixels, uint32_t bits, const Geometry& geometry, const Colours& colours) {
  const uint32_t width = geometry.region_width(), height = geometry.region_height();
  const uint32_t size = bits > 8 ? 2 : 1;
  const uint32_t channels = colours.from;
  row_bytes_ = up_to(size_t{width} * size, 2 * kStep) + kSlack;
  plane_bytes_ = row_bytes_ * height;
  if (planes_.size() < plane_bytes_ * channels) planes_.resize(plane_bytes_ * channels);
  const RowWriter* vectors = size == 1 ? row_writer() : nullptr;
  for (uint32_t y = 0; y < height; ++y, pixels += size_t{width} * channels * size) {
    uint8_t* rows[4] = {};
    for (uint32_t c = 0; c < channels; ++c) rows[c] = planes_.data() + c * plane_bytes_ + y * row_bytes_;
    if (channels == 1) {
      std::memcpy(rows[0], pixels, size_t{width} * size);
    } else if (size == 1) {
      uint32_t begun = 0;
      if (vectors != nullptr && channels >= 3) {
        begun = static_cast<uint32_t>(channels == 3 ? vectors->split3(pixels, width, rows)
                                                    : vectors->split4(pixels, width, rows));
      }
      uint8_t* rest[4] = {rows[0] + begun, rows[1] + begun, rows[2] + begun, rows[3] + begun};
      split_row(pixels + size_t{begun} * channels, width - begun, channels, rest);
    } else {
      uint16_t* wide[4] = {};
      for (uint32_t c = 0; c < channels; ++c) wide[c] = reinterpret_cast<uint16_t*>(rows[c]);
      split_row(reinterpret_cast<const uint16_t*>(pixels), width, channels, wide);
    }
    if (!colours.composes) continue;
    const uint32_t most = (1u << bits) - 1;
    if (size == 1) {
      compose_row(colours, width, most, rows);
    } else {
      uint16_t* wide[4] = {};
      for (uint32_t c = 0; c < channels; ++c) wide[c] = reinterpret_cast<uint16_t*>(rows[c]);
      compose_row(colours, width, most, wide);
    }
  }
}

// Combines the columns of the whole region, to bytes.
void Resampler::limit_rows(const Colours& colours, const Geometry& geometry, uint32_t bits) {
  const ResampleRows& loops = resample_rows();
  const int32_t most = (1 << bits) - 1;
  const uint32_t count = columns_.end - columns_.begin, width = geometry.region_width();
  limited_row_bytes_ = up_to(columns_.first.size(), kStep);
  const size_t size = limited_row_bytes_ * geometry.region_height() * colours.used;
  if (limited_.size() < size) limited_.resize(size);
  uint8_t* out = limited_.data();
  for (uint32_t c = 0; c < colours.used; ++c) {
    for (uint32_t y = 0; y < geometry.region_height(); ++y, out += limited_row_bytes_) {
      const uint8_t* row = planes_.data() + c * plane_bytes_ + y * row_bytes_;
      std::copy(row, row + width, between_.begin());
      loops.pick(between_.data(), columns_.first.data() + columns_.begin,
                 columns_.weights.data() + size_t{columns_.begin} * columns_.stride, columns_.stride / kGroup, count,
                 sums_.data());
      for (uint32_t x = 0; x < count; ++x) {
        out[columns_.begin + x] = static_cast<uint8_t>(base::limited_sample(sums_[x], columns_.precision, most));
      }
    }
  }
}

// Makes a row of the result, in samples as they were decoded, for each channel.
void Resampler::make_row(uint32_t row, uint32_t bits, uint32_t channels, float* const* out) {
  const ResampleRows& loops = resample_rows();
  const uint32_t taps = rows_.count[row], first = rows_.first[row];
  const uint32_t begin = columns_.begin, count = columns_.end - columns_.begin;
  const size_t width = (row_bytes_ - kSlack) / (bits > 8 ? 2 : 1);
  taken_.resize(taps);
  for (uint32_t c = 0; c < channels; ++c) {
    const uint8_t* plane = planes_.data() + c * plane_bytes_;
    uint64_t row_bytes = row_bytes_;
    if (between_passes_ == base::kLimitAfterColumns) {
      row_bytes = limited_row_bytes_;
      plane = limited_.data() + c * row_bytes * (plane_bytes_ / row_bytes_);
    }
    for (uint32_t tap = 0; tap < taps; ++tap) taken_[tap] = plane + (first + tap) * row_bytes;
    if (rows_.picks && columns_.picks) {
      const uint32_t* places = columns_.first.data() + begin;
      if (bits > 8) {
        const auto* from = reinterpret_cast<const uint16_t*>(taken_[0]);
        for (uint32_t x = 0; x < count; ++x) out[c][begin + x] = from[places[x]];
      } else {
        for (uint32_t x = 0; x < count; ++x) out[c][begin + x] = taken_[0][places[x]];
      }
      continue;
    }
    constexpr int16_t kWhole = 1 << 14;
    constexpr float kOne = 1;
    if (bits > 8) {
      loops.combine_fine(reinterpret_cast<const uint16_t* const*>(taken_.data()),
                         rows_.picks ? &kOne : rows_.fine.data() + size_t{row} * rows_.stride, taps, width,
                         fine_between_.data());
      if (columns_.picks) {
        for (uint32_t x = begin; x < columns_.end; ++x) out[c][x] = fine_between_[columns_.first[x]];
      } else {
        loops.pick_fine(fine_between_.data(), columns_.first.data() + begin, columns_.fine.data() + begin,
                        columns_.stride, columns_.first.size(), count, out[c] + begin);
      }
      continue;
    }
    const uint32_t fraction = base::fraction_of(columns_.of, bits, between_passes_);
    const uint32_t precision = rows_.picks ? 14 : rows_.precision;
    const bool is_last_pass = between_passes_ == base::kLimitAfterColumns;
    loops.combine(taken_.data(), rows_.picks ? &kWhole : rows_.weights.data() + size_t{row} * rows_.stride, taps,
                  precision - fraction, is_last_pass ? limited_row_bytes_ : width, between_.data());
    if (between_passes_ == base::kLimitAfterRows) {
      const int32_t most = (1 << bits) - 1;
      for (size_t x = 0; x < width; ++x) between_[x] = static_cast<int16_t>(std::clamp<int32_t>(between_[x], 0, most));
    }
    if (is_last_pass) {
      for (uint32_t x = begin; x < columns_.end; ++x) out[c][x] = static_cast<float>(between_[x]);
    } else if (columns_.picks) {
      const float unit = std::ldexp(1.0f, -static_cast<int>(fraction));
      for (uint32_t x = begin; x < columns_.end; ++x) {
        out[c][x] = static_cast<float>(between_[columns_.first[x]]) * unit;
      }
    } else {
      loops.pick(between_.data(), columns_.first.data() + begin,
                 columns_.weights.data() + size_t{begin} * columns_.stride, columns_.stride / kGroup, count,
                 sums_.data());
      if (between_passes_ == base::kLimitAfterRows) {
        const int32_t most = (1 << bits) - 1;
        for (uint32_t x = 0; x < count; ++x) {
          out[c][begin + x] = static_cast<float>(base::limited_sample(sums_[x], columns_.precision, most));
        }
      } else {
        const float unit = std::ldexp(1.0f, -static_cast<int>(columns_.precision + fraction));
        const int32_t* const sums = sums_.data();
        float* const to = out[c] + begin;
        for (uint32_t x = 0; x < count; ++x) to[x] = static_cast<float>(sums[x]) * unit;
      }
    }
  }
}

void Resampler::change_colours(const Colours& colours, bool limits, float* const* rows, uint32_t begin,
                               uint32_t end) const {
  if (!colours.is_same) {
    constexpr uint32_t kBlock = 64;
    float made[4][kBlock];
    for (uint32_t at = begin; at < end; at += kBlock) {
      const uint32_t count = std::min(kBlock, end - at);
      for (uint32_t c = 0; c < colours.to; ++c) {
        for (uint32_t x = 0; x < count; ++x) made[c][x] = colours.offset[c];
        for (uint32_t from = 0; from < colours.used; ++from) {
          const float factor = colours.factor[c][from];
          if (factor == 0) continue;
          for (uint32_t x = 0; x < count; ++x) made[c][x] += factor * rows[from][at + x];
        }
      }
      for (uint32_t c = 0; c < colours.to; ++c) std::copy_n(made[c], count, rows[c] + at);
    }
  }
  if (!colours.clamps && !limits) return;
  for (uint32_t c = 0; c < colours.to; ++c) {
    for (uint32_t x = begin; x < end; ++x) rows[c][x] = std::clamp(rows[c][x], 0.0f, colours.most);
  }
}

// Writes a row of the output.
void Resampler::write_row(const Colours& colours, const Values& values, float* const* rows, uint32_t width,
                          uint8_t* out) {
  const ResampleRows& loops = resample_rows();
  const size_t size = value_bytes(values.type);
  const bool planes = values.layout == L3_LAYOUT_CHW || colours.to == 1;
  if (!planes && values_.size() < width * size) values_.resize(width * size);
  for (uint32_t c = 0; c < colours.to; ++c) {
    uint8_t* const to = planes ? out + c * values.plane_stride : values_.data();
    const float* row = rows[c];
    switch (values.type) {
      case L3_VALUE_F16:
        loops.to_f16(row, width, values.scale[c], values.bias[c], reinterpret_cast<uint16_t*>(to));
        break;
      case L3_VALUE_BF16:
        loops.to_bf16(row, width, values.scale[c], values.bias[c], reinterpret_cast<uint16_t*>(to));
        break;
      case L3_VALUE_F32: loops.to_f32(row, width, values.scale[c], values.bias[c], reinterpret_cast<float*>(to)); break;
      case L3_VALUE_U8: loops.to_u8(row, width, to); break;
      case L3_VALUE_I16: to_integers(row, width, reinterpret_cast<int16_t*>(to)); break;
      case L3_VALUE_I32: to_integers(row, width, reinterpret_cast<int32_t*>(to)); break;
      case L3_VALUE_I64: to_integers(row, width, reinterpret_cast<int64_t*>(to)); break;
      default: to_integers(row, width, reinterpret_cast<uint16_t*>(to)); break;
    }
    if (!planes) spread(values_.data(), width, size, colours.to, out + c * size);
  }
}

void Resampler::run(const uint8_t* pixels, uint32_t bits, const Geometry& geometry, const Colours& colours,
                    const Values& values, uint8_t* out) {
  const bool is_fine = bits > 8;
  fill(rows_, geometry.rows, base::kMostRowPrecision, is_fine, false);
  fill(columns_, geometry.columns, base::most_column_precision(geometry.columns), is_fine, true);
  split(pixels, bits, geometry, colours);
  const size_t width = geometry.columns.total;
  const size_t between = up_to(std::max<size_t>(geometry.region_width(), width), 2 * kStep) + kSlack;
  if (is_fine) {
    if (fine_between_.size() < between) fine_between_.resize(between);
  } else if (between_.size() < between) {
    between_.resize(between);
  }
  if (sums_.size() < width) sums_.resize(width);
  between_passes_ = geometry.between;
  if (between_passes_ == base::kLimitAfterColumns) limit_rows(colours, geometry, bits);
  const uint32_t channels = std::max(colours.from, colours.to);
  const size_t row_floats = up_to(width, kStep);
  // An image that is turned on its side is written by bands of rows, so that each write fills a cache line.
  const size_t band = geometry.transposed ? kBand : 1;
  floats_.resize(std::max(floats_.size(), row_floats * channels * band));
  float* rows[4] = {};
  for (uint32_t c = 0; c < channels; ++c) rows[c] = floats_.data() + c * band * row_floats;

  const uint32_t out_width = geometry.width(), out_height = geometry.height();
  const size_t turned = size_t{out_width} * out_height;
  // Bicubic interpolation goes beyond the range, which integers do not have. Padding may be outside of it.
  const bool is_float = values.type >= L3_VALUE_F16 && values.type <= L3_VALUE_F32;
  const bool limits = !is_float && !colours.clamps && (values.type != L3_VALUE_U8 || colours.most != 255);
  if (geometry.transposed && turned_.size() < turned * colours.to) turned_.resize(turned * colours.to);
  for (uint32_t y = 0; y < geometry.rows.total; ++y) {
    if (rows_.count[y] != 0) {
      make_row(y, bits, colours.used, rows);
      change_colours(colours, limits, rows, columns_.begin, columns_.end);
      for (uint32_t c = 0; c < colours.to; ++c) {
        std::fill(rows[c], rows[c] + columns_.begin, values.pad[c]);
        std::fill(rows[c] + columns_.end, rows[c] + width, values.pad[c]);
      }
    } else {
      for (uint32_t c = 0; c < colours.to; ++c) std::fill_n(rows[c], width, values.pad[c]);
    }
    if (!geometry.transposed) {
      write_row(colours, values, rows, out_width, out + y * values.row_stride);
      continue;
    }
    const uint32_t in_band = y % kBand + 1;
    if (in_band < band && y + 1 < geometry.rows.total) {
      for (uint32_t c = 0; c < channels; ++c) rows[c] += row_floats;
      continue;
    }
    for (uint32_t c = 0; c < channels; ++c) rows[c] -= (in_band - 1) * row_floats;
    for (uint32_t c = 0; c < colours.to; ++c) {
      float* to = turned_.data() + c * turned + (y + 1 - in_band);
      for (uint32_t x = 0; x < width; ++x, to += out_width) {
        for (uint32_t i = 0; i < in_band; ++i) to[i] = rows[c][i * row_floats + x];
      }
    }
  }
  if (!geometry.transposed) return;
  for (uint32_t y = 0; y < out_height; ++y) {
    for (uint32_t c = 0; c < colours.to; ++c) rows[c] = turned_.data() + c * turned + size_t{y} * out_width;
    write_row(colours, values, rows, out_width, out + y * values.row_stride);
  }
}

}  // namespace loader
