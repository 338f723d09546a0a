// Decoding of a dense tile by a warp (section 13 of the spec): one body for every processor target and for CUDA.
//
// The lanes go through the tile as a wavefront: each two columns behind the one above it, so that whatever a lane needs
// of the row above was decoded by its neighbour, and comes from there. A warp may be made of several parts, which are
// gone through in order.
#pragma once

#include "dense_tables.h"
#include "tile.h"

namespace l3 {

// The neighbours of a lane's pixel, or the errors there: a byte for each channel.
template <class Lanes>
struct DenseWindow {
  Lanes w, ww, n, nw, ne, nww, nn, nne;
};

template <class W, uint32_t kChannels, class Sink>
class DenseDecoder {
 public:
  using Lanes = typename W::Lanes;
  using Mask = typename W::Mask;
  using SignedFour = typename W::SignedFour;
  using Tables = typename W::Tables;
  using Window = typename W::Reader::Window;
  static constexpr uint32_t kParts = W::kParts;

  L3_INLINE DenseDecoder(const TileShape& shape, const TileEntry& entry, const Tables& tables, Sink& sink,
                         typename W::Delay& delay, typename W::Classes& classes)
      : width_(shape.width),
        height_(shape.height),
        lanes_(W::keep(1u << (entry.parameters & 7))),
        payload_bytes_(entry.payload_bytes),
        payload_(entry.payload),
        tables_(tables),
        sink_(sink),
        delay_(delay),
        classes_(classes),
        weights_(tables),
        reader_(entry.payload, entry.payload_bytes) {}

  L3_INLINE Fault decode() {
    for (uint32_t part = 0; part < kParts; ++part) state_[part] = W::load_states(payload_, lanes_, part);
    at_ = 4 * lanes_;
    if (!decode_classes() || !decode_samples()) return {Reason::dense_words, payload_bytes_};
    return check_end();
  }

 private:
  // Decodes a symbol in each active lane of a part from the table whose buckets begin at `table`.
  template <uint32_t kBuckets>
  L3_INLINE Lanes decode_symbol(const Bucket* buckets, Lanes table, Lanes& state, Mask active) {
    constexpr uint32_t kSlots = kProbabilities / kBuckets;
    const Lanes slot = state & constant<kProbabilities - 1>;
    const Lanes bucket = slot >> __builtin_ctz(kSlots);
    const Lanes place = slot & constant<kSlots - 1>;
    Lanes chosen, symbol;
    if constexpr (W::kOwnTables) {
      symbol = W::template look_up<kBuckets>(buckets, table, bucket, place, chosen);
    } else {
      Lanes own, other;
      W::gather_buckets(buckets, table + bucket, own, other);
      const Mask is_own = W::less_small(place, own >> 24);
      chosen = W::select(is_own, own & constant<0xFF000FFF>, other);
      symbol = W::select(is_own, bucket, other >> 24);
    }
    const Lanes number = ((chosen >> 12) + place) & constant<kProbabilities - 1>;
    const Lanes frequency = chosen & constant<kProbabilities - 1>;
    sink_.template saw<kBuckets>(frequency, active);
    const Lanes next = frequency * (state >> kProbabilityBits) + number;
    state = W::select(active, next, state);
    return symbol;
  }

  L3_INLINE static void refill(Lanes& state, Mask active, Window window, uint32_t& taken) {
    W::refill(state, W::both(active, W::below_floor(state)), window, taken);
  }

  // False where words were wanted behind the payload's end.
  L3_INLINE bool advance(uint32_t taken) {
    at_ += taken;
    return at_ <= payload_bytes_;
  }

  L3_INLINE bool decode_classes() {
    const uint32_t blocks = ceil_div(width_, kBlockEdge) * ceil_div(height_, kBlockEdge);
    for (uint32_t first = 0; first < blocks; first += lanes_) {
      const uint32_t count = smaller(lanes_, blocks - first);
      Lanes all[kParts], before[kParts];
      for (uint32_t part = 0; part < kParts; ++part) all[part] = before[part] = W::splat(0);
      const Window window = reader_.window(at_);
      uint32_t taken = 0;
      for (uint32_t c = 0; c < kChannels; ++c) {
        for (uint32_t part = 0; part < kParts; ++part) {
          if (tables_.classes[c] == 1) {
            before[part] = W::splat(0);
            continue;
          }
          const Mask active = W::less(W::numbers(part), count);
          const Lanes table = W::gather(tables_.class_table_of[c], before[part] & constant<kMaxClasses - 1>);
          before[part] = decode_symbol<kClassBuckets>(tables_.class_buckets, table * constant<kClassBuckets>,
                                                      state_[part], active);
          refill(state_[part], active, window, taken);
          all[part] = all[part] | before[part] << static_cast<int>(8 * c);
        }
      }
      for (uint32_t part = 0; part < kParts; ++part) {
        classes_.store(first + part * W::kPartLanes, first + count, all[part]);
      }
      if (!advance(taken)) return false;
    }
    return true;
  }

  L3_INLINE bool decode_samples() {
    const uint32_t period = W::keep(width_ > 2 * lanes_ ? width_ : 2 * lanes_);
    const uint32_t steps = W::keep((height_ - 1) / lanes_ * period + width_ + 2 * ((height_ - 1) % lanes_));
    const uint32_t last_part = kParts == 1 ? 0 : (lanes_ - 1) / W::kPartLanes,
                   last_lane = W::keep((lanes_ - 1) % W::kPartLanes);
    delay_.clear(period - 2 * lanes_ + 1);
    sink_.begin(width_, height_, lanes_, period);
    for (uint32_t part = 0; part < kParts; ++part) {
      const Lanes zero = W::splat(0), lane = W::numbers(part);
      pixel_[part] = error_[part] = {zero, zero, zero, zero, zero, zero, zero, zero};
      pixel_here_[part] = error_here_[part] = zero;
      column_[part] = zero - lane - lane;
      // A lane beyond the tile's lanes is below its last row for ever.
      row_[part] = W::select(W::less(lane, lanes_), lane, W::splat(1u << 30));
      active_[part] = W::equal(lane, kLanes);
    }
    for (uint32_t step = 0; step < steps; ++step) {
      const typename W::Delay::Entry from_last = delay_.load();
      // Backwards, since each part looks at what the one before it was.
      for (uint32_t part = kParts; part-- > 0;) look_around(part, from_last);
      const Window window = reader_.window(at_);
      uint32_t taken = 0;
      decode_channel<0>(window, taken);
      if constexpr (kChannels > 1) decode_channel<1>(window, taken);
      if constexpr (kChannels > 2) decode_channel<2>(window, taken);
      if constexpr (kChannels > 3) decode_channel<3>(window, taken);
      if (!advance(taken)) return false;
      for (uint32_t part = 0; part < kParts; ++part) {
        sink_.put(step, part, row_[part], column_[part], pixel_here_[part], active_[part]);
        go_on(part, period);
      }
      delay_.store(last_lane, pixel_here_[last_part], error_here_[last_part], pixel_[last_part].n, error_[last_part].n);
    }
    return true;
  }

  // What Weights::enter() takes: a bit for each lane, or the mask.
  L3_INLINE static auto which(Mask mask) {
    if constexpr (W::kOwnTables)
      return mask;
    else
      return W::bits(mask);
  }

  // To the next column, or to the first one of the lane's next row.
  L3_INLINE void go_on(uint32_t part, uint32_t period) {
    column_[part] = column_[part] + constant<1>;
    const Mask wraps = W::equal(column_[part], period);
    column_[part] = W::select(wraps, W::splat(0), column_[part]);
    row_[part] = W::select(wraps, row_[part] + lanes_, row_[part]);
  }

  // What the lanes of a part see where they are now.
  L3_INLINE void look_around(uint32_t part, typename W::Delay::Entry from_last) {
    DenseWindow<Lanes>& pixel = pixel_[part];
    DenseWindow<Lanes>& error = error_[part];
    const uint32_t before = part == 0 ? 0 : part - 1;
    const auto above = [&](Lanes of_part_before, uint32_t of_last_lane) {
      return part == 0 ? W::splat(of_last_lane) : of_part_before;
    };
    slide(pixel, pixel_here_[part], above(pixel_here_[before], from_last[0]), above(pixel_[before].n, from_last[2]));
    slide(error, error_here_[part], above(error_here_[before], from_last[1]), above(error_[before].n, from_last[3]));

    const Lanes column = column_[part], row = row_[part];
    const Mask active = W::both(W::less(column, width_), W::less(row, height_));
    active_[part] = active;
    const Mask first_column = W::equal(column, 0), last_column = W::equal(column, width_ - 1);
    const Mask first_row = W::equal(row, 0), first_rows = W::less(row, 2u);
    const Edges edges{first_column,
                      first_row,
                      first_rows,
                      last_column,
                      W::either(first_column, first_row),
                      W::either(last_column, first_row)};
    const Upper of_pixel = mend(pixel, edges), of_error = mend(error, edges);
    const auto entering = which(W::both(active, W::equal(column & constant<kBlockEdge - 1>, 0)));
    if (entering) {
      const Lanes block = (row >> 4) * ceil_div(width_, kBlockEdge) + (column >> 4);
      weights_.enter(part, entering, block, classes_);
    }

    View& view = view_[part];
    W::template exchange<kChannels>(pixel.w, pixel.n, pixel.nw, of_pixel.ne, view.near);
    W::template exchange<kChannels>(pixel.ww, of_pixel.nn, of_pixel.nne, pixel.nww, view.far);
    W::template exchange<kChannels>(error.w, error.n, error.nw, of_error.ne, view.near_errors);
    W::template exchange<kChannels>(error.ww, of_error.nn, view.far_errors);
    W::template exchange<kChannels>(W::distances(pixel.w, pixel.nw), W::distances(pixel.n, pixel.nw),
                                    W::distances(pixel.n, of_pixel.ne), view.slopes);
    pixel_here_[part] = error_here_[part] = W::splat(0);
  }

  struct Edges {
    Mask first_column, first_row, first_rows, last_column, first_column_or_row, last_column_or_first_row;
  };
  // Neighbours that are handed on as they are, and used differently at edges.
  struct Upper {
    Lanes ne, nn, nne;
  };

  // Every lane goes on by a column.
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

  // The neighbours at the tile's edges.
  L3_INLINE static Upper mend(DenseWindow<Lanes>& window, const Edges& edges) {
    window.n = W::select(edges.first_row, W::select(edges.first_column, W::splat(0), window.w), window.n);
    window.w = W::select(edges.first_column, window.n, window.w);
    window.ww = W::select(edges.first_column, window.n, window.ww);
    window.nw = W::select(edges.first_column_or_row, window.n, window.nw);
    window.nww = W::select(edges.first_column_or_row, window.n, window.nww);
    const Lanes ne = W::select(edges.last_column_or_first_row, window.n, window.ne);
    const Lanes nn = W::select(edges.first_rows, window.n, window.nn);
    const Lanes nne = W::select(edges.first_rows, ne, W::select(edges.last_column, nn, window.nne));
    return {ne, nn, nne};
  }

  // The samples of one channel. What takes long is waited for side by side: each stage is done for all parts before
  // the next one begins.
  template <uint32_t c>
  L3_INLINE void decode_channel(Window window, uint32_t& taken) {
    Lanes p[kParts], up[kParts], context[kParts], table[kParts], symbol[kParts];
    for (uint32_t part = 0; part < kParts; ++part) predict<c>(part, p[part], up[part], context[part]);
    for (uint32_t part = 0; part < kParts; ++part) table[part] = table_of<c>(context[part]);
    for (uint32_t part = 0; part < kParts; ++part) {
      symbol[part] = decode_symbol<kTableBuckets>(tables_.buckets, table[part], state_[part], active_[part]);
    }
    for (uint32_t part = 0; part < kParts; ++part) {
      refill(state_[part], active_[part], window, taken);
      finish<c>(part, p[part], up[part], symbol[part]);
    }
  }

  template <uint32_t c>
  L3_INLINE Lanes table_of(Lanes context) const {
    if constexpr (W::kOwnTables)
      return W::table(tables_, c, context);
    else
      return W::gather(tables_.table_of[c], context) << 8;
  }

  // The prediction, whether it leans upwards, and the context: row and level.
  template <uint32_t c>
  L3_INLINE void predict(uint32_t part, Lanes& p, Lanes& up, Lanes& context) {
    const View& view = view_[part];
    Lanes far_errors_bytes = view.far_errors[c];
    if constexpr (W::kOwnTables) {
      if constexpr (c == 1) far_errors_bytes = W::with_errors(far_errors_bytes, view.error[0]);
      if constexpr (c > 1)
        far_errors_bytes = W::template with_errors<c>(far_errors_bytes, view.error[c - 1], view.error[c - 2]);
    } else {
      if constexpr (c > 0) far_errors_bytes = far_errors_bytes | view.error[c - 1] << 16;
      if constexpr (c > 1) far_errors_bytes = far_errors_bytes | view.error[c - 2] << 24;
    }
    const Lanes near = view.near[c], near_errors_bytes = view.near_errors[c];
    const SignedFour near_errors = W::signed_four(near_errors_bytes);
    const SignedFour far_errors = W::signed_four(far_errors_bytes);

    Lanes sum = W::dot(near, weights_.word(c, 0, part), weights_.start(c, part));
    sum = W::dot(view.far[c], weights_.word(c, 1, part), sum);
    sum = W::dot(near_errors, weights_.word(c, kErrorWord, part), sum);
    sum = W::dot(far_errors, weights_.word(c, kErrorWord + 1, part), sum);
    if constexpr (c > 0) sum = W::dot(view.cross[c - 1], weights_.word(c, kCrossWord, part), sum);
    if constexpr (c > 1) sum = W::dot(view.cross[c - 2], weights_.word(c, kCrossWord + 1, part), sum);
    if constexpr (W::kOwnTables) {
      W::split(sum, p, up);
    } else {
      p = W::to_byte(W::shift_right_signed(sum, kWeightShift));
      up = W::all_bits(W::greater_signed(sum - (p << kWeightShift), (1 << kWeightShift >> 1) - 1));
    }

    Lanes activity;
    if constexpr (W::kOwnTables)
      activity = weights_.activity_start(c);
    else
      activity = W::splat(constant<kActivityFloor>);
    activity = W::dot_magnitudes(near_errors, weights_.activity(c, 0), activity);
    activity = W::dot_magnitudes(far_errors, weights_.activity(c, 1), activity);
    activity = W::dot(view.slopes[c], weights_.activity(c, 2), activity);
    if constexpr (W::kOwnTables) {
      context = W::context(tables_, c, activity, near, near_errors_bytes, p, up);
    } else {
      context = W::level(activity);
      if (!tables_.grouped[c]) return;

      const Lanes zone = (((p ^ up) & constant<0xFF>)*constant<3613> + constant<61923>) >> 16;
      const Lanes signs = ((near_errors_bytes ^ up) & constant<0x80808080>) |
                          ((W::at_least(near, W::spread(p)) ^ up) & constant<0x00008080>) >> 2;
      context = context + (W::row(tables_, c, zone, (signs * constant<0x00204081>) >> 26) << 6);
    }
  }

  template <uint32_t c>
  L3_INLINE void finish(uint32_t part, Lanes p, Lanes up, Lanes symbol) {
    View& view = view_[part];
    // Odd symbols go the way in which the prediction leans.
    Lanes sample, error;
    if constexpr (W::kOwnTables) {
      sample = W::sample(p, up, symbol);
      error = W::to_error(sample - p);
    } else {
      const Lanes minus = W::splat(constant<0>) - ((symbol ^ up) & constant<1>);
      sample = (p + ((((symbol + constant<1>) >> 1) ^ minus) - minus)) & constant<0xFF>;
      error = W::to_error(sample - p) & constant<0xFF>;
    }
    view.error[c] = error;
    view.cross[c] = W::template with_byte<3>(W::template without_byte<3>(view.near[c]), sample);
    pixel_here_[part] = W::template with_byte<c>(pixel_here_[part], sample);
    error_here_[part] = W::template with_byte<c>(error_here_[part], error);
  }

  L3_INLINE Fault check_end() const {
    for (uint32_t part = 0; part < kParts; ++part) {
      if (W::bits(W::equal(state_[part], kStateFloor)) != W::kAllBits) return {Reason::dense_states, 0};
    }
    if (payload_bytes_ - at_ >= kUnit) return {Reason::tile_leftover, at_};
    for (uint32_t i = at_; i < payload_bytes_; ++i) {
      if (payload_[i] != 0) return {Reason::tile_padding, i};
    }
    return {};
  }

  // What a sample's prediction and context are made of, for each channel: four bytes to a lane.
  struct View {
    Lanes near[kChannels], far[kChannels];                // W N NW NE; WW NN NNE NWW
    Lanes near_errors[kChannels], far_errors[kChannels];  // W N NW NE; WW NN, and of the channels before
    Lanes slopes[kChannels];                              // |W - NW|, |N - NW|, |N - NE|
    Lanes cross[kChannels];                               // W N NW and the sample, for channels to come
    Lanes error[kChannels];
  };

  const uint32_t width_, height_, lanes_, payload_bytes_;
  const uint8_t* payload_;
  const Tables& tables_;
  Sink& sink_;
  typename W::Delay& delay_;
  typename W::Classes& classes_;
  typename W::template Weights<kChannels> weights_;
  typename W::Reader reader_;
  uint32_t at_ = 0;  // in the payload
  Lanes state_[kParts];
  Lanes column_[kParts], row_[kParts];
  Mask active_[kParts];
  DenseWindow<Lanes> pixel_[kParts], error_[kParts];
  Lanes pixel_here_[kParts], error_here_[kParts];
  View view_[kParts];
};

}  // namespace l3
