#include "image_reads.h"

#include <algorithm>

#include "base/exif.h"
#include "data_error.h"

namespace loader {
namespace {

// The first read of a file that is read in parts. It holds the head and the index of nearly every file.
constexpr uint64_t kFirst = 16 << 10;

// What requests cost, in bytes.
struct Costs {
  uint64_t small;  // files up to this size are read at once
  uint64_t gap;    // reading this many unneeded bytes costs less than another read
};
constexpr Costs kLocal{64 << 10, 16 << 10}, kFar{256 << 10, 64 << 10};

constexpr l3_limits kAny = {UINT64_MAX, UINT64_MAX, UINT64_MAX};

void ask_for(Image& image, const l3_data_set& set, uint64_t offset, uint64_t size) {
  if (size == 0) return;
  image.reads.push_back(set.read_of(image.number, image.sample, offset, size, image.file + offset));
  image.reads.back().again = image.is_second_try;
}

void ask_for_rest(Image& image, const l3_data_set& set) {
  ask_for(image, set, image.prefix, image.sample.size - image.prefix);
  image.prefix = image.sample.size;
  image.is_whole = true;
  image.is_planned = true;
}

// Plans the reads after the beginning of the file. Faults in it are reported by decoding.
void plan_parts(Image& image, const l3_data_set& set, const Costs& costs) {
  const Shard& shard = *set.shards[image.sample.shard];
  l3_info info = l3_info_init();
  l3_error error{};
  if (l3_read_info(image.file, image.prefix, &kAny, &info, &error) != L3_OK) return image.fail(shard, error);
  if (info.payload_start > image.sample.size) return ask_for_rest(image, set);
  if (info.payload_start > image.prefix) {
    ask_for(image, set, image.prefix, info.payload_start - image.prefix);
    image.prefix = info.payload_start;
    return;
  }
  if (info.width != image.sample.width || info.height != image.sample.height) {
    return ask_for_rest(image, set);  // it does not match the index
  }
  if (!image.is_settled) {
    if (image.settle_by_file(image.prefix) != nullptr) return ask_for_rest(image, set);  // decoding reports why
  }
  const auto find = [&](l3_range* ranges, size_t capacity, size_t* count) {
    return l3_find_payloads(image.file, image.prefix, image.sample.size, image.x, image.y, image.width, image.height,
                            costs.gap, ranges, capacity, count, &error);
  };
  size_t count = 0;
  if (find(nullptr, 0, &count) != L3_OK) return image.fail(shard, error);
  std::vector<l3_range> ranges(count);
  if (find(ranges.data(), count, &count) != L3_OK) return image.fail(shard, error);

  uint64_t bytes = 0;
  for (l3_range& range : ranges) {
    const uint64_t end = range.offset + range.size;
    range.offset = std::max(range.offset, image.prefix);
    range.size = end > range.offset ? end - range.offset : 0;
    bytes += range.size;
  }
  if (bytes > (image.sample.size - image.prefix) / 4 * 3) return ask_for_rest(image, set);
  image.is_planned = true;
  image.present = {{0, image.prefix}};
  for (const l3_range& range : ranges) {
    if (range.size == 0) continue;
    ask_for(image, set, range.offset, range.size);
    image.present.push_back(range);
  }
}

}  // namespace

Geometry Image::geometry() const {
  Geometry made = geometry_of(steps, tensor->filter_of(sample));
  if (room.width != 0) made.extend(room.width, room.height);
  return made;
}

const char* Image::settle(uint32_t orientation) {
  if (const char* reason = draw_steps(*options, {sample.width, sample.height}, orientation, random, given, steps)) {
    return reason;
  }
  const Geometry made = geometry_of(steps, tensor->filter_of(sample));
  x = made.x;
  y = made.y;
  width = made.region_width();
  height = made.region_height();
  is_settled = true;
  is_whole = width == sample.width && height == sample.height;
  return nullptr;
}

const char* Image::settle_by_file(size_t size) {
  const bool was_whole = is_whole;
  const char* reason = settle(orientation_in(file, size));
  is_whole = was_whole;  // this is about what has been read
  return reason;
}

void Image::fail(const Shard& shard, l3_status status, std::string_view reason, uint64_t offset, int system_error) {
  if (fault) return;
  (void)!loader::fail(&fault.emplace(), status, shard.name(), reason, offset, system_error);
}

void Image::fail(const Shard& shard, const l3_error& error) {
  std::string reason = error.reason;
  if (error.tile != L3_NO_TILE) reason += " (tile " + std::to_string(error.tile) + ")";
  const bool has_place = error.status != L3_ERROR_ARGUMENT && error.status != L3_ERROR_BUFFER &&
                         error.status != L3_ERROR_MEMORY && error.status != L3_ERROR_DEVICE;
  fail(shard, error.status, reason, has_place ? sample.offset + error.offset : L3_DATA_NONE);
}

bool Image::is_worth_reading_again() const {
  return fault && !read_fault && !is_second_try && fault->status != L3_ERROR_MEMORY && fault->status != L3_ERROR_LIMIT;
}

void Image::forget() {
  is_second_try = true;
  is_whole = true;
  is_planned = false;
  prefix = 0;
  present.clear();
  if (options->orient != 0) is_settled = tells_size = false;  // its orientation may have been damaged too
  fault.reset();
  read_fault.reset();
}

uint32_t orientation_in(const uint8_t* file, size_t size) {
  const uint8_t* exif = nullptr;
  size_t exif_size = 0;
  if (l3_find_section(file, size, L3_SECTION_EXIF, &exif, &exif_size, nullptr) != L3_OK) exif_size = 0;
  return base::orientation_of(exif, exif_size);
}

void plan_reads(Image& image, const l3_data_set& set) {
  image.reads.clear();
  if (image.is_planned || image.fault) return;
  const Costs& costs = set.store->is_far() ? kFar : kLocal;
  if (image.is_whole || image.sample.size <= costs.small) return ask_for_rest(image, set);
  if (image.prefix == 0) {
    image.prefix = kFirst;
    ask_for(image, set, 0, kFirst);
    return;
  }
  plan_parts(image, set, costs);
  // Everything may be present already.
  if (image.reads.empty() && !image.is_planned && !image.fault) plan_reads(image, set);
}

}  // namespace loader
