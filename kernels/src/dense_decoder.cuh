// Decodes a dense tile with a warp of a GPU (section 13 of the spec). Processors have codec/src/engine/dense_loop.h.
#pragma once

#include "window_front.cuh"

namespace l3 {

template <class W, uint32_t kChannels, class Sink>
class DenseDecoder : WindowFront<W, Sink> {
  using Front = WindowFront<W, Sink>;
  using typename Front::Classes, typename Front::Lanes, typename Front::Mask, typename Front::Window;
  using Tables = typename W::Tables;
  using Delay = typename W::Delay;
  static_assert(Front::kParts == 1);

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
    const Lanes zero = W::splat(0);
    pixel_ = error_ = {zero, zero, zero, zero, zero, zero, zero, zero};
    pixel_here_ = error_here_ = zero;
    for (uint32_t step = 0; step < way.steps; ++step) {
      gather_neighbours();
      const Window window = this->reader_.window(this->at_);
      uint32_t taken = 0;
      decode_channel<0>(window, taken);
      if constexpr (kChannels > 1) decode_channel<1>(window, taken);
      if constexpr (kChannels > 2) decode_channel<2>(window, taken);
      if constexpr (kChannels > 3) decode_channel<3>(window, taken);
      if (!this->advance(taken)) return false;
      this->sink_.put(step, 0, row_[0], column_[0], pixel_here_, active_[0]);
      this->next_column(0, way.period);
      this->sink_.end_step(step);
      delay_.store(way.last_lane, pixel_here_, error_here_, pixel_.n, error_.n);
    }
    return true;
  }

  // Collects the neighbouring samples and errors of each lane's pixel.
  L3_INLINE void gather_neighbours() {
    const typename Delay::Entry above = delay_.above(pixel_here_, error_here_, pixel_.n, error_.n);
    Front::slide(pixel_, pixel_here_, W::splat(above[0]), W::splat(above[2]));
    Front::slide(error_, error_here_, W::splat(above[1]), W::splat(above[3]));

    const auto at = this->find_place(0);
    const auto entering = W::lane_bits(Front::entering_block(at));
    if (entering) weights_.enter(entering, this->block_of(at), classes_);
    auto of_pixel = Front::upper_of(pixel_), of_error = Front::upper_of(error_);
    if (Front::is_at_edge(at, this->width_)) {
      const auto edges = Front::Edges::of(at.column, at.row, this->width_);
      of_pixel = Front::fix_edges(pixel_, edges, W::splat(0));
      of_error = Front::fix_edges(error_, edges, W::splat(W::kErrorBiases));
    }

    const DenseWindow<Lanes>&pixel = pixel_, &error = error_;
    W::template exchange<kChannels>(pixel.w, pixel.n, pixel.nw, of_pixel.ne, view_.near);
    W::template exchange<kChannels>(pixel.ww, of_pixel.nn, of_pixel.nne, pixel.nww, view_.far);
    W::template exchange<kChannels>(error.w, error.n, error.nw, of_error.ne, view_.near_errors);
    W::template exchange<kChannels>(error.ww, of_error.nn, view_.far_errors);
    W::template exchange<kChannels>(W::distances(pixel.w, pixel.nw), W::distances(pixel.n, pixel.nw),
                                    W::distances(pixel.n, of_pixel.ne), view_.slopes);
    pixel_here_ = error_here_ = W::splat(0);
  }

  template <uint32_t c>
  L3_INLINE void decode_channel(Window window, uint32_t& taken) {
    const Prediction of = predict<c>();
    const Lanes context = W::context(tables_, c, of.activity, view_.near[c], view_.near_errors[c], of.p, of.up);
    Lanes own, other;
    W::look_up(tables_, c, context, this->state_[0], own, other);
    finish<c>(of, W::decode_symbol(this->state_[0], own, other, active_[0]));
    this->refill(0, this->refills_[0], window, taken);
  }

  struct Prediction {
    Lanes p, up;  // `up`: all ones where it leans upwards
    Lanes activity;
  };
  template <uint32_t c>
  L3_INLINE Prediction predict() {
    const Lanes near_errors = view_.near_errors[c];
    Lanes activity = weights_.activity_start(c);
    activity = W::dot_magnitudes(near_errors, weights_.activity(c, 0), activity);
    activity = W::dot(view_.slopes[c], weights_.activity(c, 2), activity);

    Lanes sum = W::dot(view_.near[c], weights_.word(c, 0), weights_.start());
    sum = W::dot(view_.far[c], weights_.word(c, 1), sum);
    sum = W::dot(near_errors, weights_.word(c, kErrorWord), sum);
    sum = W::without_bias(weights_.word(c, kErrorWord), sum);
    sum = W::without_bias(weights_.word(c, kErrorWord + 1), sum);
    if constexpr (c > 1) sum = W::dot(view_.cross[c - 2], weights_.word(c, kCrossWord + 1), sum);

    // The terms of the channel before come last: it was decoded just now.
    Lanes far_errors = view_.far_errors[c];
    if constexpr (c == 1) far_errors = W::with_errors(far_errors, view_.error[0]);
    if constexpr (c > 1) far_errors = W::template with_errors<c>(far_errors, view_.error[c - 1], view_.error[c - 2]);
    sum = W::dot(far_errors, weights_.word(c, kErrorWord + 1), sum);
    if constexpr (c > 0) sum = W::dot(view_.cross[c - 1], weights_.word(c, kCrossWord), sum);
    Prediction of;
    W::split(sum, of.p, of.up);
    of.activity = W::dot_magnitudes(far_errors, weights_.activity(c, 1), activity);
    return of;
  }

  // Computes the sample and its error. The difference counts in the direction in which the prediction leans.
  template <uint32_t c>
  L3_INLINE void finish(const Prediction& of, Lanes symbol) {
    const Lanes sample = W::sample_of(of.p, of.up, symbol);
    const Lanes error = W::to_error(sample, of.p);
    view_.error[c] = error;
    view_.cross[c] = W::template with_byte<3>(view_.near[c], sample);
    pixel_here_ = W::template with_byte<c>(pixel_here_, sample);
    error_here_ = W::template with_byte<c>(error_here_, error);
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
  DenseWindow<Lanes> pixel_, error_;
  Lanes pixel_here_, error_here_;
  View view_;
};

}  // namespace l3
