// A tile as the encoder of token models uses it, with its own memory, and the symbols that code it.
#pragma once

#include <memory>
#include <vector>

#include "encode/token_model.h"
#include "engine/token_fit_kernels.h"

namespace l3 {

constexpr uint32_t kMatchSymbols = 7;

class TokenTile {
 public:
  // All values are 0, no pixel repeats another one. `hole` is the hole's value, or negative.
  TokenTile(uint32_t width, uint32_t height, uint32_t engine_channels, int32_t hole);

  const TokenPlanes& planes() const { return planes_; }
  size_t pixels() const { return size_t{planes_.width} * planes_.height; }
  int32_t* row(uint32_t channel, uint32_t y) { return planes_.values[channel] + y * planes_.pitch; }
  // About how much memory a pixel takes.
  static uint64_t bytes_of_pixel(uint32_t engine_channels) { return 3 * sizeof(int32_t) * engine_channels + 3; }
  // Completes the margins of the values, and the held ones. To be called once all values are set.
  void finish();

 private:
  TokenPlanes planes_{};
  std::unique_ptr<int32_t[]> numbers_;
  std::unique_ptr<uint8_t[]> bytes_;
  std::unique_ptr<uint16_t[]> rows_;
};

using TokenTiles = std::vector<std::unique_ptr<TokenTile>>;

// What codes the pixels of a tile, row by row, and the contexts that select the tables.
struct TokenSymbols {
  std::unique_ptr<uint8_t[]> symbols;   // kNoSymbol in still blocks
  std::unique_ptr<uint16_t[]> matches;  // with match: kMatchOctaves * equalities + octave; literal: equalities
  std::unique_ptr<uint16_t[]> contexts[kMaxChannels];  // kTokenLevels * row + level; literal: W
  std::unique_ptr<uint16_t[]> numbers[kMaxChannels];   // that tokens and raw bits stand for
  std::unique_ptr<uint8_t[]> still;                    // for each block
  std::unique_ptr<uint16_t[]> rows;                    // with still rows: for each block
  std::unique_ptr<uint8_t[]> classes[kMaxChannels];    // for each block
};

// The row of each zone and sign pattern of a channel.
struct TokenRows {
  uint32_t sign_groups, rows;
  uint8_t of[kZones][kSignPatterns];

  TokenRows(const TokenModel& model, uint32_t c);
};

// The contexts of all rows of blocks (section 15.5), 16 to a block, if this many lanes decode them. kNoSymbol for rows
// of still blocks and those outside of the tile.
std::vector<uint8_t> row_contexts(const TokenSymbols& symbols, uint32_t width, uint32_t height, uint32_t lanes);

// Reads the symbols of a tile that is predicted, if the model predicts.
TokenSymbols read_symbols(const TokenTile& tile, const TokenKernels& kernels, const TokenModel& model);

}  // namespace l3
