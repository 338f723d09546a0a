// The rules of section 15 of spec/format.md about where and why, as violations_token_test.cpp does for section 14.
#include "any_token_tile.h"
#include "container/reason.h"
#include "violations.h"

namespace {

using namespace violations;
using drawing::Type;
using l3::Reason;

constexpr Type kGray8{L3_COLOUR_GRAY, 8}, kGray16{L3_COLOUR_GRAY, 16};

uint32_t channels_of(Type type) { return static_cast<uint32_t>(type.colour) + 1; }

// A tile of eight rows, of so many lanes.
by_hand::TokenFile tile_file(drawing::Dice& dice, Type type, uint32_t flags, uint32_t log_lanes) {
  const by_hand::TokenModel model = by_hand::any_token_model(dice, channels_of(type), type.bits, flags);
  by_hand::TokenFile file{{}, model, {}};
  file.parts.header = by_hand::header(11, 8, type.colour, type.bits);
  file.parts.sections.push_back({L3_SECTION_MODEL, model.section.bytes()});
  by_hand::TokenTileWriter writer(dice, file.model, 11, 8, log_lanes);
  const Bytes payload = writer.random();
  file.parts.tiles.push_back({3, writer.parameters(), {}, payload});
  return file;
}
constexpr uint32_t kFlagsOfTiles[] = {
    0,
    by_hand::kMatch,
    by_hand::kMatch | by_hand::kHole,
    by_hand::kLiteral,
    by_hand::kMatch | by_hand::kLiteral,
    by_hand::kRanks | by_hand::kMatch,
    by_hand::kMatch | by_hand::kStill,
    by_hand::kMatch | by_hand::kLiteral | by_hand::kStill,
    by_hand::kMatch | by_hand::kStill | by_hand::kRows,
    by_hand::kMatch | by_hand::kFollow,
    by_hand::kMatch | by_hand::kLiteral | by_hand::kStill | by_hand::kRows | by_hand::kFollow};

// In tiles wide enough for that, decoders for processors pass many steps in which all lanes are in still blocks.
TEST(TokenTile, StillBlocksSideBySideDecode) {
  drawing::Dice dice(13);
  for (const uint32_t flags :
       {by_hand::kMatch, by_hand::kMatch | by_hand::kHole, by_hand::kMatch | by_hand::kLiteral}) {
    for (uint32_t i = 0; i < 12; ++i) {
      const Type type = i % 2 == 0 ? kGray16 : kGray8;
      const drawing::Size size{120 + dice.roll(130), 40 + dice.roll(40)};
      const uint32_t rows = i % 4 < 2 ? 0 : by_hand::kRows;
      const by_hand::TokenFile file = by_hand::any_token_file(
          dice, size, type, by_hand::any_token_model(dice, 1, type.bits, flags | by_hand::kStill | rows), 256, 128);
      expect_accepted(by_hand::put_together(file.parts), file.pixels);
    }
  }
}

// Pixels of few values meet the same neighbours again and again, in tiles of any shape and number of lanes.
TEST(TokenTile, FollowedPixelsDecode) {
  constexpr uint32_t kFollow = by_hand::kMatch | by_hand::kFollow, kRows = by_hand::kStill | by_hand::kRows;
  constexpr uint32_t kOfAll[] = {kFollow, kFollow | kRows, kFollow | by_hand::kRanks};
  constexpr uint32_t kOfOne[] = {kFollow | by_hand::kLiteral, kFollow | by_hand::kLiteral | kRows,
                                 kFollow | by_hand::kHole, kFollow | by_hand::kHole | kRows};
  drawing::Dice dice(15);
  for (uint32_t i = 0; i < 120; ++i) {
    const l3_colour colour = static_cast<l3_colour>(i % 4);
    const uint32_t listing = i % 3 == 0 ? by_hand::kColours : 0;
    const bool has_one = colour == L3_COLOUR_GRAY || listing != 0;
    uint32_t flags = has_one && dice.chance(2) ? dice.pick(kOfOne) : dice.pick(kOfAll);
    if (listing != 0) flags = (flags & ~by_hand::kRanks) | listing;
    const Type type{colour, dice.chance(2) ? 1 + dice.roll(3) : 1 + dice.roll(16)};
    const drawing::Size size{1 + dice.roll(dice.chance(3) ? 20 : 130), 1 + dice.roll(100)};
    const by_hand::TokenFile file = by_hand::any_token_file(
        dice, size, type, by_hand::any_token_model(dice, channels_of(type), type.bits, flags), 96, 96);
    expect_accepted(by_hand::put_together(file.parts), file.pixels);
  }
}

// Lanes hold a value through still blocks and rows of holes, and use it where those end.
TEST(TokenTile, ValuesAreHeldThroughStillBlocks) {
  constexpr uint32_t kWidth = 144, kHeight = 48, kHolesFrom = 48, kHolesTo = 112;
  drawing::Dice dice(14);
  for (uint32_t i = 0; i < 12; ++i) {
    const uint32_t log_lanes = i / 2, rows = i % 2 == 0 ? 0 : by_hand::kRows;
    const by_hand::TokenModel model =
        by_hand::any_token_model(dice, 1, 16, by_hand::kMatch | by_hand::kHole | by_hand::kStill | rows);
    const uint32_t hole = model.section.hole;
    std::vector<uint32_t> samples;
    for (uint32_t at = 0; at < kWidth * kHeight; ++at) {
      const uint32_t x = at % kWidth;
      const uint32_t value = hole + (x < kHolesFrom - 16 ? 1000 : 6000);
      samples.push_back(x < kHolesFrom ? value : x < kHolesTo || dice.chance(2) ? hole : value + dice.roll(30));
    }
    Bytes pixels(2 * samples.size());
    for (size_t at = 0; at < samples.size(); ++at) {
      const uint16_t sample = static_cast<uint16_t>(samples[at] %= 65536);
      std::memcpy(&pixels[2 * at], &sample, 2);
    }
    Parts parts;
    parts.header = by_hand::header(kWidth, kHeight, kGray16.colour, kGray16.bits, 256, 64);
    parts.sections.push_back({L3_SECTION_MODEL, model.section.bytes()});
    by_hand::TokenTileWriter writer(dice, model, kWidth, kHeight, log_lanes);
    const Bytes payload = writer.of(samples);
    parts.tiles.push_back({3, writer.parameters(), {}, payload});
    expect_accepted(by_hand::put_together(parts), pixels);
  }
}

TEST(TokenTile, RefusesPayloadsThatEndTooSoon) {
  drawing::Dice dice(7);
  for (const uint32_t flags : kFlagsOfTiles) {
    for (uint32_t log_lanes = 0; log_lanes <= 5; ++log_lanes) {
      by_hand::TokenFile file = tile_file(dice, kGray16, flags, log_lanes);
      const uint64_t at = Layout(file.parts).payloads[0];
      Bytes& payload = file.parts.tiles[0].payload;
      while (payload.size() > 16 && payload.size() - 16 >= size_t{4} << log_lanes) {
        payload.erase(payload.end() - 16, payload.end());
        expect_corrupt(by_hand::put_together(file.parts), l3::text_of(Reason::dense_words), at + payload.size(), 0);
      }
    }
  }
}

TEST(TokenTile, RefusesPayloadsThatCannotHoldTheStates) {
  drawing::Dice dice(8);
  for (uint32_t log_lanes = 3; log_lanes <= 5; ++log_lanes) {
    by_hand::TokenFile file = tile_file(dice, kGray8, by_hand::kMatch, log_lanes);
    file.parts.tiles[0].payload.resize((size_t{4} << log_lanes) - 16);
    expect_corrupt(by_hand::put_together(file.parts), l3::text_of(Reason::tile_size), Layout(file.parts).entry(0) + 2,
                   0);
  }
}

TEST(TokenTile, RefusesParametersThatItDoesNotHave) {
  drawing::Dice dice(9);
  by_hand::TokenFile file = tile_file(dice, kGray8, 0, 0);
  for (const uint8_t parameters : Bytes{6, 7, 0x0E, 0x4F, 0x86, 0xF8, 0xFD, 0xFF}) {
    file.parts.tiles[0].parameters = parameters;
    expect_corrupt(by_hand::put_together(file.parts), l3::text_of(Reason::tile_parameters),
                   Layout(file.parts).entry(0) + 1, 0);
  }
}

TEST(TokenTile, RefusesWhatIsLeftOver) {
  drawing::Dice dice(10);
  for (const uint32_t flags : kFlagsOfTiles) {
    by_hand::TokenFile file = tile_file(dice, kGray16, flags, 2);
    const uint64_t at = Layout(file.parts).payloads[0];
    const Bytes whole = file.parts.tiles[0].payload;
    Bytes& payload = file.parts.tiles[0].payload;
    payload.resize(whole.size() + 16);
    const Said said = say_decode(Exact(by_hand::put_together(file.parts)));
    EXPECT_EQ(said.reason, l3::text_of(Reason::tile_leftover));
    const uint64_t end = said.offset - at;  // of the words
    ASSERT_LE(end, whole.size());
    ASSERT_GT(end + 16, whole.size());
    expect_corrupt(by_hand::put_together(file.parts), l3::text_of(Reason::tile_leftover), at + end, 0);
    for (uint64_t i = end; i < whole.size(); ++i) {
      payload = whole;
      payload[i] = 0x40;
      expect_corrupt(by_hand::put_together(file.parts), l3::text_of(Reason::tile_padding), at + i, 0);
    }
  }
}

TEST(TokenTile, RefusesOtherStatesAtTheEnd) {
  drawing::Dice dice(11);
  by_hand::TokenFile file = tile_file(dice, kGray8, 0, 5);
  // Lanes from 8 on never are active.
  for (size_t lane = 8; lane < 32; ++lane) {
    Bytes& payload = file.parts.tiles[0].payload;
    payload[4 * lane] ^= 1;
    expect_corrupt(by_hand::put_together(file.parts), l3::text_of(Reason::dense_states), Layout(file.parts).payloads[0],
                   0);
    payload[4 * lane] ^= 1;
  }
}

TEST(TokenTile, NeedsAModel) {
  drawing::Dice dice(12);
  by_hand::TokenFile file = tile_file(dice, kGray16, 0, 1);
  file.parts.sections.clear();
  expect_corrupt(by_hand::put_together(file.parts), l3::text_of(Reason::tile_needs_model), Layout(file.parts).entry(0),
                 0);
}

}  // namespace
