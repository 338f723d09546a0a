// Implements container.h with a processor target's checks.
#include "decode/container.h"

#include <cstring>

#include "container/sha256.h"

namespace l3 {
namespace {

// Computes checks with the functions of a processor target.
struct Processor {
  const Target& target;

  uint32_t check(const uint8_t* bytes, uint64_t words) const { return target.check(bytes, words); }
  uint32_t check_of_head(const uint8_t* data, uint64_t bytes) const {
    uint8_t copy[kMaxHeadBytes];
    std::memcpy(copy, data, bytes);
    store_u32(copy + header::kHeadCheck, 0);
    return check(copy, bytes / 4);
  }
};

}  // namespace

l3_limits with_defaults(const l3_limits* limits) {
  l3_limits result = limits != nullptr ? *limits : l3_limits{};
  if (result.max_pixels == 0) result.max_pixels = L3_DEFAULT_MAX_PIXELS;
  if (result.max_output_bytes == 0) result.max_output_bytes = L3_DEFAULT_MAX_OUTPUT_BYTES;
  if (result.max_metadata_bytes == 0) result.max_metadata_bytes = L3_DEFAULT_MAX_METADATA_BYTES;
  return result;
}

Verdict check_limits(const Head& head, const l3_limits& limits) {
  const uint64_t pixels = uint64_t{head.width} * head.height;
  if (pixels > limits.max_pixels) return {Reason::over_pixel_limit, header::kWidth};
  if (pixels * head.pixel_bytes() > limits.max_output_bytes) return {Reason::over_output_limit, header::kWidth};
  return {};
}

Verdict read_head(const uint8_t* data, uint64_t size, const Target& target, Head& head) {
  // Verify a copy, so that the bytes that were verified are also the bytes that are used if the file changes
  // meanwhile.
  uint8_t copy[L3_HEAD_MAX_BYTES];
  std::memcpy(copy, data, size < sizeof(copy) ? size : sizeof(copy));
  return read_head(Processor{target}, copy, size, head);
}

Verdict check_section(const uint8_t* data, uint64_t size, const Target& target, const Section& section) {
  return check_section(Processor{target}, data, size, section);
}

Verdict check_index(const uint8_t* data, uint64_t size, const Target& target, const Head& head) {
  return check_index(Processor{target}, data, size, head);
}

Verdict check_sections(const uint8_t* data, uint64_t size, const Target& target, Head& head) {
  return check_sections(Processor{target}, data, size, head);
}

Verdict check_entries(const uint8_t* data, uint64_t file_size, const Head& head) {
  if (head.is_tiny()) return check_tiny(data, file_size, head);
  if (file_size < head.payload_start) return {Reason::section_truncated, file_size};
  const uint8_t* index = data + head.head_bytes;
  uint64_t next = head.payload_start / kUnit;
  for (uint64_t tile = 0; tile < head.tile_count; ++tile) {
    const Verdict verdict = check_entry(index + tile * kIndexEntryBytes, head, tile, next);
    if (!verdict.ok()) return verdict;
    next += entry_units(index + tile * kIndexEntryBytes);
  }
  return check_end(file_size, next);
}

void place_sections(Head& head) {
  head.head_bytes = head.entries_at() + uint64_t{head.section_count} * kSectionEntryBytes;
  head.index_end = pad_to_unit(head.head_bytes + head.tile_count * kIndexEntryBytes);
  head.payload_start = head.index_end;
  for (uint32_t i = 0; i < head.section_count; ++i) {
    head.sections[i].offset = head.payload_start;
    head.payload_start += pad_to_unit(head.sections[i].size);
  }
}

void write_head(const Head& head, CheckFunction check, const uint8_t* name, uint8_t* out) {
  const uint64_t index_end = head.head_bytes + head.tile_count * kIndexEntryBytes;
  std::memset(out + index_end, 0, head.index_end - index_end);
  std::memset(out + kHeaderBytes, 0, head.head_bytes - kHeaderBytes);
  write_header_fields(head, out);
  if (head.names_model()) std::memcpy(out + kHeaderBytes, name, kModelNameBytes);
  store_u32(out + header::kIndexCheck, check(out + head.head_bytes, (head.index_end - head.head_bytes) / 4));
  for (uint32_t i = 0; i < head.section_count; ++i) {
    uint8_t* entry = out + head.entries_at() + i * kSectionEntryBytes;
    store_u16(entry + section_entry::kType, head.sections[i].type);
    store_u32(entry + section_entry::kCheck, head.sections[i].check);
    store_u32(entry + section_entry::kOffset, static_cast<uint32_t>(head.sections[i].offset / kUnit));
    store_u32(entry + section_entry::kSize, static_cast<uint32_t>(head.sections[i].size));
  }
  digest_of(out, head.payload_start, out + header::kDigest);
  store_u32(out + header::kHeadCheck, check(out, head.head_bytes / 4));
}

void digest_of(const uint8_t* data, uint64_t payload_start, uint8_t* digest) {
  constexpr uint8_t kZeros[kHeaderBytes - header::kHeadCheck] = {};  // head check and digest end the header
  Sha256 sha;
  sha.update(data, header::kHeadCheck);
  sha.update(kZeros, sizeof(kZeros));
  sha.update(data + kHeaderBytes, payload_start - kHeaderBytes);
  uint8_t whole[Sha256::kBytes];
  sha.finish(whole);
  std::memcpy(digest, whole, header::kDigestBytes);
}

}  // namespace l3
