// Chooses among the files that several plans make.
#pragma once

#include "encode/file_writer.h"

namespace l3 {

// Whether the encoder may use another model than the caller's named one.
bool may_do_without_name(const Request& request);

// Token models take longer to encode and to decode than models of kind 0. So 8-bit images get one only if it makes
// their files smaller than this share of what kind 0 makes.
double share_for_tokens(uint32_t effort);

// Writes the smallest file that the options allow, as far as the encoder finds it, to a buffer that is large enough.
// May throw std::bad_alloc.
Written write_best(const Request& request, const EncodeTarget& target, uint8_t* out);

}  // namespace l3
