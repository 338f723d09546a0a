// Foreign image files to Image and back: PNG in full, PBM, PGM, PPM and PAM. JPEG, WebP, BMP, GIF, PSD, TGA, TIFF
// and JPEG XL are read only, JPEG XL where libjxl was there when this was built.
//
// Every function here is thread-safe, throws nothing, and writes to no stream; failure is a value. File contents are
// hostile: any bytes either give an Image or an Error.
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
  uint64_t offset = 0;  // reading: the byte of the file, or of the chunk, where it went wrong; writing: 0
  std::string reason;   // one line, without the file's name
};

// A T or the Error that took its place. `value` and the operators need a T to be there, `error` an Error.
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

// What can be written. What is read is told from the file's contents alone.
enum class Format : uint8_t { png, pbm, pgm, ppm, pam };

inline constexpr uint64_t kChunkOverhead = 12;

struct ReadOptions {
  // Checked against the file's header before anything of the image's size is allocated.
  uint64_t max_pixels = uint64_t{1} << 28;  // width times height
  uint64_t max_bytes = uint64_t{1} << 30;   // of Image::pixels
  uint32_t max_edge = UINT32_MAX;           // width and height

  // Of a file of several pages: which one, from 1. 0: the only one, and a file of more is refused.
  uint32_t page = 0;

  // Of the data of all chunks that are kept, with kChunkOverhead for each.
  uint64_t max_chunk_bytes = UINT64_MAX;

  // Without them Image::pixels stays empty where a reader can skip them: that of PNG does, and does not check them.
  bool with_pixels = true;

  // Where set, one line is appended for each thing that the Image does not hold, such as an animation's frames.
  std::vector<std::string>* notices = nullptr;
};

struct WriteOptions {
  int png_level = -1;  // zlib's 0..9; -1 leaves the choice to libpng

  // As in ReadOptions: one line for each part of the Image that the format has no room for.
  std::vector<std::string>* notices = nullptr;
};

// Reads an image file. What is damaged is refused, also where a viewer would show something. Bytes after the image are
// left out with a notice; only PNM refuses them.
// PNG: every chunk's CRC must hold, but an ancillary chunk that says nothing about the pixels is kept with a notice. Of
// an animation only the default image is read, with a notice. Bytes after the compressed pixels are left out with a
// notice too. PNM (P1 to P6) and PAM (P7): maxval must be 2^n - 1; a PBM becomes gray samples of one bit, with 1 for
// white. JPEG: gray, RGB or CMYK of 8 bits, at the pixels of the accurate transform, not rotated; inks become RGB with
// a notice, as Pillow converts them. WebP: RGB, with alpha where the file has it; of an animation the first frame. BMP:
// also run-length coded, with index 0 where no run sets a pixel; alpha only where a mask names it. GIF: the first
// frame; around it the screen is transparent, or else index 0. PSD: the merged image of gray and RGB
// files, unless it has partly transparent pixels. TGA: of version 2; of 16 or 32
// bits, alpha only where the file says that there are attribute bits. Those with palettes become palette images, with
// indices that are in the palette; samples of fewer than 8 bits are scaled to 8, with a notice.
// TIFF: whole numbers of 1 to 16 bits without a sign, gray (min-is-white becomes 0 for black), RGB and palettes, in
// strips or tiles, with channels together or apart. Palettes of 16 bits become their upper 8, with a notice where that
// changes them. The first extra sample is alpha where its tag says so, and the fourth sample of RGB without that tag;
// samples without a stated meaning are left out with a notice (one of gray, up to three of RGB). Samples multiplied by
// alpha are refused, unless all of the alpha is 0 or the maximum. Reduced images and masks are no pages. Tags that do
// not say how pixels are stored (GeoTIFF's, a description, an orientation ...) are kept in one eXIf chunk.
// JPEG XL: whole numbers of up to 16 bits; the first frame, upright; EXIF and XMP are left out.
// A lossy file's pixels are its decoded ones, and a notice says so. Colour profiles, EXIF and densities become the
// chunks that a PNG would have them in; of other metadata notices say that it is left out.
Result<Image> read(std::span<const uint8_t> file, const ReadOptions& options = {});

// Whether a file is of a format that `read` knows: by its first bytes, TGA by its last.
bool is_known(std::span<const uint8_t> file);

// That format: "png", "pnm" (PAM too), "jpeg", "webp", "bmp", "gif", "psd", "tiff", "jxl" or "tga"; empty if there is
// none.
std::string_view known_name(std::span<const uint8_t> file);

// All formats that `read` knows, for people: "PNG, PBM, ...".
std::string readable_formats();

// How many images `read` can be asked for by ReadOptions::page: 1 unless the file is a TIFF. Of other files only those
// bytes are looked at that tell a TIFF.
Result<uint32_t> count_pages(std::span<const uint8_t> file);

// The bytes of a file that holds `image`, or why the format cannot hold its samples.
// png: everything, chunks at the places that they name. pbm: gray images of one bit. pgm: gray images, and the indices
// of palette images. ppm: RGB images, and palette images as colours. pam: all images, palettes as indices.
Result<std::vector<uint8_t>> write(Format format, const Image& image, const WriteOptions& options = {});

// The format that a path's extension asks for, in either case: .png, .pbm, .pgm, .ppm, .pam; else none.
std::optional<Format> format_of(std::string_view path);

// Whether a path's extension is one of a format that `read` knows, in either case: one of those, .pnm, .jpg, .jpeg,
// .jpe, .jfif, .webp, .bmp, .dib, .gif, .apng, .psd, .tga, .tif, .tiff or .jxl.
bool is_readable_name(std::string_view path);

// The extension of a path, in small letters, where it is one of an image format that `read` does not know, such as
// .dcm; else empty.
std::string_view unread_extension(std::string_view path);

}  // namespace formats
