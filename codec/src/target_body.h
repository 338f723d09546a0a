// The functions of a Target over a warp type. Included by one file for each target.
#pragma once

#include "check.h"
#include "dense_decode.h"
#include "skewed_rows.h"
#include "target.h"
#include "tile_decode.h"
#include "tile_encode.h"

namespace l3 {

// Over the warp of the fast method, that of the dense method and the vectors of its encoder.
template <class W, class D, class S>
struct TargetBody {
  static uint32_t check(const uint8_t* bytes, uint64_t words) { return check_of<W>(bytes, words); }

  template <class Sample, uint32_t kChannels>
  static Fault decode_as(const TileShape& shape, const TileEntry& entry, const TileOutput& out) {
    typename W::Line line;
    return decode_tile<W, Sample, kChannels>(shape, entry, out, line);
  }

  template <class Sample, uint32_t kChannels>
  static TileChoice encode_as(const TileShape& shape, const TileInput& in, uint8_t* out) {
    typename W::Line line;
    return TileEncoder<W, Sample, kChannels>(shape, in, line).encode(out);
  }

  template <uint32_t kChannels>
  static Fault decode_dense_as(const TileShape& shape, const TileEntry& entry, const TileOutput& out,
                               const DenseTables& model) {
    SkewedRows<D, kChannels> rows(out);
    typename D::Delay delay;
    typename D::Classes classes;
    return DenseDecoder<D, kChannels, SkewedRows<D, kChannels>>(shape, entry, model, rows, delay, classes).decode();
  }

  static Fault decode(const TileShape& shape, const TileEntry& entry, const TileOutput& out, const DenseTables* model) {
    if (entry.method == Method::dense) {
      using Function = Fault (*)(const TileShape&, const TileEntry&, const TileOutput&, const DenseTables&);
      constexpr Function kDense[kMaxChannels] = {decode_dense_as<1>, decode_dense_as<2>, decode_dense_as<3>,
                                                 decode_dense_as<4>};
      return kDense[shape.channels - 1](shape, entry, out, *model);
    }
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

  static constexpr Target as(const char* name) { return {name, check, decode, encode, kernels_of<S>()}; }
};

}  // namespace l3
