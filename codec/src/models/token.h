// A token model in the decoder's form, and the small rules of its tiles (sections 14 and 15 of the spec), for
// processors and GPUs alike.
#pragma once

#include "models/dense_tables.h"

namespace l3 {

constexpr uint32_t kDenseModelKind = 0, kTokenModelKind = 1;
constexpr uint32_t kMaxTokenTables = 64;
constexpr uint32_t kFollowFlag = 64;  // in byte 3 of a model
constexpr uint32_t kTokenBuckets = 64;
constexpr uint32_t kDirectTokens = 32;  // tokens below this are the number themselves
constexpr uint32_t kTokens = 54;
constexpr uint32_t kTokenLevels = 84;
constexpr uint32_t kMatchOctaves = kTokenLevels / 4;
constexpr uint32_t kMaxMatchRows = 32;
constexpr uint32_t kMatchPatterns = 256;
constexpr uint32_t kLiteralContexts = 256;
constexpr uint32_t kMaxValues = 32768;  // listed values of a model, of all channels together
constexpr int32_t kMaxTokenError = 32767;
constexpr uint32_t kMaxActivity = (1u << 24) - 1;

// Processors store values minus 32768 in 16 bits, two channels to a word, so that instructions that multiply pairs of
// signed 16-bit numbers can be used. The weights of values add up to a constant, so a constant corrects for the bias.
constexpr uint32_t kValueBias = 32768;
L3_INLINE constexpr uint32_t token_words(uint32_t channels) { return (channels + 1) / 2; }

// A flag next to the class of a block's first channel, which has five bits: the block is still.
constexpr uint32_t kStillBlock = 0x80;

// The context of row k of a block (section 15.5). `rows` has a bit for each row of each block: 0 if it is known not to
// be still.
constexpr uint32_t kRowContexts = 16;
L3_INLINE uint32_t row_context(const uint16_t* rows, uint32_t across, uint32_t block, uint32_t k) {
  // Row k - 1 in bit 1, row k - 2 in bit 0.
  const auto above = [=](uint32_t of) {
    return (uint32_t{rows[of]} << 16 | (of >= across ? rows[of - across] : 0xFFFFu)) >> (k + 14);
  };
  const uint32_t column = block % across, own = above(block);
  const uint32_t right = column + 1 < across ? above(block + 1) : 3, left = column > 0 ? above(block - 1) : 3;
  return (own >> 1 & 1) | (own & 1) << 1 | (right & 2) << 1 | (left & 2) << 2;
}

// What a match says about a pixel: it repeats one of four neighbours, is decoded by tokens, or is the hole.
enum MatchSymbol : uint32_t { kMatchW, kMatchN, kMatchNe, kMatchNw, kMatchNone, kMatchHole, kMatchFollow };

// How a model lists the values that occur in the image.
enum class Listing : uint32_t { none = 0, ranks = 1, colours = 2 };

// The number of raw bits after a token. The number that is coded is first_of(token) plus the raw bits.
L3_INLINE constexpr uint32_t raw_bits_of(uint32_t token) {
  return token < kDirectTokens ? 0 : ((token - kDirectTokens) >> 1) + 4;
}
L3_INLINE constexpr uint32_t first_of(uint32_t token) {
  return token < kDirectTokens ? token : (2 + (token & 1)) << raw_bits_of(token);
}

// The token for a number.
inline uint32_t token_of(uint32_t number) {
  if (number < kDirectTokens) return number;
  const uint32_t top = 31 - static_cast<uint32_t>(__builtin_clz(number));
  return kDirectTokens + 2 * (top - 5) + (number >> (top - 1) & 1);
}

// The slots of a symbol that has most of them.
struct FlatSlots {
  uint32_t frequency;
  // A bucket's slots belong to the symbol from place `first` on; 64 if none do. Their numbers are `number` and the
  // place.
  struct Slots {
    uint16_t first, number;
  } of[kTokenBuckets];
};

struct TokenTables {
  uint32_t channels, bits;  // of the image
  uint32_t engine_channels;
  bool match, literal, hole, still, follow, rows;
  bool match_by_activity;  // whether any row of matches has more than one table
  Listing listing;
  uint32_t hole_value;
  uint32_t still_frequency[2];           // of a still block, if the block above is not still, and if it is
  uint32_t row_frequency[kRowContexts];  // of a still row
  uint32_t depth[kMaxChannels];          // bits of a value, by engine channel
  uint32_t classes[kMaxChannels];
  uint32_t table_count, class_table_count;
  bool grouped[kMaxChannels];

  uint32_t weights[kMaxChannels][kMaxClasses][kMaxTapWords];
  uint32_t activity[kMaxChannels][kActivityWords];
  alignas(64) uint8_t zone_row[kMaxChannels][kZones];
  alignas(64) uint8_t pattern_row[kMaxChannels][kSignPatterns];  // in the decoder's order (pattern_in_order)
  // Four bytes longer, since lanes may load four bytes to read one.
  uint8_t table_of[kMaxChannels][kMaxRows * kTokenLevels + 4];
  uint8_t class_table_of[kMaxChannels][kMaxClasses + 4];
  uint8_t match_row[kMatchPatterns + 4];
  uint8_t match_table[kMaxMatchRows * kMatchOctaves + 4];
  uint8_t literal_table[kLiteralContexts + 4];

  alignas(64) Bucket buckets[kMaxTokenTables * kTokenBuckets];
  alignas(64) Bucket class_buckets[kMaxClassTables * kClassBuckets];

  // Ranks: each channel's values begin at first_value. Colours: one colour after the other, `channels` samples each.
  uint32_t value_count[kMaxChannels], first_value[kMaxChannels];
  uint16_t values[kMaxValues];

  // What decoders on processors prepare, for tiles of few lanes: the first bucket of each pattern of equalities in the
  // lowest octave, and the slots of pixels that repeat a neighbour where all neighbours are equal.
  uint16_t match_bucket[kMatchPatterns];
  FlatSlots flat;

  // The sample for a value of an engine channel. With Listing::colours, `channel` is a channel of the image.
  L3_INLINE uint32_t sample_of(uint32_t channel, uint32_t value) const {
    if (listing == Listing::none) return value;
    if (listing == Listing::ranks) return value < value_count[channel] ? values[first_value[channel] + value] : 0;
    return value < value_count[0] ? values[value * channels + channel] : 0;
  }
};

}  // namespace l3
