// Decodes tiles of bit models.
#include "bit_decoder.cuh"
#include "bit_pixels.cuh"
#include "decode_chunks.cuh"

namespace l3 {

struct BitTiles {
  static constexpr TileKind kKind = kBitTiles;
  static constexpr uint32_t kMaxWarps = 32;
  static constexpr uint32_t kDelayBytes = 4;
  using Tables = BitTables;
  using Memory = CudaBitTables::Memory;

  L3_INLINE static const Tables& tables_of(const ModelTables& model) { return model.bit; }
  L3_INLINE static void load(const Tables& tables, Memory& memory) { load_tables(tables, memory); }
  L3_INLINE static uint32_t memory_bytes(const Tables& tables) {
    return (static_cast<uint32_t>(offsetof(Memory, frequencies)) + (2u << tables.count) + 15) & ~15u;
  }
  L3_INLINE static TileScratch scratch_of(const TileShape& shape, const TileEntry& entry, const Tables&) {
    return TileScratch::of(shape, entry, kDelayBytes, 0);
  }
  L3_INLINE static Fault decode(const ModelTile& tile, const TilePlace& place, uint32_t memory, const Tables& model,
                                uint4* scratch) {
    ModelTile bits = tile;
    if (model.shapes.count != 0) {
      TileEntry& entry = bits.entry;
      if (!ShapeList::is_in(entry.payload, entry.payload_bytes, dense_lanes(entry.parameters))) {
        return {Reason::tile_shapes, 0};
      }
      const uint32_t list_bytes = ShapeList(entry.payload).bytes();
      entry.payload += list_bytes;
      entry.payload_bytes -= list_bytes;
    }
    return decode_bits(bits, place, memory, model, scratch);
  }
  // Puts the shapes of a tile that is decoded, and returns its fault, which was relative to what is behind their list.
  L3_INLINE static Fault put_rest(const ModelTile& tile, const TilePlace& place, const Tables& model, Fault fault) {
    if (model.shapes.count == 0 || fault.reason == Reason::tile_shapes) return fault;
    if (fault.reason != Reason::none) return {fault.reason, fault.at + ShapeList(tile.entry.payload).bytes()};
    const bool sound = put_shapes(tile.entry.payload, tile.shape.width, tile.shape.height, place, model);
    return sound ? fault : Fault{Reason::tile_shapes, 0};
  }

 private:
  static constexpr uint32_t kNear = 4;

  L3_INLINE static Fault decode_bits(const ModelTile& tile, const TilePlace& place, uint32_t memory,
                                     const Tables& model, uint4* scratch) {
    const uint2 turns = load_shared_two_here(memory + static_cast<uint32_t>(offsetof(Memory, turns)));
    const bool few_near = turns.x <= kNear, in_order = is_whole_in_order(place, tile.shape);
    if (in_order && model.channels == 1 && model.bits <= 8) {
      if (few_near && turns.y == 0)
        return decode_to<BitSamples, FewTurns<kNear, 0>>(tile, place, memory, model, scratch);
      if (few_near && turns.y == 1)
        return decode_to<BitSamples, FewTurns<kNear, 1>>(tile, place, memory, model, scratch);
      return decode_to<BitSamples, AnyTurns>(tile, place, memory, model, scratch);
    }
    if (few_near && turns.y == 0) return decode_to<BitPixels, FewTurns<kNear, 0>>(tile, place, memory, model, scratch);
    return decode_to<BitPixels, AnyTurns>(tile, place, memory, model, scratch);
  }

  template <class Sink, class Context>
  L3_INLINE static Fault decode_to(const ModelTile& tile, const TilePlace& place, uint32_t memory, const Tables& model,
                                   uint4* scratch) {
    const Context context(memory);
    Sink sink(place, model);
    BitDelay delay(scratch);
    CudaWordWarp::Classes no_classes(nullptr, 1, tile.shape);
    return BitDecoder<Context, Sink>(tile.shape, tile.entry, context, sink, delay, no_classes).decode();
  }
};
static_assert(has_room_for_all<BitTiles>(0));

__global__ void __launch_bounds__(BitTiles::kMaxWarps* kLanes, 1) bits_kernel(const __grid_constant__ Batch batch) {
  extern __shared__ uint4 shared[];
  decode_chunks<BitTiles>(batch, shared);
}

cudaError_t load_bits() { return load(bits_kernel); }

cudaError_t decode_bit_tiles(const Batch& batch, cudaStream_t stream) {
  return launch_chunks<BitTiles>(bits_kernel, batch, stream);
}
cudaError_t shape_of_bits(int device, ChunkShape& shape) { return shape_of_chunks<BitTiles>(device, shape); }

}  // namespace l3
