// Encoding, and reading the head of a file.
#pragma once

#include <nanobind/nanobind.h>

#include <span>
#include <string>
#include <vector>

#include "l3/l3.h"
#include "tensor.h"

namespace l3_python {

void bind_encode(nanobind::module_& module);

// `threads` must stay valid while the options are used.
l3_encode_options encode_options(uint32_t method, uint32_t effort, uint32_t tile_width, uint32_t tile_height,
                                 uint32_t& threads);

// Describes an array of shape (height, width, channels), which must be contiguous and stay valid.
l3_image image_of(const Tensor& array, const std::string& colour, uint32_t bits, bool premultiplied);
// Points the image to a section, which must stay valid.
void set_section(l3_image& image, const std::string& name, std::span<const uint8_t> bytes);

// Encodes images with the method fast on a GPU, after the work that is now in `stream`. There are as many shapes and
// `bits` as tensors. A shape of three dimensions is an image, one of four dimensions several images.
std::vector<nanobind::bytes> encode_on_gpu(const std::vector<const Tensor*>& tensors,
                                           const std::vector<std::vector<int64_t>>& shapes, bool planar,
                                           const std::vector<uint32_t>& bits, bool premultiplied, uint32_t tile_width,
                                           uint32_t tile_height, uint32_t number, uintptr_t stream);

}  // namespace l3_python
