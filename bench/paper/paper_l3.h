// The scheme of the paper "L3: Accelerator-Friendly Lossless Image Format for High-Resolution, High-Throughput DNN
// Training" (arXiv 2208.08711), implemented from its description for comparison. README.md in this folder lists what
// comes from the paper and what does not.
//
// A file, in little-endian numbers:
//   0   "PL31"
//   4   u32 width, u32 height, u8 channels (1 to 4), three zeros
//   16  a u16 for each patch and channel: its bytes. Patches of 64 x 64 row by row, cut at the image's edges; the
//       channels of a patch follow each other
//   ... their bytes, in that order, without gaps; then zeros up to a multiple of 16,
//       which decoders ignore
//
// The bytes of a patch and channel are its rows, each padded to a byte. Bits count from the lowest: 4 of the width b
// (0 to 8), 8 of the base, then b for each column. A sample is its prediction + base + delta, modulo 256.
//
// A sample is predicted from the row above: with N, NW and NE, the one of them next to NW + NE - N; ties go to N. The
// first and the last column of a patch are predicted by N alone; the row above the first is one of zeros.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#if defined(__CUDACC__)
#define PAPER_HOST_AND_DEVICE __host__ __device__
#else
#define PAPER_HOST_AND_DEVICE
#endif

namespace paper {

constexpr uint32_t kPatchEdge = 64;
constexpr uint32_t kMaxChannels = 4;
constexpr uint32_t kMaxEdge = 1u << 20;
constexpr uint32_t kUnit = 16;  // a file is a multiple of it, so that GPUs may load such pieces
constexpr uint32_t kHeadBytes = 16;
constexpr uint32_t kRowHeadBits = 12;
constexpr uint32_t kMaxDeltaBits = 8;
constexpr uint32_t kMaxRowBytes = (kRowHeadBits + kPatchEdge * kMaxDeltaBits + 7) / 8;
constexpr uint64_t kMaxFileBytes = 1u << 31;

constexpr uint8_t kMagic[4] = {'P', 'L', '3', '1'};

struct Shape {
  uint32_t width = 0, height = 0, channels = 0;

  PAPER_HOST_AND_DEVICE constexpr uint32_t across() const { return (width + kPatchEdge - 1) / kPatchEdge; }
  PAPER_HOST_AND_DEVICE constexpr uint64_t patches() const {
    return uint64_t{across()} * ((height + kPatchEdge - 1) / kPatchEdge);
  }
  PAPER_HOST_AND_DEVICE constexpr uint64_t payload_start() const { return kHeadBytes + 2 * patches() * channels; }
  PAPER_HOST_AND_DEVICE constexpr uint64_t pixel_bytes() const { return uint64_t{width} * height * channels; }
};

// Why a file is refused. CPU and GPU decoders return the same reason.
enum class Reason : uint32_t {
  none,
  head,   // not this format, or a shape that it does not have
  sizes,  // the sizes of the patches are not those of the file
  patch,  // rows of a patch that do not fill its bytes, or deltas of more than 8 bits
};
const char* text(Reason reason);

// Returns the maximum size of an image's file, or 0 if the scheme does not support that shape.
uint64_t encode_bound(const Shape& shape);

// Writes the file of an image: samples of 8 bits, interleaved, rows without padding. `file` has room for
// encode_bound(shape), which is not 0. Returns how many bytes it took.
uint64_t encode(const Shape& shape, const uint8_t* pixels, uint8_t* file);

// Reads what is before the patches: Reason::none if the sizes add up. Gives the shape but for Reason::head.
Reason read_head(std::span<const uint8_t> file, Shape& shape);

// Decodes a file that read_head accepted with that shape, into shape.pixel_bytes() bytes.
Reason decode(std::span<const uint8_t> file, const Shape& shape, uint8_t* pixels);

}  // namespace paper
