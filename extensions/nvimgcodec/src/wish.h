// What a caller of nvImageCodec wants of a file.
#pragma once

#include <nvimgcodec.h>

#include "file.h"
#include "pixels.h"

namespace l3_nvimgcodec {

struct Wish {
  uint32_t x, y, width, height;  // the part of the file
  uint32_t orientation;          // how to turn it, as in EXIF
  std::array<int, kMaxParts> parts;
  uint32_t count;  // of channels
  uint32_t bits;   // of the resulting samples
  bool is_planar;
  bool has_stored_samples;  // the result has the samples that libl3 decodes, upright and in this order
  bool is_as_stored;        // and it is interleaved, as libl3 decodes it
};

// Fills *wish if the file can give what is wanted. Otherwise returns which part of it cannot be given, and says why.
// `region` may be null.
nvimgcodecProcessingStatus_t read_wish(const File& file, const nvimgcodecImageInfo_t& info,
                                       const nvimgcodecRegion_t* region, bool orient, Wish& wish, const char*& refusal);

Target target_of(const Wish& wish, const nvimgcodecImageInfo_t& info);

}  // namespace l3_nvimgcodec
