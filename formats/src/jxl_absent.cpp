// Replaces jxl.cpp if libjxl is not installed, and in l3_few_formats.
#include "adapters.h"

namespace formats {

Result<Image> read_jxl(std::span<const uint8_t>, const ReadOptions&) {
  return Error{0, "a JPEG XL file: this program was built without libjxl"};
}

}  // namespace formats
