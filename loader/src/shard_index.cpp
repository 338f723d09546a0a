#include "shard_index.h"

#include <algorithm>
#include <set>

#include "base/crc32.h"

namespace loader {
namespace {

bool all_zero(const uint8_t* bytes, size_t count) {
  return std::all_of(bytes, bytes + count, [](uint8_t byte) { return byte == 0; });
}

bool has_signature(const uint8_t* bytes, std::string_view signature) {
  return std::memcmp(bytes, signature.data(), signature.size()) == 0;
}

// Verifies the shape of an entry. Samples that are no images must have none.
Fault check_shape(const uint8_t* at, uint64_t place) {
  const uint32_t width = load_u32(at + entry::kWidth), height = load_u32(at + entry::kHeight);
  const uint32_t channels = load_u16(at + entry::kChannels);
  const uint32_t bits = at[entry::kBits], colour = at[entry::kColour];
  if (at[entry::kKind] == kBytes) {
    if (!all_zero(at + entry::kWidth, entry::kKind - entry::kWidth)) {
      return {"an entry that is not an image has a shape", place + entry::kWidth};
    }
    return {};
  }
  if (width == 0 || width > kMaxEdge) return {"the width of an entry is out of range", place + entry::kWidth};
  if (height == 0 || height > kMaxEdge) return {"the height of an entry is out of range", place + entry::kHeight};
  if (colour > L3_COLOUR_PALETTE) return {"the colour of an entry is unknown", place + entry::kColour};
  if (channels != channels_of(colour)) {
    return {"the channels of an entry do not match its colour", place + entry::kChannels};
  }
  if (bits == 0 || bits > (colour == L3_COLOUR_PALETTE ? 8u : 16u)) {
    return {"the bits of an entry are out of range", place + entry::kBits};
  }
  return {};
}

Fault wrong_version(const uint8_t* bytes, uint64_t place) {
  return {load_u16(bytes + footer::kVersion) == 0 ? "a shard of version 0, which l3 at commit 96825ae reads"
                                                  : "a shard of a later version",
          place + footer::kVersion, L3_ERROR_UNSUPPORTED};
}

}  // namespace

Fault read_footer(const uint8_t* bytes, uint64_t file_size, Footer& result) {
  const uint64_t place = file_size - kFooterBytes;
  if (!has_signature(bytes, kFooterSignature)) {
    return {"the footer is missing: not a shard, or an incomplete one", place, L3_ERROR_NOT_L3};
  }
  if (base::crc32({bytes, footer::kCheck}) != load_u32(bytes + footer::kCheck)) {
    return {"the check of the footer does not match", place + footer::kCheck};
  }
  if (load_u16(bytes + footer::kVersion) != kShardVersion) return wrong_version(bytes, place);
  if (!all_zero(bytes + footer::kReserved, 2)) return {"reserved bytes are not zero", place + footer::kReserved};
  if (!all_zero(bytes + footer::kReserved2, footer::kCheck - footer::kReserved2)) {
    return {"reserved bytes are not zero", place + footer::kReserved2};
  }
  result.models = load_u16(bytes + footer::kModels);
  result.roles = load_u16(bytes + footer::kRoles);
  result.index_offset = load_u64(bytes + footer::kIndexOffset);
  result.index_size = load_u64(bytes + footer::kIndexSize);
  result.entries = load_u32(bytes + footer::kEntries);
  result.groups = load_u32(bytes + footer::kGroups);
  result.texts = load_u32(bytes + footer::kTexts);
  result.index_check = load_u32(bytes + footer::kIndexCheck);
  if (result.models > kMaxModels) return {"more than 1024 models", place + footer::kModels};
  if (result.roles == 0 && result.entries > 0) return {"there are entries but no roles", place + footer::kRoles};
  const uint64_t size = uint64_t{result.entries} * kEntryBytes + uint64_t{result.models} * kModelEntryBytes +
                        uint64_t{result.roles} * kRoleEntryBytes + result.texts;
  if (result.index_size != size) {
    return {"the size of the index is not the sum of its parts", place + footer::kIndexSize};
  }
  if (place < kFirstSample || size > place - kFirstSample || result.index_offset != place - size) {
    return {"the index does not end where the footer begins", place + footer::kIndexOffset};
  }
  if (result.entries == 0 && result.index_offset != kFirstSample) {
    return {"the index does not begin where the samples end", place + footer::kIndexOffset};
  }
  return {};
}

Fault check_head(std::span<const uint8_t> bytes) {
  if (bytes.size() < kHeadBytes) return {"the file ends within the head", bytes.size(), L3_ERROR_TRUNCATED};
  if (!has_signature(bytes.data(), kHeadSignature))
    return {"not a shard: the signature is missing", 0, L3_ERROR_NOT_L3};
  if (load_u16(bytes.data() + footer::kVersion) != kShardVersion) return wrong_version(bytes.data(), 0);
  const size_t reserved = footer::kVersion + 2;
  if (!all_zero(bytes.data() + reserved, kHeadBytes - reserved)) return {"reserved bytes are not zero", reserved};
  return {};
}

Fault ShardIndex::check() const {
  const uint64_t footer_place = footer_.index_offset + footer_.index_size;
  if (base::crc32(bytes_) != footer_.index_check) {
    return {"the check of the index does not match", footer_place + footer::kIndexCheck};
  }
  if (const Fault fault = check_models_and_roles()) return fault;
  std::vector<uint64_t> group_with_role(footer_.roles, UINT64_MAX);
  for (uint32_t i = 0; i < footer_.entries; ++i) {
    if (const Fault fault = check_entry(i, group_with_role)) return fault;
  }
  uint32_t groups = 0;
  if (footer_.entries > 0) {
    const uint8_t* last = entry(footer_.entries - 1);
    groups = load_u32(last + entry::kGroup) + 1;
    if (padded(load_u64(last + entry::kOffset) + load_u64(last + entry::kSize)) != footer_.index_offset) {
      return {"the index does not begin where the samples end", footer_place + footer::kIndexOffset};
    }
  }
  if (footer_.groups != groups) {
    return {"the number of groups does not match the entries", footer_place + footer::kGroups};
  }
  return {};
}

Fault ShardIndex::check_models_and_roles() const {
  uint64_t place = footer_.index_offset + static_cast<uint64_t>(models() - bytes_.data());
  for (uint32_t i = 0; i < footer_.models; ++i, place += kModelEntryBytes) {
    const uint8_t* at = models() + size_t{i} * kModelEntryBytes;
    const uint32_t size = load_u32(at + 4);
    if (size == 0 || size > kMaxModelBytes) return {"the size of a model is out of range", place + 4};
    if (!is_text(load_u32(at), size)) return {"a model lies outside the texts", place};
  }
  std::set<std::string_view> names;
  for (uint32_t i = 0; i < footer_.roles; ++i, place += kRoleEntryBytes) {
    const uint8_t* at = roles() + size_t{i} * kRoleEntryBytes;
    if (!is_text(load_u32(at), load_u32(at + 4))) return {"a role's name lies outside the texts", place};
    if (!is_role(role(i))) return {"the name of a role is invalid", place};
    if (!names.insert(role(i)).second) return {"two roles have the same name", place};
  }
  return {};
}

Fault ShardIndex::check_entry(uint32_t number, std::vector<uint64_t>& group_with_role) const {
  const uint8_t* at = entry(number);
  const uint8_t* before = number > 0 ? entry(number - 1) : nullptr;
  const uint64_t place = place_of_entry(number);
  const uint64_t offset = load_u64(at + entry::kOffset), size = load_u64(at + entry::kSize);
  // The entries before are verified, so this cannot overflow.
  const uint64_t expected =
      before == nullptr ? kFirstSample : padded(load_u64(before + entry::kOffset) + load_u64(before + entry::kSize));
  if (offset != expected) return {"a sample does not begin where the one before ends", place + entry::kOffset};
  if (at[entry::kKind] > kBytes) return {"the kind of an entry is unknown", place + entry::kKind};
  const bool is_image = at[entry::kKind] != kBytes;
  if ((is_image && size == 0) || size > kMaxSampleBytes) {
    return {"the size of a sample is out of range", place + entry::kSize};
  }
  if (offset > footer_.index_offset || size > footer_.index_offset - offset) {
    return {"a sample reaches into the index", place + entry::kSize};
  }
  if (const Fault fault = check_shape(at, place)) return fault;
  if (at[entry::kReserved] != 0) return {"reserved bytes are not zero", place + entry::kReserved};
  if (!all_zero(at + entry::kReserved2, 4)) return {"reserved bytes are not zero", place + entry::kReserved2};
  const uint32_t model_number = load_u16(at + entry::kModel);
  if (model_number != kNoModel && (model_number >= footer_.models || !is_image)) {
    return {"an entry names a model that does not exist", place + entry::kModel};
  }
  if (!is_text(load_u32(at + entry::kName), load_u16(at + entry::kNameSize))) {
    return {"a name lies outside the texts", place + entry::kName};
  }
  if (!is_name(name(number))) return {"the name of an entry is invalid", place + entry::kName};
  if (!is_text(load_u32(at + entry::kMetadata), load_u32(at + entry::kMetadataSize))) {
    return {"metadata lies outside the texts", place + entry::kMetadata};
  }
  const uint32_t group = load_u32(at + entry::kGroup);
  const uint32_t group_before = before == nullptr ? 0 : load_u32(before + entry::kGroup);
  const bool continues = before != nullptr && group == group_before;
  if (before == nullptr ? group != 0 : !continues && uint64_t{group} != uint64_t{group_before} + 1) {
    return {"a group does not follow the one before", place + entry::kGroup};
  }
  if (continues && load_u32(at + entry::kLabel) != load_u32(before + entry::kLabel)) {
    return {"the entries of a group have different labels", place + entry::kLabel};
  }
  const uint32_t role_number = load_u16(at + entry::kRole);
  if (role_number >= footer_.roles) return {"an entry has a role that does not exist", place + entry::kRole};
  if (group_with_role[role_number] == group) return {"two entries of a group have the same role", place + entry::kRole};
  group_with_role[role_number] = group;
  return {};
}

}  // namespace loader
