// Files of token models in batches: what encoders make and what they would not, in every type and layout, shared,
// damaged, and in tiles as large as can be.
#include "any_token_tile.h"
#include "gpu_wishes.h"

namespace {

using namespace gpu_testing;
using codec_testing::encode;
using codec_testing::options_of;
using drawing::draw;

class GpuTokens : public Gpu {};

// The model section's first byte; -1 where there is none.
int kind_of_model(const Bytes& file) {
  const uint8_t* model = nullptr;
  size_t size = 0;
  if (l3_find_section(file.data(), file.size(), L3_SECTION_MODEL, &model, &size, nullptr) != L3_OK || size == 0) {
    return -1;
  }
  return model[0];
}

Bytes drawn_file(Dice& dice, Size size, drawing::Type type, uint32_t flags, uint32_t tile_width = 32,
                 uint32_t tile_height = 32) {
  const by_hand::TokenModel model = by_hand::any_token_model(dice, channels_of(type), type.bits, flags);
  return by_hand::put_together(by_hand::any_token_file(dice, size, type, model, tile_width, tile_height).parts);
}

// What the encoder makes token models of.
std::vector<Wish> encoded() {
  std::vector<Wish> wishes;
  const auto add = [&](const Drawing& d, const char* what) {
    wishes.push_back(wish_for(encode(d, options_of(L3_METHOD_AUTO, 64, 32, 3))));
    wishes.back().name = d.name() + " " + what;
    EXPECT_EQ(kind_of_model(wishes.back().file), 1) << wishes.back().name;
  };
  const Size size{150, 90};
  for (const l3_colour colour : {L3_COLOUR_GRAY, L3_COLOUR_GRAY_ALPHA, L3_COLOUR_RGB, L3_COLOUR_RGB_ALPHA}) {
    for (const uint32_t bits : {12u, 16u}) add(draw(size, {colour, bits}, Pattern::natural), "natural");
    add(draw(size, {colour, 8}, Pattern::labels), "labels");
    add(draw(size, {colour, 16}, Pattern::labels), "labels");
  }
  for (const uint32_t bits : {2u, 4u}) add(draw(size, {L3_COLOUR_GRAY, bits}, Pattern::labels), "labels");
  add(draw(size, {L3_COLOUR_PALETTE, 8}, Pattern::labels), "labels");
  return wishes;
}

TEST_F(GpuTokens, WhatTheEncoderMakes) {
  Dice dice(61);
  std::vector<Wish> wishes;
  for (const Wish& like : encoded()) {
    wishes.push_back(like);
    for (uint32_t i = 0; i < (kEmulated ? 1 : 8); ++i) {
      wishes.push_back(any_wish(dice, like.file));
      wishes.back().name = like.name;
    }
  }
  Batch batch(std::move(wishes), any_arrangement(dice));
  ASSERT_NO_FATAL_FAILURE(batch.expect_all());
}

TEST_F(GpuTokens, WhatNoEncoderWouldMake) {
  Dice dice(62);
  for (uint32_t round = 0; round < 2 * scale().rounds; ++round) {
    std::vector<Wish> wishes;
    for (const drawing::Type& type : drawing::all_types()) {
      const Size size{1 + dice.roll(60), 1 + dice.roll(50)};
      const uint32_t flags = by_hand::any_token_flags(dice, channels_of(type));
      wishes.push_back(any_wish(dice, drawn_file(dice, size, type, flags, 32 + 32 * dice.roll(2))));
      wishes.back().name = "flags " + std::to_string(flags) + " bits " + std::to_string(type.bits);
    }
    Batch batch(std::move(wishes), any_arrangement(dice));
    ASSERT_NO_FATAL_FAILURE(batch.expect_all());
  }
}

// Samples of each width from each listing, in all types and layouts, both ways round.
TEST_F(GpuTokens, EveryTypeLayoutAndDirection) {
  Dice dice(63);
  std::vector<Wish> wishes;
  for (const drawing::Type& type : {drawing::Type{L3_COLOUR_GRAY, 8},
                                    {L3_COLOUR_GRAY, 16},
                                    {L3_COLOUR_GRAY_ALPHA, 8},
                                    {L3_COLOUR_RGB, 8},
                                    {L3_COLOUR_RGB, 16},
                                    {L3_COLOUR_RGB_ALPHA, 8},
                                    {L3_COLOUR_RGB_ALPHA, 12},
                                    {L3_COLOUR_GRAY, 1},
                                    {L3_COLOUR_PALETTE, 4}}) {
    for (const uint32_t listing : {0u, by_hand::kRanks, by_hand::kColours}) {
      const Bytes file = drawn_file(dice, {37, 34}, type, by_hand::kMatch | listing, 64, 32);
      add_every_output(dice, file, "bits " + std::to_string(type.bits) + " listing " + std::to_string(listing), wishes);
    }
  }
  Batch batch(std::move(wishes));
  ASSERT_NO_FATAL_FAILURE(batch.expect_all());
}

// Tiles that need the most room, of rows as wide and of blocks as many as there can be, beside small ones.
TEST_F(GpuTokens, LargeTiles) {
  Dice dice(64);
  std::vector<Wish> wishes;
  for (const drawing::Type& type :
       {drawing::Type{L3_COLOUR_GRAY, 1}, {L3_COLOUR_GRAY_ALPHA, 2}, {L3_COLOUR_RGB, 1}, {L3_COLOUR_RGB_ALPHA, 1}}) {
    for (const uint32_t flags : {0u, by_hand::kMatch}) {
      wishes.push_back(wish_for(drawn_file(dice, {1024, kEmulated ? 9u : 1024u}, type, flags, 1024, 1024)));
      wishes.push_back(wish_for(drawn_file(dice, {kEmulated ? 9u : 20u, 1030}, type, flags, 32, 1024)));
      wishes.push_back(wish_for(drawn_file(dice, {40, 40}, type, flags)));
    }
  }
  wishes.push_back(wish_for(drawn_file(dice, {1000, 9}, {L3_COLOUR_GRAY, 8}, by_hand::kLiteral, 1024, 32)));
  Batch batch(std::move(wishes));
  ASSERT_NO_FATAL_FAILURE(batch.expect_all());
}

// Both kinds of models, several images with each, in no order; there is room for as many as there are.
TEST_F(GpuTokens, ModelsOfBothKindsAreShared) {
  Dice dice(65);
  constexpr uint32_t kModels = 6;
  std::vector<Wish> wishes;
  for (uint32_t i = 0; i < kModels; ++i) {
    const drawing::Type type{static_cast<l3_colour>(dice.roll(4)), 8};
    const by_hand::TokenModel token = by_hand::any_token_model(dice, channels_of(type), 8);
    const Bytes packed = by_hand::any_model(dice, channels_of(type));
    for (int image = 0; image < 4; ++image) {
      const Size size{1 + dice.roll(90), 1 + dice.roll(50)};
      if (i % 2 == 0) {
        wishes.push_back(wish_for(by_hand::put_together(by_hand::any_token_file(dice, size, type, token).parts)));
      } else {
        l3_encode_options options = options_of(L3_METHOD_DENSE, 32, 32, 1);
        options.model = packed.data();
        options.model_size = packed.size();
        wishes.push_back(wish_for(encode(draw(size, type, Pattern::natural, dice.next()), options)));
      }
    }
  }
  shuffle(dice, wishes);
  l3_cuda_capacity capacity = capacity_for(wishes);
  capacity.models = kModels;
  Batch batch(std::move(wishes), {}, capacity);
  ASSERT_NO_FATAL_FAILURE(batch.expect_all());
}

// The same bytes are no model for an image of other bits.
TEST_F(GpuTokens, ModelOfOtherBits) {
  Dice dice(66);
  by_hand::Parts parts = by_hand::any_token_file(dice, {70, 40}, {L3_COLOUR_GRAY, 12},
                                                 by_hand::any_token_model(dice, 1, 12, by_hand::kMatch))
                             .parts;
  const Bytes good = by_hand::put_together(parts);
  parts.header[0x23] = 13;
  const Bytes bad = by_hand::put_together(parts);
  for (const std::vector<Wish>& wishes :
       {std::vector<Wish>{wish_for(good), wish_for(bad), wish_for(good)}, {wish_for(bad), wish_for(good)}}) {
    Batch batch(wishes);
    ASSERT_NO_FATAL_FAILURE(batch.expect_all());
    EXPECT_EQ(batch.expected_of(wishes.size() - 1).error.status, L3_OK);
    EXPECT_EQ(batch.expected_of(wishes.size() - 2).error.status, L3_ERROR_CORRUPT);
  }
}

// Bits of models and of payloads are changed, and all checks are right.
TEST_F(GpuTokens, Damaged) {
  Dice dice(67);
  std::vector<Wish> wishes;
  uint32_t refused = 0, accepted = 0;
  for (uint32_t i = 0; i < scale().mutations / 2; ++i) {
    const std::vector<drawing::Type> types = drawing::all_types();
    const drawing::Type type = dice.pick(types);
    const Size size{1 + dice.roll(40), 1 + dice.roll(40)};
    by_hand::Parts parts =
        by_hand::any_token_file(dice, size, type, by_hand::any_token_model(dice, channels_of(type), type.bits)).parts;
    if (dice.chance(2)) {
      for (by_hand::SectionPart& section : parts.sections) {
        if (section.type != L3_SECTION_MODEL) continue;
        const size_t at = dice.chance(3) ? dice.roll(12) : dice.roll(section.bytes.size());
        section.bytes[at] ^= static_cast<uint8_t>(1u << dice.roll(8));
        if (dice.chance(8)) section.bytes.resize(at + 1);
      }
    } else {
      flip_bit(dice, dice.pick(parts.tiles).payload);
    }
    wishes.push_back(any_wish(dice, by_hand::put_together(parts)));
    wishes.back().name = "damage " + std::to_string(i);
    ++(Expected(wishes.back()).error.status == L3_OK ? accepted : refused);
  }
  EXPECT_GT(refused, scale().mutations / 8);
  EXPECT_GT(accepted, scale().mutations / 100);
  ASSERT_NO_FATAL_FAILURE(expect_in_batches(dice, wishes, 50));
}

// Lists of samples that end where a block of gaps does, and one further; as long as can be; some of them wrong.
TEST_F(GpuTokens, LongListings) {
  Dice dice(68);
  std::vector<Wish> wishes;
  for (const uint32_t count : {1u, 2u, 32u, 33u, 34u, 64u, 65u, 1000u, 32767u, 32768u}) {
    for (const uint32_t damage : {0u, 1u, 2u, 3u, 4u}) {
      by_hand::TokenModel model = by_hand::any_token_model(dice, 1, 16, by_hand::kLiteral | by_hand::kRanks);
      std::vector<uint32_t>& listed = model.listed[0];
      by_hand::BitString bits;
      bits.put(count, 16);
      bits.put(3, 16);
      bits.put(1, 16);
      listed = {3};
      uint32_t width = 0;
      for (uint32_t i = 1; i < count; ++i) {
        if (i % 32 == 1) {
          width = dice.roll(count > 2000 ? 1 + (i < 1000) : 6);
          bits.put(width, 5);
        }
        const uint32_t gap = dice.roll(1u << width);
        bits.put(gap, width);
        listed.push_back(listed.back() + 1 + gap);
      }
      ASSERT_LT(listed.back(), 65536u);
      model.widths[0] = 1;
      while ((count - 1) >> model.widths[0] != 0) ++model.widths[0];
      Bytes& values = model.section.values;
      values = bits.bytes();
      if (damage == 1) values.push_back(0);
      if (damage == 2) values.pop_back();
      if (damage == 3) values[dice.roll(values.size())] ^= static_cast<uint8_t>(1u << dice.roll(8));
      if (damage == 4) values[values.size() - 1] ^= 0x80;
      const by_hand::TokenFile file = by_hand::any_token_file(dice, {50, 9}, {L3_COLOUR_GRAY, 16}, std::move(model));
      wishes.push_back(wish_for(by_hand::put_together(file.parts)));
      wishes.back().name = std::to_string(count) + " values, damage " + std::to_string(damage);
      EXPECT_TRUE(damage != 0 || Expected(wishes.back()).error.status == L3_OK) << wishes.back().name;
    }
  }
  Batch batch(std::move(wishes));
  ASSERT_NO_FATAL_FAILURE(batch.expect_all());
}

}  // namespace
