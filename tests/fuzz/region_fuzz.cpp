// Eight bytes that choose a region and a stride, then any bytes as a file. All processor targets say the same of the
// region; where the whole decodes, so does the region, and is a crop of it; nothing between its rows is touched; and
// with the parts alone that l3_find_payloads names it is the same.
#include <algorithm>
#include <cstring>
#include <iterator>

#include "file_mutator.h"
#include "harness.h"

namespace {

using fuzz::Bytes;
using fuzz::Said;
using fuzz::said;

constexpr size_t kChoiceBytes = 8;
constexpr l3_limits kLimits{1 << 17, 1 << 19, 1 << 20};
constexpr uint8_t kUntouched = 0xA5;

struct Region {
  uint32_t x, y, width, height;
  size_t slack;  // bytes between rows
};

// Mostly inside the image, sometimes not.
Region choose(const uint8_t* choice, const l3_info& info) {
  Region region{};
  const bool wild = choice[7] % 16 == 15;
  region.x = choice[0] * info.width / 256 + (wild ? choice[6] : 0u);
  region.y = choice[1] * info.height / 256;
  const uint32_t right = region.x < info.width ? info.width - region.x : 1;
  region.width = choice[2] * right / 256 + 1 + (wild ? choice[6] & 1u : 0u);
  region.height = choice[3] * (info.height - region.y) / 256 + (wild ? choice[6] >> 7 : 1u);
  region.slack = choice[4] % 4 == 0 ? choice[5] : 0u;
  return region;
}

struct Outcome {
  Said region;
  Bytes samples;

  bool operator==(const Outcome&) const = default;
};

Outcome decode(const Bytes& file, const Region& region, uint32_t pixel, const l3_decode_options& options) {
  Outcome outcome;
  l3_error error{};
  const size_t row = size_t{region.width} * pixel, stride = row + region.slack;
  outcome.samples.resize(region.height == 0 ? 0 : stride * (region.height - 1) + row, kUntouched);
  uint8_t none = 0;
  outcome.region = said(l3_decode_region(file.data(), file.size(), region.x, region.y, region.width, region.height,
                                         &options, outcome.samples.empty() ? &none : outcome.samples.data(),
                                         outcome.samples.size(), stride, &error),
                        error);
  for (size_t at = row; at < outcome.samples.size(); at += stride) {
    for (size_t i = 0; i < region.slack; ++i) FUZZ_EXPECT(outcome.samples[at + i] == kUntouched);
  }
  if (!outcome.region.ok()) outcome.samples.clear();
  return outcome;
}

void check_crop(const Bytes& file, const l3_info& info, const Region& region, const Outcome& outcome, uint32_t pixel,
                const l3_decode_options& options) {
  Bytes whole(uint64_t{info.width} * info.height * pixel);
  if (l3_decode(file.data(), file.size(), &options, whole.data(), whole.size(), 0, nullptr) != L3_OK) return;
  const bool inside = region.height != 0 && uint64_t{region.x} + region.width <= info.width &&
                      uint64_t{region.y} + region.height <= info.height;
  FUZZ_EXPECT(outcome.region.ok() == inside);
  if (!inside) return;
  const size_t row = size_t{region.width} * pixel;
  for (size_t y = 0; y < region.height; ++y) {
    FUZZ_EXPECT(std::memcmp(&outcome.samples[y * (row + region.slack)],
                            &whole[((region.y + y) * info.width + region.x) * pixel], row) == 0);
  }
}

void check_parts(const Bytes& file, const l3_info& info, const Region& region, const Outcome& outcome, uint32_t pixel,
                 const l3_decode_options& options) {
  const size_t start = static_cast<size_t>(std::min<uint64_t>(info.payload_start, file.size()));
  const Bytes beginning = fuzz::exactly(file.data(), start);
  l3_range ranges[64];
  size_t count = 0;
  const l3_status status = l3_find_payloads(beginning.data(), start, file.size(), region.x, region.y, region.width,
                                            region.height, 0, ranges, std::size(ranges), &count, nullptr);
  if (status == L3_ERROR_BUFFER) return;
  FUZZ_EXPECT(status == L3_OK || !outcome.region.ok());
  if (status != L3_OK) return;
  Bytes parts(file.size(), kUntouched);
  std::memcpy(parts.data(), beginning.data(), start);
  for (size_t i = 0; i < count; ++i) {
    FUZZ_EXPECT(ranges[i].offset >= start && ranges[i].size <= file.size() - ranges[i].offset);
    std::memcpy(&parts[ranges[i].offset], &file[ranges[i].offset], ranges[i].size);
  }
  FUZZ_EXPECT(decode(parts, region, pixel, options) == outcome);
}

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  if (size <= kChoiceBytes || max_size <= kChoiceBytes) return LLVMFuzzerMutate(data, size, max_size);
  if (seed % 4 == 0) {
    LLVMFuzzerMutate(data, kChoiceBytes, kChoiceBytes);
    return size;
  }
  return kChoiceBytes + fuzz::mutate_file(data + kChoiceBytes, size - kChoiceBytes, max_size - kChoiceBytes, seed);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size <= kChoiceBytes) return 0;
  const Bytes file = fuzz::exactly(data + kChoiceBytes, size - kChoiceBytes);
  l3_info info = l3_info_init();
  if (l3_read_info(file.data(), file.size(), &kLimits, &info, nullptr) != L3_OK) return 0;
  l3_decode_options options = l3_decode_options_init();
  options.as_colours = data[7] >> 4 & 1;
  const uint32_t pixel = l3_pixel_bytes(&info, file.data(), file.size(), &options);
  const Region region = choose(data, info);
  const Outcome outcome = fuzz::same_on_all_targets([&] { return decode(file, region, pixel, options); });
  check_crop(file, info, region, outcome, pixel, options);
  check_parts(file, info, region, outcome, pixel, options);
  return 0;
}
