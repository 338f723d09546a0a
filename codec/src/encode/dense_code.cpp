// Codes tiles with a dense model.
#include <cstring>

#include "encode/dense_encode.h"
#include "encode/entropy.h"

namespace l3 {
namespace {

constexpr double kBitsOfLane = 512;

// The least number of lanes, as a power of two. In a large image, tiles of a clear sky have as many as others: with
// two, such a tile takes as long to decode as fourteen others. They add less than a thousandth to a photograph.
uint32_t min_log_lanes(uint64_t pixels_of_image, size_t pixels) {
  constexpr uint64_t kLargeImage = 1u << 18;
  constexpr size_t kLargeTile = 1u << 13;
  return pixels_of_image >= kLargeImage && pixels >= kLargeTile ? kMaxLogLanes : 0;
}

}  // namespace

// Fills in everything about the model, from the form that the decoder uses.
void DenseEncoder::Codes::list_symbols() {
  for (uint32_t c = 0; c < tables.channels; ++c) {
    for (uint32_t k = 0; k < tables.classes[c]; ++k) {
      for (uint32_t tap = 0; tap < kMaxTaps; ++tap) {
        const uint32_t word = tables.weights[c][k][tap / kTapsOfWord];
        model.weights[c][k].of[tap] = static_cast<int8_t>(word >> (8 * (tap % kTapsOfWord)));
      }
    }
    const auto term = [&](uint32_t word, uint32_t byte) {
      return static_cast<uint8_t>(tables.activity[c][word] >> (8 * byte));
    };
    const uint8_t terms[kActivityTerms] = {term(0, 0), term(0, 1), term(0, 2), term(0, 3), term(1, 0), term(1, 1),
                                           term(2, 0), term(2, 1), term(2, 2), term(1, 2), term(1, 3)};
    std::memcpy(model.activity[c], terms, sizeof(terms));
    for (uint32_t place = 0; place < kZones * kSignPatterns; ++place) {
      const uint32_t row =
          tables.zone_row[c][place / kSignPatterns] + tables.pattern_row[c][pattern_in_order(place % kSignPatterns)];
      row_of[c][place] = static_cast<uint16_t>(row * kLevels);
    }
  }
  symbols.resize(tables.table_count);
  classes.resize(tables.class_table_count);
  for (uint32_t t = 0; t < tables.table_count; ++t) {
    symbols[t].list(tables.buckets + t * kTableBuckets, kTableBuckets,
                    [](uint32_t meaning) { return symbol_of(meaning); });
    for (uint32_t i = 0; i < kMaxSymbols; ++i) {
      costs[t * kMaxSymbols + i] = cost_of_frequency(symbols[t].codes[i].frequency);
    }
  }
  for (uint32_t t = 0; t < tables.class_table_count; ++t) {
    classes[t].list(tables.class_buckets + t * kClassBuckets, kClassBuckets, [](uint32_t meaning) { return meaning; });
  }
}

uint32_t DenseEncoder::encode(uint64_t tile, uint8_t* out, uint32_t room, uint8_t& parameters) const {
  const Codes& codes = *codes_;
  const TileShape shape = source_.shape(tile);
  const uint32_t channels = shape.channels;
  const size_t samples = size_t{shape.width} * shape.height;
  TileSymbols own_symbols;
  std::vector<uint8_t> own_classes;
  if (symbols_.empty()) {
    const auto loaded = classes_.empty() ? load_with_classes(tile) : load(tile);
    const DensePlanes& planes = loaded->planes();
    if (classes_.empty()) {
      for (uint32_t c = 0; c < channels; ++c) {
        own_classes.insert(own_classes.end(), planes.classes[c], planes.classes[c] + planes.block_count());
      }
    } else {
      for (uint32_t c = 0; c < channels; ++c) {
        std::memcpy(planes.classes[c], classes_[tile].data() + size_t{c} * planes.block_count(), planes.block_count());
        kernels_.evaluate(planes, c, codes.model.weights[c], nullptr);
      }
    }
    own_symbols = read_symbols(*loaded, codes.model.activity, codes.row_of);
  }
  const TileSymbols& read = symbols_.empty() ? own_symbols : symbols_[tile];
  const uint8_t* classes = classes_.empty() ? own_classes.data() : classes_[tile].data();

  // A code is the number of a table and a symbol: 256 * table + symbol.
  const auto sample_codes = std::make_unique_for_overwrite<uint16_t[]>(samples * channels);
  uint64_t cost = 0;  // approximate, in 16ths of a bit
  uint32_t lowest = UINT32_MAX;
  for (uint32_t c = 0; c < channels; ++c) {
    const uint8_t* const table_of = codes.tables.table_of[c];
    uint32_t of_channel = 0;
    for (size_t i = c * samples; i < (c + 1) * samples; ++i) {
      const uint32_t code = uint32_t{table_of[read.contexts[i]]} * kMaxSymbols + read.symbols[i];
      const uint32_t symbol_cost = codes.costs[code];
      lowest = smaller(lowest, symbol_cost);
      of_channel += symbol_cost;
      sample_codes[i] = static_cast<uint16_t>(code);
    }
    cost += of_channel;
  }
  if (lowest == 0) return 0;  // a symbol has no code

  const uint32_t log_lanes = log_lanes_for(shape.width, shape.height, static_cast<double>(cost) / 16, kBitsOfLane,
                                           min_log_lanes(source_.pixels(), samples));
  const uint32_t lanes = 1u << log_lanes;
  const uint32_t blocks = block_count(shape.width, shape.height);
  // A symbol takes one word at most, and the coder reads one word ahead.
  const size_t room_for_words = (samples + blocks) * channels + 1;
  const auto words = std::make_unique_for_overwrite<uint16_t[]>(room_for_words);
  ReverseCoder coder(lanes, words.get() + room_for_words);
  const auto cost_of = [&](size_t at) {
    uint32_t of_pixel = 0;
    for (size_t i = at; i < samples * channels; i += samples) of_pixel += codes.costs[sample_codes[i]];
    return of_pixel;
  };
  parameters = coder.begin(shape.width, shape.height, log_lanes, cost_of, [&](EndingState& state, size_t at) {
    for (uint32_t c = channels; c-- > 0;) {
      const uint32_t code = sample_codes[c * samples + at];
      state.put(codes.symbols[code / kMaxSymbols], code % kMaxSymbols);
    }
  });
  const Ending ending = ending_of(parameters, shape.width, shape.height);
  coder.put_steps(shape.width, shape.height, channels, ending, sample_codes.get(), codes.symbols.data());
  for (uint32_t first = (blocks - 1) / lanes * lanes;; first -= lanes) {
    for (uint32_t c = channels; c-- > 0;) {
      if (codes.tables.classes[c] == 1) continue;
      for (uint32_t lane = smaller(lanes, blocks - first); lane-- > 0;) {
        const uint8_t* own = classes + size_t{c} * blocks + first + lane;
        const uint32_t before = c == 0 ? 0 : *(own - blocks);
        const SlotTable<kClassBuckets>& table = codes.classes[codes.tables.class_table_of[c][before]];
        if (table.codes[*own].frequency == 0) return 0;
        coder.put(lane, table, *own);
      }
    }
    if (first == 0) break;
  }

  return coder.write(out, room);
}

}  // namespace l3
