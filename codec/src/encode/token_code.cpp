// Codes tiles with a token model.
#include <algorithm>
#include <cstring>

#include "encode/entropy.h"
#include "encode/token_encode.h"

namespace l3 {
namespace {

// A large tile gets at least eight lanes: with fewer, a step takes a processor's vector unit the same time.
constexpr double kBitsOfLane = 640;
constexpr uint32_t kMinLogLanesOfLarge = 3, kLargePixels = 1u << 12;

}  // namespace

// Finds the symbols of a predicted tile and their tables. Returns false if a symbol has no code.
bool TokenEncoder::code(const TokenTile& tile, Coded& coded) const {
  const TokenTables& tables = codes_->tables;
  const size_t pixels = tile.pixels();
  uint64_t cost = 0;  // approximate, in 16ths of a bit
  bool sound = true;
  const auto add = [&](uint32_t table, uint32_t symbol) {
    const uint32_t of_symbol = cost_of_frequency(codes_->symbols[table].codes[symbol].frequency);
    sound &= of_symbol != 0 || codes_->symbols[table].codes[symbol].frequency != 0;
    cost += of_symbol;
  };
  const int32_t hole = model_.hole ? static_cast<int32_t>(model_.hole_value) : -1;
  ContextFinder finder(tile, hole);
  if (tables.match) {
    coded.match_tables.resize(pixels);
    std::vector<uint8_t> octaves(tile.width);
    for (uint32_t y = 0; y < tile.height; ++y) {
      if (tables.match_by_activity && !tables.literal) finder.find_octaves(y, model_.activity[0], octaves.data());
      for (uint32_t x = 0; x < tile.width; ++x) {
        const size_t i = size_t{y} * tile.width + x;
        if (tile.symbols[i] == kNoSymbol) continue;
        coded.match_tables[i] = tables.match_table[tables.match_row[tile.equalities[i]] * kMatchOctaves + octaves[x]];
        add(coded.match_tables[i], tile.symbols[i]);
      }
    }
  }
  ContextRow row(tile.width);
  NeighbourRows neighbours(tile.width);
  for (uint32_t c = 0; c < tile.channels; ++c) {
    coded.tables[c].resize(pixels);
    coded.tokens[c].resize(pixels);
    coded.raw[c].resize(pixels);
    for (uint32_t y = 0; y < tile.height; ++y) {
      if (tables.literal) {
        neighbours.find(tile.values[c].data(), y);
      } else {
        finder.find(c, y, model_.activity[c], tables.depth[c], row);
      }
      for (uint32_t x = 0; x < tile.width; ++x) {
        const size_t i = size_t{y} * tile.width + x;
        if (tile.symbols[i] != kMatchNone) continue;
        uint32_t number, table;
        if (tables.literal) {
          number = static_cast<uint32_t>(tile.values[c][i]);
          table = tables.literal_table[std::min(static_cast<uint32_t>(neighbours[kTokenW][x]), kLiteralContexts - 1)];
        } else {
          number = number_of(tile.values[c][i], tile.predicted[c][i], tables.depth[c]);
          const uint32_t of_row = tables.grouped[c] ? tables.zone_row[c][row.zone[x]] +
                                                          tables.pattern_row[c][pattern_in_order(row.pattern[x])]
                                                    : 0;
          table = tables.table_of[c][of_row * kTokenLevels + row.level[x]];
        }
        const uint32_t token = token_of(number);
        coded.tables[c][i] = static_cast<uint8_t>(table);
        coded.tokens[c][i] = static_cast<uint8_t>(token);
        coded.raw[c][i] = static_cast<uint16_t>(number - first_of(token));
        add(table, token);
        cost += 16 * raw_bits_of(token);
      }
    }
  }
  coded.bits = static_cast<double>(cost) / 16;
  return sound;
}

uint32_t TokenEncoder::encode(uint64_t number, uint8_t* out, uint32_t room, uint8_t& parameters) const {
  const TokenTables& tables = codes_->tables;
  const auto tile = load(number, model_, map_);
  if (tile == nullptr) return 0;
  const uint32_t blocks = tile->block_count();
  for (uint32_t c = 0; c < tile->channels && !tables.literal; ++c) {
    if (classes_.empty()) {
      choose_tile_classes(*tile, c, model_, scales_[c]);
    } else {
      const uint8_t* from = classes_[number].data() + size_t{c} * blocks;
      tile->classes[c].assign(from, from + blocks);
      predict_tile(*tile, c, model_.weights[c], model_.depth[c],
                   model_.hole ? static_cast<int32_t>(model_.hole_value) : -1);
    }
  }
  Coded coded;
  if (!code(*tile, coded)) return 0;

  const uint32_t log_lanes = log_lanes_for(tile->width, tile->height, coded.bits, kBitsOfLane,
                                           tile->pixels() >= kLargePixels ? kMinLogLanesOfLarge : 0);
  const uint32_t lanes = 1u << log_lanes;
  // A symbol takes one word at most, its raw bits another, and the coder reads one word ahead.
  const size_t room_for_words = tile->pixels() * (1 + 2 * tile->channels) + size_t{blocks} * (1 + tile->channels) + 1;
  const auto words = std::make_unique_for_overwrite<uint16_t[]>(room_for_words);
  ReverseCoder coder(lanes, words.get() + room_for_words);
  const auto is_escaped = [&](size_t at) { return tile->symbols[at] == kMatchNone; };
  const auto is_matched = [&](size_t at) { return tables.match && tile->symbols[at] != kNoSymbol; };
  const auto cost_of = [&](size_t at) {
    const auto cost = [&](uint32_t table, uint32_t symbol) {
      return uint32_t{cost_of_frequency(codes_->symbols[table].codes[symbol].frequency)};
    };
    uint32_t of_pixel = is_matched(at) ? cost(coded.match_tables[at], tile->symbols[at]) : 0;
    for (uint32_t c = 0; c < tile->channels && is_escaped(at); ++c) {
      of_pixel += cost(coded.tables[c][at], coded.tokens[c][at]) + 16 * raw_bits_of(coded.tokens[c][at]);
    }
    return of_pixel;
  };
  parameters = coder.begin(tile->width, tile->height, log_lanes, cost_of, [&](EndingState& state, size_t at) {
    for (uint32_t c = is_escaped(at) ? tile->channels : 0; c-- > 0;) {
      const uint32_t raw_bits = raw_bits_of(coded.tokens[c][at]);
      if (raw_bits > 0) state.put_raw(coded.raw[c][at], raw_bits);
      state.put(codes_->symbols[coded.tables[c][at]], coded.tokens[c][at]);
    }
    if (is_matched(at)) state.put(codes_->symbols[coded.match_tables[at]], tile->symbols[at]);
  });
  const Ending ending = ending_of(parameters, tile->width, tile->height);
  walk_backwards(tile->width, tile->height, lanes, ending,
                 [&](uint32_t count, const uint8_t* lane_of, const size_t* at) {
                   for (uint32_t c = tile->channels; c-- > 0;) {
                     for (uint32_t i = count; i-- > 0;) {
                       if (!is_escaped(at[i])) continue;
                       const uint32_t raw_bits = raw_bits_of(coded.tokens[c][at[i]]);
                       if (raw_bits > 0) coder.put_raw(lane_of[i], coded.raw[c][at[i]], raw_bits);
                     }
                     for (uint32_t i = count; i-- > 0;) {
                       if (!is_escaped(at[i])) continue;
                       coder.put(lane_of[i], codes_->symbols[coded.tables[c][at[i]]], coded.tokens[c][at[i]]);
                     }
                   }
                   for (uint32_t i = count; i-- > 0;) {
                     if (!is_matched(at[i])) continue;
                     coder.put(lane_of[i], codes_->symbols[coded.match_tables[at[i]]], tile->symbols[at[i]]);
                   }
                 });
  for (uint32_t first = (blocks - 1) / lanes * lanes;; first -= lanes) {
    for (uint32_t c = tile->channels; c-- > 0;) {
      if (tables.classes[c] == 1) continue;
      for (uint32_t lane = smaller(lanes, blocks - first); lane-- > 0;) {
        if (tile->still[first + lane] != 0) continue;
        const uint32_t own = tile->classes[c][first + lane];
        const uint32_t before = c == 0 ? 0 : tile->classes[c - 1][first + lane];
        const SlotTable<kClassBuckets>& table = codes_->classes[tables.class_table_of[c][before]];
        if (table.codes[own].frequency == 0) return 0;
        coder.put(lane, table, own);
      }
    }
    for (uint32_t lane = tables.still ? smaller(lanes, blocks - first) : 0; lane-- > 0;) {
      const bool above = lane < tile->blocks_across && tile->still_above(first + lane);  // decoded in an earlier round
      coder.put_binary(lane, tables.still_frequency[above], tile->still[first + lane] != 0);
    }
    if (first == 0) break;
  }

  return coder.write(out, room);
}

}  // namespace l3
