// Shared by the tests of the format's rules: small valid files to break, and the expected errors.
#pragma once

#include "by_hand.h"
#include "codec_testing.h"

namespace violations {

using by_hand::Edit;
using by_hand::Layout;
using by_hand::Parts;
using codec_testing::Bytes;
using codec_testing::Exact;
using codec_testing::ForcedTarget;
using codec_testing::Said;
using codec_testing::say_decode;
using codec_testing::say_verify;
using codec_testing::targets;

inline void expect_accepted(const Bytes& bytes, const Bytes& pixels) {
  const Exact file(bytes);
  for (const char* target : targets()) {
    const ForcedTarget forced(target);
    Bytes out;
    const Said decoded = say_decode(file, &out);
    EXPECT_EQ(decoded.status, L3_OK) << decoded;
    EXPECT_EQ(out, pixels) << target;
    const Said verified = say_verify(file);
    EXPECT_EQ(verified.status, L3_OK) << verified;
  }
}

// Refused by decode and verify alike, for that reason, at that offset.
inline void expect_refused(const Bytes& bytes, l3_status status, const char* reason, uint64_t offset,
                           uint64_t tile = L3_NO_TILE) {
  const Exact file(bytes);
  const Said wanted{status, reason, offset, tile};
  for (const char* target : targets()) {
    const ForcedTarget forced(target);
    EXPECT_EQ(say_decode(file), wanted) << target;
    EXPECT_EQ(say_verify(file), wanted) << target;
  }
}
inline void expect_corrupt(const Bytes& bytes, const char* reason, uint64_t offset, uint64_t tile = L3_NO_TILE) {
  expect_refused(bytes, L3_ERROR_CORRUPT, reason, offset, tile);
}

// Decoded, but refused by verify.
inline void expect_unverified(const Bytes& bytes, const Bytes& pixels, const char* reason, uint64_t offset) {
  const Exact file(bytes);
  Bytes out;
  EXPECT_EQ(say_decode(file, &out).status, L3_OK);
  EXPECT_EQ(out, pixels);
  EXPECT_EQ(say_verify(file), (Said{L3_ERROR_CORRUPT, reason, offset, L3_NO_TILE}));
}

// An image of the encoder's, taken apart, and its pixels.
struct Subject {
  Parts parts;
  Bytes pixels;

  explicit Subject(const drawing::Drawing& d)
      : parts(by_hand::take_apart(codec_testing::encode(d, codec_testing::tiles_of(32, 32)))), pixels(d.pixels) {}

  Bytes file(const Edit& edit = nullptr) const { return by_hand::put_together(parts, edit); }
  // The file with one number of its first bytes changed and all checks right.
  Bytes with(size_t offset, uint32_t width, uint64_t value) const {
    return file([=](Bytes& bytes, const Layout&) { by_hand::put(&bytes[offset], width, value); });
  }
};

// Tiles: fast, constant, raw.
inline Subject subject(l3_colour colour = L3_COLOUR_RGB, uint32_t bits = 8) {
  return Subject(drawing::draw_mixed({32, 9}, {colour, bits}));
}
inline Subject subject_with_sections(l3_colour colour = L3_COLOUR_RGB, uint32_t bits = 8) {
  return Subject(drawing::with_sections(drawing::draw_mixed({32, 9}, {colour, bits})));
}

// A gray image of one tile that holds this payload.
inline Bytes gray_file(uint8_t method, const Bytes& payload, uint32_t width, uint32_t height, uint32_t bits) {
  Parts parts;
  parts.header = by_hand::header(width, height, L3_COLOUR_GRAY, bits);
  parts.tiles.push_back({method, 0, {}, payload});
  parts.tiles[0].payload.resize(by_hand::pad(payload.size()));
  return by_hand::put_together(parts);
}
constexpr uint64_t kGrayPayload = 80;  // its offset

}  // namespace violations
