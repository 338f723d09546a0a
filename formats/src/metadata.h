// Metadata of other formats, as the chunks in which a PNG holds it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "formats/formats.h"

namespace formats {

// Each appends one chunk before the palette, or gives an Error at `offset` if the chunks are then over their limit.

// iCCP, compressed. An empty profile is passed over.
std::optional<Error> add_profile(Image& image, std::span<const uint8_t> profile, const ReadOptions& options,
                                 uint64_t offset);

// eXIf, from a TIFF header on; what has none is left out with a notice.
std::optional<Error> add_exif(Image& image, std::span<const uint8_t> exif, const ReadOptions& options, uint64_t offset);

// Tells of an orientation that EXIF, from its TIFF header on, has and the pixels have not.
void notice_orientation(const ReadOptions& options, std::span<const uint8_t> exif);

enum class DensityUnit : uint8_t { none, metre };  // none: only their ratio is told

// pHYs: pixels per unit, across and down. Passed over where it says nothing: zeros, or square pixels without a unit.
std::optional<Error> add_density(Image& image, uint32_t across, uint32_t down, DensityUnit unit,
                                 const ReadOptions& options, uint64_t offset);

// The notice that every lossy source gives.
void notice_lossy(const ReadOptions& options, const char* format);

// "`what` of `bytes` bytes is left out"
void notice_left_out(const ReadOptions& options, const std::string& what, uint64_t bytes);

}  // namespace formats
