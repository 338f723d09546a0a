// What the pixels of a token tile follow, on processors (section 15.6 of the spec). Places are found for a lane after
// the other, since only some lanes of a step decode a pixel; TokenLoop compares values, for all lanes at once.
#pragma once

#include <cstdlib>
#include <cstring>

#include "engine/follow.h"
#include "models/token.h"

namespace l3 {

// kChannels arrays of values; kStride lanes at most.
template <uint32_t kChannels, uint32_t kStride>
class TokenFollow {
 public:
  // The neighbours of a step's pixels: the values of all channels, by lane.
  struct Around {
    const uint16_t *w[kChannels], *n[kChannels], *nw[kChannels], *ne[kChannels];
  };

  TokenFollow() = default;
  TokenFollow(const TokenFollow&) = delete;
  TokenFollow& operator=(const TokenFollow&) = delete;
  ~TokenFollow() { std::free(memory_); }

  // Returns false if there is not enough memory.
  bool begin(uint32_t width, uint32_t height, uint32_t lanes, uint32_t channels) {
    width_ = width;
    height_ = height;
    lanes_ = lanes;
    channels_ = channels;
    steps_ = {static_cast<uint32_t>(__builtin_ctz(lanes)), dense_period(width, lanes)};
    const size_t numbers = size_t{dense_steps(width, height, lanes)} * kStride * channels;
    memory_ = std::malloc(numbers * sizeof(uint16_t) + (width + kFollowEntries) * sizeof(uint32_t));
    if (memory_ == nullptr) return false;
    last_row_ = static_cast<uint32_t*>(memory_);
    table_ = last_row_ + width;
    values_ = reinterpret_cast<uint16_t*>(table_ + kFollowEntries);
    std::memset(last_row_, 0, (width + kFollowEntries) * sizeof(uint32_t));
    std::memset(kept_, 0, sizeof(kept_));
    return true;
  }

  // Where a channel's values of a step's pixels are to be put.
  L3_INLINE uint16_t* values(uint32_t step, uint32_t c) { return values_ + (size_t{step} * channels_ + c) * kStride; }

  // Begins a step, before its lanes ask.
  L3_INLINE void begin_step() {
    asking_ = asked_ = 0;
    std::memset(sources_, 0, sizeof(sources_));
  }
  // Finds what the pixel of a lane at column x, row y follows.
  L3_INLINE void find(uint32_t step, uint32_t lane, uint32_t x, uint32_t y, const Around& around) {
    const uint32_t of_n = lane > 0 ? kept_[(step - 2) % kSteps][lane - 1] : y > 0 ? last_row_[x] : 0;
    const uint32_t of_w = x > 0 ? kept_[(step - 1) % kSteps][lane] : 0;
    uint32_t place = of_n + kNextRow, source = kFollowN;
    if (of_n != 0) {
      if (of_w != 0 && of_w + kNextColumn == place) source = kFollowBoth;
    } else if (of_w != 0) {
      place = of_w + kNextColumn;
      source = kFollowW;
    } else {
      uint32_t hash = 0;
      for (uint32_t c = 0; c < channels_; ++c) {
        const uint16_t* const factors = kFollowFactors[c];
        hash += uint32_t{around.w[c][lane]} * factors[0] + uint32_t{around.n[c][lane]} * factors[1] +
                uint32_t{around.nw[c][lane]} * factors[2] + uint32_t{around.ne[c][lane]} * factors[3];
      }
      uint32_t* const entry = &table_[(hash & 0xFFFF) >> (16 - kFollowBits)];
      place = *entry;
      source = kFollowTable;
      entries_[asked_] = entry;
      askers_[asked_++] = follow_place(x, y);
    }
    asking_ |= 1u << lane;
    places_[lane] = 0;
    if (place == 0 || (place & 0xFFFF) > width_ || place >> 16 >= height_) return;
    const uint32_t its_step = steps_(place);
    if (its_step >= step) return;
    const uint16_t* const from = values(its_step, 0) + (place >> 16) % lanes_;
    for (uint32_t c = 0; c < channels_; ++c) followed_[c][lane] = from[size_t{c} * kStride];
    sources_[lane] = static_cast<uint16_t>(1 + source);
    places_[lane] = place;
  }
  // Ends a step. In `differs` are the lanes whose pixel is not the followed one. `last` is the column of the last lane,
  // or beyond the tile.
  L3_INLINE void end_step(uint32_t step, uint32_t last, uint32_t differs) {
    uint32_t* const kept = kept_[step % kSteps];
    std::memset(kept, 0, sizeof(kept_[0]));
    for (uint32_t lanes = asking_ & ~differs; lanes != 0; lanes &= lanes - 1) {
      const uint32_t lane = static_cast<uint32_t>(__builtin_ctz(lanes));
      kept[lane] = places_[lane];
    }
    for (uint32_t i = 0; i < asked_; ++i) *entries_[i] = *entries_[i] > askers_[i] ? *entries_[i] : askers_[i];
    if (last < width_) last_row_[last] = kept[lanes_ - 1];
  }
  // Whether any lane asked in this step.
  bool asks() const { return asking_ != 0; }
  // For each lane of a step 0 if it follows nothing, else 1 + the source; and the values that it follows.
  const uint16_t* sources() const { return sources_; }
  const uint16_t* followed(uint32_t c) const { return followed_[c]; }

 private:
  static constexpr uint32_t kSteps = 4;  // whose kept places are needed, a power of two

  void* memory_ = nullptr;
  uint32_t* last_row_ = nullptr;  // what the pixels of the last lane keep, by column
  uint32_t* table_ = nullptr;
  uint16_t* values_ = nullptr;
  uint32_t width_ = 0, height_ = 0, lanes_ = 1, channels_ = 1;
  FollowSteps steps_{};
  uint32_t asking_ = 0, asked_ = 0;
  uint32_t* entries_[kLanes];
  uint32_t askers_[kLanes], places_[kLanes], kept_[kSteps][kLanes];
  alignas(64) uint16_t sources_[kLanes] = {};
  alignas(64) uint16_t followed_[kChannels][kLanes] = {};
};

}  // namespace l3
