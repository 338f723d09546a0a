// Prediction and colour transforms of the fast method over lanes (sections 7.1 and 7.2), for encoder and decoder.
#pragma once

#include "container/format.h"

namespace l3 {

// The neighbours in the row above.
template <class Lanes>
struct Above {
  Lanes n, nw, ne;
};

// Finds the neighbours in the row above. `n` is that row. Lane 31 of `before` is the NW of lane 0. Lane `edge` gets N
// as NE.
template <class W>
L3_INLINE Above<typename W::Lanes> neighbours(const typename W::Lanes& n, const typename W::Lanes& before,
                                              uint32_t edge) {
  typename W::Lanes ne = W::shift_down(n);
  if (edge != kLanes - 1) ne = W::choose_lane(edge, n, ne);
  return {n, W::shift_up(n, before), ne};
}

// The part of a prediction that depends only on the row above. For kPredictN and kPredictSmooth it is the whole
// prediction; for the others it is added to W.
template <class W>
L3_INLINE typename W::Lanes above_term(uint32_t predictor, const Above<typename W::Lanes>& above) {
  switch (predictor) {
    case kPredictW: return above.nw - above.nw;
    case kPredictN: return above.n;
    case kPredictGradient: return above.n - above.nw;
    case kPredictSmooth: return W::average(above.n, W::average(above.nw, above.ne));
    case kPredictThreeQuarters: return W::average(above.n, W::average(above.n, above.nw)) - above.nw;
    case kPredictTurn: return W::average(above.n, W::average(above.ne, above.nw)) - above.nw;
    default: return W::average(above.n, above.nw) - above.nw;
  }
}

// Reads `v` as a signed number of `bits` bits, and halves it, rounding down.
template <class W>
L3_INLINE typename W::Lanes half(const typename W::Lanes& v, uint32_t bits) {
  // If bits is 1, the shift would be by 16, which is undefined. A shift by 15 gives the same result.
  return W::shift_right_signed(W::shift_left(v, static_cast<int>(16 - bits)), static_cast<int>(smaller(17 - bits, 15)));
}

// Turns predicted samples into samples of the image, in place. `mask` is 2^bits - 1.
template <class W>
L3_INLINE void to_image(uint32_t transform, uint32_t bits, const typename W::Lanes& mask, typename W::Lanes* c) {
  using Lanes = typename W::Lanes;
  switch (transform) {
    case 1:
      c[0] = (c[0] + c[1]) & mask;
      c[2] = (c[2] + c[1]) & mask;
      break;
    case 2:
      c[0] = (c[0] + c[1]) & mask;
      c[2] = (c[2] + W::average(c[0], c[1])) & mask;
      break;
    case 3:
      c[2] = (c[2] + c[1]) & mask;
      c[0] = (c[0] + W::average(c[2], c[1])) & mask;
      break;
    case 4: {
      const Lanes t = c[1] - half<W>(c[2], bits);
      const Lanes green = (c[2] + t) & mask;
      const Lanes blue = (t - half<W>(c[0], bits)) & mask;
      c[0] = (c[0] + blue) & mask;
      c[1] = green;
      c[2] = blue;
      break;
    }
    default: break;
  }
}

// The inverse of to_image.
template <class W>
L3_INLINE void from_image(uint32_t transform, uint32_t bits, const typename W::Lanes& mask, typename W::Lanes* c) {
  using Lanes = typename W::Lanes;
  switch (transform) {
    case 1:
      c[0] = (c[0] - c[1]) & mask;
      c[2] = (c[2] - c[1]) & mask;
      break;
    case 2:
      c[2] = (c[2] - W::average(c[0], c[1])) & mask;
      c[0] = (c[0] - c[1]) & mask;
      break;
    case 3:
      c[0] = (c[0] - W::average(c[2], c[1])) & mask;
      c[2] = (c[2] - c[1]) & mask;
      break;
    case 4: {
      const Lanes orange = (c[0] - c[2]) & mask;
      const Lanes t = (c[2] + half<W>(orange, bits)) & mask;
      const Lanes green = (c[1] - t) & mask;
      c[1] = (t + half<W>(green, bits)) & mask;
      c[0] = orange;
      c[2] = green;
      break;
    }
    default: break;
  }
}

}  // namespace l3
