#include "shared_models.h"

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "bridge/image_bridge.h"
#include "file_io.h"

namespace tools {
namespace {

constexpr uint64_t kMaxImages = 400;       // in the sample
constexpr uint64_t kMaxPixels = 24 << 20;  // in the sample
constexpr uint64_t kMinImages = 24;        // of a layout, in the sample
// An image with more samples than this can afford its own model.
constexpr uint64_t kMaxSamplesOfSmall = 1 << 18;
constexpr uint64_t kOneOfTests = 8;  // one of so many images tests the model instead of training it
constexpr uint64_t kMaxTests = 16;   // encoding a test without the model takes much longer than with it
constexpr double kMinGain = 0.01;
constexpr uint64_t kFirstImages = 16;  // of the sample: enough to see that all are large

struct CloseTraining {
  void operator()(l3_training* training) const { l3_close_training(training); }
};

using Layout = std::pair<formats::Colour, uint32_t>;  // and bits

// The images of the sample. The number of images of each layout in `all` is estimated from it.
struct Sample {
  std::map<Layout, std::vector<formats::Image>> images;
  uint64_t looked_at = 0, all = 0;
};

// Returns no image if it cannot be read. The reason is reported when the image is converted.
Outcome<std::optional<formats::Image>> read_image(const Sources& sources, const SourceItem& item,
                                                  const ConversionSettings& settings) {
  const auto without = [](Failure failure) -> Outcome<std::optional<formats::Image>> {
    if (is_out_of_memory(failure)) return failure;
    return std::optional<formats::Image>();
  };
  try {
    const Outcome<bridge::Buffer> bytes = sources.read(item);
    if (!bytes) return without(bytes.failure());
    formats::ReadOptions options = read_options(settings.limits);
    options.page = item.page;
    formats::Result<formats::Image> image = formats::read(bytes->bytes(), options);
    const std::string name = sources.display_name(item);
    if (!image) return without(failure_in(name, image.error()));
    const auto reshaped = reshape(name, settings.reshaping, sources.role_of(item), settings.limits, *image);
    if (!reshaped) return without(reshaped.failure());
    return std::optional(std::move(*image));
  } catch (...) {
    return without(caught(sources.display_name(item)));
  }
}

bool are_small(const std::vector<formats::Image>& images) {
  uint64_t samples = 0;
  for (const formats::Image& image : images) {
    samples += uint64_t{image.width} * image.height * formats::channels(image.colour);
  }
  return samples / images.size() <= kMaxSamplesOfSmall;
}

// With `only_small`, stops if no layout seems to have small images.
Outcome<Sample> take_sample(const Sources& sources, const ConversionSettings& settings, bool only_small,
                            base::Parallel& parallel) {
  Sample sample;
  std::vector<const SourceItem*> images;
  for (const SourceItem& item : sources.items) {
    if (item.use == Use::image) images.push_back(&item);
  }
  sample.all = images.size();
  const uint64_t wanted = std::min<uint64_t>(kMaxImages, images.size());
  uint64_t pixels = 0;
  const auto is_small = [](const auto& of_layout) { return are_small(of_layout.second); };
  std::vector<Outcome<std::optional<formats::Image>>> batch;
  for (uint64_t i = 0; i < wanted && pixels < kMaxPixels; ++i) {
    const uint64_t place = i % parallel.threads();
    if (place == 0) {
      batch.assign(std::min<uint64_t>(parallel.threads(), wanted - i), std::optional<formats::Image>());
      parallel.for_each(batch.size(), [&](uint64_t k) {
        batch[k] = read_image(sources, *images[(i + k) * images.size() / wanted], settings);
      });
    }
    ++sample.looked_at;
    if (!batch[place]) return batch[place].failure();
    if (only_small && i == kFirstImages && !sample.images.empty() && std::ranges::none_of(sample.images, is_small)) {
      break;
    }
    if (!*batch[place]) continue;
    formats::Image& image = **batch[place];
    pixels += uint64_t{image.width} * image.height;
    sample.images[{image.colour, image.bits}].push_back(std::move(image));
  }
  return sample;
}

bool is_test(size_t number) { return number % kOneOfTests == kOneOfTests - 1 && number < kOneOfTests * kMaxTests; }
size_t tests_of(size_t images) { return std::min<size_t>(images / kOneOfTests, kMaxTests); }

Failure failure_of_model(const char* reason) { return {"", std::nullopt, std::string("shared model: ") + reason}; }

// Fits a model to images of one layout. This only fails if something is wrong, such as too little memory.
Outcome<Model> fit(const std::vector<formats::Image>& images, const l3_encode_options& encode, l3_parallel parallel,
                   bool with_tests) {
  l3_train_options options = l3_train_options_init();
  options.effort = encode.effort;
  options.tile_width = encode.tile_width;
  options.tile_height = encode.tile_height;
  options.parallel = parallel;
  l3_error error{};
  l3_training* begun = nullptr;
  if (l3_start_training(&options, &begun, &error) != L3_OK) return failure_of_model(error.reason);
  const std::unique_ptr<l3_training, CloseTraining> training(begun);
  for (size_t i = 0; i < images.size(); ++i) {
    if (!with_tests && is_test(i)) continue;
    const bridge::L3Image image(images[i]);
    if (l3_add_to_training(training.get(), &image.get(), &error) != L3_OK) return failure_of_model(error.reason);
  }
  l3_model* model = nullptr;
  if (l3_finish_training(training.get(), &model, &error) != L3_OK) return failure_of_model(error.reason);
  return Model(model);
}

// The encoded size of the test images. Images that cannot be encoded do not count; the reason is reported when they are
// converted.
Outcome<uint64_t> bytes_of_tests(const std::vector<formats::Image>& images, const l3_model* model,
                                 l3_encode_options encode, base::Parallel& parallel) {
  std::vector<uint64_t> bytes(tests_of(images.size()));
  std::vector<std::optional<Failure>> failures(bytes.size());
  encode.named_model = model;
  parallel.for_each(bytes.size(), [&](uint64_t i) {
    bridge::Buffer file;
    if (const auto error = bridge::encode_l3(images[(i + 1) * kOneOfTests - 1], encode, file)) {
      failures[i] = failure_of_model(error->reason.c_str());
    }
    bytes[i] = file.size();
  });
  for (const std::optional<Failure>& failure : failures) {
    if (failure && is_out_of_memory(*failure)) return *failure;
  }
  return std::accumulate(bytes.begin(), bytes.end(), uint64_t{0});
}

// Whether a model of the images without the tests saves enough bytes to be worth its size.
Outcome<bool> pays(const std::vector<formats::Image>& images, const l3_model* model, const Sample& sample,
                   const l3_encode_options& encode, base::Parallel& parallel) {
  const Outcome<uint64_t> bytes_without = bytes_of_tests(images, nullptr, encode, parallel);
  if (!bytes_without) return bytes_without.failure();
  const Outcome<uint64_t> bytes_with = bytes_of_tests(images, model, encode, parallel);
  if (!bytes_with) return bytes_with.failure();
  const auto without = static_cast<double>(*bytes_without), with = static_cast<double>(*bytes_with);
  if (without == 0 || with > without * (1 - kMinGain)) return false;
  const double tests = static_cast<double>(tests_of(images.size()));
  const double all =
      static_cast<double>(images.size()) / static_cast<double>(sample.looked_at) * static_cast<double>(sample.all);
  return (without - with) / tests * all > static_cast<double>(describe(model).size);
}

}  // namespace

Outcome<std::vector<std::vector<uint8_t>>> train_models(const Sources& sources, const ConversionSettings& settings,
                                                        SharedModels which, base::Parallel& parallel,
                                                        Context& context) {
  std::vector<std::vector<uint8_t>> models;
  if (which == SharedModels::never || settings.encode.method == L3_METHOD_FAST) return models;
  if (context.console.stderr_is_terminal()) context.console.status("making shared models");
  const bool only_small = which == SharedModels::where_they_pay;
  const Outcome<Sample> sample = take_sample(sources, settings, only_small, parallel);
  if (!sample) return sample.failure();
  if (which == SharedModels::always && sample->all > 0 && sample->images.empty()) {
    return failure_of_model("none of the images to make it from can be read");
  }
  // The most frequent layouts come first. Of two layouts with as many channels and bits, such as palette and gray, only
  // the first gets a model.
  std::vector<std::pair<Layout, const std::vector<formats::Image>*>> layouts;
  for (const auto& [layout, images] : sample->images) layouts.emplace_back(layout, &images);
  std::stable_sort(layouts.begin(), layouts.end(),
                   [](const auto& a, const auto& b) { return a.second->size() > b.second->size(); });
  std::set<std::pair<uint32_t, uint32_t>> taken;  // channels and bits of `models`
  for (const auto& [layout, found] : layouts) {
    const std::vector<formats::Image>& images = *found;
    const uint32_t channels = formats::channels(layout.first), bits = layout.second;
    // The user has supplied a model for these images, or another layout has one already.
    if (bridge::model_for(settings.models, channels, bits) != nullptr || taken.contains({channels, bits})) continue;
    if (only_small && (images.size() < kMinImages || !are_small(images))) continue;
    const Outcome<Model> model = fit(images, settings.encode, parallel.for_l3(), !only_small);
    if (!model) return model.failure();
    if (only_small) {
      const Outcome<bool> worth = pays(images, model->get(), *sample, settings.encode, parallel);
      if (!worth) return worth.failure();
      if (!*worth) continue;
    }
    const l3_model_info info = describe(model->get());
    models.emplace_back(info.bytes, info.bytes + info.size);
    taken.insert({channels, bits});
  }
  context.console.clear_status();
  return models;
}

std::optional<Failure> OpenModels::open(std::span<const std::vector<uint8_t>> models) {
  for (const std::vector<uint8_t>& bytes : models) {
    l3_model* model = nullptr;
    l3_error error{};
    if (l3_open_model(bytes.data(), bytes.size(), &model, &error) != L3_OK) return failure_of_model(error.reason);
    models_.emplace_back(model);
    handles_.push_back(model);
  }
  return std::nullopt;
}

}  // namespace tools
