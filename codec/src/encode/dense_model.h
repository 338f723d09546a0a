// A model of kind 0 in the encoder's form (section 12 of the spec).
#pragma once

#include "models/model_reader.h"

namespace l3 {

struct DenseModel {
  using Form = DenseForm;

  uint32_t channels;
  uint32_t classes[kMaxChannels];
  uint32_t table_count;
  TapWeights weights[kMaxChannels][kMaxClasses];
  uint8_t activity[kMaxChannels][kActivityTerms];
  uint8_t zone_group[kMaxChannels][kZones];
  uint8_t sign_group[kMaxChannels][kSignPatterns];
  uint8_t table_of[kMaxChannels][kMaxZoneGroups][kMaxSignGroups][kLevels];
  uint32_t class_tables[kMaxChannels];
  // One of this channel's class tables, by the class of the channel before.
  uint8_t class_table_of[kMaxChannels][kMaxClasses];
  uint16_t frequencies[kMaxTables][kMaxSymbols];
  uint16_t class_frequencies[kMaxChannels][8][kMaxClasses];
};

// Writes a model to `bytes`, at most kMaxModelBytes, and returns its size. The values in `model` must be valid.
uint32_t write_model(const DenseModel& model, uint8_t* bytes);

// Give a code to every symbol of a table, and to every class.
void complete_table(DenseModel& model, uint32_t table);
void complete_class_tables(DenseModel& model);

// The nearest frequency that the format can represent: four significant bits.
uint32_t writable_frequency(uint32_t frequency);

// The size of a table in bits. It has `symbols` frequencies.
uint32_t table_bits(const uint16_t* frequencies, uint32_t symbols);

}  // namespace l3
