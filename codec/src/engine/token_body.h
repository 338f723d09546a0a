// Decodes tiles of token models with a warp type W. Included by one source file for each warp type.
#pragma once

#include "engine/token_lanes.h"
#include "engine/token_loop.h"
#include "engine/token_rows.h"
#include "engine/token_single_lane.h"

namespace l3 {

template <class W, uint32_t kChannels, TokenUse kUse, class Value>
Fault decode_tokens_as(const TileShape& shape, const TileEntry& entry, const TileOutput& out,
                       const TokenTables& model) {
  using Rows = TokenRows<W, kChannels, Value>;
  Rows rows(out, model);
  typename W::Classes classes;
  return TokenLoop<W, kChannels, kUse, Value, Rows>(shape, entry, model, rows, classes).decode();
}

template <class W, class Value>
Fault decode_one_channel(const TileShape& shape, const TileEntry& entry, const TileOutput& out,
                         const TokenTables& model) {
  if (model.literal) return decode_tokens_as<W, 1, TokenUse::literal, Value>(shape, entry, out, model);
  if (model.hole) return decode_tokens_as<W, 1, TokenUse::holes, Value>(shape, entry, out, model);
  return decode_tokens_as<W, 1, TokenUse::plain, Value>(shape, entry, out, model);
}

// RGB is common, and takes a tenth less time on its own. A loop for two channels would hardly be used.
template <class W, class Value>
Fault decode_channels(const TileShape& shape, const TileEntry& entry, const TileOutput& out, const TokenTables& model) {
  constexpr TokenUse kPlain = TokenUse::plain;
  return model.engine_channels == 3 ? decode_tokens_as<W, 3, kPlain, Value>(shape, entry, out, model)
                                    : decode_tokens_as<W, kMaxChannels, kPlain, Value>(shape, entry, out, model);
}

template <class W, uint32_t kCount, TokenUse kUse>
Fault decode_few_lanes_as(const TileShape& shape, const TileEntry& entry, const TileOutput& out,
                          const TokenTables& model) {
  using Rows = TokenRows<W, 1, uint16_t>;
  Rows rows(out, model);
  typename W::Classes classes;
  using Decoder = std::conditional_t<kCount == 1, TokenSingleLane<W, kUse, Rows>, TokenLanes<W, kCount, kUse, Rows>>;
  return Decoder(shape, entry, model, rows, classes).decode();
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
  // Bytes are quicker to compare and copy. Predictions need 16 bits.
  bool are_bytes = model.match;
  for (uint32_t c = 0; c < model.engine_channels; ++c) are_bytes = are_bytes && model.depth[c] <= 8;
  if (model.engine_channels > 1) {
    return are_bytes ? decode_channels<W, uint8_t>(shape, entry, out, model)
                     : decode_channels<W, uint16_t>(shape, entry, out, model);
  }
  // Few lanes are common in label maps.
  const uint32_t lanes = dense_lanes(entry.parameters);
  if (!model.follow) {
    if (lanes == 1) return decode_few_lanes<W, 1>(shape, entry, out, model);
    if (lanes == 2) return decode_few_lanes<W, 2>(shape, entry, out, model);
    if (lanes == 4) return decode_few_lanes<W, 4>(shape, entry, out, model);
  }
  if constexpr (W::kByteParts > 1) {
    if (are_bytes && lanes <= W::kByteRecords) {
      return decode_one_channel<FirstRecords<W, W::kByteRecords / W::kRecords>, uint8_t>(shape, entry, out, model);
    }
  }
  return are_bytes ? decode_one_channel<W, uint8_t>(shape, entry, out, model)
                   : decode_one_channel<W, uint16_t>(shape, entry, out, model);
}

}  // namespace l3
