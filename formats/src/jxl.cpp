// Reads JPEG XL with libjxl: integers of up to 16 bits, the first frame, upright.
#include <jxl/decode.h>

#include <cstring>
#include <memory>

#include "adapters.h"
#include "metadata.h"

namespace formats {
namespace {

struct DecoderDelete {
  void operator()(JxlDecoder* decoder) const { JxlDecoderDestroy(decoder); }
};
using Decoder = std::unique_ptr<JxlDecoder, DecoderDelete>;

std::string kind_problem(const JxlBasicInfo& info) {
  if (info.exponent_bits_per_sample != 0 || info.alpha_exponent_bits != 0) return "floating-point samples";
  if (info.bits_per_sample < 1 || info.bits_per_sample > 16) {
    return "samples of " + std::to_string(info.bits_per_sample) + " bits: only integers of 1 to 16 bits are supported";
  }
  if (info.alpha_bits != 0 && info.alpha_bits != info.bits_per_sample) {
    return "alpha of " + std::to_string(info.alpha_bits) + " bits with samples of " +
           std::to_string(info.bits_per_sample);
  }
  if (info.alpha_bits != 0 && info.alpha_premultiplied) {
    return "premultiplied alpha, which cannot be undone without loss";
  }
  // Other extra channels are decoded and dropped, and a hostile file may have thousands.
  constexpr uint32_t kMaxExtra = 4;
  if (info.num_extra_channels > kMaxExtra) return std::to_string(info.num_extra_channels) + " extra channels";
  if (info.num_color_channels != 1 && info.num_color_channels != 3) return "neither gray nor RGB";
  return "";
}

// libjxl scales samples to 8 or 16 bits. Scaling back to fewer bits is exact, because the rounding error is less than
// half a step.
template <typename Sample>
void scale_back(std::vector<uint8_t>& pixels, uint32_t bits) {
  constexpr uint32_t kMax = (1U << (8 * sizeof(Sample))) - 1;
  const uint32_t maximum = (1U << bits) - 1;
  if (maximum == kMax) return;
  for (size_t at = 0; at < pixels.size(); at += sizeof(Sample)) {
    Sample sample = 0;
    std::memcpy(&sample, pixels.data() + at, sizeof sample);
    sample = static_cast<Sample>((uint64_t{sample} * maximum + kMax / 2) / kMax);
    std::memcpy(pixels.data() + at, &sample, sizeof sample);
  }
}

// Adds the colour space of the decoded pixels: the chunk sRGB, or a profile for everything else.
std::optional<Error> take_colours(JxlDecoder* decoder, const JxlPixelFormat& format, const ReadOptions& options,
                                  Image& image) {
  JxlColorEncoding encoding;
  if (JxlDecoderGetColorAsEncodedProfile(decoder, &format, JXL_COLOR_PROFILE_TARGET_DATA, &encoding) ==
          JXL_DEC_SUCCESS &&
      encoding.transfer_function == JXL_TRANSFER_FUNCTION_SRGB && encoding.white_point == JXL_WHITE_POINT_D65 &&
      (encoding.color_space == JXL_COLOR_SPACE_GRAY || encoding.primaries == JXL_PRIMARIES_SRGB)) {
    return std::nullopt;
  }
  size_t bytes = 0;
  if (JxlDecoderGetICCProfileSize(decoder, &format, JXL_COLOR_PROFILE_TARGET_DATA, &bytes) != JXL_DEC_SUCCESS) {
    return std::nullopt;
  }
  std::vector<uint8_t> profile(bytes);
  if (JxlDecoderGetColorAsICCProfile(decoder, &format, JXL_COLOR_PROFILE_TARGET_DATA, profile.data(), bytes) !=
      JXL_DEC_SUCCESS) {
    return Error{0, "the colour profile is damaged"};
  }
  return add_profile(image, profile, options, 0);
}

class Reader {
 public:
  Reader(std::span<const uint8_t> file, const ReadOptions& options)
      : file_(file), options_(options), decoder_(JxlDecoderCreate(nullptr)) {}

  Result<Image> read() {
    constexpr int kEvents =
        JXL_DEC_BASIC_INFO | JXL_DEC_COLOR_ENCODING | JXL_DEC_JPEG_RECONSTRUCTION | JXL_DEC_FULL_IMAGE | JXL_DEC_BOX;
    if (decoder_ == nullptr || JxlDecoderSubscribeEvents(decoder_.get(), kEvents) != JXL_DEC_SUCCESS ||
        JxlDecoderSetInput(decoder_.get(), file_.data(), file_.size()) != JXL_DEC_SUCCESS) {
      return Error{0, "cannot start libjxl"};
    }
    JxlDecoderCloseInput(decoder_.get());
    for (;;) {
      const JxlDecoderStatus status = JxlDecoderProcessInput(decoder_.get());
      std::optional<Error> error;
      switch (status) {
        case JXL_DEC_BASIC_INFO: error = take_info(); break;
        case JXL_DEC_COLOR_ENCODING: error = take_colours(decoder_.get(), format_, options_, image_); break;
        case JXL_DEC_JPEG_RECONSTRUCTION: lossy_ = true; break;
        case JXL_DEC_BOX: take_box(); break;
        case JXL_DEC_NEED_IMAGE_OUT_BUFFER: error = give_room(); break;
        case JXL_DEC_FULL_IMAGE: return finish();
        case JXL_DEC_NEED_MORE_INPUT: return Error{file_.size(), "the file ends early"};
        default: return Error{at(), "the JPEG XL data is damaged"};
      }
      if (error) return *std::move(error);
    }
  }

 private:
  // The approximate position of libjxl, which must not be used after this.
  uint64_t at() { return file_.size() - JxlDecoderReleaseInput(decoder_.get()); }

  std::optional<Error> take_info() {
    if (JxlDecoderGetBasicInfo(decoder_.get(), &info_) != JXL_DEC_SUCCESS) return Error{0, "the header is damaged"};
    if (std::string reason = kind_problem(info_); !reason.empty()) return Error{0, std::move(reason)};
    image_.width = info_.xsize;
    image_.height = info_.ysize;
    image_.bits = info_.bits_per_sample;
    const bool gray = info_.num_color_channels == 1;
    image_.colour =
        info_.alpha_bits == 0 ? (gray ? Colour::gray : Colour::rgb) : (gray ? Colour::gray_alpha : Colour::rgb_alpha);
    format_.num_channels = channels(image_.colour);
    format_.data_type = image_.bits > 8 ? JXL_TYPE_UINT16 : JXL_TYPE_UINT8;
    return over_limit(image_, options_, 0);
  }

  void take_box() {
    JxlBoxType type;
    if (JxlDecoderGetBoxType(decoder_.get(), type, JXL_FALSE) != JXL_DEC_SUCCESS) return;
    for (const char* kept_out : {"Exif", "xml ", "brob", "jumb"}) {
      uint64_t bytes = 0;
      if (std::memcmp(type, kept_out, sizeof type) != 0) continue;
      if (JxlDecoderGetBoxSizeRaw(decoder_.get(), &bytes) != JXL_DEC_SUCCESS) continue;
      notice_left_out(options_, "a box of type " + std::string(type, sizeof type), bytes);
    }
  }

  std::optional<Error> give_room() {
    size_t bytes = 0;
    if (JxlDecoderImageOutBufferSize(decoder_.get(), &format_, &bytes) != JXL_DEC_SUCCESS ||
        bytes != pixel_bytes(image_)) {
      return Error{0, "the size of the pixels differs from the header"};
    }
    image_.pixels.resize(bytes);
    if (JxlDecoderSetImageOutBuffer(decoder_.get(), &format_, image_.pixels.data(), bytes) != JXL_DEC_SUCCESS) {
      return Error{0, "libjxl cannot decode these samples"};
    }
    return std::nullopt;
  }

  Result<Image> finish() {
    if (image_.pixels.empty()) return Error{0, "there are no pixels"};
    if (image_.bits > 8) {
      scale_back<uint16_t>(image_.pixels, image_.bits);
    } else {
      scale_back<uint8_t>(image_.pixels, image_.bits);
    }
    // Without the original profile, the pixels were converted in floating point. This is also so for a recompressed
    // JPEG.
    if (lossy_ || !info_.uses_original_profile) notice_lossy(options_, "JPEG XL");
    if (info_.have_animation) notice(options_.notices, "an animation: frames after the first are left out");
    const uint32_t others = info_.num_extra_channels - (info_.alpha_bits != 0);
    if (others > 0) {
      notice(options_.notices,
             std::to_string(others) + (others == 1 ? " extra channel is" : " extra channels are") + " left out");
    }
    return std::move(image_);
  }

  std::span<const uint8_t> file_;
  const ReadOptions& options_;
  Decoder decoder_;
  JxlBasicInfo info_{};
  JxlPixelFormat format_{1, JXL_TYPE_UINT8, JXL_NATIVE_ENDIAN, 0};
  Image image_;
  bool lossy_ = false;
};

}  // namespace

Result<Image> read_jxl(std::span<const uint8_t> file, const ReadOptions& options) {
  return Reader(file, options).read();
}

}  // namespace formats
