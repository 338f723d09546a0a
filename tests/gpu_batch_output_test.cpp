// Tests of the batch decoder's output: every type in both layouts, mirrored or not, palettes as indices and as colours,
// and nothing written outside the pixels.
#include "gpu_wishes.h"

namespace {

using namespace gpu_testing;
using codec_testing::encode;
using codec_testing::options_of;
using drawing::draw;

class GpuOutput : public Gpu {};
class GpuPalette : public Gpu {};

constexpr uint32_t kTypes[] = {L3_CUDA_U8, L3_CUDA_U16, L3_CUDA_F16, L3_CUDA_BF16, L3_CUDA_F32};
constexpr uint32_t kLayouts[] = {L3_CUDA_HWC, L3_CUDA_CHW};

std::string name_of(const Wish& wish) {
  constexpr const char* kNames[] = {"u8", "u16", "f16", "bf16", "f32"};
  return std::string(kNames[wish.image.type]) + (wish.image.layout == L3_CUDA_CHW ? " chw" : " hwc") +
         ((wish.image.flags & L3_CUDA_FLIP) != 0 ? " mirrored" : "");
}

// A wish for each type that the samples fit, each layout, and both directions.
template <class Change>
void add_all(std::vector<Wish>& wishes, const Wish& like, const Change& change) {
  for (const uint32_t type : kTypes) {
    if (type == L3_CUDA_U8 && like.image.type == L3_CUDA_U16) continue;
    for (const uint32_t layout : kLayouts) {
      for (const uint32_t flags : {0u, uint32_t{L3_CUDA_FLIP}}) {
        Wish wish = like;
        wish.image.type = type;
        wish.image.layout = layout;
        wish.image.flags |= flags;
        change(wish);
        wish.name = like.name + " " + name_of(wish);
        wishes.push_back(std::move(wish));
      }
    }
  }
}

// Tiles of all methods, for 1 to 4 channels of 8 and of more bits.
std::vector<Wish> subjects(uint64_t seed) {
  std::vector<Wish> wishes;
  for (const uint32_t bits : {8u, 12u}) {
    for (const l3_colour colour : {L3_COLOUR_GRAY, L3_COLOUR_GRAY_ALPHA, L3_COLOUR_RGB, L3_COLOUR_RGB_ALPHA}) {
      const Drawing d = drawing::draw_mixed({37, 34}, {colour, bits}, seed);
      for (const l3_method method : {L3_METHOD_FAST, L3_METHOD_DENSE}) {
        if (method == L3_METHOD_DENSE && bits != 8) continue;
        wishes.push_back(wish_for(encode(d, options_of(method, 64, 32, 1))));
        wishes.back().name = d.name();
      }
    }
  }
  return wishes;
}

TEST_F(GpuOutput, EveryTypeLayoutAndDirection) {
  std::vector<Wish> wishes;
  for (const Wish& subject : subjects(1)) add_all(wishes, subject, [](Wish&) {});
  Batch batch(std::move(wishes));
  ASSERT_NO_FATAL_FAILURE(batch.expect_all());
}

// Numbers that differ between channels, at places as odd as their size allows.
TEST_F(GpuOutput, OddPlacesRegionsAndGaps) {
  Dice dice(11);
  for (uint32_t round = 0; round < scale().rounds; ++round) {
    std::vector<Wish> wishes;
    for (const Wish& subject : subjects(2 + round)) {
      add_all(wishes, subject, [&](Wish& wish) {
        if (!dice.chance(4)) any_region(dice, wish);
        any_place(dice, wish);
        any_numbers(dice, wish);
      });
    }
    Batch batch(std::move(wishes), any_arrangement(dice));
    ASSERT_NO_FATAL_FAILURE(batch.expect_all());
  }
}

// Every place within 32 bytes for outputs of a few pixels: vectors of any width are cut at any place.
TEST_F(GpuOutput, EveryAlignment) {
  for (const l3_method method : {L3_METHOD_FAST, L3_METHOD_DENSE}) {
    for (const l3_colour colour : {L3_COLOUR_GRAY, L3_COLOUR_RGB, L3_COLOUR_RGB_ALPHA}) {
      const Bytes file = encode(draw({45, 5}, {colour, 8}, Pattern::natural), options_of(method, 32, 32, 1));
      std::vector<Wish> wishes;
      for (const uint32_t type : kTypes) {
        for (uint32_t i = 0; i < 32; i += type_bytes(type)) {
          for (const uint32_t layout : kLayouts) {
            if (kEmulated && layout != i / type_bytes(type) / 2 % 2) continue;
            Wish wish = wish_for(file, i / type_bytes(type) % 2 == 1 ? uint32_t{L3_CUDA_FLIP} : 0u);
            wish.image.type = type;
            wish.image.layout = layout;
            wish.before = i;
            wish.after = 32;
            wish.row_gap = (i / type_bytes(type) * 7 % 16) * type_bytes(type);
            choose_region(wish, i % 13, 1, 31 - i % 5, 3);
            wish.name = name_of(wish) + " at " + std::to_string(i);
            wishes.push_back(std::move(wish));
          }
        }
      }
      Batch batch(std::move(wishes));
      ASSERT_NO_FATAL_FAILURE(batch.expect_all());
    }
  }
}

// An image of one row that has all samples of so many bits.
Drawing all_samples(uint32_t bits) {
  const uint32_t width = 1u << std::min(bits, 8u), height = (1u << bits) / width;
  Drawing d = drawing::blank({width, height}, {L3_COLOUR_GRAY, bits});
  for (uint32_t i = 0; i < 1u << bits; ++i) d.set_sample(i % width, i / width, 0, i);
  return d;
}

// The tests' own rounding.
TEST(GpuTesting, RoundsToNearestTiesToEven) {
  const auto half = [](float v, uint32_t bits) { EXPECT_EQ(gpu_testing::half_of(v), bits) << v; };
  const auto bfloat = [](float v, uint32_t bits) { EXPECT_EQ(gpu_testing::bfloat_of(v), bits) << v; };
  half(0, 0);
  half(-0.0f, 0x8000);
  half(1, 0x3C00);
  half(-2, 0xC000);
  half(2049, 0x6800);
  half(2051, 0x6802);
  half(65519, 0x7BFF);
  half(65520, 0x7C00);
  half(-1e30f, 0xFC00);
  half(0x1p-14f, 0x0400);
  half(0x1.ff8p-15f, 0x03FF);
  half(0x1.ffap-15f, 0x03FF);
  half(0x1.ffcp-15f, 0x0400);
  half(0x1.ffep-15f, 0x0400);
  half(0x1p-24f, 1);
  half(0x1p-25f, 0);
  half(0x1.8p-24f, 2);
  bfloat(0, 0);
  bfloat(-1, 0xBF80);
  bfloat(257, 0x4380);
  bfloat(259, 0x4382);
  bfloat(0x1.ffp127f, 0x7F80);
  bfloat(0x1.fep127f, 0x7F7F);
  bfloat(0x1p-133f, 1);
  bfloat(0x1p-134f, 0);
  bfloat(0x1.8p-133f, 2);
  bfloat(-INFINITY, 0xFF80);
}

TEST_F(GpuOutput, NumbersAreRoundedOnce) {
  struct Case {
    float scale, bias;
  };
  const Case kCases[] = {
      {1, 0},
      {1 / 255.0f, 0},
      {1 / 255.0f, -0.5f},
      {0.017124753f, -2.1179039f},  // what networks are trained with
      {1.0f / 3, 1.0f / 3},
      {0x1.000002p0f, -1},  // differs where the product is rounded by itself
      {0x1.fffffep-1f, 0x1p-24f},
      {-1, 255},
      {-0.0f, 0.0f},
      {0, -0.0f},
      {0x1p-24f, 0},  // the smallest halves
      {0x1p-25f, 0},
      {0x1.8p-25f, 0x1p-26f},
      {0x1.004p0f, 0x1p-11f},
      {0.5f, 2048},  // ties of halves
      {1, 2048},
      {0.5f, 256},  // ties of bfloats
      {257, 0},     // 65535, which is no half
      {256.9f, 0},
      {1e36f, 0},  // beyond the greatest bfloat, and the greatest float
      {1.3333333e36f, 3e38f},
      {-1e37f, 1},
      {0x1p-149f, 0},  // the smallest floats
      {0x1p-133f, 0x1p-134f},
  };
  std::vector<Wish> wishes;
  for (const uint32_t bits : {8u, 16u}) {
    if (bits == 16 && kEmulated) continue;
    const Bytes file = encode(all_samples(bits));
    for (const Case& numbers : kCases) {
      for (const uint32_t type : {L3_CUDA_F16, L3_CUDA_BF16, L3_CUDA_F32}) {
        wishes.push_back(wish_for(file));
        wishes.back().image.type = type;
        wishes.back().image.scale[0] = numbers.scale;
        wishes.back().image.bias[0] = numbers.bias;
        wishes.back().name = name_of(wishes.back()) + " times " + std::to_string(numbers.scale) + " plus " +
                             std::to_string(numbers.bias);
      }
    }
  }
  Batch batch(std::move(wishes));
  ASSERT_NO_FATAL_FAILURE(batch.expect_all());
}

TEST_F(GpuOutput, AllSamplesOf16Bits) {
  std::vector<Wish> wishes;
  Wish wish = wish_for(encode(all_samples(16)));
  for (const uint32_t type : kTypes) {
    if (type == L3_CUDA_U8) continue;
    wish.image.type = type;
    wish.image.scale[0] = 1 / 65535.0f;
    wish.image.bias[0] = type == L3_CUDA_F32 ? -0.5f : 0;
    wish.name = name_of(wish);
    wishes.push_back(wish);
  }
  Batch batch(std::move(wishes));
  ASSERT_NO_FATAL_FAILURE(batch.expect_all());
}

// ---- palettes

// Indices beyond the palette, entries that a rule has, transparency for all, for some and for no entries.
std::vector<Wish> palettes(uint32_t flags) {
  std::vector<Wish> wishes;
  for (const uint32_t bits : {1u, 2u, 4u, 8u}) {
    for (const size_t transparent : {size_t{0}, size_t{1}, size_t{1} << bits}) {
      for (const l3_method method : {L3_METHOD_FAST, L3_METHOD_DENSE}) {
        if (method == L3_METHOD_DENSE && bits != 8) continue;
        Drawing d = draw({67, 20}, {L3_COLOUR_PALETTE, bits}, Pattern::natural);
        if (bits == 8) d.palette.resize(3 * size_t{150});
        if (bits == 8 && method == L3_METHOD_DENSE) d.palette = drawing::class_colours(200);
        if (bits == 4) d.palette.resize(3 * size_t{5});
        if (bits == 2) std::fill(d.palette.begin() + 3, d.palette.end(), uint8_t{77});
        d.transparency = Dice(bits).bytes(std::min(transparent, d.palette.size() / 3));
        wishes.push_back(wish_for(encode(d, options_of(method, 32, 32, 1)), flags));
        wishes.back().name = d.name() + " with " + std::to_string(d.transparency.size()) + " transparent";
        const uint32_t channels = (flags & L3_CUDA_COLOURS) == 0 ? 1 : transparent == 0 ? 3 : 4;
        EXPECT_EQ(wishes.back().image.channels, channels);
      }
    }
  }
  return wishes;
}

TEST_F(GpuPalette, IndicesAndColours) {
  Dice dice(12);
  for (const uint32_t flags : {0u, uint32_t{L3_CUDA_COLOURS}}) {
    std::vector<Wish> wishes;
    for (const Wish& palette : palettes(flags)) {
      add_all(wishes, palette, [&](Wish& wish) {
        if (dice.chance(2)) any_region(dice, wish);
        any_place(dice, wish);
        any_numbers(dice, wish);
      });
    }
    Batch batch(std::move(wishes), any_arrangement(dice));
    ASSERT_NO_FATAL_FAILURE(batch.expect_all());
  }
}

// Colours are asked for; there is no palette.
TEST_F(GpuPalette, OtherImagesHaveNoColours) {
  std::vector<Wish> wishes;
  for (const Wish& subject : subjects(5)) {
    wishes.push_back(subject);
    wishes.back().image.flags |= L3_CUDA_COLOURS;
  }
  Batch batch(std::move(wishes));
  ASSERT_NO_FATAL_FAILURE(batch.expect_all());
}

// Regions that begin inside of tiles, and are large enough for what is written by whole rows of words.
TEST_F(GpuOutput, RegionsThatBeginInsideOfTiles) {
  std::vector<Wish> wishes;
  for (const l3_colour colour : {L3_COLOUR_GRAY, L3_COLOUR_GRAY_ALPHA, L3_COLOUR_RGB, L3_COLOUR_RGB_ALPHA}) {
    const Bytes file = codec_testing::encode(drawing::draw({260, 150}, {colour, 8}, Pattern::natural));
    for (const uint32_t x : {0u, 4u, 33u}) {
      for (const uint32_t y : {0u, 8u, 21u, 129u}) {
        wishes.push_back(wish_for(file));
        l3_cuda_image& image = wishes.back().image;
        image.x = x;
        image.y = y;
        image.region_width = 260 - x;
        image.region_height = 150 - y;
      }
    }
  }
  Batch batch(std::move(wishes));
  ASSERT_NO_FATAL_FAILURE(batch.expect_all());
}

}  // namespace
