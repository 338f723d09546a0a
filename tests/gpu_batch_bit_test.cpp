// Files of bit models in batches: in every type and layout, of any lanes and neighbours, shared, damaged, and in tiles
// as large as can be.
#include "gpu_wishes.h"

namespace {

using namespace gpu_testing;

class GpuBits : public Gpu {};

// A wish for a whole file, of which libl3 says what the file was made of.
Wish wish_for_file(const by_hand::BitFile& file, uint32_t flags = 0) {
  Bytes bytes = by_hand::put_together(file.parts);
  const Expected expected(wish_for(bytes));
  EXPECT_EQ(expected.error.status, L3_OK) << expected.error.reason;
  EXPECT_TRUE(expected.samples == file.samples);
  return wish_for(std::move(bytes), flags);
}
Wish drawn_wish(Dice& dice, Size size, drawing::Type type, uint32_t tile_width, uint32_t tile_height,
                uint32_t neighbours = 0, int shapes = -1) {
  const by_hand::BitModel model = by_hand::any_bit_model(dice, channels_of(type), type.bits, neighbours, shapes);
  return wish_for_file(by_hand::any_bit_file(dice, size, type, model, tile_width, tile_height));
}

// Strokes of one colour on another one.
Drawing drawn_in_two(Dice& dice, Size size, drawing::Type type) {
  Drawing d = drawing::blank(size, type);
  const auto paint = [&](uint32_t x, uint32_t y, uint32_t colour) {
    for (uint32_t c = 0; c < d.channels(); ++c) d.set_sample(x, y, c, colour);
  };
  for (uint32_t y = 0; y < size.height; ++y) {
    for (uint32_t x = 0; x < size.width; ++x) paint(x, y, 1);
  }
  for (uint32_t i = 0; i < size.width * size.height / 200; ++i) {
    const uint32_t left = dice.roll(size.width), top = dice.roll(size.height), slope = dice.roll(5);
    for (uint32_t k = dice.roll(100); k > 0; --k) {
      const uint32_t x = left + k * slope / 4 / 3, y = top + k * (4 - slope) / 4 / 3;
      if (x + k % 3 < size.width && y < size.height) paint(x + k % 3, y, 0);
    }
  }
  return d;
}

TEST_F(GpuBits, WhatTheEncoderMakes) {
  Dice dice(80);
  std::vector<Wish> wishes;
  for (const drawing::Type& type : {drawing::Type{L3_COLOUR_GRAY, 1},
                                    {L3_COLOUR_GRAY, 8},
                                    {L3_COLOUR_RGB, 8},
                                    {L3_COLOUR_RGB_ALPHA, 16},
                                    {L3_COLOUR_PALETTE, 8}}) {
    const Drawing d = drawn_in_two(dice, {420, 260}, type);
    const Bytes file = codec_testing::encode(d, codec_testing::options_of(L3_METHOD_AUTO, 256, 128, 3));
    l3_info info;
    ASSERT_EQ(read_info(file, &info), L3_OK);
    EXPECT_NE(info.required_features & by_hand::kBitModelFeature, 0u) << d.name();
    wishes.push_back(wish_for(file));
    wishes.back().name = d.name();
    wishes.push_back(any_wish(dice, file));
    wishes.back().name = d.name();
  }
  Batch batch(std::move(wishes), any_arrangement(dice));
  ASSERT_NO_FATAL_FAILURE(batch.expect_all());
}

TEST_F(GpuBits, AnyTypes) {
  Dice dice(81);
  for (uint32_t round = 0; round < 2 * scale().rounds; ++round) {
    std::vector<Wish> wishes;
    for (const drawing::Type& type : drawing::all_types()) {
      const Size size{1 + dice.roll(90), 1 + dice.roll(70)};
      Wish whole = drawn_wish(dice, size, type, 32 + 32 * dice.roll(3), 32 + 32 * dice.roll(2));
      whole.name = "bits " + std::to_string(type.bits);
      wishes.push_back(any_wish(dice, whole.file));
      wishes.back().name = whole.name;
      wishes.push_back(std::move(whole));
    }
    Batch batch(std::move(wishes), any_arrangement(dice));
    ASSERT_NO_FATAL_FAILURE(batch.expect_all());
  }
}

// Tiles of each width near those at which lane 0 is not behind the last lane, or a few steps behind it.
TEST_F(GpuBits, LanesAndWidths) {
  Dice dice(82);
  for (int log_lanes = 0; log_lanes <= 5; ++log_lanes) {
    std::vector<Wish> wishes;
    const uint32_t edge = 2u << log_lanes;
    for (const uint32_t width :
         {1u, 2u, 3u, 4u, 5u, edge - 1, edge, edge + 1, edge + 2, edge + 3, edge + 7, edge + 33}) {
      for (const uint32_t height : {1u, 3u, 2 * edge + 1}) {
        const drawing::Type type{L3_COLOUR_GRAY, 1};
        const by_hand::BitModel model = by_hand::any_bit_model(dice, 1, 1);
        wishes.push_back(wish_for_file(by_hand::any_bit_file(dice, {width, height}, type, model, 128, 160, log_lanes)));
        wishes.back().name =
            std::to_string(width) + "x" + std::to_string(height) + " lanes " + std::to_string(edge / 2);
      }
    }
    Batch batch(std::move(wishes), any_arrangement(dice));
    ASSERT_NO_FATAL_FAILURE(batch.expect_all());
  }
}

// Models of every size, with neighbours near and far.
TEST_F(GpuBits, Neighbours) {
  Dice dice(83);
  std::vector<Wish> wishes;
  for (uint32_t count = 2; count <= 14; ++count) {
    for (uint32_t i = 0; i < 4; ++i) {
      wishes.push_back(drawn_wish(dice, {40 + dice.roll(90), 40 + dice.roll(30)}, {L3_COLOUR_GRAY, 1}, 96, 64, count));
      wishes.back().name = "neighbours " + std::to_string(count);
    }
  }
  Batch batch(std::move(wishes), any_arrangement(dice));
  ASSERT_NO_FATAL_FAILURE(batch.expect_all());
}

TEST_F(GpuBits, EveryTypeLayoutAndDirection) {
  Dice dice(84);
  std::vector<Wish> wishes;
  for (const drawing::Type& type : {drawing::Type{L3_COLOUR_GRAY, 1},
                                    {L3_COLOUR_GRAY, 8},
                                    {L3_COLOUR_GRAY, 16},
                                    {L3_COLOUR_GRAY_ALPHA, 8},
                                    {L3_COLOUR_RGB, 8},
                                    {L3_COLOUR_RGB, 16},
                                    {L3_COLOUR_RGB_ALPHA, 8},
                                    {L3_COLOUR_RGB_ALPHA, 12},
                                    {L3_COLOUR_PALETTE, 1},
                                    {L3_COLOUR_PALETTE, 4}}) {
    const Bytes file = drawn_wish(dice, {61, 34}, type, 64, 32).file;
    add_every_output(dice, file, "bits " + std::to_string(type.bits), wishes);
  }
  Batch batch(std::move(wishes));
  ASSERT_NO_FATAL_FAILURE(batch.expect_all());
}

// The widest rows, of the fewest and the most lanes, and the largest models.
TEST_F(GpuBits, LargeTiles) {
  Dice dice(85);
  std::vector<Wish> wishes;
  for (const int log_lanes : {0, 1, 5}) {
    const by_hand::BitModel model = by_hand::any_bit_model(dice, 1, 1, 14);
    const Size size{1024, kEmulated ? 5 + 8 * static_cast<uint32_t>(log_lanes) : 32u << log_lanes};
    wishes.push_back(
        wish_for_file(by_hand::any_bit_file(dice, size, {L3_COLOUR_GRAY, 1}, model, 1024, 1024, log_lanes)));
    wishes.push_back(drawn_wish(dice, {50, 9}, {L3_COLOUR_RGB, 8}, 32, 32));
  }
  Batch batch(std::move(wishes));
  ASSERT_NO_FATAL_FAILURE(batch.expect_all());
}

// Many images of few models of each kind, in a workspace for these models alone.
TEST_F(GpuBits, ModelsShared) {
  Dice dice(86);
  constexpr uint32_t kModels = 6;
  std::vector<Wish> wishes;
  for (uint32_t i = 0; i < kModels; ++i) {
    const drawing::Type type{i < 3 ? L3_COLOUR_GRAY : L3_COLOUR_RGB, 8};
    const by_hand::BitModel bits = by_hand::any_bit_model(dice, channels_of(type), type.bits);
    const by_hand::TokenModel token = by_hand::any_token_model(dice, channels_of(type), type.bits, by_hand::kMatch);
    for (int image = 0; image < 4; ++image) {
      const Size size{1 + dice.roll(90), 1 + dice.roll(50)};
      wishes.push_back(i % 3 == 0
                           ? wish_for(by_hand::put_together(by_hand::any_token_file(dice, size, type, token).parts))
                           : wish_for_file(by_hand::any_bit_file(dice, size, type, bits)));
    }
  }
  shuffle(dice, wishes);
  l3_cuda_capacity capacity = capacity_for(wishes);
  capacity.models = kModels;
  Batch batch(std::move(wishes), {}, capacity);
  ASSERT_NO_FATAL_FAILURE(batch.expect_all());
}

// Without the required feature there is no model of this kind. The feature alone is no fault.
TEST_F(GpuBits, Announced) {
  Dice dice(87);
  std::vector<Wish> wishes;
  std::vector<l3_status> statuses;
  const auto add = [&](by_hand::Parts parts, uint8_t features, l3_status status) {
    parts.header[12] = features;
    wishes.push_back(wish_for(by_hand::put_together(parts)));
    statuses.push_back(status);
  };
  const drawing::Type type{L3_COLOUR_GRAY, 8};
  const auto with_shapes = [&](int shapes) {
    return by_hand::any_bit_file(dice, {70, 40}, type, by_hand::any_bit_model(dice, 1, 8, 0, shapes)).parts;
  };
  const by_hand::Parts of_bits = with_shapes(0), of_shapes = with_shapes(3);
  const by_hand::Parts of_tokens =
      by_hand::any_token_file(dice, {70, 40}, type, by_hand::any_token_model(dice, 1, 8, by_hand::kMatch)).parts;
  add(of_bits, by_hand::kBitModelFeature, L3_OK);
  add(of_bits, 0, L3_ERROR_UNSUPPORTED);
  add(of_bits, by_hand::kBitModelFeature, L3_OK);
  add(of_tokens, 0, L3_OK);
  add(of_tokens, by_hand::kBitModelFeature, L3_OK);
  add(of_bits, by_hand::kBitModelFeature | by_hand::kShapesFeature, L3_OK);
  add(of_bits, by_hand::kBitModelFeature | 16, L3_ERROR_UNSUPPORTED);
  add(of_shapes, by_hand::kBitModelFeature | by_hand::kShapesFeature, L3_OK);
  add(of_shapes, by_hand::kBitModelFeature, L3_ERROR_UNSUPPORTED);
  add(of_shapes, by_hand::kShapesFeature, L3_ERROR_UNSUPPORTED);
  Batch batch(std::move(wishes));
  ASSERT_NO_FATAL_FAILURE(batch.expect_all());
  for (size_t i = 0; i < statuses.size(); ++i) EXPECT_EQ(batch.expected_of(i).error.status, statuses[i]) << i;
}

// Models of many shapes and few, in every type and layout, whole and in part, also with a channel map.
TEST_F(GpuBits, Shapes) {
  Dice dice(89);
  for (uint32_t round = 0; round < 2 * scale().rounds; ++round) {
    std::vector<Wish> wishes;
    for (const drawing::Type& type : drawing::all_types()) {
      const Size size{1 + dice.roll(140), 1 + dice.roll(90)};
      const int shapes = dice.chance(8) ? 1024 : static_cast<int>(1 + dice.roll(20));
      Wish whole = drawn_wish(dice, size, type, 32 + 32 * dice.roll(4), 32 + 32 * dice.roll(3), 0, shapes);
      whole.name = "shapes, bits " + std::to_string(type.bits);
      wishes.push_back(any_wish(dice, whole.file));
      wishes.back().name = whole.name + " in any way";
      by_hand::Parts parts = by_hand::take_apart(whole.file);
      if (by_hand::add_channel_map(dice, parts)) {
        wishes.push_back(any_wish(dice, by_hand::put_together(parts)));
        wishes.back().name = whole.name + " with a channel map";
      }
      wishes.push_back(std::move(whole));
    }
    ASSERT_NO_FATAL_FAILURE(expect_in_batches(dice, wishes, 50));
  }
}

TEST_F(GpuBits, ShapesInEveryTypeLayoutAndDirection) {
  Dice dice(90);
  std::vector<Wish> wishes;
  for (const drawing::Type& type : {drawing::Type{L3_COLOUR_GRAY, 1},
                                    {L3_COLOUR_GRAY, 8},
                                    {L3_COLOUR_GRAY, 12},
                                    {L3_COLOUR_GRAY_ALPHA, 8},
                                    {L3_COLOUR_RGB, 8},
                                    {L3_COLOUR_RGB_ALPHA, 16},
                                    {L3_COLOUR_PALETTE, 1},
                                    {L3_COLOUR_PALETTE, 8}}) {
    const Bytes file = drawn_wish(dice, {75, 50}, type, 64, 32, 0, 5).file;
    add_every_output(dice, file, "shapes, bits " + std::to_string(type.bits), wishes);
  }
  ASSERT_NO_FATAL_FAILURE(expect_in_batches(dice, wishes, 50));
}

// Lists with each fault, in front of bits that are sound or not.
TEST_F(GpuBits, WrongLists) {
  Dice dice(91);
  std::vector<Wish> wishes;
  const drawing::Type type{L3_COLOUR_GRAY, 8};
  for (uint32_t i = 0; i < 8 * by_hand::kListFaults * scale().rounds; ++i) {
    const auto fault = static_cast<by_hand::ListFault>(i % by_hand::kListFaults);
    const Size size{1 + dice.roll(70), 1 + dice.roll(70)};
    const by_hand::BitModel model = by_hand::any_bit_model(dice, 1, 8, 2 + dice.roll(5),
                                                           dice.chance(8) ? 1024 : static_cast<int>(1 + dice.roll(9)));
    by_hand::Parts parts = by_hand::any_bit_file(dice, size, type, model, 32, 64).parts;
    const size_t tile = dice.roll(parts.tiles.size()), across = (size.width + 31) / 32;
    const uint32_t left = static_cast<uint32_t>(tile % across) * 32, top = static_cast<uint32_t>(tile / across) * 64;
    const by_hand::BitTileWriter writer(dice, model, std::min(32u, size.width - left), std::min(64u, size.height - top),
                                        dice.roll(6), fault);
    parts.tiles[tile] = {3, writer.parameters(), {}, writer.payload()};
    const bool is_damaged = dice.chance(4);
    if (is_damaged) parts.tiles[tile].payload.back() ^= 0x80;
    wishes.push_back(wish_for(by_hand::put_together(parts)));
    wishes.back().name = "fault " + std::to_string(i % by_hand::kListFaults) + " of a list";
    const bool is_wrong = is_damaged || fault != by_hand::ListFault::none;
    EXPECT_EQ(Expected(wishes.back()).error.status, is_wrong ? L3_ERROR_CORRUPT : L3_OK) << wishes.back().name;
  }
  ASSERT_NO_FATAL_FAILURE(expect_in_batches(dice, wishes, 50));
}

// Bits of models and of payloads are changed, and all checks are right.
TEST_F(GpuBits, Damaged) {
  Dice dice(88);
  std::vector<Wish> wishes;
  uint32_t refused = 0, accepted = 0;
  for (uint32_t i = 0; i < scale().mutations / 2; ++i) {
    const std::vector<drawing::Type> types = drawing::all_types();
    const drawing::Type type = dice.pick(types);
    const Size size{1 + dice.roll(40), 1 + dice.roll(40)};
    const by_hand::BitModel model = by_hand::any_bit_model(dice, channels_of(type), type.bits, 2 + dice.roll(5));
    by_hand::Parts parts = by_hand::any_bit_file(dice, size, type, model).parts;
    if (dice.chance(2)) {
      Bytes& section = parts.sections.back().bytes;
      const size_t at = dice.chance(2) ? dice.roll(12) : dice.roll(section.size());
      if (dice.chance(6)) {
        section.push_back(0);
      } else if (at < section.size()) {
        section[at] ^= static_cast<uint8_t>(1u << dice.roll(8));
        if (dice.chance(8)) section.resize(at + 1);
      }
    } else {
      Bytes& payload = dice.pick(parts.tiles).payload;
      if (!model.shapes.empty() && !payload.empty() && dice.chance(2)) {
        payload[dice.roll(16)] ^= static_cast<uint8_t>(1u << dice.roll(8));
      } else {
        flip_bit(dice, payload);
      }
      if (!payload.empty() && dice.chance(8)) payload.resize(payload.size() - 16);
    }
    wishes.push_back(any_wish(dice, by_hand::put_together(parts)));
    wishes.back().name = "damage " + std::to_string(i);
    ++(Expected(wishes.back()).error.status == L3_OK ? accepted : refused);
  }
  EXPECT_GT(refused, scale().mutations / 8);
  EXPECT_GT(accepted, scale().mutations / 100);
  ASSERT_NO_FATAL_FAILURE(expect_in_batches(dice, wishes, 50));
}

}  // namespace
