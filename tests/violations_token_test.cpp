// The rules of section 14 of spec/format.md about where and why: offsets and reasons, which the vectors of
// spec/vectors do not state. That each rule is kept is for them to show, too.
#include "any_token_tile.h"
#include "container/reason.h"
#include "violations.h"

namespace {

using namespace violations;
using by_hand::BitString;
using by_hand::TokenSection;
using drawing::Type;
using l3::Reason;

constexpr Type kGray8{L3_COLOUR_GRAY, 8}, kGray16{L3_COLOUR_GRAY, 16};
constexpr uint64_t kModel = 96;  // the section's offset in the files below

uint32_t channels_of(Type type) {
  return type.colour == L3_COLOUR_PALETTE ? 1 : static_cast<uint32_t>(type.colour) + 1;
}

// A file of one pixel, which is 0, and this section.
Bytes file_of(const Bytes& model, Type type) {
  Parts parts;
  parts.header = by_hand::header(1, 1, type.colour, type.bits);
  parts.sections.push_back({L3_SECTION_MODEL, model});
  parts.tiles.resize(1);
  return by_hand::put_together(parts);
}

void expect_model_accepted(const TokenSection& section, Type type) {
  const uint32_t samples = channels_of(type);
  expect_accepted(file_of(section.bytes(), type), Bytes(samples * (type.bits > 8 ? 2 : 1)));
}
void expect_model_refused(const Bytes& model, Type type, Reason reason, uint64_t offset) {
  expect_corrupt(file_of(model, type), l3::text_of(reason), kModel + offset);
}
// A fault in a part, which is named where the part begins.
void expect_part_refused(const TokenSection& section, Type type, size_t part, Reason reason) {
  expect_model_refused(section.bytes(), type, reason, section.begin(part));
}
void expect_byte_refused(const TokenSection& section, Type type, size_t place, uint64_t value, uint32_t width = 1) {
  Bytes model = section.bytes();
  by_hand::put(&model[place], width, value);
  expect_model_refused(model, type, Reason::model_head, place);
}

// A field of a part: its value and its width.
struct Field {
  uint64_t value;
  uint32_t bits;
};
Bytes part(const std::vector<Field>& fields) {
  BitString bits;
  for (const Field& field : fields) {
    bits.put(field.value, std::min(field.bits, 64u));
    for (uint32_t i = 64; i < field.bits; ++i) bits.put(0, 1);
  }
  return bits.bytes();
}
std::vector<Field> joined(std::vector<Field> a, const std::vector<Field>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

const std::vector<Field> kRow{{0, 7}, {0, 6}};
const std::vector<Field> kNoGroups{{0, 1}};

// What an engine channel says: weights that are 0 but for W, activity weights of 0, and what follows these.
Bytes channel(uint32_t e, const std::vector<Field>& rest) {
  std::vector<Field> fields;
  for (uint32_t tap = 0; tap < 24; ++tap) {
    if (by_hand::is_coded(e, tap)) fields.insert(fields.end(), {{0, 4}, {0, 8}});
  }
  for (uint32_t term = 0; term < 9 + std::min(e, 2u); ++term) fields.push_back({0, 7});
  return part(joined(fields, rest));
}
Bytes plain_channel(uint32_t e, uint32_t classes = 1) {
  std::vector<Field> rest = joined(kNoGroups, kRow);
  if (classes > 1) rest.push_back({0, 3});
  return channel(e, rest);
}

Bytes halves() { return by_hand::table_part({2048, 2048}, 0, 0); }

// A model without flags, of one table.
TokenSection plain(Type type) {
  TokenSection section;
  section.channels = static_cast<uint8_t>(channels_of(type));
  section.bits = static_cast<uint8_t>(type.bits);
  for (uint32_t e = 0; e < section.channels; ++e) {
    section.classes[e] = 1;
    section.engine.push_back(plain_channel(e));
  }
  section.tables.push_back(halves());
  return section;
}
TokenSection with_match(TokenSection section) {
  section.flags |= by_hand::kMatch;
  section.match = part({{0, 8}, {0, 5}, {0, 6}});
  return section;
}
TokenSection with_literal(TokenSection section) {
  section.flags |= by_hand::kLiteral;
  section.engine = {part({{0, 8}, {0, 6}})};
  return section;
}
TokenSection with_ranks(TokenSection section, const std::vector<Field>& fields = {{1, 16}, {0, 16}, {1, 16}}) {
  section.flags |= by_hand::kRanks;
  section.values = part(fields);
  return section;
}
TokenSection with_colours(TokenSection section, const std::vector<Field>& fields) {
  section.flags |= by_hand::kColours;
  section.engine.resize(1);
  section.classes = {1, 0, 0, 0};
  section.values = part(fields);
  return section;
}

TEST(TokenModel, SoundOnesAreAccepted) {
  for (uint32_t bits = 1; bits <= 16; ++bits) {
    for (const l3_colour colour : {L3_COLOUR_GRAY, L3_COLOUR_GRAY_ALPHA, L3_COLOUR_RGB, L3_COLOUR_RGB_ALPHA}) {
      const Type type{colour, bits};
      expect_model_accepted(plain(type), type);
      expect_model_accepted(with_match(plain(type)), type);
    }
    const Type gray{L3_COLOUR_GRAY, bits}, rgb{L3_COLOUR_RGB, bits};
    expect_model_accepted(with_literal(plain(gray)), gray);
    expect_model_accepted(with_literal(with_match(plain(gray))), gray);
    expect_model_accepted(with_ranks(plain(gray)), gray);
    expect_model_accepted(with_match(with_colours(plain(rgb), {{1, 16}, {0, 3 * bits}})), rgb);
    expect_model_accepted(with_literal(with_colours(plain(rgb), {{1, 16}, {0, 3 * bits}})), rgb);
  }
}

TEST(TokenModel, DrawnOnesDecode) {
  drawing::Dice dice(4);
  for (const Type& type : drawing::all_types()) {
    const drawing::Size size{1 + dice.roll(50), 1 + dice.roll(40)};
    const by_hand::TokenFile file = by_hand::any_token_file(
        dice, size, type, by_hand::any_token_model(dice, channels_of(type), type.bits, dice.chance(2)));
    expect_accepted(by_hand::put_together(file.parts), file.pixels);
  }
}

TEST(TokenModel, HeadIsThatOfTheImage) {
  for (const uint8_t channels : Bytes{0, 2, 4, 255}) expect_byte_refused(plain(kGray8), kGray8, 1, channels);
  for (const uint8_t channels : Bytes{1, 2, 4}) {
    expect_byte_refused(plain({L3_COLOUR_RGB, 8}), {L3_COLOUR_RGB, 8}, 1, channels);
  }
  for (const uint8_t bits : Bytes{0, 7, 9, 16, 255}) expect_byte_refused(plain(kGray8), kGray8, 2, bits);
}

TEST(TokenModel, FlagsFitEachOther) {
  const TokenSection gray = plain(kGray8);
  for (const uint8_t flags : Bytes{0x20, 0x40, 0x80}) expect_byte_refused(gray, kGray8, 3, flags);
  expect_byte_refused(with_literal(gray), kGray8, 3, by_hand::kLiteral | by_hand::kStill);
  for (const uint8_t flags : Bytes{0x81, 0xC1}) expect_byte_refused(with_match(gray), kGray8, 3, flags);
  expect_byte_refused(with_literal(gray), kGray8, 3, by_hand::kLiteral | by_hand::kFollow);
  expect_byte_refused(with_ranks(gray), kGray8, 3, 24);
  for (const l3_colour colour : {L3_COLOUR_GRAY_ALPHA, L3_COLOUR_RGB, L3_COLOUR_RGB_ALPHA}) {
    const Type type{colour, 8};
    expect_byte_refused(plain(type), type, 3, by_hand::kLiteral);
    expect_byte_refused(with_match(plain(type)), type, 3, by_hand::kMatch | by_hand::kHole);
  }
  expect_byte_refused(gray, kGray8, 3, by_hand::kHole);
  expect_byte_refused(with_literal(with_match(gray)), kGray8, 3, 7);
  expect_byte_refused(with_literal(gray), kGray8, 3, by_hand::kLiteral | by_hand::kHole);
}

TEST(TokenModel, HoleIsAValue) {
  for (const TokenSection& section : {plain(kGray8), with_match(plain(kGray8)), with_literal(plain(kGray8))}) {
    for (const uint32_t hole : {1u, 256u, 32768u}) expect_byte_refused(section, kGray8, 4, hole, 2);
  }
  TokenSection section = with_match(plain(kGray8));
  section.flags |= by_hand::kHole;
  section.hole = 255;
  expect_model_accepted(section, kGray8);
  for (const uint32_t hole : {256u, 65535u}) expect_byte_refused(section, kGray8, 4, hole, 2);
  // Two bits.
  section = with_ranks(section, {{3, 16}, {0, 16}, {1, 16}, {0, 5}});
  section.hole = 3;
  expect_model_accepted(section, kGray8);
  for (const uint32_t hole : {4u, 255u}) expect_byte_refused(section, kGray8, 4, hole, 2);
}

TEST(TokenModel, CountsAreInRange) {
  const TokenSection section = plain(kGray8);
  for (const uint8_t tables : Bytes{0, 65, 255}) expect_byte_refused(section, kGray8, 6, tables);
  for (const uint8_t class_tables : Bytes{33, 255}) expect_byte_refused(section, kGray8, 7, class_tables);
  for (const uint8_t classes : Bytes{0, 33, 255}) expect_byte_refused(section, kGray8, 8, classes);
  for (const size_t beyond : {size_t{9}, size_t{10}, size_t{11}}) expect_byte_refused(section, kGray8, beyond, 1);
  expect_byte_refused(with_literal(section), kGray8, 8, 2);
  const Type rgb{L3_COLOUR_RGB, 8};
  expect_byte_refused(plain(rgb), rgb, 10, 0);
  expect_byte_refused(plain(rgb), rgb, 11, 1);
  expect_byte_refused(with_colours(plain(rgb), {{1, 16}, {0, 24}}), rgb, 9, 1);
}

TEST(TokenModel, ClassTablesAreThoseOfTheChannels) {
  TokenSection section = plain(kGray8);
  section.class_tables.push_back(halves());
  expect_model_refused(section.bytes(), kGray8, Reason::model_head, 7);
  section.classes[0] = 2;
  section.engine[0] = plain_channel(0, 2);
  expect_model_accepted(section, kGray8);
  // Where there are too few it is the channel whose tables are not there.
  section.class_tables.clear();
  expect_part_refused(section, kGray8, 0, Reason::model_channel);
  section.class_tables.assign(2, halves());
  expect_model_refused(section.bytes(), kGray8, Reason::model_head, 7);
}

TEST(TokenModel, SizesAreThoseOfTheSection) {
  const Bytes whole = with_match(plain(kGray8)).bytes();
  // Within the head, and within the parts: where it ends.
  for (size_t size = 1; size < whole.size(); ++size) {
    expect_model_refused(Bytes(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(size)), kGray8, Reason::model_head,
                         size);
  }
  const TokenSection section = plain(kGray8);
  for (const uint32_t size : {1u, 65535u}) expect_byte_refused(section, kGray8, section.size_at(1), size, 2);
  TokenSection large = with_ranks(section);
  large.values.resize((1 << 17) - large.begin(large.count() - 1));
  expect_part_refused(large, kGray8, large.count() - 1, Reason::model_values);
  large.values.resize(large.values.size() + 1);
  expect_model_refused(large.bytes(), kGray8, Reason::model_head, 1 << 17);
}

TEST(TokenModel, PartsAreAsLongAsTheirBits) {
  TokenSection section = with_ranks(with_match(plain(kGray8)));
  section.classes[0] = 2;
  section.engine[0] = plain_channel(0, 2);
  section.class_tables.push_back(halves());
  expect_model_accepted(section, kGray8);
  const Reason reasons[] = {Reason::model_channel, Reason::model_match, Reason::model_table, Reason::model_table,
                            Reason::model_values};
  for (size_t i = 0; i < section.count(); ++i) {
    TokenSection spoiled = section;
    spoiled.part(i).push_back(0);
    expect_part_refused(spoiled, kGray8, i, reasons[i]);
    spoiled = section;
    spoiled.part(i).pop_back();
    expect_part_refused(spoiled, kGray8, i, reasons[i]);
    spoiled.part(i).clear();
    expect_part_refused(spoiled, kGray8, i, reasons[i]);
  }
  // The reserved bits of the last byte: of the literal channel 2, of the match 5, of a table 1, of colours of 5 bits 3.
  const TokenSection literal = with_literal(with_match(plain({L3_COLOUR_GRAY, 5})));
  const TokenSection colours = with_colours(literal, {{1, 16}, {0, 5}});
  for (size_t i = 0; i < colours.count(); ++i) {
    TokenSection spoiled = colours;
    spoiled.part(i).back() |= 0x80;
    expect_part_refused(spoiled, {L3_COLOUR_GRAY, 5}, i, reasons[i < 3 ? i : 4]);
  }
  TokenSection unlisted = plain(kGray8);
  unlisted.values.push_back(0);
  expect_part_refused(unlisted, kGray8, 3, Reason::model_values);
}

TEST(TokenModel, RanksRise) {
  const auto refuse = [](Type type, const std::vector<Field>& fields) {
    const TokenSection section = with_ranks(plain(type), fields);
    expect_part_refused(section, type, section.count() - 1, Reason::model_values);
  };
  refuse(kGray8, {{0, 16}, {0, 16}, {1, 16}});
  refuse(kGray8, {{1, 16}, {256, 16}, {1, 16}});
  refuse(kGray8, {{1, 16}, {0, 16}, {0, 16}});
  refuse(kGray8, {{2, 16}, {0, 16}, {0, 16}, {1, 5}, {1, 1}});
  refuse(kGray8, {{2, 16}, {200, 16}, {56, 16}, {0, 5}});
  refuse(kGray8, {{257, 16}, {0, 16}, {1, 16}, {0, 5 * 8}});
  for (const uint32_t width : {17u, 31u}) refuse(kGray16, {{2, 16}, {0, 16}, {1, 16}, {width, 5}, {0, width}});
  refuse(kGray16, {{34, 16}, {0, 16}, {1, 16}, {0, 5}, {17, 5}, {0, 17}});
  refuse(kGray16, {{2, 16}, {65535, 16}, {1, 16}, {0, 5}});
  refuse(kGray16, {{3, 16}, {65535, 16}, {65535, 16}, {16, 5}, {65535, 16}, {65535, 16}});
  std::vector<Field> maximum{{32768, 16}, {0, 16}, {1, 16}};
  for (uint32_t block = 0; block < 1024; ++block) maximum.push_back({0, 5});
  expect_model_accepted(with_ranks(plain(kGray16), maximum), kGray16);
  maximum[0].value = 32769;
  refuse(kGray16, maximum);
  const Type two{L3_COLOUR_GRAY_ALPHA, 16};
  maximum[0].value = 32767;
  expect_model_accepted(with_ranks(plain(two), joined(maximum, {{1, 16}, {9, 16}, {1, 16}})), two);
  refuse(two, joined(maximum, {{2, 16}, {9, 16}, {1, 16}, {0, 5}}));
}

TEST(TokenModel, ColoursAreNotTooMany) {
  const auto refuse = [](Type type, uint32_t count, uint32_t there) {
    std::vector<Field> fields{{count, 16}};
    for (uint32_t i = 0; i < there * (channels_of(type)); ++i) fields.push_back({0, type.bits});
    const TokenSection section = with_colours(plain(type), fields);
    expect_part_refused(section, type, section.count() - 1, Reason::model_values);
  };
  for (const l3_colour colour : {L3_COLOUR_GRAY, L3_COLOUR_GRAY_ALPHA, L3_COLOUR_RGB, L3_COLOUR_RGB_ALPHA}) {
    const uint32_t maximum = 32768 / channels_of({colour, 1});
    refuse({colour, 1}, 0, 0);
    refuse({colour, 1}, 0, 8);
    refuse({colour, 1}, 9, 1);
    refuse({colour, 1}, maximum + 1, maximum + 1);
  }
}

TEST(TokenModel, ChannelsAreInRange) {
  const auto refuse = [](const Bytes& bytes, uint32_t tables = 1) {
    TokenSection section = plain(kGray8);
    section.tables.assign(tables, halves());
    section.engine[0] = bytes;
    expect_part_refused(section, kGray8, 0, Reason::model_channel);
  };
  const auto row = [](uint32_t last, const std::vector<Field>& names) {
    return channel(0, joined(joined(kNoGroups, {{last, 7}}), names));
  };
  std::vector<Field> levels{{0, 6}, {0, 83}};
  for (uint32_t last = 84; last < 128; last += last == 84 ? 1 : 42) {
    refuse(row(last, joined(levels, {{0, last - 83}})));
  }
  refuse(row(0, {{1, 6}}));
  refuse(row(0, {{63, 6}}), 63);
  refuse(row(1, {{0, 6}, {1, 2}}));
  refuse(row(1, {{63, 6}, {1, 2}}), 64);
  refuse(row(1, {{0, 6}, {3, 2}, {1, 6}}));
  refuse(row(2, {{0, 6}, {1, 2}, {3, 2}, {0, 6}}));
  // A weight of 9 bits; tap 1 so low that tap 0 is 128; activity weights that add up to 1001.
  Bytes bytes = plain_channel(0);
  bytes[0] |= 9;
  refuse(bytes);
  bytes = plain_channel(0);
  by_hand::put(&bytes[0], 2, uint64_t{0xC0} << 4);
  refuse(bytes);
  std::vector<Field> fields(13 * 2);
  for (size_t i = 0; i < fields.size(); i += 2) fields[i] = {0, 4}, fields[i + 1] = {0, 8};
  for (const uint32_t weight : {127u, 127u, 127u, 127u, 127u, 127u, 127u, 112u, 0u}) fields.push_back({weight, 7});
  refuse(part(joined(joined(fields, kNoGroups), kRow)));
  TokenSection section = plain(kGray8);
  section.classes[0] = 2;
  section.engine[0] = channel(0, joined(joined(kNoGroups, kRow), {{1, 3}, {2, 3}}));
  section.class_tables.assign(2, halves());
  expect_part_refused(section, kGray8, 0, Reason::model_channel);
}

TEST(TokenModel, LiteralTablesAreThere) {
  const auto refuse = [](const std::vector<Field>& fields) {
    TokenSection section = with_literal(plain(kGray8));
    section.engine[0] = part(fields);
    expect_part_refused(section, kGray8, 0, Reason::model_channel);
  };
  refuse({{0, 8}, {1, 6}});
  refuse({{1, 8}, {0, 6}, {1, 2}});
  refuse({{1, 8}, {0, 6}, {3, 2}, {63, 6}});
  refuse({{2, 8}, {0, 6}, {1, 2}, {3, 2}, {0, 6}});
  refuse({{255, 8}, {0, 6}, {0, 254}, {1, 2}});
}

TEST(TokenModel, FrequenciesOfStillBlocksAreInRange) {
  const auto section_of = [](uint32_t first, uint32_t second) {
    TokenSection section = with_match(plain(kGray8));
    section.flags |= by_hand::kStill;
    section.match = part({{first, 12}, {second, 12}, {0, 8}, {0, 5}, {0, 6}});
    return section;
  };
  for (const uint32_t frequency : {1u, 2048u, 4095u})
    expect_model_accepted(section_of(frequency, 4096 - frequency), kGray8);
  expect_part_refused(section_of(0, 1), kGray8, 1, Reason::model_match);
  expect_part_refused(section_of(4095, 0), kGray8, 1, Reason::model_match);
}

TEST(TokenModel, FrequenciesOfStillRowsAreInRange) {
  const auto section_of = [](uint32_t frequency, uint32_t other, uint32_t at) {
    TokenSection section = with_match(plain(kGray8));
    section.flags |= by_hand::kStill | by_hand::kRows;
    std::vector<Field> fields{{7, 12}, {7, 12}};
    for (uint32_t i = 0; i < 16; ++i) fields.push_back({i == at ? frequency : other, 12});
    section.match = part(joined(fields, {{0, 8}, {0, 5}, {0, 6}}));
    return section;
  };
  for (uint32_t at = 0; at < 16; ++at) {
    expect_model_accepted(section_of(1, 4095, at), kGray8);
    expect_model_accepted(section_of(4095, 1, at), kGray8);
    expect_part_refused(section_of(0, 4095, at), kGray8, 1, Reason::model_match);
  }
  // As without the flag, but for the 24 bytes of these frequencies.
  TokenSection section = section_of(1, 1, 0);
  section.flags &= static_cast<uint8_t>(~by_hand::kRows);
  expect_part_refused(section, kGray8, 1, Reason::model_match);
  section.match.erase(section.match.begin() + 3, section.match.begin() + 27);
  expect_model_accepted(section, kGray8);
}

TEST(TokenModel, RowsOfTheMatchAreAsLongWithFollow) {
  for (const uint32_t last : {0u, 16u, 17u, 20u, 21u}) {
    TokenSection section = with_match(plain(kGray8));
    section.flags |= by_hand::kFollow;
    section.match = part({{0, 8}, {last, 5}, {0, 6}, {0, last}});
    if (last <= 20) {
      expect_model_accepted(section, kGray8);
    } else {
      expect_part_refused(section, kGray8, 1, Reason::model_match);
    }
  }
}

TEST(TokenModel, MatchIsInRange) {
  const auto refuse = [](const std::vector<Field>& fields) {
    TokenSection section = with_match(plain(kGray8));
    section.match = part(fields);
    expect_part_refused(section, kGray8, 1, Reason::model_match);
  };
  refuse({{1, 8}, {3, 2}, {1, 5}, {0, 22}});                  // row 1 is not there to be named
  refuse({{1, 8}, {3, 2}, {31, 5}, {0, 22}});                 //
  refuse({{3, 8}, {1, 2}, {3, 2}, {2, 5}, {0, 1}, {0, 22}});  // nor is row 2
  refuse({{0, 8}, {1, 5}, {1, 6}, {0, 1}});                   // table 1
  refuse({{0, 8}, {1, 5}, {0, 6}, {1, 2}});
  refuse({{0, 8}, {1, 5}, {0, 6}, {3, 2}, {63, 6}});
  refuse({{0, 8}, {2, 5}, {0, 6}, {1, 2}, {3, 2}, {0, 6}});
  refuse({{1, 8}, {1, 2}, {0, 11}, {0, 5}, {1, 6}});  // of the second row
  refuse({{0, 8}, {21, 5}, {0, 6}, {0, 21}});
  refuse({{0, 8}, {31, 5}, {0, 6}, {0, 31}});
  // As many rows as there may be, and one more.
  for (const uint32_t rows : {32u, 33u}) {
    std::vector<Field> fields{{0x3F, 8}};
    for (uint32_t row = 1; row < rows; ++row) fields.push_back({1, 2});
    fields.push_back({0, 64 - rows});
    for (uint32_t row = 0; row < rows; ++row) fields.push_back({0, 11});
    if (rows == 33) {
      refuse(fields);
    } else {
      TokenSection section = with_match(plain(kGray8));
      section.match = part(fields);
      expect_model_accepted(section, kGray8);
    }
  }
}

TEST(TokenModel, TablesAreTables) {
  const auto refuse = [](const Bytes& table) {
    TokenSection section = plain(kGray8);
    section.tables.insert(section.tables.begin(), halves());
    section.tables[1] = table;
    expect_part_refused(section, kGray8, 3, Reason::model_table);
  };
  std::vector<uint32_t> ones(54, 1);
  ones[0] = 4096 - 53;
  TokenSection section = plain(kGray8);
  section.tables[0] = by_hand::table_part(ones, 0, 0);
  expect_model_accepted(section, kGray8);
  ones.push_back(1);
  --ones[0];
  refuse(by_hand::table_part(ones, 0, 0));
  refuse(part({{0, 8}, {0, 5}, {0, 2}}));                                   // last symbol 0
  refuse(part({{1, 8}, {2, 5}, {0, 2}, {0, 1}, {0, 3}, {0, 1}, {0, 3}}));   // rest symbol 2 of 0 to 1
  refuse(part({{1, 8}, {0, 5}, {3, 2}, {0, 1}, {0, 3}}));                   // mode 3
  refuse(part({{1, 8}, {0, 5}, {0, 2}, {15, 4}, {0, 1}, {0, 1}, {0, 3}}));  // 13 bits
  refuse(part({{1, 8}, {0, 5}, {0, 2}, {0x1FF, 9}, {0, 1}, {1, 1}}));       // the last symbol has no slot
  refuse(part({{2, 8}, {0, 5}, {0, 2}, {7, 3}, {0, 1}, {0, 1}, {0, 3}, {0, 1}, {0, 3}}));  // two times 2048
  section = plain(kGray8);
  section.classes[0] = 2;
  section.engine[0] = plain_channel(0, 2);
  section.class_tables.push_back(by_hand::table_part({2048, 1024, 1024}, 0, 0));
  expect_part_refused(section, kGray8, 3, Reason::model_table);
}

TEST(TokenModel, OnesOfKind0AreNotForOtherDepths) {
  drawing::Dice dice(13);
  const TokenSection token = plain(kGray16);
  expect_model_accepted(token, kGray16);
  Bytes model = by_hand::any_model(dice, 1);
  expect_corrupt(file_of(model, kGray16), l3::text_of(Reason::model_unexpected), 64);
  model[0] = 2;
  expect_refused(file_of(model, kGray16), L3_ERROR_UNSUPPORTED, l3::text_of(Reason::model_kind), kModel);
}

}  // namespace
