#include "encode.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <cstring>
#include <new>
#include <string>
#include <vector>

#include "base/parallel.h"
#include "data_set.h"
#include "l3/l3.hpp"
#include "raise.h"
#include "tensor.h"

namespace l3_python {
namespace {

using namespace nb::literals;

struct Threads {
  uint32_t count;

  static void run(void* context, uint64_t count, void (*body)(void*, uint64_t), void* argument) {
    base::for_each_of(count, static_cast<const Threads*>(context)->count, [&](uint64_t i) { body(argument, i); });
  }
};

uint32_t colour_named(const std::string& name) {
  for (uint32_t colour = L3_COLOUR_GRAY; colour <= L3_COLOUR_PALETTE; ++colour) {
    if (name == colour_name(colour)) return colour;
  }
  throw nb::value_error(("there is no colour '" + name + "'").c_str());
}

// `array` is (height, width, channels), contiguous.
nb::bytes encode(const Tensor& array, const std::string& colour, uint32_t bits, bool premultiplied,
                 const nb::bytes& palette, const nb::bytes& transparency, uint32_t method, uint32_t effort,
                 uint32_t tile_width, uint32_t tile_height, uint32_t threads) {
  if (array.shape.size() != 3) throw nb::value_error("the array must have three dimensions");
  l3_image image = l3_image_init();
  image.height = static_cast<uint32_t>(array.shape[0]);
  image.width = static_cast<uint32_t>(array.shape[1]);
  image.bits = bits;
  image.colour = colour_named(colour);
  const bool has_alpha = image.colour == L3_COLOUR_GRAY_ALPHA || image.colour == L3_COLOUR_RGB_ALPHA;
  image.alpha = !has_alpha ? L3_ALPHA_NONE : premultiplied ? L3_ALPHA_PREMULTIPLIED : L3_ALPHA_STRAIGHT;
  image.pixels = array.data;
  image.palette = reinterpret_cast<const uint8_t*>(palette.c_str());
  image.palette_entries = static_cast<uint32_t>(palette.size() / 3);
  if (palette.size() == 0) image.palette = nullptr;
  if (transparency.size() != 0) {
    image.transparency = reinterpret_cast<const uint8_t*>(transparency.c_str());
    image.transparency_size = static_cast<uint32_t>(transparency.size());
  }
  l3_encode_options options = l3_encode_options_init();
  options.method = method;
  options.effort = effort;
  options.tile_width = tile_width;
  options.tile_height = tile_height;
  Threads parallel{threads};
  if (threads != 1) options.parallel = {&Threads::run, &parallel};

  std::vector<uint8_t> file;
  l3_error error{L3_OK, 0, L3_NO_TILE, ""};
  {
    const nb::gil_scoped_release unlocked;
    auto encoded = l3::encode(image, options);
    if (encoded) {
      file = std::move(*encoded);
    } else {
      error = encoded.error();
    }
  }
  if (error.status != L3_OK) raise_error(error);
  return nb::bytes(file.data(), file.size());
}

nb::dict read_info(nb::handle source, const std::string& name) {
  const Tensor bytes = tensor_of_buffer(source, false);
  const l3_limits any = l3::no_limits();
  l3_info info = l3_info_init();
  l3_error error{};
  if (l3_read_info(bytes.data, bytes.bytes(), &any, &info, &error) != L3_OK) raise_error(error, name);
  nb::dict shown;
  shown["version"] = info.version;
  shown["width"] = info.width;
  shown["height"] = info.height;
  shown["channels"] = info.channels;
  shown["bits"] = info.bits;
  shown["colour"] = colour_name(info.colour);
  shown["premultiplied"] = info.alpha == L3_ALPHA_PREMULTIPLIED;
  shown["tile_width"] = info.tile_width;
  shown["tile_height"] = info.tile_height;
  shown["tiles"] = info.tile_count;
  shown["digest"] = nb::bytes(info.digest, sizeof(info.digest));
  shown["model_origin"] = info.model_origin;
  shown["default_model"] = info.default_model;
  shown["model_name"] = nb::bytes(info.model_name, sizeof(info.model_name));
  return shown;
}

}  // namespace

void bind_encode(nb::module_& module) {
  module.def("encode", &encode, "array"_a, "colour"_a, "bits"_a, "premultiplied"_a, "palette"_a, "transparency"_a,
             "method"_a, "effort"_a, "tile_width"_a, "tile_height"_a, "threads"_a);
  module.def("read_info", &read_info, "source"_a, "name"_a);
}

}  // namespace l3_python
