// Reads and verifies a token model (section 14 of the spec), for processors and GPUs alike. Its parts are independent,
// so several threads can read them in parallel.
#pragma once

#include "models/model_parts.h"
#include "models/token.h"

namespace l3 {

constexpr uint32_t kTokenHeadBytes = 12;
constexpr uint32_t kMaxTokenModelBytes = 1u << 17;
constexpr uint32_t kValueBlock = 32;

struct TokenForm {
  static constexpr uint32_t kLevels = kTokenLevels, kLevelBits = 7, kTableBits = 6;
  static constexpr int32_t kMaxPair = 256;  // as much as there can be
  static constexpr uint32_t kMaxActivity = 1000;
};

// Reads a model in this order: the head, the values, channels and match in any order, place_class_tables(), tables in
// any order. A fault's place is relative to the start of the model. `Parts` has the functions that read a part.
template <class Parts>
class AnyTokenModelReader {
 public:
  L3_INLINE AnyTokenModelReader(const uint8_t* bytes, uint64_t size, TokenTables& tables)
      : bytes_(bytes), size_(static_cast<uint32_t>(size)), tables_(tables), too_large_(size > kMaxTokenModelBytes) {}

  // `channels` and `bits` are those of the image.
  L3_INLINE Fault read_head(uint32_t channels, uint32_t bits) {
    if (too_large_) return {Reason::model_head, kMaxTokenModelBytes};
    if (size_ < kTokenHeadBytes) return {Reason::model_head, size_};
    if (bytes_[0] != kTokenModelKind) return {Reason::model_kind, 0};
    if (bytes_[1] != channels) return {Reason::model_head, 1};
    if (bytes_[2] != bits) return {Reason::model_head, 2};
    const uint32_t flags = bytes_[3];
    tables_.channels = channels;
    tables_.bits = bits;
    tables_.match = (flags & 1) != 0;
    tables_.literal = (flags & 2) != 0;
    tables_.hole = (flags & 4) != 0;
    tables_.listing = static_cast<Listing>(flags >> 3 & 3);
    tables_.still = (flags & 32) != 0;
    tables_.follow = (flags & kFollowFlag) != 0;
    tables_.rows = (flags & 128) != 0;
    tables_.engine_channels = tables_.listing == Listing::colours ? 1 : channels;
    const bool alone = tables_.engine_channels == 1;
    if ((flags >> 3 & 3) == 3 || ((tables_.still || tables_.follow) && !tables_.match) ||
        (tables_.rows && !tables_.still) || (tables_.literal && !alone) ||
        (tables_.hole && (!tables_.match || tables_.literal || !alone))) {
      return {Reason::model_head, 3};
    }
    tables_.hole_value = load_u16(bytes_ + 4);
    if (!tables_.hole && tables_.hole_value != 0) return {Reason::model_head, 4};
    tables_.table_count = bytes_[6];
    tables_.class_table_count = bytes_[7];
    if (tables_.table_count == 0 || tables_.table_count > kMaxTokenTables) return {Reason::model_head, 6};
    if (tables_.class_table_count > kMaxClassTables) return {Reason::model_head, 7};
    for (uint32_t c = 0; c < kMaxChannels; ++c) {
      const uint32_t classes = bytes_[8 + c];
      const uint32_t maximum = tables_.literal ? 1 : kMaxClasses;
      tables_.classes[c] = classes;
      if (c < tables_.engine_channels ? classes == 0 || classes > maximum : classes != 0) {
        return {Reason::model_head, 8 + c};
      }
    }
    return check_sizes();
  }

  // Reads the listed values and verifies that the hole is a valid value.
  L3_INLINE Fault read_values() {
    begin_values();
    BitReader bits(value_bytes(), value_size());
    bool sound = true;
    if (tables_.listing == Listing::ranks) sound = read_ranks(bits);
    if (tables_.listing == Listing::colours) sound = read_colours(bits);
    return end_values(sound && bits.ends_here());
  }
  // For callers that read the lists themselves, between begin_values() and end_values().
  L3_INLINE void begin_values() {
    for (uint32_t c = 0; c < kMaxChannels; ++c) {
      tables_.depth[c] = tables_.bits;
      tables_.value_count[c] = tables_.first_value[c] = 0;
    }
  }
  L3_INLINE Fault end_values(bool sound) const {
    if (!sound) return {Reason::model_values, offset_of(part_count())};
    return tables_.hole_value >> tables_.depth[0] != 0 ? Fault{Reason::model_head, 4} : Fault{};
  }
  // Where the listed values are, and their size.
  L3_INLINE const uint8_t* value_bytes() const { return bytes_ + offset_of(part_count()); }
  L3_INLINE uint32_t value_size() const { return size_ - offset_of(part_count()); }
  L3_INLINE static uint32_t depth_of(uint32_t count) {
    uint32_t depth = 1;
    while ((count - 1) >> depth != 0) ++depth;
    return depth;
  }

  // Reads a channel. Sets `class_tables` to the number of its class tables.
  L3_INLINE bool read_channel(uint32_t c, uint32_t& class_tables) {
    class_tables = 0;
    if (tables_.literal) {
      BitReader bits = part<BitReader>(c);
      return read_literals(bits) && bits.ends_here();
    }
    typename Parts::Bits bits = part<typename Parts::Bits>(c);
    return Parts::read_weights(tables_, bits, c) && Parts::read_activity(tables_, bits, c) &&
           Parts::read_rows(tables_, bits, c) && Parts::read_classes(tables_, bits, c, class_tables) &&
           bits.ends_here();
  }

  L3_INLINE Fault read_match() {
    tables_.match_by_activity = false;
    if (!tables_.match) return {};
    BitReader bits = part<BitReader>(tables_.engine_channels);
    if (read_match_part(bits) && bits.ends_here()) return {};
    return {Reason::model_match, offset_of(tables_.engine_channels)};
  }

  // Computes the number of each channel's first class table.
  L3_INLINE Fault place_class_tables(const bool* is_read, const uint32_t* class_tables, uint32_t* first) const {
    uint32_t sum = 0;
    for (uint32_t c = 0; c < tables_.engine_channels; ++c) {
      first[c] = sum;
      sum += class_tables[c];
      if (!is_read[c] || sum > tables_.class_table_count) return {Reason::model_channel, offset_of(c)};
    }
    if (sum != tables_.class_table_count) return {Reason::model_head, 7};
    return {};
  }
  L3_INLINE void move_class_tables(uint32_t c, uint32_t first) { Parts::move_class_tables(tables_, c, first); }

  // Reads the frequencies of a table or a class table. Leaves those of symbols above the table's last one as they are.
  L3_INLINE Fault read_table(uint32_t table, uint16_t* frequencies) const {
    return read_frequencies(tables_.engine_channels + 1 + table, kTokens, frequencies);
  }
  L3_INLINE Fault read_class_table(uint32_t table, uint32_t classes, uint16_t* frequencies) const {
    return read_frequencies(tables_.engine_channels + 1 + tables_.table_count + table, classes, frequencies);
  }

 private:
  // The number of parts whose size the model states.
  L3_INLINE uint32_t part_count() const {
    return tables_.engine_channels + 1 + tables_.table_count + tables_.class_table_count;
  }
  L3_INLINE uint32_t size_of(uint32_t part) const {
    const uint32_t wide = tables_.engine_channels + 1;
    return part < wide ? load_u16(bytes_ + kTokenHeadBytes + 2 * part) : bytes_[kTokenHeadBytes + wide + part];
  }
  L3_INLINE uint32_t offset_of(uint32_t part) const {
    uint32_t offset = kTokenHeadBytes + tables_.engine_channels + 1 + part_count();
    for (uint32_t i = 0; i < part; ++i) offset += size_of(i);
    return offset;
  }
  template <class Bits>
  L3_INLINE Bits part(uint32_t i) const {
    return {bytes_ + offset_of(i), size_of(i)};
  }

  L3_INLINE Fault check_sizes() const {
    const uint32_t first = kTokenHeadBytes + tables_.engine_channels + 1 + part_count();
    if (size_ < first) return {Reason::model_head, size_};
    if (!tables_.match && size_of(tables_.engine_channels) != 0) {
      return {Reason::model_head, kTokenHeadBytes + 2 * tables_.engine_channels};
    }
    if (offset_of(part_count()) > size_) return {Reason::model_head, size_};
    return {};
  }

  L3_INLINE bool read_ranks(BitReader& bits) {
    uint32_t sum = 0;
    const uint32_t maximum = (1u << tables_.bits) - 1;
    for (uint32_t c = 0; c < tables_.channels; ++c) {
      const uint32_t count = bits.take(16);
      tables_.first_value[c] = sum;
      sum += count;
      if (count == 0 || sum > kMaxValues) return false;
      tables_.value_count[c] = count;
      tables_.depth[c] = depth_of(count);
      uint32_t value = bits.take(16);
      const uint32_t minimum = bits.take(16);
      if (minimum == 0 || value > maximum) return false;
      uint16_t* const values = tables_.values + tables_.first_value[c];
      values[0] = static_cast<uint16_t>(value);
      uint32_t width = 0;
      for (uint32_t i = 1; i < count; ++i) {
        if ((i - 1) % kValueBlock == 0) width = bits.take(5);
        if (width > 16) return false;
        value += minimum + bits.take(width);
        if (value > maximum) return false;
        values[i] = static_cast<uint16_t>(value);
      }
    }
    return true;
  }

  L3_INLINE bool read_colours(BitReader& bits) {
    const uint32_t count = bits.take(16);
    if (count == 0 || count > kMaxValues || count * tables_.channels > kMaxValues) return false;
    tables_.value_count[0] = count;
    tables_.depth[0] = depth_of(count);
    for (uint32_t i = 0; i < count * tables_.channels; ++i) {
      tables_.values[i] = static_cast<uint16_t>(bits.take(tables_.bits));
    }
    return true;
  }

  L3_INLINE bool read_literals(BitReader& bits) {
    const uint32_t last = bits.take(8);
    return Parts::read_row(bits, last, kLiteralContexts, tables_.table_count, tables_.literal_table);
  }

  L3_INLINE bool read_match_part(BitReader& bits) {
    for (uint32_t& frequency : tables_.still_frequency) {
      frequency = tables_.still ? bits.take(kProbabilityBits) : 0;
      if (tables_.still && frequency == 0) return false;
    }
    for (uint32_t& frequency : tables_.row_frequency) {
      frequency = tables_.rows ? bits.take(kProbabilityBits) : 0;
      if (tables_.rows && frequency == 0) return false;
    }
    const uint32_t mask = bits.take(8);
    uint8_t row_of[kMatchPatterns];
    uint32_t patterns = 1, rows = 1;
    for (uint32_t i = 0; i < 8; ++i) patterns <<= mask >> i & 1;
    row_of[0] = 0;
    for (uint32_t i = 1; i < patterns; ++i) {
      uint32_t row = row_of[i - 1];
      if (bits.take(1) != 0) {
        const bool named = bits.take(1) != 0;
        row = named ? bits.take(5) : rows;
        if (row >= (named ? rows : kMaxMatchRows)) return false;
        if (!named) ++rows;
      }
      row_of[i] = static_cast<uint8_t>(row);
    }
    for (uint32_t equalities = 0; equalities < kMatchPatterns; ++equalities) {
      uint32_t pattern = 0, bit = 0;
      for (uint32_t i = 0; i < 8; ++i) {
        if ((mask >> i & 1) != 0) pattern |= (equalities >> i & 1) << bit++;
      }
      tables_.match_row[equalities] = row_of[pattern];
    }
    for (uint32_t row = 0; row < rows; ++row) {
      const uint32_t last = bits.take(5);
      if (last >= kMatchOctaves) return false;
      tables_.match_by_activity = tables_.match_by_activity || last > 0;
      if (!Parts::read_row(bits, last, kMatchOctaves, tables_.table_count, tables_.match_table + row * kMatchOctaves)) {
        return false;
      }
    }
    return true;
  }

  L3_INLINE Fault read_frequencies(uint32_t i, uint32_t symbols, uint16_t* frequencies) const {
    if (!Parts::read_table(part<typename Parts::Bits>(i), symbols, frequencies))
      return {Reason::model_table, offset_of(i)};
    return {};
  }

  const uint8_t* bytes_;
  uint32_t size_;
  TokenTables& tables_;
  bool too_large_;
};
using TokenModelReader = AnyTokenModelReader<ModelParts<TokenTables, TokenForm>>;

}  // namespace l3
