// The directories of a TIFF file, classic or big: which pages there are, and the tags that say nothing about pixels.
// libtiff reads the pixels; it neither gives tags back as they stand nor bounds what walking a hostile chain costs.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "formats/formats.h"

namespace formats {

// Where the directories of full-sized images are, in the file's order. Reduced copies and masks are no pages.
struct TiffPages {
  std::vector<uint64_t> offsets;
  uint64_t left_out = 0;  // reduced copies and masks
};

bool is_tiff(std::span<const uint8_t> file);

// The file must be one by is_tiff().
Result<TiffPages> find_tiff_pages(std::span<const uint8_t> file);

// The tags of the directory at `offset` as a classic TIFF without an image, which is what an eXIf chunk holds: all but
// those that say how pixels are stored, the colour profile, the resolution, and an orientation that is the usual one.
// EXIF and GPS directories come with them. Empty if there are none. A notice tells what cannot be kept.
Result<std::vector<uint8_t>> kept_tiff_tags(std::span<const uint8_t> file, uint64_t offset, const ReadOptions& options);

// Whether the directory at `offset` has that tag.
bool has_tiff_tag(std::span<const uint8_t> file, uint64_t offset, uint32_t tag);

}  // namespace formats
