// The interface of the encoders of dense tiles, for both kinds of models.
#pragma once

#include "encode/tile_source.h"

namespace l3 {

// Which images a model is for: these ones, similar ones, or any. It decides which unseen symbols get a code: none,
// those in tables where more symbols are likely to occur, or all.
enum class ModelUse { these, similar, any };

class ModelEncoder {
 public:
  virtual ~ModelEncoder() = default;

  const std::vector<uint8_t>& model() const { return model_bytes_; }

  // Encodes a tile to at most `room` bytes. Returns the size, a multiple of the unit, and sets the tile's parameters.
  // Returns 0 if there is not enough room, or if the model has no code for something in the tile. May throw
  // std::bad_alloc.
  [[nodiscard]] virtual uint32_t encode(uint64_t tile, uint8_t* out, uint32_t room, uint8_t& parameters) const = 0;

 protected:
  std::vector<uint8_t> model_bytes_;
};

}  // namespace l3
