// Encodes with a bit model (section 24 of the spec): makes the model for an image, then encodes each tile.
#pragma once

#include "encode/bit_tile.h"
#include "encode/model_encoder.h"
#include "encode/reverse_coder.h"
#include "encode/shapes.h"
#include "l3/l3.h"

namespace l3 {

class BitEncoder : public ModelEncoder {
 public:
  BitEncoder(const TileSource& source, const l3_parallel& parallel) : source_(source), parallel_(parallel) {}

  // The functions below may throw std::bad_alloc.

  // Fits a model to all tiles, which have no other colours.
  void fit(const BitColours& colours, uint32_t effort);
  // After fit(): about how many bytes tiles and model take.
  double bytes() const { return bytes_; }
  // Uses a model from elsewhere, and its codes in `kept` unless that is null. Returns a fault if it is not a bit model
  // for this kind of image.
  [[nodiscard]] Fault use(std::span<const uint8_t> model, KeptCodes* kept);

  [[nodiscard]] uint32_t encode(uint64_t tile, uint8_t* out, uint32_t room, uint8_t& parameters) const override;

 private:
  // A model prepared for encoding.
  struct Codes : ModelCodes {
    [[nodiscard]] Fault read(std::span<const uint8_t> bytes, const TileSource& source);

    BitColours colours;
    BitPlaces places;
    std::vector<uint8_t> number_of;  // by index: of a code, 2 * level + bit
    std::unique_ptr<const BitTables> tables;
  };
  struct Model {
    double size;  // about how many bytes tiles and model take
    std::vector<uint8_t> bytes;
  };
  // Fits a model to all tiles without these shapes.
  Model fitted(const BitColours& colours, uint32_t effort, const ImageShapes& shapes) const;
  // Loads a tile without its shapes. Returns false if it has another colour.
  [[nodiscard]] bool load(uint64_t tile, const BitColours& colours, const ImageShapes& shapes, BitPlane& plane) const;
  // Calls use(history, lane, step, busy) for all pixels of a tile, up to 64 at once, if some of them are busy.
  template <class Use>
  void for_busy(uint64_t tile, const BitColours& colours, const ImageShapes& shapes, const Use& use) const;
  // Sets of neighbours for a model, the most important ones first, of which one may be better than the others.
  std::vector<std::vector<uint8_t>> choose_neighbours(const BitColours& colours, const ImageShapes& shapes,
                                                      uint32_t effort) const;
  // How often each index occurs in all tiles.
  std::vector<uint64_t> count_all(const BitColours& colours, const ImageShapes& shapes, const BitPlaces& places) const;

  const TileSource source_;
  const l3_parallel parallel_;
  double bytes_ = 0;
  ImageShapes shapes_;  // of the model in use
  CodesInUse<Codes> codes_;
};

}  // namespace l3
