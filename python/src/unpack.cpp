#include "unpack.h"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <span>

#include "bridge/image_bridge.h"
#include "formats/formats.h"
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
  formats::ReadOptions options = bridge::read_options({});
  options.max_edge = bridge::kMaxEdge;
  options.notices = &said;
  formats::Result<formats::Image> image = formats::read(item.bytes, options);
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

void bind_unpack(nb::module_& module) { module.def("file_format", &file_format, "source"_a); }

}  // namespace l3_python
