// Decodes a dense tile with a warp of a GPU (section 13 of the spec). Processors have codec/src/engine/dense_loop.h.
#pragma once

#include "window_front.cuh"

namespace l3 {

template <class W, uint32_t kChannels, class Sink>
class DenseDecoder : WindowFront<W, Sink> {
  using Front = WindowFront<W, Sink>;
  using typename Front::Classes, typename Front::Lanes, typename Front::Mask, typename Front::Window;
  using SignedFour = typename W::SignedFour;
  using Tables = typename W::Tables;
  using Delay = typename W::Delay;
  using Front::kParts;

 public:
  L3_INLINE DenseDecoder(const TileShape& shape, const TileEntry& entry, const Tables& tables, Sink& sink, Delay& delay,
                         Classes& classes)
      : Front(shape, entry, sink, classes), tables_(tables), delay_(delay), weights_(tables) {}

  L3_INLINE Fault decode() {
    this->load_states();
    if (!decode_blocks() || !decode_samples()) return {Reason::dense_words, payload_bytes_};
    return this->check_end();
  }

 private:
  using Front::active_, Front::classes_, Front::column_, Front::payload_bytes_, Front::row_;

  L3_INLINE bool decode_blocks() {
    for (uint32_t first = 0; first < this->blocks(); first += this->lanes_) {
      auto round = this->begin_round(first);
      this->decode_classes(round, tables_, kChannels);
      if (!this->end_round(round)) return false;
    }
    return true;
  }

  L3_INLINE bool decode_samples() {
    const auto way = this->start_lanes(delay_);
    L3_FOR_USED_PARTS {
      const Lanes zero = W::splat(0);
      pixel_[part] = error_[part] = {zero, zero, zero, zero, zero, zero, zero, zero};
      pixel_here_[part] = error_here_[part] = zero;
    }
    for (uint32_t step = 0; step < way.steps; ++step) {
      this->choose_parts(step, way);
      const typename Delay::Entry from_last = delay_.load();
      // In descending order: each part reads the neighbours of the part before it, which must not have moved yet.
      for (uint32_t part = this->end_part(); part-- > this->first_part();) gather_neighbours(part, from_last);
      const Window window = this->reader_.window(this->at_);
      uint32_t taken = 0;
      decode_channel<0>(window, taken);
      if constexpr (kChannels > 1) decode_channel<1>(window, taken);
      if constexpr (kChannels > 2) decode_channel<2>(window, taken);
      if constexpr (kChannels > 3) decode_channel<3>(window, taken);
      if (!this->advance(taken)) return false;
      L3_FOR_USED_PARTS {
        this->sink_.put(step, part, row_[part], column_[part], pixel_here_[part], active_[part]);
        this->next_column(part, way.period);
      }
      this->sink_.end_step(step);
      const uint32_t last = way.last_part;
      delay_.store(way.last_lane, pixel_here_[last], error_here_[last], pixel_[last].n, error_[last].n);
    }
    return true;
  }

  // Collects the neighbouring samples and errors of each lane's pixel in a part.
  L3_INLINE void gather_neighbours(uint32_t part, typename Delay::Entry from_last) {
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

    const auto at = this->find_place(part);
    const auto edges = Front::Edges::of(at.column, at.row, this->width_);
    const Lanes corner = W::splat(0);
    const auto of_pixel = Front::fix_edges(pixel, edges, corner), of_error = Front::fix_edges(error, edges, corner);
    const auto entering = W::lane_bits(Front::entering_block(at));
    if (entering) weights_.enter(part, entering, this->block_of(at), classes_);

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
      W::look_up(tables_, c, context[part], this->bucket_of(constant<kTableBuckets>, part), own[part], other[part]);
    }
    if constexpr (c + 1 < kChannels && kParts > 1) {
      L3_FOR_USED_PARTS prepare<c + 1>(part);
    }
    L3_FOR_USED_PARTS {
      const Lanes difference =
          this->decode_symbol(constant<kTableBuckets>, part, own[part], other[part], active_[part]);
      finish<c>(part, p[part], up[part], difference);
    }
    L3_FOR_USED_PARTS this->refill(part, this->refills_[part], window, taken);
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

  // The inputs of a sample's prediction and context, for each channel: four bytes per lane.
  struct View {
    Lanes near[kChannels], far[kChannels];                // W N NW NE; WW NN NNE NWW
    Lanes near_errors[kChannels], far_errors[kChannels];  // W N NW NE; WW NN, and the channels before
    Lanes slopes[kChannels];                              // |W - NW|, |N - NW|, |N - NE|
    Lanes cross[kChannels];                               // W N NW and the sample, for later channels to use
    Lanes error[kChannels];                               // in the lowest byte
  };

  const Tables& tables_;
  Delay& delay_;
  typename W::template Weights<kChannels> weights_;
  DenseWindow<Lanes> pixel_[kParts], error_[kParts];
  Lanes pixel_here_[kParts], error_here_[kParts];
  View view_[kParts];
  Lanes sum_[kParts], activity_[kParts];  // of prediction and activity, for the current channel
};

}  // namespace l3
