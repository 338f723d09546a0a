// Implements tiny_file.h.
#include "encode/tiny_file.h"

#include <cstring>

namespace l3 {
namespace {

// The number that says which model the file has.
uint32_t number_of_model(const Head& head) {
  if (head.names_model()) return kTinyNamed;
  const Section* own = head.find(L3_SECTION_MODEL);
  return own != nullptr ? static_cast<uint32_t>(own->size) : head.default_model;
}

uint8_t kind_of(const Head& head) {
  const bool is_premultiplied = head.alpha == L3_ALPHA_PREMULTIPLIED;
  const uint32_t colour = !is_premultiplied ? head.colour : head.colour == L3_COLOUR_GRAY_ALPHA ? 5 : 6;
  return static_cast<uint8_t>(colour | (head.bits - 1) << 3);
}

uint8_t coding_of(const uint8_t* entry) {
  switch (static_cast<Method>(entry[0])) {
    case Method::constant: return kTinyOthers;
    case Method::raw: return kTinyOthers | 1 << 3;
    case Method::fast: return static_cast<uint8_t>(kTinyOthers | (2u + entry[1]) << 3);
    default: return entry[1];
  }
}

}  // namespace

bool may_be_tiny(const Head& head) {
  if ((head.required_features & ~kNamedModel) != 0) return false;  // there is no place for them
  if (head.tile_count != 1 || head.width > kMaxTinyEdge || head.height > kMaxTinyEdge) return false;
  for (uint32_t i = 0; i < head.section_count; ++i) {
    const Section& section = head.sections[i];
    if (section.size >= kMaxTinyBytes) return false;
    if (section.type == L3_SECTION_MODEL && section.size < kMinTinyModel) return false;
  }
  return true;
}

size_t make_tiny(const Head& head, CheckFunction check, const uint8_t* name, uint32_t used_bytes, uint8_t* out) {
  if (!may_be_tiny(head)) return 0;
  const uint8_t* const entry = out + head.head_bytes;
  const Section* const own = head.find(L3_SECTION_MODEL);
  const bool is_constant = static_cast<Method>(entry[0]) == Method::constant;
  const uint64_t payload = is_constant ? kConstantBytes : ceil_div(used_bytes, kTinyUnit) * kTinyUnit;
  const uint64_t before = own != nullptr ? pad_to_unit(own->size) : head.names_model() ? kModelNameBytes : 0;
  uint64_t bytes = kTinyHeaderBytes + before + payload;
  for (uint32_t i = 0; i < head.section_count; ++i) {
    if (&head.sections[i] != own) bytes += 2 + head.sections[i].size;
  }
  bytes = (bytes + kTinyUnit - 1) / kTinyUnit * kTinyUnit;
  if (bytes > kMaxTinyBytes || payload / kTinyUnit >= 1024) return 0;

  uint8_t file[kMaxTinyBytes] = {};
  for (uint32_t i = 0; i < 3; ++i) file[i] = signature_byte(i);
  file[3] = kTinyMark;
  file[tiny_header::kWidth] = static_cast<uint8_t>(head.width - 1);
  file[tiny_header::kHeight] = static_cast<uint8_t>(head.height - 1);
  file[tiny_header::kKind] = kind_of(head);
  file[tiny_header::kCoding] = coding_of(entry);
  store_u32(file + tiny_header::kSizes, static_cast<uint32_t>(bytes / kTinyUnit - 1) |
                                            static_cast<uint32_t>(payload / kTinyUnit) << 10 |
                                            number_of_model(head) << 20);
  uint8_t* to = file + kTinyHeaderBytes;
  if (head.names_model()) std::memcpy(to, name, kModelNameBytes);
  if (own != nullptr) std::memcpy(to, out + own->offset, own->size);
  to += before;
  std::memcpy(to, is_constant ? entry + 4 : out + head.payload_start, is_constant ? kConstantBytes : used_bytes);
  to += payload;
  for (uint32_t i = 0; i < head.section_count; ++i) {
    const Section& section = head.sections[i];
    if (&section == own) continue;
    const uint32_t code = section.type < kFirstAsideType ? section.type : section.type - kFirstAsideType + 8;
    store_u16(to, code << 12 | static_cast<uint32_t>(section.size));
    std::memcpy(to + 2, out + section.offset, section.size);
    to += 2 + section.size;
  }
  store_u32(file + tiny_header::kCheck, check(file + tiny_header::kWidth, bytes / 4 - 2));
  std::memcpy(out, file, bytes);
  return bytes;
}

}  // namespace l3
