// Encoding by the dense method: a model for the image, then each tile with it.
#pragma once

#include "dense_statistics.h"
#include "model_encoder.h"
#include "reverse_coder.h"

namespace l3 {

class DenseEncoder : public ModelEncoder {
 public:
  DenseEncoder(const TileSource& source, const DenseKernels& kernels, const l3_parallel& parallel)
      : source_(source), kernels_(kernels), parallel_(parallel) {}

  // What follows may throw std::bad_alloc.

  // Makes a model for all the tiles, or for others as well.
  void fit(uint32_t effort, ModelUse use = ModelUse::these);
  // Takes a model from elsewhere; a fault where it is not one for such an image. Classes are chosen with that effort.
  [[nodiscard]] Fault use(const uint8_t* model, size_t size, uint32_t effort);

  [[nodiscard]] uint32_t encode(uint64_t tile, uint8_t* out, uint32_t room, uint8_t& parameters) const override;

 private:
  // The symbols of a tile, channel by channel and row by row, and their contexts: 64 times the row, and the level.
  struct TileSymbols {
    std::unique_ptr<uint8_t[]> symbols;
    std::unique_ptr<uint16_t[]> contexts;
  };
  // What encoding needs of a model: as the decoder reads it, and for each table where its symbols' slots are.
  struct Codes {
    DenseTables tables;
    TapWeights weights[kMaxChannels][kMaxClasses];
    uint8_t activity[kMaxChannels][kActivityTerms];
    uint16_t row_of[kMaxChannels][kZones * kSignPatterns];  // 64 times the row, in the spec's order of patterns
    std::vector<SlotTable<kMaxSymbols>> symbols;
    std::vector<SlotTable<kClassBuckets>> classes;
    // Of symbols, by table: 16ths of a bit, roughly; 0 where there is no code.
    uint8_t costs[kMaxTables][kMaxSymbols];
  };

  std::unique_ptr<DenseTile> load(uint64_t tile) const;
  // Chooses the classes of a tile that the fit did not see, and predicts it.
  void start_classes(const DenseTile& tile) const;
  static void add_symbols(const TileSymbols& read, const DenseTile& tile, SymbolCounts& counts);
  template <class Count>
  void count_in_chunks(uint64_t tiles, SymbolCounts& counts, const Count& count) const;
  void count_tiles(const std::vector<std::unique_ptr<DenseTile>>& tiles, SymbolCounts& counts) const;
  // Refines what was fitted to the tiles, which are `share` of the image.
  void refine_in_rounds(const std::vector<std::unique_ptr<DenseTile>>& tiles, double share);
  // Counts the symbols of all tiles and keeps their classes.
  void count_all(const std::vector<uint64_t>& seen, std::vector<std::unique_ptr<DenseTile>>& tiles,
                 SymbolCounts& counts);
  // Gives codes to symbols that were not seen. `counts` are those of the tables, times `weight`.
  void complete(SymbolCounts& counts, uint32_t weight, ModelUse use);
  // How often each sample is taken to be there: a model for others is not to be smaller for how few were looked at.
  uint32_t sample_weight(ModelUse use) const;
  void scale_counts(SymbolCounts& counts, uint32_t weight) const;
  void make_codes();
  // Fills `fitted_` from the codes, but for what is said of classes.
  void restore_fitted();
  // A tile that the fit did not see, with its classes chosen as the codes want them.
  std::unique_ptr<DenseTile> load_with_classes(uint64_t tile) const;
  TileSymbols read_symbols(const DenseTile& tile, const uint8_t (*activity)[kActivityTerms],
                           const uint16_t (*row_of)[kZones * kSignPatterns]) const;

  const TileSource source_;
  const DenseKernels& kernels_;
  const l3_parallel parallel_;
  DenseEffort effort_{};
  DenseModel fitted_{};
  FitScales scales_[kMaxChannels];
  std::vector<uint32_t> class_costs_[kMaxChannels];
  // The classes of each tile's blocks, channel by channel.
  std::vector<std::vector<uint8_t>> classes_;
  // Empty where they would take too much memory.
  std::vector<TileSymbols> symbols_;
  std::unique_ptr<Codes> codes_;
};

}  // namespace l3
