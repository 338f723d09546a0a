// Finds the parts of a file that decoding a region needs (section 5 of the spec).
#include "api/options.h"
#include "decode/container.h"

using namespace l3;

l3_status l3_find_payloads(const void* data, size_t size, uint64_t file_size, uint32_t x, uint32_t y, uint32_t width,
                           uint32_t height, uint64_t gap, l3_range* ranges, size_t capacity, size_t* count,
                           l3_error* error) {
  if (data == nullptr || count == nullptr) return fail(error, Reason::null_argument);
  *count = 0;
  const Target* processor = target();
  if (processor == nullptr) return fail(error, Reason::unknown_cpu_target);
  const uint8_t* bytes = static_cast<const uint8_t*>(data);
  constexpr l3_limits kNone = {UINT64_MAX, UINT64_MAX, UINT64_MAX};
  Head head{};
  Verdict verdict = read_head(bytes, size, *processor, kNone, head);
  if (verdict.ok()) verdict = check_index(bytes, size, file_size, *processor, head);
  if (!verdict.ok()) return fail(error, verdict.reason, verdict.offset, verdict.tile);
  if (width == 0 || height == 0 || x >= head.width || y >= head.height || width > head.width - x ||
      height > head.height - y) {
    return fail(error, Reason::bad_region);
  }

  const uint32_t first = x / head.tile_width, last = (x + width - 1) / head.tile_width;
  const uint32_t bottom = (y + height - 1) / head.tile_height;
  size_t found = 0;
  l3_range current{};
  const auto keep = [&] {
    if (current.size == 0) return;
    if (ranges != nullptr && found < capacity) ranges[found] = current;
    ++found;
  };
  for (uint32_t row = y / head.tile_height; row <= bottom; ++row) {
    for (uint32_t column = first; column <= last; ++column) {
      const uint64_t tile = uint64_t{row} * head.tiles_across + column;
      const uint8_t* entry = bytes + head.head_bytes + tile * kIndexEntryBytes;
      const uint64_t units = entry_units(entry);
      if (units == 0) continue;
      const uint64_t offset = uint64_t{load_u32(entry + 4)} * kUnit;
      // Payloads are stored in the order of the tiles.
      if (current.size != 0 && offset - (current.offset + current.size) <= gap) {
        current.size = offset + units * kUnit - current.offset;
      } else {
        keep();
        current = {offset, units * kUnit};
      }
    }
  }
  keep();
  *count = found;
  if (ranges != nullptr && found > capacity) return fail(error, Reason::buffer_too_small);
  return succeed(error);
}
