// Encoding, and reading the head of a file.
#pragma once

#include <nanobind/nanobind.h>

#include <vector>

#include "tensor.h"

namespace l3_python {

void bind_encode(nanobind::module_& module);

// Encodes images with the method fast on a GPU, after the work that is now in `stream`. There are as many shapes and
// `bits` as tensors. A shape of three dimensions is an image, one of four dimensions several images.
std::vector<nanobind::bytes> encode_on_gpu(const std::vector<const Tensor*>& tensors,
                                           const std::vector<std::vector<int64_t>>& shapes, bool planar,
                                           const std::vector<uint32_t>& bits, bool premultiplied, uint32_t tile_width,
                                           uint32_t tile_height, uint32_t number, uintptr_t stream);

}  // namespace l3_python
