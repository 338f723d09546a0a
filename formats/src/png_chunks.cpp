#include "png_chunks.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "adapters.h"
#include "metadata.h"

namespace formats {
namespace {

constexpr ChunkType kHeaderType = {'I', 'H', 'D', 'R'};
constexpr ChunkType kPaletteType = {'P', 'L', 'T', 'E'};
constexpr ChunkType kPixelsType = {'I', 'D', 'A', 'T'};
constexpr ChunkType kEndType = {'I', 'E', 'N', 'D'};
constexpr ChunkType kTransparencyType = {'t', 'R', 'N', 'S'};
constexpr ChunkType kExifType = {'e', 'X', 'I', 'f'};
constexpr ChunkType kFrameType = {'f', 'c', 'T', 'L'};
constexpr size_t kFrame = 12;  // size of the length, the type and the CRC of a chunk

struct RawChunk {
  ChunkType type;
  std::span<const uint8_t> data;
  Extent extent;
  bool crc_holds = true;
};

uint32_t big_endian(const uint8_t* bytes) {
  return uint32_t{bytes[0]} << 24 | uint32_t{bytes[1]} << 16 | uint32_t{bytes[2]} << 8 | uint32_t{bytes[3]};
}

std::string text(const ChunkType& type) { return std::string(type.data(), type.size()); }

// Reads the chunk at `offset` and checks its type and length. A wrong CRC is allowed only for an ancillary chunk
// without influence on the pixels.
Result<RawChunk> chunk_at(std::span<const uint8_t> file, size_t offset) {
  const size_t left = file.size() - offset;
  if (left == 0) return Error{offset, "the file ends before IEND"};
  if (left < kFrame) return Error{offset, "the file ends inside a chunk"};
  const uint8_t* at = file.data() + offset;
  const uint32_t length = big_endian(at);
  RawChunk chunk;
  std::memcpy(chunk.type.data(), at + 4, 4);
  if (!is_chunk_type(chunk.type)) return Error{offset, "not a chunk: its type is not four letters"};
  if (length > kPngMaximum) return Error{offset, "chunk " + text(chunk.type) + " has an impossible length"};
  if (length > left - kFrame) return Error{offset, "the file ends inside chunk " + text(chunk.type)};
  // zlib takes a 32-bit size, and length + 4 fits in it.
  chunk.crc_holds = crc32(0, at + 4, length + 4) == big_endian(at + 8 + length);
  if (!chunk.crc_holds && (is_critical(chunk.type) || chunk.type == kTransparencyType || is_animation(chunk.type))) {
    return Error{offset, "the CRC of chunk " + text(chunk.type) + " is wrong"};
  }
  chunk.data = file.subspan(offset + 8, length);
  chunk.extent = {offset, offset + kFrame + length};
  return chunk;
}

std::optional<Colour> colour_of(uint8_t png_type) {
  switch (png_type) {
    case 0: return Colour::gray;
    case 2: return Colour::rgb;
    case 3: return Colour::palette;
    case 4: return Colour::gray_alpha;
    case 6: return Colour::rgb_alpha;
    default: return std::nullopt;
  }
}

class Walk {
 public:
  explicit Walk(const ReadOptions& options) : options_(options), notices_(options.notices) {}

  // Returns true if `chunk` is IEND.
  Result<bool> take(const RawChunk& chunk) {
    if (!layout_.header.end && chunk.type != kHeaderType) return fail(chunk, "the first chunk is not IHDR");
    if (pixels_closed_ && chunk.type == kPixelsType) return fail(chunk, "the IDAT chunks are not consecutive");
    if (layout_.pixels.end && chunk.type != kPixelsType) pixels_closed_ = true;

    if (chunk.type == kHeaderType) return take_header(chunk);
    if (chunk.type == kPaletteType) return take_palette(chunk);
    if (chunk.type == kPixelsType) return take_pixels(chunk);
    if (chunk.type == kEndType) return take_end(chunk);
    if (is_critical(chunk.type)) return fail(chunk, "unknown critical chunk " + text(chunk.type));
    return take_ancillary(chunk);
  }

  Result<PngLayout> finish(size_t bytes_after_end) && {
    if (wrong_crcs_ > 0) {
      notice(notices_, "the CRC of chunk " + text(wrong_crc_) + " is wrong" +
                           (wrong_crcs_ > 1 ? ", and of " + std::to_string(wrong_crcs_ - 1) + " more" : "") +
                           ": the data is kept and gets a correct CRC");
    }
    if (animated_) {
      notice(notices_, "animated PNG: only the default image is read, " + std::to_string(frames_) +
                           (frames_ == 1 ? " frame is left out" : " frames are left out"));
    }
    if (bytes_after_end) {
      notice(notices_, std::to_string(bytes_after_end) + " bytes after IEND are left out");
    }
    return std::move(layout_);
  }

 private:
  static Error fail(const RawChunk& chunk, std::string reason) { return Error{chunk.extent.begin, std::move(reason)}; }

  Result<bool> take_header(const RawChunk& chunk) {
    if (layout_.header.end) return fail(chunk, "a second IHDR");
    if (chunk.data.size() != 13) return fail(chunk, "IHDR is not 13 bytes long");
    const uint8_t* data = chunk.data.data();
    Image& image = layout_.image;
    image.width = big_endian(data);
    image.height = big_endian(data + 4);
    image.bits = data[8];
    if (image.width == 0 || image.height == 0) return fail(chunk, "IHDR: width or height is 0");
    if (image.width > kPngMaximum || image.height > kPngMaximum) {
      return fail(chunk, "IHDR: width or height is above 2^31 - 1");
    }
    for (const size_t field : {size_t{0}, size_t{4}}) {
      const uint32_t edge = big_endian(data + field);
      if (edge <= options_.max_edge) continue;
      return Error{chunk.extent.begin + 8 + field, std::string(field == 0 ? "a width of " : "a height of ") +
                                                       std::to_string(edge) + " pixels exceeds the limit of " +
                                                       std::to_string(options_.max_edge)};
    }
    const std::optional<Colour> colour = colour_of(data[9]);
    if (!colour) return fail(chunk, "IHDR: colour type " + std::to_string(data[9]) + " does not exist");
    image.colour = *colour;
    if (!png_has_depth(image.colour, image.bits)) {
      return fail(chunk, "IHDR: a bit depth of " + std::to_string(image.bits) + " does not exist for " +
                             name(image.colour) + " images");
    }
    if (data[10] != 0) return fail(chunk, "IHDR: unknown compression method " + std::to_string(data[10]));
    if (data[11] != 0) return fail(chunk, "IHDR: unknown filter method " + std::to_string(data[11]));
    if (data[12] > 1) return fail(chunk, "IHDR: unknown interlace method " + std::to_string(data[12]));
    layout_.header = chunk.extent;
    return false;
  }

  Result<bool> take_palette(const RawChunk& chunk) {
    Image& image = layout_.image;
    const size_t entries = chunk.data.size() / 3;
    if (palette_seen_) return fail(chunk, "a second PLTE");
    if (layout_.pixels.end) return fail(chunk, "PLTE after IDAT");
    if (image.colour == Colour::gray || image.colour == Colour::gray_alpha) return fail(chunk, "PLTE in a gray image");
    if (chunk.data.size() % 3 != 0 || entries == 0 || entries > 256) {
      return fail(chunk, "PLTE of " + std::to_string(chunk.data.size()) + " bytes");
    }
    palette_seen_ = true;
    if (image.colour != Colour::palette) {
      return keep(chunk, kBeforePixels);
    }
    if (entries > (size_t{1} << image.bits)) {
      return fail(chunk, "PLTE has " + std::to_string(entries) + " colours, too many for indices of " +
                             std::to_string(image.bits) + (image.bits == 1 ? " bit" : " bits"));
    }
    image.palette.assign(chunk.data.begin(), chunk.data.end());
    layout_.palette = chunk.extent;
    return false;
  }

  Result<bool> take_pixels(const RawChunk& chunk) {
    if (layout_.image.colour == Colour::palette && !palette_seen_) return fail(chunk, "no PLTE before IDAT");
    if (!layout_.pixels.end) layout_.pixels.begin = chunk.extent.begin;
    layout_.pixels.end = chunk.extent.end;
    layout_.compressed_bytes += chunk.data.size();
    if (!chunk.data.empty()) {
      const size_t begin = chunk.extent.begin + 8;  // after length and type
      layout_.compressed.push_back({begin, begin + chunk.data.size()});
    }
    return false;
  }

  Result<bool> take_end(const RawChunk& chunk) {
    if (!layout_.pixels.end) return fail(chunk, "no IDAT");
    if (!chunk.data.empty()) return fail(chunk, "IEND is not empty");
    layout_.end = chunk.extent;
    return true;
  }

  Result<bool> take_ancillary(const RawChunk& chunk) {
    if (!chunk.crc_holds && wrong_crcs_++ == 0) wrong_crc_ = chunk.type;
    if (chunk.type == kExifType && !std::exchange(exif_seen_, true)) notice_orientation(options_, chunk.data);
    if (is_animation(chunk.type)) {
      animated_ = true;
      // A frame control chunk before IDAT belongs to the default image.
      if (chunk.type == kFrameType && layout_.pixels.end) ++frames_;
      return false;
    }
    if (chunk.type == kTransparencyType) {
      if (is_meant(chunk)) {
        if (!layout_.image.transparency.empty()) return fail(chunk, "a second tRNS");
        layout_.image.transparency.assign(chunk.data.begin(), chunk.data.end());
        return false;
      }
      if (!std::exchange(stray_transparency_, true)) {
        notice(notices_, "tRNS does not fit this image: it has no effect and is kept as it is");
      }
    }
    return keep(chunk, layout_.pixels.end ? kAfterPixels : palette_seen_ ? kBeforePixels : kBeforePalette);
  }

  // Whether this tRNS fits the image. Decoders ignore others.
  bool is_meant(const RawChunk& chunk) const {
    const size_t size = chunk.data.size();
    if (layout_.pixels.end) return false;
    switch (layout_.image.colour) {
      case Colour::gray: return size == 2;
      case Colour::rgb: return size == 6;
      case Colour::palette: return size > 0 && size <= layout_.image.palette.size() / 3;
      case Colour::gray_alpha:
      case Colour::rgb_alpha: return false;
    }
    return false;
  }

  Result<bool> keep(const RawChunk& chunk, uint8_t place) {
    kept_bytes_ += chunk.data.size() + kChunkOverhead;
    if (kept_bytes_ > options_.max_chunk_bytes) {
      return fail(chunk, "with chunk " + text(chunk.type) + " the metadata is over the limit of " +
                             std::to_string(options_.max_chunk_bytes) + " bytes");
    }
    layout_.image.chunks.push_back(Chunk{chunk.type, place, {chunk.data.begin(), chunk.data.end()}});
    return false;
  }

  PngLayout layout_;
  const ReadOptions& options_;
  std::vector<std::string>* notices_;
  uint64_t kept_bytes_ = 0;
  bool palette_seen_ = false;
  bool pixels_closed_ = false;
  bool stray_transparency_ = false;
  bool animated_ = false;
  bool exif_seen_ = false;
  size_t frames_ = 0;
  size_t wrong_crcs_ = 0;
  ChunkType wrong_crc_{};  // the type of the first such chunk
};

}  // namespace

Result<PngLayout> walk_png(std::span<const uint8_t> file, const ReadOptions& options) {
  if (file.size() < kPngSignature.size() || !std::equal(kPngSignature.begin(), kPngSignature.end(), file.begin())) {
    return Error{0, "the PNG signature is damaged"};
  }
  Walk walk(options);
  size_t offset = kPngSignature.size();
  for (;;) {
    const Result<RawChunk> chunk = chunk_at(file, offset);
    if (!chunk) return chunk.error();
    const Result<bool> ended = walk.take(*chunk);
    if (!ended) return ended.error();
    offset = chunk->extent.end;
    if (*ended) return std::move(walk).finish(file.size() - offset);
  }
}

bool png_has_depth(Colour colour, uint32_t bits) {
  switch (colour) {
    case Colour::gray: return bits == 1 || bits == 2 || bits == 4 || bits == 8 || bits == 16;
    case Colour::palette: return bits == 1 || bits == 2 || bits == 4 || bits == 8;
    case Colour::gray_alpha:
    case Colour::rgb:
    case Colour::rgb_alpha: return bits == 8 || bits == 16;
  }
  return false;
}

bool is_chunk_type(const ChunkType& type) {
  return std::all_of(type.begin(), type.end(), [](char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); });
}

// The first letter of a critical chunk is a capital letter.
bool is_critical(const ChunkType& type) { return type[0] >= 'A' && type[0] <= 'Z'; }

bool is_animation(const ChunkType& type) {
  return type == ChunkType{'a', 'c', 'T', 'L'} || type == kFrameType || type == ChunkType{'f', 'd', 'A', 'T'};
}

}  // namespace formats
