// The rules of sections 6.4, 12 and 13 of spec/format.md about where and why: offsets and reasons, which the vectors of
// spec/vectors do not state. That each rule is kept is for them to show.
#include "any_model.h"
#include "violations.h"

namespace {

using namespace violations;
using by_hand::put;
using codec_testing::options_of;

// Tiles: dense, constant, raw.
Subject dense_subject(l3_colour colour = L3_COLOUR_RGB) {
  Subject s = subject(colour);
  drawing::Drawing d = drawing::draw_mixed({32, 20}, {colour, 8});
  // Where pixels do not repeat their neighbours the model is of kind 0.
  drawing::Dice dice(1);
  for (uint8_t& sample : d.pixels) sample = static_cast<uint8_t>(sample ^ dice.roll(16));
  l3_encode_options options = options_of(L3_METHOD_DENSE, 32, 32, 1);
  options.model_origin = L3_MODEL_OWN;
  s.parts = by_hand::take_apart(codec_testing::encode(d, options));
  s.pixels = d.pixels;
  EXPECT_EQ(s.parts.tiles[0].method, 3);
  return s;
}
Bytes& model_of(Subject& s) { return s.parts.sections.back().bytes; }
uint64_t model_at(const Subject& s) { return Layout(s.parts).sections.back(); }
uint64_t payload_at(const Subject& s) { return Layout(s.parts).payloads[0]; }
uint64_t entry_at(const Subject& s, size_t tile) { return Layout(s.parts).entry(tile); }

TEST(DenseTile, NeedsAModel) {
  constexpr const char* kReason = "the file has a dense tile but no model";
  for (size_t tile = 0; tile < 3; ++tile) {
    const Subject s = subject();
    expect_corrupt(s.with(entry_at(s, tile), 1, 3), kReason, entry_at(s, tile), tile);
  }
  Subject s = dense_subject();
  s.parts.sections.clear();
  expect_corrupt(s.file(), kReason, entry_at(s, 0), 0);
}

TEST(DenseTile, RefusesParametersThatItDoesNotHave) {
  const Subject s = dense_subject();
  for (const uint32_t parameters : {6u, 7u, 0x0Eu, 0x4Fu, 0x86u, 0xF8u, 0xFDu, 0xFFu}) {
    expect_corrupt(s.with(entry_at(s, 0) + 1, 1, parameters), "a tile has parameters that its method does not have",
                   entry_at(s, 0) + 1, 0);
  }
}

TEST(DenseTile, RefusesPayloadsThatCannotHoldTheStates) {
  for (uint32_t log_lanes = 0; log_lanes <= 5; ++log_lanes) {
    Subject s = dense_subject();
    s.parts.tiles[0].parameters = static_cast<uint8_t>(log_lanes);
    for (const size_t units : {size_t{0}, size_t{1}, size_t{4}, (size_t{4} << log_lanes) / 16 - (log_lanes > 1)}) {
      if (16 * units >= size_t{4} << log_lanes) continue;
      s.parts.tiles[0].payload.assign(16 * units, 0);
      expect_corrupt(s.file(), "the size of a payload is wrong", entry_at(s, 0) + 2, 0);
    }
  }
}

TEST(DenseTile, RefusesPayloadsThatEndTooSoon) {
  for (const l3_colour colour : {L3_COLOUR_GRAY, L3_COLOUR_RGB, L3_COLOUR_RGB_ALPHA}) {
    Subject s = dense_subject(colour);
    Bytes& payload = s.parts.tiles[0].payload;
    while (payload.size() - 16 >= size_t{4} << (s.parts.tiles[0].parameters & 7)) {
      payload.erase(payload.end() - 16, payload.end());
      expect_corrupt(s.file(), "a dense tile ends before its last sample", payload_at(s) + payload.size(), 0);
    }
  }
}

TEST(DenseTile, RefusesWhatIsLeftOver) {
  for (const l3_colour colour : {L3_COLOUR_GRAY, L3_COLOUR_GRAY_ALPHA, L3_COLOUR_RGB}) {
    Subject s = dense_subject(colour);
    const Bytes whole = s.parts.tiles[0].payload;
    Bytes& payload = s.parts.tiles[0].payload;
    payload.resize(whole.size() + 16);
    const Said said = say_decode(Exact(s.file()));
    EXPECT_EQ(said.reason, "a payload is longer than its blocks");
    const uint64_t end = said.offset - payload_at(s);  // of the words
    ASSERT_LE(end, whole.size());
    ASSERT_GT(end + 16, whole.size());
    expect_corrupt(s.file(), "a payload is longer than its blocks", payload_at(s) + end, 0);
    for (uint64_t i = end; i < whole.size(); ++i) {
      payload = whole;
      payload[i] = 0x40;
      expect_corrupt(s.file(), "bytes after the last block are not zero", payload_at(s) + i, 0);
    }
  }
}

TEST(DenseTile, RefusesOtherStatesAtTheEndThanThatOfARestingCoder) {
  Subject s = dense_subject();
  const size_t lanes = size_t{1} << (s.parts.tiles[0].parameters & 7);
  int states = 0;
  for (size_t bit = 0; bit < 32 * lanes; ++bit) {
    Bytes& payload = s.parts.tiles[0].payload;
    payload[bit / 8] = static_cast<uint8_t>(payload[bit / 8] ^ 1u << (bit % 8));
    const Said said = say_decode(Exact(s.file()));
    if (said.status == L3_OK) {
      // The first symbol of the lane has become another one of the same frequency: another image.
    } else if (said.reason == "a payload is longer than its blocks" ||
               said.reason == "bytes after the last block are not zero") {
      // The lane took fewer words, and came to an end that a tile with an ending may have.
    } else if (said.reason == "the final states of the coder are wrong") {
      ++states;
      expect_corrupt(s.file(), said.reason.c_str(), payload_at(s), 0);
    } else {
      expect_corrupt(s.file(), "a dense tile ends before its last sample", payload_at(s) + payload.size(), 0);
    }
    payload[bit / 8] = static_cast<uint8_t>(payload[bit / 8] ^ 1u << (bit % 8));
  }
  EXPECT_GT(states, 0);
}

TEST(Model, IsNotForOtherDepths) {
  drawing::Dice dice(2);
  for (const uint32_t bits : {1u, 4u, 7u, 9u, 16u}) {
    Subject s = subject(L3_COLOUR_RGB, bits);
    s.parts.sections.push_back({L3_SECTION_MODEL, by_hand::any_model(dice, 3)});
    expect_corrupt(s.file(), "an image with samples of other than 8 bits has a model", 64);
  }
}

TEST(Model, IsVerifiedWhetherOrNotATileIsDense) {
  drawing::Dice dice(3);
  Subject s = subject();
  s.parts.sections.push_back({L3_SECTION_MODEL, by_hand::any_model(dice, 3)});
  expect_accepted(s.file(), s.pixels);
  model_of(s)[0] = 2;
  expect_refused(s.file(), L3_ERROR_UNSUPPORTED, "the model is of a kind that this version does not support",
                 model_at(s));
}

TEST(Model, FaultsAreNamedWhereTheyAre) {
  constexpr const char* kHead = "the head of the model is truncated or has a value out of range";
  constexpr const char* kOffset = "a part of the model begins at the wrong offset";
  const Subject sound = dense_subject();
  const uint64_t at = model_at(sound);
  const auto refuse = [&](size_t place, uint8_t value, const char* reason, uint64_t offset) {
    Subject s = sound;
    model_of(s)[place] = value;
    expect_corrupt(s.file(), reason, offset);
  };
  for (const uint8_t channels : Bytes{0, 1, 2, 4}) refuse(1, channels, kHead, at + 1);
  for (const uint8_t tables : Bytes{0, 25, 255}) refuse(2, tables, kHead, at + 2);
  refuse(3, 33, kHead, at + 3);
  for (const size_t c : {size_t{4}, size_t{5}, size_t{6}}) {
    for (const uint8_t classes : Bytes{0, 33, 255}) refuse(c, classes, kHead, at + c);
  }
  refuse(7, 1, kHead, at + 7);
  Subject s = sound;
  const size_t parts = 3u + model_of(s)[2] + model_of(s)[3];
  for (size_t i = 0; i < parts; ++i) {
    s = sound;
    put(&model_of(s)[8 + 2 * i], 2, i == 0 ? 8 + 2 * parts - 1 : 8 + 2 * parts - 2);
    expect_corrupt(s.file(), kOffset, at + 8 + 2 * i);
    put(&model_of(s)[8 + 2 * i], 2, model_of(s).size() + 1);
    expect_corrupt(s.file(), kOffset, at + 8 + 2 * i);
  }
  for (const size_t size : {size_t{1}, size_t{7}, size_t{8}, 8 + 2 * parts - 1}) {
    s = sound;
    model_of(s).resize(size);
    expect_corrupt(s.file(), kHead, at + size);
  }
  // A byte more at the end of each part, and the parts behind it where they then are.
  for (size_t i = 0; i < parts; ++i) {
    s = sound;
    Bytes& model = model_of(s);
    const auto begin = [&](size_t part) { return part < parts ? by_hand::get(&model[8 + 2 * part], 2) : model.size(); };
    const uint64_t own = begin(i);
    model.insert(model.begin() + static_cast<ptrdiff_t>(begin(i + 1)), 0);
    for (size_t k = i + 1; k < parts; ++k) put(&model[8 + 2 * k], 2, begin(k) + 1);
    expect_corrupt(s.file(),
                   i < 3 ? "a channel of the model has a value out of range" : "a table of the model is invalid",
                   at + own);
  }
}

}  // namespace
