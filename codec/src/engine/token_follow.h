// What the pixels of a token tile follow, on processors (section 15.6 of the spec).
//
// Everything is computed for all lanes at once, in loops that compilers turn into vectors. Only what is looked up is
// looked up lane by lane, for the lanes that ask: the tables' entries, and then the pixels that are followed.
#pragma once

#include <cstdlib>
#include <cstring>
#include <type_traits>

#include "engine/follow.h"
#include "engine/step_records.h"
#include "engine/token_warp.h"

namespace l3 {

template <class W, uint32_t kChannels, class Value>
class TokenFollow {
  using Values = typename RecordsOf<W, Value>::Vector;
  static constexpr uint32_t kRecords = RecordsOf<W, Value>::kCount, kRecordParts = RecordsOf<W, Value>::kParts;
  static constexpr uint32_t kStride = kRecordParts * kRecords;  // lanes
  static constexpr bool kAreWords = kPixelsAreWords<kChannels, Value>;
  // A pixel with its channels side by side, so that one that is followed is one load.
  using Pixel = std::conditional_t<kChannels == 1, Value, std::conditional_t<kAreWords, uint32_t, uint64_t>>;

 public:
  // What the sink takes of a step.
  using Number = std::conditional_t<kAreWords, uint32_t, Value>;

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
    const size_t pixels = size_t{dense_steps(width, height, lanes)} * kStride;
    const size_t words = (kNearEntries + kWideEntries + 2 * size_t{width} + 15) & ~size_t{15};
    const size_t zeroed = sizeof(Lanes) + words * sizeof(uint32_t);
    lanes_ = static_cast<Lanes*>(std::aligned_alloc(64, (zeroed + pixels * sizeof(Pixel) + 63) & ~size_t{63}));
    if (lanes_ == nullptr) return false;
    std::memset(static_cast<void*>(lanes_), 0, zeroed);
    near_ = reinterpret_cast<uint32_t*>(lanes_ + 1);
    wide_ = near_ + kNearEntries;
    last_kept_ = wide_ + kWideEntries;
    last_scene_ = last_kept_ + width;
    pixels_ = reinterpret_cast<Pixel*>(near_ + words);
    return true;
  }

  // Begins a step, before its lanes ask. `lead` is the column of lane 0. `is_inside`: no lane is at an edge.
  L3_INLINE void begin_step(uint32_t lead, bool is_inside) {
    asking_ = near_asked_ = wide_asked_ = 0;
    lead_ = lead;
    if (is_inside && was_inside_) return;
    was_inside_ = is_inside;
    uint32_t *const before_last = lanes_->before_last, *const after_first = lanes_->after_first;
    const uint32_t period = steps_.period, last = width_ - 1;
    for (uint32_t l = 0; l < kStride; ++l) {
      const uint32_t column = lead - 2 * l + (lead < 2 * l ? period : 0);
      before_last[l] = column < last ? UINT32_MAX : 0;
      after_first[l] = column != 0 ? UINT32_MAX : 0;
    }
  }
  // Finds what the pixels of these lanes follow. `flat`: the lanes whose four neighbours are equal. `sum_near` puts the
  // sums of each lane's neighbours and their factors. Lane 0 is in row `lead_row`.
  template <class SumNear>
  L3_INLINE void find(uint32_t step, uint32_t lead_row, uint32_t lanes, uint32_t flat, const SumNear& sum_near) {
    Lanes& all = *lanes_;
    asking_ = lanes;
    wide_asked_ = lanes & ~flat;
    uint32_t *const keys = all.keys, *const entries = all.entries, *const words = all.words, *const places = all.places;
    Value* const sources = all.sources;
    const uint32_t *const scenes = all.scenes[(step + 1) % 2], *const before_last = all.before_last;
    for (uint32_t l = 0; l < kStride; ++l) {
      keys[l] = wide_key(all.trail_of_w[l], scenes[l] & before_last[l]);
      entries[l] = wide_entry(keys[l]);
    }
    for (uint32_t l = 0; l < kStride; ++l) words[l] = 0;
    look_up(wide_, entries, wide_asked_, words);
    uint32_t* const of_n = all.kept[(step - 2) % kSteps];
    const uint32_t *const of_w = all.kept[(step - 1) % kSteps] + 1, *const after_first = all.after_first;
    of_n[0] = lead_ < width_ ? last_kept_[lead_] : 0;
    for (uint32_t l = 0; l < kStride; ++l) {
      const FollowKept kept = FollowKept::of(of_n[l], of_w[l] & after_first[l]);
      const FollowKept found = kept.or_wide(wide_place(words[l], keys[l]));
      places[l] = found.place;
      sources[l] = static_cast<Value>(1 + (found.place != 0 ? found.source : uint32_t{kFollowNear}));
    }
    near_asked_ = lanes & ~lanes_with_places();
    if (near_asked_ != 0) {
      alignas(64) uint16_t sums[kLanes];
      sum_near(sums);
      uint32_t* const near_entries = all.near_entries;
      for (uint32_t l = 0; l < kStride; ++l) near_entries[l] = near_entry(sums[l]);
      look_up(near_, near_entries, near_asked_, places);
    }
    // Places are in the tile, or one column or row beyond it.
    const uint32_t width = width_, height = height_, period = steps_.period, log_lanes = steps_.log_lanes,
                   last_lane = lane_count_ - 1;
    const int32_t now = static_cast<int32_t>(step);
    uint32_t* const at = all.at;
    for (uint32_t l = 0; l < kStride; ++l) {
      const uint32_t place = places[l], y = place >> 16, x = (place & 0xFFFF) - 1, lane = y & last_lane;
      const uint32_t its_step = (y >> log_lanes) * period + x + 2 * lane;
      const bool is_ready = (x < width) & (y != height) & (static_cast<int32_t>(its_step) < now);  // x: -1 if no place
      const uint32_t ready = is_ready ? UINT32_MAX : 0;
      places[l] = place & ready;
      sources[l] = static_cast<Value>(sources[l] & ready);
      at[l] = (its_step * kStride + index_of(lane)) & ready;
    }
    lead_row_ = lead_row;
    if constexpr (kAreWords) {
      typename W::Lanes pixels[W::kParts];
      for (uint32_t part = 0; part < W::kParts; ++part) {
        pixels[part] = W::gather(pixels_, at + part * W::kPartLanes);
      }
      L3_UNROLL_UP_TO(kStride) prefetch(at[part]);
      W::channels_of(pixels, followed_[0], kRecordParts);
    } else {
      const uint32_t following = lanes & lanes_with_places();
      const auto load = [&](uint32_t lane) __attribute__((always_inline)) {
        all.followed[kIndices.of[lane]] = pixels_[at[lane]];
        prefetch(at[lane]);
      };
      if (__builtin_popcount(following) > kMany) {
        L3_UNROLL_UP_TO(kStride) load(part);
      } else {
        for (uint32_t left = following; left != 0; left &= left - 1) load(static_cast<uint32_t>(__builtin_ctz(left)));
      }
      load_followed();
    }
  }
  // Ends a step: what its pixels are, and the same by channel as `values`. In `differs` are the lanes whose pixel is
  // not the followed one. `last` is the column of the last lane, or beyond the tile.
  L3_INLINE void end_step(uint32_t step, uint32_t last, uint32_t differs, const Values (&here)[kChannels][kRecordParts],
                          const Number* const (&values)[kChannels]) {
    Lanes& all = *lanes_;
    keep_pixels(step, here, values[0]);
    uint32_t* const kept = all.kept[step % kSteps] + 1;
    const uint32_t agree = asking_ & ~differs;
    const uint32_t* const places = all.places;
    for (uint32_t l = 0; l < kStride; ++l) kept[l] = (agree & kLaneBits.of[l]) != 0 ? places[l] : 0;
    if (asking_ != 0) offer();
    end_hashes(step, values);
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
  // For each lane of a step that asked, 0 if it follows nothing, else 1 + the source; and the values that it follows.
  L3_INLINE Values sources(uint32_t part) const { return W::load_records(lanes_->sources + part * kRecords); }
  L3_INLINE Values followed(uint32_t c, uint32_t part) const {
    if constexpr (kChannels == 1) {
      return W::load_records(lanes_->followed + part * kRecords);
    } else {
      return followed_[c][part];
    }
  }

 private:
  static constexpr uint32_t kSteps = 4;  // whose kept places are needed, a power of two
  static constexpr int kMany = 12;       // lanes: then looking up all takes less time
  struct LaneBits {
    alignas(64) uint32_t of[kLanes];
    constexpr LaneBits() : of() {
      for (uint32_t l = 0; l < kLanes; ++l) of[l] = 1u << l;
    }
  };
  static constexpr LaneBits kLaneBits{};

  // What there is of each lane. Not in this object, since that lies on the stack.
  struct alignas(64) Lanes {
    uint32_t trail_of_w[kLanes];  // of the next pixel
    // Of some steps: of the lane above; the first one is of the row above lane 0.
    uint32_t scenes[2][kLanes + 16], kept[kSteps][kLanes + 16];
    // All bits if the pixel is before the last column, or after the first one. (No lane looks at one above it that has
    // not begun, and a lane's last column sets its trail to 0.)
    uint32_t before_last[kLanes], after_first[kLanes];
    uint32_t keys[kLanes], entries[kLanes], words[kLanes], places[kLanes], at[kLanes], near_entries[kLanes];
    Value sources[kLanes];
    Pixel followed[kLanes];
  };

  L3_INLINE uint32_t lanes_with_places() const {
    uint32_t lanes = 0;
    for (uint32_t part = 0; part < W::kParts; ++part) {
      const auto none = W::equal(W::load(lanes_->places + part * W::kPartLanes), 0);
      lanes |= (W::bits(none) ^ W::kAllBits) << (part * W::kPartLanes);
    }
    return lanes;
  }
  // What a lane follows three steps later, mostly.
  L3_INLINE void prefetch(uint32_t at) const { __builtin_prefetch(pixels_ + at + 3 * kStride); }
  // Looks up the words of the lanes that ask a table. They must be 0 before.
  L3_INLINE void look_up(const uint32_t* table, const uint32_t* entries, uint32_t asked, uint32_t* words) {
    if (__builtin_popcount(asked) > kMany) {
      alignas(64) uint32_t found[kStride];
      for (uint32_t part = 0; part < W::kParts; ++part) {
        W::store(found + part * W::kPartLanes, W::gather(table, entries + part * W::kPartLanes));
      }
      for (uint32_t l = 0; l < kStride; ++l) words[l] |= (asked & kLaneBits.of[l]) != 0 ? found[l] : 0;
      return;
    }
    for (uint32_t left = asked; left != 0; left &= left - 1) {
      const uint32_t lane = static_cast<uint32_t>(__builtin_ctz(left));
      words[lane] = table[entries[lane]];
    }
  }
  // Offers words to the entries that lanes asked. An entry keeps the greatest one, so that 0 changes nothing.
  L3_INLINE void put(uint32_t* table, const uint32_t* entries, uint32_t asked, uint32_t* words) {
    const auto put_one = [&](uint32_t lane) __attribute__((always_inline)) {
      uint32_t& entry = table[entries[lane]];
      entry = entry > words[lane] ? entry : words[lane];
    };
    if (__builtin_popcount(asked) > kMany) {
      for (uint32_t l = 0; l < kStride; ++l) words[l] = (asked & kLaneBits.of[l]) != 0 ? words[l] : 0;
      L3_UNROLL_UP_TO(kStride) put_one(part);
      return;
    }
    for (uint32_t left = asked; left != 0; left &= left - 1) put_one(static_cast<uint32_t>(__builtin_ctz(left)));
  }
  // Offers the pixels to the entries that they asked.
  L3_INLINE void offer() {
    // The words of the pixels, of which lane 0's is `here`.
    const uint32_t lead = lead_, here = lead_row_ << 22 | lead << kTagBits, next = (1u << 22) - (2u << kTagBits),
                   wraps = (steps_.period << kTagBits) - (lane_count_ << 22);
    uint32_t *const words = lanes_->words, *const keys = lanes_->keys;
    for (uint32_t l = 0; l < kStride; ++l) {
      words[l] = (here + l * next + (lead < 2 * l ? wraps : 0)) | wide_tag(keys[l]);
    }
    if (near_asked_ != 0) {
      alignas(64) uint32_t places[kLanes];
      for (uint32_t l = 0; l < kStride; ++l) {
        places[l] = follow_place(words[l] >> kTagBits & (kMaxTileEdge - 1), words[l] >> 22);
      }
      put(near_, lanes_->near_entries, near_asked_, places);
    }
    put(wide_, lanes_->entries, wide_asked_, words);
  }
  L3_INLINE void end_hashes(uint32_t step, const Number* const (&values)[kChannels]) {
    alignas(64) uint32_t sums[kStride];
    const Number* const first = values[0];
    if constexpr (kAreWords) {
      for (uint32_t l = 0; l < kStride; ++l) {
        uint32_t sum = (first[l] & 0xFF) * kValueFactors[0];
        for (uint32_t c = 1; c < kChannels; ++c) sum += (first[l] >> (8 * c) & 0xFF) * kValueFactors[c];
        sums[l] = sum;
      }
    } else {
      constexpr Number kBias = sizeof(Number) == 1 ? 0 : kValueBias;
      for (uint32_t l = 0; l < kStride; ++l) sums[l] = (first[l] ^ kBias) * kValueFactors[0];
      for (uint32_t c = 1; c < kChannels; ++c) {
        if (c >= channels_) break;
        const uint32_t factor = kValueFactors[c];
        const Number* const here = values[c];
        for (uint32_t l = 0; l < kStride; ++l) sums[l] += (here[l] ^ kBias) * factor;
      }
    }
    const uint32_t *const of_ne = lanes_->scenes[(step + 1) % 2], *const before_last = lanes_->before_last;
    uint32_t* const scenes = lanes_->scenes[step % 2] + 1;
    uint32_t* const trails = lanes_->trail_of_w;
    for (uint32_t l = 0; l < kStride; ++l) {
      sums[l] = trail_of(sums[l], trails[l]);
      trails[l] = sums[l] & before_last[l];
    }
    for (uint32_t l = 0; l < kStride; ++l) scenes[l] = scene_of(sums[l], of_ne[l] & before_last[l]);
  }

  // ---- pixels: of a step, in an order of the processor's

  // Where a lane's pixel is among those of its step.
  L3_INLINE static constexpr uint32_t index_of(uint32_t lane) {
    if (kChannels == 1 || kAreWords) return lane;
    const uint32_t of_part = lane % kRecords;
    return lane - of_part + of_part % 8 / 2 * (kRecords / 4) + of_part / 8 * 2 + of_part % 2;
  }
  struct Indices {
    uint8_t of[kLanes];
    constexpr Indices() : of() {
      for (uint32_t l = 0; l < kLanes; ++l) of[l] = static_cast<uint8_t>(index_of(l));
    }
  };
  L3_INLINE void keep_pixels(uint32_t step, const Values (&here)[kChannels][kRecordParts], const Number* numbers) {
    Pixel* const pixels = pixels_ + size_t{step} * kStride;
    if constexpr (kChannels == 1) {
      for (uint32_t part = 0; part < kRecordParts; ++part) W::store_records(pixels + part * kRecords, here[0][part]);
    } else if constexpr (kAreWords) {
      for (uint32_t part = 0; part < W::kParts; ++part) {
        W::store(pixels + part * W::kPartLanes, W::load(numbers + part * W::kPartLanes));
      }
    } else {
      uint16_t* const to = reinterpret_cast<uint16_t*>(pixels);
      for (uint32_t part = 0; part < kRecordParts; ++part) {
        Values even[2], odd[2], four[4];
        const auto channel = [&](uint32_t c) __attribute__((always_inline)) {
          return c < kChannels ? here[c][part] : W::all_records(0);
        };
        W::interleave(channel(0), channel(2), even);
        W::interleave(channel(1), channel(3), odd);
        W::interleave(even[0], odd[0], four);
        W::interleave(even[1], odd[1], four + 2);
        for (uint32_t i = 0; i < 4; ++i) W::store_records(to + (4 * part + i) * kRecords, four[i]);
      }
    }
  }
  // The other way round.
  L3_INLINE void load_followed() {
    if constexpr (kChannels > 1 && !kAreWords) {
      const uint16_t* const from = reinterpret_cast<const uint16_t*>(lanes_->followed);
      for (uint32_t part = 0; part < kRecordParts; ++part) {
        const auto pixels = [&](uint32_t i) { return W::load_records(from + (4 * part + i) * kRecords); };
        Values by_four[4], by_two[4], channels[4];
        W::interleave(pixels(0), pixels(2), by_four);
        W::interleave(pixels(1), pixels(3), by_four + 2);
        W::interleave(by_four[0], by_four[2], by_two);
        W::interleave(by_four[1], by_four[3], by_two + 2);
        W::interleave(by_two[0], by_two[2], channels);
        W::interleave(by_two[1], by_two[3], channels + 2);
        for (uint32_t c = 0; c < kChannels; ++c) followed_[c][part] = channels[c];
      }
    }
  }

  static constexpr Indices kIndices{};

  Lanes* lanes_ = nullptr;  // the start of the memory; then:
  uint32_t *near_ = nullptr, *wide_ = nullptr;
  uint32_t *last_kept_ = nullptr, *last_scene_ = nullptr;  // of the pixels of the last lane, by column
  Pixel* pixels_ = nullptr;
  uint32_t width_ = 0, height_ = 0, lane_count_ = 1, channels_ = 1, lead_ = 0, lead_row_ = 0;
  FollowSteps steps_{};
  uint32_t asking_ = 0, near_asked_ = 0, wide_asked_ = 0;
  bool was_inside_ = false;
  Values followed_[kChannels == 1 ? 1 : 4][kRecordParts] = {};
};

}  // namespace l3
