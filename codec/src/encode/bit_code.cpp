// Codes tiles with a bit model.
#include <algorithm>
#include <memory>

#include "container/logarithm.h"
#include "encode/bit_encode.h"

namespace l3 {
namespace {

// The codes of both bits at all levels, by 2 * level + bit, and what they cost.
struct BitCodes {
  static constexpr uint32_t kUnitsOfBit = 1u << 14;
  SymbolCode codes[2 * kBitLevels];
  uint32_t costs[2 * kBitLevels];

  constexpr BitCodes() : codes(), costs() {
    for (uint32_t number = 0; number < 2 * kBitLevels; ++number) {
      const uint32_t of_1 = bit_frequencies()(number / 2), own = number % 2 != 0 ? of_1 : kProbabilities - of_1;
      divide_by(own, codes[number]);
      codes[number].first = static_cast<uint16_t>(number % 2 != 0 ? 0 : of_1);
      costs[number] = static_cast<uint32_t>(kUnitsOfBit * (kProbabilityBits - logarithm(own)) + 0.5);
    }
  }
};
constexpr BitCodes kBitCodes;

uint32_t level_of(uint32_t frequency) {
  uint32_t low = 0, high = kBitLevels - 1;
  while (low < high) {
    const uint32_t middle = (low + high) / 2;
    if (bit_frequencies()(middle) < frequency) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

// The numbers of the codes of a tile's pixels: one for each lane in each step.
struct Numbers {
  uint32_t width, height, lanes, steps;
  std::vector<uint8_t> of;
  double bits = 0;

  // Where the first pixel of a row is. The next ones follow after `lanes` numbers each.
  size_t row(uint32_t y) const {
    return (size_t{y / lanes} * dense_period(width, lanes) + 2 * (y % lanes)) * lanes + y % lanes;
  }
};

Numbers numbers_of(const BitPlane& plane, const BitPlaces& places, const uint8_t* number_of, uint32_t log_lanes) {
  const BitHistory history(plane, log_lanes);
  Numbers numbers{plane.width(), plane.height(), history.lanes(), history.steps(), {}};
  const uint32_t lanes = numbers.lanes;
  numbers.of.assign(size_t{history.steps()} * lanes, ReverseCoder::kNoNumber);
  uint64_t cost = 0;
  history.for_indices(
      plane, places,
      [&](uint32_t lane, uint32_t step, uint32_t count, uint32_t index) {
        const uint8_t number = number_of[index];
        uint8_t* to = numbers.of.data() + size_t{step} * lanes + lane;
        for (uint32_t i = 0; i < count; ++i, to += lanes) *to = number;
        cost += uint64_t{kBitCodes.costs[number]} * count;
      },
      [&](uint32_t lane, uint32_t step, uint32_t count, const auto& index) {
        uint8_t* to = numbers.of.data() + size_t{step} * lanes + lane;
        for (uint32_t i = 0; i < count; ++i, to += lanes) {
          *to = number_of[index(i)];
          cost += kBitCodes.costs[*to];
        }
      });
  numbers.bits = static_cast<double>(cost) / BitCodes::kUnitsOfBit;
  return numbers;
}

}  // namespace

Fault BitEncoder::Codes::read(std::span<const uint8_t> bytes, const TileSource& source) {
  auto read = std::make_unique<BitTables>();
  BitModelReader reader(bytes.data(), bytes.size(), *read);
  Fault fault = reader.read_head(source.channels(), source.bits());
  if (fault.reason != Reason::none) return fault;
  places.count = read->count;
  std::reverse_copy(read->neighbours, read->neighbours + read->count, places.of);
  number_of.resize(size_t{2} << places.count);
  fault = reader.read_rest([&](uint32_t first, uint32_t count, uint32_t frequency) {
    for (uint32_t i = 2 * first; i < 2 * (first + count); ++i) {
      number_of[i] = static_cast<uint8_t>(2 * level_of(frequency) + i % 2);
    }
  });
  colours = {};
  for (uint32_t c = 0; c < source.channels(); ++c) {
    for (uint32_t bit = 0; bit < 2; ++bit) colours.of[bit] |= uint64_t{read->sample_of(c, bit)} << (16 * c);
  }
  tables = std::move(read);
  return fault;
}

uint32_t BitEncoder::encode(uint64_t number, uint8_t* out, uint32_t room, uint8_t& parameters) const {
  BitPlane plane;
  if (!load(number, codes_->colours, shapes_, plane)) return 0;
  const bool has_list = codes_->tables->shapes.count > 0;
  const uint32_t list_bytes = has_list ? shapes_.write_list(number, out, room) : 0;
  if (has_list && list_bytes == 0) return 0;
  const uint32_t width = plane.width(), height = plane.height(), likely = likely_log_lanes(width, height);
  Numbers numbers = numbers_of(plane, codes_->places, codes_->number_of.data(), likely);
  const uint32_t log_lanes = bit_log_lanes(width, height, numbers.bits);
  if (log_lanes != likely) numbers = numbers_of(plane, codes_->places, codes_->number_of.data(), log_lanes);

  // A pixel takes one word at most, and the coder reads one word ahead.
  const size_t room_for_words = size_t{width} * height + 1;
  const auto words = std::make_unique_for_overwrite<uint16_t[]>(room_for_words);
  ReverseCoder coder(numbers.lanes, words.get() + room_for_words);
  // Pixels of the ending are asked for row by row.
  size_t first_of_row = 0, row = numbers.row(0);
  const auto number_at = [&](size_t at) {
    if (at - first_of_row >= width) {
      const auto y = static_cast<uint32_t>(at / width);
      first_of_row = size_t{y} * width;
      row = numbers.row(y);
    }
    return numbers.of[row + (at - first_of_row) * numbers.lanes];
  };
  parameters = coder.begin<BitCodes::kUnitsOfBit, true>(
      width, height, log_lanes, [&](size_t at) { return kBitCodes.costs[number_at(at)]; },
      [&](EndingState& state, size_t at) { state.put(kBitCodes.codes[number_at(at)]); });
  const Ending ending = ending_of(parameters, width, height);
  for (uint32_t y = ending.row; y < height; ++y) {
    uint8_t* const first = numbers.of.data() + numbers.row(y);
    for (uint32_t x = ending.column; x < width; ++x) first[size_t{x} * numbers.lanes] = ReverseCoder::kNoNumber;
  }
  coder.put_steps(numbers.of.data(), numbers.steps, kBitCodes.codes);
  const uint32_t bytes = coder.write(out + list_bytes, room - list_bytes);
  return bytes == 0 ? 0 : list_bytes + bytes;
}

}  // namespace l3
