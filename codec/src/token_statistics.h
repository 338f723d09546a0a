// From what the tiles of an image hold to the tables of its token model (nothing here is part of the format).
#pragma once

#include "token_fit.h"

namespace l3 {

// How often each symbol was seen in each context of a model whose predictors and groups are known.
class TokenCounts {
 public:
  explicit TokenCounts(const TokenModel& model);

  void add(const TokenTile& tile, const TokenModel& model);
  void add(const TokenCounts& other);
  // What was counted takes with the tables of a model.
  double bits(const TokenModel& model) const;

 private:
  friend void fit_token_tables(const TokenCounts& counts, const TokenEffort& effort, TokenModel& model);

  void add_matches(const TokenTile& tile, const TokenModel& model);

  uint32_t zone_groups_[kMaxChannels], sign_groups_[kMaxChannels];
  std::vector<uint32_t> matches_;                                  // by equalities, octave and symbol
  std::vector<uint32_t> tokens_[kMaxChannels];                     // by row, level and token; literal: by W and token
  uint32_t still_[2][2] = {};                                      // by whether the block above is
  uint32_t classes_[kMaxChannels][kMaxClasses][kMaxClasses] = {};  // by the class of the channel before
};

constexpr uint32_t kMatchSymbols = 6;

// Groups zones and sign patterns of channel c by what follows them in the tiles, which are `share` of the image.
void fit_token_groups(const TokenTiles& tiles, uint32_t c, double share, TokenModel& model);

// Fits rows and tables to what was counted.
void fit_token_tables(const TokenCounts& counts, const TokenEffort& effort, TokenModel& model);

}  // namespace l3
