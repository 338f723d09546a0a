// A token model in the encoder's form (section 14 of the spec).
#pragma once

#include <vector>

#include "models/token_model_reader.h"

namespace l3 {

struct TokenModel {
  using Form = TokenForm;

  uint32_t channels, bits, engine_channels;
  bool match, literal, hole, still, follow, rows;
  Listing listing;
  uint32_t hole_value;
  // Ranks: one list per channel. Colours: all in the first list, `channels` samples each.
  std::vector<uint16_t> values[kMaxChannels];
  uint32_t depth[kMaxChannels];

  uint32_t classes[kMaxChannels];
  TapWeights weights[kMaxChannels][kMaxClasses];
  uint8_t activity[kMaxChannels][kActivityTerms];
  uint8_t zone_group[kMaxChannels][kZones];
  uint8_t sign_group[kMaxChannels][kSignPatterns];
  uint8_t table_of[kMaxChannels][kMaxZoneGroups][kMaxSignGroups][kTokenLevels];
  uint32_t class_tables[kMaxChannels];
  uint8_t class_table_of[kMaxChannels][kMaxClasses];

  uint32_t still_frequency[2];  // of a still block, if the block above is not still, and if it is
  uint32_t row_frequency[kRowContexts];
  uint32_t match_mask;
  uint8_t match_row[kMatchPatterns];  // by the equalities that the mask selects
  uint8_t match_table[kMaxMatchRows][kMatchOctaves];
  uint8_t literal_table[kLiteralContexts];

  // By how many numbers beside the equalities a symbol of a match is coded: octaves, or what is followed.
  uint32_t columns() const { return literal && !follow ? 1 : kMatchOctaves; }

  uint32_t table_count;
  uint16_t frequencies[kMaxTokenTables][kTokens];
  uint16_t class_frequencies[kMaxChannels][8][kMaxClasses];
};

// The value of holes, or -1 if the model has none.
inline int32_t hole_of(const TokenModel& model) { return model.hole ? static_cast<int32_t>(model.hole_value) : -1; }

// The equalities that a mask selects, packed in order.
uint32_t pattern_of(uint32_t equalities, uint32_t mask);

// Gives a code to every symbol that an image may need, in every table.
void complete_token_model(TokenModel& model);
// Returns the bytes of a model. The values in `model` must be valid.
std::vector<uint8_t> write_token_model(const TokenModel& model);

}  // namespace l3
