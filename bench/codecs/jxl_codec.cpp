// JPEG XL by libjxl, lossless. Samples of up to 8 bits are stored as 8, deeper ones as 16.
#include <jxl/decode.h>
#include <jxl/encode.h>

#include <algorithm>
#include <memory>

#include "codec.h"

namespace bench {
namespace {

struct Destroy {
  void operator()(JxlEncoder* encoder) const { JxlEncoderDestroy(encoder); }
  void operator()(JxlDecoder* decoder) const { JxlDecoderDestroy(decoder); }
};

std::string version() {
  const uint32_t number = JxlEncoderVersion();
  return "libjxl " + std::to_string(number / 1000000) + "." + std::to_string(number / 1000 % 1000) + "." +
         std::to_string(number % 1000);
}

std::string cannot_hold(const formats::Image&) { return ""; }

JxlPixelFormat pixel_format(const formats::Image& image) {
  return {formats::channels(image.colour), image.bits > 8 ? JXL_TYPE_UINT16 : JXL_TYPE_UINT8, JXL_NATIVE_ENDIAN, 0};
}

bool describe(JxlEncoder* encoder, const formats::Image& image) {
  const uint32_t channels = formats::channels(image.colour);
  JxlBasicInfo info;
  JxlEncoderInitBasicInfo(&info);
  info.xsize = image.width;
  info.ysize = image.height;
  info.bits_per_sample = image.bits > 8 ? 16 : 8;
  info.uses_original_profile = JXL_TRUE;
  info.num_color_channels = channels >= 3 ? 3 : 1;
  if (channels % 2 == 0) {
    info.num_extra_channels = 1;
    info.alpha_bits = info.bits_per_sample;
  }
  JxlColorEncoding colours;
  JxlColorEncodingSetToSRGB(&colours, channels < 3 ? JXL_TRUE : JXL_FALSE);
  // Level 10 allows images over the limits of the default level.
  return JxlEncoderSetCodestreamLevel(encoder, info.bits_per_sample > 8 ? 10 : -1) == JXL_ENC_SUCCESS &&
         JxlEncoderSetBasicInfo(encoder, &info) == JXL_ENC_SUCCESS &&
         JxlEncoderSetColorEncoding(encoder, &colours) == JXL_ENC_SUCCESS;
}

std::optional<formats::Error> encode(const formats::Image& image, int level, bridge::Buffer& file) {
  const std::unique_ptr<JxlEncoder, Destroy> encoder(JxlEncoderCreate(nullptr));
  if (encoder == nullptr) return failed("out of memory");
  const auto error = [&] {
    return failed("libjxl failed with error " + std::to_string(JxlEncoderGetError(encoder.get())));
  };
  if (!describe(encoder.get(), image)) return error();
  JxlEncoderFrameSettings* const settings = JxlEncoderFrameSettingsCreate(encoder.get(), nullptr);
  const JxlPixelFormat format = pixel_format(image);
  if (JxlEncoderFrameSettingsSetOption(settings, JXL_ENC_FRAME_SETTING_EFFORT, level) != JXL_ENC_SUCCESS ||
      JxlEncoderSetFrameLossless(settings, JXL_TRUE) != JXL_ENC_SUCCESS ||
      JxlEncoderAddImageFrame(settings, &format, image.pixels.data(), image.pixels.size()) != JXL_ENC_SUCCESS) {
    return error();
  }
  JxlEncoderCloseInput(encoder.get());

  // The size is not known before, so collect pieces in a buffer that grows.
  thread_local std::vector<uint8_t> written;
  if (written.size() < 4096) written.resize(4096);
  size_t used = 0;
  for (;;) {
    uint8_t* next = written.data() + used;
    size_t left = written.size() - used;
    const JxlEncoderStatus status = JxlEncoderProcessOutput(encoder.get(), &next, &left);
    used = written.size() - left;
    if (status == JXL_ENC_SUCCESS) break;
    if (status != JXL_ENC_NEED_MORE_OUTPUT) return error();
    written.resize(2 * written.size());
  }
  std::copy_n(written.data(), used, file.reset(used));
  return std::nullopt;
}

std::optional<formats::Error> decode(std::span<const uint8_t> file, formats::Image& image) {
  const std::unique_ptr<JxlDecoder, Destroy> decoder(JxlDecoderCreate(nullptr));
  if (decoder == nullptr) return failed("out of memory");
  make_room(image);
  const JxlPixelFormat format = pixel_format(image);
  if (JxlDecoderSubscribeEvents(decoder.get(), JXL_DEC_FULL_IMAGE) != JXL_DEC_SUCCESS ||
      JxlDecoderSetInput(decoder.get(), file.data(), file.size()) != JXL_DEC_SUCCESS) {
    return failed("libjxl does not accept the input");
  }
  JxlDecoderCloseInput(decoder.get());
  for (;;) {
    switch (JxlDecoderProcessInput(decoder.get())) {
      case JXL_DEC_NEED_IMAGE_OUT_BUFFER: {
        size_t size = 0;
        if (JxlDecoderImageOutBufferSize(decoder.get(), &format, &size) != JXL_DEC_SUCCESS ||
            size != image.pixels.size()) {
          return failed("the decoded image has another size");
        }
        if (JxlDecoderSetImageOutBuffer(decoder.get(), &format, image.pixels.data(), size) != JXL_DEC_SUCCESS) {
          return failed("libjxl does not accept the output buffer");
        }
        break;
      }
      case JXL_DEC_FULL_IMAGE: return std::nullopt;
      default: return failed("the file is damaged");
    }
  }
}

constexpr Adapter kAdapter = {version, cannot_hold, encode, decode};

}  // namespace

const Adapter* jxl_adapter() { return &kAdapter; }

}  // namespace bench
