// Matches in token tiles (section 15.1 of the spec): pixels that repeat a neighbour, or follow another pixel.
#pragma once

#include "token_numbers.cuh"

namespace l3 {

template <class W, uint32_t kChannels, TokenUse kUse, TokenMore kMore, class Sink>
class TokenMatches : protected TokenNumbers<W, kChannels, kUse, kMore, Sink> {
 protected:
  using Base = TokenNumbers<W, kChannels, kUse, kMore, Sink>;
  using Base::activity_, Base::escaped_, Base::pixel, Base::pixel_here_, Base::tables_, Base::to_decode_;
  using Base::Base, Base::kLiteral, Base::kHoles, Base::kParts, Base::kWords;
  using typename Base::At, typename Base::Lanes, typename Base::Mask, typename Base::Window;

  // Decodes matches: what the pixels repeat. Lanes whose pixel repeats nothing escape.
  L3_INLINE void decode_match(uint32_t step, Window window, uint32_t& taken) {
    Lanes own[kParts], other[kParts];
    L3_FOR_USED_PARTS {
      if (kParts > 1 && !W::any(to_decode_[part])) continue;
      Lanes octave = W::splat(0);
      if constexpr (!kLiteral) {
        if (!Base::kFollow && tables_.match_by_activity()) {
          activity_[part] = this->template prepare_activity<0>(part);
          octave = W::token_level(activity_[part]) >> 2;
        }
      }
      if constexpr (Base::kFollow) {
        this->find_follows(step);
        octave = W::splat(this->follow_.number());
      }
      W::look_up_match(tables_, twice_equalities(part), octave, this->bucket_of(constant<kTokenBuckets>, part),
                       own[part], other[part]);
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
        Lanes matched =
            W::select(is_nw, pixel(At::nw, part, word), W::select(is_ne, pixel(At::ne, part, word), w_or_n));
        if constexpr (Base::kFollow) {
          matched = W::select(W::equal(symbol, kMatchFollow), W::splat(this->follow_.followed(word)), matched);
        }
        pixel_here_[part][word] = W::select(to_decode_[part], matched, pixel_here_[part][word]);
      }
      const Mask repeats = W::less(symbol, uint32_t{kMatchNone});
      Mask known = repeats;
      if constexpr (kHoles) {
        const Mask hole = W::both(to_decode_[part], W::equal(symbol, kMatchHole));
        known = W::either(known, hole);
        pixel_here_[part][0] = W::select(hole, W::splat(tables_.hole_value()), pixel_here_[part][0]);
      }
      if constexpr (Base::kFollow) {
        known = W::either(known, W::both(W::equal(symbol, kMatchFollow), this->follow_.number() != 0));
      }
      escaped_[part] = W::and_not(to_decode_[part], known);
    }
  }

 private:
  // Finds what the pixels that are to be decoded follow.
  L3_INLINE void find_follows(uint32_t step) {
    const auto at = [this](At role) {
      typename FollowedPixels<kChannels>::Pixel found;
      for (uint32_t word = 0; word < kWords; ++word) found.words[word] = pixel(role, 0, word).v;
      return found;
    };
    this->follow_.find(step, this->column_[0].v, this->row_[0].v, to_decode_[0],
                       {at(At::w), at(At::n), at(At::nw), at(At::ne)});
  }

  // Which pairs of neighbours are equal: twice one bit for each of the eight pairs of section 14.4. Two sums depend
  // less on each other.
  L3_INLINE Lanes twice_equalities(uint32_t part) const {
    Lanes a = W::splat(0), b = W::splat(0);
    add_if_same<2>(At::w, At::n, part, a);
    add_if_same<4>(At::n, At::ne, part, b);
    add_if_same<8>(At::n, At::nw, part, a);
    add_if_same<16>(At::w, At::nw, part, b);
    add_if_same<32>(At::ww, At::w, part, a);
    add_if_same<64>(At::nn, At::n, part, b);
    add_if_same<128>(At::nne, At::ne, part, a);
    add_if_same<256>(At::nww, At::nw, part, b);
    return a + b;
  }
  template <uint32_t kNumber>
  L3_INLINE void add_if_same(At a, At b, uint32_t part, Lanes& sum) const {
    if constexpr (kWords == 1) {
      sum = W::template add_if_same<kNumber>(tables_, pixel(a, part, 0), pixel(b, part, 0), sum);
    } else {
      Mask all = W::same(pixel(a, part, 0), pixel(b, part, 0));
      for (uint32_t word = 1; word < kWords; ++word) {
        all = W::both(all, W::same(pixel(a, part, word), pixel(b, part, word)));
      }
      sum = sum | W::select_or_zero(all, W::splat(constant<kNumber>));
    }
  }
};

}  // namespace l3
