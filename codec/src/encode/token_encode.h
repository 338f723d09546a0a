// Encodes with a token model (sections 14 and 15 of the spec): makes the model for an image, then encodes each tile.
#pragma once

#include "encode/model_encoder.h"
#include "encode/reverse_coder.h"
#include "encode/token_statistics.h"
#include "encode/token_values.h"
#include "l3/l3.h"

namespace l3 {

// Tiles of one channel with at most so many pixels get a single lane, if they take few bytes.
constexpr uint32_t kMaxPixelsOfSingleLane = 1024;

// The variant of a token model.
struct TokenPlan {
  Listing listing = Listing::none;
  bool match = false, literal = false;
  int32_t hole = -1;  // a sample value, or -1 for none
  bool still = false, follow = false;
};

class TokenEncoder : public ModelEncoder {
 public:
  TokenEncoder(const TileSource& source, const l3_parallel& parallel);

  // The functions below may throw std::bad_alloc.

  // The plan that is expected to make the smallest file, the size of that file, and share_of_repeats() of the source.
  struct Choice {
    TokenPlan plan;
    double bytes, repeats;
  };
  Choice choose(uint32_t effort, ModelUse use = ModelUse::these) const;
  // Fits a model to all tiles, following a plan. If `use` includes other images, every symbol gets a code.
  void fit(const TokenPlan& plan, uint32_t effort, ModelUse use = ModelUse::these);
  // Uses a model from elsewhere, and its codes in `kept` unless that is null. Returns a fault if it is not a token
  // model for this kind of image.
  [[nodiscard]] Fault use(std::span<const uint8_t> model, KeptCodes* kept);

  [[nodiscard]] uint32_t encode(uint64_t tile, uint8_t* out, uint32_t room, uint8_t& parameters) const override;

 private:
  struct CodedSample {
    uint8_t table, token;
    uint16_t raw;
  };
  // What codes a tile's pixels: the tables of matches, and everything about samples.
  struct Coded {
    std::vector<uint8_t> match_tables;
    std::vector<CodedSample> samples[kMaxChannels];
    double bits = 0;
  };
  // A model prepared for encoding: in the decoder's form, with the slots of each symbol in each table.
  struct Codes : ModelCodes {
    [[nodiscard]] Fault read(std::span<const uint8_t> bytes, const TileSource& source);

    TokenTables tables;
    TokenModel model;
    std::vector<SlotTable<kTokenBuckets>> symbols;
    std::vector<SlotTable<kClassBuckets>> classes;
  };

  // What plans depend on, found in the whole image.
  struct Listings {
    double repeats = 0;
    double share_of_sample = 1;   // which share of the file's bytes the sample for trials is expected to take
    std::vector<Colour> colours;  // none if there are too many
    std::vector<uint16_t> ranks[kMaxChannels];
  };
  static TokenModel begin_model(const TileSource& source, const TokenPlan& plan, const Listings& listings);
  // The values of all tiles, without symbols.
  static TokenTiles load_all(const TileSource& source, const TokenModel& model, const ValueMap& map);
  // Finds what the pixels of tiles repeat and follow, and what is still.
  void find_symbols(const TokenTile& tile, const TokenModel& model) const;
  void find_symbols(const TokenTiles& tiles, const TokenModel& model) const;
  // Reads the symbols of a tile that the fit did not see. Returns false if the model does not list some value.
  bool read_tile(uint64_t tile, TokenSymbols& symbols) const;
  void fit_to(const TokenTiles& tiles, const TokenEffort& effort, double share, TokenModel& model,
              TokenScales* scales) const;
  struct Trial {
    TokenPlan plan;
    double bytes;        // estimate for the whole image
    double still_share;  // share of blocks that are still
  };
  // Of tiles whose symbols were found.
  Trial try_plan(const TokenPlan& plan, const TokenTiles& sample, const Listings& listings,
                 const TokenEffort& effort) const;
  Trial try_plan(const TokenPlan& plan, const TileSource& sample, const Listings& listings,
                 const TokenEffort& effort) const;
  double share_of(const TileSource& sample, const Listings& listings) const;
  static void insert(const Trial& trial, std::vector<Trial>& trials);
  double bytes_of_more_lanes(double bytes) const;
  std::vector<Trial> best_of_kinds(const std::vector<Trial>& trials, const TileSource& sample, const Listings& listings,
                                   uint32_t models) const;
  // A trial by estimate, and the bytes by which plans are compared.
  struct Tried {
    Trial trial;
    double bytes;
  };
  Tried try_kind(TokenPlan plan, const TileSource& sample, const Listings& listings, bool has_others, bool may_follow,
                 uint32_t effort) const;
  std::vector<Trial> try_plans(ModelUse use, const Listings& listings, const TileSource& sample) const;
  double share_that_follows(TokenPlan plan, const Listings& listings) const;
  std::vector<SampleTile> tiles_of(uint64_t pixels) const;
  // Counts the symbols of all tiles, and keeps them if there is enough memory. `seen` are the tiles that the fit saw:
  // all of them, or none.
  void count_all(const TokenTiles& seen, TokenCounts& counts);
  bool code(const TokenSymbols& symbols, size_t pixels, Coded& coded) const;

  const TileSource source_;
  const l3_parallel parallel_;
  const TokenKernels& kernels_;
  uint32_t settle_rounds_ = 2;
  TokenModel model_{};
  ValueMap map_;
  TokenScales scales_[kMaxChannels];
  // The symbols of each tile, or empty if they would take too much memory.
  std::vector<TokenSymbols> kept_;
  CodesInUse<Codes> codes_;
};

}  // namespace l3
