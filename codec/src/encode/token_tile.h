// A tile as the encoder of token models uses it: planes of values, matches, errors and predictions (section 15 of the
// spec).
#pragma once

#include <memory>
#include <vector>

#include "encode/token_model.h"

namespace l3 {

// Takes the place of a MatchSymbol for pixels of still blocks, which have no symbol.
constexpr uint32_t kNoSymbol = 0xFF;

enum TokenNeighbour : uint32_t { kTokenW, kTokenN, kTokenNw, kTokenNe, kTokenWw, kTokenNn, kTokenNne, kTokenNww };
constexpr uint32_t kTokenNeighbours = 8;

// The neighbours of each number in a row of a plane: one row for each kind of neighbour.
class NeighbourRows {
 public:
  explicit NeighbourRows(uint32_t width) : width_(width), numbers_(size_t{width} * kTokenNeighbours) {}

  // Finds the neighbours for row y of a plane.
  void find(const int32_t* plane, uint32_t y);
  // Replaces the hole by the value that section 15.2 defines.
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
  std::vector<int32_t> predicted[kMaxChannels];  // twice the prediction, plus 1 if it leans upwards
  std::vector<uint8_t> classes[kMaxChannels];    // for each block
  std::vector<uint8_t> equalities, symbols;      // for each pixel; without match every symbol is kMatchNone
  std::vector<uint8_t> still;                    // for each block

  TokenTile(uint32_t w, uint32_t h, uint32_t engine_channels);

  size_t pixels() const { return size_t{width} * height; }
  uint32_t block_count() const { return blocks_across * blocks_down; }
  bool still_above(uint32_t block) const { return block >= blocks_across && still[block - blocks_across] != 0; }
  // Finds which neighbour each pixel repeats. `hole` is the hole's value, or negative. `with_still` allows still
  // blocks.
  void find_matches(int32_t hole, bool with_still);

 private:
  // Marks blocks in which all pixels are as in a still block, and gives their pixels the symbol kNoSymbol.
  void find_still(const std::vector<uint8_t>& stays);
};

// Predicts channel c with the classes of its blocks, and computes its errors.
void predict_tile(TokenTile& tile, uint32_t c, const TapWeights* weights, uint32_t depth, int32_t hole);

// The number that a token stands for: how far the value is from the prediction.
inline uint32_t number_of(int32_t value, int32_t predicted, uint32_t depth) {
  const int32_t p = predicted >> 1;
  const bool up = (predicted & 1) != 0;
  const int32_t span = 1 << depth;
  int32_t d = (up ? value - p : p - value) & (span - 1);
  if (d > span / 2) d -= span;
  // Odd numbers go in the direction in which the prediction leans.
  return d > 0 ? static_cast<uint32_t>(2 * d - 1) : static_cast<uint32_t>(-2 * d);
}

// The contexts of a row's samples, which select their tables.
struct ContextRow {
  std::vector<uint8_t> level, zone, pattern;
  explicit ContextRow(uint32_t width) : level(width), zone(width), pattern(width) {}
};

// Finds contexts, one row at a time.
class ContextFinder {
 public:
  ContextFinder(const TokenTile& tile, int32_t hole);

  // The contexts of channel c in row y. `activity` are the weights of the activity's terms.
  void find(uint32_t c, uint32_t y, const uint8_t* activity, uint32_t depth, ContextRow& row);
  // The octaves of the activity of channel 0, without terms of other channels.
  void find_octaves(uint32_t y, const uint8_t* activity, uint8_t* octaves);

  // The terms of the activity in row y: one row for each term.
  const std::vector<int32_t>* terms(uint32_t c, uint32_t y);

 private:
  const TokenTile& tile_;
  int32_t hole_;
  NeighbourRows values_, errors_;
  std::vector<int32_t> terms_[kActivityTerms];
  std::vector<int32_t> sum_;
};

}  // namespace l3
