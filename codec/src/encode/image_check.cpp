// Implements image_check.h: whether an image that a caller passes in can be encoded.
#include "encode/image_check.h"

#include "container/container_rules.h"
#include "container/metadata.h"

namespace l3 {

Reason check_image(const l3_image& image) {
  if (image.pixels == nullptr) return Reason::null_argument;
  if (image.width == 0 || image.width > kMaxEdge || image.height == 0 || image.height > kMaxEdge) {
    return Reason::bad_image_size;
  }
  if (image.bits == 0 || image.bits > 16 || image.colour > L3_COLOUR_PALETTE) {
    return Reason::bad_image_type;
  }
  const bool has_alpha = image.colour == L3_COLOUR_GRAY_ALPHA || image.colour == L3_COLOUR_RGB_ALPHA;
  const bool alpha_fits = has_alpha ? image.alpha == L3_ALPHA_STRAIGHT || image.alpha == L3_ALPHA_PREMULTIPLIED
                                    : image.alpha == L3_ALPHA_NONE;
  const bool indexed = image.colour == L3_COLOUR_PALETTE;
  if (!alpha_fits || (indexed && image.bits > 8)) return Reason::bad_image_type;
  const uint64_t row = row_bytes(image), rest = UINTPTR_MAX - reinterpret_cast<uintptr_t>(image.pixels);
  if (stride_of(image) < row || row > rest || (rest - row) / stride_of(image) < image.height - 1) {
    return Reason::bad_stride;
  }

  const bool has_palette = image.palette != nullptr && image.palette_entries != 0;
  if (indexed != has_palette || (indexed && image.palette_entries > (1u << image.bits))) return Reason::bad_palette;
  if (image.transparency != nullptr) {
    const uint32_t size = image.transparency_size;
    const bool fits = indexed ? size >= 1 && size <= image.palette_entries
                              : !has_alpha && size == (image.colour == L3_COLOUR_RGB ? 6u : 2u);
    if (!fits) return Reason::bad_transparency;
  }
  if (image.colour_space != nullptr && colour_space_bytes(image.colour_space[0]) == 0) return Reason::bad_colour_space;
  const auto bad_size = [](const uint8_t* bytes, uint64_t size) {
    return bytes != nullptr && (size == 0 || size > kMaxSectionBytes);
  };
  if (bad_size(image.icc, image.icc_size) || bad_size(image.exif, image.exif_size) ||
      (image.metadata != nullptr &&
       (image.metadata_size > kMaxSectionBytes || metadata_bound(image.metadata_size) > kMaxSectionBytes))) {
    return Reason::bad_section_size;
  }
  if (image.metadata != nullptr && !are_records(image.metadata, image.metadata_size)) {
    return Reason::bad_metadata_records;
  }
  return Reason::none;
}

uint64_t row_bytes(const l3_image& image) {
  return uint64_t{image.width} * channels_of(image) * (image.bits > 8 ? 2 : 1);
}

bool samples_in_range(const l3_image& image) {
  if (image.bits % 8 == 0) return true;
  const size_t samples = size_t{image.width} * channels_of(image);
  for (uint32_t y = 0; y < image.height; ++y) {
    const uint8_t* row = static_cast<const uint8_t*>(image.pixels) + y * stride_of(image);
    uint32_t all = 0;
    for (size_t i = 0; i < samples; ++i) {
      all |= image.bits > 8 ? reinterpret_cast<const uint16_t*>(row)[i] : row[i];
    }
    if (all >> image.bits != 0) return false;
  }
  return true;
}

}  // namespace l3
