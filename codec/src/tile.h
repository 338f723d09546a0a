// A tile as encoder and decoder hand it to the engine.
#pragma once

#include "format.h"
#include "reason.h"

namespace l3 {

struct TileShape {
  uint32_t width, height;
  uint32_t channels, bits;
};

// An entry of the index, and where its payload lies.
struct TileEntry {
  Method method;
  uint8_t parameters;
  uint32_t check;                // constant tiles: not used
  uint16_t value[kMaxChannels];  // constant tiles
  const uint8_t* payload;
  uint32_t payload_bytes;
};

// Where decoded pixels go: those of the tile's columns x0 to x1 - 1 and rows y0 to y1 - 1, the first of them at
// `pixels`.
struct TileOutput {
  uint8_t* pixels;  // null: decode, but write nothing
  size_t stride;
  uint32_t x0, y0, x1, y1;
  const uint8_t* colours;  // 256 entries of red, green, blue, alpha, to write colours instead of indices; or null
  uint32_t colour_bytes;   // 3 or 4 of each entry
};

// What the encoder makes of a tile.
struct TileChoice {
  Method method;
  uint8_t parameters;
  uint16_t value[kMaxChannels];
  uint32_t payload_bytes;  // a multiple of the unit
  bool in_range;           // false: a sample is above 2^bits - 1, nothing was encoded
};

// The pixels of a tile to encode.
struct TileInput {
  const uint8_t* pixels;
  size_t stride;
};

}  // namespace l3
