// What decoding dense tiles with a model of kind 0 adds to a WordWarp on processors: records and planes.
//
// A record is a sample in the lower byte and its error, plus 128, in the upper byte. Sums of weights times samples and
// errors are taken modulo 2^16, so half as many registers hold them as hold states. A plane has a byte for each lane.
//
// Everything here works on any processor. targets/dense_warp_*.h replace what SSE, AVX2 and NEON do faster.
#pragma once

#include "engine/word_warp.h"

namespace l3 {

// Zones for processors that look up 16 bytes at once: for a distance's upper four bits, the zone of the first such
// distance, and the distance from which on it is the next one. At most one zone begins among 16 distances.
struct ZoneSteps {
  alignas(16) uint8_t first[16], begin[16];
  constexpr ZoneSteps() : first(), begin() {
    for (uint32_t i = 0; i < 16; ++i) {
      first[i] = static_cast<uint8_t>(zone_of(16 * i));
      uint32_t at = 16 * i;
      while (at < 16 * i + 16 && zone_of(at) == first[i]) ++at;
      begin[i] = static_cast<uint8_t>(at);
    }
  }
};
inline constexpr ZoneSteps kZoneSteps;

// Calls `f` with the buckets at two places (see DenseWarp::store_places). Both places are loaded at once: loads that
// wait for a store of another size are slow.
template <class FirstBucket, class F>
L3_INLINE auto at_two_places(FirstBucket first_bucket, const Bucket* buckets, const uint32_t* places, const F& f) {
  uint64_t both;
  std::memcpy(&both, places, 8);
  const uint32_t a = static_cast<uint32_t>(both), b = static_cast<uint32_t>(both >> 32);
  return f(buckets + (first_bucket[a & 0xFFFF] + (a >> 16)), buckets + (first_bucket[b & 0xFFFF] + (b >> 16)));
}

// A record whose sample and error are 0.
constexpr uint32_t kNoRecord = 0x8000;
// Six signs of a sign pattern: those of errors are 0 in a record where the error is negative.
constexpr uint8_t kErrorSigns = 0x3C;

// The weights of a sample and its error, a signed byte each.
L3_INLINE uint16_t byte_pair(int32_t of_sample, int32_t of_error) {
  return static_cast<uint16_t>((of_sample & 0xFF) | (of_error & 0xFF) << 8);
}

// `Self` is the derived warp, whose replacements of functions are used here. `Words` is a WordWarp.
template <class Self, class Words>
struct DenseWarp : Words {
  using typename Words::Lanes;
  using Words::kPartLanes, Words::kParts;
  static constexpr size_t kBytes = 4 * kPartLanes;
  using Bytes = typename VectorTypes<kBytes>::U8;

  // ---- records, and sums: 16 bits for each lane

  struct Records {
    typename VectorTypes<kBytes>::U16 v;

    L3_INLINE friend Records operator>>(Records a, int count) { return {a.v >> count}; }
    L3_INLINE friend Records operator<<(Records a, int count) { return {a.v << count}; }
  };
  static constexpr uint32_t kRecords = kBytes / 2;  // in a vector
  static constexpr uint32_t kRecordParts = kLanes / kRecords;
  // Lanes go from word vectors to record vectors in order: so many of the former to one of the latter.
  static constexpr uint32_t kPartsOfRecords = kParts / kRecordParts;

  L3_INLINE static Records load_records(const uint16_t* from) {
    Records r;
    std::memcpy(&r.v, from, kBytes);
    return r;
  }
  L3_INLINE static void store_records(uint16_t* to, Records a) { std::memcpy(to, &a.v, kBytes); }
  L3_INLINE static Records all_records(uint32_t value) {
    return {typename VectorTypes<kBytes>::U16{} + static_cast<uint16_t>(value)};
  }
  // Repeats two records.
  L3_INLINE static Records repeat_two(const uint16_t* two) {
    Records r;
    for (uint32_t i = 0; i < kRecords; ++i) r.v[i] = two[i % 2];
    return r;
  }

  // Weights for the two bytes of a record take kWeightWords words of 16 bits, `step` words from one to the next.
  // Here w0 * record + w1 * (record >> 8) is what is wanted, modulo 2^16.
  static constexpr uint32_t kWeightWords = 2;
  L3_INLINE static void put_weights(int32_t of_low, int32_t of_high, uint16_t* to, uint32_t step) {
    to[0] = static_cast<uint16_t>(of_low);
    to[step] = static_cast<uint16_t>(of_high - 256 * of_low);
  }
  template <uint32_t kStep>
  L3_INLINE static Records add_products(Records records, const uint16_t* weights, Records sum) {
    const Records low = load_records(weights), high = load_records(weights + kStep);
    return {static_cast<decltype(sum.v)>(sum.v + records.v * low.v + (records.v >> 8) * high.v)};
  }
  // Whether pick_records() picks a record for each lane by its number, from as many as there are lanes.
  static constexpr bool kPicksRecords = false;
  // The distance of the bytes of a from those of b.
  L3_INLINE static Records distances(Records a, Records b) {
    const Bytes x = (Bytes)a.v, y = (Bytes)b.v;
    const Bytes larger = x > y ? x : y, smaller = x > y ? y : x;
    return {(decltype(a.v))(larger - smaller)};
  }
  // The same, where both bytes of b are 128: magnitudes of errors.
  L3_INLINE static Records magnitudes(Records a) { return Self::distances(a, all_records(0x8080)); }
  // The lower bytes of `low`, the upper bytes of `high`.
  L3_INLINE static Records merge(Records low, Records high) { return {(low.v & 0xFF) | (high.v & 0xFF00)}; }
  // Which bytes of a are not below those of b: all of their bits, or as a warp likes it, for pack_signs().
  using Signs = Records;
  L3_INLINE static Records not_below(Records a, Records b) { return {(decltype(a.v))((Bytes)a.v >= (Bytes)b.v)}; }

  // Move each lane's record up by one or two lanes. The first lanes get the last ones of `before`.
  L3_INLINE static Records shift_up_one(Records a, Records before) {
    return shift_up_by<1>(a, before, std::make_integer_sequence<int, static_cast<int>(kRecords)>{});
  }
  L3_INLINE static Records shift_up_two(Records a, Records before) {
    return shift_up_by<2>(a, before, std::make_integer_sequence<int, static_cast<int>(kRecords)>{});
  }

  // ---- planes: a byte for each of the 32 lanes, in any order that suits the processor

  using Plane = BytePlane<(kBytes < 32 ? kBytes : 32)>;
  L3_INLINE static Plane no_bytes() { return {}; }
  // From sums of weights times values: the predictions, as a plane and as records without an error, and a mask of the
  // lanes that lean upwards: those where the fraction that was cut off is at least one half.
  L3_INLINE static void split_sums(const Records* sums, Plane& p, Plane& up, Records* predictions) {
    int32_t within[kLanes];
    for (uint32_t i = 0; i < kLanes; ++i) {
      const int32_t sum = static_cast<int16_t>(sums[i / kRecords].v[i % kRecords]);
      within[i] = sum < 0 ? 0 : sum < (256 << kWeightShift) ? sum : (256 << kWeightShift) - 1;
      predictions[i / kRecords].v[i % kRecords] =
          static_cast<uint16_t>(static_cast<uint32_t>(within[i] >> kWeightShift) | kNoRecord);
    }
    p = Plane::of([&](uint32_t i) { return within[i] >> kWeightShift; });
    up = Plane::of([&](uint32_t i) { return -(within[i] >> (kWeightShift - 1) & 1); });
  }
  // The lowest byte of each lane.
  L3_INLINE static Plane pack_bytes(const Lanes* lanes) {
    return Plane::of([&](uint32_t i) { return lanes[i / kPartLanes].v[i % kPartLanes]; });
  }
  // The levels of activities.
  L3_INLINE static Plane pack_levels(const Records* activities) {
    Lanes levels[kParts];
    for (uint32_t i = 0; i < kLanes; ++i) {
      levels[i / kPartLanes].v[i % kPartLanes] = activities[i / kRecords].v[i % kRecords];
    }
    for (Lanes& part : levels) part = Self::level(part);
    return Self::pack_bytes(levels);
  }
  // Sign patterns in the decoder's order, from six bytes of each lane whose uppermost bits count: those of a are bits 0
  // and 2, those of b bits 1 and 3, those of c bits 4 and 5. The bits of errors are inverted.
  L3_INLINE static Plane pack_signs(const Records* a, const Records* b, const Records* c) {
    return Plane::of([&](uint32_t i) {
      const auto bit = [&](const Records* of, int from, int to) {
        return (of[i / kRecords].v[i % kRecords] >> from & 1) << to;
      };
      const int pattern = bit(a, 7, 0) | bit(b, 7, 1) | bit(a, 15, 2) | bit(b, 15, 3) | bit(c, 7, 4) | bit(c, 15, 5);
      return pattern ^ kErrorSigns;
    });
  }
  // The rows of contexts. `distance`: how far the prediction is from the end of the range towards which it leans.
  // Of `pattern` six bits count.
  L3_INLINE static Plane rows(const DenseTables& tables, uint32_t channel, const Plane& distance,
                              const Plane& pattern) {
    uint8_t distances[kLanes], patterns[kLanes];
    distance.store(distances);
    pattern.store(patterns);
    const uint8_t *const of_zone = tables.zone_row[channel], *const of_pattern = tables.pattern_row[channel];
    return Plane::of([&](uint32_t i) { return of_zone[zone_of(distances[i])] + of_pattern[patterns[i] & 63]; });
  }
  // Where each lane's symbol is: in the lower half the context, which is an index into table_of, in the upper half the
  // bucket that its state selects.
  L3_INLINE static void store_places(const Plane& levels, const Plane& rows, const Lanes* states, uint32_t* places) {
    uint8_t level[kLanes], row[kLanes];
    levels.store(level);
    rows.store(row);
    for (uint32_t i = 0; i < kLanes; ++i) {
      const uint32_t slot = states[i / kPartLanes].v[i % kPartLanes] % kProbabilities;
      places[i] = (level[i] + row[i] * kLevels) | slot / (kProbabilities / kTableBuckets) << 16;
    }
  }
  // Looks up the buckets of a part's lanes: first_bucket[context] is the place of the context's table.
  template <class FirstBucket, class Places>
  L3_INLINE static void look_up_places(FirstBucket first_bucket, const Bucket* buckets, Places places, Lanes& own,
                                       Lanes& other) {
    for (uint32_t i = 0; i < kPartLanes; ++i) {
      const Bucket& b = buckets[first_bucket[places[i] & 0xFFFF] + (places[i] >> 16)];
      own.v[i] = b.own;
      other.v[i] = b.other;
    }
  }
  // The same for a part of what store_places() has stored.
  template <class FirstBucket>
  L3_INLINE static void look_up_part(FirstBucket first_bucket, const Bucket* buckets, const uint32_t* places,
                                     uint32_t part, Lanes& own, Lanes& other) {
    Self::look_up_places(first_bucket, buckets, places + part * kPartLanes, own, other);
  }
  // The records of samples and their predictions. The error is the difference, at least -128 and at most 127.
  L3_INLINE static void records(const Plane& samples, const Plane& predictions, Records* r) {
    uint8_t sample[kLanes], p[kLanes];
    samples.store(sample);
    predictions.store(p);
    for (uint32_t i = 0; i < kLanes; ++i) {
      const int32_t difference = sample[i] - p[i];
      const int32_t error = difference < kMinError ? kMinError : difference > kMaxError ? kMaxError : difference;
      r[i / kRecords].v[i % kRecords] = static_cast<uint16_t>(sample[i] | (error + 128) << 8);
    }
  }
  // Pixels, a byte for each channel.
  template <uint32_t kChannels>
  L3_INLINE static void pixels(const Plane* channels, Lanes* r) {
    uint8_t bytes[kChannels][kLanes];
    for (uint32_t c = 0; c < kChannels; ++c) channels[c].store(bytes[c]);
    for (uint32_t i = 0; i < kLanes; ++i) {
      uint32_t pixel = 0;
      for (uint32_t c = 0; c < kChannels; ++c) pixel |= uint32_t{bytes[c][i]} << (8 * c);
      r[i / kPartLanes].v[i % kPartLanes] = pixel;
    }
  }

 private:
  template <int kBy, int... kIndex>
  L3_INLINE static Records shift_up_by(Records a, Records before, std::integer_sequence<int, kIndex...>) {
    return {__builtin_shufflevector(before.v, a.v, (static_cast<int>(kRecords) - kBy + kIndex)...)};
  }
};

// For any processor.
struct PortableDenseWarp : DenseWarp<PortableDenseWarp, WordWarp<PortableDenseWarp, 16>> {};

}  // namespace l3
