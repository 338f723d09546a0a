// The functions of a Target, except for decoding dense tiles, over a warp type. Included by one source file for each
// target.
#pragma once

#include "container/check.h"
#include "engine/tile_decode.h"
#include "targets/target.h"

namespace l3 {

// W is the warp of the fast method.
template <class W>
struct TargetBody {
  static uint32_t check(const uint8_t* bytes, uint64_t words) { return check_of<W>(bytes, words); }

  template <class Sample, uint32_t kChannels>
  static Fault decode_as(const TileShape& shape, const TileEntry& entry, const TileOutput& out) {
    typename W::Line line;
    return decode_tile<W, Sample, kChannels>(shape, entry, out, PixelWriter<W, Sample, kChannels>(shape, out), line);
  }

  static Fault decode(const TileShape& shape, const TileEntry& entry, const TileOutput& out) {
    using Function = Fault (*)(const TileShape&, const TileEntry&, const TileOutput&);
    constexpr Function kFunctions[2][kMaxChannels] = {
        {decode_as<uint8_t, 1>, decode_as<uint8_t, 2>, decode_as<uint8_t, 3>, decode_as<uint8_t, 4>},
        {decode_as<uint16_t, 1>, decode_as<uint16_t, 2>, decode_as<uint16_t, 3>, decode_as<uint16_t, 4>}};
    return kFunctions[shape.bits > 8][shape.channels - 1](shape, entry, out);
  }

  static constexpr Target with(DecodeWith<DenseKind> decode_dense, DecodeWith<TokenKind> decode_tokens,
                               DecodeWith<BitKind> decode_bits) {
    return {check, decode, decode_dense, decode_tokens, decode_bits};
  }
};

}  // namespace l3
