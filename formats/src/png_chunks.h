// Reads and checks the chunks of a PNG without libpng. libpng would drop or change some chunks that must be kept, and
// fail on others.
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
inline constexpr uint32_t kPngMaximum = 0x7FFFFFFF;  // of the width, the height and the length of a chunk

// The bytes of the file from `begin` to before `end`.
struct Extent {
  size_t begin = 0;
  size_t end = 0;
};

struct PngLayout {
  Image image;  // without pixels
  // Complete chunks with length and CRC. All IDAT chunks together are one extent.
  Extent header;
  Extent palette;  // empty if it is not a palette image
  Extent pixels;
  Extent end;
  std::vector<Extent> compressed;  // the contents of each IDAT that is not empty
  size_t compressed_bytes = 0;     // the size of all contents
};

// Reads all chunks of the file. It succeeds if all CRCs are correct, all critical chunks are known, present and in
// order, the header is valid and the palette fits it. A wrong CRC of an ancillary chunk without influence on the pixels
// only gives a notice. `image.chunks` gets all other chunks, in order and as they are. The contents of the IDAT chunks
// are not checked. The limits of the edge and of the chunks are checked.
Result<PngLayout> walk_png(std::span<const uint8_t> file, const ReadOptions& options);

// Whether PNG has this depth for this colour type.
bool png_has_depth(Colour colour, uint32_t bits);

// Whether the type consists of four ASCII letters.
bool is_chunk_type(const ChunkType& type);
bool is_critical(const ChunkType& type);
// Whether a chunk belongs to an animation. These chunks are not kept, because a part of them would be a broken
// animation.
bool is_animation(const ChunkType& type);

}  // namespace formats
