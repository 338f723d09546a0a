// Files whose pixels follow others: of screens, and of the models that suit them.
#pragma once

#include "any_token_model.h"
#include "codec_testing.h"
#include "screen.h"

namespace codec_testing {

// Flags of the token model of a file; 0 without one.
inline uint32_t flags_of(const Bytes& file) {
  const uint8_t* model = nullptr;
  size_t size = 0;
  EXPECT_EQ(l3_find_section(file.data(), file.size(), L3_SECTION_MODEL, &model, &size, nullptr), L3_OK);
  return size > 3 && model[0] == 1 ? model[3] : 0;
}

// A model that was trained on screens. Pixels follow others in the tiles of files with it.
inline Bytes model_for_screens(const drawing::Type& type) {
  l3_training* training = nullptr;
  EXPECT_EQ(l3_start_training(nullptr, &training, nullptr), L3_OK);
  for (const uint64_t seed : {1u, 2u, 3u}) {
    const drawing::Drawing d = drawing::screen({300, 180}, type, seed);
    const l3_image image = d.image();
    EXPECT_EQ(l3_add_to_training(training, &image, nullptr), L3_OK);
  }
  l3_model* model = nullptr;
  EXPECT_EQ(l3_finish_training(training, &model, nullptr), L3_OK);
  l3_close_training(training);
  l3_model_info info = l3_model_info_init();
  EXPECT_EQ(l3_describe_model(model, &info, nullptr), L3_OK);
  const Bytes bytes(info.bytes, info.bytes + info.size);
  l3_close_model(model);
  return bytes;
}

inline l3_encode_options options_with(const Bytes& model, uint32_t tile_width, uint32_t tile_height) {
  l3_encode_options options = options_of(L3_METHOD_DENSE, tile_width, tile_height);
  options.model = model.data();
  options.model_size = model.size();
  return options;
}

inline void expect_that_pixels_follow(const Bytes& file) {
  uint64_t dense = 0;
  EXPECT_EQ(l3_count_tiles(file.data(), file.size(), L3_TILE_DENSE, &dense, nullptr), L3_OK);
  EXPECT_GT(dense, 0u);
  EXPECT_NE(flags_of(file) & by_hand::kFollow, 0u);
}

// A screen, with that model.
inline Bytes screen_file(drawing::Size size, const drawing::Type& type, uint32_t tile_width, uint32_t tile_height) {
  const Bytes model = model_for_screens(type);
  const Bytes file = encode(drawing::screen(size, type), options_with(model, tile_width, tile_height));
  expect_that_pixels_follow(file);
  return file;
}

}  // namespace codec_testing
