// The image in memory, which all formats are read to and written from.
//
// An Image has everything that a PNG says about its samples, and all other chunks as they are. If a PNG is read and
// written again, only its choice of filters, interlacing and compression is lost.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace formats {

enum class Colour : uint8_t { gray, gray_alpha, rgb, rgb_alpha, palette };

// The place of a chunk in the PNG. In a file without PLTE, all chunks before IDAT are `kBeforePalette`.
inline constexpr uint8_t kBeforePalette = 0;
inline constexpr uint8_t kBeforePixels = 1;
inline constexpr uint8_t kAfterPixels = 2;

// An ancillary PNG chunk as it is. The suggested palette (PLTE) of an RGB or RGBA image is also kept as such a chunk.
struct Chunk {
  std::array<char, 4> type{};
  uint8_t place = kBeforePalette;
  std::vector<uint8_t> data;
};

struct Image {
  uint32_t width = 0;   // at least 1
  uint32_t height = 0;  // at least 1
  uint32_t bits = 8;    // significant bits of every sample, 1..16; at most 8 in a palette image
  Colour colour = Colour::gray;

  // Rows from the top, samples interleaved, no padding. A sample is one byte for up to 8 bits, else a uint16_t in the
  // byte order of the machine. Samples are from 0 to 2^bits - 1 and not scaled. In a palette image they are indices,
  // which may be beyond the end of the palette.
  std::vector<uint8_t> pixels;

  // RGB triples, at most 2^bits. Empty unless `colour` is `palette`.
  std::vector<uint8_t> palette;

  // The contents of the PNG chunk tRNS, empty if there is none. For palette images, an alpha byte for each of the first
  // entries. For gray and rgb, the one or three samples of the transparent colour, as 16-bit big-endian numbers.
  std::vector<uint8_t> transparency;

  // In the order of the file.
  std::vector<Chunk> chunks;
};

// Number of samples of a pixel, from 1 (gray, palette) to 4.
uint32_t channels(Colour colour);

// Number of bytes of a sample in Image::pixels: 1 or 2.
uint32_t bytes_per_sample(uint32_t bits);

// "gray", "gray with alpha", "RGB", "RGB with alpha" or "palette".
const char* name(Colour colour);

// Describes how `image` breaks one of the rules at its fields, such as a wrong size of `pixels` or a sample above
// 2^bits - 1. Returns an empty text if it breaks none. Reads every sample, but does not check chunks.
std::string problem(const Image& image);

// Describes the first difference between two images, with the position of the first sample that differs. Returns an
// empty text if they are equal. Chunks are compared by type and contents; their order and places may differ.
std::string difference(const Image& a, const Image& b);

}  // namespace formats
