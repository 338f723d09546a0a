// Writes a token model (section 14 of the spec).
#include "encode/token_model.h"

#include <algorithm>

#include "encode/model_writer.h"

namespace l3 {
namespace {

void put_ranks(BitWriter& bits, const std::vector<uint16_t>& values) {
  const size_t count = values.size();
  bits.put(static_cast<uint32_t>(count), 16);
  bits.put(values[0], 16);
  uint32_t minimum = 65535;
  for (size_t i = 1; i < count; ++i) minimum = smaller(minimum, values[i] - uint32_t{values[i - 1]});
  bits.put(minimum, 16);
  for (size_t first = 1; first < count; first += kValueBlock) {
    const size_t end = std::min(first + kValueBlock, count);
    uint32_t width = 0;
    for (size_t i = first; i < end; ++i) {
      width = std::max(width, bit_length(values[i] - uint32_t{values[i - 1]} - minimum));
    }
    bits.put(width, 5);
    for (size_t i = first; i < end; ++i) bits.put(values[i] - uint32_t{values[i - 1]} - minimum, width);
  }
}

void put_values(BitWriter& bits, const TokenModel& model) {
  if (model.listing == Listing::ranks) {
    for (uint32_t c = 0; c < model.channels; ++c) put_ranks(bits, model.values[c]);
  }
  if (model.listing == Listing::colours) {
    bits.put(static_cast<uint32_t>(model.values[0].size() / model.channels), 16);
    for (const uint16_t sample : model.values[0]) bits.put(sample, model.bits);
  }
}

void put_channel(BitWriter& bits, const TokenModel& model, uint32_t c) {
  if (model.literal) {
    put_row(bits, model.literal_table, kLiteralContexts, 8, 6);
  } else {
    put_channel_parts(bits, model, c, 7, 6);
  }
}

void put_match(BitWriter& bits, const TokenModel& model) {
  for (const uint32_t frequency : model.still_frequency) {
    if (model.still) bits.put(frequency, kProbabilityBits);
  }
  for (const uint32_t frequency : model.row_frequency) {
    if (model.rows) bits.put(frequency, kProbabilityBits);
  }
  bits.put(model.match_mask, 8);
  const uint32_t patterns = 1u << __builtin_popcount(model.match_mask);
  uint32_t rows = 1;
  for (uint32_t i = 1; i < patterns; ++i) {
    const uint32_t row = model.match_row[i];
    if (row == model.match_row[i - 1]) {
      bits.put(0, 1);
    } else if (row == rows) {
      bits.put(1, 2);
      ++rows;
    } else {
      bits.put(3, 2);
      bits.put(row, 5);
    }
  }
  for (uint32_t row = 0; row < rows; ++row) put_row(bits, model.match_table[row], kMatchOctaves, 5, 6);
}

// An upper bound of a model's size.
size_t max_bytes(const TokenModel& model) {
  size_t values = 0;
  for (const auto& list : model.values) values += 3 * list.size();
  return (1u << 16) + values;
}

}  // namespace

uint32_t pattern_of(uint32_t equalities, uint32_t mask) {
  uint32_t pattern = 0, bit = 0;
  for (uint32_t i = 0; i < 8; ++i) {
    if ((mask >> i & 1) != 0) pattern |= (equalities >> i & 1) << bit++;
  }
  return pattern;
}

void complete_token_model(TokenModel& model) {
  uint32_t match_tables = 0, depth = 0;
  for (const auto& row : model.match_table) {
    for (const uint8_t table : row) match_tables = std::max(match_tables, model.match ? table + 1u : 0);
  }
  for (uint32_t c = 0; c < model.engine_channels; ++c) depth = std::max(depth, model.depth[c]);
  const uint32_t tokens = token_of((1u << depth) - 1) + 1;
  for (uint32_t t = 0; t < model.table_count; ++t) {
    const uint32_t matches = model.follow ? kMatchFollow + 1 : model.hole ? kMatchHole + 1 : kMatchNone + 1;
    complete_frequencies(model.frequencies[t], t < match_tables ? matches : tokens);
  }
  for_class_tables(model, model.engine_channels, complete_frequencies);
}

std::vector<uint8_t> write_token_model(const TokenModel& model) {
  uint32_t class_tables = 0;
  for_class_tables(model, model.engine_channels, [&](const uint16_t*, uint32_t) { ++class_tables; });
  const uint32_t wide = model.engine_channels + 1;
  const uint32_t narrow = model.table_count + class_tables;
  std::vector<uint8_t> bytes(max_bytes(model));
  bytes[0] = kTokenModelKind;
  bytes[1] = static_cast<uint8_t>(model.channels);
  bytes[2] = static_cast<uint8_t>(model.bits);
  bytes[3] = static_cast<uint8_t>((model.match ? 1 : 0) | (model.literal ? 2 : 0) | (model.hole ? 4 : 0) |
                                  static_cast<int>(model.listing) << 3 | (model.still ? 32 : 0) |
                                  (model.follow ? 64 : 0) | (model.rows ? 128 : 0));
  store_u16(&bytes[4], model.hole ? model.hole_value : 0);
  bytes[6] = static_cast<uint8_t>(model.table_count);
  bytes[7] = static_cast<uint8_t>(class_tables);
  for (uint32_t c = 0; c < model.engine_channels; ++c) bytes[8 + c] = static_cast<uint8_t>(model.classes[c]);
  uint8_t* sizes = &bytes[kTokenHeadBytes];
  size_t at = kTokenHeadBytes + 2 * wide + narrow;
  const auto add = [&](const auto& put) {
    BitWriter bits(&bytes[at]);
    put(bits);
    at += bits.bytes();
    return bits.bytes();
  };
  const auto add_wide = [&](const auto& put) {
    store_u16(sizes, add(put));
    sizes += 2;
  };
  const auto add_table = [&](const uint16_t* frequencies, uint32_t symbols) {
    *sizes++ = static_cast<uint8_t>(add([&](BitWriter& bits) { put_table(&bits, frequencies, symbols); }));
  };
  for (uint32_t c = 0; c < model.engine_channels; ++c) add_wide([&](BitWriter& bits) { put_channel(bits, model, c); });
  add_wide([&](BitWriter& bits) {
    if (model.match) put_match(bits, model);
  });
  for (uint32_t t = 0; t < model.table_count; ++t) add_table(model.frequencies[t], kTokens);
  for_class_tables(model, model.engine_channels, add_table);
  add([&](BitWriter& bits) { put_values(bits, model); });
  bytes.resize(at);
  return bytes;
}

}  // namespace l3
