// Decoding of tiles with token models over a warp type. Included by one file for each such type.
#pragma once

#include "token_rows.h"
#include "token_warp.h"

namespace l3 {

template <class W, uint32_t kChannels, bool kLiteral>
Fault decode_tokens_as(const TileShape& shape, const TileEntry& entry, const TileOutput& out,
                       const TokenTables& model) {
  using Rows = TokenRows<W, token_words(kChannels)>;
  using Decoder = TokenDecoder<W, kChannels, kLiteral, Rows>;
  Rows rows(out, model);
  typename Decoder::Delay delay;
  typename W::Classes classes;
  const TokenView view(model);
  return Decoder(shape, entry, view, rows, delay, classes).decode();
}

template <class W>
Fault decode_tokens(const TileShape& shape, const TileEntry& entry, const TileOutput& out, const TokenTables& model) {
  if (model.literal) return decode_tokens_as<W, 1, true>(shape, entry, out, model);
  using Function = Fault (*)(const TileShape&, const TileEntry&, const TileOutput&, const TokenTables&);
  constexpr Function kFunctions[kMaxChannels] = {decode_tokens_as<W, 1, false>, decode_tokens_as<W, 2, false>,
                                                 decode_tokens_as<W, 3, false>, decode_tokens_as<W, 4, false>};
  return kFunctions[model.engine_channels - 1](shape, entry, out, model);
}

}  // namespace l3
