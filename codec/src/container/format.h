// The constants and field readers of spec/format.md, for processors and GPUs alike.
//
// This header is included by files that are compiled for different processor targets. Everything in it is constexpr or
// always inlined, so that the linker never uses code compiled for one target in another.
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(__CUDACC__)
#define L3_INLINE __device__ __forceinline__
#else
#define L3_INLINE inline __attribute__((always_inline))
#endif

namespace l3 {

constexpr uint32_t kFormatVersion = 1;
constexpr uint32_t kUnit = 16;
constexpr uint32_t kHeaderBytes = 64;
constexpr uint32_t kSectionEntryBytes = 16;
constexpr uint32_t kIndexEntryBytes = 12;
constexpr uint32_t kMaxSections = 16;
constexpr uint32_t kMaxHeadBytes = 336;  // of a file that is not tiny
constexpr uint32_t kMaxEdge = 1u << 20;
constexpr uint32_t kMaxTileEdge = 1024;
constexpr uint32_t kMaxPayloadUnits = 65535;
constexpr uint64_t kMaxSectionBytes = 1u << 30;
constexpr uint64_t kMaxFileBytes = uint64_t{1} << 36;
constexpr uint32_t kFirstAsideType = 0x8000;
constexpr uint32_t kMaxChannels = 4;
constexpr uint32_t kModelNameBytes = 16;
constexpr uint32_t kDefaultModels = 8;  // numbered from 1

// Tiny files (section 18).
constexpr uint32_t kTinyHeaderBytes = 16;
constexpr uint32_t kMaxTinyBytes = 4096;
constexpr uint32_t kMaxTinyEdge = 256;
constexpr uint32_t kTinyUnit = 4;       // file and payload are multiples of it
constexpr uint8_t kTinyMark = 0x74;     // the last byte of the signature
constexpr uint8_t kTinyMarkOf0 = 0x54;  // the same of a tiny file of version 0
constexpr uint32_t kTinyOthers = 6;     // in place of the lanes: the tile is not dense
constexpr uint32_t kTinyNamed = 31;     // in place of a default model's number: a named model
constexpr uint32_t kMinTinyModel = 32;  // the smallest model that a tiny file contains
constexpr uint32_t kMinTinyFast = 8;    // the smallest payload of a fast tile
constexpr uint32_t kConstantBytes = 8;  // the samples of a constant tile

// Offsets of a tiny file's fields.
namespace tiny_header {
constexpr uint32_t kCheck = 4, kWidth = 8, kHeight = 9, kKind = 10, kCoding = 11, kSizes = 12;
}

// Required features.
constexpr uint32_t kNamedModel = 1, kBitModel = 2, kChannelMap = 4, kShapes = 8;

// Offsets of a section entry's fields (section 3.1).
namespace section_entry {
constexpr uint32_t kType = 0, kFlags = 2, kCheck = 4, kOffset = 8, kSize = 12;
}

// Offsets of the header's fields (section 3).
namespace header {
constexpr uint32_t kSignature = 0, kVersion = 8, kSectionCount = 10, kRequired = 12, kDefaultModel = 14, kOptional = 16,
                   kWidth = 20, kHeight = 24, kFrames = 28, kChannels = 32, kSampleType = 34, kBits = 35, kColour = 36,
                   kAlpha = 37, kTileWidth = 38, kTileHeight = 39, kIndexCheck = 40, kHeadCheck = 44, kDigest = 48;
constexpr uint32_t kDigestBytes = 16;
}  // namespace header

constexpr uint32_t kSignatureBytes = 8;
L3_INLINE constexpr uint8_t signature_byte(uint32_t i) { return uint64_t{0x0A1A0A0D49334C8B} >> (8 * i) & 0xFF; }

enum class Method : uint8_t { constant = 0, raw = 1, fast = 2, dense = 3 };

// The fast method (sections 6.3 and 7).
constexpr uint32_t kLanes = 32;        // columns of a strip
constexpr uint32_t kBandRows = 8;      // rows of a block
constexpr uint32_t kGroupSamples = 4;  // samples that share a width
constexpr uint32_t kRowGroups = kLanes / kGroupSamples;
constexpr uint32_t kPredictors = 7;
constexpr uint32_t kTransforms = 5;
constexpr uint32_t kMaxWidthBits = 4;  // D
constexpr uint32_t kMaxBlockBytes = 2 + 8 * kMaxWidthBits + kLanes * kBandRows * 2;

enum Predictor : uint32_t {
  kPredictW = 0,
  kPredictN = 1,
  kPredictGradient = 2,
  kPredictSmooth = 3,
  kPredictThreeQuarters = 4,
  kPredictTurn = 5,
  kPredictHalf = 6,
};

// Whether a predictor is W plus a term from the row above.
L3_INLINE constexpr bool runs_along_row(uint32_t predictor) {
  return predictor != kPredictN && predictor != kPredictSmooth;
}

L3_INLINE constexpr uint64_t pad_to_unit(uint64_t bytes) { return (bytes + kUnit - 1) / kUnit * kUnit; }
L3_INLINE constexpr uint32_t ceil_div(uint32_t a, uint32_t b) { return a / b + (a % b != 0 ? 1u : 0u); }
L3_INLINE constexpr uint32_t smaller(uint32_t a, uint32_t b) { return a < b ? a : b; }

L3_INLINE uint32_t load_u16(const uint8_t* p) { return p[0] | static_cast<uint32_t>(p[1]) << 8; }
L3_INLINE uint32_t load_u32(const uint8_t* p) { return load_u16(p) | load_u16(p + 2) << 16; }
L3_INLINE uint64_t load_u64(const uint8_t* p) { return load_u32(p) | static_cast<uint64_t>(load_u32(p + 4)) << 32; }

L3_INLINE void store_u16(uint8_t* p, uint32_t v) {
  p[0] = static_cast<uint8_t>(v);
  p[1] = static_cast<uint8_t>(v >> 8);
}
L3_INLINE void store_u32(uint8_t* p, uint32_t v) {
  store_u16(p, v);
  store_u16(p + 2, v >> 16);
}
L3_INLINE void store_u64(uint8_t* p, uint64_t v) {
  store_u32(p, static_cast<uint32_t>(v));
  store_u32(p + 4, static_cast<uint32_t>(v >> 32));
}

// The size of a raw tile's payload in bytes, a multiple of the unit. No other method may use more.
L3_INLINE constexpr uint64_t raw_bytes(uint32_t width, uint32_t height, uint32_t channels, uint32_t bits,
                                       uint32_t unit = kUnit) {
  return (uint64_t{width} * height * channels * bits + 8 * unit - 1) / (8 * unit) * unit;
}

}  // namespace l3
