// Tests of the engine: compares each primitive of each target with simple code; the check; SHA-256.
#include <algorithm>
#include <array>

#include "by_hand.h"
#include "codec_testing.h"
#include "container/sha256_block.h"
#include "container/sha256_x86.h"
#include "engine/vector_warp.h"
#include "engine_primitives.h"

namespace {

using codec_testing::Bytes;
using codec_testing::Exact;
using drawing::Dice;
using engine::kLaneCount;
using engine::Primitives;
using Row = std::array<uint16_t, kLaneCount>;

class Engine : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const auto& have = codec_testing::targets();
    if (std::find(have.begin(), have.end(), GetParam()) == have.end()) GTEST_SKIP() << "this processor lacks it";
  }
  const Primitives& warp() const {
#if defined(__x86_64__)
    if (GetParam() == "avx2") return engine::kAvx2;
    if (GetParam() == "avx512") return engine::kAvx512;
#endif
    return engine::kPortable;
  }

  // Numbers below 2^bits, extremes among them.
  Row row(uint32_t bits = 16) {
    const uint32_t maximum = (1u << bits) - 1;
    Row r;
    for (uint16_t& v : r)
      v = static_cast<uint16_t>(dice.chance(8) ? maximum : dice.chance(8) ? 0 : dice.roll(maximum + 1u));
    return r;
  }

  static constexpr int kRounds = 400;
  Dice dice{2024};
};

std::vector<std::string> all_targets() {
#if defined(__x86_64__)
  return {"portable", "avx2", "avx512"};
#else
  return {"portable"};
#endif
}
INSTANTIATE_TEST_SUITE_P(OnEveryTarget, Engine, ::testing::ValuesIn(all_targets()),
                         [](const auto& test) { return test.param; });

// Runs `function` with arguments that end in an array to fill.
template <class Function, class... Arguments>
Row result(Function function, Arguments... arguments) {
  Row out;
  out.fill(0xDEAD & 0xFFFF);
  function(arguments..., out.data());
  return out;
}

template <class Formula>
Row each(Formula formula) {
  Row r;
  for (int i = 0; i < kLaneCount; ++i)
    r[static_cast<size_t>(i)] = static_cast<uint16_t>(formula(static_cast<size_t>(i)));
  return r;
}

TEST_P(Engine, ArithmeticOfLanes) {
  for (int round = 0; round < kRounds; ++round) {
    const Row a = row(), b = row();
    const uint16_t *x = a.data(), *y = b.data();
    EXPECT_EQ(result(warp().add, x, y), each([&](size_t i) { return a[i] + b[i]; }));
    EXPECT_EQ(result(warp().subtract, x, y), each([&](size_t i) { return a[i] - b[i]; }));
    EXPECT_EQ(result(warp().bit_and, x, y), each([&](size_t i) { return a[i] & b[i]; }));
    EXPECT_EQ(result(warp().bit_or, x, y), each([&](size_t i) { return a[i] | b[i]; }));
    EXPECT_EQ(result(warp().bit_xor, x, y), each([&](size_t i) { return a[i] ^ b[i]; }));
    EXPECT_EQ(result(warp().average, x, y), each([&](size_t i) { return (a[i] + b[i] + 1) / 2; }));
    EXPECT_EQ(result(warp().splat, a[0]), each([&](size_t) { return a[0]; }));
    EXPECT_EQ(warp().to_scalar(x), a[0]);
  }
}

TEST_P(Engine, ShiftsOfBits) {
  for (int count = 0; count < 16; ++count) {
    const Row a = row();
    const uint16_t* x = a.data();
    EXPECT_EQ(result(warp().shift_left, x, count), each([&](size_t i) { return a[i] << count; }));
    EXPECT_EQ(result(warp().shift_right_signed, x, count),
              each([&](size_t i) { return static_cast<int16_t>(a[i]) >> count; }));
  }
}

TEST_P(Engine, MovesBetweenLanes) {
  for (int round = 0; round < kRounds; ++round) {
    const Row a = row(), b = row();
    const uint16_t *x = a.data(), *y = b.data();
    EXPECT_EQ(result(warp().shift_up, x, y), each([&](size_t i) { return i == 0 ? b[31] : a[i - 1]; }));
    EXPECT_EQ(result(warp().shift_down, x), each([&](size_t i) { return a[i == 31 ? 31 : i + 1]; }));
    EXPECT_EQ(result(warp().last, x), each([&](size_t) { return a[31]; }));
    EXPECT_EQ(result(warp().first, x), each([&](size_t) { return a[0]; }));
    for (uint32_t lane = 0; lane < 32; ++lane) {
      EXPECT_EQ(result(warp().choose_lane, lane, x, y), each([&](size_t i) { return i == lane ? a[i] : b[i]; }));
    }
  }
}

TEST_P(Engine, RunningSums) {
  for (int round = 0; round < kRounds; ++round) {
    const Row a = row(round % 2 == 0 ? 16 : 8);
    uint32_t sum = 0;
    EXPECT_EQ(result(warp().scan_add, a.data()), each([&](size_t i) { return sum += a[i]; }));
  }
}

TEST_P(Engine, FirstLanes) {
  for (uint32_t count = 0; count <= 32; ++count) {
    EXPECT_EQ(result(warp().first_lanes, count), each([&](size_t i) { return i < count ? 0xFFFF : 0; }));
  }
}

TEST_P(Engine, DifferenceInAnyBitOfAnyLane) {
  const Row a = row();
  EXPECT_FALSE(warp().differ(a.data(), a.data()));
  for (size_t bit = 0; bit < 512; ++bit) {
    Row b = a;
    b[bit / 16] = static_cast<uint16_t>(b[bit / 16] ^ 1u << (bit % 16));
    EXPECT_TRUE(warp().differ(a.data(), b.data())) << bit;
  }
}

// ---- codes

// Fields of widths for all 64 groups, of which the first `groups` of each row are present, and codes that go with them.
struct Block {
  uint32_t width_bits, base, bits, groups;
  uint32_t widths[64] = {};
  uint32_t values[8][32] = {};
  Bytes fields, codes;

  // With `uniform` all widths are the base.
  Block(Dice& dice, uint32_t base_width, uint32_t maximum, bool uniform) : base(base_width), bits(maximum) {
    width_bits = uniform ? 0 : dice.roll(5);
    groups = dice.chance(2) ? 8 : 1 + dice.roll(8);
    by_hand::BitString field_bits, code_bits;
    for (uint32_t g = 0; g < 64; ++g) {
      const uint32_t room = std::min(bits - base + 1, 1u << width_bits);
      const uint32_t field = dice.roll(g % 8 < groups ? room : 1u << width_bits);
      field_bits.put(field, width_bits);
      if (g % 8 >= groups) continue;
      widths[g] = base + field;
      for (uint32_t i = 0; i < 4; ++i) {
        uint32_t& value = values[g / 8][4 * (g % 8) + i];
        value = dice.chance(6) ? (1u << widths[g]) - 1 : dice.roll(uint64_t{1} << widths[g]);
        code_bits.put(value, widths[g]);
      }
    }
    fields = field_bits.bytes();
    codes = code_bits.bytes();
    fields.resize(fields.size() + 80, 0xFF);  // a warp may read on, as far as a PayloadReader allows
    codes.resize(codes.size() + 80, 0xFF);
  }
  Row residuals(uint32_t r) const {
    return each([&](size_t i) {
      const uint32_t width = widths[8 * r + i / 4];
      return width == 0 ? 0 : values[r][i] - (1u << (width - 1));
    });
  }
};

TEST_P(Engine, ResidualsOfEveryWidthAndAlignment) {
  for (uint32_t bits = 1; bits <= 16; ++bits) {
    for (uint32_t base = 0; base <= bits; ++base) {
      for (int round = 0; round < 12; ++round) {
        const Block block(dice, base, bits, round == 0);
        for (uint32_t r = 0; r < 8; ++r) {
          const Row found = result(warp().residuals[bits > 8], block.codes.data(), block.fields.data(),
                                   block.width_bits, block.base, block.groups, bits, r);
          ASSERT_EQ(found, block.residuals(r)) << "row " << r << " of " << bits << " bits, base " << base;
        }
      }
    }
  }
}

TEST_P(Engine, BitFieldsOfEveryWidthAndAlignment) {
  for (uint32_t bits = 1; bits <= 16; ++bits) {
    for (uint32_t step = bits; step <= 4 * bits; step += bits) {
      for (uint64_t at = 0; at < 24; ++at) {
        const uint32_t count = 1 + dice.roll(32);
        const Bytes bytes = dice.bytes((at + step * (count - 1) + bits + 7) / 8);
        const Exact exact(
            drawing::joined({1, 2, 3}, bytes));  // that much may be read in front of it, and nothing behind
        const auto bit = [&](uint64_t i) { return static_cast<uint32_t>(bytes[i / 8] >> (i % 8)) & 1; };
        const Row wanted = each([&](size_t i) {
          uint32_t value = 0;
          for (uint32_t b = 0; i < count && b < bits; ++b) value |= bit(at + i * step + b) << b;
          return value;
        });
        ASSERT_EQ(result(warp().bit_fields, exact.data() + 3, at, step, bits, count), wanted);
      }
    }
  }
}

// The bits that the code of a residual needs: from -2^(b-1) to 2^(b-1) - 1.
uint32_t width_of(uint32_t residual, uint32_t bits) {
  const uint32_t range = 1u << bits;
  residual &= range - 1;
  const int32_t value = static_cast<int32_t>(residual) - (residual >= range / 2 ? static_cast<int32_t>(range) : 0);
  uint32_t width = 0;
  while (width == 0 ? value != 0 : value < -(1 << (width - 1)) || value > (1 << (width - 1)) - 1) ++width;
  return width;
}

TEST_P(Engine, WidthsOfGroups) {
  for (uint32_t bits = 1; bits <= 16; ++bits) {
    for (int round = 0; round < 60; ++round) {
      // Small ones and large ones, of both signs, with whatever lies above their bits.
      std::vector<uint16_t> residuals(256);
      for (size_t g = 0; g < 64; ++g) {
        const uint32_t size = dice.roll(bits + 1);
        for (size_t i = 0; i < 4; ++i) {
          const uint32_t magnitude = dice.roll(uint64_t{1} << size);
          residuals[4 * g + i] = static_cast<uint16_t>(dice.chance(2) ? magnitude : 0u - magnitude);
        }
      }
      uint8_t wanted[64] = {}, found[64];
      uint32_t sum = 0, greatest = 0;
      for (size_t g = 0; g < 64; ++g) {
        for (size_t i = 0; i < 4; ++i) {
          wanted[g] = std::max(wanted[g], static_cast<uint8_t>(width_of(residuals[4 * g + i], bits)));
        }
        sum += wanted[g];
        greatest = std::max(greatest, uint32_t{wanted[g]});
      }
      warp().group_widths[bits > 8](residuals.data(), bits, found);
      ASSERT_EQ(Bytes(found, found + 64), Bytes(wanted, wanted + 64)) << bits;
      EXPECT_EQ(warp().sum(residuals.data(), bits), sum);
      EXPECT_EQ(warp().greatest(residuals.data(), bits), greatest);
      for (uint32_t floor = 0; floor <= bits; ++floor) {
        uint32_t raised = 0;
        for (const uint8_t width : wanted) raised += std::max(uint32_t{width}, floor);
        EXPECT_EQ(warp().sum_raised(residuals.data(), bits, floor), raised) << floor;
      }
    }
  }
}

TEST_P(Engine, WidthsOfEachResidualAlone) {
  for (uint32_t bits = 1; bits <= 16; ++bits) {
    for (uint32_t from = 0; from < 1u << bits; from += 64) {
      std::vector<uint16_t> residuals(256);
      for (size_t g = 0; g < 64; ++g) residuals[4 * g + g % 4] = static_cast<uint16_t>(from + g);
      uint8_t found[64];
      warp().group_widths[bits > 8](residuals.data(), bits, found);
      for (size_t g = 0; g < 64; ++g) ASSERT_EQ(found[g], width_of(residuals[4 * g + g % 4], bits)) << from + g;
    }
  }
}

TEST_P(Engine, CodesSideBySideOfEveryWidth) {
  for (uint32_t round = 0; round < 17 * 40; ++round) {
    const Row present = result(warp().first_lanes, round % 3 == 0 ? 1 + dice.roll(32) : 32);
    uint8_t widths[8];
    Row residuals{};
    for (size_t k = 0; k < 8; ++k) {
      widths[k] = static_cast<uint8_t>(round % 2 == 0 ? round / 2 % 17 : dice.roll(17));
      for (size_t i = 4 * k; i < 4 * k + 4; ++i) {
        if (widths[k] == 0) continue;  // the encoder's widths fit, but for what is not present
        residuals[i] = static_cast<uint16_t>(dice.roll(uint64_t{1} << widths[k]) - (1u << (widths[k] - 1)));
        if (present[i] == 0) residuals[i] = static_cast<uint16_t>(dice.next());
      }
    }
    uint64_t wanted[8] = {}, found[8];
    for (size_t i = 0; i < 32; ++i) {
      const uint32_t width = widths[i / 4];
      if (present[i] == 0 || width == 0) continue;
      const uint64_t code = (residuals[i] + (1u << (width - 1))) & ((1u << width) - 1);
      wanted[i / 4] |= code << (i % 4 * width);
    }
    warp().join_codes(residuals.data(), present.data(), widths, found);
    ASSERT_TRUE(std::equal(wanted, wanted + 8, found)) << round;
  }
}

// ---- pixels

TEST_P(Engine, PixelsOfEveryTypeAreStoredAndLoaded) {
  for (uint32_t wide = 0; wide < 2; ++wide) {
    for (uint32_t channels = 1; channels <= 4; ++channels) {
      const size_t pixel = channels * (wide + 1);
      for (int round = 0; round < 20; ++round) {
        std::vector<uint16_t> planes;
        for (uint32_t c = 0; c < channels; ++c) {
          const Row r = row(wide != 0 ? 16 : 8);
          planes.insert(planes.end(), r.begin(), r.end());
        }
        const Exact wanted(32 * pixel);
        for (size_t i = 0; i < 32 * channels; ++i) {
          const uint16_t value = planes[i % channels * 32 + i / channels];
          const uint8_t narrow = static_cast<uint8_t>(value);
          std::memcpy(wanted.data() + i * (wide + 1), wide != 0 ? static_cast<const void*>(&value) : &narrow, wide + 1);
        }
        const Exact out(32 * pixel);
        warp().store_pixels[wide][channels - 1](out.data(), planes.data());
        EXPECT_EQ(std::memcmp(out.data(), wanted.data(), out.size()), 0) << channels;

        std::vector<uint16_t> loaded(32 * channels, 0xFFFF);
        warp().load_pixels[wide][channels - 1](wanted.data(), loaded.data());
        EXPECT_EQ(loaded, planes) << channels;

        const uint32_t from = dice.roll(32), to = from + 1 + dice.roll(32 - from);
        const Exact some((to - from) * pixel);
        warp().store_some_pixels[wide][channels - 1](some.data(), planes.data(), from, to);
        EXPECT_EQ(std::memcmp(some.data(), wanted.data() + from * pixel, some.size()), 0) << channels;
      }
    }
  }
}

TEST_P(Engine, ColoursOfIndices) {
  const Bytes colours = dice.bytes(1024);
  for (const uint32_t bytes : {3u, 4u}) {
    for (uint32_t from = 0; from < 32; ++from) {
      const uint32_t to = from + 1 + dice.roll(32 - from);
      const Row indices = row(8);
      const Exact out((to - from) * bytes);
      warp().store_colours(out.data(), indices.data(), from, to, colours.data(), bytes);
      for (uint32_t i = from; i < to; ++i) {
        EXPECT_EQ(std::memcmp(out.data() + (i - from) * bytes, &colours[4u * indices[i]], bytes), 0);
      }
    }
  }
}

// ---- colour transforms, against section 7.2

std::array<uint32_t, 3> to_image(uint32_t transform, uint32_t bits, uint32_t c0, uint32_t c1, uint32_t c2) {
  const uint32_t m = (1u << bits) - 1;
  const auto avg = [](uint32_t a, uint32_t b) { return (a + b + 1) / 2; };
  const auto half = [&](uint32_t v) {
    const int32_t value = static_cast<int32_t>(v) - (v > m / 2 ? static_cast<int32_t>(m) + 1 : 0);
    return static_cast<uint32_t>(value >> 1);
  };
  uint32_t r = c0, g = c1, b = c2;
  switch (transform) {
    case 1:
      r = (c0 + g) & m;
      b = (c2 + g) & m;
      break;
    case 2:
      r = (c0 + g) & m;
      b = (c2 + avg(r, g)) & m;
      break;
    case 3:
      b = (c2 + g) & m;
      r = (c0 + avg(b, g)) & m;
      break;
    case 4: {
      const uint32_t t = (c1 - half(c2)) & m;
      g = (c2 + t) & m;
      b = (t - half(c0)) & m;
      r = (c0 + b) & m;
      break;
    }
    default: break;
  }
  return {r, g, b};
}

TEST_P(Engine, ColourTransformsOfEveryDepthAndBack) {
  for (uint32_t bits = 1; bits <= 16; ++bits) {
    for (uint32_t transform = 0; transform <= 4; ++transform) {
      for (int round = 0; round < 40; ++round) {
        const Row c[3] = {row(bits), row(bits), row(bits)};
        std::vector<uint16_t> channels;
        for (const Row& r : c) channels.insert(channels.end(), r.begin(), r.end());
        const std::vector<uint16_t> before = channels;
        warp().to_image(transform, bits, channels.data());
        for (size_t i = 0; i < 32; ++i) {
          const auto wanted = to_image(transform, bits, c[0][i], c[1][i], c[2][i]);
          for (size_t j = 0; j < 3; ++j) ASSERT_EQ(channels[32 * j + i], wanted[j]) << bits << " " << transform;
        }
        warp().from_image(transform, bits, channels.data());
        ASSERT_EQ(channels, before) << bits << " " << transform;
      }
    }
  }
}

// ---- the check

TEST_P(Engine, CheckIsThatOfTheSpec) {
  EXPECT_EQ(warp().check(Bytes(64).data(), 16), 0x4E8E8D7Cu);
  for (size_t words = 0; words < 200; ++words) {
    const Exact exact(dice.bytes(4 * words));
    ASSERT_EQ(warp().check(exact.data(), words), by_hand::check(exact.data(), exact.size())) << words;
  }
  const Exact shifted(dice.bytes(4001));  // words need no alignment
  EXPECT_EQ(warp().check(shifted.data() + 1, 1000), by_hand::check(shifted.data() + 1, 4000));
}

TEST_P(Engine, CheckChangesWithEveryBit) {
  Bytes bytes = dice.bytes(272);
  const uint32_t before = warp().check(bytes.data(), 68);
  for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    bytes[bit / 8] = static_cast<uint8_t>(bytes[bit / 8] ^ 1u << (bit % 8));
    EXPECT_NE(warp().check(bytes.data(), 68), before);
    bytes[bit / 8] = static_cast<uint8_t>(bytes[bit / 8] ^ 1u << (bit % 8));
  }
}

// ---- what all targets share

TEST(BlockWidths, AreParsedAsSection7Says) {
  Dice dice(5);
  for (int round = 0; round < 20000; ++round) {
    const uint32_t bits = 1 + dice.roll(16), base = dice.roll(bits + 1), width_bits = dice.roll(5);
    const uint32_t rows = 1 + dice.roll(8), groups = 1 + dice.roll(8);
    by_hand::BitString string;
    uint32_t wanted[64] = {};
    bool valid = true;
    uint32_t total = 0;
    for (uint32_t g = 0; g < 64; ++g) {
      const uint32_t span = 1u << width_bits;
      const uint32_t field = dice.chance(40) ? dice.roll(span) : dice.roll(std::min(span, bits - base + 1));
      string.put(field, width_bits);
      if (g / 8 >= rows || g % 8 >= groups) continue;
      wanted[g] = base + field;
      valid = valid && wanted[g] <= bits;
      total += wanted[g];
    }
    Bytes fields = string.bytes();
    fields.resize(fields.size() + 8, 0xFF);
    const l3::BlockWidths parsed = l3::BlockWidths::parse(fields.data(), width_bits, base, rows, groups, bits);
    ASSERT_EQ(parsed.valid, valid);
    ASSERT_EQ(parsed.total, total);
    uint32_t at = 0;
    for (uint32_t g = 0; g < 8 * rows; ++g) {
      ASSERT_EQ(parsed.width[g / 8] >> (8 * (g % 8)) & 0xFF, wanted[g]);
      ASSERT_EQ(parsed.row_start[g / 8] + (parsed.start[g / 8] >> (8 * (g % 8)) & 0xFF), at);
      at += wanted[g];
    }
  }
}

std::string hex_of_sha256(const std::string& text, size_t piece) {
  l3::Sha256 sha;
  for (size_t at = 0; at < text.size(); at += piece) {
    sha.update(reinterpret_cast<const uint8_t*>(text.data()) + at, std::min(piece, text.size() - at));
  }
  uint8_t digest[32];
  sha.finish(digest);
  std::string hex;
  for (const uint8_t byte : digest) {
    hex += "0123456789abcdef"[byte >> 4];
    hex += "0123456789abcdef"[byte & 15];
  }
  return hex;
}

TEST(Sha256, OfTheKnownVectors) {
  EXPECT_EQ(hex_of_sha256("", 1), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hex_of_sha256("abc", 64), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  const std::string two_blocks = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
  const std::string long_one =
      "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrst"
      "u";
  for (const size_t piece : {1u, 3u, 55u, 63u, 64u, 65u, 1000u}) {
    EXPECT_EQ(hex_of_sha256(two_blocks, piece), "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    EXPECT_EQ(hex_of_sha256(long_one, piece), "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1");
  }
  EXPECT_EQ(hex_of_sha256(std::string(1000000, 'a'), 4099),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

#if defined(__x86_64__)
TEST(Sha256, InstructionsGiveTheSame) {
  if (!l3::has_sha256_instructions()) GTEST_SKIP() << "this processor has no such instructions";
  drawing::Dice dice(1);
  uint32_t state[8], by_instructions[8];
  l3::start_sha256(state);
  l3::start_sha256(by_instructions);
  for (uint32_t i = 0; i < 1000; ++i) {
    uint8_t block[64];
    uint32_t words[64];
    for (uint8_t& byte : block) byte = dice.byte();
    for (uint32_t k = 0; k < 16; ++k) words[k] = __builtin_bswap32(l3::load_u32(block + 4 * k));
    l3::add_sha256_block(state, words);
    l3::add_sha256_block_x86(by_instructions, block);
    ASSERT_TRUE(std::equal(state, state + 8, by_instructions)) << i;
  }
}
#endif

}  // namespace
