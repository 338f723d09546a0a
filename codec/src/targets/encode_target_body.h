// The functions of an EncodeTarget over warp types. Included by one source file for each target.
#pragma once

#include "container/check.h"
#include "engine/tile_encode.h"
#include "targets/encode_target.h"

namespace l3 {

// W is the warp of the fast method, S the vectors of the encoders with models.
template <class W, class S>
struct EncodeTargetBody {
  static uint32_t check(const uint8_t* bytes, uint64_t words) { return check_of<W>(bytes, words); }

  template <class Sample, uint32_t kChannels>
  static TileChoice encode_as(const TileShape& shape, const TileInput& in, uint8_t* out) {
    typename W::Line line;
    return TileEncoder<W, Sample, kChannels>(shape, in, line).encode(out);
  }

  static TileChoice encode(const TileShape& shape, const TileInput& in, uint8_t* out) {
    using Function = TileChoice (*)(const TileShape&, const TileInput&, uint8_t*);
    constexpr Function kFunctions[2][kMaxChannels] = {
        {encode_as<uint8_t, 1>, encode_as<uint8_t, 2>, encode_as<uint8_t, 3>, encode_as<uint8_t, 4>},
        {encode_as<uint16_t, 1>, encode_as<uint16_t, 2>, encode_as<uint16_t, 3>, encode_as<uint16_t, 4>}};
    return kFunctions[shape.bits > 8][shape.channels - 1](shape, in, out);
  }

  static constexpr EncodeTarget get() { return {check, encode, kernels_of<S>(), token_kernels_of<S>()}; }
};

}  // namespace l3
