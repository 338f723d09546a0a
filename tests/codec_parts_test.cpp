// Tests of libl3: reading parts of files. l3_find_payloads returns exactly the bytes that decoding a region needs.
#include "codec_testing.h"

namespace {

using namespace codec_testing;
using drawing::Dice;
using drawing::draw;
using drawing::Pattern;

struct Found {
  l3_status status;
  std::vector<l3_range> ranges;
  l3_error error;
};

Found find(const Bytes& file, size_t size, uint32_t x, uint32_t y, uint32_t width, uint32_t height, uint64_t gap) {
  Found found{};
  size_t count = 0;
  found.status =
      l3_find_payloads(file.data(), size, file.size(), x, y, width, height, gap, nullptr, 0, &count, &found.error);
  if (found.status != L3_OK) return found;
  found.ranges.resize(count);
  size_t again = 0;
  found.status = l3_find_payloads(file.data(), size, file.size(), x, y, width, height, gap, found.ranges.data(), count,
                                  &again, &found.error);
  EXPECT_EQ(again, count);
  return found;
}

TEST(FindPayloads, NamesWhatARegionNeedsAndNoMore) {
  Dice dice(3);
  for (const Pattern pattern : {Pattern::natural, Pattern::noise, Pattern::labels}) {
    const Drawing drawing = draw({300, 211}, {L3_COLOUR_RGB, 8}, pattern);
    const Bytes file = encode(drawing, tiles_of(32, 64));
    const uint64_t start = info_of(file).payload_start;
    for (int round = 0; round < 60; ++round) {
      const uint32_t x = dice.roll(300), y = dice.roll(211);
      const uint32_t width = 1 + dice.roll(300 - x), height = 1 + dice.roll(211 - y);
      const uint64_t gap = dice.pick<const uint64_t[3]>({0, 200, 1 << 20});
      const Found found = find(file, start, x, y, width, height, gap);
      ASSERT_EQ(found.status, L3_OK) << found.error.reason;
      // Nothing but the beginning and what was named.
      Bytes parts = dice.bytes(file.size());
      std::copy_n(file.begin(), start, parts.begin());
      uint64_t end = 0;
      for (const l3_range& range : found.ranges) {
        ASSERT_GE(range.offset, start);
        ASSERT_GT(range.size, 0u);
        ASSERT_LE(range.offset + range.size, file.size());
        if (end != 0) {
          ASSERT_GT(range.offset, end + gap);
        }
        end = range.offset + range.size;
        std::copy_n(file.begin() + static_cast<ptrdiff_t>(range.offset), range.size,
                    parts.begin() + static_cast<ptrdiff_t>(range.offset));
      }
      Bytes expected(size_t{width} * height * 3), got(expected.size());
      const auto decode = [&](const Bytes& from, Bytes& to) {
        return l3_decode_region(from.data(), from.size(), x, y, width, height, nullptr, to.data(), to.size(), 0,
                                nullptr);
      };
      ASSERT_EQ(decode(file, expected), L3_OK);
      ASSERT_EQ(decode(parts, got), L3_OK);
      ASSERT_EQ(got, expected);
      // Without any byte of them it fails.
      if (gap == 0 && !found.ranges.empty()) {
        const l3_range& range = found.ranges[dice.roll(found.ranges.size())];
        parts[range.offset + dice.roll(range.size)] ^= 1;
        EXPECT_EQ(decode(parts, got), L3_ERROR_CORRUPT);
      }
    }
  }
}

TEST(FindPayloads, SaysHowManyThereAre) {
  const Bytes file = encode(draw({200, 200}, {L3_COLOUR_GRAY, 8}, Pattern::noise), tiles_of(32, 32));
  size_t count = 0;
  l3_range ranges[7] = {};
  l3_error error{};
  const auto ask = [&](size_t capacity) {
    return l3_find_payloads(file.data(), file.size(), file.size(), 0, 0, 64, 200, 0, ranges, capacity, &count, &error);
  };
  EXPECT_EQ(ask(7), L3_OK);
  EXPECT_EQ(count, 7u);
  ranges[3] = {};
  EXPECT_EQ(ask(3), L3_ERROR_BUFFER);
  EXPECT_EQ(count, 7u);
  EXPECT_EQ(ranges[3].size, 0u);
  EXPECT_GT(ranges[2].size, 0u);
}

TEST(FindPayloads, OfAConstantImageAreNone) {
  const Bytes file = encode(draw({200, 200}, {L3_COLOUR_GRAY, 8}, Pattern::flat), tiles_of(32, 32));
  const Found found = find(file, file.size(), 0, 0, 200, 200, 0);
  EXPECT_EQ(found.status, L3_OK);
  EXPECT_TRUE(found.ranges.empty());
}

TEST(FindPayloads, RefusesWhatIsWrong) {
  const Bytes file = encode(draw({200, 200}, {L3_COLOUR_RGB, 8}, Pattern::natural), tiles_of(32, 32));
  const l3_info info = info_of(file);
  size_t count = 0;
  l3_error error{};
  const auto status_of = [&](const Bytes& bytes, size_t size, uint32_t x, uint32_t width) {
    return l3_find_payloads(bytes.data(), size, bytes.size(), x, 0, width, 10, 0, nullptr, 0, &count, &error);
  };
  EXPECT_EQ(status_of(file, file.size(), 190, 11), L3_ERROR_ARGUMENT);
  EXPECT_EQ(status_of(file, file.size(), 0, 0), L3_ERROR_ARGUMENT);
  EXPECT_EQ(status_of(file, file.size(), 200, 1), L3_ERROR_ARGUMENT);
  EXPECT_EQ(l3_find_payloads(nullptr, 10, 10, 0, 0, 1, 1, 0, nullptr, 0, &count, nullptr), L3_ERROR_ARGUMENT);
  EXPECT_EQ(l3_find_payloads(file.data(), file.size(), file.size(), 0, 0, 1, 1, 0, nullptr, 0, nullptr, nullptr),
            L3_ERROR_ARGUMENT);
  // Every prefix: enough, or truncated. Without ASan's help a wrong one would go unseen, so each has its own memory.
  for (size_t size = 0; size < info.payload_start; ++size) {
    const Bytes prefix(file.begin(), file.begin() + static_cast<ptrdiff_t>(size));
    const l3_status status =
        l3_find_payloads(prefix.data(), size, file.size(), 0, 0, 200, 200, 0, nullptr, 0, &count, &error);
    const bool has_index =
        size >= info.head_bytes + 12 * info.tile_count + (16 - (info.head_bytes + 12 * info.tile_count) % 16) % 16;
    EXPECT_EQ(status, has_index ? L3_OK : size == 0 ? L3_ERROR_ARGUMENT : L3_ERROR_TRUNCATED) << size;
  }
  // The file's size is part of the verdict.
  for (const uint64_t size : {file.size() - 1, file.size() + 16}) {
    EXPECT_NE(l3_find_payloads(file.data(), info.payload_start, size, 0, 0, 1, 1, 0, nullptr, 0, &count, &error),
              L3_OK);
  }
  for (size_t at = 0; at < info.head_bytes + 12 * info.tile_count; ++at) {
    Bytes broken = file;
    broken[at] ^= 4;
    EXPECT_NE(status_of(broken, broken.size(), 0, 10), L3_OK) << at;
  }
}

}  // namespace
