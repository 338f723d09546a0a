#include "reshape.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/exif.h"
#include "command_line.h"
#include "formats/formats.h"
#include "loader/resample.h"
#include "options.h"

namespace tools {
namespace {

using formats::Colour;
using formats::Image;
using loader::Size;

constexpr uint64_t kMaxEdge = uint64_t{1} << 20;       // of an L3 image
constexpr uint64_t kBytesOfBand = uint64_t{16} << 20;  // of the source and of the result, at a time
constexpr size_t kMaxKeptBytes = size_t{64} << 20;     // of memory for the next image

constexpr std::array<std::pair<std::string_view, base::Filter>, 4> kFilters = {
    {{"bilinear", base::kBilinear},
     {"bicubic", base::kBicubic},
     {"area", base::kArea},
     {"nearest-exact", base::kNearestExact}}};

std::optional<base::Filter> filter_named(std::string_view name) {
  for (const auto& [word, filter] : kFilters) {
    if (word == name) return filter;
  }
  return std::nullopt;
}

std::string name_of(base::Filter filter) {
  for (const auto& [word, known] : kFilters) {
    if (known == filter) return std::string(word);
  }
  return "";
}

std::string text_of(Size size, const char* by) { return std::to_string(size.width) + by + std::to_string(size.height); }

std::optional<uint64_t> count_in(const std::string& text, uint64_t most) {
  const auto count = parse_integer(text);
  return count && *count >= 1 && *count <= most ? count : std::nullopt;
}

// ---------------------------------------------------------------------------------------------------- turning upright

template <size_t bytes>
void turn(const uint8_t* in, ptrdiff_t step_x, ptrdiff_t step_y, Size size, uint8_t* out) {
  // Blocks, because one of the two images is read or written in columns.
  constexpr uint32_t kBlock = 32;
  for (uint32_t top = 0; top < size.height; top += kBlock) {
    for (uint32_t left = 0; left < size.width; left += kBlock) {
      const uint32_t right = std::min(left + kBlock, size.width), bottom = std::min(top + kBlock, size.height);
      for (uint32_t y = top; y < bottom; ++y) {
        uint8_t* to = out + (size_t{y} * size.width + left) * bytes;
        const uint8_t* from = in + static_cast<ptrdiff_t>(y) * step_y + static_cast<ptrdiff_t>(left) * step_x;
        for (uint32_t x = left; x < right; ++x, to += bytes, from += step_x) std::memcpy(to, from, bytes);
      }
    }
  }
}

// Turns the pixels as this EXIF orientation says.
void turn_upright(Image& image, uint32_t orientation) {
  const Size stored{image.width, image.height}, size = loader::upright(stored, orientation);
  const auto [columns_reversed, rows_reversed, is_transposed] = loader::lie_of(orientation);
  const size_t bytes = size_t{formats::channels(image.colour)} * formats::bytes_per_sample(image.bits);
  const auto column = static_cast<ptrdiff_t>(bytes), row = static_cast<ptrdiff_t>(bytes * stored.width);
  const ptrdiff_t along = columns_reversed ? -column : column, down = rows_reversed ? -row : row;
  const uint8_t* in = image.pixels.data() + (columns_reversed ? bytes * (stored.width - 1) : 0) +
                      (rows_reversed ? bytes * stored.width * (stored.height - 1) : 0);
  const ptrdiff_t step_x = is_transposed ? down : along, step_y = is_transposed ? along : down;
  std::vector<uint8_t> turned(image.pixels.size());
  const auto run = [&](auto function) { function(in, step_x, step_y, size, turned.data()); };
  switch (bytes) {
    case 1: run(turn<1>); break;
    case 2: run(turn<2>); break;
    case 3: run(turn<3>); break;
    case 4: run(turn<4>); break;
    case 6: run(turn<6>); break;
    default: run(turn<8>); break;
  }
  image.pixels = std::move(turned);
  image.width = size.width;
  image.height = size.height;
}

// The first EXIF chunk, which is the one that counts. Null if there is none.
formats::Chunk* exif_of(Image& image) {
  constexpr std::array<char, 4> kExif = {'e', 'X', 'I', 'f'};
  const auto found = std::ranges::find(image.chunks, kExif, &formats::Chunk::type);
  return found == image.chunks.end() ? nullptr : &*found;
}

// Horizontal and vertical density change places.
void transpose_density(Image& image) {
  constexpr std::array<char, 4> kDensity = {'p', 'H', 'Y', 's'};
  for (formats::Chunk& chunk : image.chunks) {
    if (chunk.type == kDensity && chunk.data.size() >= 8) {
      std::swap_ranges(chunk.data.begin(), chunk.data.begin() + 4, chunk.data.begin() + 4);
    }
  }
}

// ----------------------------------------------------------------------------------------------------------- resizing

Size size_after(const Resize& resize, Size size) {
  const uint32_t shorter = std::min(size.width, size.height), longest = std::max(size.width, size.height);
  const auto most = static_cast<uint32_t>(std::min<uint64_t>(resize.most, kMaxEdge));
  switch (resize.rule) {
    case Resize::Rule::exact: return resize.exact;
    case Resize::Rule::shorter:
      return shorter <= resize.most ? size : loader::resized_size(L3_RESIZE_SHORTER, size, most, most);
    case Resize::Rule::longest:
      return longest <= resize.most ? size : loader::resized_size(L3_RESIZE_LONGEST, size, most, most);
    default: return loader::size_of_pixels(size, resize.most);
  }
}

// A palette image has no colours that can be mixed, and an exact transparent colour would not stay exact.
bool is_mixable(const Image& image) { return image.colour != Colour::palette && image.transparency.empty(); }

// Alpha of at most 8 bits and the colours that it weights become 16 bits, which hold all products.
struct Weighting {
  uint32_t most;     // the largest sample
  uint32_t divisor;  // of a product
  explicit Weighting(uint32_t bits) : most((1u << bits) - 1), divisor(bits > 8 ? most : 1) {}
};

template <class T>
void multiply(const T* in, size_t pixels, uint32_t channels, const Weighting& by, uint16_t* out) {
  for (size_t i = 0; i < pixels; ++i, in += channels, out += channels) {
    const uint64_t alpha = in[channels - 1];
    for (uint32_t c = 0; c + 1 < channels; ++c) {
      out[c] = static_cast<uint16_t>((in[c] * alpha + by.divisor / 2) / by.divisor);
    }
    out[channels - 1] = static_cast<uint16_t>(alpha * by.most / by.divisor);
  }
}

template <class T>
void divide(const uint16_t* in, size_t pixels, uint32_t channels, const Weighting& by, T* out) {
  const uint32_t whole = by.most * by.most / by.divisor;  // alpha of an opaque pixel
  for (size_t i = 0; i < pixels; ++i, in += channels, out += channels) {
    const uint64_t alpha = std::min<uint32_t>(in[channels - 1], whole);
    const uint64_t scaled = (alpha * by.most + whole / 2) / whole;
    for (uint32_t c = 0; c + 1 < channels; ++c) {
      const uint64_t colour = scaled == 0 ? 0 : (uint64_t{in[c]} * by.most + alpha / 2) / alpha;
      out[c] = static_cast<T>(std::min<uint64_t>(colour, by.most));
    }
    out[channels - 1] = static_cast<T>(scaled);
  }
}

template <class T>
bool is_opaque(const Image& image) {
  const uint32_t channels = formats::channels(image.colour), most = (1u << image.bits) - 1;
  const T* const samples = reinterpret_cast<const T*>(image.pixels.data());
  const size_t count = image.pixels.size() / sizeof(T);
  for (size_t i = channels - 1; i < count; i += channels) {
    if (samples[i] != most) return false;
  }
  return true;
}

// Whether alpha weights colours: those of transparent pixels must not show.
bool is_weighted(const Image& image, base::Filter filter) {
  if (image.colour != Colour::gray_alpha && image.colour != Colour::rgb_alpha) return false;
  if (filter == base::kNearestExact) return false;
  return !(image.bits > 8 ? is_opaque<uint16_t>(image) : is_opaque<uint8_t>(image));
}

// Resizes a band after the other, so that only the result and some rows are in memory besides the image.
class Resizer {
 public:
  void run(Image& image, Size size, base::Filter filter) {
    const uint32_t channels = formats::channels(image.colour), sample = formats::bytes_per_sample(image.bits);
    const bool weighted = is_weighted(image, filter);
    const uint32_t bits = weighted ? 16 : image.bits;
    const Weighting weighting(image.bits);
    loader::Colours colours;
    colours.from = colours.to = colours.used = channels;
    colours.most = static_cast<float>((1u << bits) - 1);
    const size_t pixel_bytes = size_t{channels} * sample;
    const size_t row_bytes = image.width * pixel_bytes, out_row_bytes = size.width * pixel_bytes;
    loader::Values values;
    values.type = bits > 8 ? L3_VALUE_U16 : L3_VALUE_U8;
    values.layout = L3_LAYOUT_HWC;
    values.row_stride = uint64_t{size.width} * channels * (bits > 8 ? 2 : 1);

    std::vector<uint8_t> out(out_row_bytes * size.height);
    const uint64_t source_rows = std::max<uint64_t>(kBytesOfBand / row_bytes, 1);
    const uint64_t made_rows = std::max<uint64_t>(kBytesOfBand / out_row_bytes, 1);
    const auto rows = static_cast<uint32_t>(
        std::clamp<uint64_t>(std::min(source_rows * size.height / image.height, made_rows), 1, size.height));
    loader::Steps steps;
    steps.stored = {image.width, image.height};
    steps.box = {0, 0, image.width, image.height};
    steps.resized = size;
    for (uint32_t y = 0; y < size.height; y += rows) {
      const uint32_t count = std::min(rows, size.height - y);
      steps.window = {0, y, size.width, count};
      steps.padded = {size.width, count};
      loader::Geometry geometry = loader::geometry_of(steps, filter);
      geometry.columns.first = 0;  // whole rows
      geometry.columns.region = image.width;
      geometry.set_between(weighted ? 16 : bits, values.type);
      const uint8_t* const in = image.pixels.data() + geometry.y * row_bytes;
      uint8_t* const to = out.data() + y * out_row_bytes;
      if (!weighted) {
        resampler_.run(in, bits, geometry, colours, values, to);
        continue;
      }
      const size_t pixels = size_t{image.width} * geometry.region_height(), made = size_t{size.width} * count;
      if (wide_.size() < pixels * channels) wide_.resize(pixels * channels);
      if (made_.size() < made * channels) made_.resize(made * channels);
      if (sample == 1) {
        multiply(in, pixels, channels, weighting, wide_.data());
      } else {
        multiply(reinterpret_cast<const uint16_t*>(in), pixels, channels, weighting, wide_.data());
      }
      resampler_.run(reinterpret_cast<const uint8_t*>(wide_.data()), bits, geometry, colours, values,
                     reinterpret_cast<uint8_t*>(made_.data()));
      if (sample == 1) {
        divide(made_.data(), made, channels, weighting, to);
      } else {
        divide(made_.data(), made, channels, weighting, reinterpret_cast<uint16_t*>(to));
      }
    }
    image.pixels = std::move(out);
    image.width = size.width;
    image.height = size.height;
  }

  // Whether one image needed so much memory that it should not be kept for the next.
  bool is_large(const Image& image) const { return image.pixels.size() + 2 * wide_.size() > kMaxKeptBytes; }

 private:
  loader::Resampler resampler_;
  std::vector<uint16_t> wide_, made_;
};

void add_record(Image& image, std::string_view key, const std::string& text) {
  formats::Chunk chunk{{'t', 'E', 'X', 't'}, formats::kAfterPixels, {key.begin(), key.end()}};
  chunk.data.push_back(0);
  chunk.data.insert(chunk.data.end(), text.begin(), text.end());
  image.chunks.push_back(std::move(chunk));
}

// The text of the last record with this keyword.
std::optional<std::string_view> record_of(const Image& image, std::string_view key) {
  std::optional<std::string_view> found;
  for (const formats::Chunk& chunk : image.chunks) {
    if (std::string_view(chunk.type.data(), 4) != "tEXt") continue;
    const std::string_view all(reinterpret_cast<const char*>(chunk.data.data()), chunk.data.size());
    if (all.size() > key.size() && all.starts_with(key) && all[key.size()] == 0) found = all.substr(key.size() + 1);
  }
  return found;
}

}  // namespace

std::optional<Resize> parse_resize(const std::string& word) {
  const size_t equals = word.find('=');
  if (equals == word.npos) return std::nullopt;
  const std::string rule = word.substr(0, equals), text = word.substr(equals + 1);
  if (rule == "exact") {
    const size_t by = text.find('x');
    if (by == text.npos) return std::nullopt;
    const auto width = count_in(text.substr(0, by), kMaxEdge), height = count_in(text.substr(by + 1), kMaxEdge);
    if (!width || !height) return std::nullopt;
    return Resize{Resize::Rule::exact, {static_cast<uint32_t>(*width), static_cast<uint32_t>(*height)}, 0};
  }
  const bool is_area = rule == "max-pixels";
  const auto most = count_in(text, is_area ? kMaxEdge * kMaxEdge : kMaxEdge);
  if (!most) return std::nullopt;
  if (rule == "shorter") return Resize{Resize::Rule::shorter, {}, *most};
  if (rule == "longest") return Resize{Resize::Rule::longest, {}, *most};
  if (is_area) return Resize{Resize::Rule::max_pixels, {}, *most};
  return std::nullopt;
}

std::string check_resize(const std::string& word) {
  if (parse_resize(word)) return "";
  return word + " is not shorter=N, longest=N, exact=WxH or max-pixels=N, with edges from 1 to 1048576";
}

std::string check_interpolation(const std::string& word) {
  const size_t equals = word.rfind('=');
  if (equals != 0 && filter_named(equals == word.npos ? word : word.substr(equals + 1))) return "";
  return word + " is not bilinear, bicubic, area or nearest-exact, with or without ROLE= before it";
}

base::Filter Reshaping::filter_of(std::string_view role) const {
  const auto own = of_role.find(role);
  if (own != of_role.end()) return own->second;
  if (filter) return *filter;
  return first_role.empty() || role == first_role ? base::kBilinear : base::kNearestExact;
}

Reshaping reshaping_of(bool orient, const std::string& resize, const std::vector<std::string>& interpolations) {
  Reshaping result;
  result.orient = orient;
  if (!resize.empty()) result.resize = parse_resize(resize);
  for (const std::string& word : interpolations) {
    const size_t equals = word.rfind('=');
    if (equals == word.npos) {
      result.filter = filter_named(word);
    } else if (const auto filter = filter_named(word.substr(equals + 1))) {
      result.of_role[word.substr(0, equals)] = *filter;
    }
  }
  return result;
}

Outcome<Reshaped> reshape(const std::string& name, const Reshaping& wanted, std::string_view role,
                          const l3_limits& limits, Image& image) {
  Reshaped result;
  if (formats::Chunk* exif = wanted.orient ? exif_of(image) : nullptr; exif != nullptr) {
    const uint32_t orientation = base::orientation_of(exif->data.data(), exif->data.size());
    if (orientation != 1) {
      base::set_upright(exif->data.data(), exif->data.size());
      turn_upright(image, orientation);
      result.was_changed = orientation >= 5;
      if (result.was_changed) transpose_density(image);
      add_record(image, kOrientedKey, std::to_string(orientation));
    }
  }
  result.before = {image.width, image.height};
  if (!wanted.resize) return result;
  const Size size = size_after(*wanted.resize, result.before);
  if (size == result.before) return result;
  const formats::ReadOptions read = read_options(limits);
  const uint64_t pixels = uint64_t{size.width} * size.height;
  const uint64_t pixel_bytes = uint64_t{formats::channels(image.colour)} * formats::bytes_per_sample(image.bits);
  if (pixels > read.max_pixels || pixels > read.max_bytes / pixel_bytes) {
    return Failure{name, std::nullopt,
                   "resized to " + text_of(size, " x ") + " pixels it would be over the limit of " +
                       (pixels > read.max_pixels ? std::to_string(read.max_pixels) + " pixels (--max-pixels)"
                                                 : std::to_string(read.max_bytes) + " bytes (--max-bytes)")};
  }
  const base::Filter filter = is_mixable(image) ? wanted.filter_of(role) : base::kNearestExact;
  thread_local std::optional<Resizer> resizer;
  if (!resizer) resizer.emplace();
  const bool is_large = resizer->is_large(image);
  resizer->run(image, size, filter);
  if (is_large) resizer.reset();
  add_record(image, kResizedKey, text_of(result.before, "x") + " " + name_of(filter));
  result.was_changed = true;
  return result;
}

Reshaping reshaping_in(const Image& image) {
  Reshaping result;
  result.orient = record_of(image, kOrientedKey).has_value();
  if (const auto text = record_of(image, kResizedKey)) {
    result.resize = Resize{Resize::Rule::exact, {image.width, image.height}, 0};
    result.filter = filter_named(text->substr(std::min(text->find(' '), text->size() - 1) + 1));
  }
  return result;
}

std::string difference_from_source(const Image& image, Image source, const l3_limits& limits) {
  std::string difference = formats::difference(image, source);
  if (difference.empty()) return difference;
  const Reshaping wanted = reshaping_in(image);
  if (!wanted.does_anything()) return difference;
  const Outcome<Reshaped> reshaped = reshape("", wanted, "", limits, source);
  return reshaped ? formats::difference(image, source) : reshaped.failure().reason;
}

std::string record_text(const formats::Chunk& chunk) {
  if (std::string_view(chunk.type.data(), 4) != "tEXt") return "";
  const std::string_view all(reinterpret_cast<const char*>(chunk.data.data()), chunk.data.size());
  for (const std::string_view key : {kOrientedKey, kResizedKey}) {
    if (!all.starts_with(key) || all.size() <= key.size() || all[key.size()] != 0) continue;
    const std::string_view text = all.substr(key.size() + 1);
    const auto is_printable = [](char c) { return c >= ' ' && c <= '~'; };
    if (text.size() <= 80 && std::ranges::all_of(text, is_printable))
      return std::string(key) + " = " + std::string(text);
  }
  return "";
}

}  // namespace tools
