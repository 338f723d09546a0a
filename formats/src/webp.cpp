// WebP, read through libwebp: still images, lossy and lossless.
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

// The contents of the first chunk of a type; empty if there is none. They point into the file.
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
    // Some writers put JPEG's mark before it.
    if (exif.size() >= 6 && std::memcmp(exif.data(), "Exif\0\0", 6) == 0) exif = exif.subspan(6);
    if (auto error = add_exif(image, exif, options, offset_of(exif))) return error;
  }
  if (const std::span<const uint8_t> xmp = chunk_of(demuxer, "XMP "); !xmp.empty()) {
    notice_left_out(options, "XMP", xmp.size());
  }
  return std::nullopt;
}

VP8StatusCode decode(std::span<const uint8_t> file, Image& image) {
  WebPDecoderConfig config;
  if (!WebPInitDecoderConfig(&config)) return VP8_STATUS_INVALID_PARAM;
  const size_t row_bytes = pixel_bytes(image) / image.height;
  config.output.colorspace = image.colour == Colour::rgb_alpha ? MODE_RGBA : MODE_RGB;
  config.output.is_external_memory = 1;
  config.output.u.RGBA.rgba = image.pixels.data();
  config.output.u.RGBA.stride = static_cast<int>(row_bytes);  // at most 4 * 16384
  config.output.u.RGBA.size = image.pixels.size();
  const VP8StatusCode status = WebPDecode(file.data(), file.size(), &config);
  WebPFreeDecBuffer(&config.output);
  return status;
}

}  // namespace

bool is_webp(std::span<const uint8_t> file) {
  return file.size() >= 12 && std::memcmp(file.data(), "RIFF", 4) == 0 && std::memcmp(file.data() + 8, "WEBP", 4) == 0;
}

Result<Image> read_webp(std::span<const uint8_t> file, const ReadOptions& options) {
  // The container's own size first: libwebp's parser takes what is cut off for damage of another kind.
  const uint64_t told = uint64_t{load_u32_little(file.data() + 4)} + kRiffHeader;
  if (told > file.size()) return Error{file.size(), "the file ends inside its RIFF chunk"};
  const std::span<const uint8_t> riff = file.first(static_cast<size_t>(told));

  const WebPData data{riff.data(), riff.size()};
  const Demuxer demuxer(WebPDemux(&data));
  if (demuxer == nullptr) return Error{kRiffHeader, "the RIFF chunks are damaged"};
  if (WebPDemuxGetI(demuxer.get(), WEBP_FF_FORMAT_FLAGS) & ANIMATION_FLAG) {
    return Error{kRiffHeader, "an animated WebP: its frames are no still image"};
  }
  WebPBitstreamFeatures features;
  if (const VP8StatusCode status = WebPGetFeatures(riff.data(), riff.size(), &features); status != VP8_STATUS_OK) {
    return Error{kRiffHeader, reason_of(status)};
  }
  Image image;
  image.width = static_cast<uint32_t>(features.width);
  image.height = static_cast<uint32_t>(features.height);
  image.colour = features.has_alpha ? Colour::rgb_alpha : Colour::rgb;
  if (image.width == 0 || image.height == 0) return Error{kRiffHeader, "width or height is 0"};
  if (std::optional<Error> error = over_limit(image, options, kRiffHeader)) return *std::move(error);
  if (std::optional<Error> error = take_metadata(demuxer.get(), image, options, riff)) return *std::move(error);

  image.pixels.resize(pixel_bytes(image));
  if (const VP8StatusCode status = decode(riff, image); status != VP8_STATUS_OK) {
    return Error{kRiffHeader, reason_of(status)};
  }
  if (features.format == kLossy) notice_lossy(options, "WebP");
  if (const size_t left = file.size() - riff.size(); left > 0) {
    notice(options.notices, std::to_string(left) + " bytes after the image are left out");
  }
  return image;
}

}  // namespace formats
