#include "metadata.h"

#include <zlib.h>

#include <string_view>
#include <utility>

#include "adapters.h"
#include "base/exif.h"

namespace formats {
namespace {

std::optional<Error> add(Image& image, std::array<char, 4> type, std::vector<uint8_t> data, const ReadOptions& options,
                         uint64_t offset) {
  uint64_t bytes = data.size() + kChunkOverhead;
  for (const Chunk& chunk : image.chunks) bytes += chunk.data.size() + kChunkOverhead;
  if (bytes > options.max_chunk_bytes) {
    return Error{offset, "with chunk " + std::string(type.data(), type.size()) + " the metadata is over the limit of " +
                             std::to_string(options.max_chunk_bytes) + " bytes"};
  }
  image.chunks.push_back(Chunk{type, kBeforePalette, std::move(data)});
  return std::nullopt;
}

void append_u32(std::vector<uint8_t>& out, uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) out.push_back(static_cast<uint8_t>(value >> shift & 0xFF));
}

}  // namespace

void notice_orientation(const ReadOptions& options, std::span<const uint8_t> exif) {
  if (!options.tells_orientation) return;
  if (const uint32_t orientation = base::orientation_of(exif.data(), exif.size()); orientation != 1) {
    notice(options.notices,
           "EXIF orientation " + std::to_string(orientation) + " is kept as metadata; the pixels are not rotated");
  }
}

std::optional<Error> add_profile(Image& image, std::span<const uint8_t> profile, const ReadOptions& options,
                                 uint64_t offset) {
  if (profile.empty()) return std::nullopt;
  // The name that PNG requires, the zero byte that ends it, and the number of the method zlib.
  constexpr std::string_view kHead("ICC profile\0\0", 13);
  uLongf size = compressBound(static_cast<uLong>(profile.size()));
  std::vector<uint8_t> data(kHead.begin(), kHead.end());
  data.resize(kHead.size() + size);
  const int status = compress2(data.data() + kHead.size(), &size, profile.data(), static_cast<uLong>(profile.size()),
                               Z_BEST_COMPRESSION);
  if (status != Z_OK) return Error{offset, "the colour profile cannot be compressed"};
  data.resize(kHead.size() + size);
  return add(image, {'i', 'C', 'C', 'P'}, std::move(data), options, offset);
}

std::optional<Error> add_exif(Image& image, std::span<const uint8_t> exif, const ReadOptions& options,
                              uint64_t offset) {
  const auto begins = [&](std::string_view head) {
    return exif.size() >= head.size() && std::string_view(reinterpret_cast<const char*>(exif.data()), 4) == head;
  };
  if (!begins(std::string_view("II*\0", 4)) && !begins(std::string_view("MM\0*", 4))) {
    notice_left_out(options, "EXIF without a TIFF header", exif.size());
    return std::nullopt;
  }
  notice_orientation(options, exif);
  return add(image, {'e', 'X', 'I', 'f'}, {exif.begin(), exif.end()}, options, offset);
}

std::optional<Error> add_density(Image& image, uint32_t across, uint32_t down, DensityUnit unit,
                                 const ReadOptions& options, uint64_t offset) {
  constexpr uint32_t kMax = 0x7FFFFFFF;  // the largest number in a PNG
  if (across == 0 || down == 0 || across > kMax || down > kMax) return std::nullopt;
  if (unit == DensityUnit::none && across == down) return std::nullopt;
  std::vector<uint8_t> data;
  append_u32(data, across);
  append_u32(data, down);
  data.push_back(unit == DensityUnit::metre);
  return add(image, {'p', 'H', 'Y', 's'}, std::move(data), options, offset);
}

void notice_lossy(const ReadOptions& options, const char* format) {
  notice(options.notices, std::string("lossy ") + format + ": the decoded pixels are kept");
}

void notice_left_out(const ReadOptions& options, const std::string& what, uint64_t bytes) {
  notice(options.notices, what + " of " + std::to_string(bytes) + (bytes == 1 ? " byte" : " bytes") + " is left out");
}

}  // namespace formats
