// Decodes a tile that is not dense (section 6), with a FastMethodWarp. Every processor target compiles this same code.
// CUDA does too, except for fast tiles of samples up to 8 bits, which kernels/src/decode_fast.cuh decodes in its own
// way.
#pragma once

#include <type_traits>

#include "container/methods.h"
#include "engine/fast.h"

namespace l3 {

// Writes rows of a tile, 32 pixels at a time, and leaves out pixels that the caller did not ask for. kernels/ has
// another writer with the same put().
template <class W, class Sample, uint32_t kChannels>
class PixelWriter {
 public:
  using Lanes = typename W::Lanes;

  L3_INLINE PixelWriter(const TileShape& shape, const TileOutput& out)
      : out_(out), columns_(smaller(shape.width, out.x1)) {}

  // Writes the pixels in columns x to x + 31 of row y, except for those outside the tile or the requested part.
  L3_INLINE void put(uint32_t x, uint32_t y, const Lanes* channels) const {
    if (out_.pixels == nullptr || y < out_.y0 || y >= out_.y1) return;
    const uint32_t from = x < out_.x0 ? out_.x0 : x;
    const uint32_t to = smaller(x + kLanes, columns_);
    if (from >= to) return;
    uint8_t* row = out_.pixels + (y - out_.y0) * out_.stride;
    if constexpr (kChannels == 1 && sizeof(Sample) == 1) {
      if (out_.colours != nullptr) {
        W::store_colours(row + size_t{from - out_.x0} * out_.colour_bytes, channels[0], from - x, to - x, out_.colours,
                         out_.colour_bytes);
        return;
      }
    }
    constexpr uint32_t kPixel = kChannels * sizeof(Sample);
    uint8_t* at = row + size_t{from - out_.x0} * kPixel;
    if (to - from == kLanes) {
      W::template store_pixels<Sample, kChannels>(at, channels);
    } else {
      W::template store_some_pixels<Sample, kChannels>(at, channels, from - x, to - x);
    }
  }

 private:
  const TileOutput& out_;
  uint32_t columns_;
};

template <class W, class Sample, uint32_t kChannels, class Writer>
L3_INLINE Fault decode_constant(const TileEntry& entry, const TileOutput& out, const Writer& writer) {
  typename W::Lanes channels[kChannels];
  for (uint32_t c = 0; c < kChannels; ++c) channels[c] = W::splat(entry.value[c]);
  for (uint32_t y = out.y0; y < out.y1; ++y) {
    for (uint32_t x = out.x0 / kLanes * kLanes; x < out.x1; x += kLanes) writer.put(x, y, channels);
  }
  return {};
}

// Raw samples of 8 or 16 bits are stored as in memory. Loads 32 pixels at once if the warp supports it.
template <class W, class Sample, uint32_t kChannels>
L3_INLINE bool load_raw_pixels(const uint8_t* bytes, uint32_t bits, typename W::Lanes* channels) {
  if constexpr (requires { W::template load_pixels<Sample, kChannels>(bytes, channels); } &&
                (sizeof(Sample) == 1 || __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)) {
    if (bits != 8 * sizeof(Sample)) return false;
    W::template load_pixels<Sample, kChannels>(bytes, channels);
    return true;
  }
  return false;
}

template <class W, class Sample, uint32_t kChannels, class Writer>
L3_INLINE Fault decode_raw(const TileShape& shape, const TileEntry& entry, const TileOutput& out,
                           const Writer& writer) {
  const uint32_t step = kChannels * shape.bits;
  for (uint32_t y = out.y0; y < out.y1; ++y) {
    for (uint32_t x = out.x0 / kLanes * kLanes; x < out.x1; x += kLanes) {
      typename W::Lanes channels[kChannels];
      const uint32_t at = (y * shape.width + x) * step;
      const uint32_t count = smaller(kLanes, shape.width - x);
      if (count < kLanes || !load_raw_pixels<W, Sample, kChannels>(entry.payload + at / 8, shape.bits, channels)) {
        for (uint32_t c = 0; c < kChannels; ++c) {
          channels[c] = W::bit_fields(entry.payload, at + c * shape.bits, step, shape.bits, count);
        }
      }
      writer.put(x, y, channels);
    }
  }
  // The payload's size was verified with the index, so fewer than 128 bits are left over.
  const uint32_t end = shape.width * shape.height * step;
  for (uint32_t i = end / 8; i < entry.payload_bytes; ++i) {
    const uint32_t used = i == end / 8 ? end % 8 : 0;
    if (uint32_t{entry.payload[i]} >> used != 0) return {Reason::raw_padding, i};
  }
  return {};
}

template <class W, class Sample, uint32_t kChannels, class Writer>
class FastDecoder {
 public:
  using Lanes = typename W::Lanes;

  L3_INLINE FastDecoder(const TileShape& shape, const TileEntry& entry, const Writer& writer, typename W::Line& line)
      : shape_(shape),
        entry_(entry),
        writer_(writer),
        line_(line),
        reader_(entry.payload, entry.payload_bytes),
        mask_(W::splat((1u << shape.bits) - 1)) {}

  L3_INLINE Fault decode() {
    Fault fault = read_origins();
    for (uint32_t y = 0; y < shape_.height && fault.reason == Reason::none; y += kBandRows) fault = decode_band(y);
    return fault.reason != Reason::none ? fault : check_end();
  }

 private:
  L3_INLINE Fault read_origins() {
    const uint32_t strips = ceil_div(shape_.width, kLanes);
    const uint8_t* bytes = reader_.window(0);
    for (uint32_t c = 0; c < kChannels; ++c) {
      const uint32_t origin = load_u16(bytes + 2 * c);
      if (origin >> shape_.bits != 0) return {Reason::origin_range, 2 * c};
      for (uint32_t s = 0; s < strips; ++s) line_.store(s, c, W::splat(origin));
    }
    at_ = 2 * kChannels;  // within the payload, which has at least 16 bytes
    return {};
  }

  L3_INLINE Fault decode_band(uint32_t y) {
    const uint32_t rows = smaller(kBandRows, shape_.height - y);
    Lanes left[kChannels][kBandRows];  // the last column of the previous strip, broadcast to all lanes
    Lanes corner[kChannels];           // the sample above the first one of that column
    for (uint32_t x = 0; x < shape_.width; x += kLanes) {
      Lanes samples[kChannels][kBandRows];  // residuals, then samples
      uint32_t predictors[kChannels];
      for (uint32_t c = 0; c < kChannels; ++c) {
        const Fault fault = read_block(x, rows, predictors[c], samples[c]);
        if (fault.reason != Reason::none) return fault;
      }
      for (uint32_t c = 0; c < kChannels; ++c) {
        reconstruct(x, rows, c, predictors[c], samples[c], left[c], corner[c]);
      }
      for (uint32_t r = 0; r < rows; ++r) {
        Lanes pixel[kChannels];
        for (uint32_t c = 0; c < kChannels; ++c) pixel[c] = samples[c][r];
        if constexpr (kChannels >= 3) to_image<W>(entry_.parameters, shape_.bits, mask_, pixel);
        writer_.put(x, y + r, pixel);
      }
    }
    return {};
  }

  // Reads the block at at_ and unpacks its residuals.
  L3_INLINE Fault read_block(uint32_t x, uint32_t rows, uint32_t& predictor, Lanes* residuals) {
    const uint32_t room = entry_.payload_bytes - at_;
    if (room < 2) return {Reason::block_truncated, at_};
    const uint8_t* block = reader_.window(at_);
    const uint32_t fields = load_u16(block);
    predictor = fields & 7;
    const uint32_t base = fields >> 3 & 31;
    const uint32_t width_bits = fields >> 8 & 7;
    if (fields >> 11 != 0 || predictor >= kPredictors || base > shape_.bits || width_bits > kMaxWidthBits) {
      return {Reason::block_header, at_};
    }
    const uint32_t codes_at = 2 + 8 * width_bits;
    if (room < codes_at) return {Reason::block_truncated, at_};
    const uint32_t groups = smaller(kRowGroups, ceil_div(shape_.width - x, kGroupSamples));
    const typename W::Widths widths = W::Widths::parse(block + 2, width_bits, base, rows, groups, shape_.bits);
    if (!widths.valid) return {Reason::block_width, at_};
    const uint32_t block_bytes = codes_at + (widths.total + 1) / 2;
    if (room < block_bytes) return {Reason::block_truncated, at_};
    for (uint32_t r = 0; r < rows; ++r) {
      residuals[r] = W::template residuals<Sample>(block + codes_at, widths, r);
    }
    at_ += block_bytes;
    return {};
  }

  // Turns residuals into samples, in place. Keeps the last row in `line_` and the last column in `left` for later
  // blocks.
  L3_INLINE void reconstruct(uint32_t x, uint32_t rows, uint32_t c, uint32_t predictor, Lanes* samples, Lanes* left,
                             Lanes& corner) {
    const uint32_t strip = x / kLanes;
    const uint32_t edge = smaller(kLanes, shape_.width - x) - 1;
    Lanes n = line_.load(strip, c);
    Lanes before_n = strip == 0 ? W::first(n) : corner;
    corner = W::last(n);
    for (uint32_t r = 0; r < rows; ++r) {
      const Above<Lanes> above = neighbours<W>(n, before_n, edge);
      const Lanes before = strip == 0 ? W::first(n) : left[r];
      Lanes v = samples[r] + above_term<W>(predictor, above);
      if (runs_along_row(predictor)) v = W::scan_add(v) + before;
      n = v & mask_;
      samples[r] = n;
      left[r] = W::last(n);
      before_n = strip == 0 ? W::first(n) : before;
    }
    line_.store(strip, c, n);
  }

  L3_INLINE Fault check_end() {
    const uint32_t rest = entry_.payload_bytes - at_;
    if (rest >= kUnit) return {Reason::tile_leftover, at_};
    const uint8_t* bytes = reader_.window(at_);
    for (uint32_t i = 0; i < rest; ++i) {
      if (bytes[i] != 0) return {Reason::tile_padding, at_ + i};
    }
    return {};
  }

  const TileShape shape_;
  const TileEntry& entry_;
  const Writer& writer_;
  typename W::Line& line_;
  typename W::Reader reader_;
  Lanes mask_;
  uint32_t at_ = 0;  // in the payload
};

// Decodes a tile of one method, whose payload matches its check. The requested part must lie inside the tile.
template <class W, class Sample, uint32_t kChannels, class Writer>
struct TileDecoders {
  const TileShape& shape;
  const TileEntry& entry;
  const TileOutput& out;
  const Writer& writer;
  typename W::Line& line;

  L3_INLINE Fault decode(ConstantMethod) const { return decode_constant<W, Sample, kChannels>(entry, out, writer); }
  L3_INLINE Fault decode(RawMethod) const { return decode_raw<W, Sample, kChannels>(shape, entry, out, writer); }
  L3_INLINE Fault decode(FastMethod) const {
    return FastDecoder<W, Sample, kChannels, Writer>(shape, entry, writer, line).decode();
  }
};

// Decodes a tile that needs no model. `Elsewhere` is the row of a method that the caller decodes in its own way.
template <class W, class Sample, uint32_t kChannels, class Elsewhere = void, class Writer>
L3_INLINE Fault decode_tile(const TileShape& shape, const TileEntry& entry, const TileOutput& out, const Writer& writer,
                            typename W::Line& line) {
  const TileDecoders<W, Sample, kChannels, Writer> decoders{shape, entry, out, writer, line};
  Fault fault{Reason::tile_method, 0};
  Methods::visit(
      entry.method, [&]<class Row>() __attribute__((always_inline)) {
        if constexpr (!Row::kNeedsModel && !std::is_same_v<Row, Elsewhere>) fault = decoders.decode(Row{});
      });
  return fault;
}

}  // namespace l3
