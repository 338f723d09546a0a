// Compares the head of an image's file with its index entry.
#pragma once

#include <span>

#include "l3/l3_data.h"

namespace loader {

// The number of bytes at the beginning of an image's file that contain its head.
inline size_t head_bytes(const l3_data_sample& sample) {
  return sample.size < L3_HEAD_MAX_BYTES ? static_cast<size_t>(sample.size) : size_t{L3_HEAD_MAX_BYTES};
}

// Compares shape, digest and model name of an image's head with the index entry. Returns the first difference, or null
// if they agree.
//
// Every path that returns bytes or pixels of an image calls this first. The head's check covers the checks of all other
// parts, so a file whose head passes decodes to the pixels that the index describes, or fails to decode. A file from
// another shard, or a partly copied one, cannot pass.
const char* difference(const l3_data_sample& sample, const l3_info& info);

// Reads the head of an image and compares it. `bytes` are the first bytes of the file, at least head_bytes() of them.
// Offsets in `error` count from the start of the file.
l3_status check_image_head(const l3_data_sample& sample, std::span<const uint8_t> bytes, l3_info& info,
                           l3_error& error);

}  // namespace loader
