#include "draw.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/hex.h"

namespace tools {
namespace {

using Colour = std::array<uint8_t, 3>;

Colour colour_at(const OpaqueImage& picture, uint32_t x, uint32_t y) {
  const uint8_t* const pixel = picture.pixels.data() + (size_t{y} * picture.width + x) * 3;
  return {pixel[0], pixel[1], pixel[2]};
}

// --------------------------------------------------------------------------------------------------------------- kitty

constexpr size_t kBytesOfChunk = 3072;  // 4096 characters, the most that a chunk may have

// --------------------------------------------------------------------------------------------------------------- sixel

constexpr size_t kMostColours = 256;
constexpr int kLevels = 6, kLevelStep = 51;  // of each channel where there are more colours; whole percents
constexpr uint32_t kBandRows = 6;

struct Indexed {
  std::vector<Colour> colours;
  std::vector<uint8_t> indices;
};

// The picture with its own colours. Nothing if they are too many.
std::optional<Indexed> with_own_colours(const OpaqueImage& picture) {
  Indexed result;
  std::map<Colour, uint8_t> known;
  for (uint32_t y = 0; y < picture.height; ++y) {
    for (uint32_t x = 0; x < picture.width; ++x) {
      const Colour colour = colour_at(picture, x, y);
      auto at = known.find(colour);
      if (at == known.end()) {
        if (known.size() == kMostColours) return std::nullopt;
        at = known.emplace(colour, static_cast<uint8_t>(known.size())).first;
        result.colours.push_back(colour);
      }
      result.indices.push_back(at->second);
    }
  }
  return result;
}

// The picture with six levels of red, green and blue. What a pixel gains or loses by that is taken from or given to its
// neighbours, as Floyd and Steinberg do: 7/16 to the right, 3/16, 5/16 and 1/16 below.
Indexed with_levels(const OpaqueImage& picture) {
  Indexed result;
  for (int i = 0; i < kLevels * kLevels * kLevels; ++i) {
    const int red = i / (kLevels * kLevels), green = i / kLevels % kLevels, blue = i % kLevels;
    result.colours.push_back({static_cast<uint8_t>(red * kLevelStep), static_cast<uint8_t>(green * kLevelStep),
                              static_cast<uint8_t>(blue * kLevelStep)});
  }
  const size_t row = (size_t{picture.width} + 2) * 3;  // a pixel more at each end
  std::vector<int> errors(row), below(row);            // in sixteenths
  for (uint32_t y = 0; y < picture.height; ++y) {
    for (uint32_t x = 0; x < picture.width; ++x) {
      const Colour colour = colour_at(picture, x, y);
      int index = 0;
      for (size_t c = 0; c < 3; ++c) {
        const size_t at = (size_t{x} + 1) * 3 + c;
        const int wanted = std::clamp(colour[c] + errors[at] / 16, 0, 255);
        const int level = (wanted + kLevelStep / 2) / kLevelStep, error = wanted - level * kLevelStep;
        index = index * kLevels + level;
        errors[at + 3] += error * 7;
        below[at - 3] += error * 3;
        below[at] += error * 5;
        below[at + 3] += error;
      }
      result.indices.push_back(static_cast<uint8_t>(index));
    }
    std::swap(errors, below);
    std::fill(below.begin(), below.end(), 0);
  }
  return result;
}

// Six pixels, one below the other, are a character. Equal characters are counted.
void add_sixels(std::span<const uint8_t> columns, std::string& text) {
  constexpr size_t kLeastCount = 4;  // "!4x" is as long as "xxx"
  size_t end = columns.size();
  while (end > 0 && columns[end - 1] == 0) --end;
  for (size_t i = 0; i < end;) {
    size_t count = 1;
    while (i + count < end && columns[i + count] == columns[i]) ++count;
    const char sixel = static_cast<char>('?' + columns[i]);
    if (count < kLeastCount) {
      text.append(count, sixel);
    } else {
      text += "!" + std::to_string(count) + sixel;
    }
    i += count;
  }
}

std::string band_text(const OpaqueImage& picture, const Indexed& indexed, uint32_t top) {
  const uint32_t width = picture.width, rows = std::min(kBandRows, picture.height - top);
  std::vector<uint8_t> columns(indexed.colours.size() * width);
  std::vector<bool> is_used(indexed.colours.size());
  for (uint32_t y = 0; y < rows; ++y) {
    for (uint32_t x = 0; x < width; ++x) {
      const size_t index = indexed.indices[(size_t{top} + y) * width + x];
      columns[index * width + x] |= static_cast<uint8_t>(1u << y);
      is_used[index] = true;
    }
  }
  std::string text;
  for (size_t i = 0; i < is_used.size(); ++i) {
    if (!is_used[i]) continue;
    text += (text.empty() ? "#" : "$#") + std::to_string(i);
    add_sixels(std::span(columns).subspan(i * width, width), text);
  }
  return text;
}

// -------------------------------------------------------------------------------------------------------------- blocks

constexpr std::string_view kUpperHalf = "\xE2\x96\x80";  // U+2580

// The nearest of the colours 16 to 231, a cube, and 232 to 255, grays. Those below 16 differ from terminal to terminal.
int number_of(Colour colour) {
  constexpr std::array kCube = {0, 95, 135, 175, 215, 255};
  constexpr int kFirst = 16, kFirstGray = 232, kGrays = 24;
  const auto distance = [&](int red, int green, int blue) {
    const int r = colour[0] - red, g = colour[1] - green, b = colour[2] - blue;
    return r * r + g * g + b * b;
  };
  int number = kFirst;
  std::array<int, 3> levels{};
  for (size_t c = 0; c < 3; ++c) {
    const auto* const nearest = std::ranges::min_element(
        kCube, {}, [value = static_cast<int>(colour[c])](int level) { return std::abs(level - value); });
    levels[c] = *nearest;
    number += static_cast<int>(nearest - kCube.begin()) * (c == 0 ? 36 : c == 1 ? 6 : 1);
  }
  int least = distance(levels[0], levels[1], levels[2]);
  for (int i = 0; i < kGrays; ++i) {
    const int gray = 8 + 10 * i;
    if (distance(gray, gray, gray) >= least) continue;
    least = distance(gray, gray, gray);
    number = kFirstGray + i;
  }
  return number;
}

std::string colour_code(Colour colour, bool true_colour) {
  if (!true_colour) return "5;" + std::to_string(number_of(colour));
  return "2;" + std::to_string(colour[0]) + ";" + std::to_string(colour[1]) + ";" + std::to_string(colour[2]);
}

}  // namespace

void draw_kitty(const OpaqueImage& picture, const Put& put) {
  // a=T: show it at once. f=24: three bytes a pixel. q=2: the terminal shall not answer. m=1: more chunks follow.
  std::string keys = "a=T,f=24,q=2,s=" + std::to_string(picture.width) + ",v=" + std::to_string(picture.height);
  for (size_t i = 0; i < picture.pixels.size(); i += kBytesOfChunk) {
    const size_t count = std::min(kBytesOfChunk, picture.pixels.size() - i);
    const bool last = i + count == picture.pixels.size();
    std::string chunk = "\x1b_G" + keys;
    chunk += last ? ",m=0;" : ",m=1;";
    chunk += base::base64(std::span(picture.pixels).subspan(i, count));
    if (!put(chunk + "\x1b\\")) return;
    keys = "q=2";
  }
  put("\n");
}

void draw_sixel(const OpaqueImage& picture, const Put& put) {
  std::optional<Indexed> indexed = with_own_colours(picture);
  if (!indexed) indexed = with_levels(picture);
  // Pixels are square, and those without a colour keep that of the screen.
  std::string head = "\x1bP0;1;0q\"1;1;" + std::to_string(picture.width) + ";" + std::to_string(picture.height);
  for (size_t i = 0; i < indexed->colours.size(); ++i) {
    head += "#" + std::to_string(i) + ";2";
    for (const uint8_t value : indexed->colours[i]) head += ";" + std::to_string((value * 100 + 127) / 255);
  }
  if (!put(head)) return;
  for (uint32_t top = 0; top < picture.height; top += kBandRows) {
    // The screen may scroll with a new band, so none follows the last one.
    if (!put((top == 0 ? "" : "-") + band_text(picture, *indexed, top))) return;
  }
  put("\x1b\\\n");
}

void draw_blocks(const OpaqueImage& picture, bool true_colour, const Put& put) {
  for (uint32_t y = 0; y < picture.height; y += 2) {
    const bool has_lower = y + 1 < picture.height;
    std::string line, last;
    for (uint32_t x = 0; x < picture.width; ++x) {
      std::string colours = "\x1b[38;" + colour_code(colour_at(picture, x, y), true_colour);
      if (has_lower) colours += ";48;" + colour_code(colour_at(picture, x, y + 1), true_colour);
      colours += "m";
      if (colours != last) line += colours;
      last = std::move(colours);
      line += kUpperHalf;
    }
    if (!put(line + "\x1b[0m\n")) return;
  }
}

std::string_view ending(Protocol protocol) {
  // The first sequence ends what a cut one left open, and does nothing otherwise. For kitty, a chunk without pixels is
  // the last one of its image.
  return protocol == Protocol::kitty ? "\x1b\\\x1b_Gq=2,m=0;\x1b\\\n" : "\x1b\\\x1b[0m\n";
}

}  // namespace tools
