// Fitting the predictors of a token model to tiles (nothing here is part of the format).
#pragma once

#include "token_tile.h"

namespace l3 {

// What an effort spends.
struct TokenEffort {
  uint32_t classes, rounds, tables, table_rounds;
  uint64_t fit_pixels;
};

TokenEffort token_effort_of(uint32_t effort);

using TokenTiles = std::vector<std::unique_ptr<TokenTile>>;

// What an error costs by how busy it is around it.
struct TokenScales {
  static constexpr uint32_t kLevels = 48;
  float of[kLevels];
};

// What an error costs before anything is known.
TokenScales first_token_scales();

// Fits the predictors, classes and activity weights of a channel to tiles whose channels before it are predicted, and
// predicts it there.
void fit_token_channel(const TokenTiles& tiles, uint32_t c, const TokenEffort& effort, TokenModel& model,
                       TokenScales& scales);

// Chooses the classes of a tile that the fit did not see, and predicts it.
void choose_tile_classes(TokenTile& tile, uint32_t c, const TokenModel& model, const TokenScales& scales);

}  // namespace l3
