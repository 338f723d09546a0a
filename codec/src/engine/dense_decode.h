// Decodes a dense tile with a warp (section 13 of the spec). Every processor target and CUDA compile this same code.
#pragma once

#include "engine/wavefront.h"

namespace l3 {

template <class W, uint32_t kChannels, class Sink>
class DenseDecoder {
  using Front = Wavefront<W>;

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
        lanes_(W::uniform(dense_lanes(entry.parameters))),
        ending_(ending_of(W::uniform(entry.parameters), shape.width, shape.height)),
        parts_(ceil_div(lanes_, W::kPartLanes)),
        payload_bytes_(entry.payload_bytes),
        payload_(entry.payload),
        tables_(tables),
        sink_(sink),
        delay_(delay),
        classes_(classes),
        weights_(tables),
        reader_(entry.payload, entry.payload_bytes) {}

  L3_INLINE Fault decode() {
    L3_FOR_PARTS state_[part] = W::load_states(payload_, lanes_, part);
    at_ = 4 * lanes_;
    if (!decode_classes() || !decode_samples()) return {Reason::dense_words, payload_bytes_};
    return check_end();
  }

 private:
  // The number of parts of the warp that contain lanes of this tile.
  L3_INLINE uint32_t parts() const { return kParts == 1 ? 1 : parts_; }

  // Advances past words that were taken. Returns false if the payload has no more of them.
  L3_INLINE bool advance(uint32_t taken) {
    at_ += taken;
    return at_ <= payload_bytes_;
  }

  L3_INLINE bool decode_classes() {
    const uint32_t blocks = ceil_div(width_, kBlockEdge) * ceil_div(height_, kBlockEdge);
    for (uint32_t first = 0; first < blocks; first += lanes_) {
      const uint32_t count = smaller(lanes_, blocks - first);
      Lanes all[kParts], before[kParts];
      L3_FOR_USED_PARTS all[part] = before[part] = W::splat(0);
      const Window window = reader_.window(at_);
      uint32_t taken = 0;
      for (uint32_t c = 0; c < kChannels; ++c) {
        L3_FOR_USED_PARTS {
          if (tables_.classes[c] == 1) {
            before[part] = W::splat(0);
            continue;
          }
          const Mask active = W::less(W::numbers(part), count);
          Lanes own, other;
          W::look_up_class(tables_, c, before[part] & constant<kMaxClasses - 1>,
                           Front::template bucket_of<kClassBuckets>(state_[part]), own, other);
          before[part] = Front::template decode_symbol<kClassBuckets>(own, other, state_[part], active, sink_);
          Front::refill(state_[part], active, window, taken);
          all[part] = all[part] | before[part] << static_cast<int>(8 * c);
        }
      }
      L3_FOR_USED_PARTS classes_.store(first + part * W::kPartLanes, first + count, all[part]);
      if (!advance(taken)) return false;
    }
    return true;
  }

  L3_INLINE bool decode_samples() {
    const uint32_t period = W::uniform(dense_period(width_, lanes_));
    const uint32_t steps = W::uniform(dense_steps(width_, height_, lanes_));
    const uint32_t last_part = kParts == 1 ? 0 : (lanes_ - 1) / W::kPartLanes,
                   last_lane = W::uniform((lanes_ - 1) % W::kPartLanes);
    delay_.clear(dense_delay(width_, lanes_));
    sink_.begin(width_, height_, lanes_);
    L3_FOR_USED_PARTS {
      const Lanes zero = W::splat(0), lane = W::numbers(part);
      pixel_[part] = error_[part] = {zero, zero, zero, zero, zero, zero, zero, zero};
      pixel_here_[part] = error_here_[part] = zero;
      column_[part] = zero - lane - lane;
      // A lane beyond the tile's lanes gets a row that is always below the tile, so it is never active.
      row_[part] = W::select(W::less(lane, lanes_), lane, W::splat(1u << 30));
      active_[part] = W::equal(lane, kLanes);
    }
    for (uint32_t step = 0; step < steps; ++step) {
      const typename W::Delay::Entry from_last = delay_.load();
      // In descending order: each part reads the neighbours of the part before it, which must not have moved yet.
      for (uint32_t part = parts(); part-- > 0;) gather_neighbours(part, from_last);
      const Window window = reader_.window(at_);
      uint32_t taken = 0;
      decode_channel<0>(window, taken);
      if constexpr (kChannels > 1) decode_channel<1>(window, taken);
      if constexpr (kChannels > 2) decode_channel<2>(window, taken);
      if constexpr (kChannels > 3) decode_channel<3>(window, taken);
      if (!advance(taken)) return false;
      L3_FOR_USED_PARTS {
        sink_.put(step, part, row_[part], column_[part], pixel_here_[part], active_[part]);
        next_column(part, period);
      }
      delay_.store(last_lane, pixel_here_[last_part], error_here_[last_part], pixel_[last_part].n, error_[last_part].n);
    }
    return true;
  }

  // Moves each lane to its next column, or to the first column of its next row.
  L3_INLINE void next_column(uint32_t part, uint32_t period) {
    column_[part] = column_[part] + constant<1>;
    const Mask wraps = W::equal(column_[part], period);
    column_[part] = W::select(wraps, W::splat(0), column_[part]);
    row_[part] = W::select(wraps, row_[part] + lanes_, row_[part]);
  }

  // Collects the neighbouring samples and errors of each lane's pixel in a part.
  L3_INLINE void gather_neighbours(uint32_t part, typename W::Delay::Entry from_last) {
    DenseWindow<Lanes>& pixel = pixel_[part];
    DenseWindow<Lanes>& error = error_[part];
    const uint32_t before = part == 0 ? 0 : part - 1;
    const auto above = [&](Lanes of_part_before, uint32_t of_last_lane) {
      return part == 0 ? W::splat(of_last_lane) : of_part_before;
    };
    Front::slide(pixel, pixel_here_[part], above(pixel_here_[before], from_last[0]),
                 above(pixel_[before].n, from_last[2]));
    Front::slide(error, error_here_[part], above(error_here_[before], from_last[1]),
                 above(error_[before].n, from_last[3]));

    const Lanes column = column_[part], row = row_[part];
    const Mask active = W::both(W::less(column, width_), W::less(row, height_));
    active_[part] = active;
    refills_[part] = Front::refilling_lanes(active, column, row, ending_);
    const auto edges = Front::Edges::of(column, row, width_);
    const Lanes corner = W::splat(0);
    const auto of_pixel = Front::fix_edges(pixel, edges, corner), of_error = Front::fix_edges(error, edges, corner);
    const auto entering = W::lane_bits(W::both(active, W::equal(column & constant<kBlockEdge - 1>, 0)));
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

  // Decodes the samples of one channel. Table lookups take long, so meanwhile the sums of the next channel are begun
  // with what is already known.
  template <uint32_t c>
  L3_INLINE void decode_channel(Window window, uint32_t& taken) {
    Lanes p[kParts], up[kParts], context[kParts], own[kParts], other[kParts];
    if constexpr (c == 0 || kParts == 1) {
      L3_FOR_USED_PARTS prepare<c>(part);
    }
    L3_FOR_USED_PARTS predict<c>(part, p[part], up[part]);
    L3_FOR_USED_PARTS {
      const View& view = view_[part];
      context[part] = W::context(tables_, c, activity_[part], view.near[c], view.near_errors[c], p[part], up[part]);
    }
    L3_FOR_USED_PARTS {
      W::look_up(tables_, c, context[part], Front::template bucket_of<kTableBuckets>(state_[part]), own[part],
                 other[part]);
    }
    if constexpr (c + 1 < kChannels && kParts > 1) {
      L3_FOR_USED_PARTS prepare<c + 1>(part);
    }
    L3_FOR_USED_PARTS {
      const Lanes difference =
          Front::template decode_symbol<kTableBuckets>(own[part], other[part], state_[part], active_[part], sink_);
      finish<c>(part, p[part], up[part], difference);
    }
    L3_FOR_USED_PARTS Front::refill(state_[part], refills_[part], window, taken);
  }

  // The sums of prediction and activity, except for the terms of the channel before.
  template <uint32_t c>
  L3_INLINE void prepare(uint32_t part) {
    const View& view = view_[part];
    const SignedFour near_errors = W::signed_four(view.near_errors[c]);
    Lanes activity = weights_.activity_start(c);
    activity = W::dot_magnitudes(near_errors, weights_.activity(c, 0), activity);
    activity_[part] = W::dot(view.slopes[c], weights_.activity(c, 2), activity);

    Lanes sum = W::dot(view.near[c], weights_.word(c, 0, part), weights_.start(c, part));
    sum = W::dot(view.far[c], weights_.word(c, 1, part), sum);
    sum = W::dot(near_errors, weights_.word(c, kErrorWord, part), sum);
    if constexpr (c > 1) sum = W::dot(view.cross[c - 2], weights_.word(c, kCrossWord + 1, part), sum);
    sum_[part] = sum;
  }

  // Adds the remaining terms. Computes the prediction `p` and whether it leans upwards (`up`).
  template <uint32_t c>
  L3_INLINE void predict(uint32_t part, Lanes& p, Lanes& up) {
    const View& view = view_[part];
    Lanes far_errors_bytes = view.far_errors[c];
    if constexpr (c == 1) far_errors_bytes = W::with_errors(far_errors_bytes, view.error[0]);
    if constexpr (c > 1) {
      far_errors_bytes = W::template with_errors<c>(far_errors_bytes, view.error[c - 1], view.error[c - 2]);
    }
    const SignedFour far_errors = W::signed_four(far_errors_bytes);
    Lanes sum = W::dot(far_errors, weights_.word(c, kErrorWord + 1, part), sum_[part]);
    if constexpr (c > 0) sum = W::dot(view.cross[c - 1], weights_.word(c, kCrossWord, part), sum);
    W::split(sum, p, up);
    activity_[part] = W::dot_magnitudes(far_errors, weights_.activity(c, 1), activity_[part]);
  }

  // Computes the sample and its error. The difference counts in the direction in which the prediction leans.
  template <uint32_t c>
  L3_INLINE void finish(uint32_t part, Lanes p, Lanes up, Lanes difference) {
    View& view = view_[part];
    const Lanes sample = (p + (difference ^ up) - up) & constant<0xFF>;
    const Lanes error = W::to_error(sample - p);
    view.error[c] = error;
    view.cross[c] = W::template with_byte<3>(W::template without_byte<3>(view.near[c]), sample);
    pixel_here_[part] = W::template with_byte<c>(pixel_here_[part], sample);
    error_here_[part] = W::template with_byte<c>(error_here_[part], error);
  }

  L3_INLINE Fault check_end() const {
    for (uint32_t part = 0; part < kParts; ++part) {
      const Mask rests =
          ending_.row < height_ ? W::less(state_[part], kStateFloor + 1) : W::equal(state_[part], kStateFloor);
      if (W::bits(rests) != W::kAllBits) return {Reason::dense_states, 0};
    }
    if (payload_bytes_ - at_ >= kUnit) return {Reason::tile_leftover, at_};
    for (uint32_t i = at_; i < payload_bytes_; ++i) {
      if (payload_[i] != 0) return {Reason::tile_padding, i};
    }
    return {};
  }

  // The inputs of a sample's prediction and context, for each channel: four bytes per lane.
  struct View {
    Lanes near[kChannels], far[kChannels];                // W N NW NE; WW NN NNE NWW
    Lanes near_errors[kChannels], far_errors[kChannels];  // W N NW NE; WW NN, and the channels before
    Lanes slopes[kChannels];                              // |W - NW|, |N - NW|, |N - NE|
    Lanes cross[kChannels];                               // W N NW and the sample, for later channels to use
    Lanes error[kChannels];                               // in the lowest byte
  };

  const uint32_t width_, height_, lanes_;
  const Ending ending_;
  const uint32_t parts_, payload_bytes_;
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
  Mask active_[kParts], refills_[kParts];  // decodes a sample in this step; may take words after it
  DenseWindow<Lanes> pixel_[kParts], error_[kParts];
  Lanes pixel_here_[kParts], error_here_[kParts];
  View view_[kParts];
  Lanes sum_[kParts], activity_[kParts];  // of prediction and activity, for the current channel
};

}  // namespace l3
