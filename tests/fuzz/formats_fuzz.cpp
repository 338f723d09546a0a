// Any bytes as a foreign image. What is read can be written again, and comes back the same.
#include "formats/formats.h"
#include "harness.h"
#include "png_mutator.h"

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  return fuzz::mutate_png(data, size, max_size, seed);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  formats::ReadOptions options;
  options.max_pixels = 1 << 18;
  options.max_bytes = 1 << 21;
  const fuzz::Bytes file = fuzz::exactly(data, size);
  const auto image = formats::read(file, options);
  if (!image) {
    FUZZ_EXPECT(!image.error().reason.empty());
    FUZZ_EXPECT(image.error().reason.find('\n') == std::string::npos);
    return 0;
  }
  FUZZ_EXPECT(formats::problem(*image).empty());
  const auto written = formats::write(formats::Format::png, *image);
  if (!written) return 0;  // not every depth fits a PNG
  const auto again = formats::read(*written, options);
  FUZZ_EXPECT(again.ok());
  FUZZ_EXPECT(formats::difference(*image, *again).empty());
  return 0;
}
