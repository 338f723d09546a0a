// What the pixels of a token tile follow, on processors (section 15.6 of the spec). Places are found for a lane after
// the other, since only some lanes of a step decode a pixel. Hashes are computed, and values compared (by TokenLoop),
// for all lanes at once.
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
  ~TokenFollow() { std::free(lanes_); }

  // Returns false if there is not enough memory.
  bool begin(uint32_t width, uint32_t height, uint32_t lanes, uint32_t channels) {
    width_ = width;
    height_ = height;
    lane_count_ = lanes;
    channels_ = channels;
    steps_ = {static_cast<uint32_t>(__builtin_ctz(lanes)), dense_period(width, lanes)};
    const size_t numbers = size_t{dense_steps(width, height, lanes)} * kStride * channels;
    const size_t words = kNearEntries + kWideEntries + 2 * size_t{width};
    const size_t zeroed = sizeof(Lanes) + words * sizeof(uint32_t);
    lanes_ = static_cast<Lanes*>(std::aligned_alloc(64, (zeroed + numbers * sizeof(uint16_t) + 63) & ~size_t{63}));
    if (lanes_ == nullptr) return false;
    std::memset(static_cast<void*>(lanes_), 0, zeroed);
    near_ = reinterpret_cast<uint32_t*>(lanes_ + 1);
    wide_ = near_ + kNearEntries;
    last_kept_ = wide_ + kWideEntries;
    last_scene_ = last_kept_ + width;
    values_ = reinterpret_cast<uint16_t*>(last_scene_ + width);
    return true;
  }

  // Where a channel's values of a step's pixels are to be put.
  L3_INLINE uint16_t* values(uint32_t step, uint32_t c) { return values_ + (size_t{step} * channels_ + c) * kStride; }

  // Begins a step, before its lanes ask. `lead` is the column of lane 0.
  L3_INLINE void begin_step(uint32_t step, uint32_t lead) {
    asking_ = near_asked_ = wide_asked_ = 0;
    std::memset(lanes_->sources, 0, sizeof(lanes_->sources));
    lead_ = lead;
    const uint32_t period = steps_.period, last = width_ - 1;
    const uint32_t* const scenes = lanes_->scenes[(step + 1) % 2];
    uint32_t *const inner = lanes_->inner, *const of_ne = lanes_->scene_of_ne;
    for (uint32_t l = 0; l < kStride; ++l) {
      const uint32_t column = lead - 2 * l + (lead < 2 * l ? period : 0);
      inner[l] = column < last ? UINT32_MAX : 0;
      of_ne[l] = scenes[l] & inner[l];
    }
  }
  // Finds the keys of a step's pixels, before find().
  L3_INLINE void find_keys() {
    const uint32_t *const trails = lanes_->trail_of_w, *const of_ne = lanes_->scene_of_ne;
    uint32_t* const keys = lanes_->keys;
    for (uint32_t l = 0; l < kStride; ++l) keys[l] = wide_key(trails[l], of_ne[l]);
  }
  // Finds what the pixel of a lane at column x, row y follows. `is_flat`: whether its four neighbours are equal.
  L3_INLINE void find(uint32_t step, uint32_t lane, uint32_t x, uint32_t y, const Around& around, bool is_flat) {
    Lanes& all = *lanes_;
    const uint32_t of_n = lane > 0 ? all.kept[(step - 2) % kSteps][lane - 1] : y > 0 ? last_kept_[x] : 0;
    const uint32_t of_w = x > 0 ? all.kept[(step - 1) % kSteps][lane] : 0;
    FollowKept found = FollowKept::of(of_n, of_w);
    if (!is_flat) {
      const uint32_t key = all.keys[lane];
      uint32_t* const entry = &wide_[wide_entry(key)];
      all.wide_entries[wide_asked_] = entry;
      all.wide_words[wide_asked_++] = wide_word(x, y, key);
      found = found.or_wide(wide_place(*entry, key));
    }
    if (found.place == 0) {
      uint32_t sum = 0;
      for (uint32_t c = 0; c < channels_; ++c) {
        const uint16_t* const factors = kNearFactors[c];
        sum += uint32_t{around.w[c][lane]} * factors[0] + uint32_t{around.n[c][lane]} * factors[1] +
               uint32_t{around.nw[c][lane]} * factors[2] + uint32_t{around.ne[c][lane]} * factors[3];
      }
      uint32_t* const entry = &near_[near_entry(sum)];
      all.near_entries[near_asked_] = entry;
      all.near_places[near_asked_++] = follow_place(x, y);
      found = {*entry, kFollowNear};
    }
    asking_ |= 1u << lane;
    all.places[lane] = 0;
    const uint32_t place = found.place;
    if (place == 0 || (place & 0xFFFF) > width_ || place >> 16 >= height_) return;
    const uint32_t its_step = steps_(place);
    if (its_step >= step) return;
    const uint16_t* const from = values(its_step, 0) + (place >> 16) % lane_count_;
    for (uint32_t c = 0; c < channels_; ++c) all.followed[c][lane] = from[size_t{c} * kStride];
    all.sources[lane] = static_cast<uint16_t>(1 + found.source);
    all.places[lane] = place;
  }
  // Ends a step, whose values are in values(). In `differs` are the lanes whose pixel is not the followed one. `last`
  // is the column of the last lane, or beyond the tile.
  L3_INLINE void end_step(uint32_t step, uint32_t last, uint32_t differs) {
    Lanes& all = *lanes_;
    uint32_t* const kept = all.kept[step % kSteps];
    std::memset(kept, 0, sizeof(all.kept[0]));
    for (uint32_t lanes = asking_ & ~differs; lanes != 0; lanes &= lanes - 1) {
      const uint32_t lane = static_cast<uint32_t>(__builtin_ctz(lanes));
      kept[lane] = all.places[lane];
    }
    for (uint32_t i = 0; i < near_asked_; ++i) put(all.near_entries[i], all.near_places[i]);
    for (uint32_t i = 0; i < wide_asked_; ++i) put(all.wide_entries[i], all.wide_words[i]);
    end_hashes(step);
    uint32_t* const scenes = all.scenes[step % 2];
    if (last < width_ && step >= 2 * (lane_count_ - 1)) {
      last_kept_[last] = kept[lane_count_ - 1];
      last_scene_[last] = scenes[lane_count_];
    }
    // What lane 0 needs in the next step.
    const uint32_t ne = lead_ + 1 == steps_.period ? 1 : lead_ + 2;
    scenes[0] = ne < width_ ? last_scene_[ne] : 0;
  }
  // Whether any lane asked in this step.
  bool asks() const { return asking_ != 0; }
  // For each lane of a step 0 if it follows nothing, else 1 + the source; and the values that it follows.
  const uint16_t* sources() const { return lanes_->sources; }
  const uint16_t* followed(uint32_t c) const { return lanes_->followed[c]; }

 private:
  static constexpr uint32_t kSteps = 4;  // whose kept places are needed, a power of two

  // What there is of each lane. Not in this object, since that lies on the stack.
  struct alignas(64) Lanes {
    uint32_t trail_of_w[kLanes];      // of the next pixel
    uint32_t scenes[2][kLanes + 16];  // of two steps: of the lane above; the first one is of the row above lane 0
    // All bits if the pixel is before the last column. (No lane looks at one above it that has not begun, and a lane's
    // last column sets its trail to 0.)
    uint32_t inner[kLanes];
    uint32_t scene_of_ne[kLanes], keys[kLanes];
    uint32_t kept[kSteps][kLanes], places[kLanes];
    uint32_t near_places[kLanes], wide_words[kLanes];
    uint32_t *near_entries[kLanes], *wide_entries[kLanes];
    uint16_t sources[kLanes], followed[kChannels][kLanes];
  };

  L3_INLINE static void put(uint32_t* entry, uint32_t word) { *entry = *entry > word ? *entry : word; }
  L3_INLINE void end_hashes(uint32_t step) {
    alignas(64) uint32_t sums[kStride];
    const uint16_t* const first = values(step, 0);
    for (uint32_t l = 0; l < kStride; ++l) sums[l] = (first[l] ^ kValueBias) * kValueFactors[0];
    for (uint32_t c = 1; c < kChannels; ++c) {
      if (c >= channels_) break;
      const uint32_t factor = kValueFactors[c];
      const uint16_t* const here = first + size_t{c} * kStride;
      for (uint32_t l = 0; l < kStride; ++l) sums[l] += (here[l] ^ kValueBias) * factor;
    }
    uint32_t* const scenes = lanes_->scenes[step % 2] + 1;
    uint32_t* const trails = lanes_->trail_of_w;
    for (uint32_t l = 0; l < kStride; ++l) {
      sums[l] = trail_of(sums[l], trails[l]);
      trails[l] = sums[l] & lanes_->inner[l];
    }
    for (uint32_t l = 0; l < kStride; ++l) scenes[l] = scene_of(sums[l], lanes_->scene_of_ne[l]);
  }

  Lanes* lanes_ = nullptr;  // the start of the memory; then:
  uint32_t *near_ = nullptr, *wide_ = nullptr;
  uint32_t *last_kept_ = nullptr, *last_scene_ = nullptr;  // of the pixels of the last lane, by column
  uint16_t* values_ = nullptr;
  uint32_t width_ = 0, height_ = 0, lane_count_ = 1, channels_ = 1, lead_ = 0;
  FollowSteps steps_{};
  uint32_t asking_ = 0, near_asked_ = 0, wide_asked_ = 0;
};

}  // namespace l3
