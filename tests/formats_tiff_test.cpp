// formats/: TIFF, written by libtiff, or by hand where libtiff would not.
#include <tiffio.h>

#include <bit>
#include <functional>

#include "formats_damage.h"
#include "formats_drawing.h"

namespace {

using namespace formats_drawing;

struct Memory {
  Bytes bytes;
  size_t at = 0;
};

tmsize_t read_memory(thandle_t handle, void* to, tmsize_t size) {
  auto* memory = static_cast<Memory*>(handle);
  const size_t count = std::min(static_cast<size_t>(size), memory->bytes.size() - memory->at);
  std::memcpy(to, memory->bytes.data() + memory->at, count);
  memory->at += count;
  return static_cast<tmsize_t>(count);
}

tmsize_t write_memory(thandle_t handle, void* from, tmsize_t size) {
  auto* memory = static_cast<Memory*>(handle);
  const size_t end = memory->at + static_cast<size_t>(size);
  if (end > memory->bytes.size()) memory->bytes.resize(end);
  std::memcpy(memory->bytes.data() + memory->at, from, static_cast<size_t>(size));
  memory->at = end;
  return size;
}

toff_t seek_memory(thandle_t handle, toff_t offset, int whence) {
  auto* memory = static_cast<Memory*>(handle);
  const size_t base = whence == SEEK_CUR ? memory->at : whence == SEEK_END ? memory->bytes.size() : 0;
  memory->at = base + static_cast<size_t>(offset);
  return memory->at;
}

int close_memory(thandle_t) { return 0; }
toff_t size_of_memory(thandle_t handle) { return static_cast<Memory*>(handle)->bytes.size(); }

struct Recipe {
  const char* mode = "w";  // l or b: byte order; 8: a BigTIFF
  uint16_t compression = COMPRESSION_NONE;
  bool tiled = false, apart = false, white_is_zero = false;
  uint32_t rows = 5;                 // of a strip
  std::vector<uint16_t> extra = {};  // kinds of the extra samples
  bool extra_tag = true;
  uint16_t format = SAMPLEFORMAT_UINT;
  std::function<void(TIFF*)> change = {};
};

uint32_t sample_of(const Image& image, size_t index) {
  if (image.bits <= 8) return image.pixels[index];
  uint16_t sample = 0;
  std::memcpy(&sample, image.pixels.data() + 2 * index, 2);
  return sample;
}

// The samples of a part of a row, as a TIFF packs them; beyond the image's right edge zeros.
Bytes packed_row(const Image& image, uint32_t y, uint32_t left, uint32_t width, uint32_t first, uint32_t count) {
  const uint32_t per_pixel = formats::channels(image.colour);
  Bytes row((size_t{width} * count * image.bits + 7) / 8);
  size_t bit = 0;
  for (uint32_t x = left; x < left + width; ++x) {
    for (uint32_t channel = first; channel < first + count; ++channel) {
      const bool inside = x < image.width && y < image.height;
      const uint32_t sample = inside ? sample_of(image, (size_t{y} * image.width + x) * per_pixel + channel) : 0;
      if (image.bits == 16) {
        const auto wide = static_cast<uint16_t>(sample);
        std::memcpy(row.data() + bit / 8, &wide, 2);
        bit += 16;
        continue;
      }
      for (uint32_t i = image.bits; i-- > 0; ++bit) {
        row[bit / 8] = static_cast<uint8_t>(row[bit / 8] | (sample >> i & 1) << (7 - bit % 8));
      }
    }
  }
  return row;
}

void write_page(TIFF* tiff, const Image& image, const Recipe& recipe) {
  const uint32_t samples = formats::channels(image.colour);
  TIFFSetField(tiff, TIFFTAG_IMAGEWIDTH, image.width);
  TIFFSetField(tiff, TIFFTAG_IMAGELENGTH, image.height);
  TIFFSetField(tiff, TIFFTAG_BITSPERSAMPLE, image.bits);
  TIFFSetField(tiff, TIFFTAG_SAMPLESPERPIXEL, samples);
  TIFFSetField(tiff, TIFFTAG_SAMPLEFORMAT, recipe.format);
  TIFFSetField(tiff, TIFFTAG_COMPRESSION, recipe.compression);
  TIFFSetField(tiff, TIFFTAG_PLANARCONFIG, recipe.apart ? PLANARCONFIG_SEPARATE : PLANARCONFIG_CONTIG);
  const bool has_colours = image.colour == Colour::rgb || image.colour == Colour::rgb_alpha;
  const int photometric = image.colour == Colour::palette ? PHOTOMETRIC_PALETTE
                          : has_colours                   ? PHOTOMETRIC_RGB
                          : recipe.white_is_zero          ? PHOTOMETRIC_MINISWHITE
                                                          : PHOTOMETRIC_MINISBLACK;
  TIFFSetField(tiff, TIFFTAG_PHOTOMETRIC, photometric);
  std::vector<uint16_t> extra = recipe.extra;
  if (extra.empty() && samples % 2 == 0) extra = {EXTRASAMPLE_UNASSALPHA};
  if (!extra.empty() && recipe.extra_tag) {
    TIFFSetField(tiff, TIFFTAG_EXTRASAMPLES, static_cast<int>(extra.size()), extra.data());
  }
  if (image.colour == Colour::palette) {
    std::vector<uint16_t> maps[3];
    for (size_t i = 0; i < image.palette.size(); ++i) {
      maps[i % 3].push_back(static_cast<uint16_t>(image.palette[i] * 257));
    }
    TIFFSetField(tiff, TIFFTAG_COLORMAP, maps[0].data(), maps[1].data(), maps[2].data());
  }
  constexpr uint32_t kTile = 16;
  const uint32_t width = recipe.tiled ? kTile : image.width, height = recipe.tiled ? kTile : recipe.rows;
  if (recipe.tiled) {
    TIFFSetField(tiff, TIFFTAG_TILEWIDTH, kTile);
    TIFFSetField(tiff, TIFFTAG_TILELENGTH, kTile);
  } else {
    TIFFSetField(tiff, TIFFTAG_ROWSPERSTRIP, recipe.rows);
  }
  if (recipe.change) recipe.change(tiff);
  uint32_t number = 0;
  for (uint32_t plane = 0; plane < (recipe.apart ? samples : 1); ++plane) {
    for (uint32_t top = 0; top < image.height; top += height) {
      for (uint32_t left = 0; left < image.width; left += width) {
        Bytes part;
        for (uint32_t y = top; y < top + height && (recipe.tiled || y < image.height); ++y) {
          const Bytes row = packed_row(image, y, left, width, plane, recipe.apart ? 1 : samples);
          part.insert(part.end(), row.begin(), row.end());
        }
        const auto size = static_cast<tmsize_t>(part.size());
        EXPECT_EQ(recipe.tiled ? TIFFWriteEncodedTile(tiff, number, part.data(), size)
                               : TIFFWriteEncodedStrip(tiff, number, part.data(), size),
                  size);
        ++number;
      }
    }
  }
  TIFFWriteDirectory(tiff);
}

Bytes tiff(const std::vector<Image>& pages, const Recipe& recipe = {}) {
  Memory memory;
  TIFF* made = TIFFClientOpen("", recipe.mode, &memory, read_memory, write_memory, seek_memory, close_memory,
                              size_of_memory, nullptr, nullptr);
  EXPECT_NE(made, nullptr);
  for (const Image& page : pages) write_page(made, page, recipe);
  TIFFClose(made);
  return memory.bytes;
}

Bytes tiff(const Image& image, const Recipe& recipe = {}) { return tiff(std::vector<Image>{image}, recipe); }

// Where the value of a tag stands in the first directory of a small-endian file.
size_t value_at(const Bytes& file, uint32_t tag) {
  const auto u16 = [&](size_t at) { return file[at] | file[at + 1] << 8; };
  const size_t directory = static_cast<size_t>(u16(4) | u16(6) << 16);
  for (int i = 0; i < u16(directory); ++i) {
    const size_t at = directory + 2 + 12 * static_cast<size_t>(i);
    if (static_cast<uint32_t>(u16(at)) == tag) return at + 8;
  }
  ADD_FAILURE() << "no tag " << tag;
  return 0;
}

// The bytes of a tag of the first directory of an eXIf chunk; none where it is not there.
Bytes exif_value(const Bytes& exif, bool big_endian, uint32_t tag) {
  const auto number = [&](size_t at, size_t count) {
    uint32_t value = 0;
    for (size_t i = 0; i < count; ++i) value = value << 8 | exif.at(at + (big_endian ? i : count - 1 - i));
    return value;
  };
  const size_t directory = number(4, 4);
  for (size_t i = 0; i < number(directory, 2); ++i) {
    const size_t entry = directory + 2 + 12 * i;
    if (number(entry, 2) != tag) continue;
    const uint32_t type = number(entry + 2, 2);
    const size_t size = number(entry + 4, 4) * (type == TIFF_DOUBLE ? 8 : type == TIFF_SHORT ? 2 : 1);
    const size_t at = size <= 4 ? entry + 8 : number(entry + 8, 4);
    return Bytes(exif.begin() + static_cast<ptrdiff_t>(at), exif.begin() + static_cast<ptrdiff_t>(at + size));
  }
  return Bytes();
}

template <typename Number>
Bytes numbers(bool big_endian, std::initializer_list<Number> values) {
  Bytes out;
  for (const Number value : values) {
    uint8_t raw[sizeof(Number)];
    std::memcpy(raw, &value, sizeof raw);
    if (big_endian != (std::endian::native == std::endian::big)) std::reverse(std::begin(raw), std::end(raw));
    out.insert(out.end(), std::begin(raw), std::end(raw));
  }
  return out;
}

const Chunk* chunk_of(const Image& image, const char* type) {
  const auto found = std::find_if(image.chunks.begin(), image.chunks.end(),
                                  [&](const Chunk& one) { return std::equal(one.type.begin(), one.type.end(), type); });
  return found == image.chunks.end() ? nullptr : &*found;
}

TEST(Tiff, EveryDepthAndColourIsExact) {
  for (const Colour colour : {Colour::gray, Colour::gray_alpha, Colour::rgb, Colour::rgb_alpha, Colour::palette}) {
    for (uint32_t bits = 1; bits <= 16; ++bits) {
      if (colour == Colour::palette && bits > 8) continue;
      for (const bool tiled : {false, true}) {
        for (const bool apart : {false, true}) {
          const Image image = drawn(37, 21, bits, colour);
          std::vector<std::string> notices;
          const Bytes file = tiff(image, {.tiled = tiled, .apart = apart});
          EXPECT_EQ(difference(image, read_back(file, {.notices = &notices})), "")
              << bits << " bits of " << formats::name(colour) << (tiled ? ", tiled" : "") << (apart ? ", apart" : "");
          EXPECT_TRUE(notices.empty());
        }
      }
    }
  }
}

TEST(Tiff, ReadsBothByteOrdersAndBigFiles) {
  for (const char* mode : {"wl", "wb", "wl8", "wb8"}) {
    for (const uint32_t bits : {1U, 8U, 12U, 16U}) {
      const Image image = drawn(19, 11, bits, Colour::rgb);
      const Bytes file = tiff(image, {.mode = mode});
      EXPECT_EQ(formats::known_name(file), "tiff");
      EXPECT_EQ(difference(image, read_back(file)), "") << mode;
    }
  }
}

TEST(Tiff, ReadsEveryLosslessCompression) {
  const uint16_t kinds[] = {COMPRESSION_LZW,     COMPRESSION_PACKBITS, COMPRESSION_ADOBE_DEFLATE,
                            COMPRESSION_DEFLATE, COMPRESSION_ZSTD,     COMPRESSION_LZMA};
  for (const uint16_t kind : kinds) {
    if (!TIFFIsCODECConfigured(kind)) continue;
    for (const uint32_t bits : {4U, 8U, 16U}) {
      const Image image = drawn(33, 18, bits, Colour::rgb);
      EXPECT_EQ(difference(image, read_back(tiff(image, {.compression = kind, .tiled = bits == 8}))), "") << kind;
    }
  }
  const Image image = drawn(33, 18, 16, Colour::rgb_alpha);
  const Recipe with_predictor{.compression = COMPRESSION_LZW,
                              .change = [](TIFF* made) { TIFFSetField(made, TIFFTAG_PREDICTOR, 2); }};
  EXPECT_EQ(difference(image, read_back(tiff(image, with_predictor))), "");
  for (const uint16_t fax :
       {uint16_t{COMPRESSION_CCITTRLE}, uint16_t{COMPRESSION_CCITTFAX3}, uint16_t{COMPRESSION_CCITTFAX4}}) {
    const Image page = drawn(61, 23, 1, Colour::gray);
    EXPECT_EQ(difference(page, read_back(tiff(page, {.compression = fax}))), "") << fax;
  }
}

TEST(Tiff, MinIsWhiteIsTurnedOver) {
  for (const uint32_t bits : {1U, 4U, 8U, 10U, 16U}) {
    Image image = drawn(9, 7, bits, Colour::gray_alpha);
    const Image read = read_back(tiff(image, {.white_is_zero = true}));
    for (size_t i = 0; i < image.pixels.size() / formats::bytes_per_sample(bits); ++i) {
      const uint32_t sample = sample_of(image, i);
      EXPECT_EQ(sample_of(read, i), i % 2 == 0 ? (1U << bits) - 1 - sample : sample);
    }
  }
}

TEST(Tiff, JpegInTiffIsLossyAndSaysSo) {
  Image image = drawn(32, 32, 8, Colour::rgb);
  std::fill(image.pixels.begin(), image.pixels.end(), uint8_t{77});
  for (const int photometric : {PHOTOMETRIC_RGB, PHOTOMETRIC_YCBCR}) {
    const Recipe recipe{.compression = COMPRESSION_JPEG, .rows = 16, .change = [&](TIFF* made) {
                          TIFFSetField(made, TIFFTAG_PHOTOMETRIC, photometric);
                          TIFFSetField(made, TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
                        }};
    std::vector<std::string> notices;
    EXPECT_EQ(difference(image, read_back(tiff(image, recipe), {.notices = &notices})), "");
    EXPECT_EQ(notices, std::vector<std::string>{"lossy JPEG: the decoded pixels are kept"});
  }
}

TEST(Tiff, PalettesOfSixteenBitsBecomeTheirUpperEight) {
  const Image image = drawn(8, 8, 2, Colour::palette);
  const auto palette_of = [&](uint16_t first, std::vector<std::string>& notices) {
    const std::vector<uint16_t> map = {first, 0x2100, 0x00FF, 0};
    const Bytes file =
        tiff(image,
             {.change = [&](TIFF* made) { TIFFSetField(made, TIFFTAG_COLORMAP, map.data(), map.data(), map.data()); }});
    return read_back(file, {.notices = &notices}).palette;
  };
  std::vector<std::string> notices;
  EXPECT_EQ(palette_of(0x1234, notices)[0], 0x12);
  EXPECT_EQ(notices, std::vector<std::string>{"the 16-bit colours of the palette are reduced to their upper 8 bits"});
  const std::vector<uint16_t> small = {7, 255, 0, 1};
  const Recipe old{
      .change = [&](TIFF* made) { TIFFSetField(made, TIFFTAG_COLORMAP, small.data(), small.data(), small.data()); }};
  EXPECT_EQ(read_back(tiff(image, old)).palette, (Bytes{7, 7, 7, 255, 255, 255, 0, 0, 0, 1, 1, 1}));
}

TEST(Tiff, ExtraSamplesHaveARule) {
  const Image four = drawn(9, 7, 8, Colour::rgb_alpha);
  std::vector<std::string> notices;
  // Without the tag the fourth is alpha; without a meaning it is left out, with a notice.
  EXPECT_EQ(difference(four, read_back(tiff(four, {.extra_tag = false}))), "");
  for (const bool apart : {false, true}) {
    notices.clear();
    const Recipe unspecified{.apart = apart, .extra = {EXTRASAMPLE_UNSPECIFIED}};
    const Image three = read_back(tiff(four, unspecified), {.notices = &notices});
    EXPECT_EQ(three.colour, Colour::rgb);
    for (size_t i = 0; i < three.pixels.size(); ++i) ASSERT_EQ(three.pixels[i], four.pixels[i / 3 * 4 + i % 3]);
    EXPECT_EQ(notices, std::vector<std::string>{"1 sample of each pixel without a stated meaning is left out"});
  }
  const Recipe associated{.extra = {EXTRASAMPLE_ASSOCALPHA}};
  EXPECT_REASON(refusal(tiff(four, associated)), "premultiplied alpha");
  Image opaque = four;
  for (size_t i = 3; i < opaque.pixels.size(); i += 4) opaque.pixels[i] = i % 8 == 3 ? 255 : 0;
  EXPECT_EQ(difference(opaque, read_back(tiff(opaque, associated))), "");
}

TEST(Tiff, RefusesWhatItDoesNotReadByName) {
  const Image gray = drawn(8, 8, 16, Colour::gray);
  EXPECT_REASON(refusal(tiff(gray, {.format = SAMPLEFORMAT_INT})), "signed samples of 16 bits");
  EXPECT_REASON(refusal(tiff(gray, {.format = SAMPLEFORMAT_IEEEFP})), "floating-point samples of 16 bits");
  const auto photometric = [](int value) {
    return Recipe{.change = [value](TIFF* made) { TIFFSetField(made, TIFFTAG_PHOTOMETRIC, value); }};
  };
  const Image inks = drawn(8, 8, 8, Colour::rgb_alpha);
  EXPECT_REASON(refusal(tiff(inks, photometric(PHOTOMETRIC_SEPARATED))), "inks (CMYK)");
  EXPECT_REASON(refusal(tiff(drawn(8, 8, 8, Colour::rgb), photometric(PHOTOMETRIC_CIELAB))), "CIE Lab");
  Bytes wide = tiff(drawn(8, 8, 8, Colour::gray), {.mode = "wl"});
  wide[value_at(wide, TIFFTAG_BITSPERSAMPLE)] = 32;
  EXPECT_REASON(refusal(wide), "samples of 32 bits");
  Bytes old_jpeg = tiff(drawn(8, 8, 8, Colour::gray), {.mode = "wl"});
  old_jpeg[value_at(old_jpeg, TIFFTAG_COMPRESSION)] = COMPRESSION_OJPEG;
  EXPECT_REASON(refusal(old_jpeg), "JPEG");
}

TEST(Tiff, OfSeveralPagesOneIsChosen) {
  const std::vector<Image> pages = {drawn(8, 8, 8, Colour::gray), drawn(5, 3, 16, Colour::rgb),
                                    drawn(1, 1, 1, Colour::palette)};
  const Bytes file = tiff(pages);
  EXPECT_EQ(*formats::count_pages(file), 3U);
  EXPECT_EQ(*formats::count_pages(bytes("P5 1 1 255 x")), 1U);
  EXPECT_EQ(refusal(file), "a TIFF of 3 pages instead of one");
  for (uint32_t page = 1; page <= 3; ++page) {
    EXPECT_EQ(difference(pages[page - 1], read_back(file, {.page = page})), "");
  }
  EXPECT_EQ(refusal(file, {.page = 4}), "there is no page 4, only 3");
}

TEST(Tiff, ReducedImagesAndMasksAreNoPages) {
  int made_pages = 0;
  const Recipe overviews{.change = [&](TIFF* made) {
    if (made_pages++ > 0)
      TIFFSetField(made, TIFFTAG_SUBFILETYPE, made_pages == 2 ? FILETYPE_REDUCEDIMAGE : FILETYPE_MASK);
  }};
  const std::vector<Image> pages = {drawn(8, 8, 8, Colour::gray), drawn(4, 4, 8, Colour::gray),
                                    drawn(8, 8, 1, Colour::gray)};
  const Bytes file = tiff(pages, overviews);
  std::vector<std::string> notices;
  EXPECT_EQ(difference(pages[0], read_back(file, {.notices = &notices})), "");
  EXPECT_EQ(notices, std::vector<std::string>{"2 reduced images or masks are left out"});
}

// GeoTIFF's tags, a description and the orientation, as the directory of an eXIf chunk.
TEST(Tiff, KeepsOtherTags) {
  static const TIFFFieldInfo kGeo[] = {
      {33550, -1, -1, TIFF_DOUBLE, FIELD_CUSTOM, 1, 1, const_cast<char*>("ModelPixelScale")},
      {34735, -1, -1, TIFF_SHORT, FIELD_CUSTOM, 1, 1, const_cast<char*>("GeoKeyDirectory")}};
  for (const char* mode : {"wl", "wb", "wl8", "wb8"}) {
    const double scale[] = {0.5, 0.25, 0};
    const uint16_t keys[] = {1, 1, 0, 1, 1024, 0, 1, 2};
    const Bytes file =
        tiff(drawn(4, 4, 8, Colour::gray), {.mode = mode, .change = [&](TIFF* made) {
                                              TIFFMergeFieldInfo(made, kGeo, 2);
                                              TIFFSetField(made, 33550, 3, scale);
                                              TIFFSetField(made, 34735, 8, keys);
                                              TIFFSetField(made, TIFFTAG_IMAGEDESCRIPTION, "a field of wheat");
                                              TIFFSetField(made, TIFFTAG_ORIENTATION, ORIENTATION_RIGHTTOP);
                                              TIFFSetField(made, TIFFTAG_XRESOLUTION, 300.0);
                                              TIFFSetField(made, TIFFTAG_YRESOLUTION, 72.0);
                                              TIFFSetField(made, TIFFTAG_ICCPROFILE, 4, "icc!");
                                            }});
    const Image image = read_back(file);
    const Chunk* exif = chunk_of(image, "eXIf");
    ASSERT_NE(exif, nullptr);
    ASSERT_NE(chunk_of(image, "iCCP"), nullptr);
    ASSERT_NE(chunk_of(image, "pHYs"), nullptr);
    EXPECT_EQ(chunk_of(image, "pHYs")->data, (Bytes{0, 0, 0x2E, 0x23, 0, 0, 0x0B, 0x13, 1}));
    EXPECT_EQ(difference(image, read_back(written(Format::png, image))), "");

    const bool big_endian = mode[1] == 'b';
    EXPECT_EQ(exif_value(exif->data, big_endian, TIFFTAG_IMAGEDESCRIPTION), bytes({"a field of wheat", 17}));
    EXPECT_EQ(exif_value(exif->data, big_endian, TIFFTAG_ORIENTATION), numbers<uint16_t>(big_endian, {6}));
    EXPECT_EQ(exif_value(exif->data, big_endian, 34735), numbers<uint16_t>(big_endian, {1, 1, 0, 1, 1024, 0, 1, 2}));
    EXPECT_EQ(exif_value(exif->data, big_endian, 33550), numbers<double>(big_endian, {0.5, 0.25, 0}));
    EXPECT_EQ(exif_value(exif->data, big_endian, TIFFTAG_IMAGEWIDTH), Bytes());
  }
}

TEST(Tiff, ChecksLimitsBeforeAllocating) {
  Bytes file = tiff(drawn(8, 8, 8, Colour::rgb), {.mode = "wl"});
  EXPECT_REASON(refusal(file, {.max_pixels = 63}), "more than the limit of 63");
  EXPECT_REASON(refusal(file, {.max_bytes = 191}), "more than the limit of 191 bytes");
  EXPECT_REASON(refusal(file, {.max_edge = 7}), "longer than the limit of 7");
  file[value_at(file, TIFFTAG_IMAGELENGTH) + 1] = 0xFF;
  EXPECT_REASON(refusal(file), "too short for the size of the image");
}

// A tile may be larger than the image: tiles of 2^30 bytes for one pixel cost no memory.
TEST(Tiff, BoundsTiles) {
  Bytes file = tiff(drawn(8, 8, 8, Colour::gray), {.mode = "wl", .compression = COMPRESSION_LZW, .tiled = true});
  for (const uint32_t tag : {uint32_t{TIFFTAG_TILEWIDTH}, uint32_t{TIFFTAG_TILELENGTH}}) {
    file[value_at(file, tag) + 1] = 0x80;  // 32784
  }
  EXPECT_REASON(refusal(file, {.max_bytes = 1 << 20}), "the limit");
}

TEST(Tiff, DirectoriesThatGoInACircleAreRefused) {
  Bytes file = tiff(drawn(8, 8, 8, Colour::gray), {.mode = "wl"});
  std::copy_n(file.begin() + 4, 4, file.begin() + static_cast<ptrdiff_t>(value_at(file, TIFFTAG_SAMPLEFORMAT)) + 4);
  EXPECT_REASON(refusal(file), "form a circle");
}

TEST(Tiff, DamageIsRefusedOrHarmless) {
  const Bytes files[] = {tiff(drawn(17, 9, 12, Colour::rgb), {.compression = COMPRESSION_LZW}),
                         tiff(drawn(9, 5, 4, Colour::palette), {.compression = COMPRESSION_PACKBITS}),
                         tiff(drawn(31, 9, 1, Colour::gray), {.compression = COMPRESSION_CCITTFAX4}),
                         tiff(drawn(9, 5, 8, Colour::rgb_alpha),
                              {.mode = "wb8", .compression = COMPRESSION_ADOBE_DEFLATE, .tiled = true, .apart = true})};
  for (const Bytes& file : files) {
    for (size_t size = 0; size < file.size(); ++size) {
      const auto image = read_exact(file.data(), size);
      if (image) {
        EXPECT_EQ(formats::problem(*image), "");
      }
    }
    expect_flips_are_harmless(file);
  }
}

}  // namespace
