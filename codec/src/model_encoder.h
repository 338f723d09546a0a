// What encoders of dense tiles offer, whatever the kind of their models.
#pragma once

#include "tile_source.h"

namespace l3 {

// Which images a model is for: those that it is fitted to, others like them, or any. So symbols that were not seen have
// no code, or have one in the tables in which others may well see some, or in all.
enum class ModelUse { these, similar, any };

class ModelEncoder {
 public:
  virtual ~ModelEncoder() = default;

  const std::vector<uint8_t>& model() const { return model_bytes_; }

  // Encodes a tile to at most `room` bytes: gives the size, a multiple of the unit, and the tile's parameters; 0 where
  // there is not room enough or where the model has no code for something in the tile. May throw std::bad_alloc.
  [[nodiscard]] virtual uint32_t encode(uint64_t tile, uint8_t* out, uint32_t room, uint8_t& parameters) const = 0;

 protected:
  std::vector<uint8_t> model_bytes_;
};

}  // namespace l3
