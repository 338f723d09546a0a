// Any bytes as a file: decode and verify. All processor targets, and any order of tiles, give the same verdict for the
// same reason at the same offset, or the same samples.
#include "harness.h"

namespace {

using fuzz::Bytes;
using fuzz::Said;
using fuzz::said;

constexpr l3_limits kLimits{1 << 17, 1 << 19, 1 << 20};

struct Outcome {
  Said decoded, verified;
  Bytes samples;

  bool operator==(const Outcome&) const = default;
};

Outcome decode(const Bytes& file, const l3_info& info, const l3_decode_options& options) {
  Outcome outcome;
  l3_error error{};
  const uint32_t pixel = l3_pixel_bytes(&info, file.data(), file.size(), &options);
  outcome.samples.resize(uint64_t{info.width} * info.height * pixel);
  outcome.decoded = said(
      l3_decode(file.data(), file.size(), &options, outcome.samples.data(), outcome.samples.size(), 0, &error), error);
  outcome.verified = said(l3_verify(file.data(), file.size(), &options, &error), error);
  if (!outcome.decoded.ok()) {
    outcome.samples.clear();
    // Colours take more bytes than indices, so that only decoding may be over the limit.
    if (outcome.decoded.status != L3_ERROR_LIMIT) FUZZ_EXPECT(outcome.verified == outcome.decoded);
  }
  return outcome;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const Bytes file = fuzz::exactly(data, size);
  l3_info info = l3_info_init();
  if (l3_read_info(file.data(), file.size(), &kLimits, &info, nullptr) != L3_OK) return 0;
  l3_decode_options options = l3_decode_options_init();
  options.limits = kLimits;
  options.as_colours = file.back() & 1;
  const Outcome first = fuzz::same_on_all_targets([&] { return decode(file, info, options); });
  options.parallel = fuzz::backwards();
  FUZZ_EXPECT(decode(file, info, options) == first);
  return 0;
}
