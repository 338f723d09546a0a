// Implements dense_encode.h: fits a model in rounds and chooses classes. dense_code.cpp codes tiles.
#include "encode/dense_encode.h"

#include <algorithm>
#include <cstring>

#include "api/parallel.h"
#include "container/logarithm.h"
#include "encode/dense_refine.h"
#include "encode/token_values.h"
#include "models/model_tables.h"

namespace l3 {
namespace {

// Symbols of an image are kept between counting and encoding if they take no more memory than this.
constexpr uint64_t kMaxKeptBytes = uint64_t{1} << 28;
// From this effort on, classes of a known model are chosen by code lengths. Estimates are five times as fast, and the
// files 0.5 % larger.
constexpr uint32_t kMinEffortToRefine = 4;

using Tiles = std::vector<std::unique_ptr<DenseTile>>;

template <class Body>
void for_channels_of(const Tiles& tiles, const Body& body) {
  for (const auto& tile : tiles) {
    for (uint32_t c = 0; c < tile->planes().channels; ++c) body(tile->planes(), c);
  }
}

std::vector<uint8_t> classes_of(const Tiles& tiles) {
  std::vector<uint8_t> classes;
  for_channels_of(tiles, [&](const DensePlanes& p, uint32_t c) {
    classes.insert(classes.end(), p.classes[c], p.classes[c] + p.block_count());
  });
  return classes;
}

void set_classes(const std::vector<uint8_t>& classes, const Tiles& tiles) {
  const uint8_t* from = classes.data();
  for_channels_of(tiles, [&](const DensePlanes& p, uint32_t c) {
    std::memcpy(p.classes[c], from, p.block_count());
    from += p.block_count();
  });
}

// The bits that the classes of the tiles take, coded with their own frequencies.
double class_bits(const Tiles& tiles) {
  uint32_t uses[kMaxChannels][kMaxClasses] = {};
  double blocks = 0, bits = 0;
  for_channels_of(tiles, [&](const DensePlanes& p, uint32_t c) {
    for (uint32_t b = 0; b < p.block_count(); ++b) ++uses[c][p.classes[c][b]];
    blocks += c == 0 ? p.block_count() : 0;
  });
  for (const auto& of_channel : uses) {
    for (const uint32_t times : of_channel) bits -= times == 0 ? 0 : times * logarithm(times / blocks);
  }
  return bits;
}

}  // namespace

std::unique_ptr<DenseTile> DenseEncoder::load(uint64_t tile) const {
  return std::make_unique<DenseTile>(source_.shape(tile), source_.input(tile));
}

void DenseEncoder::load_sample(uint64_t pixels) {
  tiles_.clear();
  sees_all_ = pixels * 2 > source_.pixels();
  if (sees_all_) {
    for (uint64_t tile = 0; tile < source_.tile_count(); ++tile) tiles_.push_back(load(tile));
  } else {
    const std::vector<SampleTile> pieces = pieces_of(source_, pixels);
    for (const SampleTile& piece : pieces) tiles_.push_back(std::make_unique<DenseTile>(piece.shape, piece.input()));
    const TileSource sample(pieces);
    content_ = content_of(share_of_repeats(sample), sample.pixels());
  }
}

void DenseEncoder::fit_sample(uint32_t effort, ModelUse use) {
  effort_ = effort_of(effort);
  const uint64_t pixels = source_.pixels();
  load_sample(effort_.fit_pixels);
  fit_predictors(tiles_, source_.channels(), effort_, false, kernels_, parallel_, fitted_, scales_, class_costs_);
  if (effort_.more_rounds > 0 && !sees_all_) {
    load_sample(effort_.more_pixels);
    auto start = [&](uint64_t tile) { start_classes(*tiles_[tile]); };
    run_parallel(parallel_, tiles_.size(), start);
    fit_predictors(tiles_, source_.channels(), effort_, true, kernels_, parallel_, fitted_, scales_, class_costs_);
  }
  uint64_t seen_samples = 0;
  for (const auto& tile : tiles_) seen_samples += tile->samples();
  const double share = static_cast<double>(seen_samples) / static_cast<double>(pixels) / sample_weight(use);
  fit_groups(tiles_, kernels_, parallel_, share, effort_.group_levels, fitted_);
  if (effort_.refine_rounds > 0) refine_in_rounds(share);
}

double DenseEncoder::estimate(double repeats) const {
  constexpr double kBitsOfRows = 4000, kBitsOfClass = 120;
  SymbolCounts counts(fitted_);
  count_tiles(counts);
  DenseModel model = fitted_;
  const FittedBits bits = fit_tables(counts, effort_.tables, effort_.table_rounds, model);
  double of_classes = 0;
  for (uint32_t c = 0; c < model.channels; ++c) of_classes += kBitsOfClass * model.classes[c];
  const double share = sees_all_ ? 1 : content_ / content_of(repeats, source_.pixels());
  return ((bits.samples + class_bits(tiles_)) / share + bits.tables + kBitsOfRows + of_classes) / 8;
}

void DenseEncoder::fit_rest(ModelUse use) {
  const uint64_t tile_count = source_.tile_count();
  const uint32_t weight = sample_weight(use);
  SymbolCounts counts(fitted_);
  count_all(counts);
  scale_counts(counts, weight);
  fit_tables(counts, effort_.tables, effort_.table_rounds, fitted_);

  auto class_counts = std::make_unique<ClassCounts[]>(1);
  std::memset(class_counts.get(), 0, sizeof(ClassCounts));
  for (uint64_t tile = 0; tile < tile_count; ++tile) {
    const size_t blocks = classes_[tile].size() / source_.channels();
    for (size_t i = 0; i < classes_[tile].size(); ++i) {
      const uint8_t before = i >= blocks ? classes_[tile][i - blocks] : 0;
      ++class_counts[0][i / blocks][before][classes_[tile][i]];
    }
  }
  fit_class_tables(class_counts[0], source_.channels(), fitted_);
  if (use != ModelUse::these) complete(counts, weight, use);

  model_bytes_.resize(kMaxModelBytes);
  model_bytes_.resize(write_model(fitted_, model_bytes_.data()));
  const Fault fault = codes_.take(model_bytes_, source_, nullptr);
  if (fault.reason != Reason::none) __builtin_trap();
}

void DenseEncoder::scale_counts(SymbolCounts& counts, uint32_t weight) const {
  for (uint32_t c = 0; c < fitted_.channels; ++c) {
    uint32_t* const of_channel = counts.of(c);
    for (size_t i = 0; i < size_t{counts.rows(c)} * kLevels * kMaxSymbols; ++i) of_channel[i] *= weight;
  }
}

uint32_t DenseEncoder::sample_weight(ModelUse use) const {
  constexpr uint64_t kEnough = uint64_t{1} << 22, kMaxWeight = 8;
  if (use == ModelUse::these) return 1;
  const uint64_t samples = source_.pixels() * source_.channels();
  return static_cast<uint32_t>(std::clamp<uint64_t>(kEnough / samples, 1, kMaxWeight));
}

// Gives codes to symbols that were not seen. A code takes one of the table's 4096 slots from the other symbols. But a
// tile with a symbol that has no code costs some bits for each of its samples, because its file then needs another
// model. The number of unseen symbols that will occur is about the number of symbols seen exactly once (Good-Turing).
// Symbols seen twice count as seen once, since a symbol seldom occurs alone.
void DenseEncoder::complete(SymbolCounts& counts, uint32_t weight, ModelUse use) {
  constexpr double kBitsOfSlot = 1.4427 / kProbabilities;
  constexpr double kLostBits = 0.15;  // per sample
  constexpr uint32_t kSeldom = 2;
  std::vector<uint64_t> seen(size_t{fitted_.table_count} * kMaxSymbols);
  for (uint32_t c = 0; c < fitted_.channels; ++c) {
    const uint32_t sign_groups = RowMap(fitted_, c).sign_groups;
    for (uint32_t row = 0; row < counts.rows(c); ++row) {
      for (uint32_t level = 0; level < kLevels; ++level) {
        const uint32_t table = fitted_.table_of[c][row / sign_groups][row % sign_groups][level];
        const uint32_t* const of_context = counts.of(c) + (size_t{row} * kLevels + level) * kMaxSymbols;
        for (uint32_t i = 0; i < kMaxSymbols; ++i) seen[size_t{table} * kMaxSymbols + i] += of_context[i];
      }
    }
  }
  const double samples_of_tile =
      static_cast<double>(source_.pixels() * source_.channels()) / static_cast<double>(source_.tile_count());
  for (uint32_t t = 0; t < fitted_.table_count; ++t) {
    uint64_t samples = 0, seldom = 0, never = 0;
    for (uint32_t i = 0; i < kMaxSymbols; ++i) {
      const uint64_t count = seen[size_t{t} * kMaxSymbols + i] / weight;
      samples += count;
      seldom += count > 0 && count <= kSeldom;
      never += count == 0;
    }
    const double lost = kLostBits * samples_of_tile * static_cast<double>(seldom);
    const double taken = kBitsOfSlot * static_cast<double>(never * samples);
    if (use == ModelUse::any || lost > taken) complete_table(fitted_, t);
  }
  complete_class_tables(fitted_);
}

// Each round makes tables for the choices of the round before it, and then chooses again. The best round is kept.
void DenseEncoder::refine_in_rounds(double share) {
  const Tiles& tiles = tiles_;
  struct {
    double bits;
    DenseModel model;
    std::vector<uint8_t> classes;
  } best{1e300, {}, {}};
  RefineLimits limits = effort_.refine;
  for (uint32_t round = 0;; ++round) {
    SymbolCounts counts(fitted_);
    count_tiles(counts);
    const FittedBits fitted = fit_tables(counts, effort_.tables, effort_.table_rounds, fitted_);
    const double bits = fitted.samples + fitted.tables + class_bits(tiles);
    if (bits < best.bits) {
      best = {bits, fitted_, classes_of(tiles)};
    } else {
      // Errors depend on other errors, so changed predictors may make the result worse. Then keep the predictors in
      // later rounds. If they are kept already, stop.
      if (limits.of_class == 0) round = effort_.refine_rounds;
      limits.of_class = 0;
      fitted_ = best.model;
      set_classes(best.classes, tiles);
      for_channels_of(tiles,
                      [&](const DensePlanes& p, uint32_t c) { kernels_.evaluate(p, c, fitted_.weights[c], nullptr); });
    }
    if (round >= effort_.refine_rounds) return;
    refine(tiles, kernels_, parallel_, limits, fitted_);
    fit_groups(tiles, kernels_, parallel_, share, effort_.group_levels, fitted_);
  }
}

// Calls count(i, to) for every i below `tiles`, in parallel. Adds up in `counts` what the calls add to their `to`.
template <class Count>
void DenseEncoder::count_in_chunks(uint64_t tiles, SymbolCounts& counts, const Count& count) const {
  // Use separate counters only if there may be threads.
  const uint64_t chunks = parallel_.run == nullptr ? 1 : std::clamp<uint64_t>(tiles, 1, 8);
  std::vector<std::unique_ptr<SymbolCounts>> others(chunks);
  auto count_chunk = [&](uint64_t chunk) {
    if (chunk > 0) others[chunk] = std::make_unique<SymbolCounts>(fitted_);
    SymbolCounts& to = chunk > 0 ? *others[chunk] : counts;
    for (uint64_t i = chunk; i < tiles; i += chunks) count(i, to);
  };
  run_parallel(parallel_, chunks, count_chunk);
  for (uint64_t i = 1; i < chunks; ++i) counts.add(*others[i]);
}

void DenseEncoder::count_tiles(SymbolCounts& counts) const {
  uint16_t row_of[kMaxChannels][kZones * kSignPatterns];
  for (uint32_t c = 0; c < source_.channels(); ++c) RowMap(fitted_, c).contexts(row_of[c]);
  count_in_chunks(tiles_.size(), counts, [&](uint64_t i, SymbolCounts& to) {
    add_symbols(read_symbols(*tiles_[i], fitted_.activity, row_of), *tiles_[i], to);
  });
}

void DenseEncoder::add_symbols(const TileSymbols& read, const DenseTile& tile, SymbolCounts& counts) {
  for (uint32_t c = 0; c < tile.planes().channels; ++c) {
    const uint8_t* symbols = read.symbols.get() + c * tile.samples();
    const uint16_t* contexts = read.contexts.get() + c * tile.samples();
    uint32_t* const of_channel = counts.of(c);
    for (size_t k = 0; k < tile.samples(); ++k) ++of_channel[size_t{contexts[k]} * kMaxSymbols + symbols[k]];
  }
}

void DenseEncoder::count_all(SymbolCounts& counts) {
  uint16_t row_of[kMaxChannels][kZones * kSignPatterns];
  for (uint32_t c = 0; c < source_.channels(); ++c) RowMap(fitted_, c).contexts(row_of[c]);
  classes_.resize(source_.tile_count());
  const uint64_t bytes = source_.pixels() * source_.channels() * (sizeof(uint8_t) + sizeof(uint16_t));
  if (bytes <= kMaxKeptBytes) symbols_.resize(source_.tile_count());
  const auto count_tile = [&](uint64_t i, const DenseTile& tile, SymbolCounts& to) {
    const DensePlanes& planes = tile.planes();
    for (uint32_t c = 0; c < planes.channels; ++c) {
      classes_[i].insert(classes_[i].end(), planes.classes[c], planes.classes[c] + planes.block_count());
    }
    TileSymbols read = read_symbols(tile, fitted_.activity, row_of);
    add_symbols(read, tile, to);
    if (!symbols_.empty()) symbols_[i] = std::move(read);
  };
  if (!sees_all_) tiles_.clear();
  count_in_chunks(source_.tile_count(), counts, [&](uint64_t tile, SymbolCounts& to) {
    if (sees_all_) {
      count_tile(tile, *tiles_[tile], to);
      tiles_[tile].reset();
    } else {
      const auto loaded = load(tile);
      start_classes(*loaded);
      count_tile(tile, *loaded, to);
    }
  });
}

Fault DenseEncoder::use(std::span<const uint8_t> model, KeptCodes* kept, uint32_t effort) {
  const Fault fault = codes_.take(model, source_, kept);
  if (fault.reason != Reason::none) return fault;
  fitted_ = codes_->model;
  effort_ = effort_of(effort);
  effort_.refine_rounds = effort < kMinEffortToRefine ? 0 : std::max(effort_.refine_rounds, 1u);
  for (uint32_t c = 0; c < source_.channels(); ++c) class_costs_[c].assign(codes_->tables.classes[c], 0);
  return {};
}

Fault DenseEncoder::Codes::read(std::span<const uint8_t> bytes, const TileSource& source) {
  const Fault fault = DenseKind::read(bytes.data(), bytes.size(), source.channels(), 8, tables);
  if (fault.reason != Reason::none) return fault;
  list_symbols();
  restore_model();
  return {};
}

void DenseEncoder::Codes::restore_model() {
  model.channels = tables.channels;
  model.table_count = tables.table_count;
  for (uint32_t c = 0; c < tables.channels; ++c) {
    model.classes[c] = tables.classes[c];
    uint32_t sign_groups = 1;
    for (uint32_t pattern = 0; pattern < kSignPatterns; ++pattern) {
      model.sign_group[c][pattern] = tables.pattern_row[c][pattern_in_order(pattern)];
      sign_groups = std::max(sign_groups, model.sign_group[c][pattern] + 1u);
    }
    for (uint32_t zone = 0; zone < kZones; ++zone) {
      const uint32_t group = tables.zone_row[c][zone] / sign_groups;
      model.zone_group[c][zone] = static_cast<uint8_t>(group);
      for (uint32_t s = 0; s < sign_groups; ++s) {
        std::memcpy(model.table_of[c][group][s], tables.table_of[c] + (group * sign_groups + s) * kLevels, kLevels);
      }
    }
  }
  for (uint32_t t = 0; t < tables.table_count; ++t) {
    for (uint32_t i = 0; i < kMaxSymbols; ++i) model.frequencies[t][i] = symbols[t].codes[i].frequency;
  }
}

std::unique_ptr<DenseTile> DenseEncoder::load_with_classes(uint64_t tile) const {
  std::vector<std::unique_ptr<DenseTile>> alone(1);
  alone[0] = load(tile);
  start_classes(*alone[0]);
  for (uint32_t round = 0; round < effort_.refine_rounds; ++round) {
    refine_classes(alone, kernels_, l3_parallel{}, fitted_);
  }
  return std::move(alone[0]);
}

void DenseEncoder::start_classes(const DenseTile& tile) const {
  const DensePlanes& planes = tile.planes();
  const uint32_t* const classes = codes_ ? codes_->tables.classes : fitted_.classes;
  for (uint32_t c = 0; c < planes.channels; ++c) {
    const TapWeights* weights = codes_ ? codes_->model.weights[c] : fitted_.weights[c];
    // Start with the predictor in the middle.
    std::memset(planes.classes[c], static_cast<int>(classes[c] / 2), planes.block_count());
    if (classes[c] == 1) {
      kernels_.evaluate(planes, c, weights, nullptr);
      continue;
    }
    kernels_.guess(planes, c, weights);
    for (uint32_t round = 0; round < effort_.settle_rounds; ++round) {
      kernels_.assign(planes, c, codes_ ? codes_->scales : scales_[c], weights, class_costs_[c].data(), classes[c],
                      effort_.half_blocks);
      kernels_.evaluate(planes, c, weights, nullptr);
    }
  }
}

DenseEncoder::TileSymbols DenseEncoder::read_symbols(const DenseTile& tile, const uint8_t (*activity)[kActivityTerms],
                                                     const uint16_t (*row_of)[kZones * kSignPatterns]) const {
  const DensePlanes& planes = tile.planes();
  TileSymbols read;
  read.symbols = std::make_unique_for_overwrite<uint8_t[]>(tile.samples() * planes.channels);
  read.contexts = std::make_unique_for_overwrite<uint16_t[]>(tile.samples() * planes.channels);
  for (uint32_t c = 0; c < planes.channels; ++c) {
    uint16_t* contexts = read.contexts.get() + c * tile.samples();
    kernels_.read_symbols(planes, c, activity[c], read.symbols.get() + c * tile.samples(), contexts);
    for (size_t i = 0; i < tile.samples(); ++i) {
      contexts[i] = static_cast<uint16_t>(row_of[c][contexts[i] >> 6] + (contexts[i] & 63u));
    }
  }
  return read;
}

}  // namespace l3
