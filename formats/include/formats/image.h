// The image that every foreign format is read into and written from.
//
// An Image says everything that a PNG says about its samples and carries the rest verbatim, so that a file can be
// written again with nothing lost but its choice of filters, interlacing and compression.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace formats {

enum class Colour : uint8_t { gray, gray_alpha, rgb, rgb_alpha, palette };

// Where a chunk stood in the PNG. In a file without PLTE everything before IDAT is `kBeforePalette`.
inline constexpr uint8_t kBeforePalette = 0;
inline constexpr uint8_t kBeforePixels = 1;
inline constexpr uint8_t kAfterPixels = 2;

// An ancillary PNG chunk, verbatim; also the suggested palette (PLTE) of an RGB or RGBA image.
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

  // Rows from the top, samples interleaved, no padding. One byte per sample up to 8 bits, else a uint16_t in the
  // machine's byte order. Samples lie in 0 .. 2^bits - 1 and are not scaled. In a palette image they are indices,
  // which may point past the palette's end.
  std::vector<uint8_t> pixels;

  // RGB triples, one per entry, at most 2^bits entries; empty unless `colour` is `palette`.
  std::vector<uint8_t> palette;

  // The contents of PNG's tRNS, empty if there is none. Palette: an alpha byte for each of the first entries;
  // gray: the transparent sample, and rgb: the three of them, as 16-bit big-endian numbers.
  std::vector<uint8_t> transparency;

  // In the file's order; see Chunk.
  std::vector<Chunk> chunks;
};

// Samples per pixel: 1 for gray and palette images, up to 4.
uint32_t channels(Colour colour);

// Bytes that one sample takes in Image::pixels: 1 or 2.
uint32_t bytes_per_sample(uint32_t bits);

// "gray", "gray with alpha", "RGB", "RGB with alpha" or "palette".
const char* name(Colour colour);

// Why `image` breaks one of the rules stated at its fields (a wrong size of `pixels`, a sample above 2^bits - 1, a
// palette of seven bytes ...), in words; empty if it breaks none. Reads every sample. Chunks are not looked at.
std::string problem(const Image& image);

// The first difference between two images in words, with the position of the first sample that differs; empty if
// they are the same. Chunks are compared as a multiset of type and contents, whatever their order and place.
std::string difference(const Image& a, const Image& b);

}  // namespace formats
