// The reading functions of l3.h: info, sections, decoding of images and regions, verifying.
#include <atomic>
#include <cstring>

#include "api/options.h"
#include "api/parallel.h"
#include "container/metadata.h"
#include "decode/container.h"

namespace l3 {
namespace {

struct Region {
  uint32_t x, y, width, height;
};

l3_status report(l3_error* error, const Verdict& verdict) {
  return fail(error, verdict.reason, verdict.offset, verdict.tile);
}

// Fills in red, green, blue and alpha for each possible index. Indices beyond the palette are opaque black.
void build_colours(const uint8_t* data, const Head& head, uint8_t* colours) {
  const Palette palette = palette_of(data, *head.find(L3_SECTION_PALETTE));
  const Section* transparency = head.find(L3_SECTION_TRANSPARENCY);
  for (uint32_t i = 0; i < 256; ++i) {
    const bool has_alpha = transparency != nullptr && i < transparency->size;
    const uint32_t alpha = has_alpha ? data[transparency->offset + i] : 255;
    store_u32(colours + 4 * i, (i < palette.entries ? palette.colour(i) : 0) | alpha << 24);
  }
}

uint32_t colour_bytes(const Head& head) { return head.find(L3_SECTION_TRANSPARENCY) != nullptr ? 4 : 3; }

// Decodes the tiles that a region touches, in parallel.
class RegionDecoder {
 public:
  RegionDecoder(const uint8_t* data, uint64_t size, const Head& head, const Target& target, const ModelTables& model,
                const Region& region, uint8_t* out, size_t stride, const uint8_t* colours)
      : data_(data),
        size_(size),
        head_(head),
        target_(target),
        model_(model),
        region_(region),
        out_(out),
        stride_(stride),
        colours_(colours),
        pixel_bytes_(colours != nullptr ? colour_bytes(head) : head.pixel_bytes()),
        first_column_(region.x / head.tile_width),
        first_row_(region.y / head.tile_height),
        columns_((region.x + region.width - 1) / head.tile_width - first_column_ + 1),
        rows_((region.y + region.height - 1) / head.tile_height - first_row_ + 1) {}

  Verdict run(const l3_parallel& parallel) {
    run_parallel(parallel, uint64_t{columns_} * rows_, *this);
    // Report the lowest tile that failed. Which one failed first in time depends on the threads.
    const uint64_t failed = failed_.load();
    if (failed == L3_NO_TILE) return {};
    const Verdict verdict = decode_tile(failed);
    // If it does not fail this time, another thread is changing the file.
    return verdict.ok() ? Verdict{Reason::tile_check, 0, failed} : verdict;
  }

  void operator()(uint64_t i) {
    if (i >= failed_.load(std::memory_order_relaxed)) return;
    if (decode_tile(i).ok()) return;
    uint64_t lowest = failed_.load();
    while (i < lowest && !failed_.compare_exchange_weak(lowest, i)) {
    }
  }

 private:
  // Decodes the i-th tile of the region, counted row by row.
  Verdict decode_tile(uint64_t i) const {
    const uint32_t column = first_column_ + static_cast<uint32_t>(i % columns_);
    const uint32_t row = first_row_ + static_cast<uint32_t>(i / columns_);
    const uint64_t tile = uint64_t{row} * head_.tiles_across + column;
    const TileShape shape = head_.tile_shape(tile);
    // The index was verified, but another thread may have changed it since. Check again what is used.
    uint8_t copy[kIndexEntryBytes];
    const uint64_t at = head_.head_bytes + tile * kIndexEntryBytes;
    std::memcpy(copy, data_ + at, sizeof(copy));
    if (check_entry_fields(copy, head_, shape).reason != Reason::none) return {Reason::index_check, at, tile};
    const TileEntry entry = read_entry(copy, data_);
    if (entry.payload_bytes > size_ || static_cast<uint64_t>(entry.payload - data_) > size_ - entry.payload_bytes) {
      return {Reason::index_check, at, tile};
    }
    const uint64_t offset = static_cast<uint64_t>(entry.payload - data_);
    if (entry.method != Method::constant && target_.check(entry.payload, entry.payload_bytes / 4) != entry.check) {
      return {Reason::tile_check, offset, tile};
    }
    const TileOutput out = output(column * head_.tile_width, row * head_.tile_height, shape);
    const Fault fault = entry.method != Method::dense    ? target_.decode(shape, entry, out)
                        : model_.kind == kTokenModelKind ? target_.decode_tokens(shape, entry, out, model_.token)
                                                         : target_.decode_dense(shape, entry, out, model_.dense);
    return {fault.reason, offset + fault.at, fault.reason == Reason::none ? L3_NO_TILE : tile};
  }

  // The part of the region that lies in the tile at (x, y), relative to the tile.
  TileOutput output(uint32_t x, uint32_t y, const TileShape& shape) const {
    TileOutput part{};
    part.x0 = x < region_.x ? region_.x - x : 0;
    part.y0 = y < region_.y ? region_.y - y : 0;
    part.x1 = smaller(shape.width, region_.x + region_.width - x);
    part.y1 = smaller(shape.height, region_.y + region_.height - y);
    part.stride = stride_;
    part.colours = colours_;
    part.colour_bytes = pixel_bytes_;
    if (out_ != nullptr) {
      part.pixels = out_ + (y + part.y0 - region_.y) * stride_ + size_t{x + part.x0 - region_.x} * pixel_bytes_;
    }
    return part;
  }

  const uint8_t* data_;
  uint64_t size_;
  const Head& head_;
  const Target& target_;
  const ModelTables& model_;
  Region region_;
  uint8_t* out_;
  size_t stride_;
  const uint8_t* colours_;
  uint32_t pixel_bytes_;
  uint32_t first_column_, first_row_, columns_, rows_;
  std::atomic<uint64_t> failed_{L3_NO_TILE};
};

// Whether read_head() applies the limits to the whole image. With `any`, the caller applies them to a region, or not
// at all.
enum class Size { within_limits, any };

// The result of what every reading call does first: check arguments, choose the processor target, verify the head.
struct Opened {
  const Target* target = nullptr;
  l3_decode_options options{};
  l3_limits limits{};
  SuppliedModels models;
  Head head{};
  Verdict verdict;
};

Opened open(const void* data, size_t size, const l3_decode_options* options, Size accepted = Size::within_limits) {
  Opened file;
  file.target = target();
  if (data == nullptr) {
    file.verdict = {Reason::null_argument};
  } else if (!copy_sized(options, file.options)) {
    file.verdict = {Reason::bad_struct_size};
  } else if (file.options.models == nullptr && file.options.model_count != 0) {
    file.verdict = {Reason::null_argument};
  } else if (file.target == nullptr) {
    file.verdict = {Reason::unknown_cpu_target};
  } else {
    file.limits = with_defaults(&file.options.limits);
    file.models = {file.options.models, file.options.model_count};
    constexpr l3_limits kNone = {UINT64_MAX, UINT64_MAX, UINT64_MAX};
    const l3_limits& limits = accepted == Size::any ? kNone : file.limits;
    file.verdict = read_head(static_cast<const uint8_t*>(data), size, *file.target, limits, file.head);
  }
  return file;
}

void fill_info(const uint8_t* data, const Head& head, l3_info& info) {
  info.version = load_u16(data + header::kVersion);
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
  std::memcpy(info.digest, data + header::kDigest, sizeof(info.digest));
  info.model_origin = head.model_origin();
  info.default_model = head.default_model;
  if (info.model_origin == L3_MODEL_NAMED) {
    std::memcpy(info.model_name, data + kHeaderBytes, sizeof(info.model_name));
  } else if (info.model_origin == L3_MODEL_DEFAULT) {
    std::memcpy(info.model_name, kDefaultModelTable[head.default_model - 1].name, sizeof(info.model_name));
  }
}

l3_status decode_region(const Opened& file, const uint8_t* data, size_t size, const Region& region, void* out,
                        size_t out_size, size_t stride, l3_error* error) {
  const Head& head = file.head;
  if (out == nullptr) return fail(error, Reason::null_argument);
  if (region.width == 0 || region.height == 0 || region.x >= head.width || region.y >= head.height ||
      region.width > head.width - region.x || region.height > head.height - region.y) {
    return fail(error, Reason::bad_region);
  }
  const bool as_colours = file.options.as_colours != 0 && head.colour == L3_COLOUR_PALETTE;
  const uint64_t row = uint64_t{region.width} * (as_colours ? colour_bytes(head) : head.pixel_bytes());
  const uint64_t step = stride == 0 ? row : stride;
  if (step < row) return fail(error, Reason::bad_stride);
  // An image has at most 2^20 rows, so this keeps the products below from overflowing.
  if (step > (UINT64_MAX >> 21)) return fail(error, Reason::bad_stride);
  if (uint64_t{region.width} * region.height > file.limits.max_pixels) {
    return fail(error, Reason::over_pixel_limit, header::kWidth);
  }
  if (row * region.height > file.limits.max_output_bytes) return fail(error, Reason::over_output_limit, header::kWidth);
  const uint64_t needed = step * (region.height - 1) + row;
  if (needed > out_size) return fail(error, Reason::buffer_too_small);
  if (overlap(data, size, out, needed)) return fail(error, Reason::buffers_overlap);

  FileModel model;
  const Verdict container = check_container(data, size, *file.target, head, &file.models, model);
  if (!container.ok()) return report(error, container);
  uint8_t colours[4 * 256];
  if (as_colours) build_colours(data, head, colours);
  RegionDecoder decoder(data, size, head, *file.target, *model.tables, region, static_cast<uint8_t*>(out), step,
                        as_colours ? colours : nullptr);
  return report(error, decoder.run(file.options.parallel));
}

}  // namespace
}  // namespace l3

using namespace l3;

l3_status l3_read_info(const void* data, size_t size, const l3_limits* limits, l3_info* info, l3_error* error) {
  if (info == nullptr) return fail(error, Reason::null_argument);
  l3_info own{};
  if (!copy_sized(info, own)) return fail(error, Reason::bad_struct_size);
  l3_decode_options options = l3_decode_options_init();
  if (limits != nullptr) options.limits = *limits;
  const Opened file = open(data, size, &options);
  if (!file.verdict.ok()) return report(error, file.verdict);
  fill_info(static_cast<const uint8_t*>(data), file.head, own);
  std::memcpy(info, &own, own.struct_size < sizeof(own) ? own.struct_size : sizeof(own));
  return succeed(error);
}

l3_status l3_find_section(const void* data, size_t size, uint32_t type, const uint8_t** bytes, size_t* bytes_size,
                          l3_error* error) {
  if (bytes == nullptr || bytes_size == nullptr) return fail(error, Reason::null_argument);
  *bytes = nullptr;
  *bytes_size = 0;
  const Opened file = open(data, size, nullptr, Size::any);
  if (!file.verdict.ok()) return report(error, file.verdict);
  const Section* section = file.head.find(type);
  if (section == nullptr) return succeed(error);
  const uint8_t* start = static_cast<const uint8_t*>(data);
  const Verdict verdict = check_section(start, size, *file.target, *section);
  if (!verdict.ok()) return report(error, verdict);
  *bytes = start + section->offset;
  *bytes_size = section->size;
  return succeed(error);
}

l3_status l3_read_palette(const void* data, size_t size, uint8_t* colours, size_t colours_size, uint32_t* entries,
                          l3_error* error) {
  if (entries == nullptr) return fail(error, Reason::null_argument);
  *entries = 0;
  const Opened file = open(data, size, nullptr, Size::any);
  if (!file.verdict.ok()) return report(error, file.verdict);
  const Section* section = file.head.find(L3_SECTION_PALETTE);
  if (section == nullptr) return succeed(error);
  const uint8_t* start = static_cast<const uint8_t*>(data);
  Verdict verdict = check_section(start, size, *file.target, *section);
  if (verdict.ok()) verdict = check_palette(start, file.head, *section);
  if (!verdict.ok()) return report(error, verdict);
  const Palette palette = palette_of(start, *section);
  *entries = palette.entries;
  if (colours == nullptr) return succeed(error);
  if (colours_size < size_t{3} * palette.entries) return fail(error, Reason::buffer_too_small);
  for (uint32_t i = 0; i < palette.entries; ++i) {
    const uint32_t colour = palette.colour(i);
    for (uint32_t c = 0; c < 3; ++c) colours[3 * i + c] = static_cast<uint8_t>(colour >> (8 * c));
  }
  return succeed(error);
}

l3_status l3_check(const void* data, size_t size, const l3_limits* limits, l3_error* error) {
  l3_decode_options options = l3_decode_options_init();
  if (limits != nullptr) options.limits = *limits;
  const Opened file = open(data, size, &options);
  if (!file.verdict.ok()) return report(error, file.verdict);
  FileModel model;
  return report(error,
                check_container(static_cast<const uint8_t*>(data), size, *file.target, file.head, nullptr, model));
}

l3_status l3_count_tiles(const void* data, size_t size, uint32_t method, uint64_t* count, l3_error* error) {
  if (count == nullptr) return fail(error, Reason::null_argument);
  *count = 0;
  const Opened file = open(data, size, nullptr, Size::any);
  if (!file.verdict.ok()) return report(error, file.verdict);
  const uint8_t* bytes = static_cast<const uint8_t*>(data);
  FileModel model;
  const Verdict verdict = check_container(bytes, size, *file.target, file.head, nullptr, model);
  if (!verdict.ok()) return report(error, verdict);
  for (uint64_t tile = 0; tile < file.head.tile_count; ++tile) {
    *count += static_cast<uint32_t>(read_entry(bytes, file.head.head_bytes, tile).method) == method;
  }
  return succeed(error);
}

uint32_t l3_pixel_bytes(const l3_info* info, const void* data, size_t size, const l3_decode_options* options) {
  l3_info own{};
  l3_decode_options wanted{};
  if (info == nullptr || !copy_sized(info, own) || !copy_sized(options, wanted)) return 0;
  if (wanted.as_colours == 0 || own.colour != L3_COLOUR_PALETTE) {
    return own.channels * (own.sample_type == L3_SAMPLE_U16 ? 2 : 1);
  }
  // Use only the head, as decoding does. Decoding verifies the transparency section later.
  const Opened file = open(data, size, nullptr, Size::any);
  return file.verdict.ok() ? colour_bytes(file.head) : 3;
}

l3_status l3_decode(const void* data, size_t size, const l3_decode_options* options, void* out, size_t out_size,
                    size_t stride, l3_error* error) {
  const Opened file = open(data, size, options);
  if (!file.verdict.ok()) return report(error, file.verdict);
  return decode_region(file, static_cast<const uint8_t*>(data), size, {0, 0, file.head.width, file.head.height}, out,
                       out_size, stride, error);
}

l3_status l3_decode_region(const void* data, size_t size, uint32_t x, uint32_t y, uint32_t width, uint32_t height,
                           const l3_decode_options* options, void* out, size_t out_size, size_t stride,
                           l3_error* error) {
  const Opened file = open(data, size, options, Size::any);
  if (!file.verdict.ok()) return report(error, file.verdict);
  return decode_region(file, static_cast<const uint8_t*>(data), size, {x, y, width, height}, out, out_size, stride,
                       error);
}

l3_status l3_verify(const void* data, size_t size, const l3_decode_options* options, l3_error* error) {
  const Opened file = open(data, size, options);
  if (!file.verdict.ok()) return report(error, file.verdict);
  const Head& head = file.head;
  const uint8_t* bytes = static_cast<const uint8_t*>(data);
  FileModel model;
  Verdict verdict = check_container(bytes, size, *file.target, head, &file.models, model);
  if (verdict.ok()) {
    RegionDecoder decoder(bytes, size, head, *file.target, *model.tables, {0, 0, head.width, head.height}, nullptr, 0,
                          nullptr);
    verdict = decoder.run(file.options.parallel);
  }
  for (uint32_t i = 0; i < head.section_count && verdict.ok(); ++i) {
    const Section& section = head.sections[i];
    if (section.type < kFirstAsideType) continue;
    verdict = check_section(bytes, size, *file.target, section);
    if (verdict.ok() && section.type == L3_SECTION_METADATA) {
      verdict = unpack_metadata(bytes, section, file.limits.max_metadata_bytes, nullptr, 0);
    }
  }
  if (verdict.ok()) {
    uint8_t digest[header::kDigestBytes];
    digest_of(bytes, head.payload_start, digest);
    if (std::memcmp(digest, bytes + header::kDigest, sizeof(digest)) != 0) verdict = {Reason::digest, header::kDigest};
  }
  return report(error, verdict);
}

l3_status l3_unpack_metadata(const void* data, size_t size, const l3_limits* limits, void* out, size_t out_size,
                             size_t* needed, l3_error* error) {
  if (needed == nullptr) return fail(error, Reason::null_argument);
  *needed = 0;
  const uint8_t* bytes = nullptr;
  size_t bytes_size = 0;
  const l3_status status = l3_find_section(data, size, L3_SECTION_METADATA, &bytes, &bytes_size, error);
  if (status != L3_OK || bytes == nullptr) return status;
  const uint8_t* start = static_cast<const uint8_t*>(data);
  const uint64_t offset = static_cast<uint64_t>(bytes - start);
  if (bytes_size < kMinMetadataBytes) return fail(error, Reason::metadata_size, offset);
  const uint32_t unpacked = load_u32(bytes);
  const uint64_t maximum = with_defaults(limits).max_metadata_bytes;
  if (unpacked > maximum) return fail(error, Reason::over_metadata_limit, offset);
  *needed = unpacked;
  if (out == nullptr) return succeed(error);
  if (out_size < unpacked) return fail(error, Reason::buffer_too_small);
  if (overlap(data, size, out, unpacked)) return fail(error, Reason::buffers_overlap);
  return report(error, unpack_metadata(start, {L3_SECTION_METADATA, 0, offset, bytes_size}, maximum,
                                       static_cast<uint8_t*>(out), out_size));
}

const char* l3_status_text(l3_status status) {
  switch (status) {
    case L3_OK: return "no error";
    case L3_ERROR_ARGUMENT: return "wrong argument";
    case L3_ERROR_NOT_L3: return "not an L3 file";
    case L3_ERROR_UNSUPPORTED: return "not supported by this version";
    case L3_ERROR_CORRUPT: return "the file is corrupt";
    case L3_ERROR_TRUNCATED: return "the file is truncated";
    case L3_ERROR_LIMIT: return "over a limit";
    case L3_ERROR_BUFFER: return "the output buffer is too small";
    case L3_ERROR_MEMORY: return "out of memory";
    case L3_ERROR_DEVICE: return "the device failed";
    case L3_ERROR_MODEL: return "the model that the file names is missing";
    case L3_ERROR_FILE: return "a file cannot be read";
  }
  return "unknown status";
}

l3_status l3_describe_reason(uint32_t reason, const char** text) {
  if (text != nullptr) *text = text_of(static_cast<Reason>(reason));
  return status_of(static_cast<Reason>(reason));
}

uint32_t l3_version(void) { return 10000 * L3_VERSION_MAJOR + 100 * L3_VERSION_MINOR + L3_VERSION_PATCH; }

#define L3_TEXT_OF(x) #x
#define L3_TEXT(x) L3_TEXT_OF(x)
const char* l3_version_text(void) {
  return L3_TEXT(L3_VERSION_MAJOR) "." L3_TEXT(L3_VERSION_MINOR) "." L3_TEXT(L3_VERSION_PATCH);
}

const char* l3_cpu_target(void) {
  const Target* chosen = target();
  return chosen != nullptr ? chosen->name : nullptr;
}
