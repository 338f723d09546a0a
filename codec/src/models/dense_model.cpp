// Implements dense_model.h: the parts of a model of kind 0 (section 12 of the spec).
#include "models/dense_model.h"

#include <cstring>

#include "models/model_writer.h"

namespace l3 {
namespace {

template <class Bits>
void put_channel(Bits& bits, const DenseModel& model, uint32_t c) {
  put_weights(bits, model.weights[c], model.classes[c], c);
  for (uint32_t i = 0; i < 9 + cross_channels(c); ++i) bits.put(model.activity[c][i], 7);
  const GroupCounts groups = put_groups(bits, model.zone_group[c], model.sign_group[c]);
  for (uint32_t z = 0; z < groups.zones; ++z) {
    for (uint32_t s = 0; s < groups.signs; ++s) put_row(bits, model.table_of[c][z][s], kLevels, 6, 5);
  }
  if (model.classes[c] == 1) return;
  put_class_tables(bits, model.class_tables[c], model.class_table_of[c], c == 0 ? 1 : model.classes[c - 1]);
}

}  // namespace

void complete_frequencies(uint16_t* frequencies, uint32_t symbols) {
  uint32_t last = symbols - 1;
  while (frequencies[last] == 0) --last;
  const uint32_t rest = implicit_symbol(frequencies, last);
  int32_t lacking = 0;
  for (uint32_t i = 0; i < symbols; ++i) {
    if (frequencies[i] != 0) continue;
    frequencies[i] = 1;
    ++lacking;
  }
  while (lacking > 0) {
    uint32_t greatest = 0;
    for (uint32_t i = 1; i < symbols; ++i) greatest = frequencies[i] > frequencies[greatest] ? i : greatest;
    const uint32_t f = frequencies[greatest];
    const uint32_t step = f < 16 ? 1 : 1u << (bit_length(f) - 1 - kMantissaBits);
    const uint32_t less = greatest == rest ? smaller(step, static_cast<uint32_t>(lacking)) : step;
    frequencies[greatest] = static_cast<uint16_t>(f - less);
    lacking -= static_cast<int32_t>(less);
  }
  frequencies[rest] = static_cast<uint16_t>(frequencies[rest] - lacking);
}

Fault read_model(const uint8_t* bytes, uint64_t size, uint32_t channels, DenseTables& tables) {
  ModelReader reader(bytes, size, tables);
  Fault fault = reader.read_head(channels);
  if (fault.reason != Reason::none) return fault;
  std::memset(tables.table_of, 0, sizeof(tables.table_of));
  std::memset(tables.class_table_of, 0, sizeof(tables.class_table_of));
  bool is_read[kMaxChannels];
  uint32_t class_tables[kMaxChannels], first[kMaxChannels];
  for (uint32_t c = 0; c < channels; ++c) is_read[c] = reader.read_channel(c, class_tables[c]);
  fault = reader.place_class_tables(is_read, class_tables, first);
  if (fault.reason != Reason::none) return fault;
  for (uint32_t c = 0; c < channels; ++c) reader.move_class_tables(c, first[c]);
  for (uint32_t t = 0; t < tables.table_count; ++t) {
    uint16_t frequencies[kTableBuckets] = {};
    fault = reader.read_table(t, frequencies);
    if (fault.reason != Reason::none) return fault;
    build_buckets<kTableBuckets>(frequencies, tables.buckets + t * kTableBuckets);
  }
  for (uint32_t c = 0; c < channels; ++c) {
    for (uint32_t t = first[c]; t < first[c] + class_tables[c]; ++t) {
      uint16_t frequencies[kClassBuckets] = {};
      fault = reader.read_class_table(t, tables.classes[c], frequencies);
      if (fault.reason != Reason::none) return fault;
      build_buckets<kClassBuckets>(frequencies, tables.class_buckets + t * kClassBuckets);
    }
  }
  return {};
}

void complete_table(DenseModel& model, uint32_t table) { complete_frequencies(model.frequencies[table], kMaxSymbols); }

void complete_class_tables(DenseModel& model) {
  for (uint32_t c = 0; c < model.channels; ++c) {
    if (model.classes[c] == 1) continue;
    for (uint32_t t = 0; t < model.class_tables[c]; ++t) {
      complete_frequencies(model.class_frequencies[c][t], model.classes[c]);
    }
  }
}

uint32_t writable_frequency(uint32_t frequency) {
  const uint32_t n = bit_length(frequency);
  if (n <= kMantissaBits + 1) return frequency;
  const uint32_t shift = n - 1 - kMantissaBits;
  return (frequency + (1u << shift >> 1)) >> shift << shift;
}

uint32_t table_bits(const uint16_t* frequencies, uint32_t symbols) { return put_table(nullptr, frequencies, symbols); }

uint32_t write_model(const DenseModel& model, uint8_t* bytes) {
  uint32_t class_tables = 0;
  for (uint32_t c = 0; c < model.channels; ++c) class_tables += model.classes[c] > 1 ? model.class_tables[c] : 0;
  bytes[0] = 0;
  bytes[1] = static_cast<uint8_t>(model.channels);
  bytes[2] = static_cast<uint8_t>(model.table_count);
  bytes[3] = static_cast<uint8_t>(class_tables);
  for (uint32_t c = 0; c < kMaxChannels; ++c) {
    bytes[4 + c] = static_cast<uint8_t>(c < model.channels ? model.classes[c] : 0);
  }
  const uint32_t parts = model.channels + model.table_count + class_tables;
  uint32_t part = 0, at = kModelHeadBytes + 2 * parts;
  const auto add = [&](const auto& put) {
    store_u16(bytes + kModelHeadBytes + 2 * part++, at);
    BitWriter bits(bytes + at);
    put(bits);
    at += bits.bytes();
  };
  for (uint32_t c = 0; c < model.channels; ++c) add([&](BitWriter& bits) { put_channel(bits, model, c); });
  for (uint32_t t = 0; t < model.table_count; ++t) {
    add([&](BitWriter& bits) { put_table(&bits, model.frequencies[t], kMaxSymbols); });
  }
  for (uint32_t c = 0; c < model.channels; ++c) {
    if (model.classes[c] == 1) continue;
    for (uint32_t t = 0; t < model.class_tables[c]; ++t) {
      add([&](BitWriter& bits) { put_table(&bits, model.class_frequencies[c][t], model.classes[c]); });
    }
  }
  return at;
}

}  // namespace l3
