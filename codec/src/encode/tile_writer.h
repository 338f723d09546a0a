// Encodes all tiles of an image into a file, each to a place with room for the worst case, then closes the gaps.
#pragma once

#include "encode/encode_plan.h"
#include "targets/encode_target.h"

namespace l3 {

struct TilesWritten {
  Reason reason;         // not none: a sample is above 2^bits - 1, or a payload too large; tiles are missing
  uint64_t saved_bytes;  // how many bytes the model saved compared with the other methods
  uint32_t used_bytes;   // of the last payload, without the zeros at its end
};

// Encodes the tiles into their places and fills in the index, except for the offsets of payloads. `encoder` is null if
// the file has no model. May throw std::bad_alloc.
TilesWritten write_tiles(const Request& request, const Head& head, const EncodeTarget& target,
                         const ModelEncoder* encoder, uint8_t* out);

// Moves the payloads together and enters their offsets. Returns the size of the file.
uint64_t close_gaps(const Head& head, uint8_t* out);

}  // namespace l3
