// Decodes tiles of token models, with the engine of codec/.
#include "cuda_token_warp.cuh"
#include "decode_chunks.cuh"
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

// The masks of still rows: a bit for each row of each block.
L3_INLINE constexpr uint32_t row_bytes(uint32_t width, uint32_t height) {
  return (2 * ceil_div(width, kBlockEdge) * ceil_div(height, kBlockEdge) + 15) & ~15u;
}

// With up to two engine channels, a warp needs fewer registers, so more warps run at once.
template <bool kWide>
struct TokenTiles {
  static constexpr TileKind kKind = kWide ? kWideTokenTiles : kTokenTiles;
  static constexpr uint32_t kMaxWarps = kWide ? 24 : 32;  // the registers of a multiprocessor allow this many
  static constexpr uint32_t kDelayBytes = kWide ? 32 : 16;
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
    if (tables.rows) scratch.more_bytes = row_bytes(shape.width, shape.height);
    return scratch;
  }
  L3_INLINE static Fault decode(const ModelTile& tile, const TilePlace& place, uint32_t memory, const Tables& model,
                                uint4* scratch) {
    const CudaTokenTables tables(memory, model);
    if constexpr (kWide) {
      return model.engine_channels == 3 ? decode_more<3, TokenUse::plain>(tile, place, tables, scratch)
                                        : decode_more<4, TokenUse::plain>(tile, place, tables, scratch);
    } else {
      if (model.literal) return decode_more<1, TokenUse::literal>(tile, place, tables, scratch);
      if (model.engine_channels == 2) return decode_more<2, TokenUse::plain>(tile, place, tables, scratch);
      return model.hole ? decode_more<1, TokenUse::holes>(tile, place, tables, scratch)
                        : decode_more<1, TokenUse::plain>(tile, place, tables, scratch);
    }
  }

 private:
  // Literals with still rows are common in label maps.
  template <uint32_t kChannels, TokenUse kUse>
  L3_INLINE static Fault decode_more(const ModelTile& tile, const TilePlace& place, const CudaTokenTables& tables,
                                     uint4* scratch) {
    const TokenTables& model = *tables.model;
    if (!model.rows) return decode_as<kChannels, kUse, TokenMore::nothing>(tile, place, tables, scratch);
    constexpr TokenMore kMore = kUse == TokenUse::literal ? TokenMore::rows : TokenMore::all;
    return decode_as<kChannels, kUse, kMore>(tile, place, tables, scratch);
  }
  template <uint32_t kChannels, TokenUse kUse, TokenMore kMore>
  L3_INLINE static Fault decode_as(const ModelTile& tile, const TilePlace& place, const CudaTokenTables& tables,
                                   uint4* scratch) {
    const TokenTables& model = *tables.model;
    if (is_whole_in_order(place, tile.shape)) {
      if constexpr (kChannels == 1) {
        if (model.channels == 1 && model.bits <= 8) {
          return decode_to<kChannels, kUse, kMore, TokenSamples<1>>(tile, place, tables, scratch);
        }
      }
      // Other loops for 16 bits are not worth their code: literals of 16 bits are rare.
      if constexpr (kChannels == 1 && kUse != TokenUse::literal && kMore == TokenMore::nothing) {
        if (model.channels == 1)
          return decode_to<kChannels, kUse, kMore, TokenSamples<2>>(tile, place, tables, scratch);
      }
      if constexpr (kChannels == 3 && kMore == TokenMore::nothing) {
        if (model.bits > 8 && model.listing == Listing::none) {
          return decode_to<kChannels, kUse, kMore, TokenColours>(tile, place, tables, scratch);
        }
      }
    }
    return decode_to<kChannels, kUse, kMore, TokenPixels<kChannels>>(tile, place, tables, scratch);
  }
  template <uint32_t kChannels, TokenUse kUse, TokenMore kMore, class Sink>
  L3_INLINE static Fault decode_to(const ModelTile& tile, const TilePlace& place, const CudaTokenTables& tables,
                                   uint4* scratch) {
    using Decoder = TokenDecoder<CudaTokenWarp, kChannels, kUse, kMore, Sink>;
    Sink sink(place, *tables.model);
    typename Decoder::Delay delay(scratch);
    const TileScratch sizes = scratch_of(tile.shape, tile.entry, *tables.model);
    uint8_t* const after_delay = reinterpret_cast<uint8_t*>(scratch) + sizes.delay_bytes;
    CudaWordWarp::Classes classes(after_delay, kChannels);
    uint16_t* rows = nullptr;
    if constexpr (kMore != TokenMore::nothing) rows = reinterpret_cast<uint16_t*>(after_delay + sizes.class_bytes);
    return Decoder(tile.shape, tile.entry, tables, sink, delay, classes, rows).decode();
  }
};
// The tile with the most blocks that the edges allow: samples may have only one bit.
constexpr uint32_t kMaxClassBytes = 4 * (kMaxTileEdge / kBlockEdge) * (kMaxTileEdge / kBlockEdge);
static_assert(has_room_for_all<TokenTiles<false>>(kMaxClassBytes) &&
              has_room_for_all<TokenTiles<true>>(kMaxClassBytes));

__global__ void __launch_bounds__(TokenTiles<false>::kMaxWarps* kLanes, 1)
    tokens_kernel(const __grid_constant__ Batch batch) {
  extern __shared__ uint4 shared[];
  decode_chunks<TokenTiles<false>>(batch, shared);
}
__global__ void __launch_bounds__(TokenTiles<true>::kMaxWarps* kLanes, 1)
    wide_tokens_kernel(const __grid_constant__ Batch batch) {
  extern __shared__ uint4 shared[];
  decode_chunks<TokenTiles<true>>(batch, shared);
}

cudaError_t load_tokens() {
  const cudaError_t error = load(tokens_kernel);
  return error != cudaSuccess ? error : load(wide_tokens_kernel);
}

cudaError_t decode_token_tiles(const Batch& batch, cudaStream_t stream) {
  return launch_chunks<TokenTiles<false>>(tokens_kernel, batch, stream);
}
cudaError_t decode_wide_token_tiles(const Batch& batch, cudaStream_t stream) {
  return launch_chunks<TokenTiles<true>>(wide_tokens_kernel, batch, stream);
}
cudaError_t shape_of_tokens(int device, ChunkShape& shape) { return shape_of_chunks<TokenTiles<false>>(device, shape); }
cudaError_t shape_of_wide_tokens(int device, ChunkShape& shape) {
  return shape_of_chunks<TokenTiles<true>>(device, shape);
}

}  // namespace l3
