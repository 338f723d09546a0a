// Fits the tables of a token model to the symbols of an image's tiles. How to fit is not part of the format.
#pragma once

#include "encode/token_fit.h"

namespace l3 {

// How often each symbol was seen in each context. The model's predictors and groups must be known.
class TokenCounts {
 public:
  explicit TokenCounts(const TokenModel& model);

  // Adds the symbols of a tile of this size.
  void add(const TokenSymbols& symbols, uint32_t width, uint32_t height);
  void add(const TokenCounts& other);
  // The bits of everything counted, coded with a model's tables.
  double bits(const TokenModel& model) const;
  // About the bits of an image of which the fraction `share` was counted, and of tables that suit it.
  double estimate(double share) const;

 private:
  friend void fit_token_tables(const TokenCounts& counts, const TokenEffort& effort, TokenModel& model);

  uint32_t channels_;
  uint32_t sign_groups_[kMaxChannels], rows_[kMaxChannels];
  std::vector<uint32_t> matches_;               // by equalities, octave and symbol
  std::vector<uint32_t> tokens_[kMaxChannels];  // by row, level and token; literal: by W and token
  uint32_t still_[2][2] = {};                   // by whether the block above is still
  uint32_t rows_still_[kRowContexts][2] = {};
  uint32_t classes_[kMaxChannels][kMaxClasses][kMaxClasses] = {};  // by the class of the channel before
};

// Groups zones and sign patterns of channel c by the statistics of their samples. The tiles are the fraction `share`
// of the image.
void fit_token_groups(const TokenTiles& tiles, const TokenKernels& kernels, uint32_t c, double share,
                      const TokenEffort& effort, TokenModel& model);

// Fits rows and tables to the counts.
void fit_token_tables(const TokenCounts& counts, const TokenEffort& effort, TokenModel& model);

}  // namespace l3
