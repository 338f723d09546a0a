#include "base/exif.h"

namespace base {
namespace {

// Where a number of 16 bits is, and its byte order.
struct Place {
  size_t at = 0;  // 0: nowhere
  bool is_big = false;
};

Place find_orientation(const uint8_t* exif, size_t size) {
  if (exif == nullptr || size < 8) return {};
  const bool is_big = exif[0] == 'M';
  const auto u16 = [&](size_t at) -> uint32_t {
    return is_big ? uint32_t{exif[at]} << 8 | exif[at + 1] : uint32_t{exif[at + 1]} << 8 | exif[at];
  };
  const size_t directory = is_big ? u16(4) << 16 | u16(6) : u16(6) << 16 | u16(4);
  if (directory > size - 2) return {};
  const size_t entries = u16(directory);
  for (size_t i = 0; i < entries; ++i) {
    const size_t at = directory + 2 + 12 * i;
    if (at + 12 > size) return {};
    constexpr uint32_t kOrientation = 0x0112, kShort = 3;
    if (u16(at) == kOrientation && u16(at + 2) == kShort) return {at + 8, is_big};
  }
  return {};
}

}  // namespace

uint32_t orientation_of(const uint8_t* exif, size_t size) {
  const Place place = find_orientation(exif, size);
  if (place.at == 0) return 1;
  const uint32_t high = exif[place.at + (place.is_big ? 0 : 1)], low = exif[place.at + (place.is_big ? 1 : 0)];
  const uint32_t orientation = high << 8 | low;
  return orientation >= 1 && orientation <= 8 ? orientation : 1;
}

void set_upright(uint8_t* exif, size_t size) {
  if (orientation_of(exif, size) == 1) return;
  const Place place = find_orientation(exif, size);
  exif[place.at] = place.is_big ? 0 : 1;
  exif[place.at + 1] = place.is_big ? 1 : 0;
}

}  // namespace base
