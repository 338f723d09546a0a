// Encoding with a token model: the model for the image, then each tile with it.
#pragma once

#include "l3/l3.h"
#include "model_encoder.h"
#include "reverse_coder.h"
#include "token_statistics.h"

namespace l3 {

// What kind of token model an image may have.
struct TokenPlan {
  Listing listing = Listing::none;
  bool match = false, literal = false;
  int32_t hole = -1;  // a sample, where there is one
  bool still = false;
};

// From samples to values: what a model lists, the other way round.
class ValueMap {
 public:
  ValueMap() = default;
  ValueMap(const TokenModel& model);

  // The value of a pixel in an engine channel, or -1 where there is none.
  int32_t value_of(uint32_t channel, const uint32_t* samples) const;

 private:
  Listing listing_ = Listing::none;
  uint32_t channels_ = 0;
  std::vector<int32_t> rank_of_[kMaxChannels];          // by sample
  std::vector<std::pair<uint64_t, uint32_t>> colours_;  // the samples of a pixel, and its number; sorted
};

// The share of pixels that are their left or upper neighbour.
double share_of_repeats(const TileSource& source);
// With fewer of them, token models are not worth trying for samples of 8 bits.
constexpr double kRepeatsForTokens = 0.15;

class TokenEncoder : public ModelEncoder {
 public:
  TokenEncoder(const TileSource& source, const l3_parallel& parallel) : source_(source), parallel_(parallel) {}

  // What follows may throw std::bad_alloc.

  // The plan that makes the smallest file, about, and how many bytes that is.
  struct Choice {
    TokenPlan plan;
    double bytes;
  };
  Choice choose(uint32_t effort, ModelUse use = ModelUse::these) const;
  // Makes a model for all the tiles by a plan. One for other images too has codes for everything.
  void fit(const TokenPlan& plan, uint32_t effort, ModelUse use = ModelUse::these);
  // Takes a model from elsewhere; a fault where it is not one for such an image.
  [[nodiscard]] Fault use(const uint8_t* model, size_t size);

  [[nodiscard]] uint32_t encode(uint64_t tile, uint8_t* out, uint32_t room, uint8_t& parameters) const override;

 private:
  // What a tile's pixels are coded as.
  struct Coded {
    std::vector<uint8_t> match_tables;  // of each pixel
    std::vector<uint8_t> tables[kMaxChannels], tokens[kMaxChannels];
    std::vector<uint16_t> raw[kMaxChannels];
    double bits = 0;
  };
  // What encoding needs of a model: as the decoder reads it, and for each table where its symbols' slots are.
  struct Codes {
    TokenTables tables;
    std::vector<SlotTable<kTokenBuckets>> symbols;
    std::vector<SlotTable<kClassBuckets>> classes;
  };

  std::vector<uint64_t> choose_tiles(uint64_t pixels) const;
  // Null where a pixel is not listed.
  std::unique_ptr<TokenTile> load(uint64_t tile, const TokenModel& model, const ValueMap& map) const;
  void begin_model(const TokenPlan& plan, TokenModel& model) const;
  void fit_to(const TokenTiles& tiles, const TokenEffort& effort, double share, TokenModel& model,
              TokenScales* scales) const;
  struct Trial {
    double bytes;        // that the image takes, about
    double still_share;  // of its blocks
  };
  Trial try_plan(const TokenPlan& plan, const std::vector<uint64_t>& seen) const;
  std::vector<TokenPlan> plans(ModelUse use) const;
  void count_all(TokenCounts& counts);
  void make_codes();
  bool code(const TokenTile& tile, Coded& coded) const;

  const TileSource source_;
  const l3_parallel parallel_;
  TokenModel model_{};
  ValueMap map_;
  TokenScales scales_[kMaxChannels];
  // The classes of each tile's blocks, channel by channel.
  std::vector<std::vector<uint8_t>> classes_;
  std::unique_ptr<Codes> codes_;
};

}  // namespace l3
