// Tests of libl3 with damaged files: truncated, with a flipped bit, with bytes appended. And with changed files whose
// checks were corrected: all targets must accept the same ones.
#include "any_bit_tile.h"
#include "any_token_tile.h"
#include "codec_testing.h"

namespace {

using namespace codec_testing;
using drawing::Dice;
using drawing::Size;
using drawing::Type;

struct Sample {
  const char* name;
  Drawing drawing;
  Bytes file;
  std::vector<int> methods = {2, 0, 1};  // of its tiles
};

// Each with a constant and a raw tile, and one that is fast or dense.
const std::vector<Sample>& samples() {
  static const std::vector<Sample> all = [] {
    std::vector<Sample> made;
    const auto add = [&](const char* name, const Drawing& d) {
      made.push_back({name, d, encode(d, tiles_of(32, 32))});
    };
    add("gray of 1 bit", drawing::draw_mixed({32, 30}, {L3_COLOUR_GRAY, 1}));
    add("gray of 8 bits", drawing::draw_mixed({32, 12}, {L3_COLOUR_GRAY, 8}));
    add("RGB", drawing::draw_mixed({32, 10}, {L3_COLOUR_RGB, 8}));
    add("gray and alpha of 16 bits", drawing::draw_mixed({32, 5}, {L3_COLOUR_GRAY_ALPHA, 16}));
    add("RGBA of 10 bits", drawing::draw_mixed({32, 3}, {L3_COLOUR_RGB_ALPHA, 10}));
    add("palette with all sections", drawing::with_sections(drawing::draw_mixed({32, 9}, {L3_COLOUR_PALETTE, 4})));
    const auto add_dense = [&](const char* name, const Drawing& d) {
      made.push_back({name, d, encode(d, options_of(L3_METHOD_DENSE, 32, 32, 1)), {3, 0, 1}});
    };
    add_dense("dense gray", drawing::draw_mixed({32, 14}, {L3_COLOUR_GRAY, 8}));
    add_dense("dense RGB", drawing::draw_mixed({32, 7}, {L3_COLOUR_RGB, 8}));
    add_dense("dense palette with all sections",
              drawing::with_sections(drawing::draw_mixed({32, 3}, {L3_COLOUR_PALETTE, 8})));
    add("one pixel with all sections", drawing::with_sections(drawing::draw_mixed({1, 1}, {L3_COLOUR_RGB, 8})));
    return made;
  }();
  return all;
}

TEST(Samples, HaveEveryMethod) {
  for (const Sample& sample : samples()) {
    if (sample.drawing.width < 96) continue;
    std::vector<int> methods;
    for (const by_hand::TilePart& tile : by_hand::take_apart(sample.file).tiles) methods.push_back(tile.method);
    EXPECT_EQ(methods, sample.methods) << sample.name;
  }
}

TEST(Samples, AreRebuiltByHandByteForByte) {
  for (const Sample& sample : samples()) {
    if (by_hand::is_tiny(sample.file.data(), sample.file.size())) continue;
    EXPECT_EQ(by_hand::put_together(by_hand::take_apart(sample.file)), sample.file) << sample.name;
  }
}

// ---- damage that the checks find

TEST(Truncation, IsRefusedAtEveryLength) {
  for (const char* target : targets()) {
    const ForcedTarget forced(target);
    for (const Sample& sample : samples()) {
      for (size_t size = 0; size < sample.file.size(); ++size) {
        const Exact prefix(sample.file.data(), size);
        const Said decoded = say_decode(prefix);
        ASSERT_EQ(decoded.status, L3_ERROR_TRUNCATED) << sample.name << ": " << size << ": " << decoded;
        ASSERT_EQ(decoded.offset, size) << sample.name;
        ASSERT_EQ(say_verify(prefix), decoded) << sample.name << ": " << size;
      }
    }
  }
}

TEST(Truncation, OfSectionsIsRefusedByThoseWhoReadThem) {
  for (const Sample& sample : samples()) {
    for (size_t size = 0; size < sample.file.size(); ++size) {
      const Exact prefix(sample.file.data(), size);
      for (const uint32_t type : {1u, 2u, 3u, 4u, 5u, 6u, 0x8001u}) {
        const uint8_t* bytes = nullptr;
        size_t bytes_size = 0;
        const l3_status status = l3_find_section(prefix.data(), size, type, &bytes, &bytes_size, nullptr);
        ASSERT_TRUE(status == L3_OK || status == L3_ERROR_TRUNCATED);
        ASSERT_TRUE(bytes == nullptr || bytes + bytes_size <= prefix.data() + size);
      }
      Bytes records(4096);
      size_t needed = 0;
      const l3_status status =
          l3_unpack_metadata(prefix.data(), size, nullptr, records.data(), records.size(), &needed, nullptr);
      ASSERT_TRUE(status == L3_OK || status == L3_ERROR_TRUNCATED);
    }
  }
}

// The bytes of the metadata and those after it.
struct Range {
  size_t from = 0, to = 0;
};
Range metadata_range(const Bytes& file) {
  const by_hand::Parts parts = by_hand::take_apart(file);
  const by_hand::Layout layout(parts);
  for (size_t i = 0; i < parts.sections.size(); ++i) {
    if (parts.sections[i].type != L3_SECTION_METADATA) continue;
    return {layout.sections[i], layout.sections[i] + by_hand::pad(parts.sections[i].bytes.size())};
  }
  return {};
}

TEST(BitFlip, IsRefusedByDecodeOutsideTheMetadataAndByVerifyAnywhere) {
  for (const char* target : targets()) {
    const ForcedTarget forced(target);
    for (const Sample& sample : samples()) {
      const Range metadata = metadata_range(sample.file);
      const Exact file(sample.file);
      const Exact out(sample.drawing.pixels.size());
      for (size_t bit = 0; bit < 8 * sample.file.size(); bit += kSanitized ? 11 : 1) {
        uint8_t& byte = file.data()[bit / 8];
        byte = static_cast<uint8_t>(byte ^ 1u << (bit % 8));
        const l3_status decoded = l3_decode(file.data(), file.size(), nullptr, out.data(), out.size(), 0, nullptr);
        if (bit / 8 >= metadata.from && bit / 8 < metadata.to) {
          ASSERT_EQ(decoded, L3_OK) << sample.name << ": bit " << bit;
          ASSERT_EQ(std::memcmp(out.data(), sample.drawing.pixels.data(), out.size()), 0);
        } else {
          ASSERT_NE(decoded, L3_OK) << sample.name << ": bit " << bit;
        }
        ASSERT_NE(l3_verify(file.data(), file.size(), nullptr, nullptr), L3_OK) << sample.name << ": bit " << bit;
        byte = static_cast<uint8_t>(byte ^ 1u << (bit % 8));
      }
    }
  }
}

TEST(WordChange, IsRefusedWhateverTheWordBecomes) {
  Dice dice(8);
  for (const Sample& sample : samples()) {
    const Range metadata = metadata_range(sample.file);
    const Exact file(sample.file);
    const Exact out(sample.drawing.pixels.size());
    for (int round = 0; round < 3000; ++round) {
      const size_t at = 4 * size_t{dice.roll(sample.file.size() / 4)};
      if (at >= metadata.from && at < metadata.to) continue;
      const uint64_t before = by_hand::get(file.data() + at, 4);
      const uint64_t after = dice.next() >> 32;
      if (after == before) continue;
      by_hand::put(file.data() + at, 4, after);
      ASSERT_NE(l3_decode(file.data(), file.size(), nullptr, out.data(), out.size(), 0, nullptr), L3_OK);
      by_hand::put(file.data() + at, 4, before);
    }
  }
}

TEST(AppendedBytes, AreRefused) {
  for (const Sample& sample : samples()) {
    for (const size_t more : {1u, 2u, 15u, 16u, 17u, 64u, 4096u}) {
      for (const uint8_t fill : Bytes{0, 0xFF}) {
        Bytes longer = sample.file;
        longer.resize(sample.file.size() + more, fill);
        const Said wanted{L3_ERROR_CORRUPT, "there are bytes after the last payload", sample.file.size(), L3_NO_TILE};
        EXPECT_EQ(say_decode(Exact(longer)), wanted) << sample.name << more;
        EXPECT_EQ(say_verify(Exact(longer)), wanted) << sample.name << more;
      }
    }
  }
}

TEST(Noise, IsNotL3) {
  Dice dice(9);
  for (int round = 0; round < 2000; ++round) {
    Bytes noise = dice.bytes(dice.roll(300));
    if (round % 2 != 0) {  // behind a signature and sane counts
      const auto start = by_hand::header(10, 10, L3_COLOUR_RGB, 8);
      for (size_t i = 0; i < noise.size() && i < 8 + dice.roll(56); ++i) noise[i] = start[i];
    }
    const Exact file(noise);
    EXPECT_NE(say_decode(file).status, L3_OK);
    EXPECT_NE(say_verify(file).status, L3_OK);
  }
}

// ---- damage that is sealed: the checks match, and what is left are the rules

void mutate_bytes(Dice& dice, Bytes& bytes) {
  if (bytes.empty()) return;
  const uint32_t count = 1 + dice.roll(3);
  for (uint32_t i = 0; i < count; ++i) {
    // Often near the beginning: origins and the first blocks.
    const size_t at = dice.chance(2) ? dice.roll(bytes.size()) : dice.roll(bytes.size() < 24 ? bytes.size() : 24);
    bytes[at] = dice.chance(2) ? static_cast<uint8_t>(bytes[at] ^ 1u << dice.roll(8)) : dice.byte();
  }
}

void mutate_tile(Dice& dice, by_hand::TilePart& tile) {
  switch (dice.roll(9)) {
    case 0: tile.method = static_cast<uint8_t>(dice.roll(4)); break;
    case 1: tile.parameters = static_cast<uint8_t>(dice.chance(2) ? dice.roll(6) : dice.roll(256)); break;
    case 2: tile.payload.resize(tile.payload.size() + 16); break;
    case 3: tile.payload.resize(tile.payload.size() < 16 ? 0 : tile.payload.size() - 16); break;
    case 4: tile.value[dice.roll(4)] = static_cast<uint16_t>(dice.roll(1u << dice.roll(17))); break;
    default: mutate_bytes(dice, tile.payload); break;
  }
}

void mutate_header(Dice& dice, by_hand::Parts& parts) {
  constexpr size_t kFields[] = {8, 12, 16, 20, 24, 28, 32, 34, 35, 36, 37, 38, 39};
  const size_t at = dice.pick(kFields);
  parts.header[at] = static_cast<uint8_t>(dice.chance(2) ? dice.roll(6) : parts.header[at] ^ 1u << dice.roll(8));
}

// A field of the index or of a section entry, behind the back of the layout.
void mutate_entry(Dice& dice, Bytes& file, const by_hand::Layout& layout) {
  const size_t from = dice.chance(2) ? 64 : layout.head_bytes;
  const size_t size = by_hand::pad(layout.index_end) - from;
  uint8_t& byte = file[from + dice.roll(size)];
  byte = static_cast<uint8_t>(dice.chance(2) ? byte ^ 1u << dice.roll(8) : dice.roll(256));
}

Bytes mutant(Dice& dice, by_hand::Parts parts) {
  by_hand::Edit edit;
  const uint32_t changes = 1 + dice.roll(2);
  for (uint32_t i = 0; i < changes; ++i) {
    const uint32_t die = dice.roll(16);
    if (die == 0) {
      mutate_header(dice, parts);
    } else if (die == 1 && !parts.sections.empty()) {
      by_hand::SectionPart& section = dice.pick(parts.sections);
      if (dice.chance(2)) {
        section.bytes.resize(dice.roll(section.bytes.size() + 3));
      } else {
        mutate_bytes(dice, section.bytes);
      }
    } else if (die == 2) {
      const uint64_t seed = dice.next();
      edit = [seed](Bytes& file, const by_hand::Layout& layout) {
        Dice own(seed);
        mutate_entry(own, file, layout);
      };
    } else {
      mutate_tile(dice, dice.pick(parts.tiles));
    }
  }
  return by_hand::put_together(parts, edit);
}

// What every target says of a file; they must agree on it, down to the last pixel.
Said expect_agreement(const Bytes& bytes) {
  const Exact file(bytes);
  Said first, first_verified;
  Bytes first_samples;
  for (const char* target : targets()) {
    const ForcedTarget forced(target);
    Bytes out;
    const Said decoded = say_decode(file, &out);
    const Said verified = say_verify(file);
    if (target == targets().front()) {
      first = decoded;
      first_verified = verified;
      first_samples = out;
    }
    EXPECT_EQ(decoded, first) << target;
    EXPECT_EQ(verified, first_verified) << target;
    EXPECT_EQ(out, first_samples) << target;
    EXPECT_TRUE(decoded.status == L3_OK || verified == decoded) << target;
  }
  return first;
}

TEST(SealedMutants, AreAcceptedOrRefusedAlikeByAllTargets) {
  Dice dice(123);
  std::vector<by_hand::Parts> parts;
  for (const Sample& sample : samples()) parts.push_back(by_hand::take_apart(sample.file));
  constexpr int kMutants = kSanitized ? 15000 : 60000;
  int accepted = 0;
  for (int i = 0; i < kMutants; ++i) {
    if (expect_agreement(mutant(dice, dice.pick(parts))).status == L3_OK) ++accepted;
    ASSERT_FALSE(HasFailure()) << "mutant " << i;
  }
  // Otherwise they prove little.
  EXPECT_GT(accepted, kMutants / 10);
  EXPECT_LT(accepted, kMutants * 9 / 10);
}

TEST(SealedMutants, OfFilesThatNoEncoderWritesToo) {
  Dice dice(321);
  auto types = drawing::all_types();
  for (int i = 0; i < (kSanitized ? 2500 : 10000); ++i) {
    const Size size{1 + dice.roll(40), 1 + dice.roll(20)};
    expect_agreement(mutant(dice, by_hand::any_parts(dice, size, dice.pick(types))));
    ASSERT_FALSE(HasFailure()) << "mutant " << i;
  }
}

// Also with pixels that follow others and still rows, and with other flags than the model was made for.
TEST(SealedMutants, OfTokenTilesToo) {
  Dice dice(322);
  auto types = drawing::all_types();
  for (int i = 0; i < (kSanitized ? 400 : 1500); ++i) {
    const Type type = dice.pick(types);
    const Size size{1 + dice.roll(70), 1 + dice.roll(40)};
    const uint32_t channels = type.colour == L3_COLOUR_PALETTE ? 1 : static_cast<uint32_t>(type.colour) + 1;
    by_hand::Parts parts =
        by_hand::any_token_file(dice, size, type, by_hand::any_token_model(dice, channels, type.bits), 64, 32).parts;
    if (dice.chance(3)) by_hand::mutate_token_flags(dice, parts.sections.back().bytes);
    expect_agreement(dice.chance(3) ? by_hand::put_together(parts) : mutant(dice, parts));
    ASSERT_FALSE(HasFailure()) << "mutant " << i;
  }
}

TEST(SealedMutants, OfBitTilesToo) {
  Dice dice(323);
  auto types = drawing::all_types();
  for (int i = 0; i < (kSanitized ? 400 : 1500); ++i) {
    const Type type = dice.chance(3) ? Type{L3_COLOUR_GRAY, 1} : dice.pick(types);
    const Size size{1 + dice.roll(70), 1 + dice.roll(40)};
    const uint32_t channels = type.colour == L3_COLOUR_PALETTE ? 1 : static_cast<uint32_t>(type.colour) + 1;
    const by_hand::BitModel model = by_hand::any_bit_model(dice, channels, type.bits);
    expect_agreement(mutant(dice, by_hand::any_bit_file(dice, size, type, model, 64, 32).parts));
    ASSERT_FALSE(HasFailure()) << "mutant " << i;
  }
}

TEST(AnyStream, ThatIsValidIsDecodedAlikeByAllTargets) {
  Dice dice(77);
  for (const Type& type : drawing::all_types()) {
    for (int round = 0; round < 12; ++round) {
      const Size size{1 + dice.roll(140), 1 + dice.roll(70)};
      const by_hand::Parts parts = by_hand::any_parts(dice, size, type, 32 + 32 * dice.roll(3), 64);
      const Said decoded = expect_agreement(by_hand::put_together(parts));
      ASSERT_EQ(decoded.status, L3_OK) << decoded << " " << size.width << "x" << size.height << " of "
                                       << drawing::name_of(type.colour) << " " << type.bits;
      ASSERT_FALSE(HasFailure());
    }
  }
}

TEST(AnyStream, RegionsAreCropsOfTheWhole) {
  Dice dice(78);
  auto types = drawing::all_types();
  for (int round = 0; round < 300; ++round) {
    const Size size{1 + dice.roll(80), 1 + dice.roll(80)};
    const Bytes file = by_hand::put_together(by_hand::any_parts(dice, size, dice.pick(types), 64, 32));
    const ForcedTarget forced(targets()[static_cast<size_t>(round) % targets().size()]);
    expect_crop(dice, file, decode(file), size);
    ASSERT_FALSE(HasFailure());
  }
}

// What libl3 decodes of a file that no encoder wrote, it encodes and decodes again.
TEST(AnyStream, ComesBackFromTheEncoder) {
  Dice dice(79);
  for (const Type& type : drawing::all_types()) {
    if (type.colour == L3_COLOUR_PALETTE) continue;
    Drawing d = drawing::blank({77, 35}, type);
    d.pixels = decode(by_hand::put_together(by_hand::any_parts(dice, {77, 35}, type)));
    for (const char* target : targets()) {
      const ForcedTarget forced(target);
      EXPECT_EQ(decode(encode(d, tiles_of(64, 32))), d.pixels) << d.name() << target;
    }
  }
}

}  // namespace
