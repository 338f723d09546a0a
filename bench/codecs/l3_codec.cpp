// L3 by libl3: the methods fast and dense.
#include <memory>
#include <vector>

#include "bench/timing.h"
#include "bridge/image_bridge.h"
#include "codec.h"

namespace bench {
namespace {

std::string version() { return std::string("libl3 ") + l3_version_text(); }

std::string cannot_hold(const formats::Image&) { return ""; }

// The models that files may name, opened once for all files: the default ones, and those of use_l3_models(). A program
// that decodes many small images would do the same.
class Models {
 public:
  Models() {
    const uint8_t* bytes = nullptr;
    size_t size = 0;
    for (uint32_t number = 1; l3_default_model(number, &bytes, &size) == L3_OK; ++number) {
      l3_model* model = nullptr;
      if (l3_open_model(bytes, size, &model, nullptr) != L3_OK) continue;
      owned_.emplace_back(model);
      all_.push_back(model);
    }
  }
  void add(std::span<const l3_model* const> models) { all_.insert(all_.end(), models.begin(), models.end()); }
  std::span<const l3_model* const> all() const { return all_; }
  // The one of those added that is for such images, or null.
  const l3_model* added_for(const formats::Image& image) const {
    return bridge::model_for(all().subspan(owned_.size()), formats::channels(image.colour), image.bits);
  }

 private:
  struct Close {
    void operator()(l3_model* model) const { l3_close_model(model); }
  };
  std::vector<std::unique_ptr<l3_model, Close>> owned_;
  std::vector<const l3_model*> all_;  // the owned ones first
};

Models& models() {
  static Models models;
  return models;
}

template <l3_method kMethod>
std::optional<formats::Error> encode(const formats::Image& image, int level, bridge::Buffer& file) {
  l3_encode_options options = l3_encode_options_init();
  options.method = kMethod;
  options.effort = static_cast<uint32_t>(level);
  options.named_model = models().added_for(image);
  return bridge::encode_l3(image, options, file);
}

std::optional<formats::Error> decode(std::span<const uint8_t> file, formats::Image& image) {
  l3_decode_options options = l3_decode_options_init();
  options.limits = l3::no_limits();
  options.models = models().all().data();
  options.model_count = models().all().size();
  return bridge::decode_l3(file, options, image);
}

constexpr Adapter kFast = {version, cannot_hold, encode<L3_METHOD_FAST>, decode, nullptr, true, false, true};
constexpr Adapter kDense = {version, cannot_hold, encode<L3_METHOD_DENSE>, decode, nullptr, true, false, true};

}  // namespace

void use_l3_models(std::span<const l3_model* const> named) { models().add(named); }

const Adapter* l3_fast_adapter() { return &kFast; }
const Adapter* l3_dense_adapter() { return &kDense; }

}  // namespace bench
