// What files say about themselves: info, sections, palette, metadata, counts of tiles.
#include <cstddef>
#include <cstring>

#include "api/options.h"
#include "container/metadata.h"
#include "decode/file.h"

namespace l3 {
namespace {

l3_status fill_info(const l3_file& file, l3_info* to, l3_error* error) {
  l3_info info{};
  if (!copy_sized(to, info)) return fail(error, Reason::bad_struct_size);
  const uint8_t* const data = file.data;
  const Head& head = file.head;
  info.version = kFormatVersion;
  info.required_features = head.required_features;
  info.optional_features = head.optional_features;
  info.width = head.width;
  info.height = head.height;
  info.frames = 1;
  info.channels = head.channels;
  info.sample_type = head.sample_type;
  info.bits = head.bits;
  info.colour = head.colour;
  info.alpha = head.alpha;
  info.tile_width = head.tile_width;
  info.tile_height = head.tile_height;
  info.tile_count = head.tile_count;
  info.head_bytes = head.head_bytes;
  info.payload_start = head.payload_start;
  info.image_bytes = uint64_t{head.width} * head.height * head.pixel_bytes();
  if (head.is_tiny()) {
    // Opening such a file takes half as long again with it, so it is computed only if the caller has room for it.
    if (info.struct_size > offsetof(l3_info, digest)) l3_digest(data, head.payload_start, info.digest);
  } else {
    std::memcpy(info.digest, data + header::kDigest, sizeof(info.digest));
  }
  info.model_origin = head.model_origin();
  info.default_model = head.default_model;
  if (info.model_origin == L3_MODEL_NAMED) {
    std::memcpy(info.model_name, data + head.name_at(), sizeof(info.model_name));
  } else if (info.model_origin == L3_MODEL_DEFAULT) {
    std::memcpy(info.model_name, kDefaultModelTable[head.default_model - 1].name, sizeof(info.model_name));
  }
  std::memcpy(to, &info, info.struct_size < sizeof(info) ? info.struct_size : sizeof(info));
  return succeed(error);
}

// Finds a section and verifies its check, unless the container was verified with it. Sets `bytes` to null if the file
// has no such section.
Verdict find_section(const l3_file& file, uint32_t type, const uint8_t*& bytes, size_t& size) {
  const Section* section = file.head.find(type);
  if (section == nullptr) return {};
  if (!file.head.is_tiny() && (!file.is_container_checked || type >= kFirstAsideType)) {
    const Verdict verdict = check_section(file.data, file.size, *file.target, *section);
    if (!verdict.ok()) return verdict;
  }
  bytes = file.data + section->offset;
  size = section->size;
  return {};
}

Verdict read_palette(const l3_file& file, uint8_t* colours, size_t colours_size, uint32_t& entries) {
  const uint8_t* bytes = nullptr;
  size_t size = 0;
  Verdict verdict = find_section(file, L3_SECTION_PALETTE, bytes, size);
  if (!verdict.ok() || bytes == nullptr) return verdict;
  verdict = check_palette(file.data, file.head, *file.head.find(L3_SECTION_PALETTE));
  if (!verdict.ok()) return verdict;
  const Palette palette = Palette::of(bytes, size);
  entries = palette.entries;
  if (colours == nullptr) return {};
  if (colours_size < size_t{3} * palette.entries) return {Reason::buffer_too_small};
  for (uint32_t i = 0; i < palette.entries; ++i) {
    const uint32_t colour = palette.colour(i);
    for (uint32_t c = 0; c < 3; ++c) colours[3 * i + c] = static_cast<uint8_t>(colour >> (8 * c));
  }
  return {};
}

Verdict read_metadata(const l3_file& file, void* out, size_t out_size, size_t& needed) {
  const uint8_t* bytes = nullptr;
  size_t size = 0;
  const Verdict verdict = find_section(file, L3_SECTION_METADATA, bytes, size);
  if (!verdict.ok() || bytes == nullptr) return verdict;
  const uint64_t offset = static_cast<uint64_t>(bytes - file.data);
  if (size < kMinMetadataBytes) return {Reason::metadata_size, offset};
  const uint32_t unpacked = load_u32(bytes);
  const uint64_t maximum = file.limits.max_metadata_bytes;
  if (unpacked > maximum) return {Reason::over_metadata_limit, offset};
  needed = unpacked;
  if (out == nullptr) return {};
  if (out_size < unpacked) return {Reason::buffer_too_small};
  if (overlap(file.data, file.size, out, unpacked)) return {Reason::buffers_overlap};
  return unpack_metadata(file.data, {L3_SECTION_METADATA, 0, offset, size}, maximum, static_cast<uint8_t*>(out),
                         out_size);
}

uint64_t count_tiles(const l3_file& file, uint32_t method) {
  uint64_t count = 0;
  for (uint64_t tile = 0; tile < file.head.tile_count; ++tile) {
    count += l3_file_tile_method(&file, tile) == method;
  }
  return count;
}

l3_decode_options with(const l3_limits* limits) {
  l3_decode_options options = l3_decode_options_init();
  if (limits != nullptr) options.limits = *limits;
  return options;
}

}  // namespace
}  // namespace l3

using namespace l3;

// ---- of bytes

l3_status l3_read_info(const void* data, size_t size, const l3_limits* limits, l3_info* info, l3_error* error) {
  if (info == nullptr) return fail(error, Reason::null_argument);
  l3_info own{};
  if (!copy_sized(info, own)) return fail(error, Reason::bad_struct_size);
  const l3_decode_options options = with(limits);
  l3_file file;
  Verdict verdict = file.read(data, size, &options);
  if (verdict.ok()) verdict = file.check_limits();
  return verdict.ok() ? fill_info(file, info, error) : report(error, verdict);
}

l3_status l3_find_section(const void* data, size_t size, uint32_t type, const uint8_t** bytes, size_t* bytes_size,
                          l3_error* error) {
  if (bytes == nullptr || bytes_size == nullptr) return fail(error, Reason::null_argument);
  *bytes = nullptr;
  *bytes_size = 0;
  l3_file file;
  const Verdict verdict = file.read(data, size, nullptr);
  return report(error, verdict.ok() ? find_section(file, type, *bytes, *bytes_size) : verdict);
}

l3_status l3_read_palette(const void* data, size_t size, uint8_t* colours, size_t colours_size, uint32_t* entries,
                          l3_error* error) {
  if (entries == nullptr) return fail(error, Reason::null_argument);
  *entries = 0;
  l3_file file;
  const Verdict verdict = file.read(data, size, nullptr);
  return report(error, verdict.ok() ? read_palette(file, colours, colours_size, *entries) : verdict);
}

l3_status l3_unpack_metadata(const void* data, size_t size, const l3_limits* limits, void* out, size_t out_size,
                             size_t* needed, l3_error* error) {
  if (needed == nullptr) return fail(error, Reason::null_argument);
  *needed = 0;
  const l3_decode_options options = with(limits);
  l3_file file;
  const Verdict verdict = file.read(data, size, &options);
  return report(error, verdict.ok() ? read_metadata(file, out, out_size, *needed) : verdict);
}

l3_status l3_check(const void* data, size_t size, const l3_limits* limits, l3_error* error) {
  const l3_decode_options options = with(limits);
  l3_file file;
  Verdict verdict = file.read(data, size, &options);
  if (verdict.ok()) verdict = file.check_limits();
  if (verdict.ok()) verdict = file.check_container(NamedModel::later);
  return report(error, verdict);
}

l3_status l3_count_tiles(const void* data, size_t size, uint32_t method, uint64_t* count, l3_error* error) {
  if (count == nullptr) return fail(error, Reason::null_argument);
  *count = 0;
  l3_file file;
  Verdict verdict = file.read(data, size, nullptr);
  if (verdict.ok()) verdict = file.check_container(NamedModel::later);
  if (verdict.ok()) *count = count_tiles(file, method);
  return report(error, verdict);
}

uint32_t l3_pixel_bytes(const l3_info* info, const void* data, size_t size, const l3_decode_options* options) {
  l3_info own{};
  l3_decode_options wanted{};
  if (info == nullptr || !copy_sized(info, own) || !copy_sized(options, wanted)) return 0;
  if (wanted.as_colours == 0 || own.colour != L3_COLOUR_PALETTE) {
    return own.channels * (own.sample_type == L3_SAMPLE_U16 ? 2 : 1);
  }
  // Use only the head, as decoding does. Decoding verifies the transparency section later.
  l3_file file;
  return file.read(data, size, nullptr).ok() && file.head.find(L3_SECTION_TRANSPARENCY) != nullptr ? 4 : 3;
}

// ---- of an opened file

l3_status l3_file_info(const l3_file* file, l3_info* info, l3_error* error) {
  if (file == nullptr || info == nullptr) return fail(error, Reason::null_argument);
  return fill_info(*file, info, error);
}

uint32_t l3_file_pixel_bytes(const l3_file* file) { return file != nullptr ? file->pixel_bytes() : 0; }

l3_status l3_file_section(const l3_file* file, uint32_t type, const uint8_t** bytes, size_t* bytes_size,
                          l3_error* error) {
  if (file == nullptr || bytes == nullptr || bytes_size == nullptr) return fail(error, Reason::null_argument);
  *bytes = nullptr;
  *bytes_size = 0;
  return report(error, find_section(*file, type, *bytes, *bytes_size));
}

l3_status l3_file_palette(const l3_file* file, uint8_t* colours, size_t colours_size, uint32_t* entries,
                          l3_error* error) {
  if (file == nullptr || entries == nullptr) return fail(error, Reason::null_argument);
  *entries = 0;
  return report(error, read_palette(*file, colours, colours_size, *entries));
}

l3_status l3_file_metadata(const l3_file* file, void* out, size_t out_size, size_t* needed, l3_error* error) {
  if (file == nullptr || needed == nullptr) return fail(error, Reason::null_argument);
  *needed = 0;
  return report(error, read_metadata(*file, out, out_size, *needed));
}

l3_status l3_file_count_tiles(const l3_file* file, uint32_t method, uint64_t* count, l3_error* error) {
  if (file == nullptr || count == nullptr) return fail(error, Reason::null_argument);
  *count = count_tiles(*file, method);
  return succeed(error);
}

uint32_t l3_file_tile_method(const l3_file* file, uint64_t tile) {
  if (file == nullptr || tile >= file->head.tile_count) return UINT32_MAX;
  return static_cast<uint32_t>(read_entry(file->head, file->data, tile).method);
}
