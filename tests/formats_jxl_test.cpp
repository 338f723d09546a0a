// formats/: JPEG XL, made by libjxl's encoder where it is there; without it such files are refused with the reason.
#include "formats_damage.h"
#include "formats_drawing.h"

#ifdef L3_HAS_JXL
#include <jxl/encode.h>
#endif

namespace {

using namespace formats_drawing;

#ifdef L3_HAS_JXL

// `file` at that distance; 0 is lossless.
Bytes jxl(const Image& image, float distance, JxlOrientation orientation = JXL_ORIENT_IDENTITY) {
  JxlEncoder* encoder = JxlEncoderCreate(nullptr);
  const uint32_t count = formats::channels(image.colour);
  JxlBasicInfo info;
  JxlEncoderInitBasicInfo(&info);
  info.xsize = image.width;
  info.ysize = image.height;
  info.bits_per_sample = image.bits;
  info.num_color_channels = count < 3 ? 1 : 3;
  info.num_extra_channels = count % 2 == 0;
  info.alpha_bits = count % 2 == 0 ? image.bits : 0;
  info.uses_original_profile = distance == 0;
  info.orientation = orientation;
  EXPECT_EQ(JxlEncoderSetBasicInfo(encoder, &info), JXL_ENC_SUCCESS);
  JxlColorEncoding colours;
  JxlColorEncodingSetToSRGB(&colours, info.num_color_channels == 1);
  EXPECT_EQ(JxlEncoderSetColorEncoding(encoder, &colours), JXL_ENC_SUCCESS);
  JxlEncoderFrameSettings* settings = JxlEncoderFrameSettingsCreate(encoder, nullptr);
  EXPECT_EQ(
      distance == 0 ? JxlEncoderSetFrameLossless(settings, JXL_TRUE) : JxlEncoderSetFrameDistance(settings, distance),
      JXL_ENC_SUCCESS);
  // The encoder wants samples that are scaled to their type.
  Bytes pixels = image.pixels;
  const size_t unit = formats::bytes_per_sample(image.bits);
  const uint32_t maximum = (1U << image.bits) - 1, wide = unit == 2 ? 65535 : 255;
  for (size_t at = 0; at < pixels.size(); at += unit) {
    uint16_t sample = pixels[at];
    if (unit == 2) std::memcpy(&sample, pixels.data() + at, 2);
    sample = static_cast<uint16_t>((uint64_t{sample} * wide + maximum / 2) / maximum);
    if (unit == 2) std::memcpy(pixels.data() + at, &sample, 2);
    if (unit == 1) pixels[at] = static_cast<uint8_t>(sample);
  }
  const JxlPixelFormat format{count, unit == 2 ? JXL_TYPE_UINT16 : JXL_TYPE_UINT8, JXL_NATIVE_ENDIAN, 0};
  EXPECT_EQ(JxlEncoderAddImageFrame(settings, &format, pixels.data(), pixels.size()), JXL_ENC_SUCCESS);
  JxlEncoderCloseInput(encoder);
  Bytes file(size_t{1} << 20);
  uint8_t* next = file.data();
  size_t left = file.size();
  EXPECT_EQ(JxlEncoderProcessOutput(encoder, &next, &left), JXL_ENC_SUCCESS);
  file.resize(file.size() - left);
  JxlEncoderDestroy(encoder);
  return file;
}

TEST(Jxl, LosslessIsExact) {
  for (const Colour colour : {Colour::gray, Colour::gray_alpha, Colour::rgb, Colour::rgb_alpha}) {
    for (const uint32_t bits : {8U, 10U, 12U, 16U}) {
      const Image image = drawn(37, 21, bits, colour);
      std::vector<std::string> notices;
      const Bytes file = jxl(image, 0);
      EXPECT_EQ(formats::known_name(file), "jxl");
      EXPECT_EQ(difference(image, read_back(file, {.notices = &notices})), "")
          << bits << " bits of " << formats::name(colour);
      EXPECT_TRUE(notices.empty());
    }
  }
}

TEST(Jxl, LossySaysSo) {
  std::vector<std::string> notices;
  const Image image = read_back(jxl(drawn(16, 16, 8, Colour::rgb), 1), {.notices = &notices});
  EXPECT_EQ(image.width, 16U);
  EXPECT_EQ(notices, std::vector<std::string>{"lossy JPEG XL: the decoded pixels are kept"});
}

TEST(Jxl, ComesUpright) {
  const Image image = drawn(3, 5, 8, Colour::gray);
  const Image read = read_back(jxl(image, 0, JXL_ORIENT_ROTATE_90_CW));
  ASSERT_EQ(read.width, 5U);
  ASSERT_EQ(read.height, 3U);
  for (uint32_t y = 0; y < 5; ++y) {
    for (uint32_t x = 0; x < 3; ++x) EXPECT_EQ(read.pixels[x * 5 + (4 - y)], image.pixels[y * 3 + x]);
  }
}

TEST(Jxl, ChecksLimitsBeforeAllocating) {
  const Bytes file = jxl(drawn(8, 8, 8, Colour::rgb), 0);
  EXPECT_REASON(refusal(file, {.max_pixels = 63}), "more than the limit of 63");
  EXPECT_REASON(refusal(file, {.max_bytes = 191}), "more than the limit of 191 bytes");
}

TEST(Jxl, WhatIsCutOffIsRefused) { expect_truncations_are_refused(jxl(drawn(17, 9, 8, Colour::rgb), 0)); }

#else

TEST(Jxl, IsRefusedWithTheReason) { EXPECT_REASON(refusal(Bytes{0xFF, 0x0A, 0, 0}), "built without libjxl"); }

#endif

}  // namespace
