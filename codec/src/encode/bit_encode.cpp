// Implements bit_encode.h: fits a bit model. bit_code.cpp codes tiles.
#include "encode/bit_encode.h"

#include <algorithm>

#include "api/parallel.h"
#include "encode/bit_fit.h"
#include "encode/model_writer.h"

namespace l3 {
namespace {

// What is spent on a model.
struct BitEffort {
  uint32_t neighbours;   // at most
  size_t sample_pixels;  // in which neighbours are looked for
  bool exchanges;        // then looks for better ones
};
constexpr BitEffort bit_effort_of(uint32_t effort) {
  if (effort <= 2) return {10, 1u << 14, false};
  if (effort <= 4) return {12, 1u << 16, false};
  return {kMaxBitNeighbours, 1u << 17, effort > 6};
}
// Shapes must save this share of a file: without them, it is simpler to decode.
constexpr double kWorthShapes = 0.99;
// A tile takes about so many bytes beside its pixels: states, the entry of the index, and a part of a unit.
constexpr double kBytesOfTile = 96;
constexpr uint64_t kMaxChunks = 8;  // that count at the same time
// The largest model that is written: its tree has a node for each context, and half as many splits again.
constexpr size_t kMaxWritten =
    kBitHeadBytes + kMaxBitNeighbours + 4 * kMaxChannels + kBitContexts + ImageShapes::kMaxBytes;

// Neighbours that nearly always say enough: W, WW, N, NE, NW, NWW, NN and NNE.
constexpr uint8_t kNearest[] = {0, 1, 16, 17, 18, 19, 34, 35};

// Which of 64 pixels from a step on are not like all of their nearest neighbours.
uint64_t busy_of(const BitHistory& history, uint32_t lane, uint32_t step) {
  uint64_t any = history.own(lane, step), every = any;
  for (const uint32_t q : kNearest) {
    const uint64_t neighbours = history.neighbours(lane, step, q);
    any |= neighbours;
    every &= neighbours;
  }
  return any & ~every;
}

// Shapes have the colour that is rarer.
BitColours colours_of_shapes(const TileSource& source, const BitColours& colours) {
  uint64_t ones = 0, pixels = 0;
  BitPlane plane;
  for (uint64_t tile = 0; tile < source.tile_count(); ++tile) {
    if (!plane.load(source, tile, colours)) continue;
    pixels += uint64_t{plane.width()} * plane.height();
    ones += plane.ones();
  }
  return 2 * ones > pixels ? BitColours{{colours.of[1], colours.of[0]}} : colours;
}

BitPlaces places_of(const std::vector<uint8_t>& neighbours) {
  BitPlaces places;
  places.count = static_cast<uint32_t>(neighbours.size());
  std::copy(neighbours.rbegin(), neighbours.rend(), places.of);
  return places;
}

// How many of these neighbours a model must have.
uint32_t least_depth(const std::vector<uint8_t>& neighbours) {
  const auto after = [&](uint32_t q) {
    return static_cast<uint32_t>(std::find(neighbours.begin(), neighbours.end(), q) - neighbours.begin()) + 1;
  };
  return std::max(after(kNewestOwn), after(kNewestAbove));
}

std::vector<uint8_t> write_model(const TileSource& source, const BitColours& colours,
                                 const std::vector<uint8_t>& neighbours, const BitTree& tree,
                                 const ImageShapes& shapes) {
  const uint32_t channels = source.channels(), count = static_cast<uint32_t>(neighbours.size());
  const bool has_colours = channels != 1 || source.bits() != 1 || colours.of[0] != 0;
  std::vector<uint8_t> bytes(kMaxWritten);
  bytes[0] = kBitModelKind;
  bytes[1] = static_cast<uint8_t>(channels);
  bytes[2] = static_cast<uint8_t>(source.bits());
  bytes[kBitFlagsAt] =
      static_cast<uint8_t>((has_colours ? kBitColoursFlag : 0) | (shapes.empty() ? 0 : kBitShapesFlag));
  bytes[4] = static_cast<uint8_t>(count);
  std::copy(neighbours.begin(), neighbours.end(), bytes.begin() + kBitHeadBytes);
  BitWriter bits(bytes.data() + kBitHeadBytes + count);
  for (uint32_t i = 0; i < 2 * channels && has_colours; ++i) {
    bits.put(static_cast<uint32_t>(colours.of[i / channels] >> (16 * (i % channels))) & 0xFFFF, source.bits());
  }
  tree.put(bits, count);
  if (!shapes.empty()) shapes.put(bits);
  bytes.resize(kBitHeadBytes + count + bits.bytes());
  return bytes;
}

}  // namespace

Fault BitEncoder::use(std::span<const uint8_t> model, KeptCodes* kept) {
  const Fault fault = codes_.take(model, source_, kept);
  if (fault.reason == Reason::none && codes_->tables->shapes.count > 0) {
    const FoundShapes found(source_, codes_->colours);
    shapes_ = ImageShapes(source_, found, codes_->tables->shapes);
  }
  return fault;
}

bool BitEncoder::load(uint64_t tile, const BitColours& colours, const ImageShapes& shapes, BitPlane& plane) const {
  if (!plane.load(source_, tile, colours)) return false;
  shapes.take_out(tile, plane);
  return true;
}

template <class Use>
void BitEncoder::for_busy(uint64_t tile, const BitColours& colours, const ImageShapes& shapes, const Use& use) const {
  BitPlane plane;
  if (!load(tile, colours, shapes, plane)) return;
  const BitHistory history(plane, likely_log_lanes(plane.width(), plane.height()));
  for (uint32_t y = 0; y < plane.height(); ++y) {
    const uint32_t lane = y % history.lanes();
    for (uint32_t x = 0; x < plane.width(); x += kBitBlock) {
      const uint32_t step = history.first_step(y) + x, count = smaller(kBitBlock, plane.width() - x);
      const uint64_t busy = busy_of(history, lane, step) & ~uint64_t{0} >> (64 - count);
      if (busy != 0) use(history, lane, step, busy);
    }
  }
}

void BitEncoder::fit(const BitColours& colours, uint32_t effort) {
  Model model = fitted(colours, effort, shapes_);
  const BitColours ones = colours_of_shapes(source_, colours);
  ImageShapes shapes(source_, FoundShapes(source_, ones));
  // Fitting takes time: another model is fitted only if shapes seem to save enough.
  if (shapes.saved_bytes() > (1 - kWorthShapes) * model.size) {
    Model with_shapes = fitted(ones, effort, shapes);
    if (with_shapes.size < kWorthShapes * model.size) {
      model = std::move(with_shapes);
      shapes_ = std::move(shapes);
    }
  }
  bytes_ = model.size;
  model_bytes_ = std::move(model.bytes);
  const Fault fault = codes_.take(model_bytes_, source_, nullptr);
  if (fault.reason != Reason::none) __builtin_trap();
}

BitEncoder::Model BitEncoder::fitted(const BitColours& colours, uint32_t effort, const ImageShapes& shapes) const {
  Model model{1e300, {}};
  for (std::vector<uint8_t>& neighbours : choose_neighbours(colours, shapes, effort)) {
    BitTree tree(count_all(colours, shapes, places_of(neighbours)), static_cast<uint32_t>(neighbours.size()));
    neighbours.resize(tree.best_depth(least_depth(neighbours)));
    const double size = tree.bits_of(static_cast<uint32_t>(neighbours.size())) / 8;
    if (size < model.size) model = {size, write_model(source_, colours, neighbours, tree, shapes)};
  }
  model.size += kBytesOfTile * static_cast<double>(source_.tile_count()) + shapes.bytes();
  return model;
}

std::vector<std::vector<uint8_t>> BitEncoder::choose_neighbours(const BitColours& colours, const ImageShapes& shapes,
                                                                uint32_t effort) const {
  const BitEffort spent = bit_effort_of(effort);
  BitNeighbours sample(spent.sample_pixels);
  for (uint64_t tile = 0; tile < source_.tile_count(); ++tile) {
    for_busy(tile, colours, shapes, [&](const BitHistory& history, uint32_t lane, uint32_t step, uint64_t busy) {
      const uint64_t own = history.own(lane, step);
      for (; busy != 0; busy &= busy - 1) {
        const auto i = static_cast<uint32_t>(__builtin_ctzll(busy));
        sample.add(history.around(lane, step + i), (own >> i & 1) != 0);
      }
    });
  }
  std::vector<std::vector<uint8_t>> found{sample.choose(spent.neighbours)};
  if (spent.exchanges) found.push_back(sample.exchange(found[0]));
  return found;
}

std::vector<uint64_t> BitEncoder::count_all(const BitColours& colours, const ImageShapes& shapes,
                                            const BitPlaces& places) const {
  const uint64_t count = source_.tile_count();
  const uint64_t chunks = parallel_.run == nullptr ? 1 : std::min<uint64_t>(count, kMaxChunks);
  std::vector<std::vector<uint64_t>> sums(chunks);
  auto count_chunk = [&](uint64_t chunk) {
    std::vector<uint64_t>& all = sums[chunk];
    all.resize(size_t{2} << places.count);
    std::vector<uint32_t> of_tile(all.size());
    BitPlane plane;
    for (uint64_t tile = chunk; tile < count; tile += chunks) {
      if (!load(tile, colours, shapes, plane)) continue;
      const BitHistory history(plane, likely_log_lanes(plane.width(), plane.height()));
      history.for_indices(
          plane, places, [&](uint32_t, uint32_t, uint32_t pixels, uint32_t index) { of_tile[index] += pixels; },
          [&](uint32_t, uint32_t, uint32_t pixels, const auto& index) {
            for (uint32_t i = 0; i < pixels; ++i) ++of_tile[index(i)];
          });
      for (size_t i = 0; i < all.size(); ++i) all[i] += of_tile[i];
      std::fill(of_tile.begin(), of_tile.end(), 0);
    }
  };
  run_parallel(parallel_, chunks, count_chunk);
  for (uint64_t chunk = 1; chunk < chunks; ++chunk) {
    for (size_t i = 0; i < sums[0].size(); ++i) sums[0][i] += sums[chunk][i];
  }
  return std::move(sums[0]);
}

}  // namespace l3
