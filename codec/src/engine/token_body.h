// Decodes tiles of token models with a warp type W. Included by one source file for each warp type.
#pragma once

#include "engine/token_decode.h"
#include "engine/token_rows.h"
#include "engine/token_warp.h"

namespace l3 {

// A warp for tiles whose lanes all fit the first part.
template <class W>
struct OnePart : W {
  static constexpr uint32_t kParts = 1;
};

template <class W, uint32_t kChannels, TokenUse kUse>
Fault decode_tokens_as(const TileShape& shape, const TileEntry& entry, const TileOutput& out,
                       const TokenTables& model) {
  using Rows = TokenRows<W, token_words(kChannels)>;
  using Decoder = TokenDecoder<W, kChannels, kUse, Rows>;
  Rows rows(out, model);
  typename Decoder::Delay delay;
  typename W::Classes classes;
  const TokenView view(model);
  return Decoder(shape, entry, view, rows, delay, classes).decode();
}

template <class W>
Fault decode_tokens(const TileShape& shape, const TileEntry& entry, const TileOutput& out, const TokenTables& model) {
  if (model.literal) return decode_tokens_as<W, 1, TokenUse::literal>(shape, entry, out, model);
  if (model.hole) return decode_tokens_as<W, 1, TokenUse::holes>(shape, entry, out, model);
  return model.engine_channels == 1 ? decode_tokens_as<W, 1, TokenUse::plain>(shape, entry, out, model)
                                    : decode_tokens_as<W, kMaxChannels, TokenUse::plain>(shape, entry, out, model);
}

// Like decode_tokens(), but faster for tiles with few lanes, which are common in label maps.
template <class W>
Fault decode_tokens_of_few(const TileShape& shape, const TileEntry& entry, const TileOutput& out,
                           const TokenTables& model) {
  if (dense_lanes(entry.parameters) > W::kPartLanes || model.engine_channels > 1)
    return decode_tokens<W>(shape, entry, out, model);
  if (model.literal) return decode_tokens_as<OnePart<W>, 1, TokenUse::literal>(shape, entry, out, model);
  if (model.hole) return decode_tokens_as<OnePart<W>, 1, TokenUse::holes>(shape, entry, out, model);
  return decode_tokens_as<OnePart<W>, 1, TokenUse::plain>(shape, entry, out, model);
}

}  // namespace l3
