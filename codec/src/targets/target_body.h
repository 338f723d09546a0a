// The functions of a Target, except for decoding dense tiles, over warp types. Included by one source file for each
// target.
#pragma once

#include "container/check.h"
#include "engine/tile_decode.h"
#include "engine/tile_encode.h"
#include "targets/target.h"

namespace l3 {

// W is the warp of the fast method, S the vectors of the dense method's encoder.
template <class W, class S>
struct TargetBody {
  static uint32_t check(const uint8_t* bytes, uint64_t words) { return check_of<W>(bytes, words); }

  template <class Sample, uint32_t kChannels>
  static Fault decode_as(const TileShape& shape, const TileEntry& entry, const TileOutput& out) {
    typename W::Line line;
    return decode_tile<W, Sample, kChannels>(shape, entry, out, PixelWriter<W, Sample, kChannels>(shape, out), line);
  }

  template <class Sample, uint32_t kChannels>
  static TileChoice encode_as(const TileShape& shape, const TileInput& in, uint8_t* out) {
    typename W::Line line;
    return TileEncoder<W, Sample, kChannels>(shape, in, line).encode(out);
  }

  static Fault decode(const TileShape& shape, const TileEntry& entry, const TileOutput& out) {
    using Function = Fault (*)(const TileShape&, const TileEntry&, const TileOutput&);
    constexpr Function kFunctions[2][kMaxChannels] = {
        {decode_as<uint8_t, 1>, decode_as<uint8_t, 2>, decode_as<uint8_t, 3>, decode_as<uint8_t, 4>},
        {decode_as<uint16_t, 1>, decode_as<uint16_t, 2>, decode_as<uint16_t, 3>, decode_as<uint16_t, 4>}};
    return kFunctions[shape.bits > 8][shape.channels - 1](shape, entry, out);
  }

  static TileChoice encode(const TileShape& shape, const TileInput& in, uint8_t* out) {
    using Function = TileChoice (*)(const TileShape&, const TileInput&, uint8_t*);
    constexpr Function kFunctions[2][kMaxChannels] = {
        {encode_as<uint8_t, 1>, encode_as<uint8_t, 2>, encode_as<uint8_t, 3>, encode_as<uint8_t, 4>},
        {encode_as<uint16_t, 1>, encode_as<uint16_t, 2>, encode_as<uint16_t, 3>, encode_as<uint16_t, 4>}};
    return kFunctions[shape.bits > 8][shape.channels - 1](shape, in, out);
  }

  static constexpr Target as(const char* name, decltype(Target::decode_dense) decode_dense,
                             decltype(Target::decode_tokens) decode_tokens) {
    return {name, check, decode, decode_dense, decode_tokens, encode, kernels_of<S>()};
  }
};

}  // namespace l3
