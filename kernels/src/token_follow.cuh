// Pixels of token tiles that follow others (section 15.6 of the spec), for the lanes of a GPU.
#pragma once

#include "cuda_instructions.cuh"
#include "follow_room.h"

namespace l3 {

// Where a tile keeps what its pixels may follow.
struct FollowMemory {
  uint32_t *kept, *scenes;  // of the pixels of the last lane, by column
  uint32_t *near, *wide;    // the tables, in device memory
  uint8_t* values;          // of all pixels so far, in device memory
};

// The values of a pixel, in memory that this warp writes. Other lanes may have written them before the last __syncwarp.
template <uint32_t kChannels>
struct FollowedValues {
  static constexpr uint32_t kWords = token_words(kChannels);

  L3_INLINE static void load(const uint8_t* from, uint32_t (&words)[kWords]) {
    if constexpr (kChannels == 1) {
      words[0] = load_written_half(from);
    } else if constexpr (kChannels == 2) {
      words[0] = load_written_word(from);
    } else {
      const uint2 both = load_written_two(from);
      words[0] = both.x;
      words[1] = both.y;
    }
  }
  template <class Lanes>
  L3_INLINE static void store(uint8_t* to, const Lanes* words) {
    if constexpr (kChannels == 1) {
      store_global_half(to, words[0].v);
    } else if constexpr (kChannels == 2) {
      store_global(to, words[0].v);
    } else {
      store_global_two(to, make_uint2(words[0].v, words[1].v));
    }
  }
};

// What a lane's pixels follow. Values are two to a word, as TokenNeighbours has them.
template <uint32_t kChannels>
class FollowedPixels {
 public:
  using Values = FollowedValues<kChannels>;
  static constexpr uint32_t kWords = Values::kWords;
  // The words of the values of a neighbour.
  struct Pixel {
    uint32_t words[kWords];
    L3_INLINE bool is(const uint32_t (&other)[kWords]) const {
      bool same = true;
      for (uint32_t word = 0; word < kWords; ++word) same = same && words[word] == other[word];
      return same;
    }
  };
  struct Around {
    Pixel w, n, nw, ne;
  };

  L3_INLINE explicit FollowedPixels(const FollowMemory& memory) : memory_(memory) {}

  // Begins a tile. All lanes call this and the following functions.
  L3_INLINE void begin(uint32_t width, uint32_t height, uint32_t lanes, uint32_t period) {
    static_assert((kNearEntries + kWideEntries) % (4 * kLanes) == 0);
    uint8_t* const tables = reinterpret_cast<uint8_t*>(memory_.near);
    for (uint32_t i = lane_number(); i < (kNearEntries + kWideEntries) / 4; i += kLanes) {
      store_global_four(tables + 16 * i, make_uint4(0, 0, 0, 0));
    }
    for (uint32_t x = lane_number(); x < width; x += kLanes) memory_.scenes[x] = 0;
    width_ = width;
    height_ = height;
    lanes_ = lanes;
    steps_ = {31 - static_cast<uint32_t>(__clz(static_cast<int>(lanes))), period};
    __syncwarp();
  }

  // Begins a step. `x` is the column of the lane's pixel; `active`: whether it has one.
  L3_INLINE void begin_step(uint32_t x, bool active) {
    number_ = 0;
    near_entry_ = kNearEntries;
    wide_word_ = 0;
    // A step ago the lane above was at NE.
    has_ne_ = active && x + 1 < width_;
    const uint32_t of_lane_above = __shfl_up_sync(kAllLanes, scene_, 1);
    scene_of_ne_ = 0;
    if (has_ne_) scene_of_ne_ = lane_number() == 0 ? memory_.scenes[x + 1] : of_lane_above;
  }
  // Finds what the pixel at this place follows, if it `asks`.
  L3_INLINE void find(uint32_t step, uint32_t x, uint32_t y, bool asks, const Around& around) {
    // Two steps ago the lane above was at N.
    uint32_t of_n = __shfl_up_sync(kAllLanes, kept_before_, 1);
    if (lane_number() == 0) of_n = asks && y > 0 ? memory_.kept[x] : 0;
    if (!asks) return;
    FollowKept found = FollowKept::of(of_n, x > 0 ? kept_ : 0);
    const bool is_flat = around.w.is(around.n.words) && around.nw.is(around.n.words) && around.ne.is(around.n.words);
    if (!is_flat) {
      const uint32_t key = wide_key(trail_of_w_, scene_of_ne_);
      wide_entry_ = wide_entry(key);
      wide_word_ = wide_word(x, y, key);
      found = found.or_wide(wide_place(load_atomic(&memory_.wide[wide_entry_]), key));
    }
    if (found.place == 0) {
      near_entry_ = near_entry(sum_of(around));
      found = {load_atomic(&memory_.near[near_entry_]), kFollowNear};
    }
    place_ = found.place;
    if (place_ == 0 || (place_ & 0xFFFF) > width_ || place_ >> 16 >= height_) return;
    const uint32_t its_step = steps_(place_);
    if (its_step >= step) return;
    Values::load(value_at(its_step, (place_ >> 16) & (lanes_ - 1)), followed_);
    const uint32_t relation = around.w.is(followed_)                               ? 0
                              : around.n.is(followed_)                             ? 1
                              : around.nw.is(followed_) || around.ne.is(followed_) ? 2
                                                                                   : 3;
    number_ = 1 + kFollowSources * relation + found.source;
  }
  // After find(): the number of what the pixel follows, and the values of that.
  L3_INLINE uint32_t number() const { return number_; }
  L3_INLINE uint32_t followed(uint32_t word) const { return followed_[word]; }

  // Ends a step, in which the lane's pixel at this place became `here`.
  template <class Lanes>
  L3_INLINE void end_step(uint32_t step, uint32_t x, uint32_t y, bool active, const Lanes* here) {
    uint32_t kept = number_ != 0 ? place_ : 0;
    for (uint32_t word = 0; word < kWords; ++word) kept = here[word].v == followed_[word] ? kept : 0;
    kept_before_ = kept_;
    kept_ = kept;
    const uint32_t trail = trail_of(sum_of_values(here), trail_of_w_);
    trail_of_w_ = has_ne_ ? trail : 0;
    scene_ = scene_of(trail, scene_of_ne_);
    if (active) {
      Values::store(value_at(step, lane_number()), here);
      if (lane_number() == lanes_ - 1) {
        memory_.kept[x] = kept;
        memory_.scenes[x] = scene_;
      }
    }
    __syncwarp();  // all lanes have read the tables
    if (near_entry_ < kNearEntries) atomicMax(&memory_.near[near_entry_], follow_place(x, y));
    if (wide_word_ != 0) atomicMax(&memory_.wide[wide_entry_], wide_word_);
    __syncwarp();
  }

 private:
  L3_INLINE uint8_t* value_at(uint32_t step, uint32_t lane) const {
    return multiply_add_wide(step * lanes_ + lane, value_bytes(kChannels), memory_.values);
  }
  template <class Lanes>
  L3_INLINE static uint32_t sum_of_values(const Lanes* here) {
    constexpr uint32_t kFirst = kValueFactors[0], kSecond = kValueFactors[1], kThird = kValueFactors[2],
                       kFourth = kValueFactors[3];
    uint32_t sum = (here[0].v & 0xFFFF) * kFirst;
    if constexpr (kChannels > 1) sum += (here[0].v >> 16) * kSecond;
    if constexpr (kChannels > 2) sum += (here[1].v & 0xFFFF) * kThird;
    if constexpr (kChannels > 3) sum += (here[1].v >> 16) * kFourth;
    return sum;
  }
  L3_INLINE static uint32_t sum_of(const Around& around) {
    uint32_t sum = part_of_sum<0>(around);
    if constexpr (kChannels > 1) sum += part_of_sum<1>(around);
    if constexpr (kChannels > 2) sum += part_of_sum<2>(around);
    if constexpr (kChannels > 3) sum += part_of_sum<3>(around);
    return sum;
  }
  template <uint32_t c>
  L3_INLINE static uint32_t part_of_sum(const Around& around) {
    constexpr uint32_t kW = kNearFactors[c][0], kN = kNearFactors[c][1], kNw = kNearFactors[c][2],
                       kNe = kNearFactors[c][3];
    const auto value = [](const Pixel& pixel) { return c % 2 == 0 ? pixel.words[c / 2] : pixel.words[c / 2] >> 16; };
    return value(around.w) * kW + value(around.n) * kN + value(around.nw) * kNw + value(around.ne) * kNe;
  }

  const FollowMemory memory_;
  uint32_t width_ = 0, height_ = 0, lanes_ = 1;
  FollowSteps steps_{};
  uint32_t kept_ = 0, kept_before_ = 0;  // what the lane's pixels of the last two steps keep
  uint32_t place_ = 0, number_ = 0, followed_[kWords] = {};
  // The hashes of the pixel before, and of the neighbours of this one.
  uint32_t scene_ = 0, trail_of_w_ = 0, scene_of_ne_ = 0;
  bool has_ne_ = false;
  uint32_t near_entry_ = kNearEntries;       // which the pixel asked, or none
  uint32_t wide_entry_ = 0, wide_word_ = 0;  // the same; the word is 0 if it asked none
};

}  // namespace l3
