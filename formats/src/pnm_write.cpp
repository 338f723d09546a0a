// Writes PBM, PGM, PPM and PAM, always binary.
#include <algorithm>
#include <cstring>

#include "adapters.h"

namespace formats {
namespace {

using Bytes = std::vector<uint8_t>;

Bytes bytes_of(const std::string& header) { return Bytes(header.begin(), header.end()); }

std::string size_line(const Image& image) { return std::to_string(image.width) + " " + std::to_string(image.height); }

std::string maxval(const Image& image) { return std::to_string((1U << image.bits) - 1); }

// Appends the samples. Those of more than 8 bits have two bytes, big-endian.
void append_samples(Bytes& out, const Image& image) {
  if (bytes_per_sample(image.bits) == 1) {
    out.insert(out.end(), image.pixels.begin(), image.pixels.end());
    return;
  }
  const size_t begin = out.size();
  out.resize(begin + image.pixels.size());
  for (size_t i = 0; i < image.pixels.size(); i += 2) {
    uint16_t sample = 0;
    std::memcpy(&sample, image.pixels.data() + i, 2);
    out[begin + i] = static_cast<uint8_t>(sample >> 8);
    out[begin + i + 1] = static_cast<uint8_t>(sample & 0xFF);
  }
}

Result<Bytes> write_pbm(const Image& image) {
  if (image.colour != Colour::gray || image.bits != 1) {
    return Error{0, std::string("PBM holds gray samples of one bit, not ") + name(image.colour) + " ones of " +
                        std::to_string(image.bits) + ": write .pam or .png"};
  }
  Bytes out = bytes_of("P4\n" + size_line(image) + "\n");
  Bytes row((size_t{image.width} + 7) / 8);
  const uint8_t* pixel = image.pixels.data();
  for (size_t y = 0; y < image.height; ++y) {
    std::fill(row.begin(), row.end(), uint8_t{0});
    for (size_t x = 0; x < image.width; ++x) {
      if (*pixel++ == 0) row[x / 8] = static_cast<uint8_t>(row[x / 8] | 0x80 >> x % 8);
    }
    out.insert(out.end(), row.begin(), row.end());
  }
  return out;
}

Result<Bytes> write_pgm(const Image& image) {
  if (image.colour != Colour::gray && image.colour != Colour::palette) {
    return Error{0, std::string("PGM holds gray samples, not ") + name(image.colour) +
                        (image.colour == Colour::rgb ? ": write .ppm, .pam or .png" : ": write .pam or .png")};
  }
  Bytes out = bytes_of("P5\n" + size_line(image) + "\n" + maxval(image) + "\n");
  append_samples(out, image);
  return out;
}

// Writes a palette image as colours.
Result<Bytes> write_colours(const Image& image) {
  if (std::any_of(image.transparency.begin(), image.transparency.end(), [](uint8_t alpha) { return alpha != 255; })) {
    return Error{0, "PPM holds no alpha, which this palette has: write .png"};
  }
  Bytes out = bytes_of("P6\n" + size_line(image) + "\n255\n");
  const size_t begin = out.size();
  out.resize(begin + 3 * image.pixels.size());
  for (size_t i = 0; i < image.pixels.size(); ++i) {
    const size_t entry = size_t{3} * image.pixels[i];
    if (entry >= image.palette.size()) {
      return Error{0, "pixel (" + std::to_string(i % image.width) + ", " + std::to_string(i / image.width) +
                          ") has index " + std::to_string(image.pixels[i]) + ", the palette " +
                          std::to_string(image.palette.size() / 3) + " colours: write .pgm, .pam or .png"};
    }
    std::memcpy(out.data() + begin + 3 * i, image.palette.data() + entry, 3);
  }
  return out;
}

Result<Bytes> write_ppm(const Image& image) {
  if (image.colour == Colour::palette) return write_colours(image);
  if (image.colour != Colour::rgb) {
    return Error{0, std::string("PPM holds RGB samples, not ") + name(image.colour) +
                        (image.colour == Colour::gray ? ": write .pgm, .pam or .png" : ": write .pam or .png")};
  }
  Bytes out = bytes_of("P6\n" + size_line(image) + "\n" + maxval(image) + "\n");
  append_samples(out, image);
  return out;
}

std::string tuple_type(const Image& image) {
  switch (image.colour) {
    case Colour::gray: return image.bits == 1 ? "BLACKANDWHITE" : "GRAYSCALE";
    case Colour::gray_alpha: return image.bits == 1 ? "BLACKANDWHITE_ALPHA" : "GRAYSCALE_ALPHA";
    case Colour::rgb: return "RGB";
    case Colour::rgb_alpha: return "RGB_ALPHA";
    case Colour::palette: return "PALETTE_INDICES";
  }
  return "";
}

Result<Bytes> write_pam(const Image& image) {
  Bytes out = bytes_of("P7\nWIDTH " + std::to_string(image.width) + "\nHEIGHT " + std::to_string(image.height) +
                       "\nDEPTH " + std::to_string(channels(image.colour)) + "\nMAXVAL " + maxval(image) +
                       "\nTUPLTYPE " + tuple_type(image) + "\nENDHDR\n");
  append_samples(out, image);
  return out;
}

Result<Bytes> write_samples(Format format, const Image& image) {
  switch (format) {
    case Format::pbm: return write_pbm(image);
    case Format::pgm: return write_pgm(image);
    case Format::ppm: return write_ppm(image);
    case Format::pam: return write_pam(image);
    case Format::png: break;
  }
  return Error{0, "no such format"};
}

// Adds notices for everything except samples, because these formats hold nothing else.
void note_losses(Format format, const Image& image, std::vector<std::string>* notices) {
  if (image.colour == Colour::palette) {
    if (format != Format::ppm) notice(notices, "indices are written; the palette is left out");
  } else if (!image.transparency.empty()) {
    notice(notices, "the transparent colour (tRNS) is left out");
  }
  if (!image.chunks.empty()) notice(notices, std::to_string(image.chunks.size()) + " chunks of metadata are left out");
}

}  // namespace

Result<std::vector<uint8_t>> write_pnm(Format format, const Image& image, const WriteOptions& options) {
  Result<Bytes> file = write_samples(format, image);
  if (file) note_losses(format, image, options.notices);
  return file;
}

}  // namespace formats
