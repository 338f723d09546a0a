// Matches in token tiles (section 15.1 of the spec): pixels that repeat a neighbour.
#pragma once

#include "token_numbers.cuh"

namespace l3 {

template <class W, uint32_t kChannels, TokenUse kUse, class Sink>
class TokenMatches : protected TokenNumbers<W, kChannels, kUse, Sink> {
 protected:
  using Base = TokenNumbers<W, kChannels, kUse, Sink>;
  using Base::activity_, Base::escaped_, Base::pixel, Base::pixel_here_, Base::tables_, Base::to_decode_;
  using Base::Base, Base::kLiteral, Base::kMayHaveHoles, Base::kParts, Base::kWords;
  using typename Base::At, typename Base::Lanes, typename Base::Mask, typename Base::Window;

  // Decodes matches: what the pixels repeat. Lanes whose pixel repeats nothing escape.
  L3_INLINE void decode_match(Window window, uint32_t& taken) {
    Lanes own[kParts], other[kParts];
    L3_FOR_USED_PARTS {
      if (kParts > 1 && !W::any(to_decode_[part])) continue;
      Lanes octave = W::splat(0);
      if constexpr (!kLiteral) {
        if (tables_.match_by_activity()) {
          activity_[part] = this->template prepare_activity<0>(part);
          octave = W::token_level(activity_[part]) >> 2;
        }
      }
      W::look_up_match(tables_, equalities(part), octave, this->bucket_of(constant<kTokenBuckets>, part), own[part],
                       other[part]);
    }
    L3_FOR_USED_PARTS {
      escaped_[part] = to_decode_[part];
      if (kParts > 1 && !W::any(to_decode_[part])) continue;
      const Lanes symbol = this->decode_symbol(constant<kTokenBuckets>, part, own[part], other[part], to_decode_[part]);
      this->refill(part, W::both(to_decode_[part], this->refills_[part]), window, taken);
      const Mask is_n = W::equal(symbol, kMatchN), is_ne = W::equal(symbol, kMatchNe),
                 is_nw = W::equal(symbol, kMatchNw);
      for (uint32_t word = 0; word < kWords; ++word) {
        const Lanes w_or_n = W::select(is_n, pixel(At::n, part, word), pixel(At::w, part, word));
        const Lanes matched =
            W::select(is_nw, pixel(At::nw, part, word), W::select(is_ne, pixel(At::ne, part, word), w_or_n));
        pixel_here_[part][word] = W::select(to_decode_[part], matched, pixel_here_[part][word]);
      }
      const Mask repeats = W::less(symbol, uint32_t{kMatchNone});
      Mask known = repeats;
      if constexpr (kMayHaveHoles) {
        if (this->has_holes()) {
          const Mask hole = W::both(to_decode_[part], W::equal(symbol, kMatchHole));
          known = W::either(known, hole);
          pixel_here_[part][0] =
              W::select(hole, W::splat((tables_.hole_value() ^ kValueBias) | kValueBias << 16), pixel_here_[part][0]);
        }
      }
      escaped_[part] = W::and_not(to_decode_[part], known);
    }
  }

 private:
  // Which pairs of neighbours are equal: one bit for each of the eight pairs of section 14.4.
  L3_INLINE Lanes equalities(uint32_t part) const {
    return same(At::w, At::n, constant<1>, part) | same(At::n, At::ne, constant<2>, part) |
           same(At::n, At::nw, constant<4>, part) | same(At::w, At::nw, constant<8>, part) |
           same(At::ww, At::w, constant<16>, part) | same(At::nn, At::n, constant<32>, part) |
           same(At::nne, At::ne, constant<64>, part) | same(At::nww, At::nw, constant<128>, part);
  }
  template <uint32_t kBit>
  L3_INLINE Lanes same(At a, At b, Constant<kBit> bit, uint32_t part) const {
    Mask all = W::same(pixel(a, part, 0), pixel(b, part, 0));
    for (uint32_t word = 1; word < kWords; ++word) {
      all = W::both(all, W::same(pixel(a, part, word), pixel(b, part, word)));
    }
    return W::select_or_zero(all, W::splat(bit));
  }
};

}  // namespace l3
