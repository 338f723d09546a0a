// The rules of sections 5 to 7 of spec/format.md, one by one: index, constant and raw tiles, and payloads of the fast
// method.
#include "violations.h"

namespace {

using namespace violations;
using by_hand::BitString;
using by_hand::put;
using drawing::Dice;

// ---- 5 the index

// The mixed image with one number of the index entry of `tile` changed.
Bytes with_entry(const Subject& s, size_t tile, size_t field, uint32_t width, uint64_t value) {
  return s.with(Layout(s.parts).entry(tile) + field, width, value);
}
uint64_t entry(const Subject& s, size_t tile) { return Layout(s.parts).entry(tile); }

TEST(Index, RefusesAnotherCheck) {
  Bytes file = subject().file();
  file[64] ^= 2;
  expect_corrupt(file, "the check of the index does not match", 64);
}

TEST(Index, RefusesBytesAfterItThatAreNotZero) {
  const Subject s = subject();
  const size_t end = Layout(s.parts).index_end;
  ASSERT_EQ(end, 100);
  for (size_t at = end; at < 112; ++at) expect_corrupt(s.with(at, 1, 1), "bytes after the index are not zero", at);
}

TEST(Index, RefusesUnknownMethods) {
  for (size_t tile = 0; tile < 3; ++tile) {
    for (const uint32_t method : {4u, 5u, 128u, 255u}) {
      expect_refused(with_entry(subject(), tile, 0, 1, method), L3_ERROR_UNSUPPORTED, "a tile has an unknown method",
                     entry(subject(), tile), tile);
    }
  }
}

TEST(Index, RefusesParametersThatTheMethodDoesNotHave) {
  constexpr const char* kReason = "a tile has parameters that its method does not have";
  for (const uint32_t parameters : {5u, 6u, 7u, 8u, 16u, 0x80u, 0xFFu}) {
    for (size_t tile = 0; tile < 3; ++tile) {
      expect_corrupt(with_entry(subject(), tile, 1, 1, parameters), kReason, entry(subject(), tile) + 1, tile);
    }
  }
  for (size_t tile = 1; tile < 3; ++tile) {
    expect_corrupt(with_entry(subject(), tile, 1, 1, 1), kReason, entry(subject(), tile) + 1, tile);
  }
  for (const l3_colour colour : {L3_COLOUR_GRAY, L3_COLOUR_GRAY_ALPHA, L3_COLOUR_PALETTE}) {
    for (const uint32_t transform : {1u, 4u}) {
      const Subject s = subject(colour, 7);
      expect_corrupt(with_entry(s, 0, 1, 1, transform), kReason, entry(s, 0) + 1, 0);
    }
  }
}

TEST(Index, RefusesSizesThatTheMethodDoesNotHave) {
  constexpr const char* kReason = "the size of a payload is wrong";
  const Subject s = subject();
  expect_corrupt(with_entry(s, 0, 2, 2, 0), kReason, entry(s, 0) + 2, 0);
  for (const uint32_t size : {1u, 0x100u}) expect_corrupt(with_entry(s, 1, 2, 2, size), kReason, entry(s, 1) + 2, 1);
  const uint32_t raw = 32 * 9 * 3 / 16;
  for (const uint32_t size : {0u, 1u, raw - 1, raw + 1, 0xFFFFu}) {
    expect_corrupt(with_entry(s, 2, 2, 2, size), kReason, entry(s, 2) + 2, 2);
  }
}

TEST(Index, RefusesOffsetsThatLeaveAGapOrOverlap) {
  const Subject s = subject();
  const Layout layout(s.parts);
  for (const size_t tile : {0u, 2u}) {
    for (const uint32_t shift : {1u, 0xFFFFFFFFu, 1000u, 0x80000000u}) {
      const uint32_t offset = static_cast<uint32_t>(layout.payloads[tile] / 16) + shift;
      expect_corrupt(with_entry(s, tile, 4, 4, offset), "a payload does not begin where the one before it ends",
                     entry(s, tile) + 4, tile);
    }
  }
}

TEST(Index, RefusesAFileThatEndsWithinThePayloads) {
  const Subject s = subject();
  const uint64_t size = s.file().size();
  const uint32_t units = static_cast<uint32_t>(s.parts.tiles[0].payload.size() / 16);
  // The tile grows past the one behind it.
  const Bytes file = s.file([&](Bytes& bytes, const Layout& layout) {
    put(&bytes[layout.entry(0) + 2], 2, units + 1);
    put(&bytes[layout.entry(2) + 4], 4, layout.payloads[2] / 16 + 1);
  });
  expect_refused(file, L3_ERROR_TRUNCATED, "the file ends within the payloads", size);
}

TEST(Index, IsVerifiedInFullForEveryRegion) {
  const Subject s = subject();
  const std::pair<size_t, uint32_t> spoilt[] = {{0, 3}, {1, 9}, {2, 1}};
  for (const auto& [field, value] : spoilt) {
    const Bytes file = with_entry(s, 2, field, 1, value);
    Bytes out(3);
    l3_error error{};
    EXPECT_NE(l3_decode_region(file.data(), file.size(), 0, 0, 1, 1, nullptr, out.data(), 3, 0, &error), L3_OK);
    EXPECT_EQ(error.tile, 2);
  }
}

// ---- 6.1 constant

TEST(ConstantTile, RefusesSamplesAboveTheBits) {
  for (const uint32_t bits : {1u, 5u, 8u, 9u, 15u}) {
    const Subject s = subject(L3_COLOUR_RGB, bits);
    for (uint32_t c = 0; c < 3; ++c) {
      for (const uint32_t value : {1u << bits, 0xFFFFu}) {
        expect_corrupt(with_entry(s, 1, 4 + 2 * c, 2, value), "the value of a constant tile is out of range",
                       entry(s, 1) + 4 + 2 * c, 1);
      }
    }
  }
}

TEST(ConstantTile, RefusesValuesBeyondTheLastChannel) {
  for (uint32_t colour = 0; colour < 3; ++colour) {
    const Subject s = subject(static_cast<l3_colour>(colour));
    for (uint32_t c = colour + 1; c < 4; ++c) {
      expect_corrupt(with_entry(s, 1, 4 + 2 * c, 2, 1), "the value of a constant tile is out of range",
                     entry(s, 1) + 4 + 2 * c, 1);
    }
  }
}

// ---- 6.2 raw

TEST(RawTile, RefusesBitsAndBytesAfterTheLastSample) {
  // 3 by 3 samples of 3 bits: 27 of 128 bits.
  const Bytes samples = {0x11, 0x22, 0x33, 0x04};
  expect_accepted(gray_file(1, samples, 3, 3, 3), {1, 2, 0, 1, 2, 6, 4, 1, 4});
  for (uint32_t bit = 27; bit < 128; ++bit) {
    Bytes spoilt = samples;
    spoilt.resize(16);
    spoilt[bit / 8] = static_cast<uint8_t>(spoilt[bit / 8] | 1u << (bit % 8));
    expect_corrupt(gray_file(1, spoilt, 3, 3, 3), "bits after the last raw sample are not zero", kGrayPayload + bit / 8,
                   0);
  }
}

TEST(RawTile, OfWholeUnitsHasNothingAfterIt) {
  Dice dice(1);
  const Bytes samples = dice.bytes(64);
  expect_accepted(gray_file(1, samples, 8, 8, 8), samples);
}

// ---- 6.3 fast

constexpr uint16_t block_header(uint32_t predictor, uint32_t base, uint32_t width_bits) {
  return static_cast<uint16_t>(predictor | base << 3 | width_bits << 8);
}

// A payload of one channel: its origin, then numbers of so many bits each.
Bytes payload(uint32_t origin, std::initializer_list<std::pair<uint64_t, uint32_t>> fields) {
  BitString bits;
  bits.put(origin, 16);
  for (const auto& [value, count] : fields) bits.put(value, count);
  return bits.bytes();
}

TEST(FastTile, OfEmptyBlocksIsItsOrigin) {
  expect_accepted(gray_file(2, payload(200, {{block_header(1, 0, 0), 16}}), 5, 4, 8), Bytes(20, 200));
}

TEST(FastTile, RefusesOriginsAboveTheBits) {
  for (uint32_t bits = 1; bits < 16; ++bits) {
    expect_corrupt(gray_file(2, payload(1u << bits, {{block_header(1, 0, 0), 16}}), 1, 1, bits),
                   "the origin of a channel is out of range", kGrayPayload, 0);
  }
  Subject s = subject(L3_COLOUR_RGB_ALPHA, 12);
  s.parts.tiles[0].payload[7] = 0x10;
  expect_corrupt(s.file(), "the origin of a channel is out of range", Layout(s.parts).payloads[0] + 6, 0);
}

TEST(FastTile, RefusesMoreThan15BytesAfterTheBlocks) {
  Subject s = subject();
  const uint64_t at = Layout(s.parts).payloads[0];
  s.parts.tiles[0].payload.resize(s.parts.tiles[0].payload.size() + 16);
  const Bytes file = s.file();
  const Said said = say_decode(Exact(file));
  EXPECT_STREQ(said.reason.c_str(), "a payload is longer than its blocks");
  EXPECT_GT(said.offset, at);
  EXPECT_LE(said.offset, at + s.parts.tiles[0].payload.size() - 16);
  expect_corrupt(file, "a payload is longer than its blocks", said.offset, 0);
  // 4 bytes of origin and block, 28 left over.
  Bytes long_one = payload(200, {{block_header(1, 0, 0), 16}});
  long_one.resize(32);
  expect_corrupt(gray_file(2, long_one, 5, 4, 8), "a payload is longer than its blocks", kGrayPayload + 4, 0);
  // Exactly one unit too many: 7 blocks and the origin fill the first.
  Parts parts;
  parts.header = by_hand::header(5, 56, L3_COLOUR_GRAY, 8, 32, 64);
  parts.tiles.push_back({2, 0, {}, payload(200, {})});
  for (int band = 0; band < 7; ++band) parts.tiles[0].payload = drawing::joined(parts.tiles[0].payload, {1, 0});
  expect_accepted(by_hand::put_together(parts), Bytes(280, 200));
  parts.tiles[0].payload.resize(32);
  expect_corrupt(by_hand::put_together(parts), "a payload is longer than its blocks", kGrayPayload + 16, 0);
}

TEST(FastTile, RefusesBytesAfterTheBlocksThatAreNotZero) {
  for (size_t at = 4; at < 16; ++at) {
    Bytes spoilt = payload(200, {{block_header(1, 0, 0), 16}});
    spoilt.resize(16);
    spoilt[at] = 0x80;
    expect_corrupt(gray_file(2, spoilt, 5, 4, 8), "bytes after the last block are not zero", kGrayPayload + at, 0);
  }
}

// ---- 7 blocks

TEST(Block, RefusesPredictorsAbove6) {
  expect_corrupt(gray_file(2, payload(3, {{block_header(7, 0, 0), 16}}), 5, 4, 8),
                 "the header of a block is out of range", kGrayPayload + 2, 0);
}

TEST(Block, RefusesBaseWidthsAboveTheBits) {
  for (uint32_t bits = 1; bits <= 16; ++bits) {
    for (const uint32_t base : {bits + 1, 31u}) {
      Bytes long_enough = payload(0, {{block_header(0, base, 0), 16}});
      long_enough.resize(2048);
      expect_corrupt(gray_file(2, long_enough, 5, 4, bits), "the header of a block is out of range", kGrayPayload + 2,
                     0);
    }
  }
}

TEST(Block, RefusesWidthBitsAbove4) {
  for (const uint32_t width_bits : {5u, 6u, 7u}) {
    Bytes long_enough = payload(0, {{block_header(0, 0, width_bits), 16}});
    long_enough.resize(2048);
    expect_corrupt(gray_file(2, long_enough, 5, 4, 8), "the header of a block is out of range", kGrayPayload + 2, 0);
  }
}

TEST(Block, RefusesReservedBits) {
  for (uint32_t bit = 11; bit < 16; ++bit) {
    expect_corrupt(gray_file(2, payload(0, {{block_header(0, 0, 0) | 1u << bit, 16}}), 5, 4, 8),
                   "the header of a block is out of range", kGrayPayload + 2, 0);
  }
}

TEST(Block, RefusesWidthsOfPresentGroupsAboveTheBits) {
  // 5 columns: groups 0 and 1 of each of 4 rows are present. Base 7 and one width bit, of 8 bits: 7 or 8 is right, of 7
  // bits 8 is not.
  for (uint32_t g = 0; g < 64; ++g) {
    Bytes spoilt = payload(0, {{block_header(0, 7, 1), 16}, {uint64_t{1} << g, 64}});
    const bool present = g % 8 < 2 && g / 8 < 4;
    spoilt.resize(2 + 2 + 8 + 4 * 2 * 7 / 2);
    if (present) {
      expect_corrupt(gray_file(2, spoilt, 5, 4, 7), "the width of a group exceeds the bits of a sample",
                     kGrayPayload + 2, 0);
    } else {
      const Said said = say_decode(Exact(gray_file(2, spoilt, 5, 4, 7)));
      EXPECT_EQ(said.status, L3_OK) << g << said;
    }
  }
}

TEST(Block, RefusesTheLargestWidths) {
  for (uint32_t bits = 1; bits <= 16; ++bits) {
    Bytes spoilt = payload(0, {{block_header(0, bits, 4), 16}});
    spoilt.resize(2048, 0xFF);
    expect_corrupt(gray_file(2, spoilt, 32, 8, bits), "the width of a group exceeds the bits of a sample",
                   kGrayPayload + 2, 0);
  }
}

TEST(Block, RefusesAPayloadThatEndsWithinIt) {
  constexpr const char* kReason = "a payload ends within a block";
  // Within the codes: 8 groups of 8 bits take 32 bytes, of which 12 are there.
  Bytes codes = payload(0, {{block_header(0, 8, 0), 16}});
  expect_corrupt(gray_file(2, codes, 32, 1, 8), kReason, kGrayPayload + 2, 0);
  // By one byte: seven rows of one group of 4 bits take 14 bytes, eight 16; 12 are there.
  Bytes exact = payload(0, {{block_header(0, 4, 0), 16}});
  exact.resize(16, 0x88);
  expect_accepted(gray_file(2, exact, 4, 6, 8), Bytes(24, 0));
  expect_corrupt(gray_file(2, exact, 4, 7, 8), kReason, kGrayPayload + 2, 0);
  // Within the widths: 32 bytes, of which 12 are there.
  expect_corrupt(gray_file(2, payload(0, {{block_header(0, 0, 4), 16}}), 4, 1, 8), kReason, kGrayPayload + 2, 0);
  // Before the header: 12 bytes of codes end with the payload, and a second band is due.
  expect_corrupt(gray_file(2, drawing::joined(payload(0, {{block_header(0, 3, 0), 16}}), Bytes(12, 0x24)), 4, 16, 8),
                 kReason, kGrayPayload + 16, 0);
  // Within the header: as before, but one byte is left.
  Bytes odd = payload(0, {{block_header(0, 0, 1), 16}, {0x0101010101010101, 64}});  // eight rows of one bit: 4 bytes
  odd.resize(16, 0xFF);
  expect_corrupt(gray_file(2, odd, 4, 16, 8), kReason, kGrayPayload + 16, 0);
  Bytes one_left = payload(0, {{block_header(0, 0, 0), 16}, {block_header(0, 11, 0), 16}});
  one_left.resize(15, 0x24);  // origin, an empty block, and one of two rows of 11 bits: 11 bytes - 1
  expect_corrupt(gray_file(2, one_left, 4, 10, 16), kReason, kGrayPayload + 4, 0);
}

TEST(Block, IgnoresFieldsOfGroupsThatAreNotPresent) {
  Bytes fields = payload(9, {{block_header(1, 0, 2), 16}});
  for (uint32_t row = 0; row < 8; ++row)
    fields.insert(fields.end(), {static_cast<uint8_t>(row < 3 ? 0xFC : 0xFF), 0xFF});
  fields.resize(32);
  expect_accepted(gray_file(2, fields, 4, 3, 8), Bytes(12, 9));
}

TEST(Block, IgnoresCodesOutsideTheTileAndBitsAfterTheLastCode) {
  // 3 columns of one row, of width 3: codes 4 are residuals of 0; the fourth code and the last 4 bits are unused.
  for (uint32_t unused = 0; unused < 128; ++unused) {
    const Bytes spoilt = payload(9, {{block_header(1, 3, 0), 16}, {4 | 4 << 3 | 5 << 6, 9}, {unused, 7}});
    expect_accepted(gray_file(2, spoilt, 3, 1, 8), {9, 9, 10});
  }
}

TEST(Block, PredictsAsTheTableSays) {
  // Two rows of three samples in 4 bits, width 4: residuals of 0 but where said.
  const auto file = [](uint32_t predictor, std::initializer_list<int> residuals) {
    BitString bits;
    bits.put(10, 16);
    bits.put(block_header(predictor, 4, 0), 16);
    int column = 0;
    for (const int residual : residuals) {
      bits.put(static_cast<uint64_t>(residual) + 8, 4);
      if (++column % 3 == 0) bits.put(0, 4);
    }
    return gray_file(2, bits.bytes(), 3, 2, 4);
  };
  // Row 0: N, NW and NE are the origin.
  expect_accepted(file(0, {1, 2, -4, 3, 0, -1}), {11, 13, 9, 14, 14, 13});  // W; in column 0 N
  expect_accepted(file(1, {1, 2, -4, 3, 0, -1}), {11, 12, 6, 14, 12, 5});   // N
  expect_accepted(file(2, {1, 2, -4, 3, 0, -1}), {11, 13, 9, 14, 0, 11});   // W + N - NW, modulo 16
  expect_accepted(file(3, {1, 2, -4, 3, 0, -1}), {11, 12, 6, 15, 11, 7});   // avg(N, avg(NW, NE))
  expect_accepted(file(4, {1, 2, -4, 3, 0, -1}), {11, 13, 9, 14, 0, 12});   // W + avg(N, avg(N, NW)) - NW
  expect_accepted(file(5, {1, 2, -4, 3, 0, -1}), {11, 13, 9, 15, 0, 12});   // W + avg(N, avg(NE, NW)) - NW
  expect_accepted(file(6, {1, 2, -4, 3, 0, -1}), {11, 13, 9, 14, 15, 12});  // W + avg(N, NW) - NW
}

TEST(Prediction, UsesNForNEInTheLastColumnOfAStripEvenWhereItIsKnown) {
  // 33 columns, predictor 3, no residuals but one: 16 at column 32 of the first row, seen neither from column 31 below
  // nor, as NE, from its own.
  Parts parts;
  parts.header = by_hand::header(33, 2, L3_COLOUR_GRAY, 8, 64);
  BitString bits;
  bits.put(100, 16);
  bits.put(block_header(3, 0, 0), 16);
  bits.put(block_header(3, 6, 0), 16);
  for (int row = 0; row < 2; ++row) bits.put(row == 0 ? 32 + 16 : 32, 24);
  parts.tiles.push_back({2, 0, {}, bits.bytes()});
  parts.tiles[0].payload.resize(16);
  Bytes pixels(66, 100);
  pixels[32] = 116;
  pixels[65] = 112;  // avg(116, avg(100, 116))
  expect_accepted(by_hand::put_together(parts), pixels);
}

// ---- 7.2 colour transforms

TEST(Transform, IsAsTheTableSays) {
  const auto expect = [](uint32_t transform, uint32_t bits, std::array<uint16_t, 3> origins, const Bytes& pixel) {
    Parts parts;
    parts.header = by_hand::header(1, 1, L3_COLOUR_RGB, bits);
    BitString payload;
    for (const uint16_t origin : origins) payload.put(origin, 16);
    parts.tiles.push_back({2, static_cast<uint8_t>(transform), {}, payload.bytes()});
    parts.tiles[0].payload.resize(16);
    expect_accepted(by_hand::put_together(parts), pixel);
  };
  expect(0, 4, {3, 7, 14}, {3, 7, 14});
  expect(1, 4, {3, 7, 14}, {10, 7, 5});
  expect(2, 4, {3, 7, 14}, {10, 7, 7});
  expect(2, 4, {12, 7, 14}, {3, 7, 3});  // R is reduced before it is used
  expect(3, 4, {3, 7, 14}, {9, 7, 5});
  expect(4, 4, {3, 7, 14}, {10, 6, 7});
  expect(4, 8, {0x80, 0, 0x80}, {0, 0xC0, 0x80});
  expect(4, 1, {0, 0, 0}, {0, 0, 0});
  expect(4, 1, {1, 0, 0}, {0, 0, 1});
  expect(4, 1, {0, 1, 0}, {1, 1, 1});
  expect(4, 1, {1, 1, 0}, {1, 1, 0});
  expect(4, 1, {0, 0, 1}, {1, 0, 1});
  expect(4, 1, {1, 0, 1}, {1, 0, 0});
  expect(4, 1, {0, 1, 1}, {0, 1, 0});
  expect(4, 1, {1, 1, 1}, {0, 1, 1});
}

}  // namespace
