// Verifies the footer and the index of a shard in memory (spec/shard.md, sections 2.2 and 3).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "loader/shard_format.h"

namespace loader {

// A fault and its byte in the file. `reason` is null if there is no fault.
struct Fault {
  const char* reason = nullptr;
  uint64_t offset = 0;
  l3_status status = L3_ERROR_CORRUPT;

  explicit operator bool() const { return reason != nullptr; }
};

struct Footer {
  uint64_t index_offset = 0, index_size = 0;
  uint32_t entries = 0, groups = 0, texts = 0, index_check = 0;
  uint16_t models = 0, roles = 0;
};

// Reads and verifies a footer: `bytes` are the last kFooterBytes of a file of `file_size` bytes.
Fault read_footer(const uint8_t* bytes, uint64_t file_size, Footer& footer);

// Verifies the head of a shard: its first kHeadBytes.
Fault check_head(std::span<const uint8_t> bytes);

class ShardIndex {
 public:
  ShardIndex() = default;
  // Takes the bytes of the index that the footer describes. check() must be called before anything else.
  ShardIndex(const Footer& footer, std::vector<uint8_t> bytes) : footer_(footer), bytes_(std::move(bytes)) {}
  // Verifies all rules of section 3, except that names are unique.
  Fault check() const;

  const Footer& footer() const { return footer_; }
  std::span<const uint8_t> bytes() const { return bytes_; }

  const uint8_t* entry(uint32_t number) const { return bytes_.data() + size_t{number} * kEntryBytes; }
  // The offset of an entry in the file.
  uint64_t place_of_entry(uint32_t number) const { return footer_.index_offset + uint64_t{number} * kEntryBytes; }
  std::string_view name(uint32_t number) const {
    return text(load_u32(entry(number) + entry::kName), load_u16(entry(number) + entry::kNameSize));
  }
  std::string_view metadata(uint32_t number) const {
    return text(load_u32(entry(number) + entry::kMetadata), load_u32(entry(number) + entry::kMetadataSize));
  }
  std::string_view role(uint32_t number) const {
    const uint8_t* at = roles() + size_t{number} * kRoleEntryBytes;
    return text(load_u32(at), load_u32(at + 4));
  }
  std::span<const uint8_t> model(uint32_t number) const {
    const uint8_t* at = models() + size_t{number} * kModelEntryBytes;
    return {texts() + load_u32(at), load_u32(at + 4)};
  }

 private:
  const uint8_t* models() const { return bytes_.data() + size_t{footer_.entries} * kEntryBytes; }
  const uint8_t* roles() const { return models() + size_t{footer_.models} * kModelEntryBytes; }
  const uint8_t* texts() const { return roles() + size_t{footer_.roles} * kRoleEntryBytes; }
  std::string_view text(uint32_t place, uint32_t size) const {
    return {reinterpret_cast<const char*>(texts()) + place, size};
  }
  bool is_text(uint32_t place, uint32_t size) const {
    return size == 0 ? place == 0 : place <= footer_.texts && size <= footer_.texts - place;
  }
  Fault check_entry(uint32_t number, std::vector<uint64_t>& group_with_role) const;
  Fault check_models_and_roles() const;

  Footer footer_;
  std::vector<uint8_t> bytes_;
};

}  // namespace loader
