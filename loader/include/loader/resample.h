// Resizes decoded pixels, changes their colours, and writes them as a tensor: on a CPU. kernels/ does the same on a
// GPU, with the same bits.
//
// The first pass combines rows of pixels to one row, the second combines columns of that row. So what is between the
// passes is one row, which stays in the cache. Samples of at most 8 bits are combined with weights of 16 bits, others
// with floats.
#pragma once

#include <cstdint>
#include <vector>

#include "base/resize_rules.h"
#include "l3/l3_loader.h"

namespace loader {

// How an image becomes the output.
struct Geometry {
  base::ResizeAxis rows{}, columns{};  // of the stored image: what happens to its rows and along them
  bool transposed = false;             // rows of the stored image become columns of the output
  bool is_on_its_side = false;         // rows of the stored image are columns of the upright image
  uint32_t x = 0, y = 0;               // the corner of the region of the stored image that is needed

  base::Between between = base::kKeepBetween;
  // Sets what happens between the passes if samples of `bits` bits become values of a type.
  void set_between(uint32_t bits, uint32_t type);

  uint32_t region_width() const { return columns.region; }
  uint32_t region_height() const { return rows.region; }
  uint32_t width() const { return transposed ? rows.total : columns.total; }
  uint32_t height() const { return transposed ? columns.total : rows.total; }
  // Adds padding to the right and below, up to this size.
  void extend(uint32_t wide, uint32_t high) {
    (transposed ? rows : columns).total = wide;
    (transposed ? columns : rows).total = high;
  }
};

// Each channel of the output is a weighted sum of the channels of the pixel, plus an offset, in units of a sample of
// the output.
struct Colours {
  uint32_t from = 0, to = 0;  // channels
  uint32_t used = 0;          // the first ones of the pixel's channels: others have no part in the output
  float factor[4][4] = {};    // of each channel of the output: for each channel of the pixel
  float offset[4] = {};
  bool clamps = false;    // to 0 and `most`
  float most = 0;         // the largest sample of the output
  bool is_same = true;    // every factor is that of an unchanged pixel
  bool composes = false;  // the last channel of the pixel is alpha: blend the others with `background` first
  bool is_premultiplied = false;
  float background[4] = {};
};

// How the values of the output are stored.
struct Values {
  uint32_t type = L3_VALUE_U8;
  uint32_t layout = L3_LAYOUT_CHW;
  float scale[4] = {1, 1, 1, 1}, bias[4] = {};  // of floats
  float pad[4] = {};                            // padding, in samples of the output; in the range of the type
  uint64_t row_stride = 0, plane_stride = 0;    // in bytes; CHW: from one channel to the next
};

// The output of one image after the other. It keeps its memory, so a thread should keep it.
class Resampler {
 public:
  // `pixels` is the region, HWC, of samples of `bits` bits: one byte each up to 8 bits, else two.
  void run(const uint8_t* pixels, uint32_t bits, const Geometry& geometry, const Colours& colours, const Values& values,
           uint8_t* out);

 private:
  // The taps of one axis, for each sample of the output.
  struct Table {
    base::ResizeAxis of{};  // whose taps these are
    bool is_fine = false;
    std::vector<uint32_t> first;   // in the region
    std::vector<uint32_t> count;   // 0: padding with a value
    std::vector<int16_t> weights;  // `stride` for each sample; zeros fill the rest
    std::vector<float> fine;       // the same for samples above 8 bits
    uint32_t stride = 0;
    uint32_t precision = 0;
    uint32_t begin = 0, end = 0;  // the samples that are not padding
    bool picks = false;           // each sample is one sample of the region
  };

  static void fill(Table& table, const base::ResizeAxis& axis, uint32_t most_precision, bool is_fine, bool by_tap);
  void split(const uint8_t* pixels, uint32_t bits, const Geometry& geometry, const Colours& colours);
  void limit_rows(const Colours& colours, const Geometry& geometry, uint32_t bits);
  void make_row(uint32_t row, uint32_t bits, uint32_t channels, float* const* out);
  void change_colours(const Colours& colours, bool limits, float* const* rows, uint32_t begin, uint32_t end) const;
  void write_row(const Colours& colours, const Values& values, float* const* rows, uint32_t width, uint8_t* out);

  Table rows_, columns_;
  std::vector<uint8_t> planes_;  // the region, channel by channel
  uint64_t plane_bytes_ = 0, row_bytes_ = 0;
  base::Between between_passes_ = base::kKeepBetween;
  std::vector<uint8_t> limited_;  // the region with its columns combined, for kLimitAfterColumns
  uint64_t limited_row_bytes_ = 0;
  std::vector<int16_t> between_;
  std::vector<int32_t> sums_;
  std::vector<float> fine_between_, floats_, turned_;
  std::vector<uint8_t> values_;
  std::vector<const uint8_t*> taken_;
};

}  // namespace loader
