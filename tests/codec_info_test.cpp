// Tests of libl3: image info, digests, versions and texts, and the C++ interface.
#include "by_hand.h"
#include "codec_testing.h"
#include "l3/l3.hpp"

namespace {

using namespace codec_testing;
using drawing::draw;
using drawing::Pattern;

const Drawing& rgb() {
  static const Drawing d = draw({50, 40}, {L3_COLOUR_RGB, 8}, Pattern::natural);
  return d;
}
const Bytes& rgb_file() {
  static const Bytes file = encode(rgb(), tiles_of(32, 32));
  return file;
}

TEST(Info, SaysWhatTheHeaderSays) {
  for (const drawing::Type& type : drawing::common_types()) {
    Drawing d = drawing::with_sections(draw({70, 33}, type, Pattern::natural));
    if (d.alpha == L3_ALPHA_STRAIGHT && d.bits == 8) d.alpha = L3_ALPHA_PREMULTIPLIED;
    const Bytes file = encode(d, tiles_of(64, 32));
    const l3_info info = info_of(file);
    EXPECT_EQ(info.version, 1);
    EXPECT_EQ(info.required_features + info.optional_features, 0);
    EXPECT_EQ(info.width, 70);
    EXPECT_EQ(info.height, 33);
    EXPECT_EQ(info.frames, 1);
    EXPECT_EQ(info.channels, d.channels());
    EXPECT_EQ(info.sample_type, d.bits > 8 ? L3_SAMPLE_U16 : L3_SAMPLE_U8);
    EXPECT_EQ(info.bits, d.bits);
    EXPECT_EQ(info.colour, d.colour);
    EXPECT_EQ(info.alpha, d.alpha);
    EXPECT_EQ(info.tile_width, 64);
    EXPECT_EQ(info.tile_height, 32);
    EXPECT_EQ(info.tile_count, 4);
    EXPECT_EQ(info.image_bytes, d.pixels.size());
    const by_hand::Layout layout(by_hand::take_apart(file));
    EXPECT_EQ(info.head_bytes, layout.head_bytes);
    EXPECT_EQ(info.payload_start, layout.payload_start);
  }
}

TEST(Check, WantsTheWholeFileAndReadsNoPayload) {
  Bytes file = rgb_file();
  EXPECT_EQ(l3_check(file.data(), file.size(), nullptr, nullptr), L3_OK);
  EXPECT_EQ(l3_check(file.data(), file.size() - 1, nullptr, nullptr), L3_ERROR_TRUNCATED);
  EXPECT_EQ(l3_check(file.data(), info_of(file).head_bytes, nullptr, nullptr), L3_ERROR_TRUNCATED);
  const l3_limits few = {10, 0, 0};
  EXPECT_EQ(l3_check(file.data(), file.size(), &few, nullptr), L3_ERROR_LIMIT);
  file.back() ^= 1;
  EXPECT_EQ(l3_check(file.data(), file.size(), nullptr, nullptr), L3_OK);
  file[info_of(file).head_bytes] ^= 1;
  EXPECT_EQ(l3_check(file.data(), file.size(), nullptr, nullptr), L3_ERROR_CORRUPT);
}

TEST(CountTiles, TellsTheTilesOfEachMethod) {
  // 2 x 2 tiles: noise, which ends up raw, on the left; one colour at the upper right; a gradient at the lower right.
  std::vector<uint8_t> pixels(64 * 64);
  drawing::Dice dice(5);
  for (size_t i = 0; i < pixels.size(); ++i) {
    const size_t x = i % 64, y = i / 64;
    pixels[i] = x < 32 ? dice.byte() : static_cast<uint8_t>(y < 32 ? 9 : x + y);
  }
  l3_image image = l3_image_init();
  image.width = image.height = 64;
  image.bits = 8;
  image.pixels = pixels.data();
  const auto file = l3::encode(image, tiles_of(32, 32));
  ASSERT_TRUE(file);
  const auto count = [&](uint32_t method) {
    uint64_t tiles = 99;
    EXPECT_EQ(l3_count_tiles(file->data(), file->size(), method, &tiles, nullptr), L3_OK);
    return tiles;
  };
  EXPECT_EQ(count(L3_TILE_CONSTANT), 1);
  EXPECT_EQ(count(L3_TILE_RAW), 2);
  EXPECT_EQ(count(L3_TILE_FAST), 1);
  EXPECT_EQ(count(77), 0);
}

TEST(Info, NeedsNoMoreThanTheHead) {
  const Bytes file = encode(drawing::with_sections(draw({270, 33}, {L3_COLOUR_PALETTE, 8}, Pattern::natural)));
  const size_t head = info_of(file).head_bytes;
  EXPECT_EQ(head, 64 + 6 * 16);
  EXPECT_LE(head, size_t{L3_HEAD_MAX_BYTES});
  for (size_t size = 0; size <= head; ++size) {
    const Exact prefix(file.data(), size);
    l3_info info = l3_info_init();
    l3_error error{};
    const l3_status status = l3_read_info(prefix.data(), size, nullptr, &info, &error);
    EXPECT_EQ(status, size < head ? L3_ERROR_TRUNCATED : L3_OK) << size;
    EXPECT_EQ(error.offset, size < head ? size : 0);
  }
}

TEST(TinyFile, IsReadWhole) {
  const Drawing d = drawing::with_sections(draw({20, 13}, {L3_COLOUR_PALETTE, 4}, Pattern::noise));
  const Bytes file = encode(d, options_of(L3_METHOD_AUTO));
  const l3_info info = info_of(file);
  EXPECT_EQ(file[3], 't');
  EXPECT_EQ(info.head_bytes, 16);
  EXPECT_EQ(info.payload_start, file.size());
  EXPECT_EQ(info.tile_count, 1);
  uint8_t digest[L3_DIGEST_BYTES];
  l3_digest(file.data(), file.size(), digest);
  EXPECT_EQ(Bytes(info.digest, info.digest + 16), Bytes(digest, digest + 16));
  // Who has no room for the digest gets what comes before it.
  l3_info shorter = l3_info_init();
  shorter.struct_size = offsetof(l3_info, digest);
  ASSERT_EQ(l3_read_info(file.data(), file.size(), nullptr, &shorter, nullptr), L3_OK);
  EXPECT_EQ(shorter.image_bytes, info.image_bytes);
  EXPECT_EQ(Bytes(shorter.digest, shorter.digest + 16), Bytes(16));
  const auto opened = l3::File::open(file), for_pixels = l3::File::open_for_pixels(file);
  ASSERT_TRUE(opened && for_pixels);
  EXPECT_EQ(Bytes(opened->info().digest, opened->info().digest + 16), Bytes(digest, digest + 16));
  EXPECT_EQ(for_pixels->info().width, 20u);
  EXPECT_EQ(Bytes(for_pixels->info().digest, for_pixels->info().digest + 16), Bytes(16));
  for (size_t size = 0; size < file.size(); ++size) {
    const Exact prefix(file.data(), size);
    l3_info of_prefix = l3_info_init();
    EXPECT_EQ(l3_read_info(prefix.data(), size, nullptr, &of_prefix, nullptr), L3_ERROR_TRUNCATED) << size;
    Bytes damaged = file;
    damaged[size] ^= 1;
    EXPECT_NE(l3_check(damaged.data(), damaged.size(), nullptr, nullptr), L3_OK) << size;
  }
}

TEST(TinyFile, IsTheSameImageInTheOtherForm) {
  for (const drawing::Type& type : drawing::common_types()) {
    const Drawing d = drawing::with_sections(draw({20, 13}, type, Pattern::natural));
    const Bytes file = encode(d, options_of(L3_METHOD_AUTO));
    EXPECT_EQ(file[3], 't');
    const by_hand::Parts parts = by_hand::take_apart(file);
    const Bytes large = by_hand::put_together(parts);
    EXPECT_EQ(info_of(large).head_bytes, 64 + 16 * parts.sections.size() + parts.name.size());
    EXPECT_EQ(codec_testing::decode(large), d.pixels);
    const std::optional<Bytes> tiny = by_hand::put_together_tiny(parts);
    ASSERT_TRUE(tiny);
    EXPECT_LE(file.size(), tiny->size());  // whose payload ends at a unit
    EXPECT_EQ(codec_testing::decode(*tiny), d.pixels);
    EXPECT_EQ(l3_verify(tiny->data(), tiny->size(), nullptr, nullptr), L3_OK);
  }
}

TEST(Digest, NamesTheContents) {
  EXPECT_EQ(encode(rgb(), tiles_of(32, 32)), rgb_file());
  const auto digest = [](const Bytes& file) {
    const l3_info info = info_of(file);
    return Bytes(info.digest, info.digest + 16);
  };
  // As section 9 says, by other code.
  Bytes start(rgb_file().begin(), rgb_file().begin() + static_cast<ptrdiff_t>(info_of(rgb_file()).payload_start));
  std::memset(&start[44], 0, 20);
  l3::Sha256 sha;
  sha.update(start.data(), start.size());
  uint8_t wanted[32];
  sha.finish(wanted);
  EXPECT_EQ(digest(rgb_file()), Bytes(wanted, wanted + 16));

  Drawing other = rgb();
  other.set_sample(49, 39, 2, other.sample(49, 39, 2) ^ 1);
  EXPECT_NE(digest(encode(other, tiles_of(32, 32))), digest(rgb_file()));
  Drawing more = rgb();
  more.metadata = drawing::record("tEXt", 0, {1});
  EXPECT_NE(digest(encode(more, tiles_of(32, 32))), digest(rgb_file()));
}

TEST(Version, AsNumberAndText) {
  EXPECT_EQ(l3_version(), 10000 * L3_VERSION_MAJOR + 100 * L3_VERSION_MINOR + L3_VERSION_PATCH);
  EXPECT_STREQ(l3_version_text(), (std::to_string(L3_VERSION_MAJOR) + "." + std::to_string(L3_VERSION_MINOR) + "." +
                                   std::to_string(L3_VERSION_PATCH))
                                      .c_str());
}

TEST(Status, HasATextWhateverItIs) {
  for (int status = 0; status <= 15; ++status) {
    const char* text = l3_status_text(static_cast<l3_status>(status));
    ASSERT_NE(text, nullptr);
    EXPECT_GT(std::strlen(text), 0u);
    EXPECT_EQ(std::strcmp(text, "unknown status") == 0, status > L3_ERROR_FILE);
  }
  EXPECT_STREQ(l3_status_text(L3_ERROR_TRUNCATED), "the file is truncated");
}

TEST(Texts, NamesOfMethods) {
  EXPECT_STREQ(l3_tile_method_text(L3_TILE_CONSTANT), "constant");
  EXPECT_STREQ(l3_tile_method_text(L3_TILE_DENSE), "dense");
  for (const uint32_t none : {4u, 255u, 256u, 259u, UINT32_MAX}) EXPECT_EQ(l3_tile_method_text(none), nullptr);
}

// ---- the C++ face

TEST(Face, EncodesAndDecodes) {
  const auto file = l3::encode(rgb().image());
  ASSERT_TRUE(file);
  const auto pixels = l3::decode(*file);
  ASSERT_TRUE(pixels);
  EXPECT_EQ(pixels->bytes, rgb().pixels);
  EXPECT_EQ(pixels->info.width, 50);
  const auto corner = l3::decode_region(*file, 49, 39, 1, 1);
  ASSERT_TRUE(corner);
  EXPECT_EQ(corner->bytes, Bytes(rgb().pixels.end() - 3, rgb().pixels.end()));
  Bytes out(6000);
  EXPECT_EQ(l3::decode_into(*file, out), L3_OK);
  EXPECT_EQ(out, rgb().pixels);
}

TEST(Face, GivesErrorsAsValues) {
  l3_image image = rgb().image();
  image.bits = 40;
  const auto file = l3::encode(image);
  ASSERT_FALSE(file);
  EXPECT_EQ(l3::message(file.error()), "bits, colour and alpha do not match");
  Bytes damaged = rgb_file();
  damaged.back() ^= 1;
  const auto pixels = l3::decode(damaged);
  ASSERT_FALSE(pixels);
  EXPECT_EQ(pixels.error().status, L3_ERROR_CORRUPT);
  EXPECT_EQ(l3::message(pixels.error()),
            "offset " + std::to_string(pixels.error().offset) + ": the check of a tile does not match (tile 3)");
  EXPECT_EQ(l3::decode_region(rgb_file(), 40, 0, 11, 1).error().status, L3_ERROR_ARGUMENT);
  EXPECT_EQ(l3::decode_region(rgb_file(), 0, 0, 51, 1).error().status, L3_ERROR_ARGUMENT);
  EXPECT_EQ(l3::decode({}).error().status, L3_ERROR_ARGUMENT);
  l3_decode_options options = l3_decode_options_init();
  options.limits.max_output_bytes = 100;
  EXPECT_EQ(l3::decode(rgb_file(), options).error().status, L3_ERROR_LIMIT);
}

}  // namespace
