// The neighbours of the pixels that a token decoder works on: values, holes and errors, as they move from lane to lane.
#pragma once

#include "engine/token_taps.h"
#include "window_front.cuh"

namespace l3 {

// The neighbours of a pixel (section 13.3).
enum class NeighbourAt { w, n, nw, ne, ww, nn, nne, nww };

// What the tiles of a model may have besides: nothing, still rows, or pixels that follow others and perhaps still rows.
// Each has loops of its own, so that the others do not become slower.
enum class TokenMore { nothing, rows, all };

// TokenDecoder is a chain of classes, each in a file of its own: TokenNeighbours, TokenBlocks, TokenNumbers,
// TokenMatches.
template <class W, uint32_t kChannels, TokenUse kUse, class Sink>
class TokenNeighbours : protected WindowFront<W, Sink> {
 protected:
  using Front = WindowFront<W, Sink>;
  using Front::kParts;
  using typename Front::Classes, typename Front::Lanes, typename Front::Mask, typename Front::Place,
      typename Front::Window;
  using At = NeighbourAt;
  using Tables = typename W::TokenTables;
  static constexpr bool kLiteral = kUse == TokenUse::literal, kHoles = kUse == TokenUse::holes;
  static constexpr uint32_t kWords = token_words(kChannels);
  using Delay = typename W::template TokenDelay<(kLiteral ? 2 : 4) * kWords>;

  static_assert(kUse == TokenUse::plain || kChannels == 1);

  L3_INLINE TokenNeighbours(const TileShape& shape, const TileEntry& entry, const Tables& tables, Sink& sink,
                            Delay& delay, Classes& classes)
      : Front(shape, entry, sink, classes), tables_(tables), delay_(delay) {}

  L3_INLINE Lanes pixel(At at, uint32_t part, uint32_t word) const {
    return neighbour(at, pixel_[part][word], above_[part][word]);
  }
  // The values that predictions use: pixels, with holes filled.
  L3_INLINE Lanes value(At at, uint32_t part, uint32_t word) const {
    const Lanes seen = pixel(at, part, word);
    return kHoles ? W::select(is_hole(seen), last_value_[part], seen) : seen;
  }
  L3_INLINE Lanes error(At at, uint32_t part, uint32_t word) const {
    return neighbour(at, error_[part][word], errors_above_[part][word]);
  }

  L3_INLINE static constexpr uint32_t channels() { return kChannels; }
  L3_INLINE bool has_match() const { return kHoles || tables_.match(); }

  L3_INLINE void clear_neighbours() {
    L3_FOR_USED_PARTS {
      const Lanes zero = W::splat(0);
      for (uint32_t word = 0; word < kWords; ++word) {
        pixel_[part][word] = {zero, zero, zero, zero, zero, zero, zero, zero};
        pixel_here_[part][word] = zero;
        if constexpr (!kLiteral) {
          error_[part][word] = {zero, zero, zero, zero, zero, zero, zero, zero};
          errors_above_[part][word] = {zero, zero, zero};
          error_here_[part][word] = zero;
        }
      }
      last_value_[part] = zero;
    }
  }

  // Moves the windows of the lanes by one column.
  L3_INLINE void slide(uint32_t part) {
    const typename Delay::Entry above = delay_.above(for_lane_below(part));
    uint32_t next = 0;
    for (uint32_t word = 0; word < kWords; ++word) {
      Front::slide(pixel_[part][word], pixel_here_[part][word], above[next], above[next + 1]);
      next += 2;
      if constexpr (!kLiteral) {
        Front::slide(error_[part][word], error_here_[part][word], above[next], above[next + 1]);
        next += 2;
      }
    }
  }

  // Corrects the neighbours of a part at the tile's edges.
  L3_INLINE void fix_neighbours(uint32_t part, const Place& place) {
    const bool is_at_edge = Front::is_at_edge(place, this->width_);
    for (uint32_t word = 0; word < kWords; ++word) {
      above_[part][word] = Front::upper_of(pixel_[part][word]);
      if constexpr (!kLiteral) errors_above_[part][word] = Front::upper_of(error_[part][word]);
    }
    if (is_at_edge) {
      const auto edges = Front::Edges::of(place.column, place.row, this->width_);
      for (uint32_t word = 0; word < kWords; ++word) {
        above_[part][word] = Front::fix_edges(pixel_[part][word], edges, W::splat(0));
        if constexpr (!kLiteral) errors_above_[part][word] = Front::fix_edges(error_[part][word], edges, W::splat(0));
      }
    }
  }

  // What the lane below needs of this lane: what it has decoded last, and N of that.
  L3_INLINE typename Delay::Entry for_lane_below(uint32_t part) const {
    typename Delay::Entry entry;
    for (uint32_t word = 0; word < kWords; ++word) {
      entry.put(pixel_here_[part][word]);
      entry.put(pixel_[part][word].n);
      if constexpr (!kLiteral) {
        entry.put(error_here_[part][word]);
        entry.put(error_[part][word].n);
      }
    }
    return entry;
  }

  // With holes, each lane keeps the last value that was not the hole (section 15.2).
  L3_INLINE void track_last_value(uint32_t part, Mask first_column) {
    const Lanes n = pixel(At::n, part, 0), w = pixel(At::w, part, 0);
    Lanes last_value = W::select(first_column, W::splat(0), last_value_[part]);
    last_value = W::select(is_hole(n), last_value, n);
    last_value_[part] = W::select(is_hole(w), last_value, w);
  }
  L3_INLINE Mask is_hole(Lanes v) const { return W::same(v, W::splat(tables_.hole_value())); }

  const Tables& tables_;
  Delay& delay_;
  DenseWindow<Lanes> pixel_[kParts][kWords], error_[kParts][kWords];
  Lanes pixel_here_[kParts][kWords], error_here_[kParts][kWords];

 private:
  using Upper = typename Front::Upper;

  // A neighbour, corrected at the tile's edges.
  L3_INLINE static Lanes neighbour(At at, const DenseWindow<Lanes>& window, const Upper& upper) {
    switch (at) {
      case At::w: return window.w;
      case At::n: return window.n;
      case At::nw: return window.nw;
      case At::ww: return window.ww;
      case At::nww: return window.nww;
      case At::ne: return upper.ne;
      case At::nn: return upper.nn;
      default: return upper.nne;
    }
  }

 protected:
  Upper above_[kParts][kWords], errors_above_[kParts][kWords];
  Lanes last_value_[kParts];
};

}  // namespace l3
