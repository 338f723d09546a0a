// Finds the parts of a file that decoding a region needs (section 5 of the spec).
#include "decode/file.h"

namespace l3 {
namespace {

// Verifies the index and its entries. What these may say depends on how many channels are coded, so it takes the
// channel map, too. The head must have been verified.
Verdict check_whole_index(l3_file& file, uint64_t file_size) {
  Verdict verdict = check_index(file.data, file.size, *file.target, file.head);
  if (!verdict.ok()) return verdict;
  if (const Section* const map = file.head.find(L3_SECTION_CHANNEL_MAP)) {
    verdict = check_section(file.data, file.size, *file.target, *map);
    if (verdict.ok()) verdict = take_channel_map(file.data, file.head, *map);
    if (!verdict.ok()) return verdict;
  }
  return check_entries(file.data, file_size, file.head);
}

}  // namespace
}  // namespace l3

using namespace l3;

l3_status l3_find_payloads(const void* data, size_t size, uint64_t file_size, uint32_t x, uint32_t y, uint32_t width,
                           uint32_t height, uint64_t gap, l3_range* ranges, size_t capacity, size_t* count,
                           l3_error* error) {
  if (count == nullptr) return fail(error, Reason::null_argument);
  *count = 0;
  l3_file file;
  Verdict verdict = file.read(data, size, nullptr);
  const Head& head = file.head;
  if (verdict.ok()) verdict = check_whole_index(file, file_size);
  if (verdict.ok() && !is_inside({x, y, width, height}, head)) verdict = {Reason::bad_region};
  if (!verdict.ok()) return report(error, verdict);

  if (head.is_tiny()) return succeed(error);  // all of it comes before `payload_start`

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
      const uint8_t* entry = file.data + head.head_bytes + tile * kIndexEntryBytes;
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
