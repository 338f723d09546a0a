// How encoder and decoder pass a tile to a target's functions.
#pragma once

#include "container/format.h"
#include "container/reason.h"

namespace l3 {

struct TileShape {
  uint32_t width, height;
  uint32_t channels, bits;

  // The size of the tile's payload if it is raw.
  L3_INLINE uint32_t raw_bytes(uint32_t unit = kUnit) const {
    return static_cast<uint32_t>(l3::raw_bytes(width, height, channels, bits, unit));
  }
};

// An index entry, and the address of the tile's payload.
struct TileEntry {
  Method method;
  uint8_t parameters;
  bool has_check;  // false: the tile is constant, or was verified with the whole of a tiny file
  uint32_t check;
  uint16_t value[kMaxChannels];  // only in constant tiles
  const uint8_t* payload;
  uint32_t payload_bytes;
};

// A dense tile's coder at the end of a stage of decoding: how many bytes of the payload it has taken, and its states.
struct CoderStates {
  uint32_t taken, of[kLanes];
};

// Where decoded pixels go: columns x0 to x1 - 1 and rows y0 to y1 - 1 of the tile. The first of them goes to `pixels`.
struct TileOutput {
  uint8_t* pixels;  // null: decode without writing
  size_t stride;
  uint32_t x0, y0, x1, y1;
  const uint8_t* colours;   // null, or 256 pixels of up to 4 bytes, 4 bytes apart, to write in place of samples
  uint32_t colour_bytes;    // how many bytes of each to write
  CoderStates* states;      // null, or two to fill in: after a dense tile's classes, and after its last pixel
  bool has_fourth = false;  // write `fourth` after each pixel: only of dense tiles of three channels of bytes
  uint8_t fourth = 0;
};

// How the encoder stores a tile.
struct TileChoice {
  Method method;
  uint8_t parameters;
  uint16_t value[kMaxChannels];
  uint32_t payload_bytes;  // a multiple of the unit
  uint32_t used_bytes;     // the same without the zeros at its end
  bool in_range;           // false: a sample is above 2^bits - 1, and nothing was encoded
};

// The pixels of a tile to encode.
struct TileInput {
  const uint8_t* pixels;
  size_t stride;
};

}  // namespace l3
