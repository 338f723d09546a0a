// Builds L3 files by hand: takes files apart, assembles them with chosen errors, and computes matching checks.
// Follows spec/format.md, not codec/, except for SHA-256.
#pragma once

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <utility>

#include "container/sha256.h"
#include "drawing.h"

namespace by_hand {

using drawing::Bytes;
using drawing::Dice;

inline uint64_t get(const uint8_t* at, uint32_t width) {
  uint64_t value = 0;
  for (uint32_t i = width; i-- > 0;) value = value << 8 | at[i];
  return value;
}
inline void put(uint8_t* at, uint32_t width, uint64_t value) {
  for (uint32_t i = 0; i < width; ++i) at[i] = static_cast<uint8_t>(value >> (8 * i));
}
constexpr size_t kSectionEntry = 16;

inline size_t pad(size_t a) { return (a + 15) / 16 * 16; }

// Section 2.1, word for word.
inline uint32_t check(const uint8_t* bytes, size_t size) {
  constexpr uint32_t kK1 = 0x9E3779B1, kK2 = 0x85EBCA77;
  const uint32_t n = static_cast<uint32_t>(size / 4);
  uint32_t sum = n * kK1;
  for (uint32_t l = 0; l < 32; ++l) {
    uint32_t h = kK2 * (l + 1);
    for (uint32_t i = l; i < n; i += 32) {
      h ^= static_cast<uint32_t>(get(bytes + size_t{4} * i, 4));
      h = (h << 15 | h >> 17) * kK1;
    }
    h ^= h >> 15;
    h *= kK2;
    h ^= h >> 13;
    sum += h;
  }
  return sum;
}

// A palette section that gives all entries.
inline Bytes palette_section(const Bytes& colours) {
  return drawing::joined({0, static_cast<uint8_t>(colours.size() / 3 - 1)}, colours);
}

// A palette section for samples of so many bits, by either rule.
inline Bytes any_palette(Dice& dice, uint32_t bits) {
  const size_t entries = 1 + dice.roll(uint64_t{1} << bits);
  const Bytes head = {static_cast<uint8_t>(dice.roll(2)), static_cast<uint8_t>(entries - 1)};
  return drawing::joined(head, dice.bytes(3 * dice.roll(entries + 1)));
}

struct SectionPart {
  uint32_t type;
  Bytes bytes;
  uint32_t flags = 0;
};

struct TilePart {
  uint8_t method = 0, parameters = 0;
  std::array<uint16_t, 4> value{};  // constant tiles
  Bytes payload;                    // the others
};

struct Parts {
  std::array<uint8_t, 64> header{};
  Bytes name;  // of a model: 16 bytes or none
  std::vector<SectionPart> sections;
  std::vector<TilePart> tiles;
};

// Where the parts of a file lie.
struct Layout {
  size_t entries = 0, head_bytes = 0, index_end = 0, payload_start = 0, end = 0;
  std::vector<size_t> sections, payloads;

  explicit Layout(const Parts& parts) {
    entries = 64 + parts.name.size();
    head_bytes = entries + kSectionEntry * parts.sections.size();
    index_end = head_bytes + 12 * parts.tiles.size();
    end = pad(index_end);
    for (const SectionPart& section : parts.sections) {
      sections.push_back(end);
      end = pad(end + section.bytes.size());
    }
    payload_start = end;
    for (const TilePart& tile : parts.tiles) {
      payloads.push_back(end);
      end += tile.payload.size();
    }
  }
  size_t entry(size_t tile) const { return head_bytes + 12 * tile; }
};

// The header of an image; tile edges in pixels.
inline std::array<uint8_t, 64> header(uint32_t width, uint32_t height, l3_colour colour, uint32_t bits,
                                      uint32_t tile_width = 32, uint32_t tile_height = 32) {
  std::array<uint8_t, 64> h{0x8B, 0x4C, 0x33, 0x49, 0x0D, 0x0A, 0x1A, 0x0A, 1};
  put(&h[20], 4, width);
  put(&h[24], 4, height);
  put(&h[28], 4, 1);
  put(&h[32], 2, colour == L3_COLOUR_PALETTE ? 1 : static_cast<uint32_t>(colour) + 1);
  h[34] = bits > 8;
  h[35] = static_cast<uint8_t>(bits);
  h[36] = static_cast<uint8_t>(colour);
  h[37] = colour == L3_COLOUR_GRAY_ALPHA || colour == L3_COLOUR_RGB_ALPHA;
  h[38] = static_cast<uint8_t>(tile_width / 32);
  h[39] = static_cast<uint8_t>(tile_height / 32);
  return h;
}

inline bool is_tiny(const uint8_t* data, size_t size) { return size >= 16 && std::memcmp(data, "\x8BL3t", 4) == 0; }

// The parts of a tiny file (section 18), of which they would be in another file too.
inline std::optional<Parts> find_tiny_parts(const uint8_t* data, size_t size) {
  constexpr l3_colour kColours[] = {L3_COLOUR_GRAY,    L3_COLOUR_GRAY_ALPHA, L3_COLOUR_RGB,      L3_COLOUR_RGB_ALPHA,
                                    L3_COLOUR_PALETTE, L3_COLOUR_GRAY_ALPHA, L3_COLOUR_RGB_ALPHA};
  const uint64_t kind = data[10] & 7, sizes = get(data + 12, 4), model = sizes >> 20;
  if (kind == 7) return {};
  const auto edge = [](uint8_t less_1) { return (less_1 + 32u) / 32 * 32; };
  Parts parts;
  parts.header =
      header(data[8] + 1u, data[9] + 1u, kColours[kind], (data[10] >> 3 & 15) + 1u, edge(data[8]), edge(data[9]));
  if (kind > 4) parts.header[37] = 2;
  size_t at = 16;
  const auto take = [&](size_t bytes) {
    Bytes taken(bytes);
    if (bytes > size - at) return std::optional<Bytes>();
    std::copy_n(data + at, bytes, taken.data());
    at += bytes;
    return std::optional<Bytes>(std::move(taken));
  };
  std::optional<Bytes> own;
  if (model == 31) {
    const std::optional<Bytes> name = take(16);
    if (!name) return {};
    parts.name = *name;
    parts.header[12] = 1;
  } else if (model > 31) {
    own = take(pad(model));
    if (!own) return {};
    own->resize(model);
  } else {
    put(&parts.header[14], 2, model);
  }
  std::optional<Bytes> payload = take(4 * (sizes >> 10 & 1023));
  if (!payload) return {};
  TilePart tile{3, data[11], {}, {}};
  if ((data[11] & 7) == 6) {
    const int other = data[11] >> 3;
    tile.method = static_cast<uint8_t>(std::min(other, 2));
    tile.parameters = static_cast<uint8_t>(std::max(other - 2, 0));
  }
  if (tile.method == 0) {
    for (size_t c = 0; c < 4 && payload->size() == 8; ++c) {
      tile.value[c] = static_cast<uint16_t>(get(payload->data() + 2 * c, 2));
    }
  } else {
    payload->resize(pad(payload->size()));
    tile.payload = *payload;
  }
  parts.tiles.push_back(std::move(tile));
  while (size - at >= 2 && get(data + at, 2) != 0) {
    const uint32_t entry = static_cast<uint32_t>(get(data + at, 2)), code = entry >> 12;
    at += 2;
    const std::optional<Bytes> section = take(entry & 4095);
    if (!section) return {};
    if (own && code > 6) parts.sections.push_back({6, *std::exchange(own, std::nullopt)});
    parts.sections.push_back({code < 8 ? code : 0x8000 + code - 8, *section});
  }
  if (own) parts.sections.push_back({6, *own});
  return parts;
}

// The parts of any bytes, as far as they can be found; nothing where some lie outside the file, or where there are more
// than `most_tiles` tiles. Trusts nothing.
inline std::optional<Parts> find_parts(const uint8_t* data, size_t size, uint64_t most_tiles = 1 << 20) {
  if (is_tiny(data, size)) return find_tiny_parts(data, size);
  if (size < 64) return {};
  Parts parts;
  std::memcpy(parts.header.data(), data, 64);
  const size_t sections = get(data + 10, 2);
  const size_t entries = (data[12] & 1) != 0 ? 80 : 64;
  const size_t index = entries + kSectionEntry * sections;
  if (sections > 16 || index > size || data[38] == 0 || data[39] == 0) return {};
  parts.name.assign(data + 64, data + entries);
  for (size_t i = 0; i < sections; ++i) {
    const uint8_t* entry = data + entries + kSectionEntry * i;
    const uint64_t offset = 16 * get(entry + 8, 4), bytes = get(entry + 12, 4);
    if (offset > size || bytes > size - offset) return {};
    parts.sections.push_back({static_cast<uint32_t>(get(entry, 2)), Bytes(data + offset, data + offset + bytes),
                              static_cast<uint32_t>(get(entry + 2, 2))});
  }
  const uint64_t across = (get(data + 20, 4) + 32u * data[38] - 1) / (32u * data[38]);
  const uint64_t down = (get(data + 24, 4) + 32u * data[39] - 1) / (32u * data[39]);
  if (across > most_tiles || down > most_tiles || across * down > most_tiles) return {};
  if (index + 12 * across * down > size) return {};
  for (size_t i = 0; i < across * down; ++i) {
    const uint8_t* entry = data + index + 12 * i;
    TilePart tile{entry[0], entry[1], {}, {}};
    if (tile.method == 0) {
      for (uint32_t c = 0; c < 4; ++c) tile.value[c] = static_cast<uint16_t>(get(entry + 4 + 2 * c, 2));
    } else {
      const uint64_t at = 16 * get(entry + 4, 4), bytes = 16 * get(entry + 2, 2);
      if (at > size || bytes > size - at) return {};
      tile.payload.assign(data + at, data + at + bytes);
    }
    parts.tiles.push_back(std::move(tile));
  }
  return parts;
}

// Of a valid file.
inline Parts take_apart(const Bytes& file) { return find_parts(file.data(), file.size()).value(); }

inline void seal_head(Bytes& file, const Layout& layout) {
  std::memset(&file[44], 0, 20);
  l3::Sha256 sha;
  sha.update(file.data(), layout.payload_start);
  uint8_t digest[32];
  sha.finish(digest);
  std::memcpy(&file[48], digest, 16);
  put(&file[44], 4, check(file.data(), layout.head_bytes));
}

// Makes all checks and the digest match.
inline void seal(Bytes& file, const Parts& parts, const Layout& layout) {
  for (size_t i = 0; i < parts.sections.size(); ++i) {
    const uint32_t of_section = check(&file[layout.sections[i]], pad(parts.sections[i].bytes.size()));
    put(&file[layout.entries + kSectionEntry * i + 4], 4, of_section);
  }
  for (size_t i = 0; i < parts.tiles.size(); ++i) {
    const Bytes& payload = parts.tiles[i].payload;
    if (!payload.empty()) put(&file[layout.entry(i) + 8], 4, check(&file[layout.payloads[i]], payload.size()));
  }
  put(&file[40], 4, check(&file[layout.head_bytes], pad(layout.index_end) - layout.head_bytes));
  seal_head(file, layout);
}

using Edit = std::function<void(Bytes& file, const Layout& layout)>;

// The file of these parts. What `edit` does to its bytes is covered by the checks. Payloads are whole units.
inline Bytes put_together(const Parts& parts, const Edit& edit = nullptr) {
  const Layout layout(parts);
  Bytes file(layout.end);
  std::memcpy(file.data(), parts.header.data(), 64);
  put(&file[10], 2, parts.sections.size());
  std::copy(parts.name.begin(), parts.name.end(), file.begin() + 64);
  for (size_t i = 0; i < parts.sections.size(); ++i) {
    const SectionPart& section = parts.sections[i];
    uint8_t* entry = &file[layout.entries + kSectionEntry * i];
    put(entry, 2, section.type);
    put(entry + 2, 2, section.flags);
    put(entry + 8, 4, layout.sections[i] / 16);
    put(entry + 12, 4, section.bytes.size());
    std::copy(section.bytes.begin(), section.bytes.end(), file.begin() + static_cast<ptrdiff_t>(layout.sections[i]));
  }
  for (size_t i = 0; i < parts.tiles.size(); ++i) {
    const TilePart& tile = parts.tiles[i];
    uint8_t* entry = &file[layout.entry(i)];
    entry[0] = tile.method;
    entry[1] = tile.parameters;
    put(entry + 2, 2, tile.payload.size() / 16);
    if (tile.method == 0) {
      for (uint32_t c = 0; c < 4; ++c) put(entry + 4 + 2 * c, 2, tile.value[c]);
    } else {
      put(entry + 4, 4, layout.payloads[i] / 16);
    }
    std::copy(tile.payload.begin(), tile.payload.end(), file.begin() + static_cast<ptrdiff_t>(layout.payloads[i]));
  }
  if (edit) edit(file, layout);
  seal(file, parts, layout);
  return file;
}

// The tiny file of these parts (section 18), if there may be one; its payload is that of another file, which has no
// more than 15 zeros more. `edit` changes its bytes behind the check.
inline std::optional<Bytes> put_together_tiny(const Parts& parts, const std::function<void(Bytes&)>& edit = nullptr) {
  const uint8_t* const h = parts.header.data();
  const uint64_t width = get(h + 20, 4), height = get(h + 24, 4);
  if (parts.tiles.size() != 1 || width - 1 > 255 || height - 1 > 255) return {};
  const TilePart& tile = parts.tiles[0];
  Bytes file(16);
  std::memcpy(file.data(), "\x8BL3t", 4);
  file[8] = static_cast<uint8_t>(width - 1);
  file[9] = static_cast<uint8_t>(height - 1);
  file[10] = static_cast<uint8_t>((h[37] == 2 ? 5 + h[36] / 3 : h[36]) | (h[35] - 1) << 3);
  file[11] = static_cast<uint8_t>(tile.method == 3 ? tile.parameters : 6 | (tile.method + tile.parameters) << 3);
  uint64_t model = parts.name.empty() ? get(h + 14, 2) : 31;
  file = drawing::joined(file, parts.name);
  for (const SectionPart& section : parts.sections) {
    if (section.bytes.size() > 4095) return {};
    if (section.type != 6) continue;
    model = section.bytes.size();
    file = drawing::joined(file, section.bytes);
    file.resize(pad(file.size()));
  }
  Bytes payload = tile.payload;
  if (tile.method == 0) {
    payload.resize(8);
    for (size_t c = 0; c < 4; ++c) put(&payload[2 * c], 2, tile.value[c]);
  } else if (tile.method == 1) {  // its size must be exact
    payload.resize((width * height * get(h + 32, 2) * h[35] + 31) / 32 * 4);
  }
  file = drawing::joined(file, payload);
  for (const SectionPart& section : parts.sections) {
    if (section.type == 6) continue;
    Bytes entry(2);
    const uint32_t code = section.type < 8 ? section.type : (section.type - 0x8000 + 8) & 15;
    put(entry.data(), 2, code << 12 | section.bytes.size());
    file = drawing::joined(drawing::joined(file, entry), section.bytes);
  }
  file.resize((file.size() + 3) / 4 * 4);
  if (file.size() > 4096 || payload.size() > 4092) return {};
  put(&file[12], 4, (file.size() / 4 - 1) | payload.size() / 4 << 10 | model << 20);
  if (edit) edit(file);
  put(&file[4], 4, check(file.data() + 8, file.size() - 8));
  return file;
}

// A Zstandard frame of one stored block.
struct Frame {
  uint8_t descriptor = 0x20;  // a single segment, its size in one byte, no checksum, no dictionary
  Bytes fields = {};          // window, dictionary ID, content size; where empty: the size in one byte
  Bytes contents = {};        // of the block
  Bytes after = {};
};

// The metadata section that holds this frame and says that it unpacks to so many bytes.
inline Bytes packed(const Frame& frame, uint32_t unpacked) {
  Bytes out(4);
  put(out.data(), 4, unpacked);
  out = drawing::joined(out, {0x28, 0xB5, 0x2F, 0xFD, frame.descriptor});
  out = drawing::joined(out, frame.fields.empty() ? Bytes{static_cast<uint8_t>(frame.contents.size())} : frame.fields);
  Bytes block(3);
  put(block.data(), 3, 1 | frame.contents.size() << 3);  // the last one, stored
  return drawing::joined(drawing::joined(out, drawing::joined(block, frame.contents)), frame.after);
}

inline const Bytes& two_records() {
  static const Bytes records = drawing::joined(drawing::record("tEXt", 0, {1, 2, 3}), drawing::record("tIME", 2, {}));
  return records;
}

// A bit string.
class BitString {
 public:
  void put(uint64_t value, uint32_t bits) {
    for (uint32_t i = 0; i < bits; ++i, ++count_) {
      if (count_ % 8 == 0) bytes_.push_back(0);
      bytes_.back() = static_cast<uint8_t>(bytes_.back() | (value >> i & 1) << (count_ % 8));
    }
  }
  const Bytes& bytes() const { return bytes_; }

 private:
  Bytes bytes_;
  size_t count_ = 0;
};

// A block with random codes and any valid widths, in an image of `bits`; `rows` and `columns` of it lie inside the
// tile. All that is unused is random too.
inline Bytes any_block(Dice& dice, uint32_t rows, uint32_t columns, uint32_t bits) {
  const uint32_t base = dice.roll(bits + 1);
  const uint32_t width_bits = dice.roll(5);
  const uint32_t span = 1u << width_bits;
  BitString block;
  block.put(dice.roll(7) | base << 3 | width_bits << 8, 16);
  uint32_t code_bits = 0;
  for (uint32_t g = 0; g < 64; ++g) {
    const bool present = g / 8 < rows && 4 * (g % 8) < columns;
    const uint32_t room = bits - base + 1 < span ? bits - base + 1 : span;
    const uint32_t field = dice.roll(present ? room : span);
    block.put(field, width_bits);
    if (present) code_bits += 4 * (base + field);
  }
  return drawing::joined(block.bytes(), dice.bytes((code_bits + 7) / 8));
}

// A valid payload of the fast method that no encoder would write.
inline Bytes any_fast_payload(Dice& dice, uint32_t width, uint32_t height, uint32_t channels, uint32_t bits) {
  BitString origins;
  for (uint32_t c = 0; c < channels; ++c) origins.put(dice.roll(uint64_t{1} << bits), 16);
  Bytes payload = origins.bytes();
  for (uint32_t y = 0; y < height; y += 8) {
    for (uint32_t x = 0; x < width; x += 32) {
      for (uint32_t c = 0; c < channels; ++c) {
        payload = drawing::joined(std::move(payload), any_block(dice, height - y < 8 ? height - y : 8,
                                                                width - x < 32 ? width - x : 32, bits));
      }
    }
  }
  payload.resize(pad(payload.size()));
  return payload;
}

inline Bytes any_raw_payload(Dice& dice, uint32_t width, uint32_t height, uint32_t channels, uint32_t bits) {
  BitString samples;
  for (uint32_t i = 0; i < width * height * channels; ++i) samples.put(dice.next(), bits);
  Bytes payload = samples.bytes();
  payload.resize(pad(payload.size()));
  return payload;
}

// A valid file that no encoder would write: tiles of any method, predictors and widths at random.
inline Parts any_parts(Dice& dice, drawing::Size size, drawing::Type type, uint32_t tile_width = 32,
                       uint32_t tile_height = 32) {
  Parts parts;
  parts.header = header(size.width, size.height, type.colour, type.bits, tile_width, tile_height);
  const uint32_t channels = type.colour == L3_COLOUR_PALETTE ? 1 : static_cast<uint32_t>(type.colour) + 1;
  if (type.colour == L3_COLOUR_PALETTE) {
    parts.sections.push_back({L3_SECTION_PALETTE, any_palette(dice, type.bits)});
  }
  for (uint32_t y = 0; y < size.height; y += tile_height) {
    for (uint32_t x = 0; x < size.width; x += tile_width) {
      const uint32_t w = size.width - x < tile_width ? size.width - x : tile_width;
      const uint32_t h = size.height - y < tile_height ? size.height - y : tile_height;
      TilePart tile;
      const uint32_t die = dice.roll(10);
      tile.method = die == 0 ? 0 : die == 1 ? 1 : 2;
      if (tile.method == 0) {
        for (uint32_t c = 0; c < channels; ++c)
          tile.value[c] = static_cast<uint16_t>(dice.roll(uint64_t{1} << type.bits));
      } else if (tile.method == 1) {
        tile.payload = any_raw_payload(dice, w, h, channels, type.bits);
      } else {
        tile.parameters = channels >= 3 ? static_cast<uint8_t>(dice.roll(5)) : 0;
        tile.payload = any_fast_payload(dice, w, h, channels, type.bits);
      }
      parts.tiles.push_back(std::move(tile));
    }
  }
  return parts;
}

}  // namespace by_hand
