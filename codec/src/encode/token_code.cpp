// Codes tiles with a token model.
#include <algorithm>
#include <cstring>

#include "encode/entropy.h"
#include "encode/token_encode.h"
#include "encode/token_follow.h"

namespace l3 {
namespace {

// How many bits a lane should have. In small tiles of one channel, processors decode lanes in numbers and not in
// vectors, and take longer for two lanes than for one.
constexpr double kBitsOfLane = 640, kBitsOfSingleLane = 1280;

// The least number of lanes, as a power of two. With fewer than eight, a step takes a processor's vector unit the same
// time. With sixteen, two vectors hide each other's waiting, so a pixel takes three quarters of the time; the eight
// more take 24 bytes.
uint32_t min_log_lanes(size_t pixels, double bits) {
  constexpr size_t kLarge = 1u << 12, kVeryLarge = 1u << 14;
  constexpr double kBitsForSixteen = 2560;
  if (pixels >= kVeryLarge && bits >= kBitsForSixteen) return 4;
  return pixels >= kLarge ? 3 : 0;
}

}  // namespace

// Finds the tables that code a tile's symbols. Returns false if a symbol has no code.
bool TokenEncoder::code(const TokenSymbols& symbols, size_t pixels, Coded& coded) const {
  const TokenTables& tables = codes_->tables;
  uint64_t cost = 0;  // approximate, in 16ths of a bit
  bool sound = true;
  const auto add = [&](uint32_t table, uint32_t symbol) {
    const uint32_t frequency = codes_->symbols[table].codes[symbol].frequency;
    sound &= frequency != 0;
    cost += cost_of_frequency(frequency);
  };
  if (tables.match) {
    const uint32_t octaves = codes_->model.columns();
    coded.match_tables.resize(pixels);
    for (size_t i = 0; i < pixels; ++i) {
      if (symbols.symbols[i] == kNoSymbol) continue;
      const uint32_t equalities = symbols.matches[i] / octaves, octave = symbols.matches[i] % octaves;
      coded.match_tables[i] = tables.match_table[tables.match_row[equalities] * kMatchOctaves + octave];
      add(coded.match_tables[i], symbols.symbols[i]);
    }
  }
  for (uint32_t c = 0; c < tables.engine_channels; ++c) {
    const uint8_t* const table_of = tables.literal ? tables.literal_table : tables.table_of[c];
    coded.samples[c].resize(pixels);
    for (size_t i = 0; i < pixels; ++i) {
      if (symbols.symbols[i] != kMatchNone) continue;
      const uint32_t number = symbols.numbers[c][i], token = token_of(number);
      const uint8_t table = table_of[symbols.contexts[c][i]];
      coded.samples[c][i] = {table, static_cast<uint8_t>(token), static_cast<uint16_t>(number - first_of(token))};
      add(table, token);
      cost += 16 * raw_bits_of(token);
    }
  }
  coded.bits = static_cast<double>(cost) / 16;
  return sound;
}

uint32_t TokenEncoder::encode(uint64_t number, uint8_t* out, uint32_t room, uint8_t& parameters) const {
  const TokenTables& tables = codes_->tables;
  const TileShape shape = source_.shape(number);
  const size_t pixels = size_t{shape.width} * shape.height;
  TokenSymbols read;
  if (kept_.empty() && !read_tile(number, read)) return 0;
  const TokenSymbols& symbols = kept_.empty() ? read : kept_[number];
  Coded coded;
  if (!code(symbols, pixels, coded)) return 0;

  const bool is_single = tables.engine_channels == 1 && pixels <= kMaxPixelsOfSingleLane;
  const uint32_t log_lanes =
      tables.follow ? log_follow_lanes(shape.width, shape.height)
                    : log_lanes_for(shape.width, shape.height, coded.bits, is_single ? kBitsOfSingleLane : kBitsOfLane,
                                    min_log_lanes(pixels, coded.bits));
  const uint32_t lanes = 1u << log_lanes, channels = tables.engine_channels;
  const uint32_t across = ceil_div(shape.width, kBlockEdge), blocks = across * ceil_div(shape.height, kBlockEdge);
  // A symbol takes one word at most, its raw bits another, and the coder reads one word ahead.
  const size_t room_for_words = pixels * (1 + 2 * channels) + size_t{blocks} * (1 + kBlockEdge + channels) + 1;
  const auto words = std::make_unique_for_overwrite<uint16_t[]>(room_for_words);
  ReverseCoder coder(lanes, words.get() + room_for_words);
  const SlotTable<kTokenBuckets>* const codes = codes_->symbols.data();
  const uint8_t* const matches = symbols.symbols.get();
  const auto is_escaped = [&](size_t at) { return matches[at] == kMatchNone; };
  const auto is_matched = [&](size_t at) { return tables.match && matches[at] != kNoSymbol; };
  const auto cost_of = [&](size_t at) {
    const auto cost = [&](uint32_t table, uint32_t symbol) {
      return uint32_t{cost_of_frequency(codes[table].codes[symbol].frequency)};
    };
    uint32_t of_pixel = is_matched(at) ? cost(coded.match_tables[at], matches[at]) : 0;
    for (uint32_t c = 0; c < channels && is_escaped(at); ++c) {
      const CodedSample& sample = coded.samples[c][at];
      of_pixel += cost(sample.table, sample.token) + 16 * raw_bits_of(sample.token);
    }
    return of_pixel;
  };
  parameters = coder.begin(shape.width, shape.height, log_lanes, cost_of, [&](EndingState& state, size_t at) {
    for (uint32_t c = is_escaped(at) ? channels : 0; c-- > 0;) {
      const CodedSample& sample = coded.samples[c][at];
      const uint32_t raw_bits = raw_bits_of(sample.token);
      if (raw_bits > 0) state.put_raw(sample.raw, raw_bits);
      state.put(codes[sample.table], sample.token);
    }
    if (is_matched(at)) state.put(codes[coded.match_tables[at]], matches[at]);
  });
  const Ending ending = ending_of(parameters, shape.width, shape.height);
  walk_backwards(shape.width, shape.height, lanes, ending,
                 [&](uint32_t count, const uint8_t* lane_of, const size_t* at) {
                   for (uint32_t c = channels; c-- > 0;) {
                     const CodedSample* const samples = coded.samples[c].data();
                     for (uint32_t i = count; i-- > 0;) {
                       if (!is_escaped(at[i])) continue;
                       const uint32_t raw_bits = raw_bits_of(samples[at[i]].token);
                       if (raw_bits > 0) coder.put_raw(lane_of[i], samples[at[i]].raw, raw_bits);
                     }
                     for (uint32_t i = count; i-- > 0;) {
                       if (!is_escaped(at[i])) continue;
                       coder.put(lane_of[i], codes[samples[at[i]].table], samples[at[i]].token);
                     }
                   }
                   for (uint32_t i = count; i-- > 0;) {
                     if (is_matched(at[i])) coder.put(lane_of[i], codes[coded.match_tables[at[i]]], matches[at[i]]);
                   }
                 });
  std::vector<uint8_t> contexts_of_rows;
  if (tables.rows) contexts_of_rows = row_contexts(symbols, shape.width, shape.height, lanes);
  for (uint32_t first = (blocks - 1) / lanes * lanes;; first -= lanes) {
    for (uint32_t c = channels; c-- > 0;) {
      if (tables.classes[c] == 1) continue;
      for (uint32_t lane = smaller(lanes, blocks - first); lane-- > 0;) {
        if (symbols.still[first + lane] != 0) continue;
        const uint32_t own = symbols.classes[c][first + lane];
        const uint32_t before = c == 0 ? 0 : symbols.classes[c - 1][first + lane];
        const SlotTable<kClassBuckets>& table = codes_->classes[tables.class_table_of[c][before]];
        if (table.codes[own].frequency == 0) return 0;
        coder.put(lane, table, own);
      }
    }
    for (uint32_t k = tables.rows ? kBlockEdge : 0; k-- > 0;) {
      for (uint32_t lane = smaller(lanes, blocks - first); lane-- > 0;) {
        const uint8_t context = contexts_of_rows[size_t{first + lane} * kBlockEdge + k];
        if (context == kNoSymbol) continue;
        coder.put_binary(lane, tables.row_frequency[context], (symbols.rows[first + lane] >> k & 1) != 0);
      }
    }
    for (uint32_t lane = tables.still ? smaller(lanes, blocks - first) : 0; lane-- > 0;) {
      // Whether the block above is still, if it is decoded in an earlier round.
      const bool above = lane < across && first + lane >= across && symbols.still[first + lane - across] != 0;
      coder.put_binary(lane, tables.still_frequency[above], symbols.still[first + lane] != 0);
    }
    if (first == 0) break;
  }

  return coder.write(out, room);
}

}  // namespace l3
