// Reads WebP with libwebp: still images and the first frame of animations, lossy and lossless.
#include <webp/decode.h>
#include <webp/demux.h>

#include <cstring>
#include <memory>

#include "adapters.h"
#include "metadata.h"
#include "numbers.h"

namespace formats {
namespace {

constexpr int kLossy = 1;  // WebPBitstreamFeatures::format
constexpr size_t kRiffHeader = 8;

struct DemuxerDelete {
  void operator()(WebPDemuxer* demuxer) const { WebPDemuxDelete(demuxer); }
};
using Demuxer = std::unique_ptr<WebPDemuxer, DemuxerDelete>;

// The position of a frame on its canvas.
struct Place {
  size_t left = 0, top = 0, width = 0, height = 0;
};

// The first frame of an animation. Its bytes point into the file.
class FrameIterator {
 public:
  FrameIterator() { std::memset(&frame_, 0, sizeof frame_); }
  ~FrameIterator() { WebPDemuxReleaseIterator(&frame_); }
  FrameIterator(const FrameIterator&) = delete;
  FrameIterator& operator=(const FrameIterator&) = delete;

  bool first(const WebPDemuxer* demuxer) { return WebPDemuxGetFrame(demuxer, 1, &frame_) && frame_.complete; }
  std::span<const uint8_t> bytes() const { return {frame_.fragment.bytes, frame_.fragment.size}; }
  Place place() const {
    return {static_cast<size_t>(frame_.x_offset), static_cast<size_t>(frame_.y_offset),
            static_cast<size_t>(frame_.width), static_cast<size_t>(frame_.height)};
  }

 private:
  WebPIterator frame_;
};

const char* reason_of(VP8StatusCode status) {
  switch (status) {
    case VP8_STATUS_OK: return "no error";
    case VP8_STATUS_OUT_OF_MEMORY: return "out of memory";
    case VP8_STATUS_NOT_ENOUGH_DATA:
    case VP8_STATUS_SUSPENDED: return "the pixel data ends early";
    case VP8_STATUS_UNSUPPORTED_FEATURE: return "a feature that libwebp does not support";
    default: return "the pixel data is damaged";
  }
}

// The contents of the first chunk of a type. They point into the file, and are empty if there is no such chunk.
std::span<const uint8_t> chunk_of(const WebPDemuxer* demuxer, const char* type) {
  WebPChunkIterator found;
  std::memset(&found, 0, sizeof found);
  std::span<const uint8_t> data;
  if (WebPDemuxGetChunk(demuxer, type, 1, &found)) data = {found.chunk.bytes, found.chunk.size};
  WebPDemuxReleaseChunkIterator(&found);
  return data;
}

std::optional<Error> take_metadata(const WebPDemuxer* demuxer, Image& image, const ReadOptions& options,
                                   std::span<const uint8_t> file) {
  const auto offset_of = [&](std::span<const uint8_t> data) {
    return static_cast<uint64_t>(data.data() - file.data());
  };
  const std::span<const uint8_t> profile = chunk_of(demuxer, "ICCP");
  if (!profile.empty()) {
    if (auto error = add_profile(image, profile, options, offset_of(profile))) return error;
  }
  if (std::span<const uint8_t> exif = chunk_of(demuxer, "EXIF"); !exif.empty()) {
    // Some programs write the EXIF signature of JPEG before it.
    if (exif.size() >= 6 && std::memcmp(exif.data(), "Exif\0\0", 6) == 0) exif = exif.subspan(6);
    if (auto error = add_exif(image, exif, options, offset_of(exif))) return error;
  }
  if (const std::span<const uint8_t> xmp = chunk_of(demuxer, "XMP "); !xmp.empty()) {
    notice_left_out(options, "XMP", xmp.size());
  }
  return std::nullopt;
}

VP8StatusCode decode(std::span<const uint8_t> file, const Place& place, Image& image) {
  WebPDecoderConfig config;
  if (!WebPInitDecoderConfig(&config)) return VP8_STATUS_INVALID_PARAM;
  const size_t row_bytes = pixel_bytes(image) / image.height;
  config.output.colorspace = image.colour == Colour::rgb_alpha ? MODE_RGBA : MODE_RGB;
  config.output.is_external_memory = 1;
  const size_t begin = place.top * row_bytes + place.left * channels(image.colour);
  config.output.u.RGBA.rgba = image.pixels.data() + begin;
  config.output.u.RGBA.stride = static_cast<int>(row_bytes);  // at most 4 * 16384
  config.output.u.RGBA.size = image.pixels.size() - begin;
  const VP8StatusCode status = WebPDecode(file.data(), file.size(), &config);
  WebPFreeDecBuffer(&config.output);
  return status;
}

}  // namespace

Result<Image> read_webp(std::span<const uint8_t> file, const ReadOptions& options) {
  // The size of the container is checked first, because libwebp reports a truncated file as other damage.
  const uint64_t told = uint64_t{load_u32_little(file.data() + 4)} + kRiffHeader;
  if (told > file.size()) return Error{file.size(), "the file ends inside its RIFF chunk"};
  const std::span<const uint8_t> riff = file.first(static_cast<size_t>(told));

  const WebPData data{riff.data(), riff.size()};
  const Demuxer demuxer(WebPDemux(&data));
  if (demuxer == nullptr) return Error{kRiffHeader, "the RIFF chunks are damaged"};
  const bool animated = WebPDemuxGetI(demuxer.get(), WEBP_FF_FORMAT_FLAGS) & ANIMATION_FLAG;
  FrameIterator frame;
  if (animated && !frame.first(demuxer.get())) return Error{kRiffHeader, "an animated WebP without a complete frame"};
  const std::span<const uint8_t> coded = animated ? frame.bytes() : riff;
  WebPBitstreamFeatures features;
  if (const VP8StatusCode status = WebPGetFeatures(coded.data(), coded.size(), &features); status != VP8_STATUS_OK) {
    return Error{kRiffHeader, reason_of(status)};
  }
  Image image;
  image.width = static_cast<uint32_t>(features.width);
  image.height = static_cast<uint32_t>(features.height);
  image.colour = features.has_alpha ? Colour::rgb_alpha : Colour::rgb;
  Place place{0, 0, image.width, image.height};
  if (animated) {
    place = frame.place();
    if (place.width != image.width || place.height != image.height)
      return Error{kRiffHeader, "the size of the frame differs from the header"};
    image.width = WebPDemuxGetI(demuxer.get(), WEBP_FF_CANVAS_WIDTH);
    image.height = WebPDemuxGetI(demuxer.get(), WEBP_FF_CANVAS_HEIGHT);
    if (place.left + place.width > image.width || place.top + place.height > image.height) {
      return Error{kRiffHeader, "a frame is outside the canvas"};
    }
    const bool covers = place.width == image.width && place.height == image.height;
    // Pixels outside the frame are transparent.
    if (!covers || (WebPDemuxGetI(demuxer.get(), WEBP_FF_FORMAT_FLAGS) & ALPHA_FLAG)) image.colour = Colour::rgb_alpha;
    if (!covers) notice(options.notices, "the first frame does not cover the canvas: the rest is transparent");
  }
  if (image.width == 0 || image.height == 0) return Error{kRiffHeader, "width or height is 0"};
  if (std::optional<Error> error = over_limit(image, options, kRiffHeader)) return *std::move(error);
  if (std::optional<Error> error = take_metadata(demuxer.get(), image, options, riff)) return *std::move(error);

  image.pixels.resize(pixel_bytes(image));
  if (const VP8StatusCode status = decode(coded, place, image); status != VP8_STATUS_OK) {
    return Error{kRiffHeader, reason_of(status)};
  }
  if (const uint32_t frames = WebPDemuxGetI(demuxer.get(), WEBP_FF_FRAME_COUNT); animated && frames > 1) {
    notice(options.notices, "animated WebP: only the first frame is read, " + std::to_string(frames - 1) +
                                (frames == 2 ? " frame is left out" : " frames are left out"));
  }
  if (features.format == kLossy) notice_lossy(options, "WebP");
  if (const size_t left = file.size() - riff.size(); left > 0) {
    notice(options.notices, std::to_string(left) + " bytes after the image are left out");
  }
  return image;
}

}  // namespace formats
