// Implements tile_writer.h.
#include "encode/tile_writer.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <optional>
#include <span>

#include "api/parallel.h"
#include "encode/image_check.h"
#include "encode/tiny_file.h"

namespace l3 {
namespace {

uint8_t* entry_of(const Head& head, uint64_t tile, uint8_t* out) {
  return out + head.head_bytes + tile * kIndexEntryBytes;
}

class TileWriter {
 public:
  TileWriter(const Request& request, const Head& head, const EncodeTarget& target, const ModelEncoder* encoder,
             uint8_t* out)
      : head_(head),
        source_(head, static_cast<const uint8_t*>(request.image.pixels), stride_of(request.image)),
        target_(target),
        encoder_(encoder),
        first_wins_(encoder != nullptr && request.options.method == L3_METHOD_DENSE),
        model_first_(encoder != nullptr && head.find(L3_SECTION_MODEL) != nullptr && !request.is_small()),
        unit_(may_be_tiny(head) ? kTinyUnit : kUnit),
        out_(out) {}

  void operator()(uint64_t number) {
    if (reason_.load(std::memory_order_relaxed) != Reason::none) return;
    const Tile tile{number, head_.tile_shape(number), source_.input(number),
                    out_ + head_.payload_start + head_.room_before(number)};
    const TileChoice choice = choose(tile);
    if (!choice.in_range || choice.payload_bytes > kMaxPayloadUnits * kUnit) {
      reason_.store(choice.in_range ? Reason::bad_tile_size : Reason::sample_out_of_range, std::memory_order_relaxed);
      return;
    }
    uint8_t* entry = entry_of(head_, number, out_);
    entry[0] = static_cast<uint8_t>(choice.method);
    entry[1] = choice.parameters;
    store_u16(entry + 2, choice.payload_bytes / kUnit);
    if (number + 1 == head_.tile_count) used_bytes_ = choice.used_bytes;
    if (choice.method == Method::constant) {
      for (uint32_t c = 0; c < kMaxChannels; ++c) store_u16(entry + 4 + 2 * c, choice.value[c]);
    } else {
      store_u32(entry + 8, target_.check(tile.place, choice.payload_bytes / 4));
    }
  }

  TilesWritten result() const { return {reason_.load(), saved_bytes_.load(), used_bytes_}; }

 private:
  struct Tile {
    uint64_t number;
    TileShape shape;
    TileInput in;
    uint8_t* place;  // of its payload
  };
  using Choice = std::optional<TileChoice>;
  // Tries one way to encode a tile. Returns nothing, and leaves the payload as it is, unless that is possible and
  // smaller than the best choice so far.
  using Candidate = Choice (TileWriter::*)(const Tile&, const Choice& best);

  // Tries all candidates; with L3_METHOD_DENSE, uses the first one that is possible.
  TileChoice choose(const Tile& tile) {
    if (model_first_) {
      const Choice dense = with_model(tile, {});
      const uint32_t raw = tile.shape.raw_bytes(unit_);
      if (dense && uint64_t{dense->payload_bytes} * 8 < uint64_t{raw} * 7) {
        saved_bytes_ += raw - size_of(*dense);
        return *dense;
      }
    }
    static constexpr Candidate kSmallest[] = {&TileWriter::without_model, &TileWriter::with_model};
    static constexpr Candidate kDense[] = {&TileWriter::with_model, &TileWriter::without_model};
    const std::span<const Candidate> candidates =
        first_wins_ ? std::span<const Candidate>(kDense) : std::span<const Candidate>(kSmallest);
    Choice best;
    for (const Candidate candidate : candidates) {
      const Choice next = (this->*candidate)(tile, best);
      if (!next) continue;
      if (next->method == Method::dense) {
        saved_bytes_ += size_of(tile, best) - size_of(*next);
      }
      best = next;
      // No payload: the tile is constant, or has a sample that is out of range.
      if (first_wins_ || best->payload_bytes == 0) break;
    }
    return *best;  // without_model() is always possible
  }

  // The methods constant, raw and fast.
  Choice without_model(const Tile& tile, const Choice&) { return target_.encode(tile.shape, tile.in, tile.place); }

  // The method dense, with any kind of model.
  Choice with_model(const Tile& tile, const Choice& best) {
    if (encoder_ == nullptr || (!best && is_constant(tile))) return {};
    const uint32_t maximum = std::min(size_of(tile, best), (kMaxPayloadUnits + 1) * kUnit);
    const auto payload = std::make_unique_for_overwrite<uint8_t[]>(pad_to_unit(maximum));
    TileChoice choice{Method::dense, 0, {}, 0, 0, true};
    choice.used_bytes = encoder_->encode(tile.number, payload.get(), maximum - unit_, choice.parameters);
    if (choice.used_bytes == 0) return {};
    choice.payload_bytes = static_cast<uint32_t>(pad_to_unit(choice.used_bytes));
    std::memcpy(tile.place, payload.get(), choice.payload_bytes);
    return choice;
  }

  // The size of a payload in the file.
  uint32_t size_of(const TileChoice& choice) const { return ceil_div(choice.used_bytes, unit_) * unit_; }
  uint32_t size_of(const Tile& tile, const Choice& choice) const {
    return choice ? size_of(*choice) : tile.shape.raw_bytes(unit_);
  }

  bool is_constant(const Tile& tile) const {
    const uint8_t* pixels = tile.in.pixels;
    const size_t pixel = head_.coded_pixel_bytes(), row = tile.shape.width * pixel;
    if (std::memcmp(pixels, pixels + pixel, row - pixel) != 0) return false;
    for (uint32_t y = 1; y < tile.shape.height; ++y) {
      if (std::memcmp(pixels, pixels + y * tile.in.stride, row) != 0) return false;
    }
    return true;
  }

  const Head& head_;
  const TileSource source_;
  const EncodeTarget& target_;
  const ModelEncoder* encoder_;
  const bool first_wins_;
  const bool model_first_;  // the model saves so much that other methods need not be tried where it does well
  const uint32_t unit_;     // of payloads
  uint8_t* out_;
  uint32_t used_bytes_ = 0;
  std::atomic<Reason> reason_{Reason::none};
  std::atomic<uint64_t> saved_bytes_{0};
};

}  // namespace

TilesWritten write_tiles(const Request& request, const Head& head, const EncodeTarget& target,
                         const ModelEncoder* encoder, uint8_t* out) {
  TileWriter writer(request, head, target, encoder, out);
  run_parallel(request.options.parallel, head.tile_count, writer);
  return writer.result();
}

uint64_t close_gaps(const Head& head, uint8_t* out) {
  uint64_t end = head.payload_start;
  for (uint64_t tile = 0; tile < head.tile_count; ++tile) {
    uint8_t* entry = entry_of(head, tile, out);
    if (entry[0] == static_cast<uint8_t>(Method::constant)) continue;
    const uint64_t bytes = uint64_t{load_u16(entry + 2)} * kUnit;
    std::memmove(out + end, out + head.payload_start + head.room_before(tile), bytes);
    store_u32(entry + 4, static_cast<uint32_t>(end / kUnit));
    end += bytes;
  }
  return end;
}

}  // namespace l3
