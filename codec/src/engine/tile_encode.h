// Encodes a tile without a model (section 6): as constant if possible, else as fast, or as raw if that is no larger.
#pragma once

#include "container/tile.h"
#include "engine/fast_choices.h"

namespace l3 {

// A row of eight widths, a byte each. `widths` are raised to at least the base; `fields` are the widths minus the
// base, packed as the spec's fields.
struct WidthRow {
  uint64_t widths;
  uint64_t fields;

  L3_INLINE WidthRow(uint64_t row, uint64_t present, const WidthPlan& plan) {
    constexpr uint64_t kEach = 0x0101010101010101u;
    constexpr uint64_t kTop = 0x80 * kEach;
    const uint64_t base = plan.base * kEach;
    // No byte borrows from the next one. Its top bit is cleared if the width is below the base.
    const uint64_t above = (row | kTop) - base;
    const uint64_t keep = (above & kTop) - ((above & kTop) >> 7);
    const uint64_t over = above & keep & present;
    widths = (over + base) & present;
    // Pack eight fields of `width_bits` bits.
    const uint32_t d = plan.width_bits;
    uint64_t v = over;
    v = (v | v >> (8 - d)) & (((uint64_t{1} << (2 * d)) - 1) * 0x0001000100010001u);
    v = (v | v >> (16 - 2 * d)) & (((uint64_t{1} << (4 * d)) - 1) * 0x0000000100000001u);
    fields = (v | v >> (32 - 4 * d)) & ((uint64_t{1} << (8 * d)) - 1);
  }
};

// Appends bit fields whose size is a multiple of four. Writes whole words, so up to eight bytes after the last bit.
class FieldWriter {
 public:
  L3_INLINE explicit FieldWriter(uint8_t* out) : out_(out) {}
  static constexpr uint32_t kMax = 56;
  // `bits` is at most kMax, and no bit of `value` above them may be set.
  L3_INLINE void put(uint64_t value, uint32_t bits) {
    pending_ |= value << filled_;
    filled_ += bits;
    store_u64(out_, pending_);
    out_ += filled_ / 8;
    pending_ >>= filled_ & ~7u;
    filled_ &= 7;
  }
  // The byte after the last bit.
  L3_INLINE uint8_t* end() const { return out_ + (filled_ + 7) / 8; }

 private:
  uint8_t* out_;
  uint64_t pending_ = 0;
  uint32_t filled_ = 0;  // 0 or 4
};

// Encodes the blocks of a tile, whatever its number of channels.
template <class W, class Sample>
class BlockEncoder {
 public:
  using Lanes = typename W::Lanes;
  using GroupWidths = typename W::GroupWidths;

 protected:
  L3_INLINE BlockEncoder(const TileShape& shape, typename W::Line& line) : shape_(shape), line_(line) {}

  // Writes the block of a channel and returns its size.
  __attribute__((noinline)) uint32_t encode_block(uint32_t x, uint32_t rows, uint32_t c, const Lanes* samples,
                                                  Lanes* left, Lanes& corner, uint8_t* block) {
    Lanes residuals[kPredictors][kBandRows];
    predict(x, rows, c, samples, left, corner, residuals);
    GroupWidths widths[kPredictors];
    uint32_t best = 0;
    uint32_t minimum = ~0u;
    for (uint32_t p = 0; p < kPredictors; ++p) {
      widths[p] = W::template group_widths<Sample>(residuals[p], shape_.bits);
      const uint32_t sum = W::sum(widths[p]);
      if (sum < minimum) {
        minimum = sum;
        best = p;
      }
    }
    return write_block(x, rows, best, residuals[best], widths[best], block);
  }

  const TileShape shape_;
  typename W::Line& line_;

 private:
  // The residuals under each predictor. They are zero in lanes and rows outside the tile.
  L3_INLINE void predict(uint32_t x, uint32_t rows, uint32_t c, const Lanes* samples, Lanes* left, Lanes& corner,
                         Lanes (*residuals)[kBandRows]) {
    const uint32_t strip = x / kLanes;
    const uint32_t count = smaller(kLanes, shape_.width - x);
    Lanes n = line_.load(strip, c);
    Lanes before_n = strip == 0 ? W::first(n) : corner;
    corner = W::last(n);
    for (uint32_t r = 0; r < rows; ++r) {
      const Above<Lanes> above = neighbours<W>(n, before_n, count - 1);
      const Lanes before = strip == 0 ? W::first(n) : left[r];
      const Lanes v = samples[r];
      const Lanes w = W::shift_up(v, before);
      for (uint32_t p = 0; p < kPredictors; ++p) {
        Lanes residual = v - above_term<W>(p, above);
        if (runs_along_row(p)) residual = residual - w;
        residuals[p][r] = residual;
      }
      left[r] = W::last(v);
      before_n = strip == 0 ? W::first(v) : before;
      n = v;
    }
    line_.store(strip, c, n);
    const Lanes present = W::first_lanes(count);
    for (uint32_t p = 0; p < kPredictors; ++p) {
      if (count < kLanes) {
        for (uint32_t r = 0; r < rows; ++r) residuals[p][r] = residuals[p][r] & present;
      }
      for (uint32_t r = rows; r < kBandRows; ++r) residuals[p][r] = W::splat(0);
    }
  }

  L3_INLINE uint32_t write_block(uint32_t x, uint32_t rows, uint32_t predictor, const Lanes* residuals,
                                 const GroupWidths& widths, uint8_t* block) const {
    const uint32_t groups = smaller(kRowGroups, ceil_div(shape_.width - x, kGroupSamples));
    const uint64_t present = groups == kRowGroups ? ~uint64_t{0} : (uint64_t{1} << (8 * groups)) - 1;
    const Lanes present_lanes = W::first_lanes(smaller(kLanes, shape_.width - x));
    const WidthPlan plan = plan_widths<W>(widths, 64 - rows * groups);
    store_u16(block, predictor | plan.base << 3 | plan.width_bits << 8);
    uint8_t* fields = block + 2;
    FieldWriter writer(fields + 8 * plan.width_bits);
    uint64_t row_widths[kBandRows];
    W::row_words(widths, row_widths);
    for (uint32_t r = 0; r < kBandRows; ++r) {
      const WidthRow row(row_widths[r], r < rows ? present : 0, plan);
      row_widths[r] = row.widths;
      // This writes eight bytes. The next row, or the codes, overwrite what is too much.
      store_u64(fields + r * plan.width_bits, row.fields);
    }
    for (uint32_t r = 0; r < rows; ++r) {
      uint64_t codes[kRowGroups];
      W::join_codes(residuals[r], present_lanes, row_widths[r], codes);
      // The number of bits of each group and of each pair of groups.
      uint64_t bits = row_widths[r] << 2;
      uint64_t sums = (bits & 0x00FF00FF00FF00FFu) + (bits >> 8 & 0x00FF00FF00FF00FFu);
      for (uint32_t k = 0; k < kRowGroups; k += 2, bits >>= 16, sums >>= 16) {
        const uint32_t first = bits & 0xFF;
        const uint32_t both = sums & 0xFF;
        if (sizeof(Sample) == 1 && both <= FieldWriter::kMax) {
          writer.put(codes[k] | codes[k + 1] << first, both);
        } else {
          put_group(writer, codes[k], first);
          put_group(writer, codes[k + 1], both - first);
        }
      }
    }
    return static_cast<uint32_t>(writer.end() - block);
  }

  L3_INLINE static void put_group(FieldWriter& writer, uint64_t codes, uint32_t bits) {
    const uint32_t low = smaller(bits, 32);
    writer.put(codes & 0xFFFFFFFFu, low);
    writer.put(codes >> 32, bits - low);
  }
};

template <class W, class Sample, uint32_t kChannels>
class TileEncoder : BlockEncoder<W, Sample> {
  using Blocks = BlockEncoder<W, Sample>;
  using Blocks::line_, Blocks::shape_;
  using typename Blocks::Lanes;

 public:
  L3_INLINE TileEncoder(const TileShape& shape, const TileInput& in, typename W::Line& line)
      : Blocks(shape, line), in_(in), mask_(W::splat((1u << shape.bits) - 1)) {}

  // `out` must have room for raw_bytes() of the tile.
  L3_INLINE TileChoice encode(uint8_t* out) {
    TileChoice choice{};
    choice.in_range = samples_in_range();
    if (!choice.in_range) return choice;
    if (is_constant()) {
      choice.method = Method::constant;
      for (uint32_t c = 0; c < kChannels; ++c) choice.value[c] = static_cast<uint16_t>(sample(0, 0, c));
      return choice;
    }
    const uint32_t room = shape_.raw_bytes();
    transform_ = choose_transform();
    const uint32_t bytes = encode_fast(out, room);
    if (bytes != 0) {
      choice.method = Method::fast;
      choice.parameters = static_cast<uint8_t>(transform_);
      choice.used_bytes = bytes;
    } else {
      choice.method = Method::raw;
      choice.used_bytes = shape_.raw_bytes(1);
      encode_raw(out, room);
    }
    choice.payload_bytes = static_cast<uint32_t>(pad_to_unit(choice.used_bytes));
    return choice;
  }

 private:
  static constexpr uint32_t kPixel = kChannels * sizeof(Sample);

  L3_INLINE const uint8_t* pixel(uint32_t x, uint32_t y) const {
    return in_.pixels + y * in_.stride + size_t{x} * kPixel;
  }

  L3_INLINE uint32_t sample(uint32_t x, uint32_t y, uint32_t c) const {
    Sample s;
    __builtin_memcpy(&s, pixel(x, y) + c * sizeof(Sample), sizeof(Sample));
    return s;
  }

  // The pixels in columns x to x + 31. Columns outside the tile repeat the last pixel.
  L3_INLINE void load(uint32_t x, uint32_t y, Lanes* channels) const {
    const uint32_t count = shape_.width - x;
    if (count >= kLanes) {
      W::template load_pixels<Sample, kChannels>(pixel(x, y), channels);
      return;
    }
    uint8_t row[kLanes * kPixel];
    __builtin_memcpy(row, pixel(x, y), count * kPixel);
    for (uint32_t i = count * kPixel; i < sizeof(row); ++i) row[i] = row[i - kPixel];
    W::template load_pixels<Sample, kChannels>(row, channels);
  }

  L3_INLINE bool samples_in_range() const {
    if (shape_.bits == 8 * sizeof(Sample)) return true;
    Lanes seen = W::splat(0);
    for (uint32_t y = 0; y < shape_.height; ++y) {
      for (uint32_t x = 0; x < shape_.width; x += kLanes) {
        Lanes channels[kChannels];
        load(x, y, channels);
        for (uint32_t c = 0; c < kChannels; ++c) seen = seen | channels[c];
      }
    }
    return !W::differ(seen & mask_, seen);
  }

  L3_INLINE bool is_constant() const {
    for (uint32_t y = 0; y < shape_.height; ++y) {
      for (uint32_t x = 0; x < shape_.width; x += kLanes) {
        Lanes channels[kChannels];
        load(x, y, channels);
        for (uint32_t c = 0; c < kChannels; ++c) {
          if (W::differ(channels[c], W::splat(sample(0, 0, c)))) return false;
        }
      }
    }
    return true;
  }

  // The transform whose residuals need the fewest bits, estimated from a few rows and one predictor.
  L3_INLINE uint32_t choose_transform() const {
    if constexpr (kChannels < 3) {
      return 0;
    } else {
      uint32_t best = 0;
      uint32_t minimum = ~0u;
      for (uint32_t transform = 0; transform < kTransforms; ++transform) {
        const uint32_t bits = sampled_bits(transform);
        if (bits < minimum) {
          minimum = bits;
          best = transform;
        }
      }
      return best;
    }
  }

  L3_INLINE uint32_t sampled_bits(uint32_t transform) const {
    uint32_t bits = 0;
    for (uint32_t x = 0; x < shape_.width; x += kLanes) {
      Lanes residuals[3][kBandRows];
      uint32_t rows = 0;
      uint32_t y = smaller(kSampledRow, shape_.height - 1);
      while (y < shape_.height) {
        Lanes row[kChannels], row_above[kChannels];
        load(x, y, row);
        load(x, y == 0 ? 0 : y - 1, row_above);
        from_image<W>(transform, shape_.bits, mask_, row);
        from_image<W>(transform, shape_.bits, mask_, row_above);
        for (uint32_t c = 0; c < 3; ++c) {
          const Lanes n = row_above[c];
          const Above<Lanes> above = neighbours<W>(n, W::first(n), kLanes - 1);
          const Lanes w = W::shift_up(row[c], W::first(row[c]));
          residuals[c][rows] = row[c] - w - above_term<W>(kSampledPredictor, above);
        }
        ++rows;
        y += kSampledStep;
        if (rows == kBandRows || y >= shape_.height) {
          for (uint32_t c = 0; c < 3; ++c) {
            for (uint32_t r = rows; r < kBandRows; ++r) residuals[c][r] = W::splat(0);
            bits += W::sum(W::template group_widths<Sample>(residuals[c], shape_.bits));
          }
          rows = 0;
        }
      }
    }
    return bits;
  }

  // Returns the size of the payload without the zeros at its end, or 0 if it would not be smaller than `room`.
  L3_INLINE uint32_t encode_fast(uint8_t* out, uint32_t room) {
    uint8_t block[kMaxBlockBytes + 16];
    Lanes origin[kChannels];
    first_pixel(origin);
    uint32_t at = 2 * kChannels;
    for (uint32_t c = 0; c < kChannels; ++c) {
      for (uint32_t s = 0; s < ceil_div(shape_.width, kLanes); ++s) line_.store(s, c, origin[c]);
      store_u16(out + 2 * c, W::to_scalar(origin[c]));
    }
    for (uint32_t y = 0; y < shape_.height; y += kBandRows) {
      const uint32_t rows = smaller(kBandRows, shape_.height - y);
      Lanes left[kChannels][kBandRows];
      Lanes corner[kChannels];
      for (uint32_t x = 0; x < shape_.width; x += kLanes) {
        Lanes samples[kChannels][kBandRows];
        for (uint32_t r = 0; r < rows; ++r) {
          Lanes row[kChannels];
          load(x, y + r, row);
          if constexpr (kChannels >= 3) from_image<W>(transform_, shape_.bits, mask_, row);
          for (uint32_t c = 0; c < kChannels; ++c) samples[c][r] = row[c];
        }
        for (uint32_t c = 0; c < kChannels; ++c) {
          const uint32_t bytes = this->encode_block(x, rows, c, samples[c], left[c], corner[c], block);
          if (at + bytes >= room) return 0;
          __builtin_memcpy(out + at, block, bytes);
          at += bytes;
        }
      }
    }
    const uint32_t padded = static_cast<uint32_t>(pad_to_unit(at));
    if (padded >= room) return 0;
    for (uint32_t i = at; i < padded; ++i) out[i] = 0;
    return at < kMinTinyFast ? kMinTinyFast : at;
  }

  // The first pixel, transformed, broadcast to all lanes.
  L3_INLINE void first_pixel(Lanes* channels) const {
    for (uint32_t c = 0; c < kChannels; ++c) channels[c] = W::splat(sample(0, 0, c));
    if constexpr (kChannels >= 3) from_image<W>(transform_, shape_.bits, mask_, channels);
  }

  L3_INLINE void encode_raw(uint8_t* out, uint32_t bytes) const {
    constexpr uint32_t kFull = 8 * sizeof(Sample);
    if (shape_.bits == kFull && (kFull == 8 || __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)) {
      const size_t row = size_t{shape_.width} * kPixel;
      for (uint32_t y = 0; y < shape_.height; ++y) __builtin_memcpy(out + y * row, pixel(0, y), row);
      for (size_t i = row * shape_.height; i < bytes; ++i) out[i] = 0;
      return;
    }
    for (uint32_t i = 0; i < bytes; ++i) out[i] = 0;
    uint32_t bit = 0;
    for (uint32_t y = 0; y < shape_.height; ++y) {
      for (uint32_t x = 0; x < shape_.width; ++x) {
        for (uint32_t c = 0; c < kChannels; ++c, bit += shape_.bits) {
          uint32_t rest = sample(x, y, c) << (bit % 8);
          for (uint32_t i = bit / 8; rest != 0; ++i, rest >>= 8) out[i] |= static_cast<uint8_t>(rest);
        }
      }
    }
  }

  const TileInput in_;
  Lanes mask_;
  uint32_t transform_ = 0;
};

}  // namespace l3
