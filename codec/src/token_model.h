// A token model as the encoder makes it (section 14 of the spec).
#pragma once

#include <vector>

#include "token_model_reader.h"

namespace l3 {

struct TokenModel {
  uint32_t channels, bits, engine_channels;
  bool match, literal, hole, still;
  Listing listing;
  uint32_t hole_value;
  std::vector<uint16_t> values[kMaxChannels];  // ranks: of each channel; colours: all in the first, sample by sample
  uint32_t depth[kMaxChannels];

  uint32_t classes[kMaxChannels];
  TapWeights weights[kMaxChannels][kMaxClasses];
  uint8_t activity[kMaxChannels][kActivityTerms];
  uint8_t zone_group[kMaxChannels][kZones];
  uint8_t sign_group[kMaxChannels][kSignPatterns];
  uint8_t table_of[kMaxChannels][kMaxZoneGroups][kMaxSignGroups][kTokenLevels];
  uint32_t class_tables[kMaxChannels];
  uint8_t class_table_of[kMaxChannels][kMaxClasses];

  uint32_t still_frequency[2];  // of a block being still, where the one above it is not, and where it is
  uint32_t match_mask;
  uint8_t match_row[kMatchPatterns];  // by the equalities of the mask
  uint8_t match_table[kMaxMatchRows][kMatchOctaves];
  uint8_t literal_table[kLiteralContexts];

  uint32_t table_count;
  uint16_t frequencies[kMaxTokenTables][kTokens];
  uint16_t class_frequencies[kMaxChannels][8][kMaxClasses];
};

// The equalities that a mask keeps, in order.
uint32_t pattern_of(uint32_t equalities, uint32_t mask);

// The bytes of a model. What it holds must fit the spec's ranges.
// Gives every symbol that an image may need a code in every table.
void complete_token_model(TokenModel& model);
std::vector<uint8_t> write_token_model(const TokenModel& model);

// Reads and verifies a model for an image of so many channels and bits. A fault's place counts from the start of the
// section.
[[nodiscard]] Fault read_token_model(const uint8_t* bytes, uint64_t size, uint32_t channels, uint32_t bits,
                                     TokenTables& tables);

}  // namespace l3
