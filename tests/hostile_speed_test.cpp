// Tests that decoding hostile data takes at most twice the time of valid data of the size that it claims. The hostile
// files are such as no encoder writes: the widest codes, every predictor and width in turn, raw tiles where they are
// slow, and an error at the very end. They are compared with the slowest of a few encoded drawings of that size.
//
// It measures the processor time of this thread: the shortest of several interleaved rounds.
#include <algorithm>
#include <array>
#include <cstdio>
#include <ctime>

#include "any_bit_tile.h"
#include "codec_testing.h"
#include "screen_files.h"

namespace {

using codec_testing::Bytes;
using codec_testing::ForcedTarget;
using codec_testing::targets;
using drawing::Dice;
using drawing::Size;
using drawing::Type;

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

struct Subject {
  std::string name;
  Bytes file;
  l3_status wanted;
  double seconds = 1e9;  // the least so far
};

void time_once(Subject& subject, Bytes& out) {
  const double start = processor_seconds();
  const l3_status status =
      l3_decode(subject.file.data(), subject.file.size(), nullptr, out.data(), out.size(), 0, nullptr);
  const double took = processor_seconds() - start;
  ASSERT_EQ(status, subject.wanted) << subject.name;
  subject.seconds = std::min(subject.seconds, took);
}

// A fast payload whose blocks all have the widest codes and fields.
Bytes widest_payload(Dice& dice, uint32_t width, uint32_t height, uint32_t channels, uint32_t bits) {
  Bytes payload(2 * channels);
  for (uint32_t y = 0; y < height; y += 8) {
    for (uint32_t x = 0; x < width; x += 32) {
      for (uint32_t c = 0; c < channels; ++c) {
        const uint32_t rows = std::min(8u, height - y), groups = (std::min(32u, width - x) + 3) / 4;
        by_hand::BitString header;
        header.put(dice.roll(7) | (bits > 1 ? bits - 1 : 0) << 3 | 4 << 8, 16);
        for (uint32_t g = 0; g < 64; ++g) header.put(1, 4);
        payload = drawing::joined(std::move(payload), header.bytes());
        payload = drawing::joined(std::move(payload), dice.bytes(rows * groups * bits / 2 + rows * groups * bits % 2));
      }
    }
  }
  payload.resize(by_hand::pad(payload.size()));
  return payload;
}

enum class Kind { any, widest, raw };

by_hand::Parts parts_of(Kind kind, Size size, Type type, uint32_t tile) {
  Dice dice(7);
  by_hand::Parts parts;
  parts.header = by_hand::header(size.width, size.height, type.colour, type.bits, tile, tile);
  const uint32_t channels = static_cast<uint32_t>(type.colour) + 1;
  for (uint32_t y = 0; y < size.height; y += tile) {
    for (uint32_t x = 0; x < size.width; x += tile) {
      const uint32_t w = std::min(tile, size.width - x), h = std::min(tile, size.height - y);
      by_hand::TilePart part;
      part.method = kind == Kind::raw ? 1 : 2;
      part.parameters = part.method == 2 && channels >= 3 ? 4 : 0;
      part.payload = kind == Kind::raw   ? by_hand::any_raw_payload(dice, w, h, channels, type.bits)
                     : kind == Kind::any ? by_hand::any_fast_payload(dice, w, h, channels, type.bits)
                                         : widest_payload(dice, w, h, channels, type.bits);
      parts.tiles.push_back(std::move(part));
    }
  }
  return parts;
}

// A unit more after the last block: a violation that is found when all else is decoded.
Bytes bad_at_the_end(by_hand::Parts parts) {
  parts.tiles.back().payload.resize(parts.tiles.back().payload.size() + 16);
  return by_hand::put_together(parts);
}

// Falls by one from row to row: the fast method pays even where tiles are a pixel wide.
drawing::Drawing draw_ramp(Size size, Type type) {
  drawing::Drawing d = drawing::blank(size, type);
  for (uint32_t y = 0; y < size.height; ++y) {
    for (uint32_t x = 0; x < size.width; ++x) {
      for (uint32_t c = 0; c < d.channels(); ++c) d.set_sample(x, y, c, (d.maximum() - y) & d.maximum());
    }
  }
  return d;
}

constexpr drawing::Pattern kValid[] = {drawing::Pattern::natural, drawing::Pattern::gradient,
                                       drawing::Pattern::outliers, drawing::Pattern::labels,
                                       drawing::Pattern::noise};  // which the encoder stores as raw tiles
constexpr int kMinRounds = 3, kMaxRounds = 60;

constexpr double kBound = 2;

// Times the subjects on every target: those from `valid_subjects` on against the slowest of those before.
void compare(std::vector<Subject>& subjects, size_t valid_subjects, Size size, Type type, uint32_t tile) {
  Bytes out(drawing::blank(size, type).pixels.size());
  for (const char* target : targets()) {
    const ForcedTarget forced(target);
    for (Subject& subject : subjects) subject.seconds = 1e9;
    // A busy machine disturbs some rounds, never makes one faster: stop as soon as the bound is shown.
    double valid = 0, hostile = 0;
    for (int round = 0; round < kMaxRounds && (round < kMinRounds || hostile > kBound * valid); ++round) {
      for (Subject& subject : subjects) time_once(subject, out);
      valid = hostile = 0;
      for (size_t i = 0; i < subjects.size(); ++i) {
        double& slowest = i < valid_subjects ? valid : hostile;
        slowest = std::max(slowest, subjects[i].seconds);
      }
    }
    std::printf("%-8s %4ux%-4u %-4s %2u, tiles of %3u: %.2f of the slowest valid file\n", target, size.width,
                size.height, drawing::name_of(type.colour), type.bits, tile, hostile / valid);
    for (const Subject& subject : subjects) {
      EXPECT_LE(subject.seconds, kBound * valid)
          << target << ", " << size.width << "x" << size.height << " " << drawing::name_of(type.colour) << " "
          << type.bits << ": " << subject.name;
    }
  }
}

void compare_fast(Size size, Type type, uint32_t tile) {
  std::vector<Subject> subjects;
  const auto add_valid = [&](const char* name, const drawing::Drawing& d) {
    subjects.push_back({name, codec_testing::encode(d, codec_testing::tiles_of(tile, tile)), L3_OK});
  };
  for (const drawing::Pattern pattern : kValid)
    add_valid(drawing::name_of(pattern), drawing::draw(size, type, pattern));
  add_valid("ramp", draw_ramp(size, type));
  const size_t valid_subjects = subjects.size();
  for (const auto& [name, kind] :
       {std::pair("any stream", Kind::any), std::pair("the widest codes", Kind::widest), std::pair("raw", Kind::raw)}) {
    const by_hand::Parts parts = parts_of(kind, size, type, tile);
    subjects.push_back({name, by_hand::put_together(parts), L3_OK});
    if (kind == Kind::raw) continue;  // a raw payload of another size is refused before anything is decoded
    subjects.push_back({std::string(name) + ", bad at the end", bad_at_the_end(parts), L3_ERROR_CORRUPT});
  }
  compare(subjects, valid_subjects, size, type, tile);
}

// Flat but for a sample of each tile: so little that one lane decodes it.
drawing::Drawing draw_specks(Size size, Type type, uint32_t tile) {
  drawing::Drawing d = drawing::blank(size, type);
  for (uint32_t y = 0; y < size.height; y += tile) {
    for (uint32_t x = 0; x < size.width; x += tile) d.set_sample(x, y, 0, 1);
  }
  return d;
}

// Dense tiles of any model, of 2^log_lanes lanes and any words, more of them than can be needed: a violation that is
// found when all else is decoded.
Bytes any_dense(Dice& dice, Size size, Type type, uint32_t tile, uint32_t log_lanes) {
  by_hand::Parts parts;
  parts.header = by_hand::header(size.width, size.height, type.colour, type.bits, tile, tile);
  const uint32_t channels = static_cast<uint32_t>(type.colour) + 1;
  parts.sections.push_back({L3_SECTION_MODEL, by_hand::any_model(dice, channels)});
  for (uint32_t y = 0; y < size.height; y += tile) {
    for (uint32_t x = 0; x < size.width; x += tile) {
      const uint32_t w = std::min(tile, size.width - x), h = std::min(tile, size.height - y);
      parts.tiles.push_back(
          {3, static_cast<uint8_t>(log_lanes), {}, dice.bytes(by_hand::pad(2 * w * h * channels + 256))});
    }
  }
  return by_hand::put_together(parts);
}

// A lane has at most 2^15 pixels, and a step of one lane takes a processor as long as a step of a vector of them: what
// the encoder gives fewer lanes than 2^least_log_lanes is as good as flat, and can be claimed of tiles that are not.
// One lane of 128x128 RGB takes about six times as long.
void compare_dense(Size size, l3_colour colour, uint32_t tile, uint32_t least_log_lanes) {
  const Type type{colour, 8};
  std::vector<Subject> subjects;
  l3_encode_options options = codec_testing::options_of(L3_METHOD_DENSE, tile, tile, 1);
  // Hostile files have a model of kind 0 of their own, which is read each time. So have these.
  options.model_origin = L3_MODEL_OWN;
  ASSERT_EQ(l3_default_model(static_cast<uint32_t>(colour) + 1, &options.model, &options.model_size), L3_OK);
  for (const drawing::Pattern pattern : kValid) {
    subjects.push_back(
        {drawing::name_of(pattern), codec_testing::encode(drawing::draw(size, type, pattern), options), L3_OK});
  }
  subjects.push_back({"specks", codec_testing::encode(draw_specks(size, type, tile), options), L3_OK});
  const size_t valid_subjects = subjects.size();
  Dice dice(8);
  for (uint32_t log_lanes = least_log_lanes; log_lanes <= 5; ++log_lanes) {
    subjects.push_back({"dense, any words, 2^" + std::to_string(log_lanes) + " lanes",
                        any_dense(dice, size, type, tile, log_lanes), L3_ERROR_CORRUPT});
  }
  compare(subjects, valid_subjects, size, type, tile);
}

// A token tile of any model with these flags, of 32 lanes and any words, more of them than can be needed.
Bytes any_tokens(Dice& dice, Size size, Type type, uint32_t flags) {
  by_hand::Parts parts;
  parts.header = by_hand::header(size.width, size.height, type.colour, type.bits, 256, 256);
  const uint32_t channels = static_cast<uint32_t>(type.colour) + 1;
  parts.sections.push_back(
      {L3_SECTION_MODEL, by_hand::any_token_model(dice, channels, type.bits, flags).section.bytes()});
  parts.tiles.push_back({3, 5, {}, dice.bytes(by_hand::pad(8 * size.width * size.height * channels + 256))});
  return by_hand::put_together(parts);
}

// The pixels of a screen's few colours in any order, each as often as the others: as in a dithered picture.
drawing::Drawing draw_dots(Size size, Type type) {
  drawing::Drawing d = drawing::screen(size, type);
  std::vector<std::array<uint32_t, 4>> colours;
  for (uint32_t y = 0; y < size.height; ++y) {
    for (uint32_t x = 0; x < size.width; ++x) {
      std::array<uint32_t, 4> colour{};
      for (uint32_t c = 0; c < d.channels(); ++c) colour[c] = d.sample(x, y, c);
      if (std::find(colours.begin(), colours.end(), colour) == colours.end()) colours.push_back(colour);
    }
  }
  Dice dice(10);
  for (uint32_t y = 0; y < size.height; ++y) {
    for (uint32_t x = 0; x < size.width; ++x) {
      const auto& colour = dice.pick(colours);
      for (uint32_t c = 0; c < d.channels(); ++c) d.set_sample(x, y, c, colour[c]);
    }
  }
  return d;
}

// One token tile whose pixels follow others or whose rows may be still, of random symbols, against tiles without
// either, and what the encoder writes with a model that was trained on screens: a screen, and dots, of which every lane
// asks the tables, as with random symbols.
void compare_follow(Size size, l3_colour colour, uint32_t plain) {
  const Type type{colour, 8};
  std::vector<Subject> subjects;
  Dice dice(9);
  const auto add = [&](const char* name, uint32_t flags) {
    for (int i = 0; i < 4; ++i) {
      subjects.push_back({name, any_tokens(dice, size, type, plain | flags), L3_ERROR_CORRUPT});
    }
  };
  add("token, any words", 0);
  const Bytes model = codec_testing::model_for_screens(type);
  const l3_encode_options options = codec_testing::options_with(model, 256, 256);
  const auto add_valid = [&](const char* name, const drawing::Drawing& d) {
    const Bytes file = codec_testing::encode(d, options);
    codec_testing::expect_that_pixels_follow(file);
    subjects.push_back({name, file, L3_OK});
  };
  add_valid("screen", drawing::screen(size, type));
  add_valid("dots", draw_dots(size, type));
  const size_t valid_subjects = subjects.size();
  add("token, rows, any words", by_hand::kStill | by_hand::kRows);
  add("token, follow, any words", by_hand::kFollow);
  add("token, follow and rows, any words", by_hand::kFollow | by_hand::kStill | by_hand::kRows);
  compare(subjects, valid_subjects, size, type, 256);
}

// One bit tile on which a shape is put as often as its area allows, or as a list can say.
Bytes any_shapes(Dice& dice, Size size, bool is_pixel) {
  by_hand::BitModel model = by_hand::any_bit_model(dice, 1, 1, 14, 1);
  while (is_pixel && model.shapes[0].ones.size() > 1) model = by_hand::any_bit_model(dice, 1, 1, 2, 1);
  const by_hand::BitShape shape = model.shapes[0];
  by_hand::ShapeListWriter list(model);
  const uint32_t across = size.width / shape.width, down = size.height / shape.height;
  for (uint32_t i = 0; i < std::min(across * down, 8 + size.width * size.height / 128); ++i) {
    list.add(0, static_cast<int32_t>(i % across * shape.width), static_cast<int32_t>((i / across + 1) * shape.height));
  }
  by_hand::Parts parts;
  parts.header = by_hand::header(size.width, size.height, L3_COLOUR_GRAY, 1, 1024, 1024);
  parts.header[12] = model.features();
  parts.sections.push_back({L3_SECTION_MODEL, model.section});
  model.shapes.clear();  // the list is above
  const by_hand::BitTileWriter bits(dice, model, size.width, size.height, 5);
  parts.tiles.push_back({3, bits.parameters(), {}, drawing::joined(list.bytes(), bits.payload())});
  return by_hand::put_together(parts);
}

// One bit tile of any model and any words, more than can be needed, against what the encoder writes of dots: with a bit
// model, and with a token model for screens. (Bit tiles with 14 scattered neighbours take up to three times as long as
// those with a few, where processors do not extract bits. Tiles of token models take longer.)
void compare_bits(Size size) {
  const Type type{L3_COLOUR_GRAY, 1};
  std::vector<Subject> subjects;
  Dice dice(11);
  drawing::Drawing dots = drawing::blank(size, type);
  for (uint8_t& sample : dots.pixels) sample = dice.chance(12);
  l3_encode_options options = codec_testing::options_of(L3_METHOD_DENSE, 1024, 1024);
  options.model_origin = L3_MODEL_OWN;
  const Bytes file = codec_testing::encode(dots, options);
  ASSERT_EQ(file[12], by_hand::kBitModelFeature);
  subjects.push_back({"dots", file, L3_OK});
  const Bytes model = codec_testing::model_for_screens(type);
  const Bytes of_tokens = codec_testing::encode(dots, codec_testing::options_with(model, 1024, 1024));
  uint64_t dense = 0;
  EXPECT_EQ(l3_count_tiles(of_tokens.data(), of_tokens.size(), L3_TILE_DENSE, &dense, nullptr), L3_OK);
  EXPECT_EQ(dense, 1u);
  subjects.push_back({"dots as tokens", of_tokens, L3_OK});
  for (uint32_t i = 0; i < 4; ++i) {
    by_hand::Parts parts;
    parts.header = by_hand::header(size.width, size.height, type.colour, type.bits, 1024, 1024);
    parts.header[12] = by_hand::kBitModelFeature;
    parts.sections.push_back({L3_SECTION_MODEL, by_hand::any_bit_model(dice, 1, 1, i % 2 == 0 ? 14 : 0, 0).section});
    parts.tiles.push_back({3, 5, {}, dice.bytes(by_hand::pad(size.width * size.height + 256))});
    subjects.push_back({"bits, any words", by_hand::put_together(parts), L3_ERROR_CORRUPT});
  }
  for (uint32_t i = 0; i < 6; ++i) {
    subjects.push_back({"bits, shapes of the area of the tile", any_shapes(dice, size, i == 0), L3_OK});
  }
  compare(subjects, 2, size, type, 1024);
}

TEST(HostileSpeed, IsAtMostTwiceTheTimeOfValidData) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "sanitizers change what takes time";
#endif
  compare_fast({512, 256}, {L3_COLOUR_RGB, 8}, 128);
  compare_fast({512, 256}, {L3_COLOUR_RGB, 7}, 128);
  compare_fast({512, 256}, {L3_COLOUR_GRAY, 8}, 128);
  compare_fast({512, 256}, {L3_COLOUR_GRAY, 16}, 128);
  compare_fast({512, 256}, {L3_COLOUR_GRAY, 13}, 128);
  compare_fast({256, 256}, {L3_COLOUR_RGB_ALPHA, 16}, 128);
  compare_fast({512, 256}, {L3_COLOUR_RGB, 8}, 32);
  compare_fast({1, 8192}, {L3_COLOUR_RGB, 8}, 32);
  compare_fast({33, 1024}, {L3_COLOUR_GRAY, 8}, 64);
  // One tile each: decoding ends with the first tile that is bad.
  compare_dense({128, 128}, L3_COLOUR_RGB, 128, 3);
  compare_dense({128, 128}, L3_COLOUR_GRAY, 128, 3);
  compare_dense({128, 128}, L3_COLOUR_RGB_ALPHA, 128, 4);
  compare_bits({700, 700});
  compare_bits({300, 300});
  compare_follow({256, 256}, L3_COLOUR_GRAY, by_hand::kMatch);
  compare_follow({256, 256}, L3_COLOUR_GRAY, by_hand::kMatch | by_hand::kLiteral);
  compare_follow({160, 160}, L3_COLOUR_RGB_ALPHA, by_hand::kMatch);
}

}  // namespace
