// The interface of the encoders of dense tiles, for all kinds of models.
#pragma once

#include <memory>
#include <span>

#include "encode/tile_source.h"
#include "models/model.h"

namespace l3 {

// Which images a model is for: these ones, similar ones, or any. It decides which unseen symbols get a code: none,
// those in tables where more symbols are likely to occur, or all.
enum class ModelUse { these, similar, any };

// The codes that an encoder uses: its own, or those that are kept with the model. `Codes` derives from ModelCodes.
template <class Codes>
class CodesInUse {
 public:
  explicit operator bool() const { return codes_ != nullptr; }
  const Codes& operator*() const { return *codes_; }
  const Codes* operator->() const { return codes_; }

  // Takes the codes of a model for images like `source`. Uses and leaves them in `kept`, if that is not null. Returns a
  // fault if it is not such a model.
  [[nodiscard]] Fault take(std::span<const uint8_t> model, const TileSource& source, KeptCodes* kept) {
    const ModelCodes* codes = kept != nullptr ? kept->get() : nullptr;
    if (codes == nullptr) {
      auto made = std::make_unique<Codes>();
      const Fault fault = made->read(model, source);
      if (fault.reason != Reason::none) return fault;
      if (kept == nullptr) own_ = std::move(made);
      codes = kept != nullptr ? kept->keep(std::move(made)) : own_.get();
    }
    codes_ = static_cast<const Codes*>(codes);
    return {};
  }

 private:
  std::unique_ptr<const Codes> own_;
  const Codes* codes_ = nullptr;
};

class ModelEncoder {
 public:
  virtual ~ModelEncoder() = default;

  // The model that was fitted; empty if the encoder uses another one.
  const std::vector<uint8_t>& model() const { return model_bytes_; }

  // Encodes a tile to at most `room` bytes, and writes zeros up to a multiple of the unit. Returns the size without
  // these zeros, and sets the tile's parameters. Returns 0 if there is not enough room, or if the model has no code for
  // something in the tile. May throw std::bad_alloc.
  [[nodiscard]] virtual uint32_t encode(uint64_t tile, uint8_t* out, uint32_t room, uint8_t& parameters) const = 0;

 protected:
  std::vector<uint8_t> model_bytes_;
};

}  // namespace l3
