// Decodes constant, raw and fast tiles, each by a warp. The warps are persistent and take one tile after the other. One
// file includes this for samples up to 8 bits, and another for deeper samples: the two kernels need different
// registers.
#pragma once

#include "container/check.h"
#include "engine/tile_decode.h"
#include "launch.h"
#include "output.cuh"
#include "stages.h"

namespace l3 {

// Writes rows of a tile, 32 pixels at a time, as PixelWriter of codec/ does on a processor.
template <class Sample, uint32_t kChannels>
class DevicePixels {
 public:
  using Lanes = CudaWarp::Lanes;

  L3_INLINE explicit DevicePixels(const TilePlace& place) : place_(place) {
    const Output& out = *place.out;
    constexpr uint32_t kPixel = kChannels * sizeof(Sample);
    in_order_ = out.in_order != 0;
    // True if the 32 pixels of every row and strip begin at a word.
    in_words_ = in_order_ && ((reinterpret_cast<uintptr_t>(place.address(0, place.y0)) | out.row_step) & 3) == 0;
    static_assert(kPixel * kLanes % 4 == 0);
  }

  // Writes the pixels in columns x to x + 31 of row y. Pixels outside the requested part are dropped.
  L3_INLINE void put(uint32_t x, uint32_t y, const Lanes* channels) const {
    if (y < place_.y0 || y >= place_.y1) return;
    const uint32_t column = x + lane_number();
    const bool wanted = column >= place_.x0 && column < place_.x1;
    if (in_words_ && x >= place_.x0 && x + kLanes <= place_.x1) {
      put_words(place_.address(x, y), channels);
    } else if (wanted && in_order_) {
      uint8_t* const to = place_.address(column, y);
#pragma unroll
      for (uint32_t c = 0; c < kChannels; ++c) {
        if constexpr (sizeof(Sample) == 1) {
          store_global_byte(to + c, channels[c].v);
        } else {
          store_global_half(to + 2 * c, channels[c].v);
        }
      }
    } else if (wanted) {
      put_converted(place_.address(column, y), channels);
    }
  }

 private:
  // Writes 32 adjacent pixels. Each lane writes whole words.
  L3_INLINE static void put_words(uint8_t* to, const Lanes* channels) {
    const uint32_t lane = lane_number();
    if constexpr (sizeof(Sample) == 2) {
      constexpr uint32_t kSample = 0xFFFF;
      if constexpr (kChannels == 1) {
        store_global_half(to + 2 * lane, channels[0].v);
      } else if constexpr (kChannels == 2) {
        store_global(to + 4 * lane, (channels[0].v & kSample) | channels[1].v << 16);
      } else if constexpr (kChannels == 3) {
#pragma unroll
        for (uint32_t c = 0; c < 3; ++c) store_global_half(to + 6 * lane + 2 * c, channels[c].v);
      } else {
        store_global(to + 8 * lane, (channels[0].v & kSample) | channels[1].v << 16);
        store_global(to + 8 * lane + 4, (channels[2].v & kSample) | channels[3].v << 16);
      }
    } else if constexpr (kChannels == 1) {
      const uint32_t two = __byte_perm(channels[0].v, __shfl_down_sync(kAllLanes, channels[0].v, 1), 0x0040);
      const uint32_t four = __byte_perm(two, __shfl_down_sync(kAllLanes, two, 2), 0x5410);
      if (lane % 4 == 0) store_global(to + lane, four);
    } else if constexpr (kChannels == 2) {
      const uint32_t one = __byte_perm(channels[0].v, channels[1].v, 0x0040);
      const uint32_t two = __byte_perm(one, __shfl_down_sync(kAllLanes, one, 1), 0x5410);
      if (lane % 2 == 0) store_global(to + 2 * lane, two);
    } else if constexpr (kChannels == 3) {
      // Word i holds bytes of pixel i * 4 / 3 and of the next one.
      const uint32_t one = __byte_perm(__byte_perm(channels[0].v, channels[1].v, 0x0040), channels[2].v, 0x0410);
      const uint32_t pixel = lane * 4 / 3, skipped = lane * 4 % 3;
      const uint32_t first = __shfl_sync(kAllLanes, one, pixel % kLanes);
      const uint32_t second = __shfl_sync(kAllLanes, one, (pixel + 1) % kLanes);
      const uint32_t order = skipped == 0 ? 0x4210 : skipped == 1 ? 0x5421 : 0x6542;
      if (lane < 24) store_global(to + 4 * lane, __byte_perm(first, second, order));
    } else {
      const uint32_t low = __byte_perm(channels[0].v, channels[1].v, 0x0040);
      const uint32_t high = __byte_perm(channels[2].v, channels[3].v, 0x0040);
      store_global(to + 4 * lane, __byte_perm(low, high, 0x5410));
    }
  }

  L3_INLINE void put_converted(uint8_t* to, const Lanes* channels) const {
    const Output& out = *place_.out;
    constexpr uint32_t kSample = sizeof(Sample) == 1 ? 0xFF : 0xFFFF;
    if constexpr (kChannels == 1 && sizeof(Sample) == 1) {
      if (place_.colours != nullptr) {
        const uint32_t colour = place_.colours[channels[0].v & kSample];
        for (uint32_t c = 0; c < out.channels; ++c) store_converted(out, c, to, colour >> (8 * c) & 0xFF);
        return;
      }
    }
    const auto sample = [&](uint32_t c) { return channels[c].v & kSample; };
    const auto store = [&](uint32_t c, uint32_t of_channel) { store_converted(out, c, to, of_channel); };
    if (out.is_mapped != 0) return for_channels<kChannels>(out, sample, 1, store);
#pragma unroll
    for (uint32_t c = 0; c < kChannels; ++c) store(c, sample(c));
  }

  const TilePlace& place_;
  bool in_order_, in_words_;
};

constexpr uint32_t kOtherWarps = 8;  // of a block

// `Tiles` has decode(shape, entry, place, room), and the size of the shared memory that a warp needs.
template <class Tiles>
L3_INLINE void decode_other(const Batch& batch, const TileJob& job, uint8_t* scratch) {
  const ImageState& state = batch.states[job.image];
  const uint32_t column = state.first_column + job.place % state.columns;
  const uint32_t row = state.first_row + job.place / state.columns;
  const TileShape shape = {smaller(state.tile_width, state.width - column * state.tile_width),
                           smaller(state.tile_height, state.height - row * state.tile_height), state.channels,
                           state.bits};
  const TileEntry entry = read_entry(state, state.data, uint64_t{row} * state.tiles_across + column);
  Fault fault;
  if (entry.has_check && check_of<CudaWarp>(entry.payload, entry.payload_bytes / 4) != entry.check) {
    fault.reason = Reason::tile_check;
  } else {
    const TilePlace place = place_of(state, batch.colours + 256 * job.image, column, row, shape);
    fault = Tiles::decode(shape, entry, place, scratch);
  }
  if (fault.reason != Reason::none && lane_number() == 0) {
    atomicMin(&batch.states[job.image].fault, key_of(job.place, fault));
  }
}

template <class Tiles>
L3_INLINE void decode_others(const Batch& batch, uint8_t* scratches) {
  const uint32_t warp = __shfl_sync(kAllLanes, threadIdx.x / kLanes, 0);
  for (uint32_t line = 0; line < 2; ++line) {
    OtherTiles& tiles = batch.control->others[Tiles::kDepth][line];
    // Only every fourth warp takes tiles with long lines. It uses the shared memory of four warps.
    const bool takes_part = line == 0 || warp % 4 == 0;
    const uint32_t count = tiles.count;
    while (takes_part) {
      uint32_t next = 0;
      if (lane_number() == 0) next = atomicAdd(&tiles.next, 1u);
      next = __shfl_sync(kAllLanes, next, 0);
      if (next >= count) break;
      const uint64_t place = line == 0 ? next : batch.tile_capacity - 1 - next;
      decode_other<Tiles>(batch, batch.other_tiles[Tiles::kDepth][place], scratches + warp * Tiles::kRoomBytes);
      __syncwarp();
    }
    __syncthreads();
  }
}

}  // namespace l3
