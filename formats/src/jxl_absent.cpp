// Replaces jxl.cpp if libjxl is not installed.
#include "adapters.h"
#include "jxl_signature.h"

namespace formats {

bool is_jxl(std::span<const uint8_t> file) { return has_jxl_signature(file); }

Result<Image> read_jxl(std::span<const uint8_t>, const ReadOptions&) {
  return Error{0, "a JPEG XL file: this program was built without libjxl"};
}

}  // namespace formats
