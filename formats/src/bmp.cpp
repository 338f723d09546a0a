// Reads BMP: palette images, also with run-length coding, and colours.
//
// This does not use stb_image, which returns colours instead of indices, takes missing bytes as zeros, and returns
// uninitialized memory for indices beyond the palette.
#include <algorithm>
#include <array>
#include <bit>
#include <iterator>

#include "adapters.h"
#include "metadata.h"
#include "numbers.h"

namespace formats {
namespace {

constexpr size_t kFileHeader = 14;
// Sizes of the second header. Each of these headers begins with the fields of the one before.
constexpr uint32_t kOldHeader = 12;  // of OS/2, has another layout
constexpr uint32_t kHeader = 40;
constexpr uint32_t kHeader2 = 52;   // with masks
constexpr uint32_t kHeader3 = 56;   // with a mask for alpha
constexpr uint32_t kHeader4 = 108;  // with a colour space
constexpr uint32_t kHeader5 = 124;  // with a profile

constexpr uint32_t kUncompressed = 0;
constexpr uint32_t kRuns8 = 1;
constexpr uint32_t kRuns4 = 2;
constexpr uint32_t kBitFields = 3;

// The bits of one channel in a pixel.
struct Field {
  uint32_t shift = 0;
  uint32_t bits = 0;  // 0 if the pixel does not have this channel
};

struct Layout {
  Image image;                    // without pixels
  bool upwards = true;            // the last row comes first
  uint32_t header = 0;            // size of the second header
  uint32_t bits = 0;              // of a pixel
  std::array<Field, 4> fields{};  // for 16 or more bits: red, green, blue, alpha
  bool masked = false;            // the file has masks for the fields
  bool runs = false;              // run-length coded indices
  uint64_t pixels = 0;            // offset of the pixels
  uint64_t row_bytes = 0;

  uint64_t end() const { return pixels + row_bytes * image.height; }
};

Error refuse(std::string reason) { return Error{kFileHeader, std::move(reason)}; }

// Finds the fields of `count` masks. Returns why they are not valid fields of at most eight bits.
std::string take_masks(const uint8_t* masks, size_t count, Layout& layout) {
  uint32_t seen = 0;
  for (size_t i = 0; i < count; ++i) {
    const uint32_t mask = load_u32_little(masks + 4 * i);
    if (mask == 0 && i == 3) continue;  // no alpha
    if (mask == 0) return "the mask of a colour has no bits";
    const uint32_t shift = static_cast<uint32_t>(std::countr_zero(mask));
    const uint32_t ones = mask >> shift;
    if ((ones & (ones + 1)) != 0) return "the bits of a colour mask are not consecutive";
    const uint32_t bits = static_cast<uint32_t>(std::popcount(mask));
    if (bits > 8) return "colours of more than 8 bits";
    if ((mask & seen) != 0 || (layout.bits < 32 && mask >> layout.bits != 0)) {
      return "colour masks that do not fit the pixels";
    }
    seen |= mask;
    layout.fields[i] = {shift, bits};
  }
  return "";
}

// Reads the size and the kind of the pixels from the second header. `before` becomes the offset after the header.
Result<Layout> take_header(std::span<const uint8_t> file, uint64_t& before) {
  Layout layout;
  layout.pixels = load_u32_little(&file[10]);
  layout.header = load_u32_little(&file[kFileHeader]);
  const bool old = layout.header == kOldHeader;
  constexpr std::array kKnown = {kOldHeader, kHeader, kHeader2, kHeader3, kHeader4, kHeader5};
  if (std::find(kKnown.begin(), kKnown.end(), layout.header) == kKnown.end()) {
    return refuse("a BMP header of " + std::to_string(layout.header) + " bytes, which is not supported");
  }
  before = kFileHeader + layout.header;
  if (file.size() < before) return Error{file.size(), "the file ends inside the header"};
  const uint8_t* header = &file[kFileHeader];
  const uint32_t height = old ? load_u16_little(header + 6) : load_u32_little(header + 8);
  layout.upwards = height < 0x80000000;
  layout.image.width = old ? load_u16_little(header + 4) : load_u32_little(header + 4);
  layout.image.height = layout.upwards ? height : ~height + 1;
  if (layout.image.width == 0 || height == 0) return refuse("width or height is 0");
  if (layout.image.width > INT32_MAX || height == 0x80000000) return refuse("an impossible width or height");
  if (load_u16_little(header + (old ? 8 : 12)) != 1) return refuse("the number of planes is not 1");
  layout.bits = load_u16_little(header + (old ? 10 : 14));
  const uint32_t bits = layout.bits;
  if (bits != 1 && bits != 2 && bits != 4 && bits != 8 && bits != 16 && bits != 24 && bits != 32) {
    return refuse("a BMP of " + std::to_string(bits) + " bits per pixel");
  }
  const uint32_t compression = old ? kUncompressed : load_u32_little(header + 16);
  layout.runs = compression == kRuns8 || compression == kRuns4;
  if (layout.runs && bits != (compression == kRuns8 ? 8 : 4)) {
    return refuse("a run-length coded BMP of " + std::to_string(bits) + " bits per pixel");
  }
  if (layout.runs && !layout.upwards) return refuse("a run-length coded BMP that begins with its first row");
  if (!layout.runs && compression != kUncompressed && compression != kBitFields) {
    return refuse("a BMP of compression " + std::to_string(compression) + ", which is not supported");
  }
  layout.masked = compression == kBitFields;
  layout.row_bytes = (uint64_t{layout.image.width} * bits + 31) / 32 * 4;
  return layout;
}

// Reads the palette at `before`, and moves `before` to its end.
std::optional<Error> take_palette(std::span<const uint8_t> file, uint64_t& before, Layout& layout) {
  const bool old = layout.header == kOldHeader;
  const uint32_t maximum = 1U << layout.bits;
  const uint32_t told = old ? 0 : load_u32_little(&file[kFileHeader + 32]);
  if (told > maximum) return refuse("a palette of " + std::to_string(told) + " colours");
  const uint32_t entries = told == 0 ? maximum : told;
  const uint32_t entry_bytes = old ? 3 : 4;
  const uint64_t begin = before;
  before += uint64_t{entries} * entry_bytes;
  if (file.size() < before) return Error{file.size(), "the file ends inside the palette"};
  layout.image.palette.reserve(size_t{3} * entries);
  for (uint64_t at = begin; at < before; at += entry_bytes) {
    layout.image.palette.insert(layout.image.palette.end(), {file[at + 2], file[at + 1], file[at]});
  }
  layout.image.bits = layout.bits;
  layout.image.colour = Colour::palette;
  return std::nullopt;
}

Result<Layout> layout_of(std::span<const uint8_t> file) {
  uint64_t before = 0;
  Result<Layout> read = take_header(file, before);
  if (!read) return read;
  Layout& layout = *read;
  if (layout.masked) {
    if (layout.bits != 16 && layout.bits != 32) {
      return refuse("colour masks for pixels of " + std::to_string(layout.bits) + " bits");
    }
    if (layout.header == kHeader) before += 12;  // in this case the masks follow the header
    if (file.size() < before) return Error{file.size(), "the file ends inside the colour masks"};
    const size_t count = layout.header >= kHeader3 ? 4 : 3;
    if (std::string reason = take_masks(&file[kFileHeader + kHeader], count, layout); !reason.empty()) {
      return refuse(std::move(reason));
    }
  } else if (layout.bits == 16) {
    layout.fields = {Field{10, 5}, Field{5, 5}, Field{0, 5}, Field{}};
  } else if (layout.bits > 16) {
    // Without masks, the fourth byte of a pixel is unused.
    layout.fields = {Field{16, 8}, Field{8, 8}, Field{0, 8}, Field{}};
  }
  if (layout.bits < 16) {
    if (std::optional<Error> error = take_palette(file, before, layout)) return *std::move(error);
  } else {
    layout.image.colour = layout.fields[3].bits != 0 ? Colour::rgb_alpha : Colour::rgb;
  }
  if (layout.pixels < before) return refuse("the pixels begin before the header ends");
  return read;
}

// The number in the file of row `y` of the image.
const uint8_t* row_at(std::span<const uint8_t> file, const Layout& layout, uint64_t y) {
  const uint64_t row = layout.upwards ? layout.image.height - 1 - y : y;
  return file.data() + layout.pixels + row * layout.row_bytes;
}

std::optional<Error> read_indices(std::span<const uint8_t> file, const Layout& layout, Image& image) {
  const uint32_t mask = (1U << layout.bits) - 1;
  const size_t entries = image.palette.size() / 3;
  uint8_t* pixel = image.pixels.data();
  for (uint64_t y = 0; y < image.height; ++y) {
    const uint8_t* row = row_at(file, layout, y);
    for (uint64_t x = 0; x < image.width; ++x) {
      const uint64_t bit = x * layout.bits;
      const uint32_t index = uint32_t{row[bit / 8]} >> (8 - layout.bits - bit % 8) & mask;
      if (index >= entries) {
        return Error{static_cast<uint64_t>(row - file.data()) + bit / 8,
                     "index " + std::to_string(index) + " in a palette of " + std::to_string(entries) + " colours"};
      }
      *pixel++ = static_cast<uint8_t>(index);
    }
  }
  return std::nullopt;
}

void read_samples(std::span<const uint8_t> file, const Layout& layout, Image& image) {
  const size_t pixel_size = layout.bits / 8;
  const size_t count = channels(image.colour);
  uint8_t* sample = image.pixels.data();
  for (uint64_t y = 0; y < image.height; ++y) {
    const uint8_t* at = row_at(file, layout, y);
    for (uint32_t x = 0; x < image.width; ++x, at += pixel_size) {
      uint32_t pixel = load_u16_little(at);
      if (pixel_size > 2) pixel |= uint32_t{at[2]} << 16;
      if (pixel_size > 3) pixel |= uint32_t{at[3]} << 24;
      for (size_t c = 0; c < count; ++c) {
        const Field field = layout.fields[c];
        *sample++ = widened(pixel >> field.shift & ((1U << field.bits) - 1), field.bits);
      }
    }
  }
}

// Some programs store alpha in the unused byte. This adds a notice, unless the byte is 0 or 255 everywhere.
void notice_fourth_byte(std::span<const uint8_t> file, const Layout& layout, const ReadOptions& options) {
  const auto pixels =
      file.subspan(static_cast<size_t>(layout.pixels), static_cast<size_t>(layout.end() - layout.pixels));
  const uint8_t first = pixels[3];
  bool same = first == 0 || first == 255;
  for (size_t i = 3; i < pixels.size() && same; i += 4) same = pixels[i] == first;
  if (!same) notice(options.notices, "32-bit BMP without masks: the unused fourth byte of each pixel is left out");
}

// Decodes run-length coded indices. Pixels that no run sets get index 0. A run is cut at the end of its row. `end`
// becomes the offset after the runs.
std::optional<Error> read_runs(std::span<const uint8_t> file, const Layout& layout, Image& image, uint64_t& end,
                               const ReadOptions& options) {
  const size_t entries = image.palette.size() / 3;
  const uint64_t width = image.width;
  const bool nibbles = layout.bits == 4;
  size_t at = static_cast<size_t>(layout.pixels);
  uint64_t x = 0, y = 0, set = 0;
  bool cut = false;
  std::optional<Error> error;
  const auto put = [&](size_t offset, uint32_t index) {
    if (x >= width) {
      cut = true;
      return true;
    }
    if (index >= entries) {
      error =
          Error{offset, "index " + std::to_string(index) + " in a palette of " + std::to_string(entries) + " colours"};
      return false;
    }
    image.pixels[static_cast<size_t>((image.height - 1 - y) * width + x)] = static_cast<uint8_t>(index);
    ++x;
    ++set;
    return true;
  };
  // Index `i` of the indices at `offset`.
  const auto index_at = [&](size_t offset, uint32_t i) -> uint32_t {
    if (!nibbles) return file[offset];
    return i % 2 == 0 ? uint32_t{file[offset]} >> 4 : file[offset] & 15U;
  };
  const Error short_file{file.size(), "the file ends inside the pixels"};
  for (;;) {
    // The end mark may be missing if all rows are complete.
    const bool full = y + 1 == image.height && x >= width;
    if (y >= image.height || file.size() - std::min(at, file.size()) < 2) {
      if (y >= image.height || full) break;
      return short_file;
    }
    const uint32_t count = file[at];
    const uint32_t value = file[at + 1];
    at += 2;
    if (count > 0) {
      for (uint32_t i = 0; i < count; ++i) {
        if (!put(at - 1, index_at(at - 1, i))) return error;
      }
    } else if (value == 0) {
      x = 0;
      ++y;
      // The end mark is a part of the pixels.
      if (y == image.height && file.size() - at >= 2 && file[at] == 0 && file[at + 1] == 1) at += 2;
    } else if (value == 1) {
      break;
    } else if (value == 2) {
      if (file.size() - at < 2) return short_file;
      x += file[at];
      y += file[at + 1];
      if (x > width || y >= image.height) return Error{at, "a delta leads outside the image"};
      at += 2;
    } else {
      const size_t bytes = nibbles ? (value + 1) / 2 : value;
      if (file.size() - at < bytes) return short_file;
      for (uint32_t i = 0; i < value; ++i) {
        const size_t offset = at + (nibbles ? i / 2 : i);
        if (!put(offset, index_at(offset, i))) return error;
      }
      at = std::min(at + bytes + bytes % 2, file.size());
    }
  }
  end = at;
  if (set < width * image.height) notice(options.notices, "BMP: pixels that no run sets are index 0");
  if (cut) notice(options.notices, "BMP: runs that pass the end of a row are cut off there");
  return std::nullopt;
}

// Adds the density and the profile.
std::optional<Error> take_metadata(std::span<const uint8_t> file, const Layout& layout, Image& image,
                                   const ReadOptions& options) {
  if (layout.header == kOldHeader) return std::nullopt;
  const uint8_t* header = &file[kFileHeader];
  if (layout.header >= kHeader4) {
    constexpr uint32_t kCalibrated = 0, kEmbedded = 0x4D424544, kLinked = 0x4C494E4B;
    const uint32_t space = load_u32_little(header + 56);
    if (space == kLinked) notice(options.notices, "the colour profile is in another file, and is left out");
    if (space == kCalibrated) notice(options.notices, "primaries and gamma are left out");
    if (space == kEmbedded && layout.header == kHeader5) {
      const uint64_t begin = kFileHeader + uint64_t{load_u32_little(header + 112)};
      const uint64_t size = load_u32_little(header + 116);
      if (begin < kFileHeader + layout.header || begin + size > file.size()) {
        return Error{kFileHeader + 112, "a colour profile that is not in the file"};
      }
      const auto profile = file.subspan(static_cast<size_t>(begin), static_cast<size_t>(size));
      if (auto error = add_profile(image, profile, options, begin)) return error;
    }
  }
  return add_density(image, load_u32_little(header + 24), load_u32_little(header + 28), DensityUnit::metre, options,
                     kFileHeader);
}

}  // namespace

bool is_bmp(std::span<const uint8_t> file) {
  if (file.size() < kFileHeader + kOldHeader || file[0] != 'B' || file[1] != 'M') return false;
  // Other files can begin with these two letters, too. So the size of the second header must be one of these; two are
  // those of OS/2.
  constexpr std::array<uint32_t, 8> kLengths = {kOldHeader, 16, kHeader, kHeader2, kHeader3, 64, kHeader4, kHeader5};
  return std::find(kLengths.begin(), kLengths.end(), load_u32_little(&file[kFileHeader])) != kLengths.end();
}

Result<Image> read_bmp(std::span<const uint8_t> file, const ReadOptions& options) {
  Result<Layout> layout = layout_of(file);
  if (!layout) return layout.error();
  Image image = std::move(layout->image);
  layout->image.height = image.height;
  if (std::optional<Error> error = over_limit(image, options, kFileHeader)) return *std::move(error);
  uint64_t end = layout->end();
  if (layout->runs) {
    // Deltas and an early end can skip many pixels, but a small file must not allocate very much memory.
    constexpr uint64_t kFree = 1U << 20, kMaxPerByte = 1024;
    if (pixel_bytes(image) > kFree && pixel_bytes(image) / kMaxPerByte > file.size()) {
      return Error{kFileHeader, "the file is too short for the size of the image"};
    }
    if (layout->pixels > file.size()) return Error{file.size(), "the file ends before the pixels"};
  } else if (file.size() < end)
    return Error{file.size(), "the file ends inside the pixels"};
  if (std::optional<Error> error = take_metadata(file, *layout, image, options)) return *std::move(error);

  image.pixels.resize(pixel_bytes(image));
  if (layout->runs) {
    if (std::optional<Error> error = read_runs(file, *layout, image, end, options)) return *std::move(error);
  } else if (image.colour == Colour::palette) {
    if (std::optional<Error> error = read_indices(file, *layout, image)) return *std::move(error);
  } else {
    read_samples(file, *layout, image);
    if (layout->bits == 32 && !layout->masked) notice_fourth_byte(file, *layout, options);
    const bool scaled = std::any_of(layout->fields.begin(), layout->fields.end(),
                                    [](Field field) { return field.bits != 0 && field.bits < 8; });
    if (scaled) notice(options.notices, "BMP: samples with fewer than 8 bits are scaled to 8");
  }
  // The bytes after the pixels include a profile, which is kept.
  if (const uint64_t left = file.size() - end; left > 0 && layout->header != kHeader5) {
    notice(options.notices, std::to_string(left) + " bytes after the pixels are left out");
  }
  return image;
}

}  // namespace formats
