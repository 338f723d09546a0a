// Tests of images of which some channels are not coded (section 4 of the spec, channel map).
#include "any_channel_map.h"
#include "any_token_tile.h"
#include "codec_testing.h"
#include "screen_files.h"

namespace {

using namespace codec_testing;
using drawing::Dice;
using drawing::Size;
using drawing::Type;

bool has_map(const Bytes& file) {
  const uint8_t* bytes = nullptr;
  size_t size = 0;
  EXPECT_EQ(l3_find_section(file.data(), file.size(), L3_SECTION_CHANNEL_MAP, &bytes, &size, nullptr), L3_OK);
  EXPECT_EQ(bytes != nullptr, (info_of(file).required_features & by_hand::kChannelMapFeature) != 0);
  return bytes != nullptr;
}

// A drawing in which channels equal others, or have one sample.
Drawing drawn_with(Dice& dice, const Size& size, const Type& type, const by_hand::AnyMap& map,
                   drawing::Pattern pattern = drawing::Pattern::natural) {
  Drawing d = drawing::draw(size, type, pattern, dice.next());
  uint32_t first[4] = {};
  for (uint32_t c = d.channels(); c > 0; --c) {
    if (map.source[c - 1] != by_hand::kOneSample) first[map.source[c - 1]] = c - 1;
  }
  for (uint32_t y = 0; y < size.height; ++y) {
    for (uint32_t x = 0; x < size.width; ++x) {
      for (uint32_t c = 0; c < d.channels(); ++c) {
        const bool is_one = map.source[c] == by_hand::kOneSample;
        d.set_sample(x, y, c, is_one ? map.sample[c] : d.sample(x, y, first[map.source[c]]));
      }
    }
  }
  return d;
}

// All types, by encoders of several efforts, with regions.
TEST(ChannelMap, RoundTrips) {
  Dice dice(120);
  uint32_t mapped = 0;
  for (uint32_t round = 0; round < 2; ++round) {
    for (const Type& type : drawing::all_types()) {
      const uint32_t channels = type.colour == L3_COLOUR_PALETTE ? 1 : static_cast<uint32_t>(type.colour) + 1;
      if (channels == 1) continue;
      const by_hand::AnyMap map(dice, channels, 1 + dice.roll(channels - 1), type.bits);
      const Size size{128 + dice.roll(60), 128 + dice.roll(60)};
      const Drawing d = drawn_with(dice, size, type, map, dice.pick(drawing::kPatterns));
      l3_encode_options options = options_of(dice.chance(2) ? L3_METHOD_AUTO : L3_METHOD_DENSE);
      options.effort = 1 + dice.roll(4);
      const Bytes file = encode(d, options);
      SCOPED_TRACE(d.name());
      EXPECT_EQ(decode(file), d.pixels);
      expect_crop(dice, file, d.pixels, size);
      mapped += has_map(file);
    }
  }
  EXPECT_GT(mapped, 50u);
}

TEST(ChannelMap, WhereThereIsNone) {
  Dice dice(121);
  const Type rgb{L3_COLOUR_RGB, 8};
  const by_hand::AnyMap gray(dice, 3, 1, 8);
  // Small images, the method fast, models that the caller supplies, and images that need all of their channels.
  EXPECT_FALSE(has_map(encode(drawn_with(dice, {127, 127}, rgb, gray), options_of(L3_METHOD_DENSE))));
  const Drawing d = drawn_with(dice, {130, 130}, rgb, gray);
  EXPECT_TRUE(has_map(encode(d, options_of(L3_METHOD_DENSE))));
  EXPECT_FALSE(has_map(encode(d, options_of(L3_METHOD_FAST))));
  const Bytes model = by_hand::any_model(dice, 3);
  l3_encode_options options = options_of(L3_METHOD_DENSE);
  options.model = model.data();
  options.model_size = model.size();
  EXPECT_FALSE(has_map(encode(d, options)));
  // One pixel differs.
  Drawing other = d;
  for (uint32_t c = 0; c < 3; ++c) other.set_sample(129, 129, c, 40 + c);
  const Bytes file = encode(other, options_of(L3_METHOD_DENSE));
  EXPECT_FALSE(has_map(file));
  EXPECT_EQ(decode(file), other.pixels);
}

// An image of one colour has constant tiles and no map; a palette has one channel.
TEST(ChannelMap, OneColour) {
  Drawing d = drawing::blank({200, 100}, {L3_COLOUR_RGB_ALPHA, 8});
  std::fill(d.pixels.begin(), d.pixels.end(), uint8_t{9});
  EXPECT_FALSE(has_map(encode(d, options_of(L3_METHOD_AUTO))));
  EXPECT_EQ(decode(encode(d, options_of(L3_METHOD_AUTO))), d.pixels);
}

// Opaque images of few colours have a list of them. Small tiles have few lanes.
TEST(ChannelMap, FewColours) {
  const Size size{160, 144};
  Dice dice(121);
  uint32_t lists = 0;
  for (const uint32_t colours : {3u, 30u, 400u}) {
    Drawing d = drawing::blank(size, {L3_COLOUR_RGB_ALPHA, 8});
    for (uint32_t y = 0; y < size.height; ++y) {
      for (uint32_t x = 0; x < size.width; ++x) {
        const bool repeats = x % 8 != 0 && y % 8 != 0;
        const uint32_t colour = dice.roll(colours) * 0x9E3779;
        for (uint32_t c = 0; c < 3; ++c)
          d.set_sample(x, y, c, repeats ? d.sample(x - 1, y, c) : colour >> (8 * c) & 255);
        d.set_sample(x, y, 3, 255);
      }
    }
    for (const uint32_t tile : {0u, 32u}) {
      const Bytes file = expect_round_trip(d, options_of(L3_METHOD_DENSE, tile, tile, 5));
      ASSERT_FALSE(HasFailure()) << colours << " colours, tiles of " << tile;
      EXPECT_TRUE(has_map(file));
      lists += (flags_of(file) & by_hand::kColours) != 0;
    }
  }
  EXPECT_GE(lists, 4u);
}

// Many colours in small blocks: one lane decodes wide rows of values of more than 8 bits.
TEST(ChannelMap, ManyColoursInFewLanes) {
  uint32_t lists = 0;
  for (const l3_colour colour : {L3_COLOUR_GRAY_ALPHA, L3_COLOUR_RGB, L3_COLOUR_RGB_ALPHA}) {
    for (const bool opaque : {false, true}) {
      Drawing d = drawing::blank({1000, 18}, {colour, 8});
      const uint32_t channels = d.channels();
      for (uint32_t y = 0; y < 18; ++y) {
        for (uint32_t x = 0; x < 1000; ++x) {
          const uint32_t block = y / 6 * 167 + x / 6, hash = block % 400 * 0x9E3779B1u;
          for (uint32_t c = 0; c < channels; ++c) {
            d.set_sample(x, y, c, opaque && c + 1 == channels ? 255 : hash >> (8 * c) & 255);
          }
        }
      }
      const Bytes file = expect_round_trip(d, options_of(L3_METHOD_DENSE, 1024, 32, 5));
      ASSERT_FALSE(HasFailure()) << drawing::name_of(colour) << ' ' << opaque;
      lists += (flags_of(file) & by_hand::kColours) != 0;
    }
  }
  EXPECT_GE(lists, 1u);
}

// The transparent colour of an image has all channels, and so do what calls say of it.
TEST(ChannelMap, SectionsAndInfo) {
  Dice dice(122);
  Drawing d = drawn_with(dice, {140, 130}, {L3_COLOUR_RGB, 8}, by_hand::AnyMap(dice, 3, 1, 8));
  d.transparency = {1, 0, 2, 0, 3, 0};
  const Bytes file = encode(d, options_of(L3_METHOD_DENSE));
  ASSERT_TRUE(has_map(file));
  const l3_info info = info_of(file);
  EXPECT_EQ(info.channels, 3u);
  EXPECT_EQ(info.colour, uint32_t{L3_COLOUR_RGB});
  EXPECT_EQ(info.image_bytes, d.pixels.size());
  EXPECT_EQ(l3_pixel_bytes(&info, file.data(), file.size(), nullptr), 3u);
  const uint8_t* key = nullptr;
  size_t size = 0;
  EXPECT_EQ(l3_find_section(file.data(), file.size(), L3_SECTION_TRANSPARENCY, &key, &size, nullptr), L3_OK);
  EXPECT_EQ(Bytes(key, key + size), d.transparency);
  l3_range ranges[16];
  size_t count = 0;
  EXPECT_EQ(
      l3_find_payloads(file.data(), info.payload_start, file.size(), 0, 0, 10, 10, 0, ranges, 16, &count, nullptr),
      L3_OK);
  EXPECT_EQ(count, 1u);
  l3_sizes sizes = l3_sizes_init();
  EXPECT_EQ(l3_measure(file.data(), file.size(), nullptr, &sizes, nullptr), L3_OK);
}

// Files of all methods: what the coded channels are without the map, all channels are with it.
TEST(ChannelMap, AnyFiles) {
  Dice dice(123);
  uint32_t count = 0;
  for (uint32_t round = 0; round < 120; ++round) {
    const uint32_t bits = dice.chance(2) ? 8 : 1 + dice.roll(16);
    const Type type{static_cast<l3_colour>(dice.roll(3)), bits};
    const Size size{1 + dice.roll(90), 1 + dice.roll(70)};
    by_hand::Parts parts;
    if (dice.chance(2)) {
      const uint32_t channels = static_cast<uint32_t>(type.colour) + 1;
      const by_hand::TokenModel model = by_hand::any_token_model(dice, channels, bits, dice.chance(2));
      parts = by_hand::any_token_file(dice, size, type, model, 64, 32).parts;
    } else {
      parts = by_hand::any_parts(dice, size, type, 64, 64);
    }
    const Bytes without = by_hand::put_together(parts);
    const auto map = by_hand::add_channel_map(dice, parts);
    if (!map) continue;
    const Bytes with = by_hand::put_together(parts);
    const uint32_t coded = info_of(without).channels, channels = info_of(with).channels, sample = bits > 8 ? 2 : 1;
    const Bytes from = decode(without);
    Bytes wanted;
    for (size_t pixel = 0; pixel < from.size(); pixel += size_t{coded} * sample) {
      for (uint32_t c = 0; c < channels; ++c) {
        uint16_t one = static_cast<uint16_t>(map->sample[c]);
        const uint8_t small = static_cast<uint8_t>(one);
        const bool is_one = map->source[c] == by_hand::kOneSample;
        const uint8_t* const bytes = !is_one       ? &from[pixel + map->source[c] * sample]
                                     : sample == 1 ? &small
                                                   : reinterpret_cast<const uint8_t*>(&one);
        wanted.insert(wanted.end(), bytes, bytes + sample);
      }
    }
    ++count;
    EXPECT_EQ(decode(with), wanted) << type.colour << " bits " << bits;
    expect_crop(dice, with, wanted, size);
  }
  EXPECT_GT(count, 60u);
}

}  // namespace
