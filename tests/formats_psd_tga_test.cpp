// formats/: PSD and TGA, written here byte by byte, and what the facade knows. Where stb_image reads them rightly it
// must agree.
#include "formats_stb.h"

namespace {

using namespace formats_drawing;

// TGA.

Bytes tga(uint32_t type, uint32_t width, uint32_t height, uint32_t bits, uint8_t descriptor, const Bytes& pixels,
          const Bytes& map = {}, uint32_t map_bits = 0) {
  Bytes out = {0, static_cast<uint8_t>(map_bits > 0), static_cast<uint8_t>(type), 0, 0};
  add_little(out, map_bits > 0 ? static_cast<uint32_t>(map.size()) / ((map_bits + 7) / 8) : 0, 2);
  out.push_back(static_cast<uint8_t>(map_bits));
  add_little(out, 0, 4);
  add_little(out, width, 2);
  add_little(out, height, 2);
  out.push_back(static_cast<uint8_t>(bits));
  out.push_back(descriptor);
  add(out, map);
  add(out, pixels);
  add(out, Bytes(8));
  add(out, bytes(std::string_view("TRUEVISION-XFILE.\0", 18)));
  return out;
}

Bytes random_bytes(size_t size) {
  Dice dice;
  Bytes out(size);
  for (uint8_t& byte : out) byte = static_cast<uint8_t>(dice.roll(256));
  return out;
}

// In packets of pixels that differ and of those that do not, in turn.
Bytes packed_tga(const Bytes& pixels, size_t size, Bytes* unpacked) {
  Bytes out;
  unpacked->clear();
  const size_t count = pixels.size() / size;
  for (size_t i = 0; i < count;) {
    const size_t run = std::min<size_t>(1 + i % 128, count - i);
    const auto first = pixels.begin() + static_cast<std::ptrdiff_t>(i * size);
    const bool repeated = i % 2 == 0;
    out.push_back(static_cast<uint8_t>((repeated ? 0x80 : 0) | (run - 1)));
    out.insert(out.end(), first, first + static_cast<std::ptrdiff_t>(repeated ? size : run * size));
    for (size_t k = 0; k < run; ++k) {
      const auto from = repeated ? first : first + static_cast<std::ptrdiff_t>(k * size);
      unpacked->insert(unpacked->end(), from, from + static_cast<std::ptrdiff_t>(size));
    }
    i += run;
  }
  return out;
}

TEST(Tga, HasThePixelsOfStb) {
  struct Kind {
    uint32_t type, bits;
    Colour colour;
  };
  for (const Size size : kSizes) {
    for (const Kind kind : {Kind{2, 24, Colour::rgb}, Kind{2, 32, Colour::rgb_alpha}, Kind{3, 8, Colour::gray},
                            Kind{3, 16, Colour::gray_alpha}}) {
      for (const uint8_t descriptor : {uint8_t{0x08}, uint8_t{0x28}}) {
        const Bytes pixels = random_bytes(size_t{size.width} * size.height * kind.bits / 8);
        const Bytes plain = tga(kind.type, size.width, size.height, kind.bits, descriptor, pixels);
        EXPECT_EQ(read_back(plain).colour, kind.colour);
        expect_like_stb(plain);
        Bytes unpacked;
        const Bytes packed = packed_tga(pixels, kind.bits / 8, &unpacked);
        const Bytes file = tga(kind.type + 8, size.width, size.height, kind.bits, descriptor, packed);
        expect_like_stb(file);
        EXPECT_EQ(difference(read_back(file),
                             read_back(tga(kind.type, size.width, size.height, kind.bits, descriptor, unpacked))),
                  "");
      }
    }
  }
}

TEST(Tga, KeepsTheMap) {
  const Bytes map = {1, 2, 3, 4, 5, 6, 7, 8};
  const Bytes file = tga(1, 2, 1, 8, 0x20, {1, 0}, map, 32);
  const Image image = read_back(file);
  EXPECT_EQ(image.colour, Colour::palette);
  EXPECT_EQ(image.pixels, (Bytes{1, 0}));
  EXPECT_EQ(image.palette, (Bytes{3, 2, 1, 7, 6, 5}));
  EXPECT_EQ(image.transparency, (Bytes{4, 8}));
  expect_like_stb(file);
  EXPECT_REASON(refusal(tga(1, 2, 1, 8, 0x20, {2, 0}, map, 32)), "index 2 in a colour map of 2 entries");
  EXPECT_REASON(refusal(tga(1, 2, 1, 8, 0x20, {2, 0})), "without a colour map");
}

TEST(Tga, TurnsRowsAround) {
  EXPECT_EQ(read_back(tga(3, 2, 2, 8, 0x20, {1, 2, 3, 4})).pixels, (Bytes{1, 2, 3, 4}));
  EXPECT_EQ(read_back(tga(3, 2, 2, 8, 0x00, {1, 2, 3, 4})).pixels, (Bytes{3, 4, 1, 2}));
  EXPECT_EQ(read_back(tga(3, 2, 2, 8, 0x30, {1, 2, 3, 4})).pixels, (Bytes{2, 1, 4, 3}));
  EXPECT_EQ(read_back(tga(3, 2, 2, 8, 0x10, {1, 2, 3, 4})).pixels, (Bytes{4, 3, 2, 1}));
}

TEST(Tga, WidensFiveBits) {
  const Bytes file = tga(2, 2, 1, 16, 0x20, {0x1F, 0x7C, 0x23, 0x84});
  EXPECT_EQ(read_back(file).pixels, (Bytes{255, 0, 255, 8, 8, 24}));
  EXPECT_REASON(notices_of(file)[0], "scaled to 8");
}

TEST(Tga, HasAlphaWhereItSaysSo) {
  EXPECT_EQ(read_back(tga(2, 2, 1, 32, 0x20, {1, 2, 3, 0, 4, 5, 6, 9})).pixels, (Bytes{3, 2, 1, 6, 5, 4}));
  EXPECT_EQ(read_back(tga(2, 1, 1, 32, 0x28, {1, 2, 3, 9})).pixels, (Bytes{3, 2, 1, 9}));
  for (const uint8_t descriptor : {uint8_t{0x21}, uint8_t{0x28}}) {
    const Bytes file = tga(2, 2, 1, 16, descriptor, {0x1F, 0x7C, 0x1F, 0xFC});
    EXPECT_EQ(read_back(file).pixels, (Bytes{255, 0, 255, 255, 255, 0, 255, 0}));
  }
  // An extension area that denies it.
  Bytes file = tga(2, 1, 1, 32, 0x28, {1, 2, 3, 9});
  const size_t area = file.size() - 26;
  file.insert(file.end() - 26, 495, uint8_t{0});
  file[area + 495] = static_cast<uint8_t>(area);
  EXPECT_EQ(read_back(file).pixels, (Bytes{3, 2, 1}));
}

TEST(Tga, RefusesWhatItCannotTell) {
  EXPECT_REASON(refusal(tga(2, 2, 2, 24, 0x40, Bytes(12))), "interleaved");
  EXPECT_REASON(refusal(tga(2, 2, 2, 8, 0, Bytes(12))), "8 bits per pixel");
  EXPECT_REASON(refusal(tga(32, 2, 2, 8, 0, Bytes(12))), "type 32");
  EXPECT_REASON(refusal(tga(2, 2, 2, 32, 4, Bytes(16))), "4 bits of alpha");
  EXPECT_REASON(refusal(tga(3, 2, 2, 8, 0, Bytes(3))), "ends inside the pixels");
  EXPECT_REASON(refusal(tga(11, 2, 1, 8, 0, {0x82, 7})), "continues after the last");
  EXPECT_REASON(refusal(tga(3, 2, 2, 8, 0, Bytes(4)), {.max_pixels = 3}), "limit");
  Bytes older = tga(3, 2, 2, 8, 0, Bytes(4));
  older.erase(older.end() - 26, older.end());
  EXPECT_REASON(refusal(older), "unknown image format");
}

// PSD.

void add_resource(Bytes& out, uint32_t number, const Bytes& contents) {
  add(out, bytes("8BIM"));
  add_big(out, number, 2);
  add(out, {0, 0});
  add_big(out, static_cast<uint32_t>(contents.size()), 4);
  add(out, contents);
  if (contents.size() % 2) out.push_back(0);
}

// `planes` channels of random samples; of the fourth each is 0 or the greatest.
Bytes psd(uint32_t width, uint32_t height, uint32_t bits, uint32_t planes, uint32_t mode, bool packed,
          const Bytes& resources = {}) {
  Bytes out = bytes("8BPS");
  add_big(out, 1, 2);
  add(out, Bytes(6));
  add_big(out, planes, 2);
  add_big(out, height, 4);
  add_big(out, width, 4);
  add_big(out, bits, 2);
  add_big(out, mode, 2);
  add_big(out, 0, 4);
  add_big(out, static_cast<uint32_t>(resources.size()), 4);
  add(out, resources);
  add_big(out, 0, 4);
  add_big(out, packed, 2);
  Dice dice;
  const uint32_t row_bytes = width * bits / 8;
  Bytes table, rows;
  for (uint32_t plane = 0; plane < planes; ++plane) {
    for (uint32_t y = 0; y < height; ++y) {
      Bytes row(row_bytes);
      for (uint8_t& byte : row) byte = static_cast<uint8_t>(dice.roll(256));
      const bool alpha = plane == (mode == 1 ? 1U : 3U);
      if (alpha) {
        for (size_t i = 0; i < row.size(); ++i) row[i] = i / (bits / 8) % 3 == 0 ? 0 : 255;
      }
      if (!packed) {
        add(rows, row);
        continue;
      }
      const size_t before = rows.size();
      for (size_t at = 0; at < row.size(); at += 100) {
        const size_t run = std::min<size_t>(100, row.size() - at);
        rows.push_back(static_cast<uint8_t>(run - 1));
        rows.insert(rows.end(), row.begin() + static_cast<std::ptrdiff_t>(at),
                    row.begin() + static_cast<std::ptrdiff_t>(at + run));
      }
      add_big(table, static_cast<uint32_t>(rows.size() - before), 2);
    }
  }
  add(out, table);
  add(out, rows);
  return out;
}

TEST(Psd, HasThePixelsOfStb) {
  for (const Size size : kSizes) {
    for (const uint32_t planes : {3U, 4U, 5U}) {
      for (const bool packed : {false, true}) {
        const Bytes file = psd(size.width, size.height, 8, planes, 3, packed);
        EXPECT_EQ(read_back(file).colour, planes == 3 ? Colour::rgb : Colour::rgb_alpha);
        expect_like_stb(file);
      }
    }
    for (const uint32_t planes : {3U, 4U}) {
      const Bytes file = psd(size.width, size.height, 16, planes, 3, false);
      expect_like_stb_16(file, planes);
      // Packed, they are the same.
      EXPECT_EQ(difference(read_back(file), read_back(psd(size.width, size.height, 16, planes, 3, true))), "");
    }
  }
}

TEST(Psd, ReadsGrayAndRuns) {
  const Image plain = read_back(psd(9, 5, 8, 2, 1, false));
  EXPECT_EQ(plain.colour, Colour::gray_alpha);
  EXPECT_EQ(difference(plain, read_back(psd(9, 5, 8, 2, 1, true))), "");
  EXPECT_EQ(read_back(psd(9, 5, 16, 1, 1, true)).colour, Colour::gray);
  Bytes file = psd(4, 1, 8, 1, 1, true);
  file.erase(file.end() - 7, file.end());  // the row and its length
  add(file, {0, 5, 0xFE, 7, 128, 0, 9});   // three of 7, nothing, one of 9
  EXPECT_EQ(read_back(file).pixels, (Bytes{7, 7, 7, 9}));
  file.back() = 0;
  file[file.size() - 2] = 1;
  EXPECT_REASON(refusal(file), "a row of another length");
}

TEST(Psd, KeepsProfileAndExif) {
  Bytes resources;
  add_resource(resources, 1005, Bytes(16));
  add_resource(resources, 1039, bytes("profile"));
  add_resource(resources, 1058, bytes(std::string_view("MM\0*\0\0\0\x08", 8)));
  const Bytes file = psd(3, 2, 8, 5, 3, false, resources);
  const Image image = read_back(file);
  ASSERT_EQ(image.chunks.size(), 2U);
  EXPECT_EQ(std::string(image.chunks[0].type.data(), 4), "iCCP");
  EXPECT_EQ(std::string(image.chunks[1].type.data(), 4), "eXIf");
  EXPECT_EQ(notices_of(file),
            (std::vector<std::string>{"1 image resource is left out", "1 further channel is left out"}));
}

TEST(Psd, RefusesWhatItCannotTell) {
  EXPECT_REASON(refusal(psd(2, 2, 8, 4, 4, false)), "colour mode 4");
  EXPECT_REASON(refusal(psd(2, 2, 8, 2, 3, false)), "2 channels");
  EXPECT_REASON(refusal(psd(2, 2, 32, 3, 3, false)), "32 bits");
  EXPECT_REASON(refusal(psd(30001, 1, 8, 3, 3, false)), "30000");
  EXPECT_REASON(refusal(psd(2, 2, 8, 3, 3, false), {.max_pixels = 3}), "limit");
  Bytes file = psd(2, 2, 8, 4, 3, false);
  file.back() = 128;
  EXPECT_REASON(refusal(file), "partly transparent");
  file[5] = 2;
  EXPECT_REASON(refusal(file), "version 2");
  Bytes resources;
  add_resource(resources, 1057, {0, 0, 0, 1, 0});
  EXPECT_REASON(refusal(psd(2, 2, 8, 3, 3, false, resources)), "without a merged image");
  EXPECT_REASON(refusal(psd(2, 2, 8, 3, 3, false, bytes("8BIX00000000"))), "image resources are damaged");
}

TEST(PsdAndTga, DamageIsRefusedOrHarmless) {
  Bytes resources;
  add_resource(resources, 1039, bytes("profile"));
  Bytes unpacked;
  const Bytes files[] = {tga(10, 5, 3, 24, 0, packed_tga(random_bytes(45), 3, &unpacked)),
                         tga(1, 5, 3, 8, 0, Bytes(15), random_bytes(24), 24), psd(5, 3, 8, 4, 3, true, resources),
                         psd(5, 3, 16, 3, 3, false)};
  for (const Bytes& file : files) {
    expect_truncations_are_refused(file);
    expect_flips_are_harmless(file);
  }
}

TEST(Facade, NamesPfm) {
  EXPECT_REASON(refusal(bytes("PF\n1 1\n-1.0\n............")), "a PFM: its samples are floating-point");
}

TEST(Facade, KnowsFormatsAndNames) {
  EXPECT_EQ(formats::known_name(bytes("GIF89a")), "gif");
  EXPECT_EQ(formats::known_name(bytes(std::string_view("BM............\x28\0\0\0........", 26))), "bmp");
  EXPECT_EQ(formats::known_name(tga(3, 1, 1, 8, 0, {1})), "tga");
  EXPECT_EQ(formats::known_name(bytes("8BPS")), "psd");
  EXPECT_EQ(formats::known_name(bytes("\xFF\xD8\xFF")), "jpeg");
  EXPECT_EQ(formats::known_name(bytes("RIFF....WEBP")), "webp");
  EXPECT_EQ(formats::known_name(bytes("P7\n")), "pnm");
  EXPECT_EQ(formats::known_name(bytes("RIFF....WAVE")), "");
  for (const char* name :
       {"a.png", "a.pbm", "a.pgm",   "a.ppm", "a.pnm",  "a.pam", "a.jpg",  "b/a.JPEG", "a.jpe",  "a.WebP", "a.bmp",
        "a.gif", "a.psd", "x.y.Tga", ".jpg",  "a.JFIF", "a.dib", "a.apng", "a.tif",    "a.TIFF", "a.jxl"}) {
    EXPECT_TRUE(formats::is_readable_name(name)) << name;
    EXPECT_EQ(formats::unread_extension(name), "") << name;
  }
  for (const char* name : {"a.l3", "jpg", "a.jpg.gz", "", "a.hdr", "a.exr"}) {
    EXPECT_FALSE(formats::is_readable_name(name)) << name;
  }
  for (const char* name : {"a.dcm", "a.b/c.exr", "a.avif", "a.heic", "a.jp2", "a.nef", "a.dng", "a.svg", "a.ico"}) {
    EXPECT_TRUE(std::string_view(name).ends_with(formats::unread_extension(name))) << name;
    EXPECT_NE(formats::unread_extension(name), "") << name;
  }
  EXPECT_EQ(formats::unread_extension("scan.NII.gz"), ".nii.gz");
  for (const char* name : {"a.l3", "a.txt", "a.json", "a.npy", "dcm", "a.gz", "a.pdf", "a.mp4", ""}) {
    EXPECT_EQ(formats::unread_extension(name), "") << name;
  }
}

}  // namespace
