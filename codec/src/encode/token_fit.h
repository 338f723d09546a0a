// Fits the predictors of a token model to tiles. How to fit is not part of the format.
#pragma once

#include "encode/token_tile.h"

namespace l3 {

// The parameters of the encoder that follow from the effort.
struct TokenEffort {
  uint32_t classes, rounds;
  uint32_t settle_rounds;  // of choosing classes in tiles that the fit did not see
  uint32_t group_octaves;  // octaves of activity that groups do not tell apart
  uint32_t tables, table_rounds;
  uint64_t fit_pixels;
  uint64_t trial_pixels;  // of the sample on which plans are compared
  uint32_t trials;        // plans of which a model is fitted to that sample
};

TokenEffort token_effort_of(uint32_t effort);

// The expected |error| before any statistics exist.
TokenScales first_token_scales();

// Fits the predictors, classes and activity weights of channel c, and predicts it in all tiles. The channels before it
// must be predicted already.
void fit_token_channel(const TokenTiles& tiles, const TokenKernels& kernels, uint32_t c, const TokenEffort& effort,
                       TokenModel& model, TokenScales& scales);

// Chooses the classes of a tile that the fit did not see, in this many rounds, and predicts it.
void choose_tile_classes(const TokenPlanes& tile, const TokenKernels& kernels, uint32_t c, uint32_t rounds,
                         const TokenModel& model, const TokenScales& scales);

}  // namespace l3
