// Reads the merged image of gray and RGB PSD files.
//
// This does not use stb_image, which changes the colours of partly transparent pixels, decodes compressed 16-bit
// samples wrongly, and takes missing bytes as zeros.
#include <algorithm>
#include <cstring>

#include "adapters.h"
#include "metadata.h"
#include "numbers.h"

namespace formats {
namespace {

constexpr size_t kHeader = 26;
constexpr uint32_t kMaxEdge = 30000;     // the limit of Photoshop
constexpr uint32_t kGray = 1, kRgb = 3;  // colour modes

// Numbers of image resources.
constexpr uint32_t kProfile = 1039, kVersionInfo = 1057, kExif = 1058;

struct Layout {
  std::span<const uint8_t> profile, exif;
  uint64_t other_resources = 0;
  bool merged = true;  // whether the file has a merged image
  uint64_t layer_bytes = 0;
  size_t pixels = 0;  // offset of the pixels, which begin with their compression
};

Error ends_inside(std::span<const uint8_t> file, const char* what) {
  return Error{file.size(), std::string("the file ends inside the ") + what};
}

// Reads a section, which begins at `at` with its length, and moves `at` to its end. Returns nothing if the file ends
// too early.
std::optional<std::span<const uint8_t>> section_at(std::span<const uint8_t> file, size_t& at) {
  if (file.size() - at < 4) return std::nullopt;
  const size_t bytes = load_u32_big(&file[at]);
  if (file.size() - at - 4 < bytes) return std::nullopt;
  at += 4 + bytes;
  return file.subspan(at - bytes, bytes);
}

// Reads blocks of a mark, a number, a name and contents, each padded to an even length. Returns false if they are
// damaged.
bool take_resources(std::span<const uint8_t> resources, Layout& layout) {
  size_t at = 0;
  while (at < resources.size()) {
    const auto left = resources.subspan(at);
    if (left.size() < 12 || (std::memcmp(left.data(), "8BIM", 4) != 0 && std::memcmp(left.data(), "MeSa", 4) != 0)) {
      return false;
    }
    const uint32_t number = load_u16_big(&left[4]);
    const size_t name = (size_t{left[6]} + 2) / 2 * 2;
    if (left.size() < 6 + name + 4) return false;
    const size_t bytes = load_u32_big(&left[6 + name]);
    const size_t begin = 6 + name + 4;
    if (left.size() - begin < bytes) return false;
    const auto contents = left.subspan(begin, bytes);
    if (number == kProfile) {
      layout.profile = contents;
    } else if (number == kExif) {
      layout.exif = contents;
    } else if (number == kVersionInfo && bytes >= 5) {
      layout.merged = contents[4] != 0;
    } else {
      ++layout.other_resources;
    }
    at += begin + bytes + std::min(bytes & 1, left.size() - begin - bytes);
  }
  return true;
}

Result<Layout> layout_of(std::span<const uint8_t> file) {
  Layout layout;
  size_t at = kHeader;
  if (!section_at(file, at)) return ends_inside(file, "colour mode data");
  const size_t resources_at = at;
  const auto resources = section_at(file, at);
  if (!resources) return ends_inside(file, "image resources");
  if (!take_resources(*resources, layout)) return Error{resources_at, "the image resources are damaged"};
  const auto layers = section_at(file, at);
  if (!layers) return ends_inside(file, "layers");
  layout.layer_bytes = layers->size();
  layout.pixels = at;
  if (file.size() - at < 2) return ends_inside(file, "pixels");
  return layout;
}

// Reads the properties of the image from the header.
Result<Image> image_of(std::span<const uint8_t> file) {
  if (file.size() < kHeader) return ends_inside(file, "header");
  if (load_u16_big(&file[4]) != 1) return Error{4, "a PSD of version " + std::to_string(load_u16_big(&file[4]))};
  const uint32_t count = load_u16_big(&file[12]);
  Image image;
  image.height = load_u32_big(&file[14]);
  image.width = load_u32_big(&file[18]);
  image.bits = load_u16_big(&file[22]);
  const uint32_t mode = load_u16_big(&file[24]);
  if (mode != kGray && mode != kRgb) {
    return Error{24, "a PSD of colour mode " + std::to_string(mode) + ": only gray (1) and RGB (3) are supported"};
  }
  const uint32_t colours = mode == kGray ? 1 : 3;
  if (count < colours || count > 56) return Error{12, "a PSD of " + std::to_string(count) + " channels"};
  if (image.bits != 8 && image.bits != 16) {
    return Error{22, "a PSD of " + std::to_string(image.bits) + " bits per sample"};
  }
  if (image.width == 0 || image.height == 0) return Error{14, "width or height is 0"};
  if (image.width > kMaxEdge || image.height > kMaxEdge) {
    return Error{14, "a side of more than " + std::to_string(kMaxEdge) + " pixels"};
  }
  if (mode == kGray) {
    image.colour = count == 1 ? Colour::gray : Colour::gray_alpha;
  } else {
    image.colour = count == 3 ? Colour::rgb : Colour::rgb_alpha;
  }
  return image;
}

// Stores one sample of a plane in the pixels.
void put(Image& image, size_t pixel, size_t channel, const uint8_t* sample) {
  const size_t index = pixel * channels(image.colour) + channel;
  if (image.bits == 8) {
    image.pixels[index] = *sample;
  } else {
    const uint16_t wide = static_cast<uint16_t>(load_u16_big(sample));
    std::memcpy(&image.pixels[2 * index], &wide, 2);
  }
}

// Decodes a row of PackBits. Returns false unless the packed bytes give exactly one row.
bool unpack(std::span<const uint8_t> packed, std::span<uint8_t> row) {
  size_t at = 0;
  size_t to = 0;
  while (at < packed.size()) {
    const uint32_t length = packed[at++];
    if (length == 128) continue;  // no operation, by the specification
    const bool repeated = length > 128;
    const size_t bytes = repeated ? 257 - length : length + 1;
    const size_t stored = repeated ? 1 : bytes;
    if (packed.size() - at < stored || row.size() - to < bytes) return false;
    for (size_t i = 0; i < bytes; ++i) row[to + i] = packed[at + i % stored];
    at += stored;
    to += bytes;
  }
  return to == row.size();
}

// Decodes the planes one after the other. `data` begins with a table of the sizes of all rows.
std::optional<Error> read_packed(std::span<const uint8_t> data, uint64_t offset, uint32_t planes, Image& image) {
  size_t at = size_t{2} * image.height * planes;  // the caller has checked that the table is complete
  std::vector<uint8_t> row(size_t{image.width} * bytes_per_sample(image.bits));
  for (size_t channel = 0; channel < channels(image.colour); ++channel) {
    for (size_t y = 0; y < image.height; ++y) {
      const size_t bytes = load_u16_big(&data[2 * (channel * image.height + y)]);
      if (data.size() - at < bytes) return Error{offset + data.size(), "the file ends inside the pixels"};
      if (!unpack(data.subspan(at, bytes), row)) return Error{offset + at, "pixels: a row of another length"};
      at += bytes;
      for (size_t x = 0; x < image.width; ++x) {
        put(image, y * image.width + x, channel, &row[x * bytes_per_sample(image.bits)]);
      }
    }
  }
  return std::nullopt;
}

void read_plain(std::span<const uint8_t> data, Image& image) {
  const size_t pixels = size_t{image.width} * image.height;
  const size_t width = bytes_per_sample(image.bits);
  for (size_t channel = 0; channel < channels(image.colour); ++channel) {
    for (size_t i = 0; i < pixels; ++i) put(image, i, channel, &data[(channel * pixels + i) * width]);
  }
}

// Whether a pixel is partly transparent. In the file, the colours of such pixels are mixed with white.
bool has_mixed_pixels(const Image& image) {
  const size_t count = channels(image.colour);
  if (count % 2 != 0) return false;
  const size_t width = bytes_per_sample(image.bits);
  for (size_t i = (count - 1) * width; i < image.pixels.size(); i += count * width) {
    for (size_t byte = 0; byte < width; ++byte) {
      const uint8_t part = image.pixels[i + byte];
      if ((part != 0 && part != 255) || part != image.pixels[i]) return true;
    }
  }
  return false;
}

}  // namespace

bool is_psd(std::span<const uint8_t> file) { return file.size() >= 4 && std::memcmp(file.data(), "8BPS", 4) == 0; }

Result<Image> read_psd(std::span<const uint8_t> file, const ReadOptions& options) {
  Result<Image> read = image_of(file);
  if (!read) return read;
  Image& image = *read;
  if (std::optional<Error> error = over_limit(image, options, 14)) return *std::move(error);
  const Result<Layout> layout = layout_of(file);
  if (!layout) return layout.error();
  if (!layout->merged) return Error{kHeader, "a PSD without a merged image"};

  const uint32_t compression = load_u16_big(&file[layout->pixels]);
  const uint64_t offset = layout->pixels + 2;
  const auto data = file.subspan(static_cast<size_t>(offset));
  const uint64_t plane = uint64_t{image.width} * image.height * bytes_per_sample(image.bits);
  const uint32_t planes = load_u16_big(&file[12]);
  if (compression > 1) {
    return Error{layout->pixels, "a PSD of compression " + std::to_string(compression) + ", which is not supported"};
  }
  // Two packed bytes become at most 128 bytes.
  const uint64_t minimum =
      compression == 0 ? plane * channels(image.colour) : uint64_t{image.height} * planes * 2 + plane / 128 * 2;
  if (data.size() < minimum) return ends_inside(file, "pixels");
  image.pixels.resize(pixel_bytes(image));
  if (compression == 0) {
    read_plain(data, image);
  } else if (std::optional<Error> error = read_packed(data, offset, planes, image)) {
    return *std::move(error);
  }
  if (has_mixed_pixels(image)) {
    return Error{offset, "a PSD with partly transparent pixels: their colours are mixed with white"};
  }

  if (auto error = add_profile(image, layout->profile, options, kHeader)) return *std::move(error);
  if (!layout->exif.empty()) {
    if (auto error = add_exif(image, layout->exif, options, kHeader)) return *std::move(error);
  }
  if (layout->layer_bytes > 0) notice(options.notices, "PSD: only the merged image is read, without layers");
  if (layout->other_resources > 0) {
    notice(options.notices, std::to_string(layout->other_resources) +
                                (layout->other_resources == 1 ? " image resource is" : " image resources are") +
                                " left out");
  }
  if (const uint32_t kept = channels(image.colour); planes > kept) {
    notice(options.notices, std::to_string(planes - kept) +
                                (planes - kept == 1 ? " further channel is" : " further channels are") + " left out");
  }
  return read;
}

}  // namespace formats
