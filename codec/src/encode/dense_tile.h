// A tile as the encoder of the dense method uses it, with its own memory.
#pragma once

#include <memory>
#include <vector>

#include "container/tile.h"
#include "engine/dense_fit_kernels.h"

namespace l3 {

class DenseTile {
 public:
  DenseTile(const TileShape& shape, const TileInput& input);

  const DensePlanes& planes() const { return planes_; }
  size_t samples() const { return size_t{planes_.width} * planes_.height; }

 private:
  DensePlanes planes_{};
  std::vector<int16_t> numbers_;
  std::vector<uint8_t> classes_;
};

}  // namespace l3
