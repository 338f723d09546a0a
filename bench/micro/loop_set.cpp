#include "loop_set.h"

#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "l3/l3.hpp"
#include "pictures.h"

namespace micro {
namespace {

using Bytes = std::vector<uint8_t>;

// Small, since they are for an emulator too: two tiles of the default size, and half of one where an encoder takes
// long.
constexpr uint32_t kWidth = 256, kHeight = 128;
constexpr uint32_t kWidthOfSlow = 128, kHeightOfSlow = 64;
// Kinds of models, as the spec numbers them.
constexpr uint32_t kDenseModel = 0, kTokenModel = 1;

Prepared failed(std::string why) { return {0, 0, {}, std::move(why)}; }

struct CloseModel {
  void operator()(l3_model* model) const { l3_close_model(model); }
};
using Model = std::shared_ptr<l3_model>;

Model open_model(const Bytes& bytes) {
  l3_model* model = nullptr;
  if (l3_open_model(bytes.data(), bytes.size(), &model, nullptr) != L3_OK) return nullptr;
  return {model, CloseModel{}};
}

struct CloseTraining {
  void operator()(l3_training* training) const { l3_close_training(training); }
};

// A model for an image, as one that many share: with a code for every sample. Null where it is not of that kind.
Model train(const Picture& picture, uint32_t kind) {
  l3_train_options options = l3_train_options_init();
  options.effort = 1;
  options.complete = 1;
  l3_training* started = nullptr;
  if (l3_start_training(&options, &started, nullptr) != L3_OK) return nullptr;
  const std::unique_ptr<l3_training, CloseTraining> training(started);
  const l3_image image = picture.image();
  l3_model* made = nullptr;
  if (l3_add_to_training(started, &image, nullptr) != L3_OK) return nullptr;
  if (l3_finish_training(started, &made, nullptr) != L3_OK) return nullptr;
  Model model(made, CloseModel{});
  l3_model_info info = l3_model_info_init();
  if (l3_describe_model(made, &info, nullptr) != L3_OK || info.kind != kind) return nullptr;
  return model;
}

l3_encode_options fast() {
  l3_encode_options options = l3_encode_options_init();
  options.method = L3_METHOD_FAST;
  return options;
}

// With a model that is fitted to the image, so that which model makes the smaller file cannot change what is measured.
l3_encode_options dense(uint32_t effort) {
  l3_encode_options options = l3_encode_options_init();
  options.method = L3_METHOD_DENSE;
  options.effort = effort;
  options.model_origin = L3_MODEL_OWN;
  return options;
}

// What is decoded was encoded with the least effort, since decoding takes the same time for all.
l3_encode_options for_decoding() { return dense(1); }

// Whether all tiles of a file are of one method: else a loop would not measure what its name says.
bool is_all(const Bytes& file, l3_tile_method method) {
  const auto info = l3::read_info(file);
  uint64_t count = 0;
  return info && l3_count_tiles(file.data(), file.size(), method, &count, nullptr) == L3_OK &&
         count == info->tile_count;
}

Prepared encoding(Picture picture, l3_encode_options options) {
  const auto kept = std::make_shared<const Picture>(std::move(picture));
  const l3_image image = kept->image();
  const auto room = std::make_shared<Bytes>(static_cast<size_t>(l3_encode_bound(&image, &options)));
  return {uint64_t{image.width} * image.height,
          0,
          [kept, image, options, room] {
            size_t written = 0;
            return l3_encode(&image, &options, room->data(), room->size(), &written, nullptr) == L3_OK;
          },
          {}};
}

struct Region {
  uint32_t x, y, width, height;
};

// Decodes a region, or all where its width is 0. With `model` the file's model was opened before.
Prepared decoding(const Picture& picture, const l3_encode_options& options, l3_tile_method method, Region region = {},
                  const Model& model = nullptr) {
  const auto file = l3::encode(picture.image(), options);
  if (!file) return failed(l3::message(file.error()));
  if (!is_all(*file, method)) return failed("the file has tiles of another method than the loop is about");
  if (region.width == 0) region = {0, 0, picture.width, picture.height};
  const uint64_t pixels = uint64_t{region.width} * region.height;
  const auto kept = std::make_shared<const Bytes>(*file);
  const auto room = std::make_shared<Bytes>(
      static_cast<size_t>(pixels * (picture.pixels.size() / (size_t{picture.width} * picture.height))));
  return {pixels,
          0,
          [kept, room, region, model] {
            const l3_model* opened = model.get();
            l3_decode_options with = l3_decode_options_init();
            with.models = &opened;
            with.model_count = opened != nullptr ? 1 : 0;
            return l3_decode_region(kept->data(), kept->size(), region.x, region.y, region.width, region.height, &with,
                                    room->data(), room->size(), 0, nullptr) == L3_OK;
          },
          {}};
}

Picture photo() { return draw_photo(kWidth, kHeight); }
Picture labels() { return draw_labels(kWidth, kHeight); }
Picture page() { return draw_page(512, 320); }  // more than a tiny file holds
Picture depth() { return draw_depth(kWidth, kHeight); }
Picture noise() { return draw_noise(kWidth, kHeight); }
Picture small_photo() { return draw_photo(kWidthOfSlow, kHeightOfSlow); }
// So large that an encoder which tries whole tiles looks at more of it than at pieces.
Picture clean_photo() { return draw_photo(512, 320, true); }
Picture small_labels() { return draw_labels(kWidthOfSlow, kHeightOfSlow); }
Picture tiny_labels() { return draw_labels(28, 28); }  // one lane
Picture small_depth() { return draw_depth(kWidthOfSlow, kHeightOfSlow); }

constexpr const char* kNoModel = "the image has no model of the kind that the loop is about";

// Decodes with a model that was opened before, made of an image like it: what a data set's loader does, and the tiles
// alone.
Prepared decoding_opened(const Picture& picture, const Picture& like_it, uint32_t kind, Region region = {}) {
  const Model model = train(like_it, kind);
  if (model == nullptr) return failed(kNoModel);
  l3_encode_options options = for_decoding();
  options.named_model = model.get();
  options.model_origin = L3_MODEL_NAMED;
  return decoding(picture, options, L3_TILE_DENSE, region, model);
}

Prepared opening(const Picture& picture, uint32_t kind) {
  const Model model = train(picture, kind);
  l3_model_info info = l3_model_info_init();
  if (model == nullptr || l3_describe_model(model.get(), &info, nullptr) != L3_OK) return failed(kNoModel);
  const auto bytes = std::make_shared<const Bytes>(info.bytes, info.bytes + info.size);
  return {0, bytes->size(), [bytes] { return open_model(*bytes) != nullptr; }, {}};
}

Prepared digesting() {
  const auto bytes = std::make_shared<const Bytes>(photo().pixels);
  return {0,
          bytes->size(),
          [bytes] {
            std::array<uint8_t, L3_DIGEST_BYTES> digest{};
            l3_digest(bytes->data(), bytes->size(), digest.data());
            return true;
          },
          {}};
}

// Checks, sections and digest of a file, and the tiles without pixels.
Prepared verifying() {
  const auto file = l3::encode(photo().image(), fast());
  if (!file) return failed(l3::message(file.error()));
  const auto kept = std::make_shared<const Bytes>(*file);
  return {uint64_t{kWidth} * kHeight,
          0,
          [kept] { return l3_verify(kept->data(), kept->size(), nullptr, nullptr) == L3_OK; },
          {}};
}

// Decodes an image of 28 x 28 pixels, as programs do that know only its bytes. Named models were opened before.
Prepared decoding_tiny(l3_model_origin origin) {
  const Picture picture = draw_photo(28, 28);
  const Model model = train(picture, kDenseModel);
  if (model == nullptr) return failed(kNoModel);
  l3_encode_options options = for_decoding();
  options.named_model = origin == L3_MODEL_NAMED ? model.get() : nullptr;
  options.model_origin = origin;
  auto file = l3::encode(picture.image(), options);
  if (!file) return failed(l3::message(file.error()));
  if (!is_all(*file, L3_TILE_DENSE)) return failed("the file has tiles of another method than the loop is about");
  const auto kept = std::make_shared<const Bytes>(std::move(*file));
  return {uint64_t{28} * 28,
          0,
          [kept, model] {
            const l3_model* opened = model.get();
            l3_decode_options with = l3_decode_options_init();
            with.models = &opened;
            with.model_count = 1;
            return static_cast<bool>(l3::decode(*kept, with));
          },
          {}};
}

// In one of two tiles: the other one is not to be decoded.
constexpr Region kInOneTile = {32, 32, 64, 64};

l3_encode_options with_default_model() {
  l3_encode_options options = dense(5);
  options.model_origin = L3_MODEL_DEFAULT;
  return options;
}

constexpr Loop kLoops[] = {
    {"encode_fast_photo", [] { return encoding(photo(), fast()); }},
    {"encode_fast_depth", [] { return encoding(depth(), fast()); }},
    {"encode_raw_noise", [] { return encoding(noise(), fast()); }},
    {"encode_dense1_photo", [] { return encoding(small_photo(), dense(1)); }},
    {"encode_dense5_photo", [] { return encoding(small_photo(), dense(5)); }},
    {"encode_dense2_clean", [] { return encoding(clean_photo(), dense(2)); }},
    {"encode_default_photo", [] { return encoding(small_photo(), with_default_model()); }},
    {"encode_dense5_labels", [] { return encoding(small_labels(), dense(5)); }},
    {"encode_dense5_page", [] { return encoding(page(), dense(5)); }},
    {"encode_dense1_depth", [] { return encoding(small_depth(), dense(1)); }},
    {"decode_fast_photo", [] { return decoding(photo(), fast(), L3_TILE_FAST); }},
    {"decode_fast_depth", [] { return decoding(depth(), fast(), L3_TILE_FAST); }},
    {"decode_fast_region", [] { return decoding(photo(), fast(), L3_TILE_FAST, kInOneTile); }},
    {"decode_raw_noise", [] { return decoding(noise(), fast(), L3_TILE_RAW); }},
    {"decode_dense_photo", [] { return decoding(photo(), for_decoding(), L3_TILE_DENSE); }},
    {"decode_dense_page", [] { return decoding(page(), for_decoding(), L3_TILE_DENSE); }},
    {"decode_opened_photo", [] { return decoding_opened(photo(), small_photo(), kDenseModel); }},
    {"decode_opened_labels", [] { return decoding_opened(labels(), small_labels(), kTokenModel); }},
    {"decode_opened_depth", [] { return decoding_opened(depth(), small_depth(), kTokenModel); }},
    {"decode_opened_region", [] { return decoding_opened(photo(), small_photo(), kDenseModel, kInOneTile); }},
    {"decode_tiny_labels", [] { return decoding_opened(tiny_labels(), tiny_labels(), kTokenModel); }},
    {"decode_tiny_opened", [] { return decoding_tiny(L3_MODEL_NAMED); }},
    {"decode_tiny_default", [] { return decoding_tiny(L3_MODEL_DEFAULT); }},
    {"decode_tiny_own", [] { return decoding_tiny(L3_MODEL_OWN); }},
    {"open_model_photo", [] { return opening(small_photo(), kDenseModel); }},
    {"open_model_labels", [] { return opening(small_labels(), kTokenModel); }},
    {"verify_fast_photo", [] { return verifying(); }},
    {"digest", [] { return digesting(); }},
};

}  // namespace

std::span<const Loop> all_loops() { return kLoops; }

}  // namespace micro
