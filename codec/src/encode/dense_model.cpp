// Writes a model of kind 0 (section 12 of the spec).
#include "encode/dense_model.h"

#include "encode/model_writer.h"

namespace l3 {
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

void complete_table(DenseModel& model, uint32_t table) { complete_frequencies(model.frequencies[table], kMaxSymbols); }

void complete_class_tables(DenseModel& model) { for_class_tables(model, model.channels, complete_frequencies); }

uint32_t writable_frequency(uint32_t frequency) {
  const uint32_t n = bit_length(frequency);
  if (n <= kMantissaBits + 1) return frequency;
  const uint32_t shift = n - 1 - kMantissaBits;
  return (frequency + (1u << shift >> 1)) >> shift << shift;
}

uint32_t table_bits(const uint16_t* frequencies, uint32_t symbols) { return put_table(nullptr, frequencies, symbols); }

uint32_t write_model(const DenseModel& model, uint8_t* bytes) {
  uint32_t class_tables = 0;
  for_class_tables(model, model.channels, [&](const uint16_t*, uint32_t) { ++class_tables; });
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
  for (uint32_t c = 0; c < model.channels; ++c) add([&](BitWriter& bits) { put_channel_parts(bits, model, c, 6, 5); });
  for (uint32_t t = 0; t < model.table_count; ++t) {
    add([&](BitWriter& bits) { put_table(&bits, model.frequencies[t], kMaxSymbols); });
  }
  for_class_tables(model, model.channels, [&](const uint16_t* frequencies, uint32_t classes) {
    add([&](BitWriter& bits) { put_table(&bits, frequencies, classes); });
  });
  return at;
}

}  // namespace l3
