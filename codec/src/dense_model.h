// Reading and writing the model section (section 12 of the spec).
#pragma once

#include "model_reader.h"

namespace l3 {

// Reads and verifies a model for an image of so many channels. A fault's place counts from the start of the section.
[[nodiscard]] Fault read_model(const uint8_t* bytes, uint64_t size, uint32_t channels, DenseTables& tables);

// A model as the encoder makes it.
struct DenseModel {
  uint32_t channels;
  uint32_t classes[kMaxChannels];
  uint32_t table_count;
  TapWeights weights[kMaxChannels][kMaxClasses];
  uint8_t activity[kMaxChannels][kActivityTerms];
  uint8_t zone_group[kMaxChannels][kZones];
  uint8_t sign_group[kMaxChannels][kSignPatterns];
  uint8_t table_of[kMaxChannels][kMaxZoneGroups][kMaxSignGroups][kLevels];
  uint32_t class_tables[kMaxChannels];
  uint8_t class_table_of[kMaxChannels][kMaxClasses];  // of this channel's class tables, by the class of the one before
  uint16_t frequencies[kMaxTables][kMaxSymbols];
  uint16_t class_frequencies[kMaxChannels][8][kMaxClasses];
};

// Writes a model to at most kMaxModelBytes; gives its size. What `model` holds must fit the spec's ranges.
uint32_t write_model(const DenseModel& model, uint8_t* bytes);

// Give a code to the symbols of a table that have none, and to such classes.
void complete_table(DenseModel& model, uint32_t table);
void complete_class_tables(DenseModel& model);

// The nearest frequency that can be written: four leading bits, the others zero.
uint32_t writable_frequency(uint32_t frequency);

// How many bits a table takes. `symbols` frequencies.
uint32_t table_bits(const uint16_t* frequencies, uint32_t symbols);

}  // namespace l3
