// Chooses among the files that several plans make.
#pragma once

#include "encode/file_writer.h"

namespace l3 {

// Whether the encoder may use another model than the caller's named one.
bool may_do_without_name(const Request& request);

// When token models are tried for 8-bit images, and when they are used. They take longer to encode and to decode than
// models of kind 0, so they must save something, and the more the lower the effort.
struct TokenRules {
  double repeats;  // tried if at least this share of pixels repeats a neighbour, or if many values do not occur
  double share;    // used if the files take less than this share of what kind 0 makes
};
TokenRules token_rules_of(uint32_t effort);

// Writes the smallest file that the options allow, as far as the encoder finds it, to a buffer that is large enough.
// May throw std::bad_alloc.
Written write_best(const Request& request, const EncodeTarget& target, uint8_t* out);

}  // namespace l3
