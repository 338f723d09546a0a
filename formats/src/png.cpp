// Reads and writes PNG. libpng handles the pixels, png_chunks.cpp everything else.
//
// libpng reports errors with longjmp. Functions that call setjmp, and callbacks of libpng, must not have objects with
// destructors when libpng may jump. They share only plain structs with the C++ code around them.
#include <png.h>

#include <algorithm>
#include <bit>
#include <csetjmp>
#include <cstring>
#include <new>
#include <stdexcept>

#include "adapters.h"
#include "png_chunks.h"

namespace formats {
namespace {

constexpr ChunkType kPaletteType = {'P', 'L', 'T', 'E'};
constexpr ChunkType kTransparencyType = {'t', 'R', 'N', 'S'};

constexpr bool kLittleEndian = std::endian::native == std::endian::little;

// The reason why libpng failed. This is the error pointer of libpng; the Source or Sink is its I/O pointer.
struct Message {
  char text[200] = "";
};

[[noreturn]] void on_error(png_structp png, png_const_charp text) {
  Message* message = static_cast<Message*>(png_get_error_ptr(png));
  const size_t length = std::min(std::strlen(text), sizeof message->text - 1);
  std::memcpy(message->text, text, length);
  message->text[length] = '\0';
  png_longjmp(png, 1);
}

// Reading.

struct Part {
  std::span<const uint8_t> bytes;
  size_t offset = 0;  // of these bytes in the file, or of the bytes that they replace
};

// The input of libpng: only the critical chunks, so that it cannot fail on others, and all IDAT chunks joined to one.
// At the end of the pixels, libpng reads at most one more piece of an IDAT chunk. If the stream were split into small
// chunks, libpng would not check the checksum and not see data after it.
struct Source {
  Message message;
  std::span<const Part> parts;
  size_t part = 0;
  size_t used = 0;   // bytes of this part that libpng has read
  size_t piece = 1;  // bytes of IDAT to take at a time
  bool surplus = false;
  uint8_t* pixels = nullptr;
  size_t row_bytes = 0;
  uint32_t height = 0;
};

// Some warnings of libpng are harmless: data after the end of the pixels. Others are not, such as a wrong checksum at
// that end. Every warning that is not known to be harmless is an error.
void on_read_warning(png_structp png, png_const_charp text) {
  if (std::strstr(text, "Extra compressed data") == nullptr && std::strstr(text, "Too much image data") == nullptr) {
    png_error(png, text);
  }
  static_cast<Source*>(png_get_io_ptr(png))->surplus = true;
}

void on_read(png_structp png, png_bytep to, size_t count) {
  Source* source = static_cast<Source*>(png_get_io_ptr(png));
  while (count > 0) {
    const std::span<const uint8_t> left = source->parts[source->part].bytes.subspan(source->used);
    if (left.empty()) {
      if (source->part + 1 == source->parts.size()) png_error(png, "the chunks end early");
      ++source->part;
      source->used = 0;
      continue;
    }
    const size_t step = std::min(count, left.size());
    std::memcpy(to, left.data(), step);
    source->used += step;
    to += step;
    count -= step;
  }
}

// Owns the libpng structs for reading one file.
class ReadHandle {
 public:
  explicit ReadHandle(Source* source) {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, &source->message, on_error, on_read_warning);
    if (png_ != nullptr) info_ = png_create_info_struct(png_);
  }
  ~ReadHandle() { png_destroy_read_struct(&png_, &info_, nullptr); }
  ReadHandle(const ReadHandle&) = delete;
  ReadHandle& operator=(const ReadHandle&) = delete;
  png_structp png() const { return png_; }
  png_infop info() const { return info_; }

 private:
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
};

// Fills source->pixels. If libpng fails, sets source->message and returns false.
bool read_rows(png_structp png, png_infop info, Source* source) {
  if (setjmp(png_jmpbuf(png))) return false;
  png_set_read_fn(png, source, on_read);
  png_set_sig_bytes(png, static_cast<int>(kPngSignature.size()));
  png_set_user_limits(png, kPngMaximum, kPngMaximum);              // the caller's limits are checked already,
  png_set_crc_action(png, PNG_CRC_QUIET_USE, PNG_CRC_QUIET_USE);   // and so are the CRCs
  png_set_check_for_invalid_index(png, 0);                         // indices past the palette are kept
  png_set_option(png, PNG_MAXIMUM_INFLATE_WINDOW, PNG_OPTION_ON);  // for zlib headers that name a smaller one
  png_set_compression_buffer_size(png, source->piece);
  png_set_benign_errors(png, 1);  // they become warnings in on_read_warning
  png_read_info(png, info);
  png_set_packing(png);
  if (kLittleEndian) png_set_swap(png);
  const int passes = png_set_interlace_handling(png);
  png_read_update_info(png, info);
  if (png_get_rowbytes(png, info) != source->row_bytes) png_error(png, "rows of an unexpected length");
  for (int pass = 0; pass < passes; ++pass) {
    for (uint32_t y = 0; y < source->height; ++y) png_read_row(png, source->pixels + y * source->row_bytes, nullptr);
  }
  return true;
}

// Deflate needs at least two bits for 258 bytes. A header with more pixels than that is refused here, before memory for
// the pixels is allocated.
bool can_hold_pixels(const PngLayout& layout) {
  constexpr uint64_t kMaxBytesPerByte = 1032;
  const uint64_t bytes = pixel_bytes(layout.image);
  const uint64_t packed = layout.image.bits < 8 ? bytes / (8 / layout.image.bits) : bytes;
  return packed / kMaxBytesPerByte <= layout.compressed_bytes;
}

// Pieces have about 64 KiB and equal sizes, so that the last one is not too small to hold the end of the stream.
size_t even_piece(size_t bytes) {
  constexpr size_t kPiece = size_t{1} << 16;
  const size_t pieces = std::max<size_t>(1, (bytes + kPiece - 1) / kPiece);
  return std::max<size_t>(1, (bytes + pieces - 1) / pieces);
}

// The length and the type of one IDAT chunk with all compressed bytes.
std::array<uint8_t, 8> merged_header(size_t bytes) {
  const auto byte = [&](int shift) { return static_cast<uint8_t>(bytes >> shift & 0xFF); };
  return {byte(24), byte(16), byte(8), byte(0), 'I', 'D', 'A', 'T'};
}

// Writing.

struct Sink {
  Message message;
  std::vector<uint8_t>* out = nullptr;
  const Image* image = nullptr;
  std::array<png_color, 256> palette{};
  int level = -1;
};

// A warning while writing means that something was not written, so it is an error.
void on_write_warning(png_structp png, png_const_charp text) { png_error(png, text); }

bool append(std::vector<uint8_t>* out, const uint8_t* bytes, size_t count) {
  try {
    out->insert(out->end(), bytes, bytes + count);
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

void on_write(png_structp png, png_bytep bytes, size_t count) {
  // This must not be in the catch block: a longjmp out of it would leak the exception.
  if (!append(static_cast<Sink*>(png_get_io_ptr(png))->out, bytes, count)) png_error(png, "out of memory");
}

void on_flush(png_structp) {}

class WriteHandle {
 public:
  explicit WriteHandle(Sink* sink) {
    png_ = png_create_write_struct(PNG_LIBPNG_VER_STRING, &sink->message, on_error, on_write_warning);
    if (png_ != nullptr) info_ = png_create_info_struct(png_);
  }
  ~WriteHandle() { png_destroy_write_struct(&png_, &info_); }
  WriteHandle(const WriteHandle&) = delete;
  WriteHandle& operator=(const WriteHandle&) = delete;
  png_structp png() const { return png_; }
  png_infop info() const { return info_; }

 private:
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
};

int png_type(Colour colour) {
  switch (colour) {
    case Colour::gray: return PNG_COLOR_TYPE_GRAY;
    case Colour::gray_alpha: return PNG_COLOR_TYPE_GRAY_ALPHA;
    case Colour::rgb: return PNG_COLOR_TYPE_RGB;
    case Colour::rgb_alpha: return PNG_COLOR_TYPE_RGB_ALPHA;
    case Colour::palette: return PNG_COLOR_TYPE_PALETTE;
  }
  return -1;
}

void write_chunk(png_structp png, const ChunkType& type, const std::vector<uint8_t>& data) {
  png_byte name[5] = {};
  std::memcpy(name, type.data(), 4);
  png_write_chunk(png, name, data.data(), data.size());
}

void write_chunks(png_structp png, const Image& image, uint8_t place, bool palettes) {
  for (const Chunk& chunk : image.chunks) {
    if (chunk.place == place && (chunk.type == kPaletteType) == palettes) write_chunk(png, chunk.type, chunk.data);
  }
}

// Appends the file to *sink->out. If libpng fails, sets sink->message and returns false.
bool write_file(png_structp png, png_infop info, Sink* sink) {
  if (setjmp(png_jmpbuf(png))) return false;
  const Image& image = *sink->image;
  png_set_write_fn(png, sink, on_write, on_flush);
  png_set_user_limits(png, kPngMaximum, kPngMaximum);
  png_set_check_for_invalid_index(png, 0);
  if (sink->level >= 0) png_set_compression_level(png, sink->level);
  png_set_IHDR(png, info, image.width, image.height, static_cast<int>(image.bits), png_type(image.colour),
               PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_BASE, PNG_FILTER_TYPE_BASE);
  if (image.colour == Colour::palette) {
    png_set_PLTE(png, info, sink->palette.data(), static_cast<int>(image.palette.size() / 3));
  }
  png_write_info_before_PLTE(png, info);
  write_chunks(png, image, kBeforePalette, false);
  png_write_info(png, info);
  // A suggested palette comes first, because tRNS and the other chunks here must follow it.
  write_chunks(png, image, kBeforePalette, true);
  write_chunks(png, image, kBeforePixels, true);
  if (!image.transparency.empty()) write_chunk(png, kTransparencyType, image.transparency);
  write_chunks(png, image, kBeforePixels, false);

  png_set_packing(png);
  if (kLittleEndian) png_set_swap(png);
  const size_t row_bytes = pixel_bytes(image) / image.height;
  for (uint32_t y = 0; y < image.height; ++y) png_write_row(png, image.pixels.data() + y * row_bytes);
  write_chunks(png, image, kAfterPixels, false);
  png_write_end(png, nullptr);
  return true;
}

std::string depth_problem(const Image& image) {
  if (png_has_depth(image.colour, image.bits)) return "";
  std::string reason = "PNG has no " + std::string(name(image.colour)) + " samples of " + std::to_string(image.bits) +
                       (image.bits == 1 ? " bit" : " bits");
  return image.colour == Colour::palette ? reason : reason + ": write .pam";
}

std::string chunk_problem(const Image& image) {
  size_t palettes = 0;
  for (const Chunk& chunk : image.chunks) {
    if (!is_chunk_type(chunk.type)) return "a chunk whose type is not four letters";
    const std::string type(chunk.type.data(), chunk.type.size());
    if (chunk.place > kAfterPixels) return "chunk " + type + " at a place that PNG does not have";
    if (chunk.data.size() > kPngMaximum) return "chunk " + type + " is longer than 2^31 - 1 bytes";
    if (is_animation(chunk.type)) return "chunk " + type + ": animations are not written";
    if (chunk.type == kPaletteType) {
      const size_t size = chunk.data.size();
      const bool colours = image.colour == Colour::rgb || image.colour == Colour::rgb_alpha;
      if (!colours || ++palettes > 1 || chunk.place == kAfterPixels || size == 0 || size % 3 != 0 || size > 768) {
        return "chunk PLTE cannot be a suggested palette of this image";
      }
    } else if (is_critical(chunk.type)) {
      return "chunk " + type + " is critical and cannot be kept";
    }
  }
  return "";
}

}  // namespace

// A file with a damaged signature counts as PNG, so that the error tells of the damage.
bool is_png(std::span<const uint8_t> file) {
  const auto same = [&](size_t begin, size_t end) {
    return file.size() >= end && std::equal(kPngSignature.begin() + static_cast<std::ptrdiff_t>(begin),
                                            kPngSignature.begin() + static_cast<std::ptrdiff_t>(end),
                                            file.begin() + static_cast<std::ptrdiff_t>(begin));
  };
  return same(1, 4) || (same(0, 1) && same(4, 8));
}

Result<Image> read_png(std::span<const uint8_t> file, const ReadOptions& options) {
  Result<PngLayout> walked = walk_png(file, options);
  if (!walked) return walked.error();
  PngLayout& layout = *walked;
  Image& image = layout.image;
  if (std::optional<Error> error = over_limit(image, options, layout.header.begin)) return *std::move(error);
  if (layout.compressed_bytes > kPngMaximum) {
    return Error{layout.pixels.begin, "more than 2^31 - 1 bytes of compressed pixels"};
  }
  if (!can_hold_pixels(layout))
    return Error{layout.pixels.begin, "the IDAT chunks are too short for the size of the image"};
  if (!options.with_pixels) return std::move(image);
  image.pixels.resize(pixel_bytes(image));

  const std::array<uint8_t, 8> idat = merged_header(layout.compressed_bytes);
  constexpr std::array<uint8_t, 4> kUncheckedCrc{};
  const auto part = [&](Extent extent) {
    return Part{file.subspan(extent.begin, extent.end - extent.begin), extent.begin};
  };
  std::vector<Part> parts = {part(layout.header), part(layout.palette), Part{idat, layout.pixels.begin}};
  for (const Extent& extent : layout.compressed) parts.push_back(part(extent));
  parts.push_back(Part{kUncheckedCrc, layout.pixels.end - kUncheckedCrc.size()});
  parts.push_back(part(layout.end));

  Source source;
  source.parts = parts;
  source.piece = even_piece(layout.compressed_bytes);
  source.pixels = image.pixels.data();
  source.height = image.height;
  source.row_bytes = image.pixels.size() / image.height;
  const ReadHandle handle(&source);
  if (handle.info() == nullptr) return Error{0, "cannot start libpng"};
  if (!read_rows(handle.png(), handle.info(), &source)) {
    return Error{parts[source.part].offset + source.used, "pixel data: " + std::string(source.message.text)};
  }
  if (source.surplus) notice(options.notices, "data after the last pixel in IDAT is left out");
  return std::move(image);
}

Result<std::vector<uint8_t>> write_png(const Image& image, const WriteOptions& options) {
  if (image.width > kPngMaximum || image.height > kPngMaximum)
    return Error{0, "a PNG has at most 2^31 - 1 pixels a side"};
  if (std::string reason = depth_problem(image); !reason.empty()) return Error{0, std::move(reason)};
  if (std::string reason = chunk_problem(image); !reason.empty()) return Error{0, std::move(reason)};
  if (options.png_level < -1 || options.png_level > 9) {
    return Error{0, "a zlib level of " + std::to_string(options.png_level) + " instead of -1 to 9"};
  }
  std::vector<uint8_t> out;
  Sink sink;
  sink.out = &out;
  sink.image = &image;
  sink.level = options.png_level;
  for (size_t i = 0; i < image.palette.size() / 3; ++i) {
    sink.palette[i] = {image.palette[3 * i], image.palette[3 * i + 1], image.palette[3 * i + 2]};
  }
  const WriteHandle handle(&sink);
  if (handle.info() == nullptr) return Error{0, "cannot start libpng"};
  if (!write_file(handle.png(), handle.info(), &sink)) return Error{0, sink.message.text};
  return out;
}

}  // namespace formats
