// The paper's scheme, which benchmarks compare with: what goes in comes out, whatever its size; and of hostile bytes
// nothing but a reason.
#include "paper_l3.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "paper_l3_testing.h"

namespace {

using namespace paper_l3_testing;
using drawing::Pattern;

// How many rows of a file have each width of deltas.
std::vector<uint32_t> widths_of(const Bytes& file, const Shape& shape) {
  std::vector<uint32_t> count(16);
  size_t at = shape.payload_start();
  for (uint64_t patch = 0; patch < shape.patches(); ++patch) {
    const uint32_t x = static_cast<uint32_t>(patch % shape.across()) * paper::kPatchEdge;
    const uint32_t y = static_cast<uint32_t>(patch / shape.across()) * paper::kPatchEdge;
    const uint32_t columns = std::min(paper::kPatchEdge, shape.width - x);
    const uint32_t rows = std::min(paper::kPatchEdge, shape.height - y);
    for (uint32_t i = 0; i < shape.channels * rows; ++i) {
      const uint32_t bits = file[at] % 16;
      ++count[bits];
      at += (paper::kRowHeadBits + columns * bits + 7) / 8;
    }
  }
  EXPECT_EQ((at + paper::kUnit - 1) / paper::kUnit * paper::kUnit, file.size());
  return count;
}

TEST(PaperL3, EveryImageComesBack) {
  for (const drawing::Size size : sizes()) {
    for (const l3_colour colour : kColours) {
      for (const Pattern pattern : drawing::kPatterns) {
        const drawing::Drawing d = drawing::draw(size, {colour, 8}, pattern);
        SCOPED_TRACE(d.name());
        const Bytes file = encode(d);
        const Decoded decoded = decode(Exact(file), shape_of(d));
        ASSERT_EQ(decoded.reason, Reason::none);
        ASSERT_EQ(decoded.pixels, d.pixels);
      }
    }
  }
}

TEST(PaperL3, RowsOfEveryWidth) {
  const drawing::Drawing d = every_width();
  const Bytes file = encode(d);
  const std::vector<uint32_t> count = widths_of(file, shape_of(d));
  for (uint32_t bits = 0; bits <= 8; ++bits) EXPECT_GT(count[bits], 0u) << bits;
  EXPECT_EQ(decode(Exact(file), shape_of(d)).pixels, d.pixels);
}

TEST(PaperL3, SizesOfFiles) {
  // Two bytes for each row of each channel of a flat patch, but for the first row of one that is not.
  const drawing::Drawing flat = drawing::draw({65, 64}, {L3_COLOUR_RGB, 8}, Pattern::flat);
  EXPECT_EQ(encode(flat).size(), (16 + 6 * 2 + 6 * 64 * 2 + 15) / 16 * 16);
  const drawing::Drawing noise = drawing::draw({64, 64}, {L3_COLOUR_GRAY, 8}, Pattern::noise);
  EXPECT_EQ(encode(noise).size(), (16 + 2 + 64 * 66 + 15) / 16 * 16);
}

TEST(PaperL3, ShapesThatItDoesNotHave) {
  for (const Shape& shape : {Shape{0, 1, 1}, Shape{1, 0, 1}, Shape{1, 1, 0}, Shape{1, 1, 5},
                             Shape{paper::kMaxEdge + 1, 1, 1}, Shape{1u << 20, 1u << 20, 1}}) {
    EXPECT_EQ(paper::encode_bound(shape), 0u) << shape.width << " x " << shape.height << " x " << shape.channels;
  }
}

TEST(PaperL3, DamageHasItsReason) {
  const drawing::Drawing d = drawing::draw({65, 3}, {L3_COLOUR_RGB, 8}, Pattern::natural);
  const Bytes file = encode(d);
  const Shape shape = shape_of(d);
  const auto reason_of = [&](size_t at, uint8_t value) {
    Bytes damaged = file;
    damaged[at] = value;
    return decode(Exact(damaged), shape).reason;
  };
  EXPECT_EQ(reason_of(0, 'Q'), Reason::head);
  EXPECT_EQ(reason_of(12, 5), Reason::head);
  EXPECT_EQ(reason_of(13, 1), Reason::head);
  EXPECT_EQ(reason_of(11, 1), Reason::head);  // 2^24 rows
  EXPECT_EQ(reason_of(17, 0xFF), Reason::sizes);
  const size_t row = shape.payload_start();
  EXPECT_EQ(reason_of(row, static_cast<uint8_t>(file[row] / 16 * 16 + 9)), Reason::patch);
  EXPECT_EQ(reason_of(row, file[row] ^ 1), Reason::patch);
  EXPECT_EQ(reason_of(row + 1, file[row + 1] ^ 1), Reason::none);  // another base: other samples
  Bytes tall = file;
  tall[10] = 1;  // 2^16 rows
  Shape found;
  EXPECT_EQ(paper::read_head(tall, found), Reason::sizes);
}

TEST(PaperL3, HostileBytes) {
  Dice dice(7);
  uint32_t refused = 0;
  for (const drawing::Size size : {drawing::Size{1, 1}, drawing::Size{70, 9}, drawing::Size{130, 70}}) {
    const drawing::Drawing d = drawing::draw(size, {L3_COLOUR_RGB, 8}, Pattern::natural);
    const Bytes file = encode(d);
    for (size_t length = 0; length < file.size(); length += 1 + length / 40) {
      EXPECT_NE(decode(Exact(file.data(), length), shape_of(d)).reason, Reason::none) << length;
    }
    for (uint32_t round = 0; round < 400; ++round) {
      refused += decode(Exact(damaged(file, shape_of(d), dice)), shape_of(d)).reason != Reason::none;
    }
  }
  EXPECT_GT(refused, 600u);
}

}  // namespace
