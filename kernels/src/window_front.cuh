// The neighbours that lanes of a GPU keep in registers: a window that moves by one column at each step. DenseDecoder
// and TokenDecoder derive from WindowFront.
#pragma once

#include "engine/wavefront.h"

namespace l3 {

// The neighbours of a lane's pixel: their values, or their errors.
template <class Lanes>
struct DenseWindow {
  Lanes w, ww, n, nw, ne, nww, nn, nne;
};

template <class W, class Sink>
class WindowFront : protected Wavefront<W, Sink> {
 protected:
  using Front = Wavefront<W, Sink>;
  using Front::Front;
  using typename Front::Lanes, typename Front::Mask;

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
  // Whether some neighbours of any lane's pixel are outside of the tile.
  L3_INLINE static bool is_at_edge(const typename Front::Place& at, uint32_t width) {
    const Mask at_side = W::at_least(at.column - W::splat(1), width - 2);
    return W::any(W::both(at.active, W::either(W::less(at.row, 2u), at_side)));
  }
  // Neighbours that need corrections at the tile's edges, while the window must keep them uncorrected for the next
  // step.
  struct Upper {
    Lanes ne, nn, nne;
  };

  // Moves each lane's window by one column. `here_above` and `n_above` are what the lane above has decoded last, and N
  // of that.
  L3_INLINE static void slide(DenseWindow<Lanes>& window, Lanes here, Lanes here_above, Lanes n_above) {
    window.nn = window.nne;
    window.nne = n_above;
    window.nww = window.nw;
    window.nw = window.n;
    window.n = window.ne;
    window.ne = here_above;
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
};

}  // namespace l3
