// Replaces tiff.cpp in programs that are linked statically, and in l3_few_formats.
#include "adapters.h"

namespace formats {

Result<Image> read_tiff(std::span<const uint8_t>, const ReadOptions&) {
  return Error{0, "a TIFF file: this program was built without libtiff"};
}
Result<uint32_t> count_tiff_pages(std::span<const uint8_t>) {
  return Error{0, "a TIFF file: this program was built without libtiff"};
}

}  // namespace formats
