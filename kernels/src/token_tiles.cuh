// Decodes tiles of token models, with the engine of codec/. Each file with such kernels includes this one.
#pragma once

#include "cuda_token_warp.cuh"
#include "decode_chunks.cuh"
#include "follow_room.h"
#include "token_decoder.cuh"
#include "token_pixels.cuh"

namespace l3 {

// Copies a model's tables to shared memory. All threads of the block call it.
class TokenTablesLoader {
 public:
  L3_INLINE TokenTablesLoader(const TokenTables& from, CudaTokenTables::Memory& to) : from_(from), to_(to) {}

  L3_INLINE void load() const {
    if (from_.literal) {
      each(kLiteralContexts, [&](uint32_t i) { to_.table_of[0][i] = from_.literal_table[i]; });
    } else {
      for (uint32_t c = 0; c < from_.engine_channels; ++c) load_channel(c);
    }
    if (from_.match) load_match();
    each(from_.table_count * kTokenBuckets, [&](uint32_t i) { to_.buckets[i] = from_.buckets[i]; });
  }

 private:
  template <class Function>
  L3_INLINE static void each(uint32_t count, const Function& function) {
    for (uint32_t i = threadIdx.x; i < count; i += blockDim.x) function(i);
  }

  L3_INLINE void load_channel(uint32_t c) const {
    const uint32_t words = CudaTokenTables::weight_words(c), first = CudaTokenTables::first_weight(c);
    each(from_.classes[c] * words, [&](uint32_t i) {
      const uint32_t word = i % words;
      to_.weights[first + i] = word < kMaxTapWords ? from_.weights[c][i / words][word] : 0;
    });
    each(4, [&](uint32_t i) { to_.activity[c][i] = i < kActivityWords ? from_.activity[c][i] : 0; });
    each(kZones, [&](uint32_t i) { to_.zone_row[c][i] = static_cast<uint16_t>(from_.zone_row[c][i] * kTokenLevels); });
    each(kSignPatterns,
         [&](uint32_t i) { to_.pattern_row[c][i] = static_cast<uint16_t>(from_.pattern_row[c][i] * kTokenLevels); });
    each(kMaxRows * kTokenLevels, [&](uint32_t i) { to_.table_of[c][i] = from_.table_of[c][i]; });
  }

  L3_INLINE void load_match() const {
    const bool by_activity = from_.match_by_activity;
    each(kMatchPatterns, [&](uint32_t i) {
      const uint32_t first = from_.match_row[i] * kMatchOctaves;
      to_.match_row[i] = static_cast<uint16_t>(by_activity ? first : from_.match_table[first]);
    });
    if (by_activity) {
      each(kMaxMatchRows * kMatchOctaves, [&](uint32_t i) { to_.match_table[i] = from_.match_table[i]; });
    }
  }

  const TokenTables& from_;
  CudaTokenTables::Memory& to_;
};

// With up to two engine channels, a warp needs fewer registers, so more warps run at once. Still rows take some more.
// If pixels may follow others, a tile needs so much shared memory that registers do not matter.
template <TileKind kTheKind>
struct TokenTiles {
  static constexpr TileKind kKind = kTheKind;
  static constexpr TokenMore kMore = kKind == kFollowTiles ? TokenMore::all
                                     : kKind == kRowTiles  ? TokenMore::rows
                                                           : TokenMore::nothing;
  // As many as the registers of a multiprocessor allow.
  static constexpr uint32_t kMaxWarps = kKind == kFollowTiles ? 16 : kKind == kTokenTiles ? 32 : 24;
  static constexpr uint32_t kDelayBytes = kKind == kTokenTiles ? 16 : 32;
  using Tables = TokenTables;
  using Memory = CudaTokenTables::Memory;

  L3_INLINE static const Tables& tables_of(const ModelTables& model) { return model.token; }
  L3_INLINE static void load(const Tables& tables, Memory& memory) { TokenTablesLoader(tables, memory).load(); }
  L3_INLINE static uint32_t memory_bytes(const Tables& tables) {
    return static_cast<uint32_t>(offsetof(Memory, buckets)) +
           tables.table_count * static_cast<uint32_t>(kTokenBuckets * sizeof(Bucket));
  }
  L3_INLINE static TileScratch scratch_of(const TileShape& shape, const TileEntry& entry, const Tables& tables) {
    const uint32_t entry_bytes = (tables.literal ? 8 : 16) * token_words(tables.engine_channels);
    TileScratch scratch =
        TileScratch::of(shape, entry, entry_bytes, CudaWordWarp::Classes::bytes_of_block(tables.engine_channels));
    scratch.more_bytes = FollowParts::of(TokenNeeds::of(tables), shape.width, shape.height).shared_bytes();
    return scratch;
  }
  L3_INLINE static Fault decode(const ModelTile& tile, const TilePlace& place, uint32_t memory, const Tables& model,
                                uint4* scratch) {
    const CudaTokenTables tables(memory, model);
    if constexpr (kKind == kWideTokenTiles) {
      return model.engine_channels == 3 ? decode_as<3, TokenUse::plain>(tile, place, tables, scratch)
                                        : decode_as<4, TokenUse::plain>(tile, place, tables, scratch);
    } else {
      if constexpr (kMore != TokenMore::nothing) {
        if (model.engine_channels == 3) return decode_as<3, TokenUse::plain>(tile, place, tables, scratch);
        if (model.engine_channels == 4) return decode_as<4, TokenUse::plain>(tile, place, tables, scratch);
      }
      if (model.literal) return decode_as<1, TokenUse::literal>(tile, place, tables, scratch);
      if (model.engine_channels == 2) return decode_as<2, TokenUse::plain>(tile, place, tables, scratch);
      return model.hole ? decode_as<1, TokenUse::holes>(tile, place, tables, scratch)
                        : decode_as<1, TokenUse::plain>(tile, place, tables, scratch);
    }
  }

 private:
  template <uint32_t kChannels, TokenUse kUse>
  L3_INLINE static Fault decode_as(const ModelTile& tile, const TilePlace& place, const CudaTokenTables& tables,
                                   uint4* scratch) {
    const TokenTables& model = *tables.model;
    if (is_whole_in_order(place, tile.shape)) {
      if constexpr (kChannels == 1 && (kUse != TokenUse::holes || kMore == TokenMore::nothing)) {
        if (model.channels == 1 && model.bits <= 8) {
          return decode_to<kChannels, kUse, TokenSamples<1>>(tile, place, tables, scratch);
        }
      }
      // Other loops for 16 bits are not worth their code: literals of 16 bits are rare.
      if constexpr (kChannels == 1 && kUse != TokenUse::literal && kMore == TokenMore::nothing) {
        if (model.channels == 1) return decode_to<kChannels, kUse, TokenSamples<2>>(tile, place, tables, scratch);
      }
      if constexpr (kChannels == 3 && kMore == TokenMore::nothing) {
        if (model.bits > 8 && model.listing == Listing::none) {
          return decode_to<kChannels, kUse, TokenColours>(tile, place, tables, scratch);
        }
      }
    }
    return decode_to<kChannels, kUse, TokenPixels<kChannels>>(tile, place, tables, scratch);
  }
  template <uint32_t kChannels, TokenUse kUse, class Sink>
  L3_INLINE static Fault decode_to(const ModelTile& tile, const TilePlace& place, const CudaTokenTables& tables,
                                   uint4* scratch) {
    using Decoder = TokenDecoder<CudaTokenWarp, kChannels, kUse, kMore, Sink>;
    Sink sink(place, *tables.model);
    typename Decoder::Delay delay(scratch);
    const TileScratch sizes = scratch_of(tile.shape, tile.entry, *tables.model);
    uint8_t* const after_delay = reinterpret_cast<uint8_t*>(scratch) + sizes.delay_bytes;
    CudaWordWarp::Classes classes(after_delay, kChannels, tile.shape);
    TokenMemory memory{};
    if constexpr (kMore != TokenMore::nothing) {
      memory = memory_of<kChannels>(tile, *tables.model, after_delay + sizes.class_bytes);
    }
    return Decoder(tile.shape, tile.entry, tables, sink, delay, classes, memory).decode();
  }
  // Places the parts of a tile's memory. Only tiles of more than two channels may have them in their room.
  template <uint32_t kChannels>
  L3_INLINE static TokenMemory memory_of(const ModelTile& tile, const TokenTables& model, uint8_t* shared) {
    const FollowParts parts = FollowParts::of(TokenNeeds::of(model), tile.shape.width, tile.shape.height);
    uint8_t* const room = tile.state->follow + uint64_t{tile.place} * tile.state->follow_room;
    uint8_t* const first = kChannels > 2 && parts.are_in_room ? room : shared;
    TokenMemory memory{};
    memory.rows = reinterpret_cast<uint16_t*>(first);
    if constexpr (kMore == TokenMore::all) {
      uint8_t* const columns = first + parts.row_bytes;
      uint32_t* const tables = reinterpret_cast<uint32_t*>(room + parts.room_bytes());
      memory.follow = {reinterpret_cast<uint32_t*>(columns), reinterpret_cast<uint32_t*>(columns + parts.column_bytes),
                       tables, tables + kNearEntries, room + parts.room_bytes() + kFollowTableBytes};
    }
    return memory;
  }
};

// The most that a tile of this height and of the greatest width needs beside its delay line. Samples may have only one
// bit, so tiles may have as many blocks as the edges allow. Wide tiles need most with all of them, or with as many as
// have their masks of rows in shared memory, too.
constexpr uint32_t most_tile_bytes(const TokenNeeds& needs, uint32_t height) {
  const uint32_t blocks = kMaxTileEdge / kBlockEdge * (height / kBlockEdge);
  return CudaWordWarp::Classes::bytes_of_block(kMaxChannels) * blocks +
         FollowParts::of(needs, kMaxTileEdge, height).shared_bytes();
}

}  // namespace l3
