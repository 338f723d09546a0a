// The weights of a dense tile's lanes. Each lane has those of the class of its block: so many words of 16 bits for each
// channel.
#pragma once

#include <type_traits>

#include "engine/dense_warp.h"

namespace l3 {

// Words by lane: those of a class are copied when a lane enters a block.
template <class W, uint32_t kChannels, uint32_t kWords>
class WeightsOfLanes {
  using Records = typename W::Records;

 public:
  void set(uint32_t channel, uint32_t k, uint32_t word, uint16_t value) { of_classes_[channel][k][word] = value; }
  // Gives the first words of class k to a lane.
  L3_INLINE void enter(uint32_t channel, uint32_t lane, uint32_t k, uint32_t words) {
    const uint16_t* const from = held(of_classes_[channel][k]);
    uint16_t* const to = held(of_lanes_[channel][0] + lane);
    // Word by word: compilers would load all words, then store them all.
    for (uint32_t word = 0; word < words; ++word) to[word * kLanes] = held(from[word]);
  }

  // Of a channel, for the lanes of one vector of records.
  class Part {
   public:
    L3_INLINE explicit Part(const uint16_t* at) : at_(at) {}
    L3_INLINE Records load(uint32_t word) const { return W::load_records(at_ + word * kLanes); }
    // Adds the products of records and their weights, whose words begin with this one.
    L3_INLINE Records add_products(Records records, uint32_t word, Records sum) const {
      return W::template add_products<kLanes>(records, at_ + word * kLanes, sum);
    }

   private:
    const uint16_t* at_;
  };
  L3_INLINE Part part(uint32_t channel, uint32_t part) const {
    return Part(held(of_lanes_[channel][0] + part * W::kRecords));
  }

 private:
  alignas(64) uint16_t of_lanes_[kChannels][kWords][kLanes] = {};
  uint16_t of_classes_[kChannels][kMaxClasses][kWords];
};

// Words by class, for processors on which one register holds those of all classes: each lane picks its own.
template <class W, uint32_t kChannels, uint32_t kWords>
class WeightsOfClasses {
  using Records = typename W::Records;
  static_assert(kMaxClasses == kLanes);

 public:
  void set(uint32_t channel, uint32_t k, uint32_t word, uint16_t value) { of_classes_[channel][word][k] = value; }
  L3_INLINE void enter(uint32_t channel, uint32_t lane, uint32_t k, uint32_t) {
    classes_[channel][lane] = static_cast<uint16_t>(k);
  }

  class Part {
   public:
    L3_INLINE Part(const uint16_t* at, Records classes) : at_(at), classes_(classes) {}
    L3_INLINE Records load(uint32_t word) const { return W::pick_records(at_ + word * kLanes, classes_); }
    L3_INLINE Records add_products(Records records, uint32_t word, Records sum) const {
      return W::add_products(records, load(word), sum);
    }

   private:
    const uint16_t* at_;
    Records classes_;
  };
  L3_INLINE Part part(uint32_t channel, uint32_t) const {
    return {of_classes_[channel][0], W::load_records(classes_[channel])};
  }

 private:
  alignas(64) uint16_t of_classes_[kChannels][kWords][kLanes] = {};
  alignas(64) uint16_t classes_[kChannels][kLanes] = {};
};

template <class W, uint32_t kChannels, uint32_t kWords>
using DenseWeights =
    std::conditional_t<W::kPicksRecords, WeightsOfClasses<W, kChannels, kWords>, WeightsOfLanes<W, kChannels, kWords>>;

}  // namespace l3
