// formats/: JPEG and WebP, made by their libraries' own encoders. Pixels are those of the libraries' plain decoding.
#include <cstdio>  // before jpeglib.h, which needs it

#include <jpeglib.h>
#include <webp/decode.h>
#include <webp/encode.h>
#include <webp/mux.h>
#include <zlib.h>

#include <cstdlib>
#include <functional>

#include "formats_damage.h"
#include "formats_drawing.h"

namespace {

using namespace formats_drawing;

// Something like a photograph: noise would leave JPEG nothing to do.
Image scene(uint32_t width, uint32_t height, Colour colour) {
  Image image = drawn(width, height, 8, colour);
  const size_t count = formats::channels(colour);
  for (size_t i = 0; i < image.pixels.size(); ++i) {
    const size_t x = i / count % width;
    const size_t y = i / count / width;
    image.pixels[i] = static_cast<uint8_t>((3 * x + 5 * y + 40 * (i % count) + image.pixels[i] % 16) & 0xFF);
  }
  return image;
}

using Change = std::function<void(jpeg_compress_struct&)>;

// What libjpeg makes of an image: `before` changes its parameters, `inside` writes markers.
Bytes jpeg(const Image& image, J_COLOR_SPACE space, int components, const Change& before = {},
           const Change& inside = {}) {
  jpeg_compress_struct info{};
  jpeg_error_mgr manager{};
  info.err = jpeg_std_error(&manager);
  jpeg_create_compress(&info);
  unsigned char* out = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &out, &size);
  info.image_width = image.width;
  info.image_height = image.height;
  info.input_components = components;
  info.in_color_space = space;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, 90, TRUE);
  if (before) before(info);
  jpeg_start_compress(&info, TRUE);
  if (inside) inside(info);
  Bytes pixels = image.pixels;
  while (info.next_scanline < info.image_height) {
    JSAMPROW row = pixels.data() + size_t{info.next_scanline} * image.width * static_cast<size_t>(components);
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  Bytes file(out, out + size);
  std::free(out);
  return file;
}

Bytes jpeg(const Image& image, const Change& before = {}, const Change& inside = {}) {
  const bool gray = image.colour == Colour::gray;
  return jpeg(image, gray ? JCS_GRAYSCALE : JCS_RGB, gray ? 1 : 3, before, inside);
}

// The pixels as libjpeg gives them by default.
Bytes decoded(const Bytes& file) {
  jpeg_decompress_struct info{};
  jpeg_error_mgr manager{};
  info.err = jpeg_std_error(&manager);
  jpeg_create_decompress(&info);
  jpeg_mem_src(&info, file.data(), static_cast<unsigned long>(file.size()));
  jpeg_read_header(&info, TRUE);
  jpeg_start_decompress(&info);
  const size_t row_bytes = size_t{info.output_width} * static_cast<size_t>(info.output_components);
  Bytes pixels(row_bytes * info.output_height);
  while (info.output_scanline < info.output_height) {
    JSAMPROW row = pixels.data() + info.output_scanline * row_bytes;
    jpeg_read_scanlines(&info, &row, 1);
  }
  jpeg_finish_decompress(&info);
  jpeg_destroy_decompress(&info);
  return pixels;
}

void sample_as(jpeg_compress_struct& info, int across, int down) {
  info.comp_info[0].h_samp_factor = across;
  info.comp_info[0].v_samp_factor = down;
}

Bytes inflated_profile(const Chunk& chunk) {
  const auto end_of_name = std::find(chunk.data.begin(), chunk.data.end(), 0);
  EXPECT_GT(chunk.data.end() - end_of_name, 2);
  EXPECT_EQ(end_of_name[1], 0);
  const Bytes packed(end_of_name + 2, chunk.data.end());
  Bytes profile(1 << 20);
  uLongf size = profile.size();
  EXPECT_EQ(uncompress(profile.data(), &size, packed.data(), packed.size()), Z_OK);
  profile.resize(size);
  return profile;
}

Bytes noise(size_t size) {
  Dice dice;
  Bytes out(size);
  for (uint8_t& byte : out) byte = static_cast<uint8_t>(dice.roll(256));
  return out;
}

std::vector<std::string> types_of(const Image& image) {
  std::vector<std::string> types;
  for (const Chunk& one : image.chunks) types.emplace_back(one.type.data(), 4);
  return types;
}

const Bytes kExif = bytes(std::string_view("II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0", 26));

TEST(Jpeg, HasThePixelsOfTheLibrary) {
  for (const Colour colour : {Colour::gray, Colour::rgb}) {
    for (const Size size : kSizes) {
      const Image image = scene(size.width, size.height, colour);
      for (const int across : {1, 2}) {
        for (const int down : {1, 2}) {
          for (const bool progressive : {false, true}) {
            const Bytes file = jpeg(image, [&](jpeg_compress_struct& info) {
              sample_as(info, across, down);
              if (progressive) jpeg_simple_progression(&info);
            });
            const Image read = read_back(file);
            EXPECT_EQ(read.width, size.width);
            EXPECT_EQ(read.height, size.height);
            EXPECT_EQ(read.bits, 8U);
            EXPECT_EQ(read.colour, colour);
            EXPECT_EQ(read.pixels, decoded(file));
            EXPECT_EQ(formats::problem(read), "");
          }
        }
      }
    }
  }
}

TEST(Jpeg, ReadsOtherCodings) {
  const Image image = scene(61, 37, Colour::rgb);
  const Change setups[] = {
      [](jpeg_compress_struct& info) { info.restart_interval = 2; },
      [](jpeg_compress_struct& info) { info.optimize_coding = TRUE; },
      [](jpeg_compress_struct& info) { info.arith_code = TRUE; },
      [](jpeg_compress_struct& info) { jpeg_set_colorspace(&info, JCS_RGB); },
  };
  for (const Change& setup : setups) {
    const Bytes file = jpeg(image, setup);
    EXPECT_EQ(read_back(file).pixels, decoded(file));
  }
}

TEST(Jpeg, SaysThatItIsLossy) {
  std::vector<std::string> notices;
  (void)read_back(jpeg(scene(8, 8, Colour::rgb)), {.notices = &notices});
  EXPECT_EQ(notices, std::vector<std::string>{"lossy JPEG: the decoded pixels are kept"});
}

TEST(Jpeg, KeepsProfileExifAndDensity) {
  const Bytes profile = noise(150000);  // three parts
  Bytes app1 = bytes(std::string_view("Exif\0\0", 6));
  app1.insert(app1.end(), kExif.begin(), kExif.end());
  const Bytes file = jpeg(
      scene(9, 5, Colour::rgb),
      [](jpeg_compress_struct& info) {
        info.density_unit = 1;
        info.X_density = 300;
        info.Y_density = 72;
      },
      [&](jpeg_compress_struct& info) {
        jpeg_write_marker(&info, JPEG_APP0 + 1, app1.data(), static_cast<unsigned>(app1.size()));
        jpeg_write_icc_profile(&info, profile.data(), static_cast<unsigned>(profile.size()));
        jpeg_write_marker(&info, JPEG_COM, reinterpret_cast<const JOCTET*>("hello"), 5);
        jpeg_write_marker(&info, JPEG_APP0 + 13, reinterpret_cast<const JOCTET*>("Photoshop"), 9);
      });
  std::vector<std::string> notices;
  const Image image = read_back(file, {.notices = &notices});
  ASSERT_EQ(types_of(image), (std::vector<std::string>{"iCCP", "eXIf", "pHYs"}));
  for (const Chunk& one : image.chunks) EXPECT_EQ(one.place, formats::kBeforePalette);
  EXPECT_EQ(inflated_profile(image.chunks[0]), profile);
  EXPECT_EQ(image.chunks[1].data, kExif);
  EXPECT_EQ(image.chunks[2].data, (Bytes{0, 0, 0x2E, 0x23, 0, 0, 0x0B, 0x13, 1}));  // 11811 and 2835 a metre
  ASSERT_EQ(notices.size(), 4U);
  EXPECT_EQ(std::count(notices.begin(), notices.end(), "a comment of 5 bytes is left out"), 1);
  EXPECT_EQ(std::count(notices.begin(), notices.end(), "application data (APP13) of 9 bytes is left out"), 1);
  // It survives a PNG.
  EXPECT_EQ(difference(image, read_back(written(Format::png, image))), "");

  EXPECT_REASON(refusal(file, {.max_chunk_bytes = 1000}), "over the limit of 1000 bytes");
  EXPECT_EQ(refusal(file, {.max_chunk_bytes = 1 << 20}), "read");
}

TEST(Jpeg, DensityWithoutUnitIsARatio) {
  const auto density = [](uint8_t unit, uint16_t across, uint16_t down) {
    const Image image = read_back(jpeg(scene(2, 2, Colour::gray), [&](jpeg_compress_struct& info) {
      info.density_unit = unit;
      info.X_density = across;
      info.Y_density = down;
    }));
    return image.chunks.empty() ? Bytes() : image.chunks[0].data;
  };
  EXPECT_EQ(density(0, 1, 1), Bytes());
  EXPECT_EQ(density(0, 2, 1), (Bytes{0, 0, 0, 2, 0, 0, 0, 1, 0}));
  EXPECT_EQ(density(2, 118, 118), (Bytes{0, 0, 0x2E, 0x18, 0, 0, 0x2E, 0x18, 1}));
  EXPECT_EQ(density(1, 0, 0), Bytes());
}

TEST(Jpeg, RefusesADamagedProfile) {
  const Bytes file = jpeg(scene(2, 2, Colour::gray), {}, [](jpeg_compress_struct& info) {
    const Bytes part = bytes(std::string_view("ICC_PROFILE\0\x01\x02half", 18));  // the first of two
    jpeg_write_marker(&info, JPEG_APP0 + 2, part.data(), static_cast<unsigned>(part.size()));
  });
  EXPECT_REASON(refusal(file), "colour profile: ");
}

TEST(Jpeg, LeavesOutExifThatIsNone) {
  const Bytes file = jpeg(scene(2, 2, Colour::gray), {}, [](jpeg_compress_struct& info) {
    jpeg_write_marker(&info, JPEG_APP0 + 1, reinterpret_cast<const JOCTET*>("Exif\0\0junk"), 10);
    jpeg_write_marker(&info, JPEG_APP0 + 1, reinterpret_cast<const JOCTET*>("Exif\0\0"), 6);
  });
  std::vector<std::string> notices;
  EXPECT_TRUE(read_back(file, {.notices = &notices}).chunks.empty());
  EXPECT_EQ(notices[0], "EXIF without a TIFF header of 4 bytes is left out");
}

TEST(Jpeg, InksBecomeColours) {
  Image image = drawn(8, 8, 8, Colour::rgb_alpha);  // four channels: inks, 255 for none
  for (size_t i = 0; i < image.pixels.size(); ++i) image.pixels[i] = std::array<uint8_t, 4>{255, 128, 0, 200}[i % 4];
  const auto best = [](jpeg_compress_struct& info) { jpeg_set_quality(&info, 100, TRUE); };
  const Bytes file = jpeg(image, JCS_CMYK, 4, best);
  std::vector<std::string> notices;
  const Image colours = read_back(file, {.notices = &notices});
  ASSERT_EQ(colours.colour, Colour::rgb);
  EXPECT_EQ((Bytes{colours.pixels[0], colours.pixels[1], colours.pixels[2]}), (Bytes{200, 100, 0}));
  EXPECT_REASON(notices[0], "CMYK JPEG");
  EXPECT_EQ(
      read_back(jpeg(image, JCS_CMYK, 4, [](jpeg_compress_struct& info) { jpeg_set_colorspace(&info, JCS_YCCK); }))
          .colour,
      Colour::rgb);
}

TEST(Jpeg, ReadsPastBytesBetweenMarkers) {
  const Bytes plain = jpeg(scene(8, 8, Colour::gray));
  Bytes file = plain;
  file.insert(file.end() - 2, 40, uint8_t{0});
  std::vector<std::string> notices;
  EXPECT_EQ(read_back(file, {.notices = &notices}).pixels, read_back(plain).pixels);
  EXPECT_REASON(notices[0], "extraneous bytes before marker 0xd9");
}

TEST(Jpeg, TellsOfAnOrientation) {
  const Bytes file = jpeg(scene(2, 2, Colour::gray), {}, [](jpeg_compress_struct& info) {
    const Bytes exif =
        bytes(std::string_view("Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0", 32));
    jpeg_write_marker(&info, JPEG_APP0 + 1, exif.data(), static_cast<unsigned>(exif.size()));
  });
  std::vector<std::string> notices;
  (void)read_back(file, {.notices = &notices});
  EXPECT_EQ(notices[0], "EXIF orientation 6 is kept as metadata; the pixels are not rotated");
}

TEST(Jpeg, RefusesOtherComponents) {
  EXPECT_REASON(refusal(jpeg(drawn(8, 8, 8, Colour::gray_alpha), JCS_UNKNOWN, 2)), "a JPEG of 2 components");
}

TEST(Jpeg, ChecksLimitsBeforeAllocating) {
  Bytes file = jpeg(scene(8, 8, Colour::rgb));
  EXPECT_REASON(refusal(file, {.max_pixels = 63}), "more than the limit of 63");
  EXPECT_REASON(refusal(file, {.max_bytes = 191}), "more than the limit of 191 bytes");
  EXPECT_REASON(refusal(file, {.max_edge = 7}), "longer than the limit of 7");
  const uint8_t frame[] = {0xFF, 0xC0, 0, 17, 8};
  const auto found = std::search(file.begin(), file.end(), std::begin(frame), std::end(frame));
  ASSERT_NE(found, file.end());
  std::fill_n(found + 5, 4, uint8_t{0xF0});
  EXPECT_REASON(refusal(file), "limit");
  const uint64_t all = UINT64_MAX;
  EXPECT_REASON(refusal(file, {.max_pixels = all, .max_bytes = all}), "too short for the size of the image");
}

TEST(Jpeg, BoundsTheScans) {
  const Bytes file = jpeg(scene(16, 16, Colour::gray), [](jpeg_compress_struct& info) {
    // Spectral bands alone make 64 scans, and one bit that comes later 63 more.
    static std::vector<jpeg_scan_info> scans;
    scans.clear();
    scans.push_back({1, {0}, 0, 0, 0, 0});
    for (int bits : {1, 0}) {
      for (int k = 1; k < 64; ++k) scans.push_back({1, {0}, k, k, bits == 1 ? 0 : 1, bits});
    }
    info.scan_info = scans.data();
    info.num_scans = static_cast<int>(scans.size());
  });
  EXPECT_REASON(refusal(file), "more than 100 scans");
}

// The scan of one component after the other, without the last.
TEST(Jpeg, RefusesAMissingComponent) {
  static const jpeg_scan_info scans[] = {{1, {0}, 0, 63, 0, 0}, {1, {1}, 0, 63, 0, 0}, {1, {2}, 0, 63, 0, 0}};
  Bytes file = jpeg(scene(16, 16, Colour::rgb), [](jpeg_compress_struct& info) {
    info.scan_info = scans;
    info.num_scans = 3;
  });
  EXPECT_EQ(refusal(file), "read");
  size_t last = 0;
  for (size_t i = 0; i + 1 < file.size(); ++i) {
    if (file[i] == 0xFF && file[i + 1] == 0xDA) last = i;
  }
  file.resize(last);
  file.insert(file.end(), {0xFF, 0xD9});
  EXPECT_REASON(refusal(file), "a component is missing");
}

TEST(Jpeg, SaysWhatFollows) {
  Bytes file = jpeg(scene(8, 8, Colour::gray));
  file.insert(file.end(), 5, 0);
  std::vector<std::string> notices;
  (void)read_back(file, {.notices = &notices});
  EXPECT_EQ(notices.back(), "5 bytes after the image are left out");
}

TEST(Jpeg, DamageIsRefusedOrHarmless) {
  Bytes app1 = bytes(std::string_view("Exif\0\0", 6));
  app1.insert(app1.end(), kExif.begin(), kExif.end());
  const auto exif = [&](jpeg_compress_struct& info) {
    jpeg_write_marker(&info, JPEG_APP0 + 1, app1.data(), static_cast<unsigned>(app1.size()));
    jpeg_write_icc_profile(&info, app1.data(), 20);
  };
  const auto progressive = [](jpeg_compress_struct& info) { jpeg_simple_progression(&info); };
  for (const Bytes& file : {jpeg(scene(17, 9, Colour::rgb), {}, exif), jpeg(scene(17, 9, Colour::rgb), progressive),
                            jpeg(scene(5, 7, Colour::gray))}) {
    expect_truncations_are_refused(file);
    expect_flips_are_harmless(file);
  }
}

// WebP.

Bytes webp(const Image& image, bool lossless, int quality = 80) {
  const bool alpha = image.colour == Colour::rgb_alpha;
  WebPConfig config;
  EXPECT_TRUE(WebPConfigInit(&config));
  config.lossless = lossless;
  config.exact = 1;
  config.quality = static_cast<float>(quality);
  WebPPicture picture;
  EXPECT_TRUE(WebPPictureInit(&picture));
  picture.use_argb = lossless;
  picture.width = static_cast<int>(image.width);
  picture.height = static_cast<int>(image.height);
  const int stride = picture.width * (alpha ? 4 : 3);
  EXPECT_TRUE(alpha ? WebPPictureImportRGBA(&picture, image.pixels.data(), stride)
                    : WebPPictureImportRGB(&picture, image.pixels.data(), stride));
  WebPMemoryWriter writer;
  WebPMemoryWriterInit(&writer);
  picture.writer = WebPMemoryWrite;
  picture.custom_ptr = &writer;
  EXPECT_TRUE(WebPEncode(&config, &picture));
  WebPPictureFree(&picture);
  Bytes file(writer.mem, writer.mem + writer.size);
  WebPMemoryWriterClear(&writer);
  return file;
}

Bytes with_chunks(const Bytes& file, std::initializer_list<std::pair<const char*, Bytes>> chunks) {
  const WebPData data{file.data(), file.size()};
  WebPMux* mux = WebPMuxCreate(&data, 1);
  for (const auto& [type, contents] : chunks) {
    const WebPData chunk{contents.data(), contents.size()};
    EXPECT_EQ(WebPMuxSetChunk(mux, type, &chunk, 1), WEBP_MUX_OK);
  }
  WebPData out{};
  EXPECT_EQ(WebPMuxAssemble(mux, &out), WEBP_MUX_OK);
  WebPMuxDelete(mux);
  Bytes made(out.bytes, out.bytes + out.size);
  WebPDataClear(&out);
  return made;
}

TEST(WebP, LosslessIsExact) {
  for (const Colour colour : {Colour::rgb, Colour::rgb_alpha}) {
    for (const Size size : kSizes) {
      const Image image = drawn(size.width, size.height, 8, colour);
      std::vector<std::string> notices;
      EXPECT_EQ(difference(image, read_back(webp(image, true), {.notices = &notices})), "");
      EXPECT_TRUE(notices.empty());
    }
  }
}

TEST(WebP, LossyHasThePixelsOfTheLibrary) {
  for (const Colour colour : {Colour::rgb, Colour::rgb_alpha}) {
    for (const Size size : kSizes) {
      const Bytes file = webp(scene(size.width, size.height, colour), false);
      std::vector<std::string> notices;
      const Image image = read_back(file, {.notices = &notices});
      EXPECT_EQ(notices, std::vector<std::string>{"lossy WebP: the decoded pixels are kept"});
      int width = 0, height = 0;
      uint8_t* pixels = colour == Colour::rgb ? WebPDecodeRGB(file.data(), file.size(), &width, &height)
                                              : WebPDecodeRGBA(file.data(), file.size(), &width, &height);
      ASSERT_NE(pixels, nullptr);
      EXPECT_EQ(image.colour, colour);
      EXPECT_EQ(image.width, static_cast<uint32_t>(width));
      EXPECT_EQ(image.height, static_cast<uint32_t>(height));
      EXPECT_TRUE(std::equal(image.pixels.begin(), image.pixels.end(), pixels));
      WebPFree(pixels);
    }
  }
}

TEST(WebP, AlphaOnlyWhereThereIsSome) {
  Image image = drawn(7, 5, 8, Colour::rgb_alpha);
  for (size_t i = 3; i < image.pixels.size(); i += 4) image.pixels[i] = 255;
  EXPECT_EQ(read_back(webp(image, true)).colour, Colour::rgb);
}

TEST(WebP, KeepsProfileAndExif) {
  const Bytes profile = noise(3000);
  Bytes marked = bytes(std::string_view("Exif\0\0", 6));
  marked.insert(marked.end(), kExif.begin(), kExif.end());
  for (const Bytes& exif : {kExif, marked}) {
    const Bytes file = with_chunks(webp(drawn(9, 5, 8, Colour::rgb), true),
                                   {{"ICCP", profile}, {"EXIF", exif}, {"XMP ", bytes("<x/>")}});
    std::vector<std::string> notices;
    const Image image = read_back(file, {.notices = &notices});
    ASSERT_EQ(types_of(image), (std::vector<std::string>{"iCCP", "eXIf"}));
    EXPECT_EQ(inflated_profile(image.chunks[0]), profile);
    EXPECT_EQ(image.chunks[1].data, kExif);
    ASSERT_EQ(notices.size(), 2U);
    EXPECT_REASON(notices[0], "EXIF orientation 6");
    EXPECT_EQ(notices[1], "XMP of 4 bytes is left out");
    EXPECT_EQ(difference(image, read_back(written(Format::png, image))), "");
    EXPECT_REASON(refusal(file, {.max_chunk_bytes = 100}), "the limit");
  }
}

TEST(WebP, ReadsTheFirstFrame) {
  WebPAnimEncoderOptions options;
  ASSERT_TRUE(WebPAnimEncoderOptionsInit(&options));
  WebPAnimEncoder* encoder = WebPAnimEncoderNew(8, 8, &options);
  for (int i = 0; i < 2; ++i) {
    WebPPicture picture;
    ASSERT_TRUE(WebPPictureInit(&picture));
    picture.use_argb = 1;
    picture.width = picture.height = 8;
    Image image = drawn(8, 8, 8, Colour::rgb);
    image.pixels[0] = static_cast<uint8_t>(i);
    ASSERT_TRUE(WebPPictureImportRGB(&picture, image.pixels.data(), 24));
    ASSERT_TRUE(WebPAnimEncoderAdd(encoder, &picture, 100 * i, nullptr));
    WebPPictureFree(&picture);
  }
  WebPData out{};
  ASSERT_TRUE(WebPAnimEncoderAdd(encoder, nullptr, 200, nullptr));
  ASSERT_TRUE(WebPAnimEncoderAssemble(encoder, &out));
  WebPAnimEncoderDelete(encoder);
  const Bytes file(out.bytes, out.bytes + out.size);
  WebPDataClear(&out);
  std::vector<std::string> notices;
  const Image read = read_back(file, {.notices = &notices});
  EXPECT_EQ(read.width, 8U);
  EXPECT_EQ(read.height, 8U);
  EXPECT_EQ(notices[0], "animated WebP: only the first frame is read, 1 frame is left out");
}

TEST(WebP, ChecksLimitsBeforeAllocating) {
  const Bytes file = webp(drawn(8, 8, 8, Colour::rgb_alpha), true);
  EXPECT_REASON(refusal(file, {.max_pixels = 63}), "more than the limit of 63");
  EXPECT_REASON(refusal(file, {.max_bytes = 255}), "more than the limit of 255 bytes");
  EXPECT_REASON(refusal(file, {.max_edge = 7}), "longer than the limit of 7");
}

TEST(WebP, DamageIsRefusedOrHarmless) {
  for (const Bytes& file :
       {webp(scene(17, 9, Colour::rgb), false), webp(scene(17, 9, Colour::rgb_alpha), false),
        webp(drawn(9, 5, 8, Colour::rgb_alpha), true),
        with_chunks(webp(drawn(5, 5, 8, Colour::rgb), true), {{"ICCP", noise(20)}, {"EXIF", kExif}})}) {
    expect_truncations_are_refused(file);
    expect_flips_are_harmless(file);
  }
  Bytes file = webp(drawn(9, 5, 8, Colour::rgb), true);
  file.push_back(0);
  std::vector<std::string> notices;
  (void)read_back(file, {.notices = &notices});
  EXPECT_EQ(notices, std::vector<std::string>{"1 bytes after the image are left out"});
}

}  // namespace
