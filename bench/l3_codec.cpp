// L3 by libl3: the method fast, and dense at three efforts.
#include <memory>
#include <vector>

#include "bridge/image_bridge.h"
#include "codec.h"

namespace bench {
namespace {

template <l3_method kMethod, uint32_t kEffort>
std::optional<formats::Error> encode(const formats::Image& image, bridge::Buffer& file) {
  l3_encode_options options = l3_encode_options_init();
  options.method = kMethod;
  options.effort = kEffort;
  return bridge::encode_l3(image, options, file);
}

// The default models, opened once and not for each file, as a program has them that decodes many small images.
class DefaultModels {
 public:
  DefaultModels() {
    const uint8_t* bytes = nullptr;
    size_t size = 0;
    for (uint32_t number = 1; l3_default_model(number, &bytes, &size) == L3_OK; ++number) {
      l3_model* model = nullptr;
      if (l3_open_model(bytes, size, &model, nullptr) != L3_OK) continue;
      owned_.emplace_back(model);
      all_.push_back(model);
    }
  }
  std::span<const l3_model* const> all() const { return all_; }

 private:
  struct Close {
    void operator()(l3_model* model) const { l3_close_model(model); }
  };
  std::vector<std::unique_ptr<l3_model, Close>> owned_;
  std::vector<const l3_model*> all_;
};

std::optional<formats::Error> decode(std::span<const uint8_t> file, formats::Image& image) {
  bridge::DecodeSettings settings;
  settings.limits = {UINT64_MAX, UINT64_MAX, UINT64_MAX};
  static const DefaultModels models;
  settings.models = models.all();
  std::optional<formats::Error> metadata_error;
  if (auto error = bridge::decode_l3(file, settings, image, &metadata_error)) return error;
  return metadata_error;
}

bool never(std::span<const uint8_t>) { return false; }

}  // namespace

const Codec kL3Fast = {"l3-fast", encode<L3_METHOD_FAST, 0>, decode, never};
const Codec kL3Dense1 = {"l3-dense1", encode<L3_METHOD_DENSE, 1>, decode, never};
const Codec kL3Dense5 = {"l3-dense5", encode<L3_METHOD_DENSE, 5>, decode, never};
const Codec kL3Dense9 = {"l3-dense9", encode<L3_METHOD_DENSE, 9>, decode, never};

}  // namespace bench
