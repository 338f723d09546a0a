// Reads image files of other formats to an Image, and writes Images. PNG, PBM, PGM, PPM and PAM can be read and
// written. JPEG, WebP, BMP, GIF, PSD, TGA, TIFF and JPEG XL can only be read; JPEG XL needs libjxl when this is built.
//
// Every function here is thread-safe, throws nothing and prints nothing. Failures are return values. Files may be
// hostile: any bytes give either an Image or an Error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "formats/image.h"

namespace formats {

struct Error {
  uint64_t offset = 0;  // reading: offset of the byte or chunk where it failed; writing: 0
  std::string reason;   // one line, without the name of the file
};

// Either a T or an Error. value() and the operators * and -> need a T, error() needs an Error.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& value() & { return *std::get_if<0>(&state_); }
  const T& value() const& { return *std::get_if<0>(&state_); }
  T&& value() && { return std::move(*std::get_if<0>(&state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  const Error& error() const { return *std::get_if<1>(&state_); }

 private:
  std::variant<T, Error> state_;
};

// The formats that can be written. For reading, the contents of a file tell its format.
enum class Format : uint8_t { png, pbm, pgm, ppm, pam };

inline constexpr uint64_t kChunkOverhead = 12;

struct ReadOptions {
  // These limits are checked with the header of the file, before memory for the image is allocated.
  uint64_t max_pixels = uint64_t{1} << 28;  // width times height
  uint64_t max_bytes = uint64_t{1} << 30;   // of Image::pixels
  uint32_t max_edge = UINT32_MAX;           // width and height

  // The page to read, from 1. 0 means the only page: a file with several pages is refused.
  uint32_t page = 0;

  // Limit for the data of all kept chunks. Each chunk counts kChunkOverhead more.
  uint64_t max_chunk_bytes = UINT64_MAX;

  // If false, a reader that can skip the pixels leaves Image::pixels empty and does not check them. Only PNG does.
  bool with_pixels = true;

  // Whether there is a notice of an EXIF orientation that is not upright.
  bool tells_orientation = true;

  // If set, gets one line for each thing that the Image cannot hold, such as further frames of an animation.
  std::vector<std::string>* notices = nullptr;
};

struct WriteOptions {
  int png_level = -1;  // level of zlib, 0..9; -1: the default of libpng

  // If set, gets one line for each part of the Image that the format cannot hold.
  std::vector<std::string>* notices = nullptr;
};

// Reads an image file. A damaged file is refused, even if a viewer would show something. Bytes after the image are left
// out with a notice, except in PNM, where they are an error. Whatever an Image cannot hold is left out with a notice.
//
// PNG: all CRCs must be correct. If only that of an ancillary chunk without influence on the pixels is wrong, the chunk
// is
//   kept with a notice. Of an animation only the default image is read. Bytes after the compressed pixels are left out.
// PNM (P1 to P6) and PAM (P7): maxval must be 2^n - 1. A PBM becomes gray samples of one bit, with 1 for white.
// JPEG: gray, RGB or CMYK of 8 bits. The pixels are those of the accurate transform, and they are not rotated. CMYK is
//   converted to RGB as Pillow does, with a notice.
// WebP: RGB, with alpha if the file has it. Of an animation only the first frame is read.
// BMP: also with run-length coding. Pixels that no run sets have index 0. There is alpha only if a mask names it.
// Samples
//   with fewer than 8 bits are scaled to 8, with a notice.
// GIF: the first frame. Pixels outside the frame have the transparent index, or index 0 if there is none.
// PSD: the merged image of gray and RGB files. Partly transparent pixels are refused.
// TGA: version 2. With 16 or 32 bits, there is alpha only if the file says that there are attribute bits. Samples with
//   fewer than 8 bits are scaled to 8, with a notice.
// BMP, GIF and TGA files with a palette become palette images, and every index must be in the palette.
// TIFF: unsigned integers of 1 to 16 bits, gray (0 becomes black), RGB and palettes, in strips or tiles, with channels
//   interleaved or separate. A 16-bit palette is reduced to its upper 8 bits, with a notice if that changes it. The
//   first extra sample is alpha if its tag says so, and so is the fourth sample of RGB without that tag. Other extra
//   samples are left out with a notice (one of gray, up to three of RGB). Premultiplied alpha is refused, unless all
//   alpha is 0 or the maximum. Reduced images and masks are not pages. Tags that do not describe how pixels are stored,
//   such as those of GeoTIFF, a description or an orientation, are kept in one eXIf chunk.
// JPEG XL: integers of up to 16 bits; the first frame, upright. EXIF and XMP are left out.
//
// A lossy file gives its decoded pixels, and a notice says so. Colour profiles, EXIF and densities become the chunks
// that a PNG has for them.
Result<Image> read(std::span<const uint8_t> file, const ReadOptions& options = {});

// Whether a file has a format that read() knows. The first bytes tell, for TGA the last ones.
bool is_known(std::span<const uint8_t> file);

// The format of a file: "png", "pnm" (also for PAM), "jpeg", "webp", "bmp", "gif", "psd", "tiff", "jxl" or "tga". Empty
// if it is unknown.
std::string_view known_name(std::span<const uint8_t> file);

// The names of all formats that read() knows, for users: "PNG, PBM, ...".
std::string readable_formats();

// The number of pages that ReadOptions::page can choose from. It is 1 for all formats except TIFF.
Result<uint32_t> count_pages(std::span<const uint8_t> file);

// Returns the bytes of a file with `image`, or why the format cannot hold its samples.
// png: all images with all chunks. pbm: gray images of one bit. pgm: gray images, and the indices of palette images.
// ppm: RGB images, and the colours of palette images. pam: all images, and the indices of palette images.
Result<std::vector<uint8_t>> write(Format format, const Image& image, const WriteOptions& options = {});

// The format for the extension of a path, in capital or small letters: .png, .pbm, .pgm, .ppm or .pam.
std::optional<Format> format_of(std::string_view path);

// Whether the extension of a path is one of a format that read() knows, in capital or small letters: one of the above,
// .pnm, .jpg, .jpeg, .jpe, .jfif, .webp, .bmp, .dib, .gif, .apng, .psd, .tga, .tif, .tiff or .jxl.
bool is_readable_name(std::string_view path);

// Returns the extension of a path, in small letters, if it is one of an image format that read() does not know, such as
// .dcm. Returns an empty text for other paths.
std::string_view unread_extension(std::string_view path);

}  // namespace formats
