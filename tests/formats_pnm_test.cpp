// formats/: PNM and PAM, the facade, and the difference between two images.
#include <gtest/gtest.h>

#include <functional>

#include "formats_drawing.h"

namespace {

using namespace formats_drawing;

TEST(Pam, RoundTripsEveryKind) {
  for (const Colour colour : {Colour::gray, Colour::gray_alpha, Colour::rgb, Colour::rgb_alpha}) {
    for (uint32_t bits = 1; bits <= 16; ++bits) {
      for (const Size size : kSizes) {
        const Image image = drawn(size.width, size.height, bits, colour);
        EXPECT_EQ(difference(image, read_back(written(Format::pam, image))), "");
      }
    }
  }
}

TEST(Pam, WritesTheHeaderInOrder) {
  Image image = drawn(2, 1, 12, Colour::gray_alpha);
  const uint16_t samples[] = {0x123, 0x456, 0x789, 0xABC};
  std::memcpy(image.pixels.data(), samples, sizeof samples);
  EXPECT_EQ(written(Format::pam, image),
            bytes("P7\nWIDTH 2\nHEIGHT 1\nDEPTH 2\nMAXVAL 4095\nTUPLTYPE GRAYSCALE_ALPHA\nENDHDR\n"
                  "\x01\x23\x04\x56\x07\x89\x0A\xBC"));
  const auto type = [](const Image& any) {
    const Bytes file = written(Format::pam, any);
    const std::string text(file.begin(), file.end());
    const size_t begin = text.find("TUPLTYPE ") + 9;
    return text.substr(begin, text.find('\n', begin) - begin);
  };
  EXPECT_EQ(type(drawn(2, 1, 1, Colour::gray)), "BLACKANDWHITE");
  EXPECT_EQ(type(drawn(2, 1, 1, Colour::gray_alpha)), "BLACKANDWHITE_ALPHA");
  EXPECT_EQ(type(drawn(2, 1, 2, Colour::gray)), "GRAYSCALE");
  EXPECT_EQ(type(drawn(2, 1, 8, Colour::rgb)), "RGB");
  EXPECT_EQ(type(drawn(2, 1, 8, Colour::rgb_alpha)), "RGB_ALPHA");
  EXPECT_EQ(type(drawn(2, 1, 8, Colour::palette)), "PALETTE_INDICES");
}

TEST(Pam, ReadsHeadersInAnyOrder) {
  std::vector<std::string> notices;
  const Image image = read_back(bytes("P7\n# made by hand\nMAXVAL 255\nDEPTH 3\r\n\nHEIGHT 1\n  WIDTH\t1\nENDHDR\nabc"),
                                {.notices = &notices});
  EXPECT_EQ(image.colour, Colour::rgb);
  EXPECT_EQ(image.pixels, bytes("abc"));
  EXPECT_EQ(notices.size(), 1U);
}

TEST(Pam, ReadsHeadersWithCarriageReturns) {
  const std::string head = "P7\r\nWIDTH 1\r\nHEIGHT 1\r\nDEPTH 3\r\nMAXVAL 255\r\nTUPLTYPE RGB\r\nENDHDR\r\n";
  EXPECT_EQ(read_back(bytes(head + "abc")).pixels, bytes("abc"));
}

TEST(Pnm, ReadsHeadersWithCarriageReturns) {
  EXPECT_EQ(read_back(bytes("P5\r\n2 1\r\n255\r\nab")).pixels, bytes("ab"));
  EXPECT_EQ(read_back(bytes("P5\r\n2 1\r\n255\r\nb")).pixels, bytes("\nb"));  // the size decides
  EXPECT_EQ(read_back(bytes("P4\r\n2 1\r\n\x40")).pixels, (Bytes{1, 0}));
  EXPECT_REASON(refusal(bytes("P5\n2 1\n255\n\nab")), "1 bytes follow");
}

TEST(Facade, KnowsItsFormats) {
  EXPECT_TRUE(formats::is_known(bytes("P5 1 1 255 a")));
  EXPECT_TRUE(formats::is_known(bytes("P7\r\n")));
  EXPECT_FALSE(formats::is_known(bytes("GIF88a")));
  EXPECT_FALSE(formats::is_known({}));
}

TEST(Facade, RefusesEdgesAndChunksOverTheLimit) {
  Image image = drawn(9, 5, 8, Colour::gray);
  image.chunks = {{{'t', 'E', 'X', 't'}, formats::kBeforePalette, Bytes(8)},
                  {{'t', 'E', 'X', 't'}, formats::kAfterPixels, Bytes(8)}};
  const Bytes file = written(Format::png, image);
  EXPECT_TRUE(formats::read(file, {.max_edge = 9, .max_chunk_bytes = 40}));
  const auto wide = formats::read(file, {.max_edge = 8});
  ASSERT_FALSE(wide);
  EXPECT_EQ(wide.error().offset, 16U);
  const auto high = formats::read(written(Format::png, drawn(5, 9, 8, Colour::gray)), {.max_edge = 8});
  ASSERT_FALSE(high);
  EXPECT_EQ(high.error().offset, 20U);
  EXPECT_FALSE(formats::read(written(Format::pgm, drawn(9, 5, 8, Colour::gray)), {.max_edge = 8}));
  const auto heavy = formats::read(file, {.max_chunk_bytes = 39});
  ASSERT_FALSE(heavy);
  EXPECT_EQ(heavy.error().offset, file.size() - 12 - 20);  // the second one, before IEND
}

TEST(Pam, RefusesBadHeaders) {
  const std::string head = "P7\nWIDTH 1\nHEIGHT 1\n";
  EXPECT_REASON(refusal(bytes(head + "DEPTH 1\nMAXVAL 1000\nENDHDR\nab")), "maxval 1000 is not 2^n - 1");
  EXPECT_REASON(refusal(bytes(head + "DEPTH 1\nENDHDR\nab")), "lacks");
  EXPECT_REASON(refusal(bytes(head + "DEPTH 5\nMAXVAL 255\nENDHDR\nabcde")), "depth of 5");
  EXPECT_REASON(refusal(bytes(head + "DEPTH 0\nMAXVAL 255\nENDHDR\n")), "depth of 0");
  EXPECT_REASON(refusal(bytes(head + "DEPTH 1\nMAXVAL 255\nTUPLTYPE RGB\nENDHDR\na")), "DEPTH 1 for TUPLTYPE RGB");
  EXPECT_REASON(refusal(bytes(head + "DEPTH 1\nMAXVAL 3\nTUPLTYPE BLACKANDWHITE\nENDHDR\na")), "MAXVAL above 1");
  EXPECT_REASON(refusal(bytes(head + "DEPTH 1\nMAXVAL 3\nTUPLTYPE CMYK\nENDHDR\na")), "unknown TUPLTYPE \"CMYK\"");
  EXPECT_REASON(refusal(bytes(head + "WIDTH 2\n")), "second WIDTH");
  EXPECT_REASON(refusal(bytes(head + "DEPTH -1\n")), "DEPTH is not a number");
  EXPECT_REASON(refusal(bytes(head + "DEPTH 99999999999\n")), "DEPTH is not a number");
  EXPECT_REASON(refusal(bytes(head + "COLOR \x07\n")), "unknown header line \"COLOR ?\"");
  EXPECT_REASON(refusal(bytes(head + "DEPTH 1")), "inside the header");
}

TEST(Pnm, RoundTrips) {
  for (const Size size : kSizes) {
    for (uint32_t bits = 1; bits <= 16; ++bits) {
      const Image gray = drawn(size.width, size.height, bits, Colour::gray);
      EXPECT_EQ(difference(gray, read_back(written(Format::pgm, gray))), "");
      const Image rgb = drawn(size.width, size.height, bits, Colour::rgb);
      EXPECT_EQ(difference(rgb, read_back(written(Format::ppm, rgb))), "");
    }
    const Image bitmap = drawn(size.width, size.height, 1, Colour::gray);
    EXPECT_EQ(difference(bitmap, read_back(written(Format::pbm, bitmap))), "");
  }
}

TEST(Pnm, ReadsByHand) {
  EXPECT_EQ(read_back(bytes("P1\n# c\n3 2\n011\n1 0 0 ")).pixels, (Bytes{1, 0, 0, 0, 1, 1}));
  EXPECT_EQ(read_back(bytes("P4 3 2\n\x7F\x80")).pixels, (Bytes{1, 0, 0, 0, 1, 1}));
  EXPECT_EQ(read_back(bytes("P2#c\n2#c\n1 15\n3 15")).pixels, (Bytes{3, 15}));
  EXPECT_EQ(read_back(bytes("P3 1 1 7 1\t2\r\n 7\n\n")).pixels, (Bytes{1, 2, 7}));
  EXPECT_EQ(read_back(bytes("P5 2 1 255# until here\n\n#")).pixels, bytes("\n#"));
  const Image wide = read_back(bytes("P2 1 1 1023 1000"));
  EXPECT_EQ(wide.bits, 10U);
  uint16_t sample = 0;
  ASSERT_EQ(wide.pixels.size(), 2U);
  std::memcpy(&sample, wide.pixels.data(), 2);
  EXPECT_EQ(sample, 1000);
}

TEST(Pnm, RefusesByHand) {
  EXPECT_REASON(refusal(bytes("P5 1 1 1000\nab")), "maxval 1000 is not 2^n - 1");
  EXPECT_REASON(refusal(bytes("P5 1 1 0\nab")), "maxval 0 is not 2^n - 1");
  EXPECT_REASON(refusal(bytes("P5 1 1 131071\nab")), "maxval 131071 is not 2^n - 1");
  EXPECT_REASON(refusal(bytes("P5 1 1 15\n\x10")), "sample 16 is greater than maxval 15");
  EXPECT_REASON(refusal(bytes("P2 1 1 15\n16")), "sample 16 is greater than maxval 15");
  EXPECT_REASON(refusal(bytes("P5 1 1 1023\n\x04\x01")), "sample 1025 is greater");
  EXPECT_REASON(refusal(bytes("P5 1 1 255\nab")), "1 bytes follow the image");
  EXPECT_REASON(refusal(bytes("P4 1 1\nab")), "1 bytes follow the image");
  EXPECT_REASON(refusal(bytes("P1 1 1\n1 P1")), "2 bytes follow the image");
  EXPECT_REASON(refusal(bytes("P2 1 1 1\n1 0")), "1 bytes follow the image");
  EXPECT_REASON(refusal(bytes("P1 1 1\n2")), "neither 0 nor 1");
  EXPECT_REASON(refusal(bytes("P2 2 1 1\n1 x")), "expected a sample");
  EXPECT_REASON(refusal(bytes("P5 0 1 255\n")), "is 0");
  EXPECT_REASON(refusal(bytes("P5 -1 1 255\n")), "the width is missing");
  EXPECT_REASON(refusal(bytes("P5 99999999999 1 255\n")), "the width is missing");
  EXPECT_REASON(refusal(bytes("P5 1")), "the height is missing");
  EXPECT_REASON(refusal(bytes("P6 1 1 255")), "white space");
  EXPECT_REASON(refusal(bytes("P6 4294967295 4294967295 65535\nabc")), "limit");
  EXPECT_REASON(refusal(bytes("P6 16384 10000 255\nabc")), "inside the pixels");
  EXPECT_REASON(refusal(bytes("P3 16384 10000 255\n1")), "too short");
  EXPECT_REASON(refusal(bytes("P1 16384 10000\n1")), "too short");
  const auto image = formats::read(bytes("P5 2 1 15\n\x0F\x10"));
  ASSERT_FALSE(image);
  EXPECT_EQ(image.error().offset, 11U);
}

TEST(Pnm, WritesPalettesAsAsked) {
  Image image = drawn(2, 1, 4, Colour::palette);
  image.pixels = {1, 0};
  image.palette = {1, 2, 3, 4, 5, 6};
  std::vector<std::string> notices;
  EXPECT_EQ(written(Format::ppm, image, {-1, &notices}), bytes("P6\n2 1\n255\n\x04\x05\x06\x01\x02\x03"));
  EXPECT_TRUE(notices.empty());
  Bytes indices = bytes("P5\n2 1\n15\n\x01");
  indices.push_back(0);
  EXPECT_EQ(written(Format::pgm, image, {-1, &notices}), indices);
  EXPECT_EQ(notices.size(), 1U);
  image.transparency = {255, 254};
  EXPECT_REASON(write_refusal(Format::ppm, image), "write .png");
  image.transparency.clear();
  image.pixels[1] = 2;
  EXPECT_REASON(write_refusal(Format::ppm, image), "pixel (1, 0) has index 2");
}

TEST(Pnm, RefusesToWriteWhatItCannotHold) {
  EXPECT_REASON(write_refusal(Format::pbm, drawn(2, 2, 2, Colour::gray)), "one bit");
  EXPECT_REASON(write_refusal(Format::pbm, drawn(2, 2, 1, Colour::palette)), "one bit");
  EXPECT_REASON(write_refusal(Format::pgm, drawn(2, 2, 8, Colour::gray_alpha)), ".pam or .png");
  EXPECT_REASON(write_refusal(Format::pgm, drawn(2, 2, 8, Colour::rgb)), ".ppm");
  EXPECT_REASON(write_refusal(Format::ppm, drawn(2, 2, 8, Colour::rgb_alpha)), ".pam or .png");
  EXPECT_REASON(write_refusal(Format::ppm, drawn(2, 2, 8, Colour::gray)), ".pgm");
}

TEST(Pnm, SaysWhatIsLeftOut) {
  Image image = drawn(2, 2, 8, Colour::gray);
  image.transparency = {0, 1};
  image.chunks = {chunk("gAMA", 0, {0, 0, 0, 1})};
  std::vector<std::string> notices;
  written(Format::pgm, image, {-1, &notices});
  EXPECT_EQ(notices.size(), 2U);
}

TEST(Facade, KnowsExtensions) {
  EXPECT_EQ(formats::format_of("a/b.png"), Format::png);
  EXPECT_EQ(formats::format_of("B.PGM"), Format::pgm);
  EXPECT_EQ(formats::format_of("x.y.Pam"), Format::pam);
  EXPECT_EQ(formats::format_of(".ppm"), Format::ppm);
  EXPECT_EQ(formats::format_of("a.pbm"), Format::pbm);
  EXPECT_EQ(formats::format_of("png"), std::nullopt);
  EXPECT_EQ(formats::format_of("a.png.gz"), std::nullopt);
  EXPECT_EQ(formats::format_of(""), std::nullopt);
}

TEST(Difference, FindsTheFirst) {
  const Image image = drawn(4, 3, 16, Colour::rgb);
  const auto changed = [&](const std::function<void(Image&)>& change) {
    Image other = image;
    change(other);
    return difference(image, other);
  };
  EXPECT_EQ(difference(image, image), "");
  EXPECT_EQ(changed([](Image& i) { i.width = 5; }), "width 4 against 5");
  EXPECT_EQ(changed([](Image& i) { i.bits = 15; }), "bits 16 against 15");
  EXPECT_EQ(changed([](Image& i) { i.colour = Colour::gray; }), "colour RGB against gray");
  EXPECT_REASON(changed([](Image& i) { i.pixels[2 * (3 * 6 + 1)] ^= 1; }), "pixel (2, 1), channel 1: ");
  EXPECT_REASON(changed([](Image& i) { i.pixels.pop_back(); }), "pixels: bytes 72 against 71");
  EXPECT_EQ(changed([](Image& i) { i.palette = {1}; }), "palette: bytes 0 against 1");
  EXPECT_EQ(changed([](Image& i) { i.transparency = {1}; }), "transparency: bytes 0 against 1");
  EXPECT_EQ(changed([](Image& i) { i.chunks = {chunk("tEXt", 0, {1})}; }),
            "chunk tEXt of 1 bytes is in the second image only");
  Image a = image;
  Image b = image;
  a.chunks = {chunk("tEXt", 0, {1}), chunk("gAMA", 0, {2})};
  b.chunks = {chunk("gAMA", 2, {2}), chunk("tEXt", 1, {1})};
  EXPECT_EQ(difference(a, b), "");
  b.chunks.push_back(b.chunks[0]);
  EXPECT_EQ(difference(a, b), "chunk gAMA of 1 bytes is in the second image only");
}

}  // namespace
