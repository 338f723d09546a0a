// What the engine requires of a warp. The decoders of engine/ are written once, over these operations. Each processor
// target implements them once more, and so does CUDA in kernels/: portable, AVX2 and AVX-512 by replacing functions of
// VectorWarp, WordWarp and TokenWarp, CUDA in classes of its own. static_assert checks each one next to its definition.
//
// Not written once: sinks, which collect pixels into rows (SkewedRows here, others in kernels/), and fast tiles of
// samples up to 8 bits on GPUs, which kernels/src/decode_fast.cuh decodes with loops of its own. It shares only the
// constants of format.h with tile_decode.h. Other tiles that are not dense go through tile_decode.h on GPUs too.
#pragma once

#include <concepts>

#include "container/dense.h"
#include "container/format.h"

namespace l3 {

// Decodes constant, raw and fast tiles, and computes checks. vector_warp.h documents the functions.
template <class W>
concept FastMethodWarp = requires(typename W::Lanes a, typename W::Words words, const uint8_t* bytes, uint32_t n,
                                  const typename W::Widths& widths, typename W::Line& line,
                                  typename W::Reader& reader) {
  { a + a } -> std::same_as<typename W::Lanes>;
  { a - a } -> std::same_as<typename W::Lanes>;
  { a& a } -> std::same_as<typename W::Lanes>;
  { W::splat(n) } -> std::same_as<typename W::Lanes>;
  { W::average(a, a) } -> std::same_as<typename W::Lanes>;
  { W::shift_left(a, 1) } -> std::same_as<typename W::Lanes>;
  { W::shift_right_signed(a, 1) } -> std::same_as<typename W::Lanes>;
  { W::shift_up(a, a) } -> std::same_as<typename W::Lanes>;
  { W::shift_down(a) } -> std::same_as<typename W::Lanes>;
  { W::first(a) } -> std::same_as<typename W::Lanes>;
  { W::last(a) } -> std::same_as<typename W::Lanes>;
  { W::choose_lane(n, a, a) } -> std::same_as<typename W::Lanes>;
  { W::scan_add(a) } -> std::same_as<typename W::Lanes>;
  { W::template residuals<uint8_t>(bytes, widths, n) } -> std::same_as<typename W::Lanes>;
  { W::template residuals<uint16_t>(bytes, widths, n) } -> std::same_as<typename W::Lanes>;
  { W::bit_fields(bytes, uint64_t{n}, n, n, n) } -> std::same_as<typename W::Lanes>;
  { line.load(n, n) } -> std::same_as<typename W::Lanes>;
  line.store(n, n, a);
  { reader.window(n) } -> std::convertible_to<const uint8_t*>;
  { W::load_words(bytes) } -> std::same_as<typename W::Words>;
  { W::load_words_part(bytes, n) } -> std::same_as<typename W::Words>;
  { W::first_words(n, words, words) } -> std::same_as<typename W::Words>;
  { W::rotate_left_15(words) } -> std::same_as<typename W::Words>;
  { W::word_lane_numbers() } -> std::same_as<typename W::Words>;
  { W::sum_words(words) } -> std::same_as<uint32_t>;
};

// What a Wavefront requires. word_warp.h documents the functions.
template <class W>
concept WavefrontWarp = requires(typename W::Lanes a, typename W::Mask mask, uint32_t n, const uint8_t* bytes,
                                 typename W::Reader::Window window, typename W::Classes& classes,
                                 typename W::Reader& reader) {
  { a + a } -> std::same_as<typename W::Lanes>;
  { a - a } -> std::same_as<typename W::Lanes>;
  { a* a } -> std::same_as<typename W::Lanes>;
  { a& a } -> std::same_as<typename W::Lanes>;
  { a | a } -> std::same_as<typename W::Lanes>;
  { a ^ a } -> std::same_as<typename W::Lanes>;
  { a << 1 } -> std::same_as<typename W::Lanes>;
  { a >> 1 } -> std::same_as<typename W::Lanes>;
  { a + constant<1> } -> std::same_as<typename W::Lanes>;
  { a& constant<1> } -> std::same_as<typename W::Lanes>;
  { W::splat(n) } -> std::same_as<typename W::Lanes>;
  { W::splat(constant<1>) } -> std::same_as<typename W::Lanes>;
  { W::numbers(n) } -> std::same_as<typename W::Lanes>;
  { W::uniform(n) } -> std::same_as<uint32_t>;
  { W::less(a, n) } -> std::same_as<typename W::Mask>;
  { W::less_small(a, a) } -> std::same_as<typename W::Mask>;
  { W::at_least(a, n) } -> std::same_as<typename W::Mask>;
  { W::equal(a, n) } -> std::same_as<typename W::Mask>;
  { W::below_floor(a) } -> std::same_as<typename W::Mask>;
  { W::both(mask, mask) } -> std::same_as<typename W::Mask>;
  { W::either(mask, mask) } -> std::same_as<typename W::Mask>;
  { W::and_not(mask, mask) } -> std::same_as<typename W::Mask>;
  { W::select(mask, a, a) } -> std::same_as<typename W::Lanes>;
  { W::bits(mask) } -> std::same_as<uint32_t>;
  { W::template byte_of<2>(a) } -> std::same_as<typename W::Lanes>;
  { W::top_byte(a) } -> std::same_as<typename W::Lanes>;
  { W::load_states(bytes, n, n) } -> std::same_as<typename W::Lanes>;
  W::refill(a, mask, window, n);
  { reader.window(n) } -> std::same_as<typename W::Reader::Window>;
  classes.store(n, n, a);
  { classes[n] } -> std::same_as<uint32_t>;
  { classes.of(a, W::lane_bits(mask)) } -> std::same_as<typename W::Lanes>;
  requires W::kParts* W::kPartLanes == kLanes || W::kParts == 1;
  { W::kAllBits } -> std::convertible_to<uint32_t>;
};

// Decodes dense tiles with models of kind 0 on a GPU. Processors do it with the operations of dense_warp.h.
template <class W>
concept DenseMethodWarp = WavefrontWarp<W> &&
    requires(typename W::Lanes a, typename W::Mask mask, uint32_t n, const typename W::Tables& tables,
             typename W::Delay& delay, typename W::Classes& classes,
             typename W::template Weights<kMaxChannels>& weights) {
  { W::dot(a, weights.word(n, n), a) } -> std::same_as<typename W::Lanes>;
  { W::without_bias(weights.word(n, n), a) } -> std::same_as<typename W::Lanes>;
  { W::dot(a, weights.activity(n, n), a) } -> std::same_as<typename W::Lanes>;
  { W::dot_magnitudes(a, weights.activity(n, n), a) } -> std::same_as<typename W::Lanes>;
  { weights.start() } -> std::same_as<typename W::Lanes>;
  { weights.activity_start(n) } -> std::same_as<typename W::Lanes>;
  weights.enter(W::lane_bits(mask), a, classes);
  W::split(a, a, a);
  { W::to_error(a, a) } -> std::same_as<typename W::Lanes>;
  { W::distances(a, a) } -> std::same_as<typename W::Lanes>;
  W::template exchange<kMaxChannels>(a, a, a, a, &a);
  W::template exchange<kMaxChannels>(a, a, a, &a);
  W::template exchange<kMaxChannels>(a, a, &a);
  { W::template with_byte<1>(a, a) } -> std::same_as<typename W::Lanes>;
  { W::with_errors(a, a) } -> std::same_as<typename W::Lanes>;
  { W::template with_errors<2>(a, a, a) } -> std::same_as<typename W::Lanes>;
  { W::context(tables, n, a, a, a, a, a) } -> std::same_as<typename W::Lanes>;
  W::look_up(tables, n, a, a, a, a);
  W::look_up_class(tables, n, a, a, a, a);
  delay.clear(n);
  { delay.above(a, a, a, a)[n] } -> std::convertible_to<uint32_t>;
  delay.store(n, a, a, a, a);
};

// Decodes dense tiles with token models on a GPU. Processors do it with the operations of token_warp.h.
template <class W>
concept TokenMethodWarp = WavefrontWarp<W> &&
    requires(typename W::Lanes a, typename W::Mask mask, uint32_t n, const typename W::TokenTables& tables,
             typename W::template TokenDelay<4>& delay, typename W::Classes& classes,
             typename W::template TokenWeights<kMaxChannels>& weights) {
  { W::same(a, a) } -> std::same_as<typename W::Mask>;
  { W::any(mask) } -> std::convertible_to<bool>;
  { W::select_or_zero(mask, a) } -> std::same_as<typename W::Lanes>;
  { W::at_most(a, a) } -> std::same_as<typename W::Lanes>;
  { W::shifted_left(a, a) } -> std::same_as<typename W::Lanes>;
  { W::shifted_right(a, a) } -> std::same_as<typename W::Lanes>;
  { W::dot_pairs(a, weights.pair(n, n, n), a) } -> std::same_as<typename W::Lanes>;
  { W::dot_values(a, weights.pair(n, n, n), a) } -> std::same_as<typename W::Lanes>;
  { W::dot_pairs(a, W::splat(weights.activity(n, n)), a) } -> std::same_as<typename W::Lanes>;
  { weights.change() } -> std::same_as<bool>;
  weights.enter(n, W::lane_bits(mask), a, classes);
  { W::magnitude_pairs(a) } -> std::same_as<typename W::Lanes>;
  { W::lower_halves(a, a) } -> std::same_as<typename W::Lanes>;
  { W::upper_halves(a, a) } -> std::same_as<typename W::Lanes>;
  { W::two_halves(tables, a, a) } -> std::same_as<typename W::Lanes>;
  { W::distance(a, a) } -> std::same_as<typename W::Lanes>;
  { W::with_magnitude(a) } -> std::same_as<typename W::Lanes>;
  { W::sign_pattern(tables, a, a, a, a, a) } -> std::same_as<typename W::Lanes>;
  { W::template add_if_same<1>(tables, a, a, a) } -> std::same_as<typename W::Lanes>;
  { W::token_level(a) } -> std::same_as<typename W::Lanes>;
  { W::token_error(a) } -> std::same_as<typename W::Lanes>;
  { W::bit_length_at_most_15(a) } -> std::same_as<typename W::Lanes>;
  W::split_tokens(a, n, a, a);
  W::look_up_match(tables, a, a, a, a, a);
  W::look_up_literal(tables, a, a, a, a);
  W::look_up_token(tables, n, a, a, a, a);
  W::look_up_class(tables.all(), n, a, a, a, a);
  { W::token_row(tables, n, a, a) } -> std::same_as<typename W::Lanes>;
  delay.clear(n);
  { delay.above({})[n] } -> std::same_as<typename W::Lanes>;
  delay.above({}).put(a);
  delay.store(n, delay.above({}));
};

}  // namespace l3
