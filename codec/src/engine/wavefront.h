// What the two decoders of dense tiles share (section 13 of the spec). Every processor target and CUDA compile this
// same code.
//
// The lanes pass through the tile as a wavefront. Each lane is two columns behind the lane above it, so whatever it
// needs from the row above was already decoded by the previous lane, and is handed over from lane to lane. A warp may
// consist of several parts. Each stage of a step is done for all parts before the next stage begins, so that the
// latencies of the parts overlap.
#pragma once

#include "container/tile.h"
#include "models/dense_tables.h"

// Loops over parts are not unrolled, so that the code of a step fits the processor's cache of decoded instructions.
#if defined(__CUDACC__)
#define L3_FOR_PARTS for (uint32_t part = 0; part < kParts; ++part)
#elif defined(__clang__)
#define L3_FOR_PARTS _Pragma("clang loop unroll(disable)") for (uint32_t part = 0; part < kParts; ++part)
#else
#define L3_FOR_PARTS _Pragma("GCC unroll 1") for (uint32_t part = 0; part < kParts; ++part)
#endif

// Like L3_FOR_PARTS, but skips parts that contain no lanes of the tile.
#if defined(__CUDACC__)
#define L3_FOR_USED_PARTS L3_FOR_PARTS
#elif defined(__clang__)
#define L3_FOR_USED_PARTS for (uint32_t part = 0, used = parts(); part < used; ++part)
#else
#define L3_FOR_USED_PARTS _Pragma("GCC unroll 1") for (uint32_t part = 0, used = parts(); part < used; ++part)
#endif

namespace l3 {

// The neighbours of a lane's pixel: their values, or their errors.
template <class Lanes>
struct DenseWindow {
  Lanes w, ww, n, nw, ne, nww, nn, nne;
};

template <class W>
struct Wavefront {
  using Lanes = typename W::Lanes;
  using Mask = typename W::Mask;

  struct Edges {
    Mask first_column, first_row, first_rows, last_column, first_column_or_row, last_column_or_first_row;

    L3_INLINE static Edges of(Lanes column, Lanes row, uint32_t width) {
      const Mask first_column = W::equal(column, 0), last_column = W::equal(column, width - 1);
      const Mask first_row = W::equal(row, 0), first_rows = W::less(row, 2u);
      return {first_column,
              first_row,
              first_rows,
              last_column,
              W::either(first_column, first_row),
              W::either(last_column, first_row)};
    }
  };
  // Neighbours that need corrections at the tile's edges, while the window must keep them uncorrected for the next
  // step.
  struct Upper {
    Lanes ne, nn, nne;
  };

  // Moves each lane's window by one column.
  L3_INLINE static void slide(DenseWindow<Lanes>& window, Lanes here, Lanes here_before, Lanes n_before) {
    window.nn = window.nne;
    window.nne = W::shift_up(window.n, n_before);
    window.nww = window.nw;
    window.nw = window.n;
    window.n = window.ne;
    window.ne = W::shift_up(here, here_before);
    window.ww = window.w;
    window.w = here;
  }

  L3_INLINE static Upper upper_of(const DenseWindow<Lanes>& window) { return {window.ne, window.nn, window.nne}; }

  // Corrects the neighbours at the tile's edges (section 13.3). `corner` is used for the tile's first pixel, which has
  // none.
  L3_INLINE static Upper fix_edges(DenseWindow<Lanes>& window, const Edges& edges, Lanes corner) {
    window.n = W::select(edges.first_row, W::select(edges.first_column, corner, window.w), window.n);
    window.w = W::select(edges.first_column, window.n, window.w);
    window.ww = W::select(edges.first_column, window.n, window.ww);
    window.nw = W::select(edges.first_column_or_row, window.n, window.nw);
    window.nww = W::select(edges.first_column_or_row, window.n, window.nww);
    const Lanes ne = W::select(edges.last_column_or_first_row, window.n, window.ne);
    const Lanes nn = W::select(edges.first_rows, window.n, window.nn);
    const Lanes nne = W::select(edges.first_rows, ne, W::select(edges.last_column, nn, window.nne));
    return {ne, nn, nne};
  }

  // The bucket that a lane's state selects in its table.
  template <uint32_t kBuckets>
  L3_INLINE static Lanes bucket_of(Lanes state) {
    return (state & constant<kProbabilities - 1>) >> __builtin_ctz(kProbabilities / kBuckets);
  }

  // Decodes a symbol in each active lane of a part, from the two symbols of its bucket. Returns what the symbol stands
  // for in the lowest byte.
  template <uint32_t kBuckets, class Sink>
  L3_INLINE static Lanes decode_symbol(Lanes own, Lanes other, Lanes& state, Mask active, Sink& sink) {
    const Lanes place = state & constant<kProbabilities / kBuckets - 1>;
    const Mask is_own = W::less_small(place, W::template byte_of<2>(own));
    const Lanes chosen = W::select(is_own, own & constant<0xFF000FFF>, other);
    const Lanes number = ((chosen >> 12) + place) & constant<kProbabilities - 1>;
    const Lanes frequency = chosen & constant<kProbabilities - 1>;
    sink.template on_symbol<kBuckets>(frequency, active);
    const Lanes next = frequency * (state >> kProbabilityBits) + number;
    state = W::select(active, next, state);
    return W::top_byte(chosen);
  }

  // The active lanes whose pixel is not in the ending. Only these take words.
  L3_INLINE static Mask refilling_lanes(Mask active, Lanes column, Lanes row, const Ending& ending) {
    return W::and_not(active, W::both(W::at_least(row, ending.row), W::at_least(column, ending.column)));
  }
  template <class Window>
  L3_INLINE static void refill(Lanes& state, Mask active, Window window, uint32_t& taken) {
    W::refill(state, W::both(active, W::below_floor(state)), window, taken);
  }
};

}  // namespace l3
