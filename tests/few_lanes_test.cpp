// Tests of tiles of few lanes, which processors decode in numbers and not in vectors.
#include <algorithm>
#include <cmath>
#include <set>

#include "any_token_tile.h"
#include "codec_testing.h"

namespace {

using namespace codec_testing;
using drawing::Dice;
using drawing::Size;

// Few values, so that neighbours are often equal; with and without matches, holes, still blocks and rows, and an
// ending.
TEST(FewLanes, HaveTheSamplesThatWereCoded) {
  Dice dice(6);
  for (uint32_t i = 0; i < 1200; ++i) {
    // Some are so wide that the rows of a tile do not fit the decoder's memory.
    const bool is_wide = dice.chance(20);
    const Size size{is_wide ? 500 + dice.roll(525) : 1 + dice.roll(40), 1 + dice.roll(30)};
    const bool is_literal = dice.chance(3);
    const uint32_t bits = 1 + dice.roll(dice.chance(2) ? 2
                                        : is_literal   ? 8
                                                       : 16),
                   match = i % 4 == 0 ? 0 : by_hand::kMatch;
    const uint32_t still = match == 0 || i % 4 == 1 ? 0
                           : i % 4 == 2             ? by_hand::kStill
                                                    : by_hand::kStill | by_hand::kRows;
    const uint32_t hole = match != 0 && !is_literal && dice.chance(2) ? by_hand::kHole : 0;
    const uint32_t flags = (is_literal ? by_hand::kLiteral : 0) | match | hole | still;
    const bool codes_all = dice.chance(2);
    const by_hand::TokenModel model = by_hand::any_token_model(dice, 1, bits, flags, codes_all);
    by_hand::Parts parts;
    parts.header = by_hand::header(size.width, size.height, L3_COLOUR_GRAY, bits, 1024, 64);
    parts.sections.push_back({L3_SECTION_MODEL, model.section.bytes()});
    by_hand::TokenTileWriter writer(dice, model, size.width, size.height, i / 4 % 4);
    // Random symbols, or a few dots on a flat ground, of which many pixels escape although they equal a neighbour.
    std::vector<uint32_t> dots(size_t{size.width} * size.height);
    for (uint32_t& sample : dots) sample = dice.chance(40) ? dice.roll(uint64_t{1} << bits) : 0;
    const Bytes payload = codes_all && still == 0 ? writer.of(dots) : writer.random();
    parts.tiles.push_back({3, writer.parameters(), {}, payload});
    const Bytes file = by_hand::put_together(parts);
    Bytes wanted;
    for (const uint32_t sample : writer.samples()) {
      const auto short_sample = static_cast<uint16_t>(sample);
      const uint8_t* const bytes = reinterpret_cast<const uint8_t*>(&short_sample);
      if (bits > 8) wanted.insert(wanted.end(), bytes, bytes + 2);
      if (bits <= 8) wanted.push_back(static_cast<uint8_t>(sample));
    }
    for (const char* target : targets()) {
      const ForcedTarget forced(target);
      Bytes pixels(wanted.size());
      ASSERT_EQ(l3_decode(file.data(), file.size(), nullptr, pixels.data(), pixels.size(), 0, nullptr), L3_OK)
          << target << ", " << size.width << "x" << size.height << ", tile " << i;
      ASSERT_EQ(pixels, wanted) << target << ", " << size.width << "x" << size.height << ", tile " << i;
    }
  }
}

// A few strokes with soft edges on a flat ground, as of digits, and some dots.
Drawing strokes(Dice& dice, const Size& size, uint32_t dots) {
  Drawing d = drawing::draw(size, {L3_COLOUR_GRAY, 8}, drawing::Pattern::flat);
  std::fill(d.pixels.begin(), d.pixels.end(), uint8_t{0});
  for (uint32_t i = 1 + dice.roll(3); i > 0; --i) {
    const double x0 = dice.roll(size.width), y0 = dice.roll(size.height), dx = dice.roll(size.width) - x0,
                 dy = dice.roll(size.height) - y0, length = dx * dx + dy * dy + 1;
    for (uint32_t y = 0; y < size.height; ++y) {
      for (uint32_t x = 0; x < size.width; ++x) {
        const double px = x - x0, py = y - y0;
        const double t = std::clamp((px * dx + py * dy) / length, 0.0, 1.0);
        const double away = std::hypot(px - t * dx, py - t * dy);
        uint8_t& sample = d.pixels[size_t{y} * size.width + x];
        sample = std::max(sample, static_cast<uint8_t>(255 * std::clamp(2.0 - away, 0.0, 1.0)));
      }
    }
  }
  for (; dots > 0; --dots) d.pixels[dice.roll(d.pixels.size())] = dice.byte();
  return d;
}

// By a model of the encoder's. Large parts are flat, so most pixels take a shorter way.
TEST(FewLanes, StrokesComeBackOnEveryTarget) {
  Dice dice(7);
  l3_training* training = nullptr;
  ASSERT_EQ(l3_start_training(nullptr, &training, nullptr), L3_OK);
  for (uint32_t i = 0; i < 40; ++i) {
    const Drawing d = strokes(dice, {28, 28}, i % 4 == 0 ? 3 : 0);
    const l3_image image = d.image();
    ASSERT_EQ(l3_add_to_training(training, &image, nullptr), L3_OK);
  }
  l3_model* model = nullptr;
  ASSERT_EQ(l3_finish_training(training, &model, nullptr), L3_OK);
  l3_close_training(training);
  l3_model_info info = l3_model_info_init();
  ASSERT_EQ(l3_describe_model(model, &info, nullptr), L3_OK);
  EXPECT_EQ(info.kind, 1u);
  std::set<uint32_t> lanes;
  uint32_t single = 0;
  for (uint32_t i = 0; i < (kSanitized ? 40 : 200); ++i) {
    const Size size{i % 3 == 0 ? 28 : 8 + dice.roll(60), i % 3 == 0 ? 28 : 8 + dice.roll(60)};
    const Drawing d = strokes(dice, size, i % 5 == 0 ? dice.roll(200) : dice.roll(3));
    l3_encode_options options = options_of(L3_METHOD_DENSE, 128, 128);
    options.model = info.bytes;
    options.model_size = info.size;
    const Bytes file = expect_round_trip(d, options);
    ASSERT_FALSE(HasFailure()) << i;
    if (file[3] != 't') continue;
    lanes.insert(1u << (file[11] & 7));
    // Small tiles have a single lane up to about 320 bytes, others up to about 160.
    const uint32_t payload = 4 * (by_hand::get(file.data() + 12, 4) >> 10 & 1023);
    if (size.width * size.height > 1024 || payload < 180 || payload > 300) continue;
    EXPECT_EQ(file[11] & 7, 0) << size.width << "x" << size.height << ", " << payload << " bytes";
    ++single;
  }
  EXPECT_GE(lanes.size(), 3u);
  EXPECT_GE(single, kSanitized ? 1u : 5u);
  l3_close_model(model);
}

}  // namespace
