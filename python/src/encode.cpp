#include "encode.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <vector>

#include "base/parallel.h"
#include "data_set.h"
#include "l3/l3.hpp"
#include "loader/data_set_writer.h"
#include "raise.h"
#include "tensor.h"

namespace l3_python {
namespace {

using namespace nb::literals;

void run_on_threads(void* context, uint64_t count, void (*body)(void*, uint64_t), void* argument) {
  base::for_each_of(count, *static_cast<const uint32_t*>(context), [&](uint64_t i) { body(argument, i); });
}

uint32_t colour_named(const std::string& name) {
  for (uint32_t colour = L3_COLOUR_GRAY; colour <= L3_COLOUR_PALETTE; ++colour) {
    if (name == colour_name(colour)) return colour;
  }
  throw nb::value_error(("there is no colour '" + name + "'").c_str());
}

// File names need not be UTF-8.
std::string text_in(const nb::bytes& bytes) { return {bytes.c_str(), bytes.size()}; }

std::span<const uint8_t> bytes_in(const nb::bytes& bytes) {
  return {reinterpret_cast<const uint8_t*>(bytes.c_str()), bytes.size()};
}

// `array` is (height, width, channels), contiguous.
nb::bytes encode(const Tensor& array, const std::string& colour, uint32_t bits, bool premultiplied,
                 const std::map<std::string, nb::bytes>& sections, uint32_t method, uint32_t effort,
                 uint32_t tile_width, uint32_t tile_height, uint32_t threads) {
  l3_image image = image_of(array, colour, bits, premultiplied);
  for (const auto& [name, bytes] : sections) set_section(image, name, bytes_in(bytes));
  const l3_encode_options options = encode_options(method, effort, tile_width, tile_height, threads);
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

nb::bytes python_bytes(std::span<const uint8_t> bytes) { return nb::bytes(bytes.data(), bytes.size()); }

nb::bytes read_palette(const Tensor& file, const std::string& name) {
  std::array<uint8_t, size_t{3} * 256> colours;
  uint32_t entries = 0;
  l3_error error{};
  if (l3_read_palette(file.data, file.bytes(), colours.data(), colours.size(), &entries, &error) != L3_OK) {
    raise_error(error, name);
  }
  return python_bytes(std::span(colours).first(size_t{3} * entries));
}

nb::bytes read_metadata(const Tensor& file, const std::string& name) {
  size_t size = 0;
  l3_error error{};
  if (l3_unpack_metadata(file.data, file.bytes(), nullptr, nullptr, 0, &size, &error) != L3_OK) {
    raise_error(error, name);
  }
  if (size == 0) return nb::bytes("", 0);
  const std::unique_ptr<uint8_t[]> records(new (std::nothrow) uint8_t[size]);
  if (records == nullptr) raise_memory_error();
  if (l3_unpack_metadata(file.data, file.bytes(), nullptr, records.get(), size, &size, &error) != L3_OK) {
    raise_error(error, name);
  }
  return python_bytes({records.get(), size});
}

// The contents of a section: palettes with all their entries, metadata unpacked. Empty if there is no such section.
// `source` may be the start of a file.
nb::bytes read_section(nb::handle source, const std::string& section, const nb::bytes& file_name) {
  const std::string name = text_in(file_name);
  const Tensor file = tensor_of_buffer(source, false);
  if (section == "palette") return read_palette(file, name);
  if (section == "metadata") return read_metadata(file, name);
  const std::map<std::string, l3_section_type> types{{"transparency", L3_SECTION_TRANSPARENCY},
                                                     {"colour_space", L3_SECTION_COLOUR_SPACE},
                                                     {"icc", L3_SECTION_ICC},
                                                     {"exif", L3_SECTION_EXIF}};
  const auto type = types.find(section);
  if (type == types.end()) throw nb::value_error(("there is no section '" + section + "'").c_str());
  const uint8_t* bytes = nullptr;
  size_t size = 0;
  l3_error error{};
  if (l3_find_section(file.data, file.bytes(), type->second, &bytes, &size, &error) != L3_OK) raise_error(error, name);
  return python_bytes({bytes, size});
}

// Verifies everything before the pixels, and the length of the file.
void check_file(nb::handle source, const nb::bytes& file_name) {
  const std::string name = text_in(file_name);
  const Tensor file = tensor_of_buffer(source, false);
  const l3_limits any = l3::no_limits();
  l3_error error{};
  l3_status status = L3_OK;
  {
    const nb::gil_scoped_release unlocked;
    status = l3_check(file.data, file.bytes(), &any, &error);
  }
  if (status != L3_OK) raise_error(error, name);
}

nb::dict read_info(nb::handle source, const nb::bytes& file_name) {
  const std::string name = text_in(file_name);
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
  shown["head_bytes"] = info.head_bytes;
  shown["payload_start"] = info.payload_start;
  shown["digest"] = nb::bytes(info.digest, sizeof(info.digest));
  shown["model_origin"] = info.model_origin;
  shown["default_model"] = info.default_model;
  shown["model_name"] = nb::bytes(info.model_name, sizeof(info.model_name));
  return shown;
}

}  // namespace

l3_encode_options encode_options(uint32_t method, uint32_t effort, uint32_t tile_width, uint32_t tile_height,
                                 uint32_t& threads) {
  l3_encode_options options = l3_encode_options_init();
  options.method = method;
  options.effort = effort;
  options.tile_width = tile_width;
  options.tile_height = tile_height;
  if (threads != 1) options.parallel = {&run_on_threads, &threads};
  return options;
}

l3_image image_of(const Tensor& array, const std::string& colour, uint32_t bits, bool premultiplied) {
  if (array.shape.size() != 3) throw nb::value_error("the array must have three dimensions");
  l3_image image = l3_image_init();
  image.height = static_cast<uint32_t>(array.shape[0]);
  image.width = static_cast<uint32_t>(array.shape[1]);
  image.bits = bits;
  image.colour = colour_named(colour);
  const bool has_alpha = image.colour == L3_COLOUR_GRAY_ALPHA || image.colour == L3_COLOUR_RGB_ALPHA;
  image.alpha = !has_alpha ? L3_ALPHA_NONE : premultiplied ? L3_ALPHA_PREMULTIPLIED : L3_ALPHA_STRAIGHT;
  image.pixels = array.data;
  return image;
}

void set_section(l3_image& image, const std::string& name, std::span<const uint8_t> bytes) {
  if (name == "palette") {
    image.palette = bytes.data();
    image.palette_entries = static_cast<uint32_t>(bytes.size() / 3);
  } else if (name == "transparency") {
    image.transparency = bytes.data();
    image.transparency_size = static_cast<uint32_t>(bytes.size());
  } else if (name == "colour_space") {
    if (bytes.empty() || bytes.size() != loader::colour_space_size(bytes[0])) {
      throw nb::value_error("the colour space has another size than its parts");
    }
    image.colour_space = bytes.data();
  } else if (name == "icc") {
    image.icc = bytes.data();
    image.icc_size = bytes.size();
  } else if (name == "exif") {
    image.exif = bytes.data();
    image.exif_size = bytes.size();
  } else if (name == "metadata") {
    image.metadata = bytes.data();
    image.metadata_size = bytes.size();
  } else {
    throw nb::value_error(("there is no section '" + name + "'").c_str());
  }
}

void bind_encode(nb::module_& module) {
  module.def("encode", &encode, "array"_a, "colour"_a, "bits"_a, "premultiplied"_a, "sections"_a, "method"_a,
             "effort"_a, "tile_width"_a, "tile_height"_a, "threads"_a);
  module.def("encode_on_gpu", &encode_on_gpu, "tensors"_a, "shapes"_a, "planar"_a, "bits"_a, "premultiplied"_a,
             "tile_width"_a, "tile_height"_a, "number"_a, "stream"_a);
  module.def("read_info", &read_info, "source"_a, "name"_a);
  module.def("read_section", &read_section, "source"_a, "section"_a, "name"_a);
  module.def("check_file", &check_file, "source"_a, "name"_a);
}

}  // namespace l3_python
