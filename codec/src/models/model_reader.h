// Reads and verifies a model of kind 0 (section 12 of the spec), for processors and GPUs alike. Its parts are
// independent, so several threads can read them in parallel.
#pragma once

#include "models/model_parts.h"

namespace l3 {

constexpr uint32_t kModelHeadBytes = 8;
constexpr uint32_t kMaxModelBytes = 64 * 1024;  // more than any model needs

struct DenseForm {
  static constexpr uint32_t kLevels = l3::kLevels, kLevelBits = 6, kTableBits = 5;
  static constexpr int32_t kMaxPair = 128;
  static constexpr uint32_t kMaxActivity = 128;
};

// Reads a model in this order: the head, the channels in any order, place_class_tables(), the tables in any order. A
// fault's place is relative to the start of the model. `Parts` has the functions that read a part.
template <class Parts>
class DenseModelReader {
 public:
  L3_INLINE DenseModelReader(const uint8_t* bytes, uint64_t size, DenseTables& tables)
      : bytes_(bytes), size_(static_cast<uint32_t>(size)), tables_(tables), too_large_(size > kMaxModelBytes) {}

  // `channels` is the number of channels of the image.
  L3_INLINE Fault read_head(uint32_t channels) {
    if (too_large_) return {Reason::model_offset, kMaxModelBytes};
    if (size_ < kModelHeadBytes) return {Reason::model_head, size_};
    if (bytes_[0] != 0) return {Reason::model_kind, 0};
    if (bytes_[1] != channels) return {Reason::model_head, 1};
    tables_.channels = channels;
    tables_.table_count = bytes_[2];
    tables_.class_table_count = bytes_[3];
    if (tables_.table_count == 0 || tables_.table_count > kMaxTables) return {Reason::model_head, 2};
    if (tables_.class_table_count > kMaxClassTables) return {Reason::model_head, 3};
    for (uint32_t c = 0; c < kMaxChannels; ++c) {
      tables_.classes[c] = bytes_[4 + c];
      const bool there = c < channels;
      if (there ? bytes_[4 + c] == 0 || bytes_[4 + c] > kMaxClasses : bytes_[4 + c] != 0) {
        return {Reason::model_head, 4 + c};
      }
    }
    const uint32_t parts = part_count();
    if (size_ < kModelHeadBytes + 2 * parts) return {Reason::model_head, size_};
    uint32_t begin = kModelHeadBytes + 2 * parts;
    for (uint32_t i = 0; i < parts; ++i) {
      const uint32_t at = kModelHeadBytes + 2 * i;
      const uint32_t offset = load_u16(bytes_ + at);
      if (i == 0 ? offset != begin : offset < begin) return {Reason::model_offset, at};
      if (offset > size_) return {Reason::model_offset, at};
      begin = offset;
    }
    return {};
  }

  // Reads a channel. Sets `class_tables` to the number of its class tables.
  L3_INLINE bool read_channel(uint32_t c, uint32_t& class_tables) {
    typename Parts::Bits bits = part(c);
    class_tables = 0;
    return Parts::read_weights(tables_, bits, c) && Parts::read_activity(tables_, bits, c) &&
           Parts::read_rows(tables_, bits, c) && Parts::read_classes(tables_, bits, c, class_tables) &&
           bits.ends_here();
  }

  // Computes the number of each channel's first class table.
  L3_INLINE Fault place_class_tables(const bool* is_read, const uint32_t* class_tables, uint32_t* first) const {
    uint32_t sum = 0;
    for (uint32_t c = 0; c < tables_.channels; ++c) {
      first[c] = sum;
      sum += class_tables[c];
      if (!is_read[c] || sum > tables_.class_table_count) return {Reason::model_channel, offset_of(c)};
    }
    if (sum != tables_.class_table_count) return {Reason::model_head, 3};
    return {};
  }
  L3_INLINE void move_class_tables(uint32_t c, uint32_t first) { Parts::move_class_tables(tables_, c, first); }

  // Reads the frequencies of a table or a class table. Leaves those of symbols above the table's last one as they are.
  L3_INLINE Fault read_table(uint32_t table, uint16_t* frequencies) const {
    return read_frequencies(tables_.channels + table, kMaxSymbols, frequencies);
  }
  L3_INLINE Fault read_class_table(uint32_t table, uint32_t classes, uint16_t* frequencies) const {
    return read_frequencies(tables_.channels + tables_.table_count + table, classes, frequencies);
  }

 private:
  L3_INLINE uint32_t part_count() const { return tables_.channels + tables_.table_count + tables_.class_table_count; }
  L3_INLINE uint32_t offset_of(uint32_t part) const {
    return part < part_count() ? load_u16(bytes_ + kModelHeadBytes + 2 * part) : size_;
  }
  L3_INLINE typename Parts::Bits part(uint32_t i) const {
    return {bytes_ + offset_of(i), offset_of(i + 1) - offset_of(i)};
  }

  L3_INLINE Fault read_frequencies(uint32_t i, uint32_t symbols, uint16_t* frequencies) const {
    if (!Parts::read_table(part(i), symbols, frequencies)) return {Reason::model_table, offset_of(i)};
    return {};
  }

  const uint8_t* bytes_;
  uint32_t size_;
  DenseTables& tables_;
  bool too_large_;
};
using ModelReader = DenseModelReader<ModelParts<DenseTables, DenseForm>>;

}  // namespace l3
