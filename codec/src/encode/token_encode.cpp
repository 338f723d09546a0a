// Implements token_encode.h: chooses a variant of the token model, fits it, and codes tiles with it.
#include "encode/token_encode.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "api/parallel.h"
#include "encode/entropy.h"
#include "models/model_tables.h"

namespace l3 {
namespace {

// If a smaller share of pixels repeats a neighbour, matching is not tried.
constexpr double kMinRepeats = 0.08;
// Still blocks decode several times faster than others, so a model with them is chosen even if its trial size is
// larger by this factor. (The trial overestimates their cost.) At least kMinStill of the blocks must be still.
constexpr double kPriceOfStill = 1.15, kMinStill = 0.05;
constexpr uint64_t kTrialPixels = 1u << 18;
constexpr uint32_t kMaxColours = 8192;

uint32_t sample_at(const uint8_t* pixels, uint32_t i, bool wide) {
  return wide ? reinterpret_cast<const uint16_t*>(pixels)[i] : pixels[i];
}

// Packs all samples of a pixel into one number.
uint64_t joined(const uint32_t* samples, uint32_t channels) {
  uint64_t all = 0;
  for (uint32_t c = 0; c < channels; ++c) all |= uint64_t{samples[c]} << (16 * c);
  return all;
}

uint32_t depth_of(size_t count) {
  uint32_t depth = 1;
  while ((count - 1) >> depth != 0) ++depth;
  return depth;
}

// A large tile gets at least eight lanes: with fewer, a step takes a processor's vector unit the same time.
constexpr double kBitsOfLane = 640;
constexpr uint32_t kMinLogLanesOfLarge = 3, kLargePixels = 1u << 12;

// Calls use(samples, x, y) for each pixel of a tile.
template <class Use>
void for_pixels(const TileSource& source, uint64_t tile, const Use& use) {
  const TileShape shape = source.shape(tile);
  const TileInput input = source.input(tile);
  uint32_t samples[kMaxChannels] = {};
  for (uint32_t y = 0; y < shape.height; ++y) {
    const uint8_t* row = input.pixels + y * input.stride;
    for (uint32_t x = 0, i = 0; x < shape.width; ++x) {
      for (uint32_t c = 0; c < shape.channels; ++c, ++i) samples[c] = sample_at(row, i, shape.bits > 8);
      use(samples, x, y);
    }
  }
}

// Calls use(pixel, repeats) for each pixel of a tile. `pixel` has all its samples in one number. `repeats` says
// whether it equals its left or upper neighbour.
template <class Use>
void for_repeats(const TileSource& source, uint64_t tile, const Use& use) {
  const uint32_t channels = source.channels();
  std::vector<uint64_t> above(source.shape(tile).width, UINT64_MAX);
  uint64_t before = UINT64_MAX;
  for_pixels(source, tile, [&](const uint32_t* samples, uint32_t x, uint32_t) {
    const uint64_t pixel = joined(samples, channels);
    use(pixel, (pixel == before && x > 0) || pixel == above[x]);
    before = above[x] = pixel;
  });
}

struct Colour {
  uint64_t samples;
  uint64_t times;
};

// All colours, by how often they differ from their left and upper neighbours, most often first. Empty if there are too
// many.
std::vector<Colour> colours_of(const TileSource& source) {
  std::unordered_map<uint64_t, uint64_t> times;
  const size_t maximum = std::min(kMaxColours, kMaxValues / source.channels());
  for (uint64_t tile = 0; tile < source.tile_count(); ++tile) {
    // A pixel that repeats a neighbour is coded as a match, not by its colour's number.
    for_repeats(source, tile, [&](uint64_t pixel, bool repeats) {
      if (!repeats && times.size() <= maximum) ++times[pixel];
    });
    if (times.size() > maximum) return {};
  }
  std::vector<Colour> colours;
  for (const auto& [samples, count] : times) colours.push_back({samples, count});
  std::sort(colours.begin(), colours.end(), [](const Colour& a, const Colour& b) {
    return a.times != b.times ? a.times > b.times : a.samples < b.samples;
  });
  return colours;
}

// The values that occur in each channel, in rising order.
void ranks_of(const TileSource& source, std::vector<uint16_t>* values) {
  const uint32_t channels = source.channels();
  std::vector<uint8_t> seen(size_t{channels} << 16);
  for (uint64_t tile = 0; tile < source.tile_count(); ++tile) {
    for_pixels(source, tile, [&](const uint32_t* samples, uint32_t, uint32_t) {
      for (uint32_t c = 0; c < channels; ++c) seen[size_t{c} << 16 | samples[c]] = 1;
    });
  }
  for (uint32_t c = 0; c < channels; ++c) {
    values[c].clear();
    for (uint32_t v = 0; v < 1u << 16; ++v) {
      if (seen[size_t{c} << 16 | v] != 0) values[c].push_back(static_cast<uint16_t>(v));
    }
  }
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
  }
  return model;
}

}  // namespace

ValueMap::ValueMap(const TokenModel& model) : listing_(model.listing), channels_(model.channels) {
  if (listing_ == Listing::ranks) {
    for (uint32_t c = 0; c < channels_; ++c) {
      rank_of_[c].assign(1u << 16, -1);
      for (size_t i = 0; i < model.values[c].size(); ++i) rank_of_[c][model.values[c][i]] = static_cast<int32_t>(i);
    }
  }
  if (listing_ == Listing::colours) {
    uint32_t samples[kMaxChannels];
    for (uint32_t i = 0; i < model.values[0].size() / channels_; ++i) {
      for (uint32_t c = 0; c < channels_; ++c) samples[c] = model.values[0][size_t{i} * channels_ + c];
      colours_.emplace_back(joined(samples, channels_), i);
    }
    std::stable_sort(colours_.begin(), colours_.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  }
}

int32_t ValueMap::value_of(uint32_t channel, const uint32_t* samples) const {
  if (listing_ == Listing::none) return static_cast<int32_t>(samples[channel]);
  if (listing_ == Listing::ranks) return rank_of_[channel][samples[channel]];
  const uint64_t pixel = joined(samples, channels_);
  const auto at = std::lower_bound(colours_.begin(), colours_.end(), pixel,
                                   [](const auto& entry, uint64_t wanted) { return entry.first < wanted; });
  return at != colours_.end() && at->first == pixel ? static_cast<int32_t>(at->second) : -1;
}

double share_of_repeats(const TileSource& source) {
  uint64_t repeated = 0;
  for (uint64_t tile = 0; tile < source.tile_count(); ++tile) {
    for_repeats(source, tile, [&](uint64_t, bool repeats) { repeated += repeats; });
  }
  return static_cast<double>(repeated) / static_cast<double>(source.pixels());
}

std::unique_ptr<TokenTile> TokenEncoder::load(uint64_t tile, const TokenModel& model, const ValueMap& map) const {
  const TileShape shape = source_.shape(tile);
  auto loaded = std::make_unique<TokenTile>(shape.width, shape.height, model.engine_channels);
  bool listed = true;
  for_pixels(source_, tile, [&](const uint32_t* samples, uint32_t x, uint32_t y) {
    for (uint32_t e = 0; e < model.engine_channels; ++e) {
      const int32_t value = map.value_of(e, samples);
      listed &= value >= 0 && value >> model.depth[e] == 0;
      loaded->values[e][size_t{y} * shape.width + x] = value;
    }
  });
  if (!listed) return nullptr;
  if (model.match) loaded->find_matches(model.hole ? static_cast<int32_t>(model.hole_value) : -1, model.still);
  return loaded;
}

// Chooses tiles to fit a model to: about `maximum` pixels, and at least one tile.
std::vector<uint64_t> TokenEncoder::choose_tiles(uint64_t maximum) const {
  const uint64_t step = std::clamp<uint64_t>((source_.pixels() + maximum / 2) / maximum, 1, source_.tile_count());
  std::vector<uint64_t> seen;
  for (uint64_t tile = step / 2; tile < source_.tile_count(); tile += step) seen.push_back(tile);
  return seen;
}

void TokenEncoder::begin_model(const TokenPlan& plan, TokenModel& model) const {
  const uint32_t channels = source_.channels();
  model = TokenModel{};
  model.channels = channels;
  model.bits = source_.bits();
  model.listing = plan.listing;
  model.engine_channels = plan.listing == Listing::colours ? 1 : channels;
  model.match = plan.match;
  model.literal = plan.literal;
  model.still = plan.still;
  for (uint32_t c = 0; c < kMaxChannels; ++c) {
    model.depth[c] = source_.bits();
    model.classes[c] = 1;
  }
  if (plan.listing == Listing::ranks) {
    ranks_of(source_, model.values);
    for (uint32_t c = 0; c < channels; ++c) model.depth[c] = depth_of(model.values[c].size());
  }
  if (plan.listing == Listing::colours) {
    const std::vector<Colour> colours = colours_of(source_);
    for (const Colour& colour : colours) {
      for (uint32_t c = 0; c < channels; ++c) {
        model.values[0].push_back(static_cast<uint16_t>(colour.samples >> (16 * c)));
      }
    }
    model.depth[0] = depth_of(colours.size());
  }
  if (plan.hole >= 0) {
    const uint32_t hole = static_cast<uint32_t>(plan.hole);
    const int32_t value = ValueMap(model).value_of(0, &hole);
    model.hole = value >= 0;
    model.hole_value = static_cast<uint32_t>(std::max(value, 0));
  }
}

void TokenEncoder::fit_to(const TokenTiles& tiles, const TokenEffort& effort, double share, TokenModel& model,
                          TokenScales* scales) const {
  if (model.literal) return;
  for (uint32_t c = 0; c < model.engine_channels; ++c) {
    fit_token_channel(tiles, c, effort, model, scales[c]);
    fit_token_groups(tiles, c, share, model);
  }
}

TokenEncoder::Trial TokenEncoder::try_plan(const TokenPlan& plan, const std::vector<uint64_t>& seen) const {
  TokenModel model;
  begin_model(plan, model);
  const ValueMap map(model);
  TokenTiles tiles;
  uint64_t pixels = 0, blocks = 0, still = 0;
  for (const uint64_t tile : seen) {
    tiles.push_back(load(tile, model, map));
    pixels += tiles.back()->pixels();
    blocks += tiles.back()->block_count();
    for (const uint8_t of_block : tiles.back()->still) still += of_block;
  }
  const double share = static_cast<double>(pixels) / static_cast<double>(source_.pixels());
  const TokenEffort effort{4, 2, 24, 2, kTrialPixels};
  TokenScales scales[kMaxChannels];
  fit_to(tiles, effort, share, model, scales);
  TokenCounts counts(model);
  for (const auto& tile : tiles) counts.add(*tile, model);
  fit_token_tables(counts, effort, model);
  return {static_cast<double>(write_token_model(model).size()) + counts.bits(model) / 8 / share,
          static_cast<double>(still) / static_cast<double>(blocks)};
}

std::vector<TokenPlan> TokenEncoder::plans(ModelUse use) const {
  const uint32_t channels = source_.channels();
  const double repeats = share_of_repeats(source_);
  // Other images have other values, so a model for them must not list any.
  const bool may_list = use == ModelUse::these;
  const std::vector<Colour> colours = may_list || channels == 1 ? colours_of(source_) : std::vector<Colour>();
  std::vector<uint16_t> values[kMaxChannels];
  ranks_of(source_, values);
  size_t listed = 0, range = 0;
  for (uint32_t c = 0; c < channels; ++c) {
    listed += values[c].size();
    range += size_t{values[c].back()} - values[c].front() + 1;
  }
  const uint64_t pixels = source_.pixels();
  const bool ranks = may_list && listed <= kMaxValues && listed * 5 < range * 4 && listed * 2 < pixels * channels;
  std::vector<TokenPlan> all;
  for (const Listing listing : {Listing::none, Listing::ranks}) {
    if (listing == Listing::ranks && !ranks) continue;
    all.push_back({listing, false, false, -1});
    if (repeats < kMinRepeats) continue;
    all.push_back({listing, true, false, -1});
    if (channels > 1) continue;
    all.push_back({listing, true, false, values[0].front()});
    if (values[0].back() == (1u << source_.bits()) - 1) all.push_back({listing, true, false, values[0].back()});
  }
  if (!colours.empty() && colours.size() * 4 < pixels && repeats > 0.3) {
    if (may_list) all.push_back({Listing::colours, true, true, -1});
    if (channels == 1) all.push_back({Listing::none, true, true, -1});
  }
  return all;
}

TokenEncoder::Choice TokenEncoder::choose(uint32_t effort, ModelUse use) const {
  const std::vector<uint64_t> seen = choose_tiles(effort < 4 ? kTrialPixels / 4 : kTrialPixels);
  Choice best{{}, 1e300};
  for (const TokenPlan& plan : plans(use)) {
    const double bytes = try_plan(plan, seen).bytes;
    if (bytes < best.bytes) best = {plan, bytes};
  }
  if (best.plan.match) {
    TokenPlan plan = best.plan;
    plan.still = true;
    const Trial trial = try_plan(plan, seen);
    if (trial.still_share >= kMinStill && trial.bytes < kPriceOfStill * best.bytes) best = {plan, trial.bytes};
  }
  return best;
}

void TokenEncoder::fit(const TokenPlan& plan, uint32_t effort, ModelUse use) {
  const TokenEffort spent = token_effort_of(effort);
  begin_model(plan, model_);
  map_ = ValueMap(model_);
  {
    TokenTiles tiles;
    uint64_t pixels = 0;
    for (const uint64_t tile : choose_tiles(spent.fit_pixels)) {
      tiles.push_back(load(tile, model_, map_));
      pixels += tiles.back()->pixels();
    }
    const double share = static_cast<double>(pixels) / static_cast<double>(source_.pixels());
    fit_to(tiles, spent, share, model_, scales_);
  }
  TokenCounts counts(model_);
  count_all(counts);
  fit_token_tables(counts, spent, model_);
  if (use != ModelUse::these) complete_token_model(model_);
  model_bytes_ = write_token_model(model_);
  codes_ = std::make_unique<Codes>();
  const Fault fault =
      read_token_model(model_bytes_.data(), model_bytes_.size(), model_.channels, model_.bits, codes_->tables);
  if (fault.reason != Reason::none) __builtin_trap();
  make_codes();
}

void TokenEncoder::count_all(TokenCounts& counts) {
  const uint64_t tiles = source_.tile_count();
  classes_.resize(tiles);
  const uint64_t chunks = parallel_.run == nullptr ? 1 : std::min<uint64_t>(tiles, 8);
  std::vector<std::unique_ptr<TokenCounts>> others(chunks);
  auto count_chunk = [&](uint64_t chunk) {
    if (chunk > 0) others[chunk] = std::make_unique<TokenCounts>(model_);
    TokenCounts& to = chunk > 0 ? *others[chunk] : counts;
    for (uint64_t tile = chunk; tile < tiles; tile += chunks) {
      const auto loaded = load(tile, model_, map_);
      for (uint32_t c = 0; c < model_.engine_channels && !model_.literal; ++c) {
        choose_tile_classes(*loaded, c, model_, scales_[c]);
        classes_[tile].insert(classes_[tile].end(), loaded->classes[c].begin(), loaded->classes[c].end());
      }
      to.add(*loaded, model_);
    }
  };
  run_parallel(parallel_, chunks, count_chunk);
  for (uint64_t i = 1; i < chunks; ++i) counts.add(*others[i]);
}

Fault TokenEncoder::use(const uint8_t* model, size_t size) {
  codes_ = std::make_unique<Codes>();
  const Fault fault = read_token_model(model, size, source_.channels(), source_.bits(), codes_->tables);
  if (fault.reason != Reason::none) return fault;
  model_bytes_.assign(model, model + size);
  model_ = model_of(codes_->tables);
  map_ = ValueMap(model_);
  // A model does not contain the expected errors. This is a good enough estimate.
  for (TokenScales& scales : scales_) scales = first_token_scales();
  make_codes();
  return {};
}

void TokenEncoder::make_codes() {
  const TokenTables& tables = codes_->tables;
  const auto itself = [](uint32_t meaning) { return meaning; };
  codes_->symbols.resize(tables.table_count);
  codes_->classes.resize(tables.class_table_count);
  for (uint32_t t = 0; t < tables.table_count; ++t) {
    codes_->symbols[t].list(tables.buckets + t * kTokenBuckets, kTokenBuckets, itself);
  }
  for (uint32_t t = 0; t < tables.class_table_count; ++t) {
    codes_->classes[t].list(tables.class_buckets + t * kClassBuckets, kClassBuckets, itself);
  }
}

// Finds the symbols of a predicted tile and their tables. Returns false if a symbol has no code.
bool TokenEncoder::code(const TokenTile& tile, Coded& coded) const {
  const TokenTables& tables = codes_->tables;
  const size_t pixels = tile.pixels();
  uint64_t cost = 0;  // approximate, in 16ths of a bit
  bool sound = true;
  const auto add = [&](uint32_t table, uint32_t symbol) {
    const uint32_t of_symbol = cost_of_frequency(codes_->symbols[table].codes[symbol].frequency);
    sound &= of_symbol != 0 || codes_->symbols[table].codes[symbol].frequency != 0;
    cost += of_symbol;
  };
  const int32_t hole = model_.hole ? static_cast<int32_t>(model_.hole_value) : -1;
  ContextFinder finder(tile, hole);
  if (tables.match) {
    coded.match_tables.resize(pixels);
    std::vector<uint8_t> octaves(tile.width);
    for (uint32_t y = 0; y < tile.height; ++y) {
      if (tables.match_by_activity && !tables.literal) finder.find_octaves(y, model_.activity[0], octaves.data());
      for (uint32_t x = 0; x < tile.width; ++x) {
        const size_t i = size_t{y} * tile.width + x;
        if (tile.symbols[i] == kNoSymbol) continue;
        coded.match_tables[i] = tables.match_table[tables.match_row[tile.equalities[i]] * kMatchOctaves + octaves[x]];
        add(coded.match_tables[i], tile.symbols[i]);
      }
    }
  }
  ContextRow row(tile.width);
  NeighbourRows neighbours(tile.width);
  for (uint32_t c = 0; c < tile.channels; ++c) {
    coded.tables[c].resize(pixels);
    coded.tokens[c].resize(pixels);
    coded.raw[c].resize(pixels);
    for (uint32_t y = 0; y < tile.height; ++y) {
      if (tables.literal) {
        neighbours.find(tile.values[c].data(), y);
      } else {
        finder.find(c, y, model_.activity[c], tables.depth[c], row);
      }
      for (uint32_t x = 0; x < tile.width; ++x) {
        const size_t i = size_t{y} * tile.width + x;
        if (tile.symbols[i] != kMatchNone) continue;
        uint32_t number, table;
        if (tables.literal) {
          number = static_cast<uint32_t>(tile.values[c][i]);
          table = tables.literal_table[std::min(static_cast<uint32_t>(neighbours[kTokenW][x]), kLiteralContexts - 1)];
        } else {
          number = number_of(tile.values[c][i], tile.predicted[c][i], tables.depth[c]);
          const uint32_t of_row = tables.grouped[c] ? tables.zone_row[c][row.zone[x]] +
                                                          tables.pattern_row[c][pattern_in_order(row.pattern[x])]
                                                    : 0;
          table = tables.table_of[c][of_row * kTokenLevels + row.level[x]];
        }
        const uint32_t token = token_of(number);
        coded.tables[c][i] = static_cast<uint8_t>(table);
        coded.tokens[c][i] = static_cast<uint8_t>(token);
        coded.raw[c][i] = static_cast<uint16_t>(number - first_of(token));
        add(table, token);
        cost += 16 * raw_bits_of(token);
      }
    }
  }
  coded.bits = static_cast<double>(cost) / 16;
  return sound;
}

uint32_t TokenEncoder::encode(uint64_t number, uint8_t* out, uint32_t room, uint8_t& parameters) const {
  const TokenTables& tables = codes_->tables;
  const auto tile = load(number, model_, map_);
  if (tile == nullptr) return 0;
  const uint32_t blocks = tile->block_count();
  for (uint32_t c = 0; c < tile->channels && !tables.literal; ++c) {
    if (classes_.empty()) {
      choose_tile_classes(*tile, c, model_, scales_[c]);
    } else {
      const uint8_t* from = classes_[number].data() + size_t{c} * blocks;
      tile->classes[c].assign(from, from + blocks);
      predict_tile(*tile, c, model_.weights[c], model_.depth[c],
                   model_.hole ? static_cast<int32_t>(model_.hole_value) : -1);
    }
  }
  Coded coded;
  if (!code(*tile, coded)) return 0;

  const uint32_t log_lanes = log_lanes_for(tile->width, tile->height, coded.bits, kBitsOfLane,
                                           tile->pixels() >= kLargePixels ? kMinLogLanesOfLarge : 0);
  const uint32_t lanes = 1u << log_lanes;
  // A symbol takes one word at most, its raw bits another, and the coder reads one word ahead.
  const size_t room_for_words = tile->pixels() * (1 + 2 * tile->channels) + size_t{blocks} * (1 + tile->channels) + 1;
  const auto words = std::make_unique_for_overwrite<uint16_t[]>(room_for_words);
  ReverseCoder coder(lanes, words.get() + room_for_words);
  const auto is_escaped = [&](size_t at) { return tile->symbols[at] == kMatchNone; };
  const auto is_matched = [&](size_t at) { return tables.match && tile->symbols[at] != kNoSymbol; };
  const auto cost_of = [&](size_t at) {
    const auto cost = [&](uint32_t table, uint32_t symbol) {
      return uint32_t{cost_of_frequency(codes_->symbols[table].codes[symbol].frequency)};
    };
    uint32_t of_pixel = is_matched(at) ? cost(coded.match_tables[at], tile->symbols[at]) : 0;
    for (uint32_t c = 0; c < tile->channels && is_escaped(at); ++c) {
      of_pixel += cost(coded.tables[c][at], coded.tokens[c][at]) + 16 * raw_bits_of(coded.tokens[c][at]);
    }
    return of_pixel;
  };
  parameters = coder.begin(tile->width, tile->height, log_lanes, cost_of, [&](EndingState& state, size_t at) {
    for (uint32_t c = is_escaped(at) ? tile->channels : 0; c-- > 0;) {
      const uint32_t raw_bits = raw_bits_of(coded.tokens[c][at]);
      if (raw_bits > 0) state.put_raw(coded.raw[c][at], raw_bits);
      state.put(codes_->symbols[coded.tables[c][at]], coded.tokens[c][at]);
    }
    if (is_matched(at)) state.put(codes_->symbols[coded.match_tables[at]], tile->symbols[at]);
  });
  const Ending ending = ending_of(parameters, tile->width, tile->height);
  walk_backwards(tile->width, tile->height, lanes, ending,
                 [&](uint32_t count, const uint8_t* lane_of, const size_t* at) {
                   for (uint32_t c = tile->channels; c-- > 0;) {
                     for (uint32_t i = count; i-- > 0;) {
                       if (!is_escaped(at[i])) continue;
                       const uint32_t raw_bits = raw_bits_of(coded.tokens[c][at[i]]);
                       if (raw_bits > 0) coder.put_raw(lane_of[i], coded.raw[c][at[i]], raw_bits);
                     }
                     for (uint32_t i = count; i-- > 0;) {
                       if (!is_escaped(at[i])) continue;
                       coder.put(lane_of[i], codes_->symbols[coded.tables[c][at[i]]], coded.tokens[c][at[i]]);
                     }
                   }
                   for (uint32_t i = count; i-- > 0;) {
                     if (!is_matched(at[i])) continue;
                     coder.put(lane_of[i], codes_->symbols[coded.match_tables[at[i]]], tile->symbols[at[i]]);
                   }
                 });
  for (uint32_t first = (blocks - 1) / lanes * lanes;; first -= lanes) {
    for (uint32_t c = tile->channels; c-- > 0;) {
      if (tables.classes[c] == 1) continue;
      for (uint32_t lane = smaller(lanes, blocks - first); lane-- > 0;) {
        if (tile->still[first + lane] != 0) continue;
        const uint32_t own = tile->classes[c][first + lane];
        const uint32_t before = c == 0 ? 0 : tile->classes[c - 1][first + lane];
        const SlotTable<kClassBuckets>& table = codes_->classes[tables.class_table_of[c][before]];
        if (table.codes[own].frequency == 0) return 0;
        coder.put(lane, table, own);
      }
    }
    for (uint32_t lane = tables.still ? smaller(lanes, blocks - first) : 0; lane-- > 0;) {
      const bool above = lane < tile->blocks_across && tile->still_above(first + lane);  // decoded in an earlier round
      coder.put_binary(lane, tables.still_frequency[above], tile->still[first + lane] != 0);
    }
    if (first == 0) break;
  }

  return coder.write(out, room);
}

}  // namespace l3
