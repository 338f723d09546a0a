// The chunk list of a PNG, walked and judged without libpng, which would drop, reinterpret or choke on what we carry.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "formats/formats.h"

namespace formats {

using ChunkType = std::array<char, 4>;

inline constexpr std::array<uint8_t, 8> kPngSignature = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};
inline constexpr uint32_t kPngMaximum = 0x7FFFFFFF;  // of width, height and a chunk's length

// Bytes of the file from `begin` up to `end`.
struct Extent {
  size_t begin = 0;
  size_t end = 0;
};

struct PngLayout {
  Image image;  // all but its pixels
  // Whole chunks, with length and CRC. The IDATs are one run.
  Extent header;
  Extent palette;  // empty unless it is a palette image
  Extent pixels;
  Extent end;
  std::vector<Extent> compressed;  // the contents of each IDAT that is not empty
  size_t compressed_bytes = 0;     // of them all
};

// Walks the whole file. On success: every CRC holds, but for those of ancillary chunks that say
// nothing about the pixels, of which a notice tells; the critical chunks are in order, none is missing, none is
// unknown; the header is a legal one; the palette fits it. `image.chunks` holds all the rest, in order, byte for
// byte. Whether the IDATs hold the pixels is not looked at. Of the limits, those of the edge and the
// chunks hold.
Result<PngLayout> walk_png(std::span<const uint8_t> file, const ReadOptions& options);

// Whether PNG has this depth for this colour type.
bool png_has_depth(Colour colour, uint32_t bits);

// Four ASCII letters.
bool is_chunk_type(const ChunkType& type);
bool is_critical(const ChunkType& type);
// Frames and their control, which are not carried: without each other they would make a broken animation.
bool is_animation(const ChunkType& type);

}  // namespace formats
