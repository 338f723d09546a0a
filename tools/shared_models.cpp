#include "shared_models.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "bridge/image_bridge.h"
#include "file_io.h"

namespace tools {
namespace {

constexpr uint64_t kMostImages = 400;       // to look at
constexpr uint64_t kMostPixels = 24 << 20;  // of them
constexpr uint64_t kLeastImages = 24;       // of a layout, among those
// An image of more samples than this can afford a model of its own.
constexpr uint64_t kMostSamplesOfSmall = 1 << 18;
constexpr uint64_t kOneOfTests = 8;  // images that a model does not see
constexpr double kLeastGain = 0.01;

struct CloseTraining {
  void operator()(l3_training* training) const { l3_close_training(training); }
};

using Layout = std::pair<formats::Colour, uint32_t>;  // and bits

// Images of the sample; those of `all` that there are of each layout are estimated from it.
struct Sample {
  std::map<Layout, std::vector<formats::Image>> images;
  uint64_t looked_at = 0, all = 0;
};

std::optional<formats::Image> read_image(const Sources& sources, const SourceItem& item, const l3_limits& limits) try {
  const Outcome<bridge::Buffer> bytes = sources.read(item);
  if (!bytes) return std::nullopt;
  formats::ReadOptions options = read_options(limits);
  options.page = item.page;
  formats::Result<formats::Image> image = formats::read(bytes->bytes(), options);
  // What is wrong with it will be said when it is converted.
  if (!image) return std::nullopt;
  return std::move(*image);
} catch (...) {
  return std::nullopt;
}

Sample take_sample(const Sources& sources, const l3_limits& limits) {
  Sample sample;
  std::vector<const SourceItem*> images;
  for (const SourceItem& item : sources.items) {
    if (item.use == Use::image) images.push_back(&item);
  }
  sample.all = images.size();
  const uint64_t wanted = std::min<uint64_t>(kMostImages, images.size());
  uint64_t pixels = 0;
  for (uint64_t i = 0; i < wanted && pixels < kMostPixels; ++i) {
    ++sample.looked_at;
    std::optional<formats::Image> image = read_image(sources, *images[i * images.size() / wanted], limits);
    if (!image) continue;
    pixels += uint64_t{image->width} * image->height;
    sample.images[{image->colour, image->bits}].push_back(std::move(*image));
  }
  return sample;
}

bool are_small(const std::vector<formats::Image>& images) {
  uint64_t samples = 0;
  for (const formats::Image& image : images) {
    samples += uint64_t{image.width} * image.height * formats::channels(image.colour);
  }
  return samples / images.size() <= kMostSamplesOfSmall;
}

bool is_test(size_t number) { return number % kOneOfTests == kOneOfTests - 1; }

Model fit(const std::vector<formats::Image>& images, const l3_encode_options& encode, l3_parallel parallel,
          bool with_tests) {
  l3_train_options options = l3_train_options_init();
  options.effort = encode.effort;
  options.tile_width = encode.tile_width;
  options.tile_height = encode.tile_height;
  options.parallel = parallel;
  l3_training* begun = nullptr;
  if (l3_start_training(&options, &begun, nullptr) != L3_OK) return nullptr;
  const std::unique_ptr<l3_training, CloseTraining> training(begun);
  for (size_t i = 0; i < images.size(); ++i) {
    if (!with_tests && is_test(i)) continue;
    const bridge::L3Image image(images[i]);
    if (l3_add_to_training(training.get(), &image.get(), nullptr) != L3_OK) return nullptr;
  }
  l3_model* model = nullptr;
  if (l3_finish_training(training.get(), &model, nullptr) != L3_OK) return nullptr;
  return Model(model);
}

// Bytes of the images that the model did not see.
uint64_t bytes_of_tests(const std::vector<formats::Image>& images, const l3_model* model, l3_encode_options encode) {
  uint64_t bytes = 0;
  bridge::Buffer file;
  encode.named_model = model;
  for (size_t i = 0; i < images.size(); ++i) {
    if (!is_test(i) || bridge::encode_l3(images[i], encode, file)) continue;
    bytes += file.size();
  }
  return bytes;
}

// Whether images like these become so much smaller that the model is worth it.
bool pays(const std::vector<formats::Image>& images, const Sample& sample, const l3_encode_options& encode,
          l3_parallel parallel) {
  const Model model = fit(images, encode, parallel, false);
  if (model == nullptr) return false;
  const auto without = static_cast<double>(bytes_of_tests(images, nullptr, encode));
  const auto with = static_cast<double>(bytes_of_tests(images, model.get(), encode));
  if (without == 0 || with > without * (1 - kLeastGain)) return false;
  const double tests = static_cast<double>(images.size() / kOneOfTests);
  const double all =
      static_cast<double>(images.size()) / static_cast<double>(sample.looked_at) * static_cast<double>(sample.all);
  return (without - with) / tests * all > static_cast<double>(describe(model.get()).size);
}

}  // namespace

std::vector<std::vector<uint8_t>> train_models(const Sources& sources, const ConversionSettings& settings,
                                               SharedModels which, l3_parallel parallel, Context& context) {
  std::vector<std::vector<uint8_t>> models;
  if (which == SharedModels::never || settings.encode.method == L3_METHOD_FAST) return models;
  if (context.console.stderr_is_terminal()) context.console.status("looking for models that images can share");
  const Sample sample = take_sample(sources, settings.limits);
  l3_encode_options encode = settings.encode;
  encode.parallel = parallel;
  // The most frequent ones first: of two of as many channels and bits, such as palettes and gray, one gets a model.
  std::vector<std::pair<Layout, const std::vector<formats::Image>*>> layouts;
  for (const auto& [layout, images] : sample.images) layouts.emplace_back(layout, &images);
  std::stable_sort(layouts.begin(), layouts.end(),
                   [](const auto& a, const auto& b) { return a.second->size() > b.second->size(); });
  for (const auto& [layout, found] : layouts) {
    const std::vector<formats::Image>& images = *found;
    // One that the user supplied is for the same images.
    if (model_for(settings.models, formats::channels(layout.first), layout.second) != nullptr) continue;
    const bool taken = std::any_of(models.begin(), models.end(), [&, &of = layout](const auto& bytes) {
      const OpenModels open({&bytes, 1});
      return model_for(open.all(), formats::channels(of.first), of.second) != nullptr;
    });
    if (taken) continue;
    if (which == SharedModels::where_they_pay &&
        (images.size() < kLeastImages || !are_small(images) || !pays(images, sample, encode, parallel))) {
      continue;
    }
    const Model model = fit(images, encode, parallel, true);
    if (model == nullptr) continue;
    const l3_model_info info = describe(model.get());
    models.emplace_back(info.bytes, info.bytes + info.size);
  }
  context.console.clear_status();
  return models;
}

OpenModels::OpenModels(std::span<const std::vector<uint8_t>> models) {
  for (const std::vector<uint8_t>& bytes : models) {
    l3_model* model = nullptr;
    if (l3_open_model(bytes.data(), bytes.size(), &model, nullptr) != L3_OK) continue;
    models_.emplace_back(model);
    handles_.push_back(model);
  }
}

}  // namespace tools
