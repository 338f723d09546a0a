// The numbers of escaped pixels in token tiles (sections 15.2 and 15.3 of the spec): predictions, contexts, and tokens
// with raw bits.
#pragma once

#include "token_blocks.cuh"

namespace l3 {

template <class W, uint32_t kChannels, TokenUse kUse, TokenMore kMore, class Sink>
class TokenNumbers : protected TokenBlocks<W, kChannels, kUse, kMore, Sink> {
 protected:
  using Base = TokenBlocks<W, kChannels, kUse, kMore, Sink>;
  using Base::Base, Base::kLiteral, Base::kParts;
  using Base::error, Base::error_here_, Base::pixel_here_, Base::state_, Base::tables_, Base::value, Base::weights_;
  using typename Base::At, typename Base::Lanes, typename Base::Mask, typename Base::Window;

  // Decodes the numbers of the escaped pixels.
  L3_INLINE void decode_numbers(Window window, uint32_t& taken) {
    decode_channel<0>(window, taken);
    if constexpr (kChannels > 1) decode_channel<1>(window, taken);
    if constexpr (kChannels > 2) {
      if (this->channels() > 2) decode_channel<2>(window, taken);
    }
    if constexpr (kChannels > 3) {
      if (this->channels() > 3) decode_channel<3>(window, taken);
    }
  }

  // The activity, from the terms of this channel's own neighbours.
  template <uint32_t c>
  L3_INLINE Lanes prepare_activity(uint32_t part) {
    constexpr uint32_t word = c / 2;
    Lanes activity = W::splat(constant<kActivityFloor>);
    const auto add = [&](uint32_t i, Lanes terms) {
      activity = W::dot_pairs(terms, W::splat(weights_.activity(c, i)), activity);
    };
    add(0, magnitudes<c>(error(At::w, part, word), error(At::n, part, word)));
    add(1, magnitudes<c>(error(At::nw, part, word), error(At::ne, part, word)));
    add(2, magnitudes<c>(error(At::ww, part, word), error(At::nn, part, word)));
    const auto value_at = [&](At at) { return half_of<c>(value(at, part, word)); };
    const Lanes n = value_at(At::n), nw = value_at(At::nw);
    add(4, W::two_halves(tables_, W::distance(value_at(At::w), nw), W::distance(n, nw)));
    add(5, W::distance(n, value_at(At::ne)));
    return activity;
  }

  Mask escaped_[kParts];  // the lanes whose pixel is coded as numbers
  Lanes activity_[kParts];

 private:
  template <uint32_t c>
  L3_INLINE static Lanes pair(Lanes a, Lanes b) {
    return c % 2 == 0 ? W::lower_halves(a, b) : W::upper_halves(a, b);
  }
  // The magnitudes of two errors. An error of one channel has its own in the upper half.
  template <uint32_t c>
  L3_INLINE static Lanes magnitudes(Lanes a, Lanes b) {
    return kChannels == 1 ? W::upper_halves(a, b) : W::magnitude_pairs(pair<c>(a, b));
  }

  // The lower or upper 16 bits of each lane's word of values.
  template <uint32_t c>
  L3_INLINE static Lanes half_of(Lanes word) {
    return kChannels == 1 ? word : c % 2 == 0 ? word & constant<0xFFFF> : word >> 16;
  }
  template <uint32_t c>
  L3_INLINE static Lanes in_place(Lanes half) {
    return c % 2 == 0 ? half : half << 16;
  }
  // Replaces a channel's 16 bits in a word of two channels, in the lanes of the mask.
  template <uint32_t c>
  L3_INLINE static Lanes with_half(Lanes word, Lanes half, Mask mask) {
    const Lanes rest = c % 2 == 0 ? word & constant<0xFFFF0000> : word & constant<0xFFFF>;
    return W::select(mask, rest | in_place<c>(half), word);
  }

  template <uint32_t c>
  L3_INLINE void decode_channel(Window window, uint32_t& taken) {
    Lanes p[kParts], up[kParts], own[kParts], other[kParts], number[kParts], raw_bits[kParts];
    Mask is_raw[kParts];
    L3_FOR_USED_PARTS {
      if (kParts > 1 && !W::any(escaped_[part])) continue;
      const Lanes bucket = this->bucket_of(constant<kTokenBuckets>, part);
      if constexpr (kLiteral) {
        const Lanes w = W::at_most(this->pixel_[part][0].w, W::splat(constant<kLiteralContexts - 1>));
        W::look_up_literal(tables_, w, bucket, own[part], other[part]);
      } else {
        predict<c>(part, p[part], up[part]);
        const Lanes context = context_of<c>(part, p[part], up[part]);
        W::look_up_token(tables_, c, context, bucket, own[part], other[part]);
      }
    }
    bool any_raw = false;
    L3_FOR_USED_PARTS {
      is_raw[part] = escaped_[part];
      if (kParts > 1 && !W::any(escaped_[part])) continue;
      const Lanes token = this->decode_symbol(constant<kTokenBuckets>, part, own[part], other[part], escaped_[part]);
      this->refill(part, W::both(escaped_[part], this->refills_[part]), window, taken);
      const Mask direct = W::less(token, kDirectTokens);
      is_raw[part] = W::and_not(escaped_[part], direct);
      any_raw = any_raw || W::any(is_raw[part]);
      number[part] = token;
      raw_bits[part] = ((token - W::splat(constant<kDirectTokens>)) >> 1) + constant<4>;
    }
    if (any_raw) {
      L3_FOR_USED_PARTS {
        if (kParts > 1 && !W::any(is_raw[part])) continue;
        const Lanes count = W::select_or_zero(is_raw[part], raw_bits[part]);
        const Lanes raw = state_[part] & (W::shifted_left(W::splat(constant<1>), count) - W::splat(constant<1>));
        const Lanes long_number = W::shifted_left((number[part] & constant<1>) | constant<2>, count) | raw;
        number[part] = W::select(is_raw[part], long_number, number[part]);
        state_[part] = W::shifted_right(state_[part], count);
        this->refill(part, W::both(is_raw[part], this->refills_[part]), window, taken);
      }
    }
    L3_FOR_USED_PARTS {
      if (kParts == 1 || W::any(escaped_[part])) finish<c>(part, p[part], up[part], number[part]);
    }
  }

  template <uint32_t c>
  L3_INLINE void predict(uint32_t part, Lanes& p, Lanes& up) {
    constexpr uint32_t word = c / 2;
    Lanes sum = W::splat(constant<(1u << kWeightShift >> 1)>);  // one half, for rounding
    const bool is_prepared = c == 0 && !Base::kFollow && this->has_match() && tables_.match_by_activity();
    Lanes activity = is_prepared ? activity_[part] : prepare_activity<c>(part);
    const auto add = [&](uint32_t i, Lanes pairs) { sum = W::dot_pairs(pairs, weights_.pair(c, i, part), sum); };
    const auto add_values = [&](uint32_t i, At a, At b) {
      const Lanes v = value(a, part, word), w = value(b, part, word);
      sum =
          W::dot_values(kChannels == 1 ? W::two_halves(tables_, v, w) : pair<c>(v, w), weights_.pair(c, i, part), sum);
    };
    add_values(0, At::w, At::n);
    add_values(1, At::nw, At::ne);
    add_values(2, At::ww, At::nn);
    add_values(3, At::nne, At::nww);
    add(kErrorPair, pair<c>(error(At::w, part, word), error(At::n, part, word)));
    add(kErrorPair + 1, pair<c>(error(At::nw, part, word), error(At::ne, part, word)));
    add(kErrorPair + 2, pair<c>(error(At::ww, part, word), error(At::nn, part, word)));
    if constexpr (c > 0) {
      Lanes before = half_of<c - 1>(error_here_[part][(c - 1) / 2]);
      if constexpr (c > 1) before = before | half_of<c - 2>(error_here_[part][(c - 2) / 2]) << 16;
      add(kCrossErrorPair, before);
      activity = W::dot_pairs(W::magnitude_pairs(before), W::splat(weights_.activity(c, 3)), activity);
      add_cross<c - 1>(part, c, kCrossPair, sum);
      if constexpr (c > 1) add_cross<c - 2>(part, c, kCrossPair + 2, sum);
    }
    W::split_tokens(sum, tables_.max_value(c), p, up);
    activity_[part] = activity;
  }
  template <uint32_t kFrom>
  L3_INLINE void add_cross(uint32_t part, uint32_t c, uint32_t i, Lanes& sum) {
    constexpr uint32_t word = kFrom / 2;
    const Lanes w_n = pair<kFrom>(value(At::w, part, word), value(At::n, part, word));
    const Lanes nw_here = pair<kFrom>(value(At::nw, part, word), pixel_here_[part][word]);
    sum = W::dot_values(w_n, weights_.pair(c, i, part), sum);
    sum = W::dot_values(nw_here, weights_.pair(c, i + 1, part), sum);
  }

  template <uint32_t c>
  L3_INLINE Lanes context_of(uint32_t part, Lanes p, Lanes up) {
    const Lanes level = W::token_level(activity_[part]);
    if (!tables_.grouped(c)) return level;
    constexpr uint32_t word = c / 2;
    const Lanes max_value = W::splat(tables_.max_value(c));
    const Lanes distance = (p ^ up) & max_value;  // max_value - p if the prediction leans upwards
    const Lanes near = pair<c>(error(At::w, part, word), error(At::n, part, word)),
                far = pair<c>(error(At::nw, part, word), error(At::ne, part, word));
    const Lanes pattern = W::sign_pattern(tables_, half_of<c>(value(At::w, part, word)),
                                          half_of<c>(value(At::n, part, word)), p, near, far);
    return level + W::token_row(tables_, c, W::bit_length_at_most_15(distance), (pattern ^ up) & constant<2 * 63>);
  }

  // Odd numbers go in the direction in which the prediction leans.
  template <uint32_t c>
  L3_INLINE void finish(uint32_t part, Lanes p, Lanes up, Lanes number) {
    const Lanes max_value = W::splat(tables_.max_value(c));
    Lanes& here = pixel_here_[part][c / 2];
    if constexpr (kLiteral) {
      here = W::select(escaped_[part], number & max_value, here);
    } else {
      const Lanes odd = W::splat(0) - (number & constant<1>);
      const Lanes difference = (number >> 1) ^ odd;  // for a prediction that does not lean upwards
      const Lanes decoded = (p + (difference ^ up) - up) & max_value;
      const Lanes its_error = W::token_error(decoded - p);
      if constexpr (kChannels == 1) {
        here = W::select(escaped_[part], decoded, here);
        error_here_[part][0] = W::select_or_zero(escaped_[part], W::with_magnitude(its_error));
      } else {
        here = with_half<c>(here, decoded, escaped_[part]);
        error_here_[part][c / 2] =
            error_here_[part][c / 2] | W::select_or_zero(escaped_[part], in_place<c>(its_error & constant<0xFFFF>));
      }
    }
  }
};

}  // namespace l3
