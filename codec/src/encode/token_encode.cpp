// Implements token_encode.h: chooses a variant of the token model and fits it. token_code.cpp codes tiles.
#include "encode/token_encode.h"

#include <algorithm>
#include <cstring>

#include "api/parallel.h"
#include "encode/entropy.h"
#include "encode/token_follow.h"
#include "models/model_tables.h"
#include "targets/encode_target.h"

namespace l3 {
namespace {

// If a smaller share of pixels repeats a neighbour, matching is not tried.
constexpr double kMinRepeats = 0.08;
// Still blocks decode several times faster than others, and hardly change the size of a file. A model has them if at
// least this share of the blocks is still.
constexpr double kMinStill = 0.05;
// What is slow to decode must be smaller: by a factor, and by a byte for so many pixels.
struct Price {
  double factor, pixels;

  double of(double bytes, const TileSource& source) const {
    return factor * bytes + static_cast<double>(source.pixels()) / pixels;
  }
};
// Tiles whose pixels follow others take two to four times as long to decode.
constexpr Price kPriceOfFollow{1.03, 2048}, kLowPriceOfFollow{1.005, 8192};
// For efforts that compare only estimates, and for images of more than 8 bits, which are no screens.
constexpr Price kHighPriceOfFollow{1.15, 2048};
// The numbers of several channels take 1.3 to 1.7 times as long as literals of a list of colours.
constexpr Price kPriceOfNumbers{1.13, 4096};
// In tiles of a single lane, those of one channel take twice as long.
constexpr Price kPriceOfNumbersOfOne{1.03, 65536};
// From this effort on, bytes count more: following has the low price, and numbers have none.
constexpr uint32_t kEffortOfLowPrice = 6;
// If an estimate is smaller by this factor, models need not be compared.
constexpr double kClearlyLess = 0.8;
// Plans of the other kind are not tried if they are larger than the best one by this factor.
constexpr double kMaxOfOther = 1.6;
// The same for plans without matches, after those with matches were tried on tiles. Nor are they tried if a larger
// share of the blocks would be still: that is quicker to decode.
constexpr double kMaxWithoutMatches = 1.25, kMaxStillWithoutMatches = 0.3;
// Such a tile has a fixed number of lanes. Other tiles have about one for this many bytes, and each takes some bytes.
constexpr double kBytesForLane = 120, kBytesOfLane = 3;
// The size of the model counts if a file is estimated to have fewer bytes than this.
constexpr double kBytesOfSmall = 16384;
// What following and still blocks bring is tried on whole tiles of at least this many pixels.
constexpr uint64_t kPixelsOfTiles = uint64_t{1} << 20;
// If a smaller share of pixels repeats a neighbour, as in photographs, pixels seldom follow others, and tiles take long
// to try. There, pieces from all over the image must do. Samples of more than 8 bits, and images of at most so many
// pixels, are still tried on tiles, of so many pixels.
constexpr double kMinRepeatsOfTiles = 0.5;
constexpr uint64_t kMaxPixelsOfSmall = uint64_t{1} << 17, kPixelsOfFewTiles = uint64_t{1} << 18;
// Smooth photographs have more such pixels, up to this share. They are told apart by the pixels that repeat no
// neighbour: so few of them follow others.
constexpr double kMaxRepeatsOfPhotographs = 0.65, kMaxFollowingOfPhotographs = 0.1;
// Plans are compared on at least one of this many pixels.
constexpr uint64_t kPixelsOfTrial = 64;
// Estimates may be wrong by this factor.
constexpr double kClose = 1.2;
// A fit looks at more than fit_pixels, if many of them repeat others, as long as tiles take no more memory than this.
constexpr uint64_t kMaxFitBytes = uint64_t{1} << 27;
// Symbols of an image are kept between counting and encoding if they take no more memory than this.
constexpr uint64_t kMaxKeptBytes = uint64_t{1} << 28;

// What is spent on a trial: an estimate, or a model.
constexpr TokenEffort kEstimate{1, 1, 0, 0, 0, 0, 0, 0, 0}, kTrial{8, 3, 0, 3, 24, 2, 0, 0, 0};

uint32_t depth_of(size_t count) {
  uint32_t depth = 1;
  while ((count - 1) >> depth != 0) ++depth;
  return depth;
}

// Restores a model, as far as prediction needs it, from the decoder's form.
TokenModel model_of(const TokenTables& tables) {
  TokenModel model{};
  model.channels = tables.channels;
  model.bits = tables.bits;
  model.engine_channels = tables.engine_channels;
  model.match = tables.match;
  model.literal = tables.literal;
  model.hole = tables.hole;
  model.still = tables.still;
  model.follow = tables.follow;
  model.rows = tables.rows;
  std::memcpy(model.still_frequency, tables.still_frequency, sizeof(model.still_frequency));
  model.hole_value = tables.hole_value;
  model.listing = tables.listing;
  const uint32_t lists = tables.listing == Listing::ranks ? tables.channels : 1;
  for (uint32_t c = 0; c < lists && tables.listing != Listing::none; ++c) {
    const uint32_t each = tables.listing == Listing::colours ? tables.channels : 1;
    const uint16_t* first = tables.values + tables.first_value[c];
    model.values[c].assign(first, first + size_t{tables.value_count[c]} * each);
  }
  for (uint32_t c = 0; c < tables.engine_channels; ++c) {
    model.depth[c] = tables.depth[c];
    model.classes[c] = tables.classes[c];
    for (uint32_t k = 0; k < tables.classes[c]; ++k) {
      for (uint32_t tap = 0; tap < kMaxTaps; ++tap) {
        const uint32_t word = tables.weights[c][k][tap / kTapsOfWord];
        model.weights[c][k].of[tap] = static_cast<int8_t>(word >> (8 * (tap % kTapsOfWord)));
      }
    }
    const auto term = [&](uint32_t word, uint32_t byte) {
      return static_cast<uint8_t>(tables.activity[c][word] >> (8 * byte));
    };
    const uint8_t terms[kActivityTerms] = {term(0, 0), term(0, 1), term(0, 2), term(0, 3), term(1, 0), term(1, 1),
                                           term(2, 0), term(2, 1), term(2, 2), term(1, 2), term(1, 3)};
    std::memcpy(model.activity[c], terms, sizeof(terms));
    const uint8_t* const rows = tables.pattern_row[c];
    const uint32_t sign_groups = *std::max_element(rows, rows + kSignPatterns) + 1u;
    for (uint32_t i = 0; i < kSignPatterns; ++i) model.sign_group[c][i] = rows[pattern_in_order(i)];
    for (uint32_t i = 0; i < kZones; ++i) {
      model.zone_group[c][i] = static_cast<uint8_t>(tables.zone_row[c][i] / sign_groups);
    }
  }
  return model;
}

// About the bytes of the values that a model lists.
size_t listed_bytes(const TokenModel& model) {
  size_t bits = 0;
  for (const auto& list : model.values) bits += list.size() * (model.listing == Listing::colours ? model.bits : 3);
  return bits / 8;
}

// How many pixels to look at, if `pixels` are enough of an image without repeats. Pixels that repeat others are quick
// to look at and say little.
uint64_t pixels_for(uint64_t pixels, double repeats) {
  return static_cast<uint64_t>(static_cast<double>(pixels) / std::clamp(1 - repeats, 1.0 / 16, 1.0));
}

}  // namespace

Fault TokenEncoder::Codes::read(std::span<const uint8_t> bytes, const TileSource& source) {
  const Fault fault = TokenKind::read(bytes.data(), bytes.size(), source.channels(), source.bits(), tables);
  if (fault.reason != Reason::none) return fault;
  model = model_of(tables);
  const auto itself = [](uint32_t meaning) { return meaning; };
  symbols.resize(tables.table_count);
  classes.resize(tables.class_table_count);
  for (uint32_t t = 0; t < tables.table_count; ++t) {
    symbols[t].list(tables.buckets + t * kTokenBuckets, kTokenBuckets, itself);
  }
  for (uint32_t t = 0; t < tables.class_table_count; ++t) {
    classes[t].list(tables.class_buckets + t * kClassBuckets, kClassBuckets, itself);
  }
  return {};
}

TokenEncoder::TokenEncoder(const TileSource& source, const l3_parallel& parallel)
    : source_(source), parallel_(parallel), kernels_(encode_target()->tokens) {}

void TokenEncoder::find_symbols(const TokenTile& tile, const TokenModel& model) const {
  if (!model.match) return;
  kernels_.find_matches(tile.planes(), model.still, model.rows);
  if (model.follow) find_follows(tile.planes());
}

void TokenEncoder::find_symbols(const TokenTiles& tiles, const TokenModel& model) const {
  for (const auto& tile : tiles) find_symbols(*tile, model);
}

TokenTiles TokenEncoder::load_all(const TileSource& source, const TokenModel& model, const ValueMap& map) {
  TokenTiles tiles;
  for (uint64_t tile = 0; tile < source.tile_count(); ++tile) tiles.push_back(map.load(source, tile, model));
  return tiles;
}

bool TokenEncoder::read_tile(uint64_t tile, TokenSymbols& symbols) const {
  const auto loaded = map_.load(source_, tile, model_);
  if (loaded == nullptr) return false;
  find_symbols(*loaded, model_);
  for (uint32_t c = 0; c < model_.engine_channels && !model_.literal; ++c) {
    choose_tile_classes(loaded->planes(), kernels_, c, settle_rounds_, model_, scales_[c]);
  }
  symbols = read_symbols(*loaded, kernels_, model_);
  return true;
}

TokenModel TokenEncoder::begin_model(const TileSource& source, const TokenPlan& plan, const Listings& listings) {
  TokenModel model{};
  model.channels = source.channels();
  model.bits = source.bits();
  model.listing = plan.listing;
  model.engine_channels = plan.listing == Listing::colours ? 1 : model.channels;
  model.match = plan.match;
  model.literal = plan.literal;
  model.still = plan.still;
  model.follow = plan.follow;
  for (uint32_t c = 0; c < kMaxChannels; ++c) {
    model.depth[c] = model.bits;
    model.classes[c] = 1;
  }
  for (uint32_t c = 0; c < model.channels && plan.listing == Listing::ranks; ++c) {
    model.values[c] = listings.ranks[c];
    model.depth[c] = depth_of(model.values[c].size());
  }
  if (plan.listing == Listing::colours) {
    for (const Colour& colour : listings.colours) {
      for (uint32_t c = 0; c < model.channels; ++c) {
        model.values[0].push_back(static_cast<uint16_t>(colour.samples >> (16 * c)));
      }
    }
    model.depth[0] = depth_of(listings.colours.size());
  }
  if (plan.hole >= 0) {
    const int32_t value = ValueMap(model).value_of(static_cast<uint32_t>(plan.hole));
    model.hole = value >= 0;
    model.hole_value = static_cast<uint32_t>(std::max(value, 0));
  }
  return model;
}

void TokenEncoder::fit_to(const TokenTiles& tiles, const TokenEffort& effort, double share, TokenModel& model,
                          TokenScales* scales) const {
  if (model.literal) return;
  for (uint32_t c = 0; c < model.engine_channels; ++c) {
    fit_token_channel(tiles, kernels_, c, effort, model, scales[c]);
    if (effort.group_octaves > 0) fit_token_groups(tiles, kernels_, c, share, effort, model);
  }
}

TokenEncoder::Trial TokenEncoder::try_plan(const TokenPlan& plan, const TileSource& sample, const Listings& listings,
                                           const TokenEffort& effort) const {
  const TokenModel model = begin_model(source_, plan, listings);
  const TokenTiles tiles = load_all(sample, model, ValueMap(model));
  find_symbols(tiles, model);
  return try_plan(plan, tiles, listings, effort);
}

TokenEncoder::Trial TokenEncoder::try_plan(const TokenPlan& plan, const TokenTiles& sample, const Listings& listings,
                                           const TokenEffort& effort) const {
  TokenModel model = begin_model(source_, plan, listings);
  uint64_t blocks = 0, still = 0;
  for (const auto& tile : sample) {
    const TokenPlanes& planes = tile->planes();
    blocks += planes.block_count();
    for (uint32_t b = 0; b < planes.block_count(); ++b) still += planes.still[b];
  }
  const double share = listings.share_of_sample;
  TokenScales scales[kMaxChannels];
  fit_to(sample, effort, share, model, scales);
  TokenCounts counts(model);
  for (const auto& tile : sample) {
    const TokenPlanes& planes = tile->planes();
    counts.add(read_symbols(*tile, kernels_, model), planes.width, planes.height);
  }
  Trial trial{plan, 0, static_cast<double>(still) / static_cast<double>(blocks)};
  if (effort.tables == 0) {
    trial.bytes = counts.estimate(share) / 8 + static_cast<double>(listed_bytes(model));
  } else {
    fit_token_tables(counts, effort, model);
    trial.bytes = static_cast<double>(write_token_model(model).size()) + counts.bits(model) / 8 / share;
  }
  if (plan.follow) trial.bytes += bytes_of_more_lanes(trial.bytes);
  return trial;
}

// What share of the image's content is in a sample.
double TokenEncoder::share_of(const TileSource& sample, const Listings& listings) const {
  return content_of(share_of_repeats(sample), sample.pixels()) / content_of(listings.repeats, source_.pixels());
}

void TokenEncoder::insert(const Trial& trial, std::vector<Trial>& trials) {
  const auto is_less = [](const Trial& a, const Trial& b) { return a.bytes < b.bytes; };
  trials.insert(std::upper_bound(trials.begin(), trials.end(), trial, is_less), trial);
}

// About how many bytes the lanes of tiles that follow take more than those of other tiles, if all tiles take `bytes`.
double TokenEncoder::bytes_of_more_lanes(double bytes) const {
  const TileShape shape = source_.shape(0);
  const auto tiles = static_cast<double>(source_.tile_count());
  const double lanes = 1u << log_follow_lanes(shape.width, shape.height);
  return tiles * kBytesOfLane * std::max(0.0, lanes - bytes / tiles / kBytesForLane);
}

// Finds the best plan of each kind: with literals, without, and without matches. Where estimates are close, models say
// which is better.
std::vector<TokenEncoder::Trial> TokenEncoder::best_of_kinds(const std::vector<Trial>& trials, const TileSource& sample,
                                                             const Listings& listings, uint32_t models) const {
  constexpr struct { bool literal, match; } kKinds[] = {{true, true}, {false, true}, {false, false}};
  std::vector<Trial> kinds;
  for (const auto& kind : kKinds) {
    std::vector<Trial> close;
    for (const Trial& trial : trials) {
      const double most = close.empty() ? kMaxOfOther * trials.front().bytes : kClose * close.front().bytes;
      const bool suits = trial.plan.literal == kind.literal && trial.plan.match == kind.match;
      if (suits && trial.bytes <= most) close.push_back(trial);
    }
    if (close.empty()) continue;
    const size_t count = std::min<size_t>(close.size(), models);
    size_t best = 0;
    double bytes = 1e300;
    for (size_t i = 0; i < count && count > 1; ++i) {
      const Trial trial = try_plan(close[i].plan, sample, listings, kTrial);
      if (trial.bytes >= bytes) continue;
      bytes = trial.bytes;
      best = i;
    }
    kinds.push_back(close[best]);
  }
  return kinds;
}

// Tries a plan, and whether its pixels should follow others if they may. With models, the bytes are those of a model if
// others are to be compared, or if estimates do not say enough.
TokenEncoder::Tried TokenEncoder::try_kind(TokenPlan plan, const TileSource& sample, const Listings& listings,
                                           bool has_others, bool may_follow, uint32_t effort) const {
  const bool with_models = token_effort_of(effort).trials > 0;
  plan.still = plan.match;
  TokenModel model = begin_model(source_, plan, listings);
  const TokenTiles tiles = load_all(sample, model, ValueMap(model));
  const auto with_model = [&](const Trial& trial) { return try_plan(trial.plan, tiles, listings, kTrial).bytes; };
  find_symbols(tiles, model);
  Tried plain{try_plan(plan, tiles, listings, kEstimate), 0};
  plain.bytes = plain.trial.bytes;
  if (!plan.match || !may_follow) {
    if (with_models && has_others) plain.bytes = with_model(plain.trial);
    return plain;
  }
  model.follow = plan.follow = true;
  find_symbols(tiles, model);
  Tried follows{try_plan(plan, tiles, listings, kEstimate), 0};
  follows.bytes = follows.trial.bytes;
  const Price price = !with_models || source_.bits() > 8 ? kHighPriceOfFollow
                      : effort >= kEffortOfLowPrice      ? kLowPriceOfFollow
                                                         : kPriceOfFollow;
  if (with_models) {
    const bool is_clear =
        follows.bytes > kBytesOfSmall && price.of(follows.bytes, source_) < kClearlyLess * plain.bytes;
    if (has_others || !is_clear) follows.bytes = with_model(follows.trial);
    if (is_clear) return follows;
    model.follow = false;
    find_symbols(tiles, model);
    plain.bytes = with_model(plain.trial);
  }
  return price.of(follows.bytes, source_) < plain.bytes ? follows : plain;
}

// Tries the plans that may win, each with a simple model. Returns the trials, the best one first.
std::vector<TokenEncoder::Trial> TokenEncoder::try_plans(ModelUse use, const Listings& listings,
                                                         const TileSource& sample) const {
  std::vector<Trial> trials;
  // Tries a plan and returns the best one so far.
  const auto try_one = [&](const TokenPlan& plan) {
    insert(try_plan(plan, sample, listings, kEstimate), trials);
    return trials.front().plan;
  };
  const uint32_t channels = source_.channels();
  const std::vector<uint16_t>* const values = listings.ranks;
  // Other images have other values, so a model for them must not list any.
  const bool may_list = use == ModelUse::these;
  const ValueCounts counts(values, channels);
  const uint64_t pixels = source_.pixels();
  const bool match = listings.repeats >= kMinRepeats;
  TokenPlan best = try_one({Listing::none, match, false, -1});
  if (match && channels == 1) {
    const bool has_last = values[0].back() == (1u << source_.bits()) - 1;
    best = try_one({Listing::none, true, false, values[0].front()});
    if (has_last) best = try_one({Listing::none, true, false, values[0].back()});
  }
  if (may_list && counts.has_gaps() && counts.listed <= kMaxValues && counts.listed * 2 < pixels * channels) {
    if (best.hole >= 0) try_one({Listing::ranks, true, false, -1});
    best = try_one({Listing::ranks, match, false, best.hole});
  }
  if (match) try_one({best.listing, false, false, -1});
  if (!listings.colours.empty() && listings.colours.size() * 4 < pixels && listings.repeats > 0.3) {
    if (may_list) try_one({Listing::colours, true, true, -1});
    if (channels == 1) try_one({Listing::none, true, true, -1});
  }
  return trials;
}

// Tiles of at least this many pixels, or none to say all of them.
std::vector<SampleTile> TokenEncoder::tiles_of(uint64_t pixels) const {
  const uint64_t of_tile = source_.pixels() / source_.tile_count(), count = (pixels + of_tile - 1) / of_tile;
  if (count >= source_.tile_count()) return {};
  return pieces_of(source_, count * kMaxTileEdge * kMaxTileEdge, kMaxTileEdge);
}

// Of a tile's pixels that repeat no neighbour, the share that follows others.
double TokenEncoder::share_that_follows(TokenPlan plan, const Listings& listings) const {
  plan.follow = true;
  const TokenModel model = begin_model(source_, plan, listings);
  const std::vector<SampleTile> one = tiles_of(1);
  const TokenTiles tiles = load_all(one.empty() ? source_ : TileSource(one), model, ValueMap(model));
  find_symbols(tiles, model);
  double following = 0, others = 1;
  for (const auto& tile : tiles) {
    const TokenPlanes& planes = tile->planes();
    for (uint32_t y = 0; y < planes.height; ++y) {
      const uint8_t* const row = planes.symbols + y * planes.pitch;
      following += static_cast<double>(std::count(row, row + planes.width, kMatchFollow));
      others += static_cast<double>(std::count(row, row + planes.width, kMatchNone));
    }
  }
  return following / (following + others);
}

TokenEncoder::Choice TokenEncoder::choose(uint32_t effort, ModelUse use) const {
  Listings listings;
  listings.repeats = share_of_repeats(source_);
  if (use == ModelUse::these || source_.channels() == 1) listings.colours = colours_of(source_);
  ranks_of(source_, listings.ranks);
  const TokenEffort spent = token_effort_of(effort);
  const uint64_t pixels = pixels_for(spent.trial_pixels, listings.repeats);
  const std::vector<SampleTile> pieces = pieces_of(source_, std::max(pixels, source_.pixels() / kPixelsOfTrial));
  const TileSource sample(pieces);
  listings.share_of_sample = share_of(sample, listings);
  const std::vector<Trial> kinds = best_of_kinds(try_plans(use, listings, sample), sample, listings, spent.trials);
  if (!kinds.front().plan.match) return {kinds.front().plan, kinds.front().bytes, listings.repeats};
  const bool must_be_on_tiles = source_.bits() > 8 || source_.pixels() <= kMaxPixelsOfSmall;
  bool many_repeat = listings.repeats >= kMinRepeatsOfTiles;
  if (many_repeat && listings.repeats < kMaxRepeatsOfPhotographs && !must_be_on_tiles) {
    many_repeat = share_that_follows(kinds.front().plan, listings) > kMaxFollowingOfPhotographs;
  }
  const bool on_tiles = many_repeat || must_be_on_tiles;
  std::vector<SampleTile> tiles;
  if (on_tiles) tiles = tiles_of(many_repeat ? kPixelsOfTiles : kPixelsOfFewTiles);
  const TileSource larger = !on_tiles ? sample : tiles.empty() ? source_ : TileSource(tiles);
  if (on_tiles) listings.share_of_sample = tiles.empty() ? 1 : share_of(larger, listings);
  const bool has_single_lane =
      source_.channels() == 1 && source_.pixels() <= source_.tile_count() * kMaxPixelsOfSingleLane;
  const bool numbers_have_price = (source_.channels() > 1 || has_single_lane) && effort < kEffortOfLowPrice;
  const Price& price_of_numbers = has_single_lane ? kPriceOfNumbersOfOne : kPriceOfNumbers;
  Tried best{};
  double bytes = 0, least = 0;
  for (const Trial& kind : kinds) {
    const bool should_match =
        best.trial.still_share > kMaxStillWithoutMatches || kind.bytes > kMaxWithoutMatches * best.trial.bytes;
    if (!kind.plan.match && should_match) continue;
    const Tried tried = try_kind(kind.plan, larger, listings, kinds.size() > 1, on_tiles, effort);
    const bool has_price = numbers_have_price && !kind.plan.literal;
    const double priced = has_price ? price_of_numbers.of(tried.bytes, source_) : tried.bytes;
    if (&kind != &kinds.front() && priced >= least) continue;
    best = tried;
    least = priced;
    bytes = many_repeat ? tried.trial.bytes : kind.bytes;
  }
  TokenPlan plan = best.trial.plan;
  plan.still = best.trial.still_share >= kMinStill;
  return {plan, bytes, listings.repeats};
}

void TokenEncoder::fit(const TokenPlan& plan, uint32_t effort, ModelUse use) {
  const TokenEffort spent = token_effort_of(effort);
  Listings listings;
  if (plan.listing == Listing::colours) listings.colours = colours_of(source_);
  if (plan.listing == Listing::ranks) ranks_of(source_, listings.ranks);
  model_ = begin_model(source_, plan, listings);
  map_ = ValueMap(model_);
  settle_rounds_ = spent.settle_rounds;
  const uint64_t most = std::max(spent.fit_pixels, kMaxFitBytes / TokenTile::bytes_of_pixel(model_.engine_channels));
  const uint64_t pixels = std::min(pixels_for(spent.fit_pixels, share_of_repeats(source_)), most);
  const bool all = source_.pixels() <= pixels;
  const std::vector<SampleTile> pieces = all ? std::vector<SampleTile>() : pieces_of(source_, pixels);
  const TileSource sample = all ? source_ : TileSource(pieces);
  TokenTiles tiles;
  if (!plan.literal) tiles = load_all(sample, model_, map_);
  find_symbols(tiles, model_);
  const double share = static_cast<double>(sample.pixels()) / static_cast<double>(source_.pixels());
  fit_to(tiles, spent, share, model_, scales_);
  if (!all) tiles.clear();
  TokenCounts counts(model_);
  count_all(tiles, counts);
  fit_token_tables(counts, spent, model_);
  if (use != ModelUse::these) complete_token_model(model_);
  model_bytes_ = write_token_model(model_);
  const Fault fault = codes_.take(model_bytes_, source_, nullptr);
  if (fault.reason != Reason::none) __builtin_trap();
}

void TokenEncoder::count_all(const TokenTiles& seen, TokenCounts& counts) {
  const uint64_t count = source_.tile_count();
  const uint64_t bytes = source_.pixels() * (3 + 4 * model_.engine_channels);
  kept_.resize(bytes <= kMaxKeptBytes ? count : 0);
  const uint64_t chunks = parallel_.run == nullptr ? 1 : std::min<uint64_t>(count, 8);
  std::vector<std::unique_ptr<TokenCounts>> others(chunks);
  auto count_chunk = [&](uint64_t chunk) {
    if (chunk > 0) others[chunk] = std::make_unique<TokenCounts>(model_);
    TokenCounts& to = chunk > 0 ? *others[chunk] : counts;
    for (uint64_t tile = chunk; tile < count; tile += chunks) {
      TokenSymbols symbols;
      if (!seen.empty() && !kept_.empty()) {
        symbols = read_symbols(*seen[tile], kernels_, model_);
      } else {
        read_tile(tile, symbols);
      }
      const TileShape shape = source_.shape(tile);
      to.add(symbols, shape.width, shape.height);
      if (!kept_.empty()) kept_[tile] = std::move(symbols);
    }
  };
  run_parallel(parallel_, chunks, count_chunk);
  for (uint64_t i = 1; i < chunks; ++i) counts.add(*others[i]);
}

Fault TokenEncoder::use(std::span<const uint8_t> model, KeptCodes* kept) {
  const Fault fault = codes_.take(model, source_, kept);
  if (fault.reason != Reason::none) return fault;
  model_ = codes_->model;
  map_ = ValueMap(model_);
  // A model does not contain the expected errors. This is a good enough estimate.
  for (TokenScales& scales : scales_) scales = first_token_scales();
  return {};
}

}  // namespace l3
