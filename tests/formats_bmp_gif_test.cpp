// formats/: BMP and GIF, written here byte by byte. Where stb_image reads them rightly it must agree.
#include <bit>
#include <map>

#include "formats_stb.h"

namespace {

using namespace formats_drawing;

// BMP.

struct Bmp {
  uint32_t width = 1, height = 1;
  uint32_t bits = 24;
  bool downwards = false;
  uint32_t header = 40;
  uint32_t compression = 0;
  uint32_t told = 0;  // colours of the palette
  Bytes masks;
  Bytes palette;  // four bytes each, three of OS/2
  Bytes rows;     // as they stand in the file

  uint32_t row_bytes() const { return (width * bits + 31) / 32 * 4; }
  Bytes file() const {
    Bytes second;
    add_little(second, header, 4);
    if (header == 12) {
      add_little(second, width, 2);
      add_little(second, height, 2);
    } else {
      add_little(second, width, 4);
      add_little(second, downwards ? ~height + 1 : height, 4);
    }
    add_little(second, 1, 2);
    add_little(second, bits, 2);
    if (header != 12) {
      add_little(second, compression, 4);
      add_little(second, 0, 4);
      add_little(second, 2835, 4);
      add_little(second, 1000, 4);
      add_little(second, told, 4);
      add_little(second, 0, 4);
      add(second, masks);
      if (header > 40) second.resize(header);
    }
    if (header >= 108) second[56] = 'B', second[57] = 'G', second[58] = 'R', second[59] = 's';
    Bytes out = bytes("BM");
    add_little(out, 0, 4);
    add_little(out, 0, 4);
    add_little(out, static_cast<uint32_t>(14 + second.size() + palette.size()), 4);
    add(out, second);
    add(out, palette);
    add(out, rows);
    return out;
  }
};

Bytes masks(std::initializer_list<uint32_t> values) {
  Bytes out;
  for (const uint32_t value : values) add_little(out, value, 4);
  return out;
}

Bmp random_bmp(uint32_t width, uint32_t height, uint32_t bits) {
  Bmp bmp;
  bmp.width = width;
  bmp.height = height;
  bmp.bits = bits;
  Dice dice;
  if (bits < 16) {
    for (uint32_t i = 0; i < 1U << bits; ++i) {
      for (int c = 0; c < 3; ++c) bmp.palette.push_back(static_cast<uint8_t>(dice.roll(256)));
      bmp.palette.push_back(0);
    }
  }
  bmp.rows.resize(size_t{bmp.row_bytes()} * height);
  for (uint8_t& byte : bmp.rows) byte = static_cast<uint8_t>(dice.roll(256));
  return bmp;
}

TEST(Bmp, HasThePixelsOfStb) {
  for (const Size size : kSizes) {
    for (const uint32_t bits : {1U, 4U, 8U, 24U}) {
      for (const bool downwards : {false, true}) {
        Bmp bmp = random_bmp(size.width, size.height, bits);
        bmp.downwards = downwards;
        expect_like_stb(bmp.file());
        if (bits < 16) {
          EXPECT_EQ(read_back(bmp.file()).bits, bits);
        }
      }
    }
  }
  Bmp fields = random_bmp(17, 5, 16);
  fields.compression = 3;
  fields.header = 124;
  fields.masks = masks({0x0F00, 0x00F0, 0x000F, 0xF000});
  expect_like_stb(fields.file());
  fields = random_bmp(17, 5, 32);
  fields.compression = 3;
  fields.header = 108;
  fields.masks = masks({0xFF, 0xFF00, 0xFF0000, 0xFF000000});
  expect_like_stb(fields.file());
  fields.masks = masks({0xFF, 0xFF00, 0xFF0000, 0});
  expect_like_stb(fields.file());
  EXPECT_EQ(read_back(fields.file()).colour, Colour::rgb);
}

// stb_image repeats bits; the rule here is Pillow's.
TEST(Bmp, WidensSamplesAsPillowDoes) {
  for (const bool masked : {false, true}) {
    Bmp bmp = random_bmp(64, 1, 16);
    if (masked) bmp.compression = 3, bmp.masks = masks({0xF800, 0x07E0, 0x001F});
    bmp.rows.clear();
    const uint32_t green_most = masked ? 63 : 31;
    for (uint32_t v = 0; v < 64; ++v) add_little(bmp.rows, (v & green_most) << 5 | (v & 31), 2);
    const Image image = read_back(bmp.file());
    for (uint32_t v = 0; v < 64; ++v) {
      EXPECT_EQ(image.pixels[3 * v + 1], (v & green_most) * 255 / green_most);
      EXPECT_EQ(image.pixels[3 * v + 2], (v & 31) * 255 / 31);
    }
  }
}

Bmp runs_bmp(uint32_t width, uint32_t height, uint32_t bits, Bytes rows) {
  Bmp bmp = random_bmp(width, height, bits);
  bmp.compression = bits == 8 ? 1 : 2;
  bmp.rows = std::move(rows);
  return bmp;
}

TEST(Bmp, ReadsRuns) {
  // A run, a literal of three and its padding; then the upper row.
  Bmp bmp = runs_bmp(5, 2, 8, {2, 7, 0, 3, 1, 2, 3, 0, 0, 0, 5, 9, 0, 1});
  EXPECT_EQ(read_back(bmp.file()).pixels, (Bytes{9, 9, 9, 9, 9, 7, 7, 1, 2, 3}));
  EXPECT_TRUE(notices_of(bmp.file()).empty());
  bmp = runs_bmp(8, 1, 4, {3, 0x12, 0, 5, 0x34, 0x56, 0x70, 0, 0, 1});
  EXPECT_EQ(read_back(bmp.file()).pixels, (Bytes{1, 2, 1, 3, 4, 5, 6, 7}));
  // A delta to the right and up, and an early end.
  bmp = runs_bmp(3, 3, 8, {1, 4, 0, 2, 1, 1, 1, 5, 0, 1});
  EXPECT_EQ(read_back(bmp.file()).pixels, (Bytes{0, 0, 0, 0, 0, 5, 4, 0, 0}));
  EXPECT_REASON(notices_of(bmp.file())[0], "no run sets are index 0");
  bmp = runs_bmp(2, 1, 8, {9, 4, 0, 1});
  EXPECT_EQ(read_back(bmp.file()).pixels, (Bytes{4, 4}));
  EXPECT_REASON(notices_of(bmp.file())[0], "cut off");
  EXPECT_EQ(read_back(runs_bmp(2, 1, 8, {2, 4}).file()).pixels, (Bytes{4, 4}));  // no mark at the end
  EXPECT_REASON(refusal(runs_bmp(2, 2, 8, {2, 4, 0, 0}).file()), "ends inside the pixels");
  EXPECT_REASON(refusal(runs_bmp(2, 2, 8, {0, 5, 1}).file()), "ends inside the pixels");
  EXPECT_REASON(refusal(runs_bmp(9000, 9000, 8, {0, 1}).file()), "too short for the size of the image");
  bmp = runs_bmp(2, 1, 8, {2, 4, 0, 1});
  bmp.told = 4;
  bmp.palette.resize(16);
  EXPECT_REASON(refusal(bmp.file()), "index 4 in a palette of 4");
  bmp.bits = 4;
  EXPECT_REASON(refusal(bmp.file()), "run-length coded BMP of 4 bits");
}

TEST(Bmp, KeepsPaletteAndDensity) {
  Bmp bmp = random_bmp(3, 2, 2);
  bmp.rows = {0x1B, 0, 0, 0, 0xE4, 0, 0, 0};
  const Image image = read_back(bmp.file());
  EXPECT_EQ(image.colour, Colour::palette);
  EXPECT_EQ(image.bits, 2U);
  EXPECT_EQ(image.pixels, (Bytes{3, 2, 1, 0, 1, 2}));
  ASSERT_EQ(image.palette.size(), 12U);
  EXPECT_EQ(image.palette[0], bmp.palette[2]);
  ASSERT_EQ(image.chunks.size(), 1U);
  EXPECT_EQ(image.chunks[0].data, (Bytes{0, 0, 0x0B, 0x13, 0, 0, 3, 0xE8, 1}));
  EXPECT_TRUE(notices_of(bmp.file()).empty());
  EXPECT_EQ(difference(image, read_back(written(Format::png, image))), "");
}

TEST(Bmp, ReadsTheHeaderOfOs2) {
  Bmp bmp;
  bmp.header = 12;
  bmp.bits = 8;
  bmp.palette.resize(768);
  bmp.palette[765] = 9;
  bmp.rows = {255, 0, 0, 0};
  const Image image = read_back(bmp.file());
  EXPECT_EQ(image.palette[767], 9);  // blue stands first
  EXPECT_EQ(image.pixels, Bytes{255});
}

TEST(Bmp, FourthByte) {
  Bmp bmp = random_bmp(2, 1, 32);
  bmp.rows = {1, 2, 3, 0, 4, 5, 6, 0};
  EXPECT_EQ(read_back(bmp.file()).pixels, (Bytes{3, 2, 1, 6, 5, 4}));
  EXPECT_TRUE(notices_of(bmp.file()).empty());
  bmp.rows[3] = 9;
  EXPECT_EQ(read_back(bmp.file()).pixels, (Bytes{3, 2, 1, 6, 5, 4}));
  EXPECT_REASON(notices_of(bmp.file())[0], "fourth byte of each pixel is left out");
  bmp.rows[3] = bmp.rows[7] = 255;
  EXPECT_EQ(read_back(bmp.file()).colour, Colour::rgb);
}

TEST(Bmp, EmbeddedProfile) {
  Bmp bmp = random_bmp(2, 1, 24);
  bmp.header = 124;
  Bytes file = bmp.file();
  const Bytes profile = bytes("a profile");
  const auto set = [&](size_t at, uint32_t value) {
    Bytes number;
    add_little(number, value, 4);
    std::copy(number.begin(), number.end(), file.begin() + static_cast<std::ptrdiff_t>(14 + at));
  };
  set(56, 0x4D424544);
  set(112, static_cast<uint32_t>(file.size() - 14));
  set(116, static_cast<uint32_t>(profile.size()));
  EXPECT_REASON(refusal(file), "a colour profile that is not in the file");
  add(file, profile);
  const Image image = read_back(file);
  ASSERT_EQ(image.chunks.size(), 2U);
  EXPECT_EQ(std::string(image.chunks[0].type.data(), 4), "iCCP");
}

TEST(Bmp, RefusesWhatItCannotTell) {
  const auto expect = [](const Bmp& bmp, const char* reason) { EXPECT_REASON(refusal(bmp.file()), reason); };
  Bmp bmp = random_bmp(4, 2, 8);
  bmp.compression = 5;
  expect(bmp, "compression 5");
  bmp = random_bmp(4, 2, 8);
  bmp.told = 200;
  bmp.palette.resize(800);
  std::fill(bmp.rows.begin(), bmp.rows.end(), uint8_t{199});
  EXPECT_EQ(read_back(bmp.file()).palette.size(), 600U);
  bmp.rows[3] = 200;
  expect(bmp, "index 200 in a palette of 200 colours");
  bmp.told = 300;
  expect(bmp, "a palette of 300 colours");
  bmp = random_bmp(4, 2, 32);
  bmp.compression = 3;
  bmp.masks = masks({0x3FF00000, 0xFFC00, 0x3FF});
  expect(bmp, "more than 8 bits");
  bmp.masks = masks({0xFF, 0xFF, 0xFF00});
  expect(bmp, "do not fit");
  bmp.masks = masks({0xFF, 0x5500, 0xFF0000});
  expect(bmp, "not consecutive");
  bmp.masks = masks({0xFF, 0, 0xFF0000});
  expect(bmp, "no bits");
  bmp = random_bmp(4, 2, 24);
  bmp.header = 64;
  expect(bmp, "header of 64 bytes");
  bmp = random_bmp(1, 1, 24);
  bmp.height = 0;
  expect(bmp, "is 0");
  bmp.height = 0x80000000;
  expect(bmp, "impossible");
  bmp.width = bmp.height = 1U << 13;
  expect(bmp, "ends inside the pixels");
  bmp.height = 0x7FFFFFFF;
  expect(bmp, "limit");
  EXPECT_REASON(refusal(bytes("BM, which begins no image at all, but a text")), "unknown image format");
}

// GIF.

// LZW as GIF has it, in sub-blocks. `clear_often`: every four codes.
Bytes lzw(const Bytes& samples, uint32_t code_bits, bool clear_often) {
  Bytes packed;
  uint32_t word = 0, held = 0;
  const uint32_t clear = 1U << code_bits;
  uint32_t bits = code_bits + 1;
  const auto put = [&](uint32_t code) {
    word |= code << held;
    for (held += bits; held >= 8; held -= 8, word >>= 8) packed.push_back(static_cast<uint8_t>(word & 0xFF));
  };
  std::map<std::pair<uint32_t, uint8_t>, uint32_t> known;
  uint32_t next = clear + 2;
  put(clear);
  uint32_t string = samples[0];
  int since = 0;
  for (size_t i = 1; i < samples.size(); ++i) {
    const auto found = known.find({string, samples[i]});
    if (found != known.end()) {
      string = found->second;
      continue;
    }
    put(string);
    if (next < 4096) {
      known[{string, samples[i]}] = next;
      // The reader learns of a string one code later.
      if (next == 1U << bits && bits < 12) ++bits;
      ++next;
    }
    if ((clear_often && ++since % 4 == 0) || next == 4096) {
      put(clear);
      known.clear();
      next = clear + 2;
      bits = code_bits + 1;
    }
    string = samples[i];
  }
  put(string);
  if (next == 1U << bits && bits < 12) ++bits;
  put(clear + 1);
  if (held > 0) packed.push_back(static_cast<uint8_t>(word & 0xFF));
  Bytes out;
  for (size_t at = 0; at < packed.size(); at += 255) {
    const size_t size = std::min<size_t>(255, packed.size() - at);
    out.push_back(static_cast<uint8_t>(size));
    out.insert(out.end(), packed.begin() + static_cast<std::ptrdiff_t>(at),
               packed.begin() + static_cast<std::ptrdiff_t>(at + size));
  }
  out.push_back(0);
  return out;
}

Bytes gif_header(uint32_t width, uint32_t height, const Bytes& palette) {
  Bytes out = bytes("GIF89a");
  add_little(out, width, 2);
  add_little(out, height, 2);
  const uint32_t size = palette.empty() ? 0 : static_cast<uint32_t>(std::countr_zero(palette.size() / 3)) - 1;
  out.push_back(static_cast<uint8_t>(palette.empty() ? 0 : 0x80 | size));
  add(out, {0, 0});
  add(out, palette);
  return out;
}

Bytes gif_frame(const Image& image, uint32_t code_bits, bool interlaced = false, bool clear_often = false) {
  Bytes out = {0x2C};
  add_little(out, 0, 4);
  add_little(out, image.width, 2);
  add_little(out, image.height, 2);
  out.push_back(interlaced ? 0x40 : 0);
  out.push_back(static_cast<uint8_t>(code_bits));
  Bytes samples = image.pixels;
  if (interlaced) {
    samples.clear();
    for (const auto& [first, step] : {std::pair<size_t, size_t>{0, 8}, {4, 8}, {2, 4}, {1, 2}}) {
      for (size_t y = first; y < image.height; y += step) {
        const auto row = image.pixels.begin() + static_cast<std::ptrdiff_t>(y * image.width);
        samples.insert(samples.end(), row, row + image.width);
      }
    }
  }
  add(out, lzw(samples, code_bits, clear_often));
  return out;
}

Bytes gif(const Image& image, bool interlaced = false, const Bytes& before = {}, const Bytes& after = {}) {
  Bytes out = gif_header(image.width, image.height, image.palette);
  add(out, before);
  add(out, gif_frame(image, std::max(2U, image.bits), interlaced));
  add(out, after);
  out.push_back(0x3B);
  return out;
}

TEST(Gif, IsExact) {
  for (const Size size : kSizes) {
    for (const uint32_t bits : {1U, 2U, 4U, 8U}) {
      for (const bool interlaced : {false, true}) {
        const Image image = drawn(size.width, size.height, bits, Colour::palette);
        const Bytes file = gif(image, interlaced);
        EXPECT_EQ(difference(image, read_back(file)), "");
        expect_like_stb(file);
      }
    }
  }
  EXPECT_TRUE(notices_of(gif(drawn(3, 3, 4, Colour::palette))).empty());
}

TEST(Gif, ReadsLongAndShortStrings) {
  Image flat = drawn(301, 201, 3, Colour::palette);  // eight colours
  flat.bits = 4;
  EXPECT_EQ(read_back(gif(flat)).pixels, flat.pixels);  // the table fills up more than once
  std::fill(flat.pixels.begin(), flat.pixels.end(), uint8_t{5});
  EXPECT_EQ(read_back(gif(flat)).pixels, flat.pixels);
  const Image image = drawn(31, 17, 1, Colour::palette);
  for (const uint32_t code_bits : {1U, 2U, 5U, 8U}) {
    for (const bool clear_often : {false, true}) {
      Bytes file = gif_header(31, 17, image.palette);
      add(file, gif_frame(image, code_bits, false, clear_often));
      file.push_back(0x3B);
      EXPECT_EQ(difference(image, read_back(file)), "") << code_bits;
    }
  }
}

TEST(Gif, KeepsTransparency) {
  const Image image = drawn(9, 5, 4, Colour::palette);
  const Bytes file = gif(image, false, {0x21, 0xF9, 4, 1, 0, 0, 3, 0});
  const Image read = read_back(file);
  EXPECT_EQ(read.transparency, (Bytes{255, 255, 255, 0}));
  EXPECT_EQ(read.pixels, image.pixels);
  expect_like_stb(file, true);
}

TEST(Gif, SaysWhatIsLeftOut) {
  const Image image = drawn(4, 4, 2, Colour::palette);
  Bytes before = {0x21, 0xFE, 2, 'h', 'i', 0, 0x21, 0xFF, 11};
  add(before, bytes("NETSCAPE2.0"));
  add(before, {3, 1, 0, 0, 0});
  Bytes file = gif(image, false, before, gif_frame(image, 2));
  add(file, {1, 2, 3});
  EXPECT_EQ(notices_of(file),
            (std::vector<std::string>{"a comment of 2 bytes is left out",
                                      "animated GIF: only the first frame is read, 1 frame is left out",
                                      "3 bytes after the trailer are left out"}));
}

TEST(Gif, FillsTheScreenAroundTheFrame) {
  const Image image = drawn(2, 1, 2, Colour::palette);
  const uint8_t a = image.pixels[0], b = image.pixels[1];
  const auto file = [&](uint32_t width, uint32_t height, const Bytes& control) {
    Bytes out = gif_header(width, height, image.palette);
    add(out, control);
    Bytes frame = gif_frame(image, 2);
    frame[1] = 1, frame[3] = 1;  // left and top
    add(out, frame);
    out.push_back(0x3B);
    return out;
  };
  const Bytes opaque = file(4, 3, {});
  EXPECT_EQ(read_back(opaque).pixels, (Bytes{0, 0, 0, 0, 0, a, b, 0, 0, 0, 0, 0}));
  EXPECT_EQ(notices_of(opaque),
            std::vector<std::string>{"the first frame does not cover the screen: the rest is index 0"});
  EXPECT_EQ(read_back(file(4, 2, {0x21, 0xF9, 4, 1, 0, 0, 3, 0})).pixels, (Bytes{3, 3, 3, 3, 3, a, b, 3}));
  EXPECT_EQ(read_back(file(1, 1, {})).pixels, (Bytes{0, 0, 0, 0, a, b}));  // the screen grows
  EXPECT_REASON(refusal(file(9000, 9000, {})), "too short");
}

TEST(Gif, RefusesWhatItCannotTell) {
  const Image image = drawn(4, 4, 2, Colour::palette);
  Bytes file = gif_header(4, 4, {});
  add(file, gif_frame(image, 2));
  file.push_back(0x3B);
  EXPECT_REASON(refusal(file), "no colour table");
  EXPECT_REASON(refusal(gif_header(4, 4, image.palette)), "no trailer");
  file = gif_header(4, 4, image.palette);
  file.push_back(0x3B);
  EXPECT_REASON(refusal(file), "no frame");
  Image odd = image;
  odd.pixels[7] = 4;
  file = gif_header(4, 4, image.palette);
  add(file, gif_frame(odd, 3));
  file.push_back(0x3B);
  EXPECT_REASON(refusal(file), "index 4 in a table of 4 colours");
  Image low = image;
  low.pixels.resize(8);
  file = gif_header(4, 4, image.palette);
  add(file, gif_frame(low, 2));
  file.push_back(0x3B);
  EXPECT_REASON(refusal(file), "they end after 8 samples");
  EXPECT_REASON(refusal(gif(image, false, {0x21, 0x01, 1, 0, 0})), "plain text");
  file = gif(image);
  file[6] = file[7] = file[8] = file[9] = 0xFF;
  std::fill_n(file.begin() + 30, 4, uint8_t{0xFF});
  EXPECT_REASON(refusal(file), "limit");
}

TEST(BmpAndGif, DamageIsRefusedOrHarmless) {
  Bmp fields = random_bmp(5, 3, 16);
  fields.compression = 3;
  fields.masks = masks({0xF800, 0x07E0, 0x001F});
  Bmp profile = random_bmp(5, 3, 24);
  profile.header = 124;
  const Image image = drawn(9, 7, 4, Colour::palette);
  const Bytes files[] = {runs_bmp(5, 2, 8, {2, 7, 0, 3, 1, 2, 3, 0, 0, 0, 5, 9}).file(),
                         random_bmp(5, 3, 4).file(),
                         random_bmp(5, 3, 32).file(),
                         fields.file(),
                         profile.file(),
                         gif(image, true, {0x21, 0xF9, 4, 1, 0, 0, 3, 0}, gif_frame(image, 4))};
  for (const Bytes& file : files) {
    expect_truncations_are_refused(file);
    expect_flips_are_harmless(file);
  }
}

}  // namespace
