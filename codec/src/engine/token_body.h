// Decodes tiles of token models with a warp type W. Included by one source file for each warp type.
#pragma once

#include "engine/token_lanes.h"
#include "engine/token_loop.h"
#include "engine/token_rows.h"

namespace l3 {

template <class W, uint32_t kChannels, TokenUse kUse>
Fault decode_tokens_as(const TileShape& shape, const TileEntry& entry, const TileOutput& out,
                       const TokenTables& model) {
  using Rows = TokenRows<W, kChannels>;
  Rows rows(out, model);
  typename W::Classes classes;
  return TokenLoop<W, kChannels, kUse, Rows>(shape, entry, model, rows, classes).decode();
}

template <class W>
Fault decode_one_channel(const TileShape& shape, const TileEntry& entry, const TileOutput& out,
                         const TokenTables& model) {
  if (model.literal) return decode_tokens_as<W, 1, TokenUse::literal>(shape, entry, out, model);
  if (model.hole) return decode_tokens_as<W, 1, TokenUse::holes>(shape, entry, out, model);
  return decode_tokens_as<W, 1, TokenUse::plain>(shape, entry, out, model);
}

template <class W, uint32_t kCount, TokenUse kUse>
Fault decode_few_lanes_as(const TileShape& shape, const TileEntry& entry, const TileOutput& out,
                          const TokenTables& model) {
  using Rows = TokenRows<W, 1>;
  Rows rows(out, model);
  typename W::Classes classes;
  return TokenLanes<W, kCount, kUse, Rows>(shape, entry, model, rows, classes).decode();
}

template <class W, uint32_t kCount>
Fault decode_few_lanes(const TileShape& shape, const TileEntry& entry, const TileOutput& out,
                       const TokenTables& model) {
  if (model.literal) return decode_few_lanes_as<W, kCount, TokenUse::literal>(shape, entry, out, model);
  if (model.hole) return decode_few_lanes_as<W, kCount, TokenUse::holes>(shape, entry, out, model);
  return decode_few_lanes_as<W, kCount, TokenUse::plain>(shape, entry, out, model);
}

template <class W>
Fault decode_tokens(const TileShape& shape, const TileEntry& entry, const TileOutput& out, const TokenTables& model) {
  // RGB is common, and takes a tenth less time on its own. A loop for two channels would hardly be used, and one for
  // exactly four is slower.
  if (model.engine_channels == 3) return decode_tokens_as<W, 3, TokenUse::plain>(shape, entry, out, model);
  if (model.engine_channels > 1) return decode_tokens_as<W, kMaxChannels, TokenUse::plain>(shape, entry, out, model);
  // Few lanes are common in label maps.
  const uint32_t lanes = dense_lanes(entry.parameters);
  if (!model.follow) {
    if (lanes == 1) return decode_few_lanes<W, 1>(shape, entry, out, model);
    if (lanes == 2) return decode_few_lanes<W, 2>(shape, entry, out, model);
    if (lanes == 4) return decode_few_lanes<W, 4>(shape, entry, out, model);
  }
  if constexpr (W::kRecordParts > 1) {
    if (lanes <= W::kRecords) return decode_one_channel<FirstRecords<W, 1>>(shape, entry, out, model);
  }
  if constexpr (W::kRecordParts > 2) {
    if (lanes <= 2 * W::kRecords) return decode_one_channel<FirstRecords<W, 2>>(shape, entry, out, model);
  }
  return decode_one_channel<W>(shape, entry, out, model);
}

}  // namespace l3
