// Any bytes as a file: info, decode, a region, verify. All processor targets give the same verdict and the same pixels.
#include <cstdlib>
#include <cstring>
#include <vector>

#include "container.h"
#include "l3/l3.hpp"
#include "reseal.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  size = LLVMFuzzerMutate(data, size, max_size);
  if (seed % 8 != 0) fuzz::reseal(data, size);
  return size;
}

namespace {

void expect(bool holds) {
  if (!holds) std::abort();
}

constexpr uint64_t kMostPixels = 1 << 20;

struct Outcome {
  l3_status status, region_status, verify_status;
  std::vector<uint8_t> pixels, region;

  bool operator==(const Outcome&) const = default;
};

Outcome decode_all(const uint8_t* data, size_t size, const l3_info& info, uint32_t as_colours) {
  l3_decode_options options = l3_decode_options_init();
  options.as_colours = as_colours;
  const uint64_t pixel = l3_pixel_bytes(&info, data, size, &options);
  Outcome outcome{};
  // Exactly as large as they must be: a sanitizer sees any byte written beyond.
  outcome.pixels.resize(static_cast<size_t>(uint64_t{info.width} * info.height * pixel));
  outcome.status = l3_decode(data, size, &options, outcome.pixels.data(), outcome.pixels.size(), 0, nullptr);
  const uint32_t x = info.width / 3, y = info.height / 3;
  const uint32_t width = (info.width - x + 1) / 2, height = (info.height - y + 1) / 2;
  outcome.region.resize(static_cast<size_t>(uint64_t{width} * height * pixel));
  outcome.region_status = l3_decode_region(data, size, x, y, width, height, &options, outcome.region.data(),
                                           outcome.region.size(), 0, nullptr);
  outcome.verify_status = l3_verify(data, size, &options, nullptr);
  if (outcome.status == L3_OK) {
    expect(outcome.region_status == L3_OK);
    for (uint64_t row = 0; row < height; ++row) {
      expect(std::memcmp(&outcome.region[row * width * pixel], &outcome.pixels[((y + row) * info.width + x) * pixel],
                         width * pixel) == 0);
    }
  } else {
    outcome.pixels.clear();
    expect(outcome.verify_status != L3_OK);
  }
  if (outcome.region_status != L3_OK) outcome.region.clear();
  return outcome;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // A copy of the exact size, so that reads beyond it are seen.
  const std::vector<uint8_t> file(data, data + size);
  const l3_limits limits{kMostPixels, 0, 1 << 20};
  l3_info info = l3_info_init();
  if (l3_read_info(file.data(), file.size(), &limits, &info, nullptr) != L3_OK) return 0;
  const uint32_t as_colours = file.back() & 1;
  unsetenv("L3_CPU");
  const Outcome best = decode_all(file.data(), file.size(), info, as_colours);
  for (const char* target : {"portable", "avx2"}) {
    setenv("L3_CPU", target, 1);
    if (l3_cpu_target() != nullptr) expect(decode_all(file.data(), file.size(), info, as_colours) == best);
  }
  size_t needed = 0;
  if (l3_unpack_metadata(file.data(), file.size(), &limits, nullptr, 0, &needed, nullptr) == L3_OK) {
    std::vector<uint8_t> records(needed);
    (void)!l3_unpack_metadata(file.data(), file.size(), &limits, records.data(), records.size(), &needed, nullptr);
  }
  return 0;
}
