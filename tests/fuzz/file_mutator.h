// Mutates L3 files part by part, puts them together again and makes the checks match, so that mutations get past them
// to the rules behind. Follows spec/format.md; nothing here trusts the file.
#pragma once

#include <algorithm>
#include <optional>

#include "any_bit_tile.h"
#include "any_channel_map.h"
#include "any_token_tile.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace fuzz {

using by_hand::find_parts;
using by_hand::Layout;
using by_hand::Parts;
using drawing::Bytes;
using drawing::Dice;

constexpr size_t kMaxTiles = 64;

// libFuzzer's own mutations, of some bytes.
inline void mutate_bytes(Bytes& bytes, size_t maximum) {
  const size_t size = bytes.size();
  bytes.resize(std::max(maximum, size));
  bytes.resize(LLVMFuzzerMutate(bytes.data(), size, bytes.size()));
}

inline void mutate_tile(Dice& dice, by_hand::TilePart& tile) {
  const uint32_t die = dice.roll(10);
  if (die == 0) {
    tile.method = static_cast<uint8_t>(dice.roll(4));
  } else if (die == 1) {
    tile.parameters = static_cast<uint8_t>(dice.chance(2) ? dice.roll(8) : dice.roll(256));
  } else if (die == 2) {
    tile.payload.resize(dice.chance(2) && tile.payload.size() >= 16 ? tile.payload.size() - 16
                                                                    : tile.payload.size() + 16);
  } else if (tile.method == 0) {
    tile.value[dice.roll(4)] = static_cast<uint16_t>(dice.roll(1u << dice.roll(17)));
  } else if (die < 6) {  // in place, often near the beginning: origins and the first blocks
    if (tile.payload.empty()) return;
    const size_t reach = dice.chance(2) ? tile.payload.size() : std::min<size_t>(24, tile.payload.size());
    uint8_t& byte = tile.payload[dice.roll(reach)];
    byte = static_cast<uint8_t>(dice.chance(2) ? byte ^ 1u << dice.roll(8) : dice.roll(256));
  } else {
    mutate_bytes(tile.payload, tile.payload.size() + 64);
    if (tile.method >= 2) {  // trailing zeros are padding: as few as the blocks need
      while (!tile.payload.empty() && tile.payload.back() == 0) tile.payload.pop_back();
    }
    tile.payload.resize(by_hand::pad(tile.payload.size()));
  }
}

// A model: mostly in place, or a part of it longer or shorter, with the parts behind it moved.
inline void mutate_model(Dice& dice, Bytes& model) {
  if (model.empty()) return;
  if (model[0] == 1 && dice.chance(3)) {
    by_hand::mutate_token_flags(dice, model);
    return;
  }
  const auto flip = [&](size_t at) {
    model[at] = static_cast<uint8_t>(dice.chance(3) ? dice.roll(256) : model[at] ^ 1u << dice.roll(8));
  };
  const bool has_parts = model.size() >= 8 && model[0] != 2;
  const size_t parts = has_parts ? size_t{0} + model[1] + model[2] + model[3] : 0;
  const size_t head = 8 + 2 * parts;
  const uint32_t die = dice.roll(8);
  if (die == 0) {
    flip(dice.roll(std::min(model.size(), head)));
  } else if (die == 1 && model.size() > head) {
    const size_t at = head + dice.roll(model.size() - head);
    const bool longer = dice.chance(2);
    if (longer) {
      model.insert(model.begin() + static_cast<ptrdiff_t>(at), dice.byte());
    } else {
      model.erase(model.begin() + static_cast<ptrdiff_t>(at));
    }
    for (size_t i = 0; i < parts; ++i) {
      uint8_t* begin = &model[8 + 2 * i];
      const uint64_t offset = by_hand::get(begin, 2);
      if (offset > at) by_hand::put(begin, 2, longer ? offset + 1 : offset - 1);
    }
  } else {
    for (uint32_t count = 1 + dice.roll(3); count > 0; --count) flip(dice.roll(model.size()));
  }
}

// A list of shapes that is valid in each tile of an image, with few exceptions.
inline Bytes any_list(Dice& dice, const Parts& parts, const by_hand::BitModel& model) {
  const auto smallest = [&](size_t edge_at, size_t tile_at) {
    const uint64_t edge = by_hand::get(&parts.header[edge_at], 4), tile = std::max(32u * parts.header[tile_at], 32u);
    return static_cast<uint32_t>(edge == 0 || edge % tile == 0 ? std::min<uint64_t>(tile, 1024) : edge % tile);
  };
  const uint32_t width = smallest(20, 38), height = smallest(24, 39);
  std::vector<bool> ones(size_t{width} * height);
  const auto fault =
      dice.chance(8) ? static_cast<by_hand::ListFault>(dice.roll(by_hand::kListFaults)) : by_hand::ListFault::none;
  return by_hand::any_shape_list(dice, model, width, height, ones, fault);
}

// A model of the image's channels, and a dense tile, in place of those there are.
inline void add_model(Dice& dice, Parts& parts) {
  const uint32_t channels = 1 + dice.roll(4);
  uint32_t wanted = static_cast<uint32_t>(by_hand::get(&parts.header[32], 2));
  for (const by_hand::SectionPart& section : parts.sections) {
    if (section.type != by_hand::kChannelMapType || dice.chance(8)) continue;
    wanted = 0;  // channels that are coded
    for (size_t at = 0; at < section.bytes.size(); at += 4) wanted += section.bytes[at] == wanted;
  }
  std::erase_if(parts.sections, [](const by_hand::SectionPart& section) { return section.type == 6; });
  auto at = parts.sections.begin();
  while (at != parts.sections.end() && at->type < 6) ++at;
  Bytes list;  // of shapes
  if (parts.sections.size() < 16) {
    const uint32_t of = wanted >= 1 && wanted <= 4 ? wanted : channels, bits = parts.header[35];
    const bool is_token = bits < 1 || bits > 16 ? false : bits != 8 || dice.chance(2);
    const bool codes_all = dice.chance(2);
    const bool is_bit = bits >= 1 && bits <= 16 && dice.chance(4);
    if (is_bit) {
      const by_hand::BitModel model = by_hand::any_bit_model(dice, of, bits);
      parts.sections.insert(at, {6, model.section});
      // Its features, with few exceptions.
      if (!dice.chance(16)) parts.header[12] |= model.features();
      if (!model.shapes.empty()) list = any_list(dice, parts, model);
    } else {
      parts.sections.insert(at, {6, is_token ? by_hand::any_token_model(dice, of, bits, codes_all).section.bytes()
                                             : by_hand::any_model(dice, of, codes_all)});
    }
  }
  if (parts.tiles.empty()) return;
  const uint32_t log_lanes = dice.roll(6);
  const uint32_t ending = dice.chance(2) ? 0 : dice.roll(31);
  dice.pick(parts.tiles) = {3,
                            static_cast<uint8_t>(ending << 3 | log_lanes),
                            {},
                            drawing::joined(list, dice.bytes(by_hand::pad((4u << log_lanes) + dice.roll(200))))};
}

// Another rule, other entries, or fewer of them given.
inline void mutate_palette(Dice& dice, Bytes& palette) {
  if (palette.size() < 2) return;
  if (dice.chance(2)) palette[0] = static_cast<uint8_t>(dice.roll(dice.chance(8) ? 256 : 3));
  if (dice.chance(2))
    palette[1] = static_cast<uint8_t>(dice.chance(2) ? dice.roll(256) : palette[1] + dice.roll(3) - 1);
  if (dice.chance(2)) palette.resize(2 + (palette[0] == 2 ? 1 : 3) * dice.roll(palette.size() / 3 + 2));
}

inline void mutate_section(Dice& dice, Parts& parts) {
  const uint32_t die = dice.roll(6);
  if (die == 0 || parts.sections.empty()) {
    constexpr uint32_t kTypes[] = {1, 2, 3, 4, 5, 6, 0x8001, 0x9000, 7};
    const uint32_t type = dice.pick(kTypes);
    if (type == 6) {
      add_model(dice, parts);
      return;
    }
    if (type == by_hand::kChannelMapType && !dice.chance(4)) {
      by_hand::add_channel_map(dice, parts);
      return;
    }
    auto at = parts.sections.begin();
    while (at != parts.sections.end() && at->type < type) ++at;
    if (parts.sections.size() < 16) parts.sections.insert(at, {type, dice.bytes(1 + dice.roll(50))});
    return;
  }
  const size_t i = dice.roll(parts.sections.size());
  by_hand::SectionPart& section = parts.sections[i];
  if (die == 1) {
    parts.sections.erase(parts.sections.begin() + static_cast<ptrdiff_t>(i));
  } else if (die == 2) {
    section.bytes.resize(dice.roll(section.bytes.size() + 4));
  } else if (section.type == 6) {
    mutate_model(dice, section.bytes);
  } else if (section.type == 1 && dice.chance(2)) {
    mutate_palette(dice, section.bytes);
  } else if (section.type == 3 && dice.chance(2)) {
    section.bytes = drawing::colour_space(dice, dice.roll(dice.chance(4) ? 256 : 16));
  } else {
    mutate_bytes(section.bytes, section.bytes.size() + 32);
  }
}

// Another size, or another size of tiles, with as many tiles as that takes.
inline void mutate_shape(Dice& dice, Parts& parts) {
  uint8_t* header = parts.header.data();
  const auto edge = [&] { return 1 + dice.roll(dice.chance(2) ? 8 : dice.chance(2) ? 40 : 150); };
  if (dice.chance(2)) by_hand::put(header + 20, 4, edge());
  if (dice.chance(2)) by_hand::put(header + 24, 4, edge());
  if (dice.chance(4)) header[38] = static_cast<uint8_t>(1 + dice.roll(4));
  if (dice.chance(4)) header[39] = static_cast<uint8_t>(1 + dice.roll(4));
  if (header[38] == 0 || header[39] == 0 || parts.tiles.empty()) return;
  const uint64_t across = (by_hand::get(header + 20, 4) + 32u * header[38] - 1) / (32u * header[38]);
  const uint64_t down = (by_hand::get(header + 24, 4) + 32u * header[39] - 1) / (32u * header[39]);
  if (across > kMaxTiles || down > kMaxTiles || across * down > kMaxTiles) return;
  while (parts.tiles.size() < across * down) parts.tiles.push_back(parts.tiles[dice.roll(parts.tiles.size())]);
  parts.tiles.resize(across * down);
}

inline void mutate_type(Dice& dice, Parts& parts) {
  uint8_t* header = parts.header.data();
  const uint32_t bits = 1 + dice.roll(16);
  const uint32_t colour = dice.roll(bits > 8 ? 4 : 5);
  by_hand::put(header + 32, 2, colour == 4 ? 1 : colour + 1);
  header[34] = bits > 8;
  header[35] = static_cast<uint8_t>(bits);
  header[36] = static_cast<uint8_t>(colour);
  header[37] = colour == 1 || colour == 3 ? static_cast<uint8_t>(1 + dice.roll(2)) : 0;
  if (colour == 4 && dice.chance(2)) {
    parts.sections = {{1, by_hand::palette_section(dice.bytes(3 * (1 + dice.roll(1u << bits))))}};
    mutate_palette(dice, parts.sections[0].bytes);
  }
}

inline void mutate_header(Dice& dice, Parts& parts) {
  constexpr size_t kFields[] = {8, 10, 12, 16, 20, 24, 28, 32, 34, 35, 36, 37, 38, 39};
  uint8_t& byte = parts.header[dice.pick(kFields)];
  byte = static_cast<uint8_t>(dice.chance(2) ? dice.roll(6) : byte ^ 1u << dice.roll(8));
}

// A byte of the section entries or of the index, behind the back of the layout.
inline by_hand::Edit entry_edit(uint64_t seed) {
  return [seed](Bytes& file, const Layout& layout) {
    Dice dice(seed);
    const size_t from = dice.chance(2) ? 64 : layout.head_bytes;
    const size_t size = by_hand::pad(layout.index_end) - from;
    if (size == 0) return;
    uint8_t& byte = file[from + dice.roll(size)];
    byte = static_cast<uint8_t>(dice.chance(2) ? byte ^ 1u << dice.roll(8) : dice.roll(256));
  };
}

// Copies a file out, where it fits; gives its size, or 0.
inline size_t give(const Bytes& file, uint8_t* data, size_t max_size) {
  if (file.size() > max_size) return 0;
  std::copy(file.begin(), file.end(), data);
  return file.size();
}

// LLVMFuzzerCustomMutator for files.
inline size_t mutate_file(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  Dice dice(seed);
  std::optional<Parts> parts;
  if (!dice.chance(12)) parts = find_parts(data, size, kMaxTiles);
  if (!parts) return LLVMFuzzerMutate(data, size, max_size);
  by_hand::Edit edit;
  for (uint32_t changes = 1 + dice.roll(3); changes > 0; --changes) {
    const uint32_t die = dice.roll(20);
    if (die == 0) {
      mutate_header(dice, *parts);
    } else if (die == 1) {
      edit = entry_edit(dice.next());
    } else if (die < 4) {
      mutate_section(dice, *parts);
    } else if (die < 6) {
      mutate_shape(dice, *parts);
    } else if (die == 6) {
      mutate_type(dice, *parts);
    } else if (!parts->tiles.empty()) {
      mutate_tile(dice, dice.pick(parts->tiles));
    }
  }
  if (by_hand::is_tiny(data, size) ? !dice.chance(8) : dice.chance(4)) {
    const auto tiny_edit = [&](Bytes& file) {  // often of its header
      if (!dice.chance(3)) return;
      uint8_t& byte = file[8 + dice.roll(dice.chance(2) ? 8 : file.size() - 8)];
      byte = static_cast<uint8_t>(dice.chance(2) ? byte ^ 1u << dice.roll(8) : dice.roll(256));
    };
    const std::optional<Bytes> tiny = by_hand::put_together_tiny(*parts, tiny_edit);
    const size_t done = tiny ? give(*tiny, data, max_size) : 0;
    if (done != 0) return done;
  }
  const size_t done = give(by_hand::put_together(*parts, edit), data, max_size);
  return done != 0 ? done : LLVMFuzzerMutate(data, size, max_size);
}

// LLVMFuzzerCustomCrossOver for files: some tiles and sections of one in the other.
inline size_t cross_files(const uint8_t* a, size_t a_size, const uint8_t* b, size_t b_size, uint8_t* out,
                          size_t max_out_size, unsigned seed) {
  Dice dice(seed);
  std::optional<Parts> parts = find_parts(a, a_size, kMaxTiles);
  std::optional<Parts> others = find_parts(b, b_size, kMaxTiles);
  if (!parts || !others || parts->tiles.empty() || others->tiles.empty()) return 0;
  by_hand::TilePart& tile = dice.pick(parts->tiles);
  tile = dice.pick(others->tiles);
  if (tile.method == 3 || dice.chance(4)) parts->sections = others->sections;
  return give(by_hand::put_together(*parts), out, max_out_size);
}

}  // namespace fuzz
