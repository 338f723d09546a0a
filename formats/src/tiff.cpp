// Reads TIFF with libtiff: integers of 1 to 16 bits, in strips or tiles, with channels interleaved or separate.
//
// libtiff only decodes strips and tiles. This file interprets them and limits the memory for them.
#include <tiffio.h>

#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <memory>

#include "adapters.h"
#include "metadata.h"
#include "tiff_directory.h"

namespace formats {
namespace {

// The message of libtiff, and the file that it reads. It is a plain struct, because the callbacks are called from C.
struct Source {
  const uint8_t* file;
  uint64_t size;
  uint64_t at;
  char error[256];
  char warning[256];
};

// Only the first message counts, because later ones are consequences of it.
void keep_message(char (&text)[256], const char* format, va_list values) {
  if (text[0] != '\0') return;
  (void)std::vsnprintf(text, sizeof text, format, values);
  for (char* letter = text; *letter != '\0'; ++letter) {
    if (static_cast<unsigned char>(*letter) < ' ') *letter = '?';
  }
}

int on_error(TIFF*, void* source, const char*, const char* format, va_list values) {
  keep_message(static_cast<Source*>(source)->error, format, values);
  return 1;
}

int on_warning(TIFF*, void* source, const char*, const char* format, va_list values) {
  keep_message(static_cast<Source*>(source)->warning, format, values);
  return 1;
}

tmsize_t read_source(thandle_t handle, void* to, tmsize_t size) {
  auto* source = static_cast<Source*>(handle);
  if (size <= 0 || source->at >= source->size) return 0;
  const uint64_t count = std::min<uint64_t>(static_cast<uint64_t>(size), source->size - source->at);
  std::memcpy(to, source->file + source->at, static_cast<size_t>(count));
  source->at += count;
  return static_cast<tmsize_t>(count);
}

tmsize_t write_nothing(thandle_t, void*, tmsize_t) { return -1; }

toff_t seek_source(thandle_t handle, toff_t offset, int whence) {
  auto* source = static_cast<Source*>(handle);
  source->at = whence == SEEK_CUR ? source->at + offset : whence == SEEK_END ? source->size + offset : offset;
  return source->at;
}

int close_nothing(thandle_t) { return 0; }
toff_t size_of_source(thandle_t handle) { return static_cast<Source*>(handle)->size; }

struct OptionsDelete {
  void operator()(TIFFOpenOptions* options) const { TIFFOpenOptionsFree(options); }
};

struct TiffDelete {
  void operator()(TIFF* tiff) const { TIFFClose(tiff); }
};
using Tiff = std::unique_ptr<TIFF, TiffDelete>;

// Limits each allocation of libtiff to the largest size of the pixels.
Tiff open_tiff(Source& source, const ReadOptions& options) {
  const std::unique_ptr<TIFFOpenOptions, OptionsDelete> open_options(TIFFOpenOptionsAlloc());
  if (open_options == nullptr) return nullptr;
  constexpr uint64_t kMin = uint64_t{1} << 20, kMax = PTRDIFF_MAX;
  TIFFOpenOptionsSetMaxSingleMemAlloc(open_options.get(),
                                      static_cast<tmsize_t>(std::clamp(options.max_bytes, kMin, kMax)));
  TIFFOpenOptionsSetErrorHandlerExtR(open_options.get(), on_error, &source);
  TIFFOpenOptionsSetWarningHandlerExtR(open_options.get(), on_warning, &source);
  // r: read; m: no memory mapping; h: do not read a directory yet.
  return Tiff(TIFFClientOpenExt("", "rmh", &source, read_source, write_nothing, seek_source, close_nothing,
                                size_of_source, nullptr, nullptr, open_options.get()));
}

// ---- tags

struct Layout {
  Image image;           // without pixels
  uint32_t samples = 1;  // of a pixel in the file; the first ones are the channels of the image
  uint32_t compression = COMPRESSION_NONE;
  bool white_is_zero = false;
  bool apart = false;  // each channel has its own strips or tiles
  bool associated_alpha = false;
};

uint32_t field_u16(TIFF* tiff, uint32_t tag) {
  uint16_t value = 0;
  return TIFFGetFieldDefaulted(tiff, tag, &value) ? value : 0;
}

uint32_t field_u32(TIFF* tiff, uint32_t tag) {
  uint32_t value = 0;
  return TIFFGetFieldDefaulted(tiff, tag, &value) ? value : 0;
}

// The most bytes that one compressed byte can become. 0 if there is no useful bound.
uint32_t most_expansion(uint32_t compression) {
  switch (compression) {
    case COMPRESSION_NONE: return 1;
    case COMPRESSION_PACKBITS: return 64;
    case COMPRESSION_LZW: return 4096;
    case COMPRESSION_ADOBE_DEFLATE:
    case COMPRESSION_DEFLATE: return 1040;
    default: return 0;
  }
}

std::string compression_problem(uint32_t compression) {
  switch (compression) {
    case COMPRESSION_NONE:
    case COMPRESSION_PACKBITS:
    case COMPRESSION_LZW:
    case COMPRESSION_ADOBE_DEFLATE:
    case COMPRESSION_DEFLATE:
    case COMPRESSION_JPEG:
    case COMPRESSION_CCITTRLE:
    case COMPRESSION_CCITTRLEW:
    case COMPRESSION_CCITTFAX3:
    case COMPRESSION_CCITTFAX4:
    case COMPRESSION_ZSTD:
    case COMPRESSION_LZMA:
      if (TIFFIsCODECConfigured(static_cast<uint16_t>(compression))) return "";
      return "this libtiff was built without compression " + std::to_string(compression);
    case COMPRESSION_OJPEG: return "old-style JPEG in TIFF is not supported";
    default: return "compression " + std::to_string(compression) + " is not supported";
  }
}

std::string samples_problem(TIFF* tiff, uint32_t bits) {
  const std::string of_bits = " of " + std::to_string(bits) + " bits";
  switch (field_u16(tiff, TIFFTAG_SAMPLEFORMAT)) {
    case SAMPLEFORMAT_UINT:
    case SAMPLEFORMAT_VOID: break;
    case SAMPLEFORMAT_INT: return "signed samples" + of_bits;
    case SAMPLEFORMAT_IEEEFP: return "floating-point samples" + of_bits;
    default: return "complex samples" + of_bits;
  }
  return bits >= 1 && bits <= 16 ? "" : "samples" + of_bits;
}

// The number of samples of a photometric interpretation, without extra samples. Nothing if it is not supported.
std::optional<uint32_t> take_photometric(uint32_t photometric, Layout& layout) {
  switch (photometric) {
    case PHOTOMETRIC_MINISWHITE: layout.white_is_zero = true; [[fallthrough]];
    case PHOTOMETRIC_MINISBLACK: layout.image.colour = Colour::gray; return 1;
    case PHOTOMETRIC_RGB: layout.image.colour = Colour::rgb; return 3;
    case PHOTOMETRIC_PALETTE: layout.image.colour = Colour::palette; return 1;
    case PHOTOMETRIC_YCBCR:  // libtiff converts it to RGB
      if (layout.compression != COMPRESSION_JPEG || layout.samples != 3 || layout.apart) return std::nullopt;
      layout.image.colour = Colour::rgb;
      return 3;
    default: return std::nullopt;
  }
}

std::string photometric_name(uint32_t photometric) {
  switch (photometric) {
    case PHOTOMETRIC_MASK: return "a transparency mask";
    case PHOTOMETRIC_SEPARATED: return "inks (CMYK)";
    case PHOTOMETRIC_YCBCR: return "YCbCr samples outside JPEG";
    case PHOTOMETRIC_CIELAB:
    case PHOTOMETRIC_ICCLAB:
    case PHOTOMETRIC_ITULAB: return "CIE Lab samples";
    case PHOTOMETRIC_LOGL:
    case PHOTOMETRIC_LOGLUV: return "logarithmic samples";
    case PHOTOMETRIC_CFA: return "samples of a colour filter array";
    default: return "photometric interpretation " + std::to_string(photometric);
  }
}

// Applies the rules of formats.h for extra samples. Returns the reason if there is no rule.
std::string take_extra_samples(TIFF* tiff, bool has_tag, uint32_t colours, Layout& layout, const ReadOptions& options) {
  constexpr uint32_t kMaxUnspecified = 3;
  if (layout.samples < colours) return std::to_string(layout.samples) + " samples for each pixel are too few";
  const uint32_t extra = layout.samples - colours;
  if (extra == 0) return "";
  uint16_t count = 0;
  const uint16_t* kinds = nullptr;
  if (!TIFFGetField(tiff, TIFFTAG_EXTRASAMPLES, &count, &kinds) || count == 0) kinds = nullptr;
  uint32_t kind = kinds != nullptr ? kinds[0] : uint32_t{EXTRASAMPLE_UNSPECIFIED};
  // If a program writes four samples without this tag, it means RGBA.
  if (!has_tag && colours == 3 && extra == 1) kind = EXTRASAMPLE_UNASSALPHA;
  const bool is_alpha = kind != EXTRASAMPLE_UNSPECIFIED;
  const uint32_t left_out = extra - is_alpha;
  if (left_out > (colours == 1 ? 1 : kMaxUnspecified)) {
    return std::to_string(layout.samples) + " samples for each pixel";
  }
  if (is_alpha) {
    if (layout.image.colour == Colour::palette) return "a palette image with alpha";
    layout.image.colour = colours == 1 ? Colour::gray_alpha : Colour::rgb_alpha;
    layout.associated_alpha = kind == EXTRASAMPLE_ASSOCALPHA;
  }
  if (left_out > 0) {
    notice(options.notices, std::to_string(left_out) + (left_out == 1 ? " sample" : " samples") +
                                " of each pixel without a stated meaning " + (left_out == 1 ? "is" : "are") +
                                " left out");
  }
  return "";
}

std::optional<Error> read_layout(TIFF* tiff, std::span<const uint8_t> file, uint64_t offset, const ReadOptions& options,
                                 Layout& layout) {
  Image& image = layout.image;
  image.width = field_u32(tiff, TIFFTAG_IMAGEWIDTH);
  image.height = field_u32(tiff, TIFFTAG_IMAGELENGTH);
  image.bits = field_u16(tiff, TIFFTAG_BITSPERSAMPLE);
  layout.samples = field_u16(tiff, TIFFTAG_SAMPLESPERPIXEL);
  layout.compression = field_u16(tiff, TIFFTAG_COMPRESSION);
  layout.apart = field_u16(tiff, TIFFTAG_PLANARCONFIG) == PLANARCONFIG_SEPARATE && layout.samples > 1;
  if (image.width == 0 || image.height == 0) return Error{offset, "width or height is 0"};
  if (field_u32(tiff, TIFFTAG_IMAGEDEPTH) > 1) return Error{offset, "an image in three dimensions"};
  uint16_t photometric = 0;
  if (!TIFFGetField(tiff, TIFFTAG_PHOTOMETRIC, &photometric)) return Error{offset, "no photometric interpretation"};
  // Colours and samples are checked first, because their errors tell more about the file than its compression.
  const std::optional<uint32_t> colours = take_photometric(photometric, layout);
  if (!colours) return Error{offset, photometric_name(photometric) + ": not supported"};
  if (std::string reason = samples_problem(tiff, image.bits); !reason.empty()) {
    return Error{offset, reason + ": only integers of 1 to 16 bits are supported"};
  }
  if (std::string reason = compression_problem(layout.compression); !reason.empty()) {
    return Error{offset, std::move(reason)};
  }
  if (image.colour == Colour::palette && image.bits > 8) {
    return Error{offset, "a palette image of " + std::to_string(image.bits) + " bits"};
  }
  const bool has_extra = has_tiff_tag(file, offset, TIFFTAG_EXTRASAMPLES);
  if (std::string reason = take_extra_samples(tiff, has_extra, *colours, layout, options); !reason.empty()) {
    return Error{offset, std::move(reason)};
  }
  if (std::optional<Error> error = over_limit(image, options, offset)) return error;
  const uint32_t expansion = most_expansion(layout.compression);
  const uint64_t packed = uint64_t{image.width} * image.height / 8 * image.bits;
  if (expansion != 0 && packed / expansion > file.size()) {
    return Error{offset, "the file is too short for the size of the image"};
  }
  return std::nullopt;
}

// ---- pixels

// The grid of strips or tiles. A strip is a tile that is as wide as the image.
struct Grid {
  uint32_t width, height;  // of a tile
  uint32_t across, down;
  uint64_t row_bytes;
  bool tiled;
};

uint32_t samples_together(const Layout& layout) { return layout.apart ? 1 : layout.samples; }

std::optional<Error> read_grid(TIFF* tiff, const Layout& layout, const ReadOptions& options, uint64_t offset,
                               Grid& grid) {
  const Image& image = layout.image;
  grid.tiled = TIFFIsTiled(tiff) != 0;
  grid.width = grid.tiled ? field_u32(tiff, TIFFTAG_TILEWIDTH) : image.width;
  grid.height =
      grid.tiled ? field_u32(tiff, TIFFTAG_TILELENGTH) : std::min(image.height, field_u32(tiff, TIFFTAG_ROWSPERSTRIP));
  if (grid.width == 0 || grid.height == 0) return Error{offset, "tiles or strips without pixels"};
  grid.across = (image.width - 1) / grid.width + 1;
  grid.down = (image.height - 1) / grid.height + 1;
  const uint64_t row_samples = uint64_t{grid.width} * samples_together(layout);
  grid.row_bytes = row_samples / 8 * image.bits + (row_samples % 8 * image.bits + 7) / 8;
  const uint64_t by_libtiff = grid.tiled ? TIFFTileRowSize64(tiff) : TIFFScanlineSize64(tiff);
  if (by_libtiff != grid.row_bytes) return Error{offset, "rows of another size than their samples"};
  // Tiles can extend far beyond the image, and all their bytes are decoded.
  const uint64_t maximum = options.max_bytes < UINT64_MAX / 2 ? 2 * options.max_bytes : UINT64_MAX;
  const uint64_t tiles = uint64_t{grid.across} * grid.down * (layout.samples / samples_together(layout));
  if (grid.tiled && grid.height > maximum / grid.row_bytes / tiles) {
    return Error{offset, std::to_string(tiles) + " tiles of " + std::to_string(grid.width) + " x " +
                             std::to_string(grid.height) + " pixels exceed the limit of bytes"};
  }
  return std::nullopt;
}

// Copies `count` samples of a row of a tile to the image. They are `step` samples apart.
void store_samples(const uint8_t* row, uint32_t first, uint32_t count, uint32_t step, uint32_t bits, uint32_t flip,
                   uint8_t* to, uint32_t to_step) {
  for (uint32_t i = 0; i < count; ++i) {
    const uint64_t index = first + uint64_t{i} * step;
    if (bits == 16) {
      uint16_t sample = 0;
      std::memcpy(&sample, row + 2 * index, 2);  // already in the byte order of the machine
      sample = static_cast<uint16_t>(sample ^ flip);
      std::memcpy(to + uint64_t{i} * to_step * 2, &sample, 2);
      continue;
    }
    uint32_t sample = 0;
    if (bits == 8) {
      sample = row[index];
    } else {
      for (uint64_t bit = index * bits, left = bits; left > 0;) {
        const auto take = static_cast<uint32_t>(std::min<uint64_t>(left, 8 - bit % 8));
        const uint32_t byte = row[bit / 8];
        sample = sample << take | (byte >> (8 - bit % 8 - take) & ((1U << take) - 1));
        bit += take;
        left -= take;
      }
    }
    sample ^= flip;
    if (bits > 8) {
      const auto wide = static_cast<uint16_t>(sample);
      std::memcpy(to + uint64_t{i} * to_step * 2, &wide, 2);
    } else {
      to[uint64_t{i} * to_step] = static_cast<uint8_t>(sample);
    }
  }
}

class PixelReader {
 public:
  PixelReader(TIFF* tiff, Source& source, Layout& layout, const Grid& grid)
      : tiff_(tiff), source_(source), layout_(layout), image_(layout.image), grid_(grid) {}

  std::optional<Error> read() {
    const uint32_t planes = layout_.apart ? channels(image_.colour) : 1;
    tile_.resize(static_cast<size_t>(grid_.row_bytes * grid_.height));
    source_.warning[0] = '\0';
    for (uint32_t plane = 0; plane < planes; ++plane) {
      for (uint32_t down = 0; down < grid_.down; ++down) {
        for (uint32_t across = 0; across < grid_.across; ++across) {
          if (std::optional<Error> error = read_tile(plane, down, across)) return error;
        }
      }
    }
    return std::nullopt;
  }

 private:
  std::optional<Error> read_tile(uint32_t plane, uint32_t down, uint32_t across) {
    const uint64_t index = (uint64_t{plane} * grid_.down + down) * grid_.across + across;
    const uint32_t rows = std::min(grid_.height, image_.height - down * grid_.height);
    const uint64_t wanted = grid_.row_bytes * (grid_.tiled ? grid_.height : rows);
    if (index > UINT32_MAX) return Error{0, "too many strips"};
    const auto number = static_cast<uint32_t>(index);
    const auto size = static_cast<tmsize_t>(wanted);
    const tmsize_t got = grid_.tiled ? TIFFReadEncodedTile(tiff_, number, tile_.data(), size)
                                     : TIFFReadEncodedStrip(tiff_, number, tile_.data(), size);
    // After damage, libtiff gives a warning and invents pixels. This is treated as an error.
    if (got != size || source_.error[0] != '\0' || source_.warning[0] != '\0') {
      const char* message = source_.error[0] != '\0' ? source_.error : source_.warning;
      return Error{TIFFGetStrileOffset(tiff_, number), (grid_.tiled ? "tile " : "strip ") + std::to_string(number) +
                                                           ": " + (message[0] != '\0' ? message : "it ends early")};
    }
    store_tile(plane, down, across, rows);
    return std::nullopt;
  }

  void store_tile(uint32_t plane, uint32_t down, uint32_t across, uint32_t rows) {
    const uint32_t kept = channels(image_.colour);
    const uint32_t left = across * grid_.width;
    const uint32_t columns = std::min(grid_.width, image_.width - left);
    const uint32_t together = samples_together(layout_);
    const uint32_t flip = layout_.white_is_zero ? (1U << image_.bits) - 1 : 0;
    for (uint32_t y = 0; y < rows; ++y) {
      const uint8_t* row = tile_.data() + y * grid_.row_bytes;
      const uint64_t pixel = (uint64_t{down} * grid_.height + y) * image_.width + left;
      for (uint32_t channel = 0; channel < (layout_.apart ? 1 : kept); ++channel) {
        const uint32_t at = layout_.apart ? plane : channel;
        store_samples(row, channel, columns, together, image_.bits, at == 0 ? flip : 0,
                      image_.pixels.data() + (pixel * kept + at) * bytes_per_sample(image_.bits), kept);
      }
    }
  }

  TIFF* tiff_;
  Source& source_;
  const Layout& layout_;
  Image& image_;
  const Grid& grid_;
  std::vector<uint8_t> tile_;
};

// Reduces 16-bit colours to their upper 8 bits. Old programs stored 8-bit values unchanged.
std::optional<Error> read_colour_map(TIFF* tiff, uint64_t offset, const ReadOptions& options, Image& image) {
  const uint16_t* maps[3] = {};
  if (!TIFFGetField(tiff, TIFFTAG_COLORMAP, &maps[0], &maps[1], &maps[2])) {
    return Error{offset, "a palette image without a palette"};
  }
  const size_t entries = size_t{1} << image.bits;
  const auto any = [&](auto&& test) {
    return std::any_of(std::begin(maps), std::end(maps),
                       [&](const uint16_t* map) { return std::any_of(map, map + entries, test); });
  };
  const bool is_small = !any([](uint16_t value) { return value > 0xFF; });
  image.palette.reserve(3 * entries);
  for (size_t i = 0; i < entries; ++i) {
    for (const uint16_t* map : maps) image.palette.push_back(static_cast<uint8_t>(is_small ? map[i] : map[i] >> 8));
  }
  const bool is_exact = is_small || !any([](uint16_t value) { return (value & 0xFF) != 0; }) ||
                        !any([](uint16_t value) { return (value & 0xFF) != value >> 8; });
  if (!is_exact) notice(options.notices, "the 16-bit colours of the palette are reduced to their upper 8 bits");
  return std::nullopt;
}

// Whether all alpha is 0 or the maximum. In this case premultiplied samples equal plain ones.
bool has_partial_alpha(const Image& image) {
  const uint32_t maximum = (1U << image.bits) - 1;
  const size_t step = channels(image.colour), unit = bytes_per_sample(image.bits);
  for (size_t i = step - 1; i < image.pixels.size() / unit; i += step) {
    uint16_t alpha = image.pixels[i * unit];
    if (unit == 2) std::memcpy(&alpha, image.pixels.data() + 2 * i, 2);
    if (alpha != 0 && alpha != maximum) return true;
  }
  return false;
}

// ---- metadata

std::optional<Error> take_metadata(TIFF* tiff, std::span<const uint8_t> file, uint64_t offset,
                                   const ReadOptions& options, Image& image) {
  uint32_t profile_bytes = 0;
  const void* profile = nullptr;
  if (TIFFGetField(tiff, TIFFTAG_ICCPROFILE, &profile_bytes, &profile) && profile != nullptr) {
    const std::span<const uint8_t> bytes(static_cast<const uint8_t*>(profile), profile_bytes);
    if (auto error = add_profile(image, bytes, options, offset)) return error;
  }
  Result<std::vector<uint8_t>> tags = kept_tiff_tags(file, offset, options);
  if (!tags) return tags.error();
  if (!tags->empty()) {
    if (auto error = add_exif(image, *tags, options, offset)) return error;
  }
  float across = 0, down = 0;
  if (!TIFFGetField(tiff, TIFFTAG_XRESOLUTION, &across) || !TIFFGetField(tiff, TIFFTAG_YRESOLUTION, &down)) {
    return std::nullopt;
  }
  const uint32_t unit = field_u16(tiff, TIFFTAG_RESOLUTIONUNIT);
  const double scale = unit == RESUNIT_INCH ? 1 / 0.0254 : unit == RESUNIT_CENTIMETER ? 100 : 1;
  const auto rounded = [scale](float value) {
    const double scaled = std::round(double{value} * scale);
    return scaled > 0 && scaled < 2147483648.0 ? static_cast<uint32_t>(scaled) : 0;  // 0 if it is not a number
  };
  const DensityUnit density = unit == RESUNIT_NONE ? DensityUnit::none : DensityUnit::metre;
  return add_density(image, rounded(across), rounded(down), density, options, offset);
}

Result<Image> read_page(std::span<const uint8_t> file, uint64_t offset, const ReadOptions& options) {
  Source source{file.data(), file.size(), 0, {}, {}};
  const Tiff tiff = open_tiff(source, options);
  const auto failed = [&](const char* what) {
    return Error{offset, source.error[0] != '\0' ? source.error : std::string(what)};
  };
  if (tiff == nullptr) return failed("out of memory");
  if (!TIFFSetSubDirectory(tiff.get(), offset)) return failed("the directory is damaged");

  Layout layout;
  Image& image = layout.image;
  if (field_u16(tiff.get(), TIFFTAG_COMPRESSION) == COMPRESSION_JPEG) {
    TIFFSetField(tiff.get(), TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
  }
  if (std::optional<Error> error = read_layout(tiff.get(), file, offset, options, layout)) return *std::move(error);
  Grid grid{};
  if (std::optional<Error> error = read_grid(tiff.get(), layout, options, offset, grid)) return *std::move(error);
  if (image.colour == Colour::palette) {
    if (auto error = read_colour_map(tiff.get(), offset, options, image)) return *std::move(error);
  }
  if (auto error = take_metadata(tiff.get(), file, offset, options, image)) return *std::move(error);

  image.pixels.resize(pixel_bytes(image));
  source.error[0] = '\0';
  if (auto error = PixelReader(tiff.get(), source, layout, grid).read()) return *std::move(error);
  if (layout.associated_alpha && has_partial_alpha(image)) {
    return Error{offset, "premultiplied alpha, which cannot be undone without loss"};
  }
  if (layout.compression == COMPRESSION_JPEG) notice_lossy(options, "JPEG");
  return std::move(image);
}

}  // namespace

Result<uint32_t> count_tiff_pages(std::span<const uint8_t> file) {
  const Result<TiffPages> pages = find_tiff_pages(file);
  if (!pages) return pages.error();
  return static_cast<uint32_t>(pages->offsets.size());
}

Result<Image> read_tiff(std::span<const uint8_t> file, const ReadOptions& options) {
  const Result<TiffPages> pages = find_tiff_pages(file);
  if (!pages) return pages.error();
  const size_t count = pages->offsets.size();
  if (options.page == 0 && count > 1) {
    return Error{pages->offsets[1], "a TIFF of " + std::to_string(count) + " pages instead of one"};
  }
  if (options.page > count) {
    return Error{4, "there is no page " + std::to_string(options.page) + ", only " + std::to_string(count)};
  }
  Result<Image> image = read_page(file, pages->offsets[options.page == 0 ? 0 : options.page - 1], options);
  if (image && pages->left_out > 0) {
    notice(options.notices, std::to_string(pages->left_out) +
                                (pages->left_out == 1 ? " reduced image or mask is" : " reduced images or masks are") +
                                " left out");
  }
  return image;
}

}  // namespace formats
