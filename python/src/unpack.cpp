#include "unpack.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <span>

#include "bridge/image_bridge.h"
#include "encode.h"
#include "formats/formats.h"
#include "l3/l3.hpp"
#include "raise.h"
#include "tensor.h"

namespace l3_python {
namespace {

using namespace nb::literals;

// An image without its pixels, and the l3_image that points to it.
struct Unpacked {
  explicit Unpacked(formats::Image image) : source(std::move(image)), described(source) {}

  const formats::Image source;
  const bridge::L3Image described;
};

// Returns the format of a file, such as "png", or "" if it is unknown.
std::string file_format(nb::handle source) {
  const Tensor file = tensor_of_buffer(source, false);
  return std::string(formats::known_name({static_cast<const uint8_t*>(file.data), file.bytes()}));
}

formats::Result<formats::Image> read(std::span<const uint8_t> file, std::vector<std::string>& notices) {
  formats::ReadOptions options = bridge::read_options({});
  options.max_edge = bridge::kMaxEdge;
  options.notices = &notices;
  return formats::read(file, options);
}

// Returns the L3 file and the notices.
std::pair<nb::bytes, std::vector<std::string>> encode_file(nb::handle source, uint32_t method, uint32_t effort,
                                                           uint32_t tile_width, uint32_t tile_height,
                                                           uint32_t threads) {
  const Tensor file = tensor_of_buffer(source, false);
  const l3_encode_options options = encode_options(method, effort, tile_width, tile_height, threads);
  std::vector<std::string> notices;
  std::vector<uint8_t> encoded;
  l3_error error{L3_OK, 0, L3_NO_TILE, ""};
  std::string reason;
  {
    const nb::gil_scoped_release unlocked;
    const auto image = read({static_cast<const uint8_t*>(file.data), file.bytes()}, notices);
    if (!image) {
      reason = image.error().reason;
      error = {L3_ERROR_CORRUPT, image.error().offset, L3_NO_TILE, reason.c_str()};
    } else if (auto result = l3::encode(bridge::L3Image(*image).get(), options)) {
      encoded = *std::move(result);
    } else {
      error = result.error();
    }
  }
  if (error.status != L3_OK) raise_error(error);
  return {nb::bytes(encoded.data(), encoded.size()), std::move(notices)};
}

}  // namespace

void Notices::add(const std::string& sample, const std::vector<std::string>& notices) {
  for (const std::string& notice : notices) {
    std::string kind;
    std::copy_if(notice.begin(), notice.end(), std::back_inserter(kind), [](char c) { return c < '0' || c > '9'; });
    const std::lock_guard lock(mutex_);
    if (kinds_.insert(std::move(kind)).second) new_.emplace_back(sample, notice);
  }
}

std::vector<std::pair<std::string, std::string>> Notices::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(new_, {});
}

std::optional<loader::WriteFailure> unpack(loader::NewItem& item, Notices& notices) {
  std::vector<std::string> said;
  formats::Result<formats::Image> image = read(item.bytes, said);
  notices.add(item.sample.name, said);
  if (!image) {
    loader::WriteFailure failure{L3_ERROR_CORRUPT, 0, "", image.error().reason};
    failure.offset = image.error().offset;
    return failure;
  }
  item.bytes = std::move(image->pixels);
  const auto unpacked = std::make_shared<const Unpacked>(*std::move(image));
  item.image = unpacked->described.get();
  item.kept = unpacked;
  return std::nullopt;
}

void bind_unpack(nb::module_& module) {
  module.def("encode_file", &encode_file, "source"_a, "method"_a, "effort"_a, "tile_width"_a, "tile_height"_a,
             "threads"_a);
  module.def("file_format", &file_format, "source"_a);
}

}  // namespace l3_python
