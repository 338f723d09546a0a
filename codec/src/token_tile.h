// A tile as the encoder of token models looks at it: planes of values, what each pixel repeats, and what the predictors
// say (section 15 of the spec).
#pragma once

#include <memory>
#include <vector>

#include "token_model.h"

namespace l3 {

// Instead of a MatchSymbol: the pixel is in a still block, and has no symbol.
constexpr uint32_t kNoSymbol = 0xFF;

enum TokenNeighbour : uint32_t { kTokenW, kTokenN, kTokenNw, kTokenNe, kTokenWw, kTokenNn, kTokenNne, kTokenNww };
constexpr uint32_t kTokenNeighbours = 8;

// The neighbours of a row of numbers, each a row.
class NeighbourRows {
 public:
  explicit NeighbourRows(uint32_t width) : width_(width), numbers_(size_t{width} * kTokenNeighbours) {}

  // Those of row y of a plane.
  void find(const int32_t* plane, uint32_t y);
  // Holds another value where one is the hole.
  void fill_holes(int32_t hole);

  const int32_t* operator[](uint32_t neighbour) const { return numbers_.data() + size_t{neighbour} * width_; }

 private:
  int32_t* row(uint32_t neighbour) { return numbers_.data() + size_t{neighbour} * width_; }

  uint32_t width_;
  std::vector<int32_t> numbers_;
};

struct TokenTile {
  uint32_t width, height, channels;  // engine channels
  uint32_t blocks_across, blocks_down;
  std::vector<int32_t> values[kMaxChannels];
  std::vector<int32_t> errors[kMaxChannels];
  std::vector<int32_t> predicted[kMaxChannels];  // twice the prediction, plus 1 where it leans upwards
  std::vector<uint8_t> classes[kMaxChannels];    // of each block
  std::vector<uint8_t> equalities, symbols;      // with match, of each pixel; else every symbol is kMatchNone
  std::vector<uint8_t> still;                    // whether a block is

  TokenTile(uint32_t w, uint32_t h, uint32_t engine_channels);

  size_t pixels() const { return size_t{width} * height; }
  uint32_t block_count() const { return blocks_across * blocks_down; }
  bool still_above(uint32_t block) const { return block >= blocks_across && still[block - blocks_across] != 0; }
  // Finds what each pixel repeats; with the hole, where `hole` is not negative; with still blocks, where there may be.
  void find_matches(int32_t hole, bool with_still);

 private:
  // Pixels of blocks in which all of them stay get the symbol of that.
  void find_still(const std::vector<uint8_t>& stays);
};

// Predicts channel c with the classes that its blocks have, and finds its errors.
void predict_tile(TokenTile& tile, uint32_t c, const TapWeights* weights, uint32_t depth, int32_t hole);

// The number of a token that leads from a prediction to a value, and back.
inline uint32_t number_of(int32_t value, int32_t predicted, uint32_t depth) {
  const int32_t p = predicted >> 1;
  const bool up = (predicted & 1) != 0;
  const int32_t span = 1 << depth;
  int32_t d = (up ? value - p : p - value) & (span - 1);
  if (d > span / 2) d -= span;
  // Odd numbers go the way in which the prediction leans.
  return d > 0 ? static_cast<uint32_t>(2 * d - 1) : static_cast<uint32_t>(-2 * d);
}

// What the tables of a row's samples are named by.
struct ContextRow {
  std::vector<uint8_t> level, zone, pattern;
  explicit ContextRow(uint32_t width) : level(width), zone(width), pattern(width) {}
};

// Finds contexts row by row.
class ContextFinder {
 public:
  ContextFinder(const TokenTile& tile, int32_t hole);

  // Contexts of channel c in row y. `activity` has the weights of the terms.
  void find(uint32_t c, uint32_t y, const uint8_t* activity, uint32_t depth, ContextRow& row);
  // Octaves of the activity of channel 0 without other channels' terms.
  void find_octaves(uint32_t y, const uint8_t* activity, uint8_t* octaves);

  // The terms of the activity in row y, each a row.
  const std::vector<int32_t>* terms(uint32_t c, uint32_t y);

 private:
  const TokenTile& tile_;
  int32_t hole_;
  NeighbourRows values_, errors_;
  std::vector<int32_t> terms_[kActivityTerms];
  std::vector<int32_t> sum_;
};

}  // namespace l3
