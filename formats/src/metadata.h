// Converts the metadata of other formats to PNG chunks.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "formats/formats.h"

namespace formats {

// Each function appends one chunk before the palette. It returns an Error at `offset` if the chunks exceed their limit.

// Adds iCCP and compresses the profile. Ignores an empty profile.
std::optional<Error> add_profile(Image& image, std::span<const uint8_t> profile, const ReadOptions& options,
                                 uint64_t offset);

// Adds eXIf. `exif` must begin with a TIFF header, else it is left out with a notice.
std::optional<Error> add_exif(Image& image, std::span<const uint8_t> exif, const ReadOptions& options, uint64_t offset);

// Adds a notice if EXIF, which begins with a TIFF header, says that the image must be rotated.
void notice_orientation(const ReadOptions& options, std::span<const uint8_t> exif);

enum class DensityUnit : uint8_t { none, metre };  // none: only the ratio is known

// Adds pHYs: horizontal and vertical pixels per unit. Ignores zeros, and square pixels without a unit.
std::optional<Error> add_density(Image& image, uint32_t across, uint32_t down, DensityUnit unit,
                                 const ReadOptions& options, uint64_t offset);

// Adds the notice for a lossy source.
void notice_lossy(const ReadOptions& options, const char* format);

// Adds the notice "`what` of `bytes` bytes is left out".
void notice_left_out(const ReadOptions& options, const std::string& what, uint64_t bytes);

}  // namespace formats
