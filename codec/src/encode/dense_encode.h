// Encodes with the dense method (sections 12 and 13 of the spec): makes a model for the image, then encodes each tile.
#pragma once

#include "encode/dense_statistics.h"
#include "encode/model_encoder.h"
#include "encode/reverse_coder.h"

namespace l3 {

class DenseEncoder : public ModelEncoder {
 public:
  DenseEncoder(const TileSource& source, const DenseKernels& kernels, const l3_parallel& parallel)
      : source_(source), kernels_(kernels), parallel_(parallel) {}

  // The functions below may throw std::bad_alloc.

  // Fits a model to all tiles; `use` says whether it must also work for other images.
  void fit(uint32_t effort, ModelUse use = ModelUse::these) {
    fit_sample(effort, use);
    fit_rest(use);
  }
  // The two halves of fit(): predictors and groups, from a sample of the tiles, and everything else, from all tiles.
  void fit_sample(uint32_t effort, ModelUse use = ModelUse::these);
  void fit_rest(ModelUse use = ModelUse::these);
  // After fit_sample(): how many bytes tiles and model will take. `repeats` is share_of_repeats() of all tiles.
  double estimate(double repeats) const;
  // Uses a model from elsewhere, and its codes in `kept` unless that is null. Returns a fault if it is not a model for
  // this kind of image. `effort` is spent on choosing the classes.
  [[nodiscard]] Fault use(std::span<const uint8_t> model, KeptCodes* kept, uint32_t effort);

  [[nodiscard]] uint32_t encode(uint64_t tile, uint8_t* out, uint32_t room, uint8_t& parameters) const override;

 private:
  // The symbols of a tile, channel by channel and row by row, and their contexts: 64 * row + level.
  struct TileSymbols {
    std::unique_ptr<uint8_t[]> symbols;
    std::unique_ptr<uint16_t[]> contexts;
  };
  // A model prepared for encoding: in the decoder's form, with the slots of each symbol in each table.
  struct Codes : ModelCodes {
    [[nodiscard]] Fault read(std::span<const uint8_t> bytes, const TileSource& source);
    void list_symbols();
    // Fills `model` from the tables, except for the cost of classes.
    void restore_model();

    DenseTables tables;
    DenseModel model{};
    // A model does not contain expected errors. These values are good enough to start from.
    FitScales scales = first_scales();
    uint16_t row_of[kMaxChannels][kZones * kSignPatterns];  // 64 * row, in the spec's order of patterns
    std::vector<SlotTable<kMaxSymbols>> symbols;
    std::vector<SlotTable<kClassBuckets>> classes;
    // The approximate cost of each symbol in each table, in 16ths of a bit; 0 if it has no code.
    uint8_t costs[kMaxTables * kMaxSymbols];  // by 256 * table + symbol
  };

  std::unique_ptr<DenseTile> load(uint64_t tile) const;
  // Replaces the sample by one of about this many pixels: by all tiles if they have fewer than twice as many.
  void load_sample(uint64_t pixels);
  // Chooses the classes of a tile that the fit did not see, and predicts it.
  void start_classes(const DenseTile& tile) const;
  static void add_symbols(const TileSymbols& read, const DenseTile& tile, SymbolCounts& counts);
  template <class Count>
  void count_in_chunks(uint64_t tiles, SymbolCounts& counts, const Count& count) const;
  // Counts the symbols of the sample.
  void count_tiles(SymbolCounts& counts) const;
  // Refines the model that was fitted to the sample, which is the fraction `share` of the images.
  void refine_in_rounds(double share);
  // Counts the symbols of all tiles and keeps their classes.
  void count_all(SymbolCounts& counts);
  // Gives codes to symbols that were not seen. `counts` are the counts of the tables, multiplied by `weight`.
  void complete(SymbolCounts& counts, uint32_t weight, ModelUse use);
  // The factor by which counts are multiplied. A model for other images must not be small just because few were seen.
  uint32_t sample_weight(ModelUse use) const;
  void scale_counts(SymbolCounts& counts, uint32_t weight) const;
  // Loads a tile that the fit did not see, and chooses its classes for the current codes.
  std::unique_ptr<DenseTile> load_with_classes(uint64_t tile) const;
  TileSymbols read_symbols(const DenseTile& tile, const uint8_t (*activity)[kActivityTerms],
                           const uint16_t (*row_of)[kZones * kSignPatterns]) const;

  const TileSource source_;
  const DenseKernels& kernels_;
  const l3_parallel parallel_;
  DenseEffort effort_{};
  DenseModel fitted_{};
  // The sample, until all tiles are counted: all tiles, or pieces of some and their content.
  bool sees_all_ = false;
  std::vector<std::unique_ptr<DenseTile>> tiles_;
  double content_ = 0;
  FitScales scales_[kMaxChannels];
  std::vector<uint32_t> class_costs_[kMaxChannels];
  // The classes of each tile's blocks, channel by channel.
  std::vector<std::vector<uint8_t>> classes_;
  // Empty if the symbols would take too much memory.
  std::vector<TileSymbols> symbols_;
  CodesInUse<Codes> codes_;
};

}  // namespace l3
