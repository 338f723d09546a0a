#include "formats/image.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace formats {
namespace {

uint32_t sample_at(const Image& image, size_t index) {
  if (bytes_per_sample(image.bits) == 1) return image.pixels[index];
  uint16_t sample = 0;
  std::memcpy(&sample, image.pixels.data() + 2 * index, 2);
  return sample;
}

// Returns a position such as "pixel (3, 4), channel 1".
std::string position(const Image& image, size_t sample) {
  const size_t per_pixel = channels(image.colour);
  const size_t pixel = sample / per_pixel;
  return "pixel (" + std::to_string(pixel % image.width) + ", " + std::to_string(pixel / image.width) + "), channel " +
         std::to_string(sample % per_pixel);
}

std::string palette_problem(const Image& image) {
  const size_t entries = image.palette.size() / 3;
  if (image.colour != Colour::palette)
    return image.palette.empty() ? "" : "a palette in an image that is not a palette image";
  if (image.bits > 8) return "a palette image of " + std::to_string(image.bits) + " bits per index";
  if (entries == 0 || image.palette.size() % 3 != 0) {
    return "a palette of " + std::to_string(image.palette.size()) + " bytes";
  }
  if (entries > (size_t{1} << image.bits)) {
    return "a palette of " + std::to_string(entries) + " colours for indices of " + std::to_string(image.bits) +
           " bits";
  }
  return "";
}

bool transparency_fits(const Image& image) {
  const size_t size = image.transparency.size();
  switch (image.colour) {
    case Colour::palette: return size <= image.palette.size() / 3;
    case Colour::gray: return size == 0 || size == 2;
    case Colour::rgb: return size == 0 || size == 6;
    case Colour::gray_alpha:
    case Colour::rgb_alpha: return size == 0;
  }
  return false;
}

std::string sample_problem(const Image& image) {
  if (image.bits == 8 || image.bits == 16) return "";
  const uint32_t maximum = (1U << image.bits) - 1;
  const size_t samples = image.pixels.size() / bytes_per_sample(image.bits);
  for (size_t i = 0; i < samples; ++i) {
    if (const uint32_t sample = sample_at(image, i); sample > maximum) {
      return "sample " + std::to_string(sample) + " at " + position(image, i) + " is greater than " +
             std::to_string(maximum);
    }
  }
  return "";
}

std::string field_difference(const char* field, uint64_t a, uint64_t b) {
  return std::string(field) + " " + std::to_string(a) + " against " + std::to_string(b);
}

std::string bytes_difference(const std::string& what, const std::vector<uint8_t>& a, const std::vector<uint8_t>& b) {
  const auto [in_a, in_b] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  if (in_a == a.end() && in_b == b.end()) return "";
  if (in_a == a.end() || in_b == b.end()) return field_difference((what + ": bytes").c_str(), a.size(), b.size());
  return field_difference((what + ": byte " + std::to_string(in_a - a.begin()) + ":").c_str(), *in_a, *in_b);
}

std::string pixels_difference(const Image& a, const Image& b) {
  if (a.pixels == b.pixels) return "";  // compares many bytes at once, as mismatch() does not
  const auto [in_a, in_b] = std::mismatch(a.pixels.begin(), a.pixels.end(), b.pixels.begin(), b.pixels.end());
  if (in_a == a.pixels.end() || in_b == b.pixels.end() || a.width == 0) {
    return field_difference("pixels: bytes", a.pixels.size(), b.pixels.size());
  }
  const size_t unit = bytes_per_sample(a.bits);
  const size_t sample = static_cast<size_t>(in_a - a.pixels.begin()) / unit;
  // The size may be odd, because this function is also called for invalid images.
  if (std::min(a.pixels.size(), b.pixels.size()) < (sample + 1) * unit) return "pixels: their sizes fit no image";
  return field_difference((position(a, sample) + ":").c_str(), sample_at(a, sample), sample_at(b, sample));
}

bool chunk_less(const Chunk* a, const Chunk* b) { return a->type != b->type ? a->type < b->type : a->data < b->data; }

std::vector<const Chunk*> sorted(const std::vector<Chunk>& chunks) {
  std::vector<const Chunk*> order;
  order.reserve(chunks.size());
  for (const Chunk& chunk : chunks) order.push_back(&chunk);
  std::sort(order.begin(), order.end(), chunk_less);
  return order;
}

std::string chunks_difference(const Image& a, const Image& b) {
  const std::vector<const Chunk*> in_a = sorted(a.chunks);
  const std::vector<const Chunk*> in_b = sorted(b.chunks);
  for (size_t i = 0; i < std::max(in_a.size(), in_b.size()); ++i) {
    const bool missing_in_b = i >= in_b.size() || (i < in_a.size() && chunk_less(in_a[i], in_b[i]));
    const bool missing_in_a = i >= in_a.size() || (i < in_b.size() && chunk_less(in_b[i], in_a[i]));
    if (!missing_in_a && !missing_in_b) continue;
    const Chunk& chunk = missing_in_b ? *in_a[i] : *in_b[i];
    return "chunk " + std::string(chunk.type.data(), chunk.type.size()) + " of " + std::to_string(chunk.data.size()) +
           " bytes is in the " + (missing_in_b ? "first" : "second") + " image only";
  }
  return "";
}

}  // namespace

uint32_t channels(Colour colour) {
  switch (colour) {
    case Colour::gray:
    case Colour::palette: return 1;
    case Colour::gray_alpha: return 2;
    case Colour::rgb: return 3;
    case Colour::rgb_alpha: return 4;
  }
  return 1;
}

uint32_t bytes_per_sample(uint32_t bits) { return bits > 8 ? 2 : 1; }

const char* name(Colour colour) {
  switch (colour) {
    case Colour::gray: return "gray";
    case Colour::gray_alpha: return "gray with alpha";
    case Colour::rgb: return "RGB";
    case Colour::rgb_alpha: return "RGB with alpha";
    case Colour::palette: return "palette";
  }
  return "unknown";
}

std::string problem(const Image& image) {
  if (image.width == 0 || image.height == 0) return "the image has no pixels";
  if (image.bits < 1 || image.bits > 16) return "samples of " + std::to_string(image.bits) + " bits";
  if (image.colour > Colour::palette) return "unknown colour type";
  const uint64_t pixels = uint64_t{image.width} * image.height;
  const uint64_t bytes_per_pixel = channels(image.colour) * bytes_per_sample(image.bits);
  if (pixels > std::numeric_limits<size_t>::max() / bytes_per_pixel ||
      image.pixels.size() != pixels * bytes_per_pixel) {
    return std::to_string(image.pixels.size()) + " bytes of samples are not those of " + std::to_string(image.width) +
           " x " + std::to_string(image.height) + " pixels";
  }
  if (std::string reason = palette_problem(image); !reason.empty()) return reason;
  if (!transparency_fits(image)) {
    return "transparency of " + std::to_string(image.transparency.size()) + " bytes for " + name(image.colour) +
           " samples";
  }
  return sample_problem(image);
}

std::string difference(const Image& a, const Image& b) {
  if (a.width != b.width) return field_difference("width", a.width, b.width);
  if (a.height != b.height) return field_difference("height", a.height, b.height);
  if (a.bits != b.bits) return field_difference("bits", a.bits, b.bits);
  if (a.colour != b.colour) return std::string("colour ") + name(a.colour) + " against " + name(b.colour);
  if (std::string found = pixels_difference(a, b); !found.empty()) return found;
  if (std::string found = bytes_difference("palette", a.palette, b.palette); !found.empty()) return found;
  if (std::string found = bytes_difference("transparency", a.transparency, b.transparency); !found.empty()) {
    return found;
  }
  return chunks_difference(a, b);
}

}  // namespace formats
