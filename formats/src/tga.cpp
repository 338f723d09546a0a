// Reads TGA version 2, which has a signature at its end. Older versions have no signature.
//
// This does not use stb_image, which takes missing bytes as zeros, uses the first colour for indices beyond the map,
// and ignores that rows can go from right to left.
#include <algorithm>
#include <cstring>
#include <string_view>

#include "adapters.h"
#include "metadata.h"
#include "numbers.h"

namespace formats {
namespace {

constexpr size_t kHeader = 18;
constexpr size_t kFooter = 26;  // two offsets, and the signature
constexpr std::string_view kSignature("TRUEVISION-XFILE.\0", 18);

constexpr uint32_t kIndices = 1, kColours = 2, kGray = 3;  // types of images;
constexpr uint32_t kPacked = 8;                            // added to the type if the pixels are compressed

struct Layout {
  Image image;  // without pixels
  bool packed = false;
  bool from_right = false;
  bool from_top = false;
  uint32_t bits = 0;        // bits of a pixel
  size_t pixels = 0;        // offset of the pixels
  size_t end = 0;           // the pixels end here or before
  bool attributes = false;  // a pixel has bits for alpha, but the file says that they are not alpha
  bool scaled = false;      // samples have 5 bits

  size_t pixel_size() const { return (bits + 7) / 8; }
};

// The latest offset at which the pixels can end: at the first area that the footer names, or at the footer.
size_t end_of_pixels(std::span<const uint8_t> file) {
  const size_t footer = file.size() - kFooter;
  size_t end = footer;
  for (const size_t field : {footer, footer + 4}) {
    const size_t area = load_u32_little(&file[field]);
    if (area >= kHeader) end = std::min(end, area);
  }
  return end;
}

// Converts a colour of 15 to 32 bits to red, green, blue and, if wanted, alpha. With 16 bits, the alpha bit is 0 for an
// opaque pixel, as in Pillow.
void load_colour(const uint8_t* from, uint32_t bits, bool alpha, uint8_t* to) {
  if (bits <= 16) {
    const uint32_t colour = load_u16_little(from);
    to[0] = widened(colour >> 10 & 31, 5);
    to[1] = widened(colour >> 5 & 31, 5);
    to[2] = widened(colour & 31, 5);
    if (alpha) to[3] = colour >> 15 ? 0 : 255;
    return;
  }
  to[0] = from[2];
  to[1] = from[1];
  to[2] = from[0];
  if (alpha) to[3] = from[3];
}

// Whether an extension area says that there is no alpha. It takes precedence over the header.
bool denies_alpha(std::span<const uint8_t> file) {
  constexpr size_t kKindOfAlpha = 494, kNoAlpha = 0;
  const size_t area = load_u32_little(&file[file.size() - kFooter]);
  return area >= kHeader && area < file.size() && file.size() - area > kKindOfAlpha &&
         file[area + kKindOfAlpha] == kNoAlpha;
}

bool is_colour_size(uint32_t bits) { return bits == 15 || bits == 16 || bits == 24 || bits == 32; }

// Reads the colour map. Skips it if the image does not have indices.
std::optional<Error> take_map(std::span<const uint8_t> file, Layout& layout, bool wanted) {
  if (file[1] > 1) return Error{1, "a colour map of type " + std::to_string(file[1])};
  if (file[1] == 0) return wanted ? std::optional(Error{1, "indices without a colour map"}) : std::nullopt;
  const uint32_t first = load_u16_little(&file[3]);
  const uint32_t entries = load_u16_little(&file[5]);
  const uint32_t bits = file[7];
  if (!is_colour_size(bits)) return Error{7, "a colour map of " + std::to_string(bits) + " bits per entry"};
  const size_t entry_size = (bits + 7) / 8;
  const size_t begin = layout.pixels;
  layout.pixels += entries * entry_size;
  if (layout.pixels > layout.end) return Error{layout.end, "the file ends inside the colour map"};
  if (!wanted) return std::nullopt;
  if (first != 0 || entries == 0 || entries > 256) {
    return Error{3, "a colour map of " + std::to_string(entries) + " entries from " + std::to_string(first) + " on"};
  }
  for (uint32_t i = 0; i < entries; ++i) {
    uint8_t colour[4] = {};
    load_colour(&file[begin + i * entry_size], bits, bits == 32, colour);
    layout.image.palette.insert(layout.image.palette.end(), colour, colour + 3);
    if (bits == 32) layout.image.transparency.push_back(colour[3]);
  }
  layout.scaled = bits <= 16;
  layout.attributes = bits == 16;
  return std::nullopt;
}

Result<Layout> layout_of(std::span<const uint8_t> file) {
  Layout layout;
  Image& image = layout.image;
  const uint32_t type = file[2] & ~kPacked;
  const uint32_t attribute_bits = file[17] & 15;
  layout.packed = file[2] & kPacked;
  layout.from_right = file[17] & 0x10;
  layout.from_top = file[17] & 0x20;
  layout.bits = file[16];
  layout.end = end_of_pixels(file);
  if (type != kIndices && type != kColours && type != kGray) {
    return Error{2, "a TGA of type " + std::to_string(file[2]) + ", which is not supported"};
  }
  if (file[17] & 0xC0) return Error{17, "a TGA with interleaved rows, which is not supported"};
  image.width = load_u16_little(&file[12]);
  image.height = load_u16_little(&file[14]);
  if (image.width == 0 || image.height == 0) return Error{12, "width or height is 0"};
  const bool known = type == kIndices ? layout.bits == 8
                     : type == kGray  ? layout.bits == 8 || layout.bits == 16
                                      : is_colour_size(layout.bits);
  if (!known) return Error{16, "a TGA of " + std::to_string(layout.bits) + " bits per pixel"};
  if (type == kIndices) {
    image.colour = Colour::palette;
  } else if (type == kGray) {
    image.colour = layout.bits == 8 ? Colour::gray : Colour::gray_alpha;
  } else {
    const bool room = layout.bits == 16 || layout.bits == 32;
    const bool alpha = room && attribute_bits != 0 && !denies_alpha(file);
    image.colour = alpha ? Colour::rgb_alpha : Colour::rgb;
    layout.attributes = room && !alpha;
    layout.scaled = layout.bits <= 16;
  }
  const bool alpha = image.colour == Colour::gray_alpha || image.colour == Colour::rgb_alpha;
  // Some programs write 8 instead of 1.
  const bool one_bit = layout.bits == 16 && type == kColours && attribute_bits == 1;
  if (alpha && attribute_bits != 0 && attribute_bits != 8 && !one_bit) {
    return Error{17, "a TGA with " + std::to_string(attribute_bits) + " bits of alpha"};
  }
  layout.pixels = kHeader + file[0];
  if (layout.pixels > layout.end) return Error{layout.end, "the file ends inside the image ID"};
  if (std::optional<Error> error = take_map(file, layout, type == kIndices)) return *std::move(error);
  return layout;
}

// Reads the pixels in the order and form of the file. Returns the reason if there are too few. `pixels` must have the
// right size.
std::string unpack(std::span<const uint8_t> packed, size_t pixel_size, std::vector<uint8_t>& pixels) {
  size_t at = 0;
  size_t to = 0;
  while (to < pixels.size()) {
    if (at == packed.size()) return "the file ends inside the pixels";
    const bool repeated = packed[at] & 0x80;
    const size_t bytes = ((packed[at] & 0x7FU) + 1) * pixel_size;
    const size_t stored = repeated ? pixel_size : bytes;
    ++at;
    if (packed.size() - at < stored) return "the file ends inside the pixels";
    if (pixels.size() - to < bytes) return "pixels: a packet continues after the last pixel";
    for (size_t i = 0; i < bytes; ++i) pixels[to + i] = packed[at + i % stored];
    at += stored;
    to += bytes;
  }
  return "";
}

// Converts the stored pixels to those of the Image. Returns an Error for an index that is not in the map.
std::optional<Error> place(const Layout& layout, const uint8_t* stored, Image& image) {
  const size_t count = channels(image.colour);
  const size_t entries = image.palette.size() / 3;
  for (size_t y = 0; y < image.height; ++y) {
    const size_t row = layout.from_top ? y : image.height - 1 - y;
    for (size_t x = 0; x < image.width; ++x, stored += layout.pixel_size()) {
      const size_t column = layout.from_right ? image.width - 1 - x : x;
      uint8_t* pixel = &image.pixels[(row * image.width + column) * count];
      if (image.colour == Colour::rgb || image.colour == Colour::rgb_alpha) {
        load_colour(stored, layout.bits, image.colour == Colour::rgb_alpha, pixel);
        continue;
      }
      if (image.colour == Colour::palette && stored[0] >= entries) {
        return Error{layout.pixels, "pixels: index " + std::to_string(stored[0]) + " in a colour map of " +
                                        std::to_string(entries) + " entries"};
      }
      std::memcpy(pixel, stored, count);
    }
  }
  return std::nullopt;
}

void notice_left(std::span<const uint8_t> file, const Layout& layout, const ReadOptions& options) {
  const bool alpha = layout.image.colour == Colour::gray_alpha || layout.image.colour == Colour::rgb_alpha;
  if (file[0] > 0) notice_left_out(options, "an image ID", file[0]);
  if (alpha && (file[17] & 15) == 0) {
    notice(options.notices,
           "TGA: the last byte of each pixel is taken as alpha, because the file does not say what it is");
  }
  if (layout.scaled) notice(options.notices, "16-bit TGA: samples of 5 bits are scaled to 8");
  if (layout.attributes) {
    notice(options.notices,
           "TGA: the bits of a pixel that are not colours are left out, because the file says that they are not alpha");
  }
  if (layout.scaled && layout.image.colour == Colour::rgb_alpha) {
    notice(options.notices, "16-bit TGA: the attribute bit is taken as alpha, 0 as opaque");
  }
  const size_t footer = file.size() - kFooter;
  if (load_u32_little(&file[footer]) != 0) notice(options.notices, "the extension area is left out");
  if (load_u32_little(&file[footer + 4]) != 0) notice(options.notices, "the developer area is left out");
}

}  // namespace

bool is_tga(std::span<const uint8_t> file) {
  return file.size() >= kHeader + kFooter &&
         std::equal(kSignature.begin(), kSignature.end(), file.end() - static_cast<std::ptrdiff_t>(kSignature.size()));
}

Result<Image> read_tga(std::span<const uint8_t> file, const ReadOptions& options) {
  const Result<Layout> layout = layout_of(file);
  if (!layout) return layout.error();
  Image image = layout->image;
  if (std::optional<Error> error = over_limit(image, options, 12)) return *std::move(error);
  const auto stored = file.subspan(layout->pixels, layout->end - layout->pixels);
  const uint64_t pixels = uint64_t{image.width} * image.height;
  const uint64_t bytes = pixels * layout->pixel_size();
  // A packet of one byte and one pixel becomes at most 128 pixels.
  const uint64_t minimum = layout->packed ? (pixels + 127) / 128 * (layout->pixel_size() + 1) : bytes;
  if (stored.size() < minimum) return Error{layout->end, "the file ends inside the pixels"};

  image.pixels.resize(pixel_bytes(image));
  std::vector<uint8_t> unpacked;
  if (layout->packed) {
    unpacked.resize(static_cast<size_t>(bytes));
    if (std::string reason = unpack(stored, layout->pixel_size(), unpacked); !reason.empty()) {
      return Error{layout->pixels, std::move(reason)};
    }
  }
  const uint8_t* from = layout->packed ? unpacked.data() : stored.data();
  if (std::optional<Error> error = place(*layout, from, image)) return *std::move(error);
  notice_left(file, *layout, options);
  return image;
}

}  // namespace formats
