// The rules for a file's head, sections and index (sections 2 to 5 of the spec), for processors and GPUs alike. The
// template parameter Machine computes checks: check(bytes, words), and check_of_head(bytes, words), which treats the
// head's own check field as zero.
#pragma once

#include "container/channel_map.h"
#include "container/methods.h"
#include "container/palette.h"
#include "container/reason.h"
#include "container/tile.h"

namespace l3 {

struct Section {
  uint32_t type, check;
  uint64_t offset, size;
};

// The only tile of a tiny file.
struct TinyTile {
  Method method;
  uint8_t parameters;
  uint16_t value[kMaxChannels];  // only of a constant tile
  uint32_t payload_at, payload_bytes;
};

struct Head {
  uint32_t required_features, optional_features;
  uint32_t default_model;  // 0: none
  uint32_t width, height;
  uint32_t channels, bits;  // of the image
  uint32_t sample_type, colour, alpha;
  uint32_t tile_width, tile_height;  // in pixels
  uint32_t tiles_across, tiles_down;
  uint64_t tile_count;
  uint32_t index_check;
  uint32_t section_count;
  Section sections[kMaxSections];
  uint64_t head_bytes;  // also the offset of the index
  uint64_t index_end;   // padding included
  uint64_t payload_start;
  TinyTile tiny;   // only of a tiny file, whose index and payloads are empty: all of it is verified with its head
  ChannelMap map;  // known when the sections are verified

  // How many channels tiles and models have.
  L3_INLINE uint32_t coded_channels() const { return map.coded != 0 ? map.coded : channels; }

  L3_INLINE bool names_model() const { return (required_features & kNamedModel) != 0; }
  L3_INLINE bool is_tiny() const { return head_bytes == kTinyHeaderBytes; }
  // The offset of a named model's name.
  L3_INLINE uint64_t name_at() const { return is_tiny() ? kTinyHeaderBytes : kHeaderBytes; }
  // The offset of the first section entry.
  L3_INLINE uint64_t entries_at() const { return kHeaderBytes + (names_model() ? kModelNameBytes : 0); }
  // Returns an l3_model_origin.
  L3_INLINE uint32_t model_origin() const {
    if (names_model()) return L3_MODEL_NAMED;
    if (default_model != 0) return L3_MODEL_DEFAULT;
    return find(L3_SECTION_MODEL) != nullptr ? L3_MODEL_OWN : L3_MODEL_NONE;
  }
  L3_INLINE uint32_t sample_bytes() const { return bits > 8 ? 2 : 1; }
  L3_INLINE uint32_t pixel_bytes() const { return channels * sample_bytes(); }
  L3_INLINE uint32_t coded_pixel_bytes() const { return coded_channels() * sample_bytes(); }
  L3_INLINE const Section* find(uint32_t type) const {
    for (uint32_t i = 0; i < section_count; ++i) {
      if (sections[i].type == type) return &sections[i];
    }
    return nullptr;
  }
  // Computes how many tiles an image of this size has.
  L3_INLINE void count_tiles() {
    tiles_across = ceil_div(width, tile_width);
    tiles_down = ceil_div(height, tile_height);
    tile_count = uint64_t{tiles_across} * tiles_down;
  }
  L3_INLINE TileShape tile_shape(uint64_t tile) const {
    const uint32_t number = static_cast<uint32_t>(tile);  // at most 2^30
    const uint32_t x = number % tiles_across * tile_width, y = number / tiles_across * tile_height;
    return {smaller(tile_width, width - x), smaller(tile_height, height - y), coded_channels(), bits};
  }
  // Encoders first write each payload where there is room for a raw tile. room_before() is the room of the tiles before
  // a tile, room() that of all.
  L3_INLINE uint64_t room_before(uint64_t tile) const {
    const uint32_t number = static_cast<uint32_t>(tile);
    const uint64_t row = number / tiles_across, column = number % tiles_across;
    return row * room_of_row(tile_height) + column * raw_bytes_of(tile_width, tile_shape(tile).height);
  }
  L3_INLINE uint64_t room() const {
    return (tiles_down - 1) * room_of_row(tile_height) + room_of_row(height - (tiles_down - 1) * tile_height);
  }

 private:
  L3_INLINE uint64_t room_of_row(uint32_t row_height) const {
    const uint32_t before = tiles_across - 1;  // tiles before the last one, which may be narrower
    return before * raw_bytes_of(tile_width, row_height) + raw_bytes_of(width - before * tile_width, row_height);
  }
  L3_INLINE uint64_t raw_bytes_of(uint32_t tile_columns, uint32_t tile_rows) const {
    return raw_bytes(tile_columns, tile_rows, coded_channels(), bits);
  }
};

// What is wrong with a file, and at which offset and tile.
struct Verdict {
  Reason reason = Reason::none;
  uint64_t offset = 0;
  uint64_t tile = L3_NO_TILE;

  L3_INLINE bool ok() const { return reason == Reason::none; }
};

// Writes the header, with zeros for the checks and the digest.
L3_INLINE void write_header_fields(const Head& head, uint8_t* out) {
  for (uint32_t i = 0; i < kHeaderBytes; ++i) out[i] = i < kSignatureBytes ? signature_byte(i) : uint8_t{0};
  store_u16(out + header::kVersion, kFormatVersion);
  store_u16(out + header::kSectionCount, head.section_count);
  store_u16(out + header::kRequired, head.required_features);
  store_u16(out + header::kDefaultModel, head.default_model);
  store_u32(out + header::kWidth, head.width);
  store_u32(out + header::kHeight, head.height);
  store_u32(out + header::kFrames, 1);
  store_u16(out + header::kChannels, head.channels);
  out[header::kSampleType] = static_cast<uint8_t>(head.sample_type);
  out[header::kBits] = static_cast<uint8_t>(head.bits);
  out[header::kColour] = static_cast<uint8_t>(head.colour);
  out[header::kAlpha] = static_cast<uint8_t>(head.alpha);
  out[header::kTileWidth] = static_cast<uint8_t>(head.tile_width / 32);
  out[header::kTileHeight] = static_cast<uint8_t>(head.tile_height / 32);
}

L3_INLINE Verdict read_header_fields(const uint8_t* data, Head& head) {
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
  head.count_tiles();
  head.index_check = load_u32(data + header::kIndexCheck);
  return {};
}

L3_INLINE Verdict read_section_entries(const uint8_t* data, Head& head) {
  uint64_t end = head.index_end;
  for (uint32_t i = 0; i < head.section_count; ++i) {
    const uint64_t at = head.entries_at() + uint64_t{i} * kSectionEntryBytes;
    Section& section = head.sections[i];
    section.type = load_u16(data + at + section_entry::kType);
    section.check = load_u32(data + at + section_entry::kCheck);
    section.offset = uint64_t{load_u32(data + at + section_entry::kOffset)} * kUnit;
    section.size = load_u32(data + at + section_entry::kSize);
    if (i > 0 && section.type <= head.sections[i - 1].type) return {Reason::section_type_order, at};
    const uint32_t last = (head.required_features & kChannelMap) != 0 ? L3_SECTION_CHANNEL_MAP : L3_SECTION_MODEL;
    const bool known = section.type >= L3_SECTION_PALETTE && section.type <= last;
    if (!known && section.type < kFirstAsideType) return {Reason::section_type_unknown, at};
    if (load_u16(data + at + section_entry::kFlags) != 0) return {Reason::section_flags, at + section_entry::kFlags};
    if (section.offset != end) return {Reason::section_offset, at + section_entry::kOffset};
    if (section.size == 0 || section.size > kMaxSectionBytes) return {Reason::section_size, at + section_entry::kSize};
    end += pad_to_unit(section.size);
  }
  head.payload_start = end;
  return {};
}

// The offset of a section's entry. Sections of tiny files have none: then where they begin.
L3_INLINE uint64_t entry_of(const Head& head, const Section* section) {
  if (head.is_tiny()) return section->offset;
  return head.entries_at() + static_cast<uint64_t>(section - head.sections) * kSectionEntryBytes;
}
L3_INLINE Verdict wrong_size(const Head& head, const Section* section, Reason reason) {
  return {reason, entry_of(head, section) + (head.is_tiny() ? 0 : section_entry::kSize)};
}

// The offset of the field that says which model the file uses: the name, the default model's number, or the section
// entry.
L3_INLINE uint64_t model_place(const Head& head) {
  if (head.is_tiny()) return tiny_header::kSizes;
  if (head.names_model()) return kHeaderBytes;
  if (head.default_model != 0) return header::kDefaultModel;
  return entry_of(head, head.find(L3_SECTION_MODEL));
}

// Verifies that the model comes from one place only and that this kind of image can have one.
L3_INLINE Verdict check_model_origin(const Head& head) {
  const bool is_default = head.default_model != 0, is_own = head.find(L3_SECTION_MODEL) != nullptr;
  if ((head.names_model() && is_default) || (head.names_model() && is_own) || (is_default && is_own)) {
    return {Reason::models_many, is_default ? header::kDefaultModel : header::kRequired};
  }
  if (head.default_model > kDefaultModels) return {Reason::default_model_unknown, header::kDefaultModel};
  return {};
}

// Turns a fault in a model into a verdict: an offset in the model's bytes if they are in the file, else model_place().
L3_INLINE Verdict verdict_of_model(const Head& head, const Fault& fault) {
  const Section* section = head.find(L3_SECTION_MODEL);
  return {fault.reason, section != nullptr ? section->offset + fault.at : model_place(head)};
}

// Verifies what can be verified of sections from their entries and the header.
L3_INLINE Verdict check_sections_of_head(const Head& head) {
  const Section* palette = head.find(L3_SECTION_PALETTE);
  const bool indexed = head.colour == L3_COLOUR_PALETTE;
  if (indexed && palette == nullptr) return {Reason::palette_missing, header::kColour};
  if (!indexed && palette != nullptr) return {Reason::palette_unexpected, entry_of(head, palette)};
  if (const Section* transparency = head.find(L3_SECTION_TRANSPARENCY)) {
    if (head.alpha != L3_ALPHA_NONE) return {Reason::transparency_unexpected, entry_of(head, transparency)};
    if (!indexed && transparency->size != 2 * head.channels) {
      return wrong_size(head, transparency, Reason::transparency_size);
    }
  }
  return check_model_origin(head);
}

// The size of a colour space section with these parts, or 0 if the parts are invalid.
L3_INLINE constexpr uint32_t colour_space_bytes(uint32_t parts) {
  constexpr uint32_t kParts = 4;
  constexpr uint32_t kBytes[kParts] = {4, 4, 1, 32};  // code points, gamma, rendering intent, chromaticities
  if (parts == 0 || parts >> kParts != 0) return 0;
  uint32_t bytes = 1;
  for (uint32_t i = 0; i < kParts; ++i) bytes += (parts >> i & 1) * kBytes[i];
  return bytes;
}

// Reads the header of a tiny file whose check is right, up to the model. Sets *at to where its tile begins.
L3_INLINE Verdict read_tiny_header(const uint8_t* data, uint32_t bytes, Head& head, uint32_t* at) {
  const uint32_t kind = data[tiny_header::kKind], sizes = load_u32(data + tiny_header::kSizes), model = sizes >> 20;
  const uint32_t colour = kind & 7;
  head.map = {};
  head.head_bytes = kTinyHeaderBytes;
  head.index_end = head.payload_start = bytes;
  head.required_features = model == kTinyNamed ? kNamedModel : 0;
  head.optional_features = 0;
  head.default_model = model < kTinyNamed ? model : 0;
  head.section_count = 0;
  head.width = data[tiny_header::kWidth] + 1u;
  head.height = data[tiny_header::kHeight] + 1u;
  head.bits = (kind >> 3 & 15) + 1;
  head.sample_type = head.bits > 8 ? L3_SAMPLE_U16 : L3_SAMPLE_U8;
  head.colour = colour;
  if (colour == 5) head.colour = L3_COLOUR_GRAY_ALPHA;
  if (colour == 6) head.colour = L3_COLOUR_RGB_ALPHA;
  if (colour == 7 || kind >> 7 != 0 || (colour == L3_COLOUR_PALETTE && head.bits > 8)) {
    return {Reason::bad_colour, tiny_header::kKind};
  }
  const bool has_alpha = head.colour == L3_COLOUR_GRAY_ALPHA || head.colour == L3_COLOUR_RGB_ALPHA;
  head.alpha = colour > L3_COLOUR_PALETTE ? L3_ALPHA_PREMULTIPLIED : has_alpha ? L3_ALPHA_STRAIGHT : L3_ALPHA_NONE;
  head.channels = head.colour == L3_COLOUR_PALETTE ? 1 : head.colour + 1;
  head.tile_width = ceil_div(head.width, 32) * 32;
  head.tile_height = ceil_div(head.height, 32) * 32;
  head.count_tiles();
  head.index_check = 0;
  *at = kTinyHeaderBytes;
  if (model == kTinyNamed) *at += kModelNameBytes;
  if (model >= kMinTinyModel) {
    head.sections[head.section_count++] = {L3_SECTION_MODEL, 0, *at, model};
    *at += static_cast<uint32_t>(pad_to_unit(model));
    for (uint32_t i = kTinyHeaderBytes + model; i < *at && i < bytes; ++i) {
      if (data[i] != 0) return {Reason::section_padding, i};
    }
  }
  return *at > bytes ? Verdict{Reason::section_size, tiny_header::kSizes} : Verdict{};
}

// Reads the tile of a tiny file, which begins at `at`. A fault's place is that of the field that says the method.
L3_INLINE Verdict read_tiny_tile(const uint8_t* data, uint32_t bytes, uint32_t at, Head& head) {
  const uint8_t coding = data[tiny_header::kCoding];
  const uint32_t other = coding >> 3, size = (load_u32(data + tiny_header::kSizes) >> 10 & 1023) * kTinyUnit;
  TinyTile& tile = head.tiny;
  tile = {Method::dense, coding, {}, at, size};
  if ((coding & 7) == kTinyOthers) {
    tile.method = other == 0 ? Method::constant : other == 1 ? Method::raw : Method::fast;
    tile.parameters = static_cast<uint8_t>(other < 2 ? 0 : other - 2);
  }
  const bool is_constant = tile.method == Method::constant;
  if (size > bytes - at || (is_constant && size != kConstantBytes)) {
    return {Reason::tile_size, tiny_header::kSizes, 0};
  }
  if (is_constant) {
    for (uint32_t c = 0; c < kMaxChannels; ++c) tile.value[c] = static_cast<uint16_t>(load_u16(data + at + 2 * c));
    tile.payload_bytes = 0;
  }
  return {};
}

// Reads the sections of a tiny file, which begin at `next`.
L3_INLINE Verdict read_tiny_sections(const uint8_t* data, uint32_t bytes, uint32_t next, Head& head) {
  uint32_t before = 0;
  while (bytes - next >= 2 && load_u16(data + next) != 0) {
    const uint32_t entry = load_u16(data + next), code = entry >> 12, size = entry & 4095;
    if (code <= before) return {Reason::section_type_order, next};
    if (code == L3_SECTION_MODEL || code == L3_SECTION_MODEL + 1) return {Reason::section_type_unknown, next};
    if (size == 0 || size > bytes - next - 2) return {Reason::section_size, next};
    const uint32_t type = code < 8 ? code : kFirstAsideType + code - 8;
    head.sections[head.section_count++] = {type, 0, next + 2, size};
    before = code;
    next += 2 + size;
  }
  for (uint32_t i = next; i < bytes; ++i) {
    if (i >= next + kTinyUnit - 1 || data[i] != 0) return {Reason::section_padding, i};
  }
  return {};
}

// Reads and verifies a tiny file, but for what sections contain.
template <class Machine>
L3_INLINE Verdict read_tiny_head(const Machine& machine, const uint8_t* data, uint64_t size, Head& head) {
  if (size < kTinyHeaderBytes) return {Reason::head_truncated, size};
  const uint32_t bytes = ((load_u32(data + tiny_header::kSizes) & 1023) + 1) * kTinyUnit;
  if (size < bytes) return {Reason::head_truncated, size};
  if (bytes < kTinyHeaderBytes) return {Reason::section_size, tiny_header::kSizes};
  if (machine.check(data + tiny_header::kWidth, bytes / 4 - 2) != load_u32(data + tiny_header::kCheck)) {
    return {Reason::head_check, tiny_header::kCheck};
  }
  uint32_t at = 0;
  Verdict verdict = read_tiny_header(data, bytes, head, &at);
  if (verdict.ok()) verdict = read_tiny_tile(data, bytes, at, head);
  if (!verdict.ok()) return verdict;
  const uint32_t payload = (load_u32(data + tiny_header::kSizes) >> 10 & 1023) * kTinyUnit;
  verdict = read_tiny_sections(data, bytes, at + payload, head);
  return verdict.ok() ? check_sections_of_head(head) : verdict;
}

template <class Machine>
L3_INLINE Verdict read_head(const Machine& machine, const uint8_t* data, uint64_t size, Head& head) {
  for (uint32_t i = 0; i < kSignatureBytes; ++i) {
    if (i >= size) return {Reason::head_truncated, size};
    if (i == 3 && data[i] == kTinyMark) return read_tiny_head(machine, data, size, head);
    if (i == 3 && data[i] == kTinyMarkOf0) return {Reason::version_0, i};
    if (data[i] != signature_byte(i)) return {Reason::not_l3, i};
  }
  if (size < kHeaderBytes) return {Reason::head_truncated, size};
  const uint32_t version = load_u16(data + header::kVersion);
  if (version != kFormatVersion) return {version == 0 ? Reason::version_0 : Reason::bad_version, header::kVersion};
  head.map = {};
  head.section_count = load_u16(data + header::kSectionCount);
  if (head.section_count > kMaxSections) return {Reason::too_many_sections, header::kSectionCount};
  head.required_features = load_u16(data + header::kRequired);
  head.default_model = load_u16(data + header::kDefaultModel);
  head.head_bytes = head.entries_at() + head.section_count * kSectionEntryBytes;
  if (size < head.head_bytes) return {Reason::head_truncated, size};
  if (machine.check_of_head(data, head.head_bytes) != load_u32(data + header::kHeadCheck)) {
    return {Reason::head_check, header::kHeadCheck};
  }
  if ((head.required_features & ~(kNamedModel | kBitModel | kChannelMap | kShapes)) != 0) {
    return {Reason::required_feature, header::kRequired};
  }

  Verdict verdict = read_header_fields(data, head);
  if (!verdict.ok()) return verdict;
  head.index_end = pad_to_unit(head.head_bytes + head.tile_count * kIndexEntryBytes);
  verdict = read_section_entries(data, head);
  return verdict.ok() ? check_sections_of_head(head) : verdict;
}

// Verifies the check and the padding of one section.
template <class Machine>
L3_INLINE Verdict check_section(const Machine& machine, const uint8_t* data, uint64_t size, const Section& section) {
  const uint64_t padded = pad_to_unit(section.size);
  if (section.offset > size || size - section.offset < padded) return {Reason::section_truncated, size};
  if (machine.check(data + section.offset, padded / 4) != section.check) {
    return {Reason::section_check, section.offset};
  }
  for (uint64_t i = section.size; i < padded; ++i) {
    if (data[section.offset + i] != 0) return {Reason::section_padding, section.offset + i};
  }
  return {};
}

L3_INLINE Palette palette_of(const uint8_t* data, const Section& section) {
  return Palette::of(data + section.offset, section.size);
}

// What the samples of the only coded channel stand for: the colours of a palette, with alpha, or all channels of a
// channel map. 8 bits a channel, the first one lowest. The sections must have been verified.
class PixelTable {
 public:
  L3_INLINE PixelTable(const uint8_t* data, const Head& head) : head_(head) {
    if (head.map.coded != 0) return;
    palette_ = palette_of(data, *head.find(L3_SECTION_PALETTE));
    const Section* const alphas = head.find(L3_SECTION_TRANSPARENCY);
    if (alphas == nullptr) return;
    alphas_ = data + alphas->offset;
    alpha_count_ = alphas->size;
  }
  // Samples beyond a palette are opaque black.
  L3_INLINE uint32_t operator[](uint32_t sample) const {
    if (head_.map.coded != 0) return head_.map.pixel_of(sample, head_.channels);
    const uint32_t alpha = sample < alpha_count_ ? alphas_[sample] : 255;
    return (sample < palette_.entries ? palette_.colour(sample) : 0) | alpha << 24;
  }

 private:
  const Head& head_;
  Palette palette_{};
  const uint8_t* alphas_ = nullptr;
  uint64_t alpha_count_ = 0;
};

// Verifies the contents of a palette whose check and padding are right.
L3_INLINE Verdict check_palette(const uint8_t* data, const Head& head, const Section& section) {
  if (section.size < kPaletteHeadBytes) return wrong_size(head, &section, Reason::palette_size);
  const Palette palette = palette_of(data, section);
  if (palette.rule >= kPaletteRules) return {Reason::palette_rule, section.offset};
  if (palette.entries > 1u << head.bits) return {Reason::palette_entries, section.offset + 1};
  if (palette.given_entries > palette.entries || section.size != palette.section_bytes()) {
    return wrong_size(head, &section, Reason::palette_size);
  }
  return {};
}

// Verifies a channel map whose check and padding are right, and puts it into the head.
L3_INLINE Verdict take_channel_map(const uint8_t* data, Head& head, const Section& section) {
  const uint32_t bytes = head.channels * kMapEntryBytes;
  if (section.size != bytes) return wrong_size(head, &section, Reason::channel_map);
  const uint32_t end = read_channel_map(data + section.offset, head.channels, head.bits, head.map);
  return end == bytes ? Verdict{} : Verdict{Reason::channel_map, section.offset + end};
}

// Verifies the contents of a section, except for a model. Its own check and padding, and those of earlier sections,
// were verified before.
L3_INLINE Verdict check_contents(const uint8_t* data, Head& head, const Section& section) {
  if (section.type == L3_SECTION_CHANNEL_MAP) return take_channel_map(data, head, section);
  if (section.type == L3_SECTION_PALETTE) return check_palette(data, head, section);
  if (section.type == L3_SECTION_TRANSPARENCY && head.colour == L3_COLOUR_PALETTE) {
    if (section.size > palette_of(data, *head.find(L3_SECTION_PALETTE)).entries) {
      return wrong_size(head, &section, Reason::transparency_size);
    }
  }
  if (section.type == L3_SECTION_COLOUR_SPACE) {
    const uint32_t bytes = colour_space_bytes(data[section.offset]);
    if (bytes == 0) return {Reason::colour_space_parts, section.offset};
    if (section.size != bytes) return wrong_size(head, &section, Reason::colour_space_size);
  }
  return {};
}

// Verifies all sections below 0x8000, except for the contents of a model. Puts a channel map into the head.
template <class Machine>
L3_INLINE Verdict check_sections(const Machine& machine, const uint8_t* data, uint64_t size, Head& head) {
  // A transparency is verified against the palette, so the palette must come first.
  static_assert(L3_SECTION_PALETTE < L3_SECTION_TRANSPARENCY);
  for (uint32_t i = 0; i < head.section_count; ++i) {
    const Section& section = head.sections[i];
    if (section.type >= kFirstAsideType) continue;
    Verdict verdict;
    if (!head.is_tiny()) verdict = check_section(machine, data, size, section);
    if (verdict.ok()) verdict = check_contents(data, head, section);
    if (!verdict.ok()) return verdict;
  }
  return {};
}

// Verifies the check and the padding of the index.
template <class Machine>
L3_INLINE Verdict check_index(const Machine& machine, const uint8_t* data, uint64_t size, const Head& head) {
  if (head.is_tiny()) return {};
  if (size < head.index_end) return {Reason::index_truncated, size};
  if (machine.check(data + head.head_bytes, (head.index_end - head.head_bytes) / 4) != head.index_check) {
    return {Reason::index_check, head.head_bytes};
  }
  for (uint64_t i = head.head_bytes + head.tile_count * kIndexEntryBytes; i < head.index_end; ++i) {
    if (data[i] != 0) return {Reason::index_padding, i};
  }
  return {};
}

// The size of a tile's payload in units, from its index entry.
L3_INLINE uint32_t entry_units(const uint8_t* entry) {
  return has_payload(static_cast<Method>(entry[0])) ? load_u16(entry + 2) : 0;
}

// Verifies the fields of a tile, except for its payload's offset. A fault's place is relative to an index entry.
L3_INLINE Fault check_fields(const TileEntry& entry, const Head& head, const TileShape& shape, uint32_t unit) {
  Fault fault{Reason::tile_method, 0};
  Methods::visit(entry.method, [&]<class Row>() {
    const bool lacks_model = Row::kNeedsModel && head.model_origin() == L3_MODEL_NONE;
    fault = lacks_model ? Fault{Reason::tile_needs_model, 0} : Row::check(entry, shape, unit);
  });
  return fault;
}

// Reads an index entry, except for its payload's offset.
L3_INLINE TileEntry read_fields(const uint8_t* entry) {
  TileEntry result{};
  result.method = static_cast<Method>(entry[0]);
  result.parameters = entry[1];
  result.payload_bytes = load_u16(entry + 2) * kUnit;
  result.has_check = has_payload(result.method);
  if (result.has_check) {
    result.check = load_u32(entry + 8);
  } else {
    for (uint32_t c = 0; c < kMaxChannels; ++c) result.value[c] = static_cast<uint16_t>(load_u16(entry + 4 + 2 * c));
  }
  return result;
}

// Reads an entry of a verified index. `data` is the start of the file.
L3_INLINE TileEntry read_entry(const uint8_t* entry, const uint8_t* data) {
  TileEntry result = read_fields(entry);
  result.payload = data + (result.has_check ? uint64_t{load_u32(entry + 4)} * kUnit : 0);
  return result;
}
L3_INLINE TileEntry read_entry(const TinyTile& tile, const uint8_t* data) {
  TileEntry result{};
  result.method = tile.method;
  result.parameters = tile.parameters;
  for (uint32_t c = 0; c < kMaxChannels; ++c) result.value[c] = tile.value[c];
  result.payload = data + tile.payload_at;
  result.payload_bytes = tile.payload_bytes;
  return result;
}
// `head` is a Head, or has its members.
template <class AnyHead>
L3_INLINE TileEntry read_entry(const AnyHead& head, const uint8_t* data, uint64_t tile) {
  if (head.head_bytes == kTinyHeaderBytes) return read_entry(head.tiny, data);
  return read_entry(data + head.head_bytes + tile * kIndexEntryBytes, data);
}

// Verifies the tile of a tiny file, and the size of the file.
L3_INLINE Verdict check_tiny(const uint8_t* data, uint64_t size, const Head& head) {
  const Fault fault = check_fields(read_entry(head.tiny, data), head, head.tile_shape(0), kTinyUnit);
  if (fault.reason != Reason::none) return {fault.reason, tiny_header::kCoding, 0};
  return size == head.payload_start ? Verdict{} : Verdict{Reason::trailing_bytes, head.payload_start};
}

// Verifies a tile's index entry. If the tile has a payload, it must begin at unit `next`.
L3_INLINE Verdict check_entry(const uint8_t* entry, const Head& head, uint64_t tile, uint64_t next) {
  const uint64_t at = head.head_bytes + tile * kIndexEntryBytes;
  const Fault fault = check_fields(read_fields(entry), head, head.tile_shape(tile), kUnit);
  if (fault.reason != Reason::none) return {fault.reason, at + fault.at, tile};
  if (has_payload(static_cast<Method>(entry[0])) && load_u32(entry + 4) != next)
    return {Reason::tile_offset, at + 4, tile};
  return {};
}

// Verifies that the file ends at unit `next`, where the last payload ends.
L3_INLINE Verdict check_end(uint64_t size, uint64_t next) {
  if (size / kUnit < next) return {Reason::payload_truncated, size};
  if (size != next * kUnit) return {Reason::trailing_bytes, next * kUnit};
  return {};
}

}  // namespace l3
