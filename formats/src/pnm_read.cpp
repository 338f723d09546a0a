// Reads PBM, PGM and PPM (P1 to P6) and PAM (P7).
#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include "adapters.h"

namespace formats {
namespace {

bool is_space(uint8_t c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool is_digit(uint8_t c) { return c >= '0' && c <= '9'; }

// Reads bytes of a file that may be truncated: every step checks for the end.
class Cursor {
 public:
  explicit Cursor(std::span<const uint8_t> file, size_t at) : file_(file), at_(at) {}

  size_t at() const { return at_; }
  bool at_end() const { return at_ == file_.size(); }
  std::span<const uint8_t> rest() const { return file_.subspan(at_); }
  uint8_t next() { return file_[at_++]; }

  void skip_comment() {
    while (!at_end() && file_[at_] != '\n') ++at_;
  }

  // Skips white space, and comments from # to the end of the line.
  void skip_blank() {
    while (!at_end()) {
      if (file_[at_] == '#') {
        skip_comment();
      } else if (is_space(file_[at_])) {
        ++at_;
      } else {
        return;
      }
    }
  }

  // Reads a decimal number after white space. Returns nothing if there is no digit or the number exceeds 32 bits.
  std::optional<uint32_t> number() {
    skip_blank();
    uint64_t value = 0;
    const size_t begin = at_;
    while (!at_end() && is_digit(file_[at_])) {
      value = value * 10 + (file_[at_] - uint32_t{'0'});
      if (value > UINT32_MAX) return std::nullopt;
      ++at_;
    }
    if (at_ == begin) return std::nullopt;
    return static_cast<uint32_t>(value);
  }

  // Reads the single white space between the header and the pixels. A comment may come before the end of its line.
  bool header_end() {
    if (!at_end() && file_[at_] == '#') skip_comment();
    if (at_end() || !is_space(file_[at_])) return false;
    ++at_;
    return true;
  }

  // If the header was written with CR LF line ends, the pixels begin after both. But LF can also be the first sample,
  // so the size of the file decides.
  void skip_line_feed_before(size_t raster_bytes) {
    if (at_ > 0 && file_[at_ - 1] == '\r' && !at_end() && file_[at_] == '\n' && rest().size() - 1 == raster_bytes)
      ++at_;
  }

  // Reads up to the next newline and skips it. Returns nothing if there is no newline.
  std::optional<std::string_view> line() {
    const auto from = rest();
    const auto newline = std::find(from.begin(), from.end(), uint8_t{'\n'});
    if (newline == from.end()) return std::nullopt;
    const size_t length = static_cast<size_t>(newline - from.begin());
    const std::string_view text(reinterpret_cast<const char*>(from.data()), length);
    at_ += length + 1;
    return text;
  }

 private:
  std::span<const uint8_t> file_;
  size_t at_;
};

// Returns n for a maxval of 2^n - 1, where n is 1 to 16.
std::optional<uint32_t> bits_of(uint32_t maxval) {
  for (uint32_t bits = 1; bits <= 16; ++bits) {
    if (maxval == (1U << bits) - 1) return bits;
  }
  return std::nullopt;
}

std::string maxval_reason(uint32_t maxval) {
  const std::string text = "maxval " + std::to_string(maxval) + " is not 2^n - 1";
  return maxval > 65535 ? text + " for an n up to 16" : text;
}

void store(uint8_t* pixels, size_t index, uint32_t bits, uint32_t sample) {
  if (bytes_per_sample(bits) == 1) {
    pixels[index] = static_cast<uint8_t>(sample);
  } else {
    const uint16_t wide = static_cast<uint16_t>(sample);
    std::memcpy(pixels + 2 * index, &wide, 2);
  }
}

Error too_great(size_t offset, uint32_t sample, uint32_t maxval) {
  return Error{offset, "sample " + std::to_string(sample) + " is greater than maxval " + std::to_string(maxval)};
}

std::optional<Error> bad_size(const Image& image, const ReadOptions& options, const Cursor& raster) {
  if (image.width == 0 || image.height == 0) return Error{raster.at(), "width or height is 0"};
  return over_limit(image, options, raster.at());
}

std::optional<Error> nothing_after(const Cursor& raster) {
  if (raster.at_end()) return std::nullopt;
  return Error{raster.at(), std::to_string(raster.rest().size()) + " bytes follow the image"};
}

// Reads binary samples of one or two bytes, big-endian.
Result<Image> read_binary(Image image, Cursor raster, const ReadOptions& options) {
  if (std::optional<Error> error = bad_size(image, options, raster)) return *std::move(error);
  const std::span<const uint8_t> bytes = raster.rest();
  const size_t needed = pixel_bytes(image);
  const size_t begin = raster.at();
  if (bytes.size() < needed) return Error{begin + bytes.size(), "the file ends inside the pixels"};
  if (bytes.size() > needed) {
    return Error{begin + needed, std::to_string(bytes.size() - needed) + " bytes follow the image"};
  }
  const uint32_t maxval = (1U << image.bits) - 1;
  image.pixels.assign(bytes.begin(), bytes.end());
  if (image.bits == 8) return image;
  const size_t width = bytes_per_sample(image.bits);
  for (size_t i = 0; i < needed / width; ++i) {
    const uint32_t sample = width == 1 ? bytes[i] : uint32_t{bytes[2 * i]} << 8 | bytes[2 * i + 1];
    if (sample > maxval) return too_great(begin + i * width, sample, maxval);
    store(image.pixels.data(), i, image.bits, sample);
  }
  return image;
}

// Reads decimal samples separated by white space.
Result<Image> read_plain(Image image, Cursor raster, const ReadOptions& options) {
  if (std::optional<Error> error = bad_size(image, options, raster)) return *std::move(error);
  const size_t samples = pixel_bytes(image) / bytes_per_sample(image.bits);
  // Each sample needs a digit and a separator. A header with more samples is refused before memory is allocated.
  if (raster.rest().size() / 2 + 1 < samples)
    return Error{raster.at(), "the file is too short for the size of the image"};
  const uint32_t maxval = (1U << image.bits) - 1;
  image.pixels.resize(pixel_bytes(image));
  for (size_t i = 0; i < samples; ++i) {
    const std::optional<uint32_t> sample = raster.number();
    if (!sample && raster.at_end()) return Error{raster.at(), "the file ends inside the pixels"};
    if (!sample) return Error{raster.at(), "expected a sample"};
    if (*sample > maxval) return too_great(raster.at(), *sample, maxval);
    store(image.pixels.data(), i, image.bits, *sample);
  }
  raster.skip_blank();
  if (std::optional<Error> error = nothing_after(raster)) return *std::move(error);
  return image;
}

// Reads digits 0 and 1 with or without white space between them; 1 is black.
Result<Image> read_plain_bits(Image image, Cursor raster, const ReadOptions& options) {
  if (std::optional<Error> error = bad_size(image, options, raster)) return *std::move(error);
  const size_t samples = pixel_bytes(image);
  if (raster.rest().size() < samples) return Error{raster.at(), "the file is too short for the size of the image"};
  image.pixels.resize(samples);
  for (uint8_t& pixel : image.pixels) {
    raster.skip_blank();
    if (raster.at_end()) return Error{raster.at(), "the file ends inside the pixels"};
    const size_t at = raster.at();
    const uint8_t digit = raster.next();
    if (digit != '0' && digit != '1') return Error{at, "a pixel is neither 0 nor 1"};
    pixel = digit == '0';
  }
  raster.skip_blank();
  if (std::optional<Error> error = nothing_after(raster)) return *std::move(error);
  return image;
}

// Reads eight pixels from each byte, the leftmost from the highest bit. Rows are padded to bytes; 1 is black.
Result<Image> read_packed_bits(Image image, Cursor raster, const ReadOptions& options) {
  if (std::optional<Error> error = bad_size(image, options, raster)) return *std::move(error);
  const std::span<const uint8_t> bytes = raster.rest();
  const size_t stride = (size_t{image.width} + 7) / 8;
  const size_t needed = stride * image.height;
  if (bytes.size() < needed) return Error{raster.at() + bytes.size(), "the file ends inside the pixels"};
  if (bytes.size() > needed) {
    return Error{raster.at() + needed, std::to_string(bytes.size() - needed) + " bytes follow the image"};
  }
  image.pixels.resize(pixel_bytes(image));
  uint8_t* pixel = image.pixels.data();
  for (size_t y = 0; y < image.height; ++y) {
    const uint8_t* row = bytes.data() + y * stride;
    for (size_t x = 0; x < image.width; ++x) *pixel++ = (row[x / 8] >> (7 - x % 8) & 1) == 0;
  }
  return image;
}

Result<Image> read_pnm_kind(std::span<const uint8_t> file, char kind, const ReadOptions& options) {
  Cursor cursor(file, 2);
  Image image;
  const bool bitmap = kind == '1' || kind == '4';
  image.colour = kind == '3' || kind == '6' ? Colour::rgb : Colour::gray;
  const std::optional<uint32_t> width = cursor.number();
  if (!width) return Error{cursor.at(), "the width is missing"};
  const std::optional<uint32_t> height = cursor.number();
  if (!height) return Error{cursor.at(), "the height is missing"};
  image.width = *width;
  image.height = *height;
  image.bits = 1;
  if (!bitmap) {
    const std::optional<uint32_t> maxval = cursor.number();
    if (!maxval) return Error{cursor.at(), "the maxval is missing"};
    const std::optional<uint32_t> bits = bits_of(*maxval);
    if (!bits) return Error{cursor.at(), maxval_reason(*maxval)};
    image.bits = *bits;
  }
  if (!cursor.header_end()) return Error{cursor.at(), "white space is missing after the header"};
  if (kind == '4') cursor.skip_line_feed_before((size_t{image.width} + 7) / 8 * image.height);
  if (kind == '5' || kind == '6') cursor.skip_line_feed_before(pixel_bytes(image));
  switch (kind) {
    case '1': return read_plain_bits(std::move(image), cursor, options);
    case '2':
    case '3': return read_plain(std::move(image), cursor, options);
    case '4': return read_packed_bits(std::move(image), cursor, options);
    default: return read_binary(std::move(image), cursor, options);
  }
}

struct TupleType {
  std::string_view name;
  Colour colour;
  bool bitmap;  // maxval must be 1
};

constexpr std::array kTupleTypes = {
    TupleType{"GRAYSCALE", Colour::gray, false},
    TupleType{"GRAYSCALE_ALPHA", Colour::gray_alpha, false},
    TupleType{"RGB", Colour::rgb, false},
    TupleType{"RGB_ALPHA", Colour::rgb_alpha, false},
    TupleType{"BLACKANDWHITE", Colour::gray, true},
    TupleType{"BLACKANDWHITE_ALPHA", Colour::gray_alpha, true},
    TupleType{"PALETTE_INDICES", Colour::gray, false},
};

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_space(static_cast<uint8_t>(text.front()))) text.remove_prefix(1);
  while (!text.empty() && is_space(static_cast<uint8_t>(text.back()))) text.remove_suffix(1);
  return text;
}

// Quotes text of the file for an error: at most 40 characters, and only printable ones.
std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text.substr(0, 40)) out += c >= ' ' && c <= '~' ? c : '?';
  return out + (text.size() > 40 ? "...\"" : "\"");
}

struct PamHeader {
  std::optional<uint32_t> width, height, depth, maxval;
  std::optional<std::string_view> tuple_type;
};

// Reads one line other than ENDHDR. Returns the reason if it is wrong.
std::string take_line(PamHeader& header, std::string_view line) {
  const size_t space = line.find_first_of(" \t");
  const std::string_view key = line.substr(0, space);
  const std::string_view value = space == line.npos ? std::string_view() : trimmed(line.substr(space));
  if (key == "TUPLTYPE") {
    if (header.tuple_type) return "a second TUPLTYPE";
    header.tuple_type = value;
    return "";
  }
  std::optional<uint32_t>* field = key == "WIDTH"    ? &header.width
                                   : key == "HEIGHT" ? &header.height
                                   : key == "DEPTH"  ? &header.depth
                                   : key == "MAXVAL" ? &header.maxval
                                                     : nullptr;
  if (field == nullptr) return "unknown header line " + quoted(line);
  if (*field) return "a second " + std::string(key);
  Cursor digits({reinterpret_cast<const uint8_t*>(value.data()), value.size()}, 0);
  *field = value.empty() || !is_digit(static_cast<uint8_t>(value.front())) ? std::nullopt : digits.number();
  if (!*field || !digits.at_end()) return std::string(key) + " is not a number: " + quoted(value);
  return "";
}

// Returns the image for a complete header, still without pixels, or what is wrong with the header.
Result<Image> pam_image(const PamHeader& header, size_t offset, const ReadOptions& options) {
  if (!header.width || !header.height || !header.depth || !header.maxval) {
    return Error{offset, "the header lacks WIDTH, HEIGHT, DEPTH or MAXVAL"};
  }
  const std::optional<uint32_t> bits = bits_of(*header.maxval);
  if (!bits) return Error{offset, maxval_reason(*header.maxval)};
  Image image;
  image.width = *header.width;
  image.height = *header.height;
  image.bits = *bits;
  if (!header.tuple_type || header.tuple_type->empty()) {
    if (*header.depth < 1 || *header.depth > 4) {
      return Error{offset, "no TUPLTYPE for a depth of " + std::to_string(*header.depth)};
    }
    constexpr std::array kByDepth = {Colour::gray, Colour::gray_alpha, Colour::rgb, Colour::rgb_alpha};
    image.colour = kByDepth[*header.depth - 1];
    notice(options.notices, std::string("PAM without TUPLTYPE: taken as ") + name(image.colour));
    return image;
  }
  for (const TupleType& type : kTupleTypes) {
    if (type.name != *header.tuple_type) continue;
    image.colour = type.colour;
    if (*header.depth != channels(type.colour)) {
      return Error{offset, "DEPTH " + std::to_string(*header.depth) + " for TUPLTYPE " + std::string(type.name)};
    }
    if (type.bitmap && *bits != 1) return Error{offset, "MAXVAL above 1 for TUPLTYPE " + std::string(type.name)};
    return image;
  }
  return Error{offset, "unknown TUPLTYPE " + quoted(*header.tuple_type)};
}

Result<Image> read_pam(std::span<const uint8_t> file, const ReadOptions& options) {
  Cursor cursor(file, 3);
  PamHeader header;
  for (;;) {
    const size_t begin = cursor.at();
    const std::optional<std::string_view> raw = cursor.line();
    if (!raw) return Error{begin, "the file ends inside the header"};
    const std::string_view line = trimmed(*raw);
    if (line.empty() || line.front() == '#') continue;
    if (line == "ENDHDR") break;
    if (std::string reason = take_line(header, line); !reason.empty()) return Error{begin, std::move(reason)};
  }
  Result<Image> image = pam_image(header, cursor.at(), options);
  if (!image) return image;
  return read_binary(*std::move(image), cursor, options);
}

}  // namespace

bool is_pnm(std::span<const uint8_t> file) {
  if (file.size() < 3 || file[0] != 'P') return false;
  if (file[1] == '7') return file[2] == '\n' || (file[2] == '\r' && file.size() > 3 && file[3] == '\n');
  return file[1] >= '1' && file[1] <= '6' && (is_space(file[2]) || file[2] == '#');
}

Result<Image> read_pnm(std::span<const uint8_t> file, const ReadOptions& options) {
  const char kind = static_cast<char>(file[1]);
  return kind == '7' ? read_pam(file, options) : read_pnm_kind(file, kind, options);
}

}  // namespace formats
