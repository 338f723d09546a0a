// Writes the pixels of tiles with a token model: converts values to samples, and samples to the output type.
#pragma once

#include "models/token.h"
#include "pixel_groups.cuh"

namespace l3 {

// Takes the pixels of kChannels engine channels, two values per word.
template <uint32_t kChannels>
class TokenPixels : public PixelGroups<kChannels> {
  using Groups = PixelGroups<kChannels>;
  using Groups::place_, Groups::sample_bits_;

 public:
  using typename Groups::Lanes;

  L3_INLINE TokenPixels(const TilePlace& place, const TokenTables& model) : Groups(place), model_(model) {}

  L3_INLINE void begin(uint32_t, uint32_t, uint32_t) {
    this->begin_groups(model_.channels, model_.bits <= 8);
    listing_ = CudaWordWarp::uniform(static_cast<uint32_t>(model_.listing));
  }
  L3_INLINE void put(uint32_t, uint32_t, Lanes row, Lanes column, const Lanes* values, bool active) {
    this->put_next(column.v, row.v, active, [&] { return pixel_of(values); });
  }

 private:
  L3_INLINE static uint32_t value(const Lanes* values, uint32_t c) {
    return kChannels == 1 ? values[0].v : values[c / 2].v >> (16 * (c % 2)) & 0xFFFF;
  }

  // Returns the samples of a pixel, with sample_bits_ bits each, or the colour for an index.
  L3_INLINE uint64_t pixel_of(const Lanes* values) const {
    uint64_t pixel = 0;
    const uint32_t samples = kChannels == 1 ? model_.channels : kChannels;
    if (kChannels == 1 && listing_ == static_cast<uint32_t>(Listing::colours)) {
      const uint32_t colour = value(values, 0);
      if (colour < model_.value_count[0]) {
        for (uint32_t c = 0; c < samples; ++c) {
          pixel |= uint64_t{model_.values[colour * samples + c]} << (sample_bits_ * c);
        }
      }
    } else {
#pragma unroll
      for (uint32_t c = 0; c < kChannels; ++c) {
        uint32_t sample = value(values, c);
        if (listing_ != static_cast<uint32_t>(Listing::none)) sample = model_.sample_of(c, sample);
        pixel |= uint64_t{sample} << (sample_bits_ * c);
      }
    }
    if (kChannels == 1 && place_.colours != nullptr) pixel = place_.colours[pixel & 0xFF];
    return pixel;
  }

  const TokenTables& model_;
  uint32_t listing_ = 0;
};

// Writes such tiles of images of one channel, whose samples have kBytes bytes.
template <uint32_t kBytes>
class TokenSamples {
 public:
  using Lanes = CudaWordWarp::Lanes;

  L3_INLINE TokenSamples(const TilePlace& place, const TokenTables& model)
      : pixels_(place.address(0, 0)), stride_(static_cast<uint32_t>(place.out->row_step)), model_(model) {}

  L3_INLINE void begin(uint32_t width, uint32_t, uint32_t) {
    const bool aligned = ((reinterpret_cast<uintptr_t>(pixels_) | stride_) & (4 * kBytes - 1)) == 0;
    in_words_ = CudaWordWarp::uniform(aligned ? width & ~3u : 0);
    const uint32_t first = model_.listing == Listing::ranks ? model_.first_value[0] : 0;
    listed_ = CudaWordWarp::uniform(model_.listing == Listing::none ? 0 : model_.value_count[0]);
    values_ = reinterpret_cast<const uint8_t*>(model_.values + first);
  }

  L3_INLINE void save_states(uint32_t, uint32_t, const Lanes (&)[1]) {}
  L3_INLINE void end_step(uint32_t) {}
  L3_INLINE void put(uint32_t, uint32_t, Lanes row, Lanes column, const Lanes* values, bool active) {
    const uint32_t x = column.v;
    uint32_t sample = values[0].v;
    if (listed_ != 0) sample = sample < listed_ ? load_global_u16(multiply_add_wide(sample, 2, values_)) : 0;
    if (active) {
      if (x >= in_words_) {
        put_one(address(row.v, x), sample);
      } else if ((x & 3) == 3) {
        put_group(address(row.v, x - 3), sample);
      }
    }
    before_[2] = before_[1];
    before_[1] = before_[0];
    before_[0] = sample;
  }

 private:
  L3_INLINE uint8_t* address(uint32_t y, uint32_t x) const {
    return multiply_add_wide(x, kBytes, multiply_add_wide(y, stride_, pixels_));
  }
  L3_INLINE static void put_one(uint8_t* to, uint32_t sample) {
    if constexpr (kBytes == 1) {
      store_global_byte(to, sample);
    } else {
      store_global_half(to, sample);
    }
  }
  L3_INLINE void put_group(uint8_t* to, uint32_t last) const {
    const uint32_t a = before_[2], b = before_[1], c = before_[0];
    if constexpr (kBytes == 1) {
      uint32_t word;
      words_of_four<1>(a, b, c, last, &word);
      store_global(to, word);
    } else {
      store_global_two(to, make_uint2(__byte_perm(a, b, 0x5410), __byte_perm(c, last, 0x5410)));
    }
  }

  uint8_t* pixels_;
  uint32_t stride_;
  const TokenTables& model_;
  const uint8_t* values_ = nullptr;
  uint32_t listed_ = 0;    // how many samples are listed; 0 if none are
  uint32_t in_words_ = 0;  // columns that are written four at a time
  uint32_t before_[3] = {};
};

// Writes such tiles of images of three channels with samples of 16 bits, if none are listed.
class TokenColours {
 public:
  using Lanes = CudaWordWarp::Lanes;

  L3_INLINE TokenColours(const TilePlace& place, const TokenTables&)
      : pixels_(place.address(0, 0)), stride_(static_cast<uint32_t>(place.out->row_step)) {}

  L3_INLINE void begin(uint32_t width, uint32_t, uint32_t) {
    const bool aligned = ((reinterpret_cast<uintptr_t>(pixels_) | stride_) & 7) == 0;
    in_words_ = CudaWordWarp::uniform(aligned ? width & ~3u : 0);
  }

  L3_INLINE void save_states(uint32_t, uint32_t, const Lanes (&)[1]) {}
  L3_INLINE void end_step(uint32_t) {}
  L3_INLINE void put(uint32_t, uint32_t, Lanes row, Lanes column, const Lanes* values, bool active) {
    const uint32_t x = column.v;
    const uint2 pixel = make_uint2(values[0].v, values[1].v);
    if (active) {
      uint8_t* const to = multiply_add_wide(x, 6, multiply_add_wide(row.v, stride_, pixels_));
      if (x >= in_words_) {
        store_global_half(to, pixel.x);
        store_global_half(to + 2, pixel.x >> 16);
        store_global_half(to + 4, pixel.y);
      } else if ((x & 3) == 3) {
        put_group(to - 18, pixel);
      }
    }
    before_[2] = before_[1];
    before_[1] = before_[0];
    before_[0] = pixel;
  }

 private:
  L3_INLINE void put_group(uint8_t* to, uint2 d) const {
    const uint2 a = before_[2], b = before_[1], c = before_[0];
    store_global_two(to, make_uint2(a.x, __byte_perm(a.y, b.x, 0x5410)));
    store_global_two(to + 8, make_uint2(__byte_perm(b.x, b.y, 0x5432), c.x));
    store_global_two(to + 16, make_uint2(__byte_perm(c.y, d.x, 0x5410), __byte_perm(d.x, d.y, 0x5432)));
  }

  uint8_t* pixels_;
  uint32_t stride_;
  uint32_t in_words_ = 0;  // columns that are written four at a time
  uint2 before_[3] = {};   // two words for a pixel
};

}  // namespace l3
