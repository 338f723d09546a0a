#include "container.h"

#include <cstring>

#include "dense_model.h"
#include "sha256.h"

namespace l3 {
namespace {

Verdict read_header_fields(const uint8_t* data, Head& head) {
  head.optional_features = load_u32(data + header::kOptional);
  head.width = load_u32(data + header::kWidth);
  head.height = load_u32(data + header::kHeight);
  if (head.width == 0 || head.width > kMaxEdge) return {Reason::bad_dimensions, header::kWidth};
  if (head.height == 0 || head.height > kMaxEdge) return {Reason::bad_dimensions, header::kHeight};
  if (load_u32(data + header::kFrames) != 1) return {Reason::bad_frames, header::kFrames};

  head.colour = data[header::kColour];
  if (head.colour > L3_COLOUR_PALETTE) return {Reason::bad_colour, header::kColour};
  head.channels = load_u16(data + header::kChannels);
  if (head.channels != (head.colour == L3_COLOUR_PALETTE ? 1 : head.colour + 1)) {
    return {Reason::bad_channels, header::kChannels};
  }
  head.sample_type = data[header::kSampleType];
  if (head.sample_type > L3_SAMPLE_U16) return {Reason::bad_sample_type, header::kSampleType};
  head.bits = data[header::kBits];
  const bool wide = head.sample_type == L3_SAMPLE_U16;
  if (head.bits < (wide ? 9u : 1u) || head.bits > (wide ? 16u : 8u)) return {Reason::bad_bits, header::kBits};
  if (head.colour == L3_COLOUR_PALETTE && wide) return {Reason::bad_colour, header::kColour};

  head.alpha = data[header::kAlpha];
  const bool has_alpha = head.colour == L3_COLOUR_GRAY_ALPHA || head.colour == L3_COLOUR_RGB_ALPHA;
  if (head.alpha > L3_ALPHA_PREMULTIPLIED || (head.alpha != L3_ALPHA_NONE) != has_alpha) {
    return {Reason::bad_alpha, header::kAlpha};
  }

  const uint32_t tile_width = data[header::kTileWidth];
  const uint32_t tile_height = data[header::kTileHeight];
  if (tile_width == 0 || tile_width > kMaxTileEdge / 32) return {Reason::bad_tile_edges, header::kTileWidth};
  if (tile_height == 0 || tile_height > kMaxTileEdge / 32) return {Reason::bad_tile_edges, header::kTileHeight};
  head.tile_width = 32 * tile_width;
  head.tile_height = 32 * tile_height;
  if (raw_bytes(head.tile_width, head.tile_height, head.channels, head.bits) > uint64_t{kMaxPayloadUnits} * kUnit) {
    return {Reason::bad_tile_edges, header::kTileWidth};
  }
  head.tiles_across = ceil_div(head.width, head.tile_width);
  head.tiles_down = ceil_div(head.height, head.tile_height);
  head.tile_count = uint64_t{head.tiles_across} * head.tiles_down;
  head.index_check = load_u32(data + header::kIndexCheck);
  return {};
}

Verdict read_section_entries(const uint8_t* data, Head& head) {
  uint64_t end = head.index_end;
  for (uint32_t i = 0; i < head.section_count; ++i) {
    const uint64_t at = kHeaderBytes + uint64_t{i} * kSectionEntryBytes;
    Section& section = head.sections[i];
    section = {load_u16(data + at), load_u32(data + at + 4), load_u64(data + at + 8), load_u64(data + at + 16)};
    if (i > 0 && section.type <= head.sections[i - 1].type) return {Reason::section_type_order, at};
    const bool known = section.type >= L3_SECTION_PALETTE && section.type <= L3_SECTION_MODEL;
    if (!known && section.type < kFirstAsideType) return {Reason::section_type_unknown, at};
    if (load_u16(data + at + 2) != 0) return {Reason::section_flags, at + 2};
    if (section.offset != end) return {Reason::section_offset, at + 8};
    if (section.size == 0 || section.size > kMaxSectionBytes) return {Reason::section_size, at + 16};
    end += pad_to_unit(section.size);
  }
  head.payload_start = end;
  return {};
}

// The sizes of sections against the header and each other.
Verdict check_section_sizes(const Head& head) {
  const auto entry_of = [&](const Section* section) {
    return kHeaderBytes + static_cast<uint64_t>(section - head.sections) * kSectionEntryBytes;
  };
  const Section* palette = head.find(L3_SECTION_PALETTE);
  const bool indexed = head.colour == L3_COLOUR_PALETTE;
  if (indexed && palette == nullptr) return {Reason::palette_missing, header::kColour};
  if (!indexed && palette != nullptr) return {Reason::palette_unexpected, entry_of(palette)};
  if (indexed && (palette->size % 3 != 0 || palette->size / 3 > (uint64_t{1} << head.bits))) {
    return {Reason::palette_size, entry_of(palette) + 16};
  }
  if (const Section* transparency = head.find(L3_SECTION_TRANSPARENCY)) {
    if (head.alpha != L3_ALPHA_NONE) return {Reason::transparency_unexpected, entry_of(transparency)};
    const bool fits = indexed ? transparency->size <= palette->size / 3 : transparency->size == 2 * head.channels;
    if (!fits) return {Reason::transparency_size, entry_of(transparency) + 16};
  }
  const Section* model = head.find(L3_SECTION_MODEL);
  if (model != nullptr && head.bits != 8) return {Reason::model_unexpected, entry_of(model)};
  const Section* space = head.find(L3_SECTION_COLOUR_SPACE);
  if (space != nullptr && space->size != kColourSpaceBytes) return {Reason::colour_space_size, entry_of(space) + 16};
  return {};
}

Verdict check_limits(const Head& head, const l3_limits& limits) {
  const uint64_t pixels = uint64_t{head.width} * head.height;
  if (pixels > limits.max_pixels) return {Reason::over_pixel_limit, header::kWidth};
  if (pixels * head.pixel_bytes() > limits.max_output_bytes) return {Reason::over_output_limit, header::kWidth};
  return {};
}

Verdict check_constant(const uint8_t* entry, uint64_t at, const Head& head) {
  for (uint32_t c = 0; c < kMaxChannels; ++c) {
    const uint32_t most = c < head.channels ? (1u << head.bits) - 1 : 0;
    if (load_u16(entry + 4 + 2 * c) > most) return {Reason::constant_value, at + 4 + 2 * c};
  }
  return {};
}

// One entry of the index against the shape of its tile; `next` is where its payload must begin, in units.
Verdict check_entry(const uint8_t* entry, uint64_t at, const Head& head, const TileShape& shape, uint64_t& next) {
  const uint32_t parameters = entry[1];
  const uint32_t units = load_u16(entry + 2);
  switch (static_cast<Method>(entry[0])) {
    case Method::constant:
      if (parameters != 0) return {Reason::tile_parameters, at + 1};
      if (units != 0) return {Reason::tile_size, at + 2};
      return check_constant(entry, at, head);
    case Method::raw:
      if (parameters != 0) return {Reason::tile_parameters, at + 1};
      if (uint64_t{units} * kUnit != raw_bytes(shape.width, shape.height, shape.channels, shape.bits)) {
        return {Reason::tile_size, at + 2};
      }
      break;
    case Method::fast:
      if (parameters >= kTransforms || (parameters != 0 && shape.channels < 3)) {
        return {Reason::tile_parameters, at + 1};
      }
      if (units == 0) return {Reason::tile_size, at + 2};
      break;
    case Method::dense:
      if (head.find(L3_SECTION_MODEL) == nullptr) return {Reason::tile_needs_model, at};
      if (parameters > kMaxLogLanes) return {Reason::tile_parameters, at + 1};
      if (units * kUnit < 4u << parameters) return {Reason::tile_size, at + 2};
      break;
    default: return {Reason::tile_method, at};
  }
  if (load_u32(entry + 4) != next) return {Reason::tile_offset, at + 4};
  next += units;
  return {};
}

}  // namespace

const Section* Head::find(uint32_t type) const {
  for (uint32_t i = 0; i < section_count; ++i) {
    if (sections[i].type == type) return &sections[i];
  }
  return nullptr;
}

TileShape Head::tile_shape(uint64_t tile) const {
  const uint32_t x = static_cast<uint32_t>(tile % tiles_across) * tile_width;
  const uint32_t y = static_cast<uint32_t>(tile / tiles_across) * tile_height;
  return {smaller(tile_width, width - x), smaller(tile_height, height - y), channels, bits};
}

l3_limits with_defaults(const l3_limits* limits) {
  l3_limits result = limits != nullptr ? *limits : l3_limits{};
  if (result.max_pixels == 0) result.max_pixels = L3_DEFAULT_MAX_PIXELS;
  if (result.max_output_bytes == 0) result.max_output_bytes = L3_DEFAULT_MAX_OUTPUT_BYTES;
  if (result.max_metadata_bytes == 0) result.max_metadata_bytes = L3_DEFAULT_MAX_METADATA_BYTES;
  return result;
}

Verdict read_head(const uint8_t* data, uint64_t size, const Target& target, const l3_limits& limits, Head& head) {
  for (uint32_t i = 0; i < sizeof(kSignatureBytes); ++i) {
    if (i >= size) return {Reason::head_truncated, size};
    if (data[i] != kSignatureBytes[i]) return {Reason::not_l3, i};
  }
  if (size < kHeaderBytes) return {Reason::head_truncated, size};
  if (load_u16(data + header::kVersion) != 0) return {Reason::bad_version, header::kVersion};
  head.section_count = load_u16(data + header::kSectionCount);
  if (head.section_count > kMaxSections) return {Reason::too_many_sections, header::kSectionCount};
  head.head_bytes = kHeaderBytes + head.section_count * kSectionEntryBytes;
  if (size < head.head_bytes) return {Reason::head_truncated, size};

  uint8_t copy[L3_HEAD_MAX_BYTES];
  std::memcpy(copy, data, head.head_bytes);
  store_u32(copy + header::kHeadCheck, 0);
  if (target.check(copy, head.head_bytes / 4) != load_u32(data + header::kHeadCheck)) {
    return {Reason::head_check, header::kHeadCheck};
  }
  if (load_u32(data + header::kRequired) != 0) return {Reason::required_feature, header::kRequired};

  Verdict verdict = read_header_fields(data, head);
  if (!verdict.ok()) return verdict;
  head.index_end = pad_to_unit(head.head_bytes + head.tile_count * kIndexEntryBytes);
  verdict = read_section_entries(data, head);
  if (!verdict.ok()) return verdict;
  verdict = check_section_sizes(head);
  return verdict.ok() ? check_limits(head, limits) : verdict;
}

Verdict check_section(const uint8_t* data, uint64_t size, const Target& target, const Section& section) {
  const uint64_t padded = pad_to_unit(section.size);
  if (section.offset > size || size - section.offset < padded) return {Reason::section_truncated, size};
  if (target.check(data + section.offset, padded / 4) != section.check) {
    return {Reason::section_check, section.offset};
  }
  for (uint64_t i = section.size; i < padded; ++i) {
    if (data[section.offset + i] != 0) return {Reason::section_padding, section.offset + i};
  }
  return {};
}

Verdict check_container(const uint8_t* data, uint64_t size, const Target& target, const Head& head,
                        DenseTables& model) {
  if (size < head.index_end) return {Reason::index_truncated, size};
  const uint8_t* index = data + head.head_bytes;
  if (target.check(index, (head.index_end - head.head_bytes) / 4) != head.index_check) {
    return {Reason::index_check, head.head_bytes};
  }
  for (uint64_t i = head.head_bytes + head.tile_count * kIndexEntryBytes; i < head.index_end; ++i) {
    if (data[i] != 0) return {Reason::index_padding, i};
  }
  for (uint32_t i = 0; i < head.section_count; ++i) {
    const Section& section = head.sections[i];
    if (section.type >= kFirstAsideType) continue;
    const Verdict verdict = check_section(data, size, target, section);
    if (!verdict.ok()) return verdict;
    if (section.type == L3_SECTION_MODEL) {
      const Fault fault = read_model(data + section.offset, section.size, head.channels, model);
      if (fault.reason != Reason::none) return {fault.reason, section.offset + fault.at};
    }
  }
  if (size < head.payload_start) return {Reason::section_truncated, size};

  uint64_t next = head.payload_start / kUnit;
  for (uint64_t tile = 0; tile < head.tile_count; ++tile) {
    Verdict verdict = check_entry(index + tile * kIndexEntryBytes, head.head_bytes + tile * kIndexEntryBytes, head,
                                  head.tile_shape(tile), next);
    verdict.tile = tile;
    if (!verdict.ok()) return verdict;
  }
  if (size / kUnit < next) return {Reason::payload_truncated, size};
  if (size != next * kUnit) return {Reason::trailing_bytes, next * kUnit};
  return {};
}

TileEntry read_entry(const uint8_t* data, const Head& head, uint64_t tile) {
  const uint8_t* entry = data + head.head_bytes + tile * kIndexEntryBytes;
  TileEntry result{};
  result.method = static_cast<Method>(entry[0]);
  result.parameters = entry[1];
  if (result.method == Method::constant) {
    for (uint32_t c = 0; c < kMaxChannels; ++c) result.value[c] = static_cast<uint16_t>(load_u16(entry + 4 + 2 * c));
    result.payload = data;
  } else {
    result.payload = data + uint64_t{load_u32(entry + 4)} * kUnit;
    result.payload_bytes = load_u16(entry + 2) * kUnit;
    result.check = load_u32(entry + 8);
  }
  return result;
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
