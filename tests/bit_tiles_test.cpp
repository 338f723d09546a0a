// Tests of tiles of bit models (section 24 of the spec).
#include <algorithm>

#include "any_bit_tile.h"
#include "codec_testing.h"

namespace {

using namespace codec_testing;
using drawing::Dice;
using drawing::Size;
using drawing::Type;

uint32_t channels_of(const Type& type) {
  return type.colour == L3_COLOUR_PALETTE ? 1 : static_cast<uint32_t>(type.colour) + 1;
}

// The samples as l3 hands them out.
Bytes bytes_of(const std::vector<uint16_t>& samples, uint32_t bits) {
  if (bits <= 8) return Bytes(samples.begin(), samples.end());
  const auto* const bytes = reinterpret_cast<const uint8_t*>(samples.data());
  return Bytes(bytes, bytes + 2 * samples.size());
}

bool has_transparency(const by_hand::Parts& parts) {
  return std::any_of(parts.sections.begin(), parts.sections.end(),
                     [](const by_hand::SectionPart& section) { return section.type == L3_SECTION_TRANSPARENCY; });
}

// Of every type, in tiles narrower and wider than two columns for each lane, on every target.
TEST(BitTiles, HaveTheSamplesThatWereCoded) {
  Dice dice(24);
  const auto types = drawing::all_types();
  for (uint32_t i = 0; i < (kSanitized ? 300 : 1500); ++i) {
    const Type type = i % 3 == 0 ? Type{L3_COLOUR_GRAY, 1} : dice.pick(types);
    const bool is_wide = dice.chance(20);
    const Size size{is_wide ? 500 + dice.roll(525) : 1 + dice.roll(100), 1 + dice.roll(dice.chance(4) ? 150 : 40)};
    const uint32_t tile_width = is_wide ? 1024 : 32 * (1 + dice.roll(4)), tile_height = 32 * (1 + dice.roll(4));
    const int least_log_lanes = is_wide ? 3 : 0;  // a lane decodes 2^15 pixels at most
    const by_hand::BitModel model = by_hand::any_bit_model(dice, channels_of(type), type.bits);
    const by_hand::BitFile made =
        by_hand::any_bit_file(dice, size, type, model, tile_width, tile_height,
                              least_log_lanes + static_cast<int>(i / 3) % (6 - least_log_lanes));
    const Bytes file = by_hand::put_together(made.parts), wanted = bytes_of(made.samples, type.bits);
    for (const char* target : targets()) {
      const ForcedTarget forced(target);
      Bytes pixels(wanted.size());
      ASSERT_EQ(l3_decode(file.data(), file.size(), nullptr, pixels.data(), pixels.size(), 0, nullptr), L3_OK)
          << target << ", " << size.width << "x" << size.height << ", file " << i;
      ASSERT_EQ(pixels, wanted) << target << ", " << size.width << "x" << size.height << ", file " << i;
    }
  }
}

TEST(BitTiles, RegionsAreCropsOfTheWhole) {
  Dice dice(25);
  const auto types = drawing::all_types();
  for (uint32_t i = 0; i < (kSanitized ? 100 : 400); ++i) {
    const Type type = dice.pick(types);
    const Size size{1 + dice.roll(150), 1 + dice.roll(90)};
    const by_hand::BitModel model = by_hand::any_bit_model(dice, channels_of(type), type.bits);
    const by_hand::BitFile made = by_hand::any_bit_file(dice, size, type, model, 96, 64);
    const Bytes file = by_hand::put_together(made.parts), whole = bytes_of(made.samples, type.bits);
    const ForcedTarget forced(targets()[i % targets().size()]);
    expect_crop(dice, file, whole, size);
    ASSERT_FALSE(HasFailure()) << "file " << i;
  }
}

// Colours of a palette in place of indices.
TEST(BitTiles, HaveTheColoursOfThePalette) {
  Dice dice(26);
  for (uint32_t i = 0; i < 60; ++i) {
    const uint32_t bits = 1 + i % 8;
    const Size size{1 + dice.roll(80), 1 + dice.roll(50)};
    const by_hand::BitModel model = by_hand::any_bit_model(dice, 1, bits);
    const by_hand::BitFile made = by_hand::any_bit_file(dice, size, {L3_COLOUR_PALETTE, bits}, model);
    const Bytes file = by_hand::put_together(made.parts);
    Bytes palette(3 * 256);  // what it does not have is black
    uint32_t entries = 0;
    ASSERT_EQ(l3_read_palette(file.data(), file.size(), palette.data(), palette.size(), &entries, nullptr), L3_OK);
    l3_decode_options options{};
    options.struct_size = sizeof(options);
    options.as_colours = 1;
    for (const char* target : targets()) {
      const ForcedTarget forced(target);
      Bytes pixels(made.samples.size() * 4);
      const size_t pixel = has_transparency(made.parts) ? 4 : 3;
      const size_t bytes = made.samples.size() * pixel;
      ASSERT_EQ(l3_decode(file.data(), file.size(), &options, pixels.data(), bytes, 0, nullptr), L3_OK);
      for (size_t at = 0; at < made.samples.size(); ++at) {
        ASSERT_EQ(std::memcmp(&pixels[at * pixel], &palette[size_t{3} * made.samples[at]], 3), 0)
            << target << ", file " << i << ", pixel " << at;
      }
    }
  }
}

}  // namespace
