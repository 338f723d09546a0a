// Writes tiny files (section 18 of the spec).
#pragma once

#include "decode/container.h"

namespace l3 {

// Whether a tiny file can have this image and these sections.
bool may_be_tiny(const Head& head);

// Turns the file at `out`, of one tile and with this head, into a tiny file if it fits one. `used_bytes` are those of
// the payload without the zeros at its end, `name` is the name of a named model. Returns the size, or 0 if it does not
// fit.
size_t make_tiny(const Head& head, CheckFunction check, const uint8_t* name, uint32_t used_bytes, uint8_t* out);

}  // namespace l3
