// Any bytes as a file, or as the beginning of one: everything that reads no payload. All processor targets say the
// same.
#include <algorithm>

#include "harness.h"

namespace {

using fuzz::Bytes;
using fuzz::Said;
using fuzz::said;

constexpr uint64_t kMaxMetadata = 1 << 20;

struct Answers {
  Said info, check, metadata;
  std::vector<Said> sections, counts;
  std::vector<uint64_t> tiles;
  Bytes palette, records;

  bool operator==(const Answers&) const = default;
};

Answers ask(const Bytes& file) {
  const l3_limits limits{UINT64_MAX, UINT64_MAX, kMaxMetadata};
  Answers answers;
  l3_error error{};
  l3_info info = l3_info_init();
  answers.info = said(l3_read_info(file.data(), file.size(), &limits, &info, &error), error);
  answers.check = said(l3_check(file.data(), file.size(), &limits, &error), error);
  for (const uint32_t type : {1u, 2u, 3u, 4u, 5u, 6u, 0x8001u, 0x9000u}) {
    const uint8_t* bytes = nullptr;
    size_t size = 0;
    answers.sections.push_back(said(l3_find_section(file.data(), file.size(), type, &bytes, &size, &error), error));
    FUZZ_EXPECT(bytes == nullptr || (bytes >= file.data() && bytes + size <= file.data() + file.size()));
    // Whoever finds a file whole finds its sections; those aside may have a verdict of their own.
    if (answers.check.ok() && type < 0x8000) FUZZ_EXPECT(answers.sections.back().ok());
  }
  uint32_t entries = 0;
  answers.palette.resize(size_t{3} * 256);
  const l3_status palette =
      l3_read_palette(file.data(), file.size(), answers.palette.data(), answers.palette.size(), &entries, &error);
  answers.sections.push_back(said(palette, error));
  if (answers.check.ok()) FUZZ_EXPECT(answers.sections.back().ok());
  FUZZ_EXPECT(entries <= 256);
  uint64_t all = 0;
  for (uint32_t method = 0; method < 4; ++method) {
    uint64_t count = 0;
    answers.counts.push_back(said(l3_count_tiles(file.data(), file.size(), method, &count, &error), error));
    FUZZ_EXPECT(answers.counts.back() == answers.check);
    answers.tiles.push_back(count);
    all += count;
  }
  if (answers.check.ok()) FUZZ_EXPECT(all == info.tile_count);
  if (answers.info.ok()) {
    l3_decode_options options = l3_decode_options_init();
    for (options.as_colours = 0; options.as_colours < 2; ++options.as_colours) {
      const uint32_t pixel = l3_pixel_bytes(&info, file.data(), file.size(), &options);
      FUZZ_EXPECT(pixel >= 1 && pixel <= 8);
    }
    FUZZ_EXPECT(info.payload_start % 4 == 0 && info.head_bytes <= L3_HEAD_MAX_BYTES);
  } else {
    FUZZ_EXPECT(!answers.check.ok());
  }
  size_t needed = 0;
  answers.metadata = said(l3_unpack_metadata(file.data(), file.size(), &limits, nullptr, 0, &needed, &error), error);
  if (answers.metadata.ok() && needed != 0) {
    FUZZ_EXPECT(needed <= kMaxMetadata);
    answers.records.resize(needed);
    answers.metadata = said(
        l3_unpack_metadata(file.data(), file.size(), &limits, answers.records.data(), needed, &needed, &error), error);
    if (!answers.metadata.ok()) answers.records.clear();
  }
  return answers;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const Bytes file = fuzz::exactly(data, size);
  const Answers answers = fuzz::same_on_all_targets([&] { return ask(file); });
  // The head of a file is enough for its info.
  if (answers.info.ok()) {
    l3_info info = l3_info_init();
    const Bytes head = fuzz::exactly(data, std::min<size_t>(size, L3_HEAD_MAX_BYTES));
    const l3_limits none{UINT64_MAX, UINT64_MAX, UINT64_MAX};
    FUZZ_EXPECT(l3_read_info(head.data(), head.size(), &none, &info, nullptr) == L3_OK);
  }
  return 0;
}
