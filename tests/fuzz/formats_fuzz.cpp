// Any bytes as a foreign image. What is read can be written again, and comes back the same.
#include <cstdlib>

#include "formats/formats.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  formats::ReadOptions options;
  options.max_pixels = 1 << 18;
  options.max_bytes = 1 << 21;
  const auto image = formats::read({data, size}, options);
  if (!image) return 0;
  if (!formats::problem(*image).empty()) std::abort();
  const auto file = formats::write(formats::Format::png, *image);
  if (!file) return 0;  // not every depth fits a PNG
  const auto again = formats::read(*file, options);
  if (!again || !formats::difference(*image, *again).empty()) std::abort();
  return 0;
}
