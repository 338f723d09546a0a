// The directories of a TIFF or BigTIFF file: finds the pages, and the tags that do not describe pixels. libtiff only
// reads the pixels, because it does not return tags unchanged and does not limit the time for a hostile chain of
// directories.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "formats/formats.h"

namespace formats {

// The offsets of the directories of full-sized images, in the order of the file. Reduced copies and masks are not
// pages.
struct TiffPages {
  std::vector<uint64_t> offsets;
  uint64_t left_out = 0;  // reduced copies and masks
};

bool is_tiff(std::span<const uint8_t> file);

// is_tiff() must be true for the file.
Result<TiffPages> find_tiff_pages(std::span<const uint8_t> file);

// Returns the tags of the directory at `offset` as a classic TIFF without an image, which is the format of an eXIf
// chunk. EXIF and GPS directories are included. Tags that tell how pixels are stored, the colour profile, the
// resolution and a normal orientation are left out. The result is empty if no tags are left. Notices name tags that
// cannot be kept.
Result<std::vector<uint8_t>> kept_tiff_tags(std::span<const uint8_t> file, uint64_t offset, const ReadOptions& options);

// Whether the directory at `offset` has this tag.
bool has_tiff_tag(std::span<const uint8_t> file, uint64_t offset, uint32_t tag);

}  // namespace formats
