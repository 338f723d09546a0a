// The head of an image's file, beside its entry in the index.
#pragma once

#include <span>

#include "l3/l3_data.h"

namespace loader {

// So many first bytes of an image's file hold its head.
inline size_t head_bytes(const l3_data_sample& sample) {
  return sample.size < L3_HEAD_MAX_BYTES ? static_cast<size_t>(sample.size) : size_t{L3_HEAD_MAX_BYTES};
}

// Reads the head of a sample that is an image and compares it with the entry: shape, digest and model. `bytes` are the
// file's first ones, head_bytes() of them or more. Offsets in `error` count from the start of the file.
//
// Whoever gives bytes or pixels of an image to a caller calls this first. The head's check covers the checks of all
// other parts. So a file whose head passes gives the pixels that the index means, or fails to decode: one copied over
// from another shard cannot pass, and neither can one that was copied in part.
l3_status check_image_head(const l3_data_sample& sample, std::span<const uint8_t> bytes, l3_info& info,
                           l3_error& error);

}  // namespace loader
