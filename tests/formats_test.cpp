// Tests of formats/: PNG round trips; hostile bytes of any format only cause an Error.
#include <gtest/gtest.h>
#include <png.h>
#include <zlib.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "formats_damage.h"

namespace {

using namespace formats_drawing;

// PNG files made by hand, chunk by chunk.

void append_u32(Bytes& out, uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) out.push_back(static_cast<uint8_t>(value >> shift));
}

Bytes raw_chunk(const char* type, const Bytes& data) {
  Bytes out;
  append_u32(out, static_cast<uint32_t>(data.size()));
  for (size_t i = 0; i < 4; ++i) out.push_back(static_cast<uint8_t>(type[i]));
  for (const uint8_t byte : data) out.push_back(byte);
  append_u32(out, static_cast<uint32_t>(crc32(0, out.data() + 4, static_cast<uInt>(data.size() + 4))));
  return out;
}

Bytes header(uint32_t width, uint32_t height, uint8_t bits, uint8_t type, Bytes methods = {0, 0, 0}) {
  Bytes out;
  append_u32(out, width);
  append_u32(out, height);
  out.push_back(bits);
  out.push_back(type);
  out.insert(out.end(), methods.begin(), methods.end());
  return raw_chunk("IHDR", out);
}

Bytes deflated(const Bytes& data) {
  uLongf size = compressBound(static_cast<uLong>(data.size()));
  Bytes out(size);
  EXPECT_EQ(compress(out.data(), &size, data.data(), static_cast<uLong>(data.size())), Z_OK);
  out.resize(size);
  return out;
}

Bytes png(std::initializer_list<Bytes> chunks) {
  Bytes out = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};
  for (const Bytes& one : chunks) out.insert(out.end(), one.begin(), one.end());
  return out;
}

const Bytes kEnd = raw_chunk("IEND", {});
// One row of two gray bytes, filter 0.
const Bytes kTwoPixels = raw_chunk("IDAT", deflated({0, 10, 20}));

void fix_crcs(Bytes& file) {
  size_t at = 8;
  while (at + 12 <= file.size()) {
    const size_t length =
        size_t{file[at]} << 24 | size_t{file[at + 1]} << 16 | size_t{file[at + 2]} << 8 | file[at + 3];
    if (length > file.size() - at - 12) return;
    Bytes crc;
    append_u32(crc, static_cast<uint32_t>(crc32(0, file.data() + at + 4, static_cast<uInt>(length + 4))));
    std::copy(crc.begin(), crc.end(), file.begin() + static_cast<std::ptrdiff_t>(at + 8 + length));
    at += 12 + length;
  }
}

// An interlaced PNG as libpng itself writes it.
Bytes interlaced(const Image& image) {
  Bytes out;
  png_structp writer = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(writer);
  png_set_write_fn(
      writer, &out,
      [](png_structp self, png_bytep from, size_t count) {
        Bytes* to = static_cast<Bytes*>(png_get_io_ptr(self));
        to->insert(to->end(), from, from + count);
      },
      [](png_structp) {});
  png_set_check_for_invalid_index(writer, 0);
  const int types[] = {PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB, PNG_COLOR_TYPE_RGB_ALPHA,
                       PNG_COLOR_TYPE_PALETTE};
  png_set_IHDR(writer, info, image.width, image.height, static_cast<int>(image.bits),
               types[static_cast<size_t>(image.colour)], PNG_INTERLACE_ADAM7, 0, 0);
  if (!image.palette.empty()) {
    std::vector<png_color> colours(image.palette.size() / 3);
    std::memcpy(colours.data(), image.palette.data(), image.palette.size());
    png_set_PLTE(writer, info, colours.data(), static_cast<int>(colours.size()));
  }
  png_write_info(writer, info);
  png_set_packing(writer);
  const uint16_t one = 1;
  uint8_t low = 0;
  std::memcpy(&low, &one, 1);
  if (low == 1) png_set_swap(writer);
  Bytes pixels = image.pixels;
  std::vector<png_bytep> rows(image.height);
  for (size_t y = 0; y < rows.size(); ++y) rows[y] = pixels.data() + y * (pixels.size() / rows.size());
  png_write_image(writer, rows.data());
  png_write_end(writer, nullptr);
  png_destroy_write_struct(&writer, &info);
  return out;
}

struct Kind {
  Colour colour;
  uint32_t bits;
};

const Kind kPngKinds[] = {
    {Colour::gray, 1},      {Colour::gray, 2},       {Colour::gray, 4},        {Colour::gray, 8},
    {Colour::gray, 16},     {Colour::gray_alpha, 8}, {Colour::rgb, 8},         {Colour::rgb, 16},
    {Colour::rgb_alpha, 8}, {Colour::palette, 1},    {Colour::gray_alpha, 16}, {Colour::palette, 2},
    {Colour::palette, 4},   {Colour::palette, 8},    {Colour::rgb_alpha, 16},
};

TEST(Png, RoundTripsEveryKindAndSize) {
  for (const Kind kind : kPngKinds) {
    for (const Size size : kSizes) {
      const Image image = drawn(size.width, size.height, kind.bits, kind.colour);
      EXPECT_EQ(difference(image, read_back(written(Format::png, image))), "");
      EXPECT_EQ(difference(image, read_back(interlaced(image))), "");
    }
  }
}

TEST(Png, LevelsGiveTheSameImage) {
  const Image image = drawn(40, 30, 8, Colour::rgb);
  for (int level = -1; level <= 9; ++level) {
    EXPECT_EQ(difference(image, read_back(written(Format::png, image, {level, nullptr}))), "");
  }
  EXPECT_FALSE(formats::write(Format::png, image, {10, nullptr}));
}

TEST(Png, KeepsTransparency) {
  Image gray = drawn(5, 4, 2, Colour::gray);
  gray.transparency = {0, 3};
  Image rgb = drawn(5, 4, 8, Colour::rgb);
  rgb.transparency = {1, 2, 3, 4, 5, 6};  // above 8 bits, and still carried as it is
  Image palette = drawn(5, 4, 4, Colour::palette);
  palette.transparency = {0, 128, 255};
  for (const Image& image : {gray, rgb, palette}) {
    EXPECT_EQ(difference(image, read_back(written(Format::png, image))), "");
  }
}

TEST(Png, KeepsIndicesPastThePalette) {
  Image image = drawn(9, 9, 4, Colour::palette);
  image.palette.resize(6);
  EXPECT_EQ(difference(image, read_back(written(Format::png, image))), "");
  EXPECT_EQ(difference(image, read_back(interlaced(image))), "");
}

// Contents that libpng would reject, rewrite or warn about, were it shown them.
std::vector<Chunk> odd_chunks() {
  std::vector<Chunk> chunks;
  const char* before[] = {"gAMA", "cHRM", "sRGB", "iCCP", "cICP", "sBIT", "eXIf", "prVt", "teXt"};
  const char* between[] = {"bKGD", "hIST", "pHYs", "sPLT", "oFFs", "pCAL", "sCAL", "tIME"};
  const char* after[] = {"tEXt", "zTXt", "iTXt", "tEXt", "tIME", "zzZz"};
  for (const char* type : before) chunks.push_back(chunk(type, 0, bytes(std::string(type) + " nonsense")));
  for (const char* type : between) chunks.push_back(chunk(type, 1, bytes(std::string(type) + " \x01\xFF")));
  for (const char* type : after) chunks.push_back(chunk(type, 2, {}));
  return chunks;
}

void expect_same_chunks(const std::vector<Chunk>& a, const std::vector<Chunk>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].type, b[i].type);
    EXPECT_EQ(a[i].place, b[i].place) << std::string(a[i].type.data(), 4);
    EXPECT_EQ(a[i].data, b[i].data);
  }
}

TEST(Png, KeepsAncillaryChunksWithOrderAndPlace) {
  Image image = drawn(4, 4, 8, Colour::palette);
  image.chunks = odd_chunks();
  image.transparency = {9};
  const Image again = read_back(written(Format::png, image));
  EXPECT_EQ(difference(image, again), "");
  expect_same_chunks(image.chunks, again.chunks);
}

TEST(Png, KeepsASuggestedPalette) {
  Image image = drawn(4, 4, 8, Colour::rgb);
  image.transparency = {0, 1, 0, 2, 0, 3};
  image.chunks = {chunk("gAMA", 0, {1, 2, 3}), chunk("PLTE", 1, {1, 2, 3, 4, 5, 6}), chunk("hIST", 1, {0, 1, 0, 2})};
  const Image again = read_back(written(Format::png, image));
  EXPECT_EQ(difference(image, again), "");
  expect_same_chunks(image.chunks, again.chunks);
}

TEST(Png, CarriesATransparencyWithoutEffectAsAChunk) {
  const Bytes stray = raw_chunk("tRNS", {1, 2, 3});
  std::vector<std::string> notices;
  const Image image = read_back(png({header(2, 1, 8, 0), stray, kTwoPixels, kEnd}), {.notices = &notices});
  EXPECT_TRUE(image.transparency.empty());
  ASSERT_EQ(image.chunks.size(), 1U);
  EXPECT_EQ(notices.size(), 1U);
  EXPECT_EQ(difference(image, read_back(written(Format::png, image))), "");
}

TEST(Png, LeavesOutAnimationFramesByName) {
  const Bytes frame = raw_chunk("fcTL", Bytes(26));
  const Bytes data = raw_chunk("fdAT", Bytes(8));
  std::vector<std::string> notices;
  const Image image = read_back(
      png({header(2, 1, 8, 0), raw_chunk("acTL", Bytes(8)), frame, kTwoPixels, frame, data, frame, data, kEnd}),
      {.notices = &notices});
  EXPECT_TRUE(image.chunks.empty());
  EXPECT_EQ(image.pixels, (Bytes{10, 20}));
  ASSERT_EQ(notices.size(), 1U);
  EXPECT_EQ(notices[0], "animated PNG: only the default image is read, 2 frames are left out");
}

TEST(Png, LeavesOutWhatFollowsTheEnds) {
  std::vector<std::string> notices;
  Bytes file = png({header(2, 1, 8, 0), kTwoPixels, kEnd});
  file.push_back('x');
  EXPECT_EQ(read_back(file, {.notices = &notices}).pixels, (Bytes{10, 20}));
  ASSERT_EQ(notices.size(), 1U);
  EXPECT_REASON(notices[0], "1 bytes after IEND");
  Bytes padded = deflated({0, 10, 20});
  padded.push_back(0);
  const Bytes excess = png({header(2, 1, 8, 0), raw_chunk("IDAT", deflated({0, 10, 20, 30})), kEnd});
  const Bytes two_streams = png({header(2, 1, 8, 0), kTwoPixels, kTwoPixels, kEnd});
  for (const Bytes& odd : {png({header(2, 1, 8, 0), raw_chunk("IDAT", padded), kEnd}), excess, two_streams}) {
    notices.clear();
    EXPECT_EQ(read_back(odd, {.notices = &notices}).pixels, (Bytes{10, 20}));
    ASSERT_EQ(notices.size(), 1U);
    EXPECT_REASON(notices[0], "data after the last pixel in IDAT");
  }
}

// By hand, because a mistake that reader and writer share would hide from every round trip.
TEST(Png, ReadsSamplesAsTheyStand) {
  const auto pixels = [](uint8_t bits, const Bytes& row) {
    return read_back(png({header(2, 1, bits, 0), raw_chunk("IDAT", deflated(row)), kEnd})).pixels;
  };
  EXPECT_EQ(pixels(1, {0, 0x40}), (Bytes{0, 1}));
  EXPECT_EQ(pixels(2, {0, 0x90}), (Bytes{2, 1}));
  EXPECT_EQ(pixels(4, {0, 0x3C}), (Bytes{3, 12}));
  EXPECT_EQ(pixels(8, {0, 200, 7}), (Bytes{200, 7}));
  const Bytes wide = pixels(16, {0, 0x12, 0x34, 0xAB, 0xCD});
  const uint16_t samples[] = {0x1234, 0xABCD};
  ASSERT_EQ(wide.size(), sizeof samples);
  EXPECT_EQ(std::memcmp(wide.data(), samples, sizeof samples), 0);
}

// IDATs of one byte, and empty ones: no false notice, and the sum at the end is still looked at.
TEST(Png, ReadsAPixelStreamInShreds) {
  const auto shreds = [](const Bytes& stream) {
    Bytes file = png({header(2, 1, 8, 0)});
    const auto add = [&](const Bytes& chunk) { file.insert(file.end(), chunk.begin(), chunk.end()); };
    for (const uint8_t byte : stream) {
      add(raw_chunk("IDAT", {byte}));
      add(raw_chunk("IDAT", {}));
    }
    add(kEnd);
    return file;
  };
  Bytes stream = deflated({0, 10, 20});
  std::vector<std::string> notices;
  EXPECT_EQ(read_back(shreds(stream), {.notices = &notices}).pixels, (Bytes{10, 20}));
  EXPECT_TRUE(notices.empty());
  stream.back() ^= 1;
  EXPECT_REASON(refusal(shreds(stream)), "incorrect data check");
}

TEST(Png, RefusesWhatIsNotAPng) {
  const Bytes head = header(2, 1, 8, 0);
  const Bytes palette_head = header(2, 1, 1, 3);
  const Bytes colours = raw_chunk("PLTE", Bytes(6));
  struct Case {
    Bytes file;
    const char* reason;
  };
  Bytes bad_sum = deflated({0, 10, 20});
  bad_sum.back() ^= 1;
  Bytes cut = deflated({0, 10, 20});
  cut.resize(cut.size() - 4);
  Bytes bad_transparency_crc = raw_chunk("tRNS", {0, 1});
  bad_transparency_crc.back() ^= 1;
  const Case cases[] = {
      {png({}), "before IEND"},
      {png({kTwoPixels, kEnd}), "first chunk is not IHDR"},
      {png({head, head, kTwoPixels, kEnd}), "second IHDR"},
      {png({head, kEnd}), "no IDAT"},
      {png({head, kTwoPixels}), "before IEND"},
      {png({head, kTwoPixels, raw_chunk("IEND", {0})}), "IEND is not empty"},
      {png({head, kTwoPixels, raw_chunk("tEXt", {}), kTwoPixels, kEnd}), "not consecutive"},
      {png({head, raw_chunk("CgBI", {}), kTwoPixels, kEnd}), "unknown critical chunk CgBI"},
      {png({head, bad_transparency_crc, kTwoPixels, kEnd}), "CRC of chunk tRNS"},
      {png({head, raw_chunk("a b1", {}), kTwoPixels, kEnd}), "four letters"},
      {png({head, raw_chunk("PLTE", Bytes(3)), kTwoPixels, kEnd}), "PLTE in a gray"},
      {png({palette_head, kTwoPixels, kEnd}), "no PLTE"},
      {png({palette_head, colours, colours, kTwoPixels, kEnd}), "second PLTE"},
      {png({palette_head, raw_chunk("PLTE", Bytes(4)), kTwoPixels, kEnd}), "PLTE of 4 bytes"},
      {png({palette_head, raw_chunk("PLTE", {}), kTwoPixels, kEnd}), "PLTE of 0 bytes"},
      {png({palette_head, raw_chunk("PLTE", Bytes(9)), kTwoPixels, kEnd}), "too many for indices of 1 bit"},
      {png({head, raw_chunk("tRNS", {0, 1}), raw_chunk("tRNS", {0, 1}), kTwoPixels, kEnd}), "second tRNS"},
      {png({raw_chunk("IHDR", Bytes(12)), kTwoPixels, kEnd}), "13 bytes"},
      {png({header(0, 1, 8, 0), kTwoPixels, kEnd}), "is 0"},
      {png({header(0x80000000, 1, 8, 0), kTwoPixels, kEnd}), "2^31"},
      {png({header(1, 1, 3, 0), kTwoPixels, kEnd}), "bit depth of 3"},
      {png({header(1, 1, 8, 5), kTwoPixels, kEnd}), "colour type 5"},
      {png({header(1, 1, 8, 0, {1, 0, 0}), kTwoPixels, kEnd}), "compression method"},
      {png({header(1, 1, 8, 0, {0, 1, 0}), kTwoPixels, kEnd}), "filter method"},
      {png({header(1, 1, 8, 0, {0, 0, 2}), kTwoPixels, kEnd}), "interlace method"},
      {png({header(2, 2, 8, 0), kTwoPixels, kEnd}), "pixel data"},
      {png({head, raw_chunk("IDAT", deflated({9, 10, 20})), kEnd}), "pixel data"},
      {png({head, raw_chunk("IDAT", bad_sum), kEnd}), "pixel data"},
      {png({head, raw_chunk("IDAT", cut), kEnd}), "pixel data"},
      {png({head, raw_chunk("IDAT", {}), kEnd}), "pixel data"},
  };
  for (const Case& one : cases) EXPECT_REASON(refusal(one.file), one.reason);
}

TEST(Png, NamesTheOffset) {
  Bytes bad_crc = raw_chunk("tRNS", bytes("k"));
  bad_crc.back() ^= 1;
  const auto image = formats::read(png({header(2, 1, 8, 0), bad_crc, kTwoPixels, kEnd}));
  ASSERT_FALSE(image);
  EXPECT_EQ(image.error().offset, 8U + 25U);
}

TEST(Png, TellsOfItselfWithoutPixels) {
  // The pixels' stream is none, which only their reader can see.
  const Bytes palette = raw_chunk("PLTE", Bytes(6)), text = raw_chunk("tEXt", {0x6B, 0, 0x76});
  const Bytes file = png({header(2, 1, 8, 3), palette, raw_chunk("IDAT", bytes("no stream")), text, kEnd});
  formats::ReadOptions options;
  EXPECT_FALSE(formats::read(file, options));
  options.with_pixels = false;
  const auto image = formats::read(file, options);
  ASSERT_TRUE(image);
  EXPECT_EQ(image->width, 2U);
  EXPECT_EQ(image->palette.size(), 6U);
  EXPECT_EQ(image->chunks.size(), 1U);
  EXPECT_TRUE(image->pixels.empty());
}

TEST(Png, ChecksLimitsBeforeAllocating) {
  EXPECT_REASON(refusal(png({header(0x7FFFFFFF, 0x7FFFFFFF, 16, 6), kTwoPixels, kEnd})), "limit");
  const Bytes large = png({header(1U << 14, 1U << 14, 8, 0), kTwoPixels, kEnd});
  EXPECT_REASON(refusal(large), "too short for the size of the image");
  EXPECT_REASON(refusal(large, {.max_pixels = (1U << 28) - 1}), "more than the limit");
  EXPECT_REASON(refusal(large, {.max_bytes = (1U << 28) - 1}), "more than the limit");
  // Nothing but the file's length stands against this one.
  const uint64_t all = UINT64_MAX;
  const Bytes lying = png({header(0x7FFFFFFF, 0x7FFFFFFF, 16, 6), kTwoPixels, kEnd});
  EXPECT_FALSE(formats::read(lying, {.max_pixels = all, .max_bytes = all}));
}

TEST(Png, RefusesToWriteWhatItCannotHold) {
  EXPECT_REASON(write_refusal(Format::png, drawn(2, 2, 12, Colour::gray)), "12 bits: write .pam");
  EXPECT_REASON(write_refusal(Format::png, drawn(2, 2, 4, Colour::rgb)), "4 bits");
  EXPECT_REASON(write_refusal(Format::png, drawn(2, 2, 3, Colour::palette)), "3 bits");
  Image image = drawn(2, 2, 8, Colour::gray);
  image.chunks = {chunk("IDAT", 0, {})};
  EXPECT_REASON(write_refusal(Format::png, image), "critical");
  image.chunks = {chunk("fcTL", 0, {})};
  EXPECT_REASON(write_refusal(Format::png, image), "animations");
  image.chunks = {chunk("PLTE", 1, {1, 2, 3})};
  EXPECT_REASON(write_refusal(Format::png, image), "suggested palette");
  image.chunks = {chunk("teXt", 3, {})};
  EXPECT_REASON(write_refusal(Format::png, image), "place");
}

TEST(Write, RefusesWhatIsNoImage) {
  Image image = drawn(3, 3, 4, Colour::palette);
  const auto expect = [](const Image& broken, const char* reason) {
    for (const Format format : {Format::png, Format::pgm, Format::pam})
      EXPECT_REASON(write_refusal(format, broken), reason);
  };
  expect(Image(), "no pixels");
  Image broken = image;
  broken.pixels.pop_back();
  expect(broken, "8 bytes of samples");
  broken = image;
  broken.pixels[4] = 16;
  expect(broken, "sample 16 at pixel (1, 1), channel 0 is greater than 15");
  broken = image;
  broken.palette.pop_back();
  expect(broken, "palette of 47 bytes");
  broken = image;
  broken.transparency = Bytes(17);
  expect(broken, "transparency of 17 bytes");
  broken = image;
  broken.bits = 17;
  expect(broken, "17 bits");
}

// Small files of several kinds, for the tests that damage them.
std::vector<Bytes> small_files() {
  Image palette = drawn(5, 3, 2, Colour::palette);
  palette.transparency = {1, 2};
  palette.chunks = {chunk("gAMA", 0, {0, 0, 1, 2}), chunk("bKGD", 1, {1}), chunk("tEXt", 2, bytes("k\0v"))};
  const Image rgb = drawn(3, 3, 16, Colour::rgb);
  return {written(Format::png, palette),
          written(Format::png, rgb),
          interlaced(drawn(9, 9, 1, Colour::gray)),
          written(Format::pam, rgb),
          written(Format::pbm, drawn(9, 3, 1, Colour::gray)),
          written(Format::ppm, rgb),
          bytes("P1 2 2\n0 1\n1 0\n"),
          bytes("P2 2 2 # c\n15\n0 1 2 15\n")};
}

TEST(Hostile, EveryTruncationIsRefusedOrHarmless) {
  for (const Bytes& file : small_files()) {
    const Image whole = read_back(file);
    for (size_t size = 0; size < file.size(); ++size) {
      const auto image = read_exact(file.data(), size);
      // The plain formats end in white space that nobody misses, or in a number that loses a digit.
      if (file[1] == '1' || file[1] == '2') continue;
      EXPECT_FALSE(image) << "cut to " << size << " of " << file.size();
    }
  }
}

TEST(Png, KeepsAncillaryChunksWithAWrongCrc) {
  Bytes text = raw_chunk("tEXt", bytes("k"));
  text.back() ^= 1;
  std::vector<std::string> notices;
  const Image image = read_back(png({header(2, 1, 8, 0), text, kTwoPixels, kEnd}), {.notices = &notices});
  ASSERT_EQ(image.chunks.size(), 1U);
  EXPECT_EQ(image.chunks[0].data, bytes("k"));
  EXPECT_EQ(notices,
            std::vector<std::string>{"the CRC of chunk tEXt is wrong: the data is kept and gets a correct CRC"});
}

TEST(Png, TellsOfAnOrientation) {
  Bytes exif = bytes("MM");
  for (const int byte : {0, 42, 0, 0, 0, 8, 0, 1, 1, 0x12, 0, 3, 0, 0, 0, 1, 0, 3, 0, 0})
    exif.push_back(static_cast<uint8_t>(byte));
  std::vector<std::string> notices;
  (void)read_back(png({header(2, 1, 8, 0), raw_chunk("eXIf", exif), kTwoPixels, kEnd}), {.notices = &notices});
  EXPECT_EQ(notices, std::vector<std::string>{"EXIF orientation 3 is kept as metadata; the pixels are not rotated"});
}

TEST(Hostile, EveryBitFlipInAPngIsRefusedOrTold) {
  for (const Bytes& file : small_files()) {
    for (size_t bit = 0; bit < 8 * file.size(); ++bit) {
      Bytes flipped = file;
      flipped[bit / 8] = static_cast<uint8_t>(flipped[bit / 8] ^ (1U << bit % 8));
      const auto image = read_exact(flipped.data(), flipped.size());
      if (!image) continue;
      if (file[0] == 0x89) {
        std::vector<std::string> notices;
        (void)formats::read(flipped, {.notices = &notices});
        EXPECT_TRUE(std::any_of(notices.begin(), notices.end(),
                                [](const std::string& notice) { return mentions(notice, "the CRC of chunk"); }))
            << "bit " << bit;
      }
      EXPECT_EQ(formats::problem(*image), "");
    }
  }
}

// With the CRCs made good, the damage reaches zlib and libpng. What is read must be an image, and survive a second
// trip.
TEST(Hostile, DamageBehindGoodCrcsIsRefusedOrAnImage) {
  Dice dice;
  for (const Bytes& file : small_files()) {
    for (int round = 0; round < 2000; ++round) {
      Bytes damaged = file;
      for (uint32_t hits = 1 + dice.roll(4); hits > 0; --hits) {
        damaged[dice.roll(static_cast<uint32_t>(damaged.size()))] = static_cast<uint8_t>(dice.roll(256));
      }
      if (file[0] == 0x89) fix_crcs(damaged);
      const auto image = read_exact(damaged.data(), damaged.size());
      if (!image) continue;
      ASSERT_EQ(formats::problem(*image), "");
      if (file[0] != 0x89) continue;
      ASSERT_EQ(difference(*image, read_back(written(Format::png, *image))), "");
    }
  }
}

TEST(Hostile, NoFormatAtAll) {
  EXPECT_EQ(refusal({}), "the file is empty");
  EXPECT_REASON(refusal(bytes("GIF88a")), "unknown image format");
  EXPECT_REASON(refusal(bytes("P8\n1 1\n")), "unknown image format");
  EXPECT_REASON(refusal(bytes("\x89PNG\n\x1A\n")), "signature is damaged");
  EXPECT_REASON(refusal(bytes("\x89XYZ\r\n\x1A\n")), "signature is damaged");
  EXPECT_REASON(refusal(bytes("\x8BL3I\r\n\x1A\n")), "unknown image format; supported are PNG, PBM");
  EXPECT_EQ(formats::readable_formats().substr(0, 9), "PNG, PBM,");
}

TEST(Corpus, PngSuite) {
  const char* corpus = std::getenv("L3_CORPUS");
  if (corpus == nullptr || *corpus == '\0') GTEST_SKIP() << "L3_CORPUS is not set";
  int read = 0;
  int refused = 0;
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(corpus) / "pngsuite")) {
    if (entry.path().extension() != ".png") continue;
    const std::string name = entry.path().filename().string();
    std::ifstream stream(entry.path(), std::ios::binary);
    const Bytes file((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
    const auto image = formats::read(file);
    if (name[0] == 'x') {
      ++refused;
      EXPECT_FALSE(image) << name;
      continue;
    }
    ++read;
    ASSERT_TRUE(image) << name << ": " << image.error().reason;
    const Image again = read_back(written(Format::png, *image));
    EXPECT_EQ(difference(*image, again), "") << name;
    expect_same_chunks(image->chunks, again.chunks);
  }
  EXPECT_GT(read, 100);
  EXPECT_GT(refused, 10);
}

}  // namespace
