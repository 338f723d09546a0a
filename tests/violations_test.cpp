// The rules of sections 2 to 4 of spec/format.md, one by one: files that break just that rule, with checks that match.
#include "violations.h"

namespace {

using namespace violations;
using by_hand::Frame;
using by_hand::packed;
using by_hand::pad;
using by_hand::put;
using drawing::Dice;

// ---- 3 the header

TEST(Header, RefusesAnotherSignature) {
  for (size_t i = 0; i < 8; ++i) {
    Bytes file = subject().file();
    file[i] ^= 0x20;
    expect_refused(file, L3_ERROR_NOT_L3, "not an L3 file: the signature is missing", i);
  }
}

TEST(Header, RefusesAnotherVersion) {
  for (const uint32_t version : {2u, 257u, 0xFFFFu}) {
    expect_refused(subject().with(8, 2, version), L3_ERROR_UNSUPPORTED, "a later version of the format", 8);
  }
}

TEST(Header, SaysWhichCommitReadsVersion0) {
  constexpr const char* kReason =
      "version 0 of the format, which was never fixed; l3 at commit 96825ae reads files of its last days";
  expect_refused(subject().with(8, 2, 0), L3_ERROR_UNSUPPORTED, kReason, 8);
  expect_refused(Bytes{0x8B, 'L', '3', 'T', 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, L3_ERROR_UNSUPPORTED, kReason, 3);
}

TEST(Header, RefusesMoreThan16Sections) {
  for (const uint32_t count : {17u, 256u, 0xFFFFu}) {
    expect_corrupt(subject().with(10, 2, count), "more than 16 sections", 10);
  }
}

TEST(Header, Accepts16SectionsMostOfThemUnknownAsides) {
  Subject s = subject_with_sections();
  while (s.parts.sections.size() < 16) {
    const uint32_t type = s.parts.sections.back().type + 1;
    s.parts.sections.push_back({type, {1, 2, 3}});
  }
  expect_accepted(s.file(), s.pixels);
}

TEST(Header, RefusesEveryRequiredFeature) {
  for (uint32_t bit = 4; bit < 16; ++bit) {
    expect_refused(subject().with(12, 2, uint64_t{1} << bit), L3_ERROR_UNSUPPORTED,
                   "the file needs a feature that this version does not support", 12);
  }
}

TEST(Header, RefusesDefaultModelsThatThereAreNot) {
  for (const uint32_t number : {9u, 10u, 255u, 256u, 65535u}) {
    expect_refused(subject().with(14, 2, number), L3_ERROR_UNSUPPORTED,
                   "the file needs a default model that this version does not have", 14);
  }
}

TEST(Header, AcceptsEveryOptionalFeature) {
  const Subject s = subject();
  for (const uint32_t features : {1u, 0x80000000u, 0xFFFFFFFFu}) {
    const Bytes file = s.with(16, 4, features);
    expect_accepted(file, s.pixels);
    EXPECT_EQ(codec_testing::info_of(file).optional_features, features);
  }
}

TEST(Header, RefusesDimensionsOutOfRange) {
  for (const uint32_t edge : {0u, (1u << 20) + 1, 0x80000000u, 0xFFFFFFFFu}) {
    expect_corrupt(subject().with(20, 4, edge), "width or height is 0 or above 1048576", 20);
    expect_corrupt(subject().with(24, 4, edge), "width or height is 0 or above 1048576", 24);
  }
}

TEST(Header, RefusesAnythingButOneFrame) {
  for (const uint32_t frames : {0u, 2u, 0x10001u}) {
    expect_refused(subject().with(28, 4, frames), L3_ERROR_UNSUPPORTED, "the number of frames is not 1", 28);
  }
}

TEST(Header, RefusesChannelsThatDoNotFitTheColour) {
  for (const uint32_t channels : {0u, 1u, 2u, 4u, 5u, 0x103u}) {
    expect_corrupt(subject().with(32, 2, channels), "the number of channels does not match the colour", 32);
  }
  expect_corrupt(subject(L3_COLOUR_PALETTE, 4).with(32, 2, 5), "the number of channels does not match the colour", 32);
}

TEST(Header, RefusesUnknownSampleTypes) {
  for (const uint32_t type : {2u, 3u, 4u, 5u, 255u}) {
    expect_refused(subject().with(34, 1, type), L3_ERROR_UNSUPPORTED, "unknown sample type", 34);
  }
}

TEST(Header, RefusesBitsThatDoNotFitTheSampleType) {
  for (const uint32_t bits : {0u, 9u, 16u, 255u}) {
    expect_corrupt(subject(L3_COLOUR_RGB, 8).with(35, 1, bits), "the bits do not match the sample type", 35);
  }
  for (const uint32_t bits : {0u, 8u, 17u, 255u}) {
    expect_corrupt(subject(L3_COLOUR_RGB, 12).with(35, 1, bits), "the bits do not match the sample type", 35);
  }
}

TEST(Header, RefusesUnknownColours) {
  for (const uint32_t colour : {5u, 6u, 255u}) {
    expect_corrupt(subject().with(36, 1, colour), "unknown colour, or one that needs another sample type", 36);
  }
}

TEST(Header, RefusesAPaletteOfWideSamples) {
  const Bytes file = subject(L3_COLOUR_PALETTE, 8).file([](Bytes& bytes, const Layout&) {
    bytes[34] = 1;
    bytes[35] = 9;
  });
  expect_corrupt(file, "unknown colour, or one that needs another sample type", 36);
}

TEST(Header, RefusesAlphaThatDoesNotFitTheColour) {
  constexpr const char* kReason = "the alpha does not match the colour";
  for (const l3_colour colour : {L3_COLOUR_GRAY, L3_COLOUR_RGB, L3_COLOUR_PALETTE}) {
    for (const uint32_t alpha : {1u, 2u, 3u}) expect_corrupt(subject(colour).with(37, 1, alpha), kReason, 37);
  }
  for (const l3_colour colour : {L3_COLOUR_GRAY_ALPHA, L3_COLOUR_RGB_ALPHA}) {
    for (const uint32_t alpha : {0u, 3u, 255u}) expect_corrupt(subject(colour).with(37, 1, alpha), kReason, 37);
    const Subject s = subject(colour);
    expect_accepted(s.with(37, 1, 2), s.pixels);
  }
}

TEST(Header, RefusesTileEdgesOutOfRange) {
  for (const uint32_t edge : {0u, 33u, 255u}) {
    expect_corrupt(subject().with(38, 1, edge), "the tile edges are out of range", 38);
    expect_corrupt(subject().with(39, 1, edge), "the tile edges are out of range", 39);
  }
}

TEST(Header, AcceptsTilesThatFitNoPayloadUncompressed) {
  Subject s(drawing::draw({10, 10}, {L3_COLOUR_RGB_ALPHA, 16}, drawing::Pattern::natural));
  s.parts.header[38] = s.parts.header[39] = 32;
  expect_accepted(s.file(), s.pixels);
}

TEST(Header, RefusesAnotherHeadCheck) {
  for (const size_t at : {16u, 44u, 48u, 63u}) {  // also where nothing else would notice
    Bytes file = subject().file();
    file[at] ^= 1;
    expect_corrupt(file, "the check of the head does not match", 44);
  }
}

TEST(Header, RefusesAnotherDigestOnlyWhenVerifying) {
  const Subject s = subject();
  Bytes file = s.file();
  file[50] ^= 1;
  put(&file[44], 4, 0);
  put(&file[44], 4, by_hand::check(file.data(), 64));
  expect_unverified(file, s.pixels, "the digest does not match", 48);
}

// ---- 3.1 section entries

TEST(SectionEntry, RefusesUnknownTypesBelow0x8000) {
  for (const uint32_t type : {0u, 7u, 8u, 0x7FFFu}) {
    Subject s = subject();
    s.parts.sections.push_back({type, {1, 2, 3}});
    expect_refused(s.file(), L3_ERROR_UNSUPPORTED, "a section has a type that this version does not support", 64);
  }
}

TEST(SectionEntry, RefusesTypesThatDoNotRise) {
  Subject twice = subject();
  twice.parts.sections = {{5, {1}}, {5, {2}}};
  expect_corrupt(twice.file(), "the sections are not in the order of their types", 80);
  Subject falling = subject();
  falling.parts.sections = {{5, {1}}, {4, {2}}};
  expect_corrupt(falling.file(), "the sections are not in the order of their types", 80);
  Subject aside = subject();
  aside.parts.sections = {{0x8003, {1}}, {0x8002, {2}}};
  expect_corrupt(aside.file(), "the sections are not in the order of their types", 80);
}

TEST(SectionEntry, RefusesFlags) {
  for (const uint32_t type : {4u, 0x8001u, 0x9000u}) {
    for (const uint32_t flags : {1u, 0x8000u}) {
      Subject s = subject();
      s.parts.sections.push_back({type, {1, 2, 3}, flags});
      expect_corrupt(s.file(), "reserved flags of a section are set", 66);
    }
  }
}

TEST(SectionEntry, RefusesOffsetsThatLeaveAGapOrOverlap) {
  for (const uint32_t type : {4u, 0x9000u}) {
    // The last one comes to the same byte where bytes are counted in 32 bits.
    for (const int64_t units : {int64_t{-1}, int64_t{1}, int64_t{16}, int64_t{1} << 28}) {
      Subject s = subject();
      s.parts.sections.push_back({type, Bytes(20)});
      const Bytes file = s.file([&](Bytes& bytes, const Layout& layout) {
        put(&bytes[72], 4, layout.sections[0] / 16 + static_cast<uint64_t>(units));
      });
      expect_corrupt(file, "a section does not begin where the part before it ends", 72);
    }
  }
}

TEST(SectionEntry, RefusesSizesOutOfRange) {
  for (const uint32_t type : {4u, 0x9000u}) {
    for (const uint64_t size : {uint64_t{0}, (uint64_t{1} << 30) + 1, uint64_t{UINT32_MAX}}) {
      Subject s = subject();
      s.parts.sections.push_back({type, Bytes(20)});
      expect_corrupt(s.with(76, 4, size), "a section is empty or larger than 1 GiB", 76);
    }
  }
}

TEST(SectionEntry, RefusesASectionBeyondTheEndOfTheFile) {
  for (const uint32_t type : {4u, 0x9000u}) {
    Subject s = subject();
    s.parts.sections.push_back({type, Bytes(20)});
    const Bytes file = s.with(76, 4, 1 << 30);
    expect_refused(file, L3_ERROR_TRUNCATED, "the file ends within a section", file.size());
  }
}

TEST(SectionEntry, RefusesAnotherCheckBelow0x8000) {
  const Subject s = subject_with_sections();
  const Layout layout(s.parts);
  for (size_t i = 0; i < s.parts.sections.size(); ++i) {
    Bytes file = s.file();
    file[64 + by_hand::kSectionEntry * i + 4] ^= 1;
    by_hand::seal_head(file, layout);
    if (s.parts.sections[i].type < 0x8000) {
      expect_corrupt(file, "the check of a section does not match", layout.sections[i]);
    } else {
      expect_unverified(file, s.pixels, "the check of a section does not match", layout.sections[i]);
    }
  }
}

TEST(SectionEntry, RefusesBytesAfterASectionThatAreNotZero) {
  const Subject s = subject_with_sections();
  const Layout layout(s.parts);
  for (size_t i = 0; i < s.parts.sections.size(); ++i) {
    const by_hand::SectionPart& section = s.parts.sections[i];
    const size_t end = layout.sections[i] + section.bytes.size();
    for (size_t at = end; at < pad(end); ++at) {
      const Bytes file = s.with(at, 1, 0x40);
      if (section.type < 0x8000) {
        expect_corrupt(file, "bytes after a section are not zero", at);
      } else {
        expect_unverified(file, s.pixels, "bytes after a section are not zero", at);
      }
    }
  }
}

// ---- 4 sections

// The parts with the section of that type replaced, added or (with no bytes) taken away; where it stands in the head is
// left in `entry`.
Parts with_section(Parts parts, uint32_t type, const Bytes& bytes, size_t* entry = nullptr) {
  auto at = parts.sections.begin();
  while (at != parts.sections.end() && at->type < type) ++at;
  if (at != parts.sections.end() && at->type == type) at = parts.sections.erase(at);
  if (entry != nullptr) *entry = 64 + by_hand::kSectionEntry * static_cast<size_t>(at - parts.sections.begin());
  if (!bytes.empty()) parts.sections.insert(at, {type, bytes});
  return parts;
}

constexpr size_t kOfType = 0, kOfSize = 12;  // fields of a section entry

void expect_section(const Subject& s, uint32_t type, const Bytes& section, const char* reason, size_t field = kOfSize) {
  size_t entry = 0;
  const Bytes file = by_hand::put_together(with_section(s.parts, type, section, &entry));
  if (reason == nullptr) {
    expect_accepted(file, s.pixels);
  } else {
    expect_corrupt(file, reason, entry + field);
  }
}
void expect_section(const Subject& s, uint32_t type, size_t size, const char* reason, size_t field = kOfSize) {
  expect_section(s, type, Bytes(size, 1), reason, field);
}

// A section whose byte `at` is wrong.
void expect_byte(const Subject& s, uint32_t type, const Bytes& section, size_t at, l3_status status,
                 const char* reason) {
  size_t entry = 0;
  const Parts parts = with_section(s.parts, type, section, &entry);
  const size_t begin = Layout(parts).sections[(entry - 64) / by_hand::kSectionEntry];
  expect_refused(by_hand::put_together(parts), status, reason, begin + at);
}

Bytes palette(uint8_t rule, uint32_t entries, size_t bytes_given) {
  Bytes section = {rule, static_cast<uint8_t>(entries - 1)};
  section.resize(2 + bytes_given, 9);
  return section;
}

TEST(PaletteSection, GivesAsManyEntriesAsThereAreOrFewer) {
  const Subject s = subject(L3_COLOUR_PALETTE, 4);
  constexpr const char* kReason = "the size of the palette is wrong";
  for (const uint8_t rule : Bytes{0, 1}) {
    for (const uint32_t entries : {1u, 5u, 16u}) {
      for (const size_t given : {size_t{0}, size_t{1}, size_t{entries}}) {
        expect_section(s, 1, palette(rule, entries, 3 * given), nullptr);
        expect_section(s, 1, palette(rule, entries, 3 * given + 1), kReason);
        expect_section(s, 1, palette(rule, entries, 3 * given + 2), kReason);
      }
      expect_section(s, 1, palette(rule, entries, size_t{3} * (entries + 1)), kReason);
      expect_section(s, 1, palette(rule, entries, 3000), kReason);
    }
  }
  expect_section(s, 1, Bytes{0}, kReason);
}

TEST(PaletteSection, Has1To2ToTheBitsEntries) {
  for (const uint32_t bits : {1u, 2u, 4u, 7u}) {
    const Subject s = subject(L3_COLOUR_PALETTE, bits);
    constexpr const char* kReason = "the palette has more entries than the samples can index";
    expect_section(s, 1, palette(1, 1u << bits, 0), nullptr);
    for (const uint32_t entries : {(1u << bits) + 1, 256u}) {
      for (const size_t given : {size_t{0}, size_t{1}, size_t{entries}}) {
        expect_byte(s, 1, palette(0, entries, 3 * given), 1, L3_ERROR_CORRUPT, kReason);
      }
    }
  }
  expect_section(subject(L3_COLOUR_PALETTE, 8), 1, palette(1, 256, 0), nullptr);
}

TEST(PaletteSection, RefusesUnknownRules) {
  for (const uint8_t rule : Bytes{3, 4, 128, 255}) {
    expect_byte(subject(L3_COLOUR_PALETTE, 4), 1, palette(rule, 2, 6), 0, L3_ERROR_UNSUPPORTED,
                "the palette has a rule that this version does not support");
  }
}

TEST(PaletteSection, IsThereForPaletteImagesAndNoOthers) {
  expect_corrupt(by_hand::put_together(with_section(subject(L3_COLOUR_PALETTE, 4).parts, 1, {})),
                 "the palette of a palette image is missing", 36);
  for (const l3_colour colour : {L3_COLOUR_GRAY, L3_COLOUR_GRAY_ALPHA, L3_COLOUR_RGB, L3_COLOUR_RGB_ALPHA}) {
    expect_section(subject(colour), 1, palette(0, 1, 3), "an image that is not a palette image has a palette", kOfType);
  }
}

TEST(TransparencySection, FitsThePaletteOrTheChannels) {
  constexpr const char* kReason = "the size of the transparency is wrong";
  for (const uint32_t entries : {1u, 3u, 4u}) {
    for (const size_t given : {size_t{0}, size_t{entries}}) {
      Subject of_palette = subject(L3_COLOUR_PALETTE, 2);
      of_palette.parts = with_section(of_palette.parts, 1, palette(1, entries, 3 * given));
      for (const size_t size : {1u, 2u, 3u, 4u, 5u, 12u, 256u}) {
        expect_section(of_palette, 2, size, size <= entries ? nullptr : kReason);
      }
    }
  }
  for (const size_t size : {1u, 2u, 3u, 4u, 6u, 7u}) {
    expect_section(subject(L3_COLOUR_GRAY), 2, size, size == 2 ? nullptr : kReason);
    expect_section(subject(L3_COLOUR_RGB), 2, size, size == 6 ? nullptr : kReason);
    expect_section(subject(L3_COLOUR_RGB, 16), 2, size, size == 6 ? nullptr : kReason);
  }
}

TEST(TransparencySection, IsNotThereBesideAlpha) {
  for (const l3_colour colour : {L3_COLOUR_GRAY_ALPHA, L3_COLOUR_RGB_ALPHA}) {
    for (const size_t size : {1u, 2u, 4u, 6u, 8u}) {
      expect_section(subject(colour), 2, size, "an image with alpha has a transparency", kOfType);
    }
  }
}

TEST(ColourSpaceSection, HasThePartsThatItNames) {
  constexpr size_t kBytes[16] = {0, 5, 5, 9, 2, 6, 6, 10, 33, 37, 37, 41, 34, 38, 38, 42};
  Dice dice(2);
  for (uint32_t parts = 1; parts < 16; ++parts) {
    for (const size_t size : {size_t{1}, size_t{16}, kBytes[parts] - 1, kBytes[parts], kBytes[parts] + 1, size_t{48}}) {
      Bytes section = dice.bytes(size);
      section[0] = static_cast<uint8_t>(parts);
      expect_section(subject(), 3, section, size == kBytes[parts] ? nullptr : "the size of the colour space is wrong");
    }
  }
}

TEST(ColourSpaceSection, NamesAPartAndNoneThatThereIsNot) {
  constexpr const char* kReason = "the colour space has no part, or an unknown one";
  for (const uint8_t parts : Bytes{0, 16, 18, 64, 255}) {
    Bytes section(42);
    section[0] = parts;
    expect_byte(subject(), 3, section, 0, L3_ERROR_CORRUPT, kReason);
  }
}

TEST(IccAndExifSections, HoldAnything) {
  for (const uint32_t type : {4u, 5u}) {
    for (const size_t size : {1u, 15u, 16u, 1000u}) expect_section(subject(), type, size, nullptr);
  }
}

TEST(UnknownAside, IsIgnoredButItsCheckAndPaddingAreVerified) {
  Subject s = subject();
  s.parts.sections = {{0x8000, {1}}, {0x9000, {1, 2}}, {0xFFFF, {1, 2, 3}}};
  expect_accepted(s.file(), s.pixels);
  const Layout layout(s.parts);
  for (size_t i = 0; i < 3; ++i) {
    Bytes file = s.file();
    file[layout.sections[i]] ^= 1;
    expect_unverified(file, s.pixels, "the check of a section does not match", layout.sections[i]);
    expect_unverified(s.with(layout.sections[i] + 7, 1, 1), s.pixels, "bytes after a section are not zero",
                      layout.sections[i] + 7);
  }
}

// ---- 4 metadata

const Bytes& kRecords = by_hand::two_records();

void expect_metadata(const Bytes& section, const char* reason) {
  const Subject s = subject();
  const Parts parts = with_section(s.parts, 0x8001, section);
  const Bytes file = by_hand::put_together(parts);
  size_t needed = 0;
  Bytes room(1 << 12);
  const l3_status unpacked =
      l3_unpack_metadata(file.data(), file.size(), nullptr, room.data(), room.size(), &needed, nullptr);
  if (reason == nullptr) {
    expect_accepted(file, s.pixels);
    EXPECT_EQ(unpacked, L3_OK);
    room.resize(needed);
    EXPECT_EQ(room, kRecords);
  } else {
    expect_unverified(file, s.pixels, reason, Layout(parts).sections[0]);
    EXPECT_EQ(unpacked, L3_ERROR_CORRUPT);
  }
}

constexpr const char* kTooSmall = "the metadata section is too small";
constexpr const char* kContents = "the metadata is not a valid Zstandard frame, or has another size than it states";
constexpr const char* kNoRecords = "the records of the metadata are damaged";

uint32_t size_of(const Bytes& bytes) { return static_cast<uint32_t>(bytes.size()); }

TEST(MetadataSection, AcceptsAFrameOfStoredBytes) {
  expect_metadata(packed({.contents = kRecords}, size_of(kRecords)), nullptr);
}

TEST(MetadataSection, AcceptsAFrameThatDoesNotStateItsSize) {
  // A window of 2^23 bytes, the largest one.
  expect_metadata(packed({.descriptor = 0, .fields = {13 << 3}, .contents = kRecords}, size_of(kRecords)), nullptr);
}

TEST(MetadataSection, AcceptsAFrameThatStatesItsSizeAndAWindow) {
  for (const uint8_t window : Bytes{0, 13 << 3}) {
    const Frame frame{.descriptor = 0x80, .fields = {window, 27, 0, 0, 0}, .contents = kRecords};
    expect_metadata(packed(frame, size_of(kRecords)), nullptr);
  }
}

TEST(MetadataSection, AcceptsADictionaryIdOfZero) {
  expect_metadata(packed({.descriptor = 0x21, .fields = {0, 27}, .contents = kRecords}, size_of(kRecords)), nullptr);
}

TEST(MetadataSection, HasAtLeast13Bytes) {
  for (size_t size = 1; size < 13; ++size) expect_metadata(Bytes(size, 1), kTooSmall);
}

TEST(MetadataSection, RefusesAnotherSizeThanStated) {
  for (const uint32_t size : {0u, 1u, 26u, 28u, 1000u})
    expect_metadata(packed({.contents = kRecords}, size), kContents);
  // Where the frame states no size, what is missing must not be taken for a record of zeros.
  const uint32_t with_another = size_of(kRecords) + 12;
  expect_metadata(packed({.descriptor = 0, .fields = {13 << 3}, .contents = kRecords}, with_another), kContents);
}

TEST(MetadataSection, RefusesAFrameThatStatesAnotherSize) {
  for (const uint8_t size : Bytes{0, 26, 28}) {
    expect_metadata(packed({.fields = {size}, .contents = kRecords}, size_of(kRecords)), kContents);
  }
}

TEST(MetadataSection, RefusesASkippableFrame) {
  Bytes section = packed({.contents = kRecords}, size_of(kRecords));
  put(&section[4], 4, 0x184D2A50);
  put(&section[8], 4, section.size() - 12);
  expect_metadata(section, kContents);
}

TEST(MetadataSection, RefusesWhatIsNoFrame) {
  Bytes section = packed({.contents = kRecords}, size_of(kRecords));
  section[4] ^= 1;
  expect_metadata(section, kContents);
}

TEST(MetadataSection, RefusesADictionary) {
  expect_metadata(packed({.descriptor = 0x21, .fields = {5, 27}, .contents = kRecords}, size_of(kRecords)), kContents);
}

TEST(MetadataSection, RefusesAWindowAbove8MiB) {
  for (const uint8_t window : Bytes{13 << 3 | 1, 14 << 3, 31 << 3 | 7}) {
    expect_metadata(packed({.descriptor = 0, .fields = {window}, .contents = kRecords}, size_of(kRecords)), kContents);
  }
}

TEST(MetadataSection, RefusesAWindowAbove8MiBAlsoWhereTheFrameStatesItsSize) {
  for (const uint8_t window : Bytes{13 << 3 | 1, 14 << 3, 20 << 3, 31 << 3 | 7}) {
    const Frame frame{.descriptor = 0x80, .fields = {window, 27, 0, 0, 0}, .contents = kRecords};
    expect_metadata(packed(frame, size_of(kRecords)), kContents);
  }
}

TEST(MetadataSection, RefusesABlockAboveTheWindow) {
  Bytes record(2000);  // the window is 1 KiB
  put(&record[8], 4, record.size() - 12);
  expect_metadata(packed({.descriptor = 0, .fields = {0}, .contents = record}, size_of(record)), kContents);
}

TEST(MetadataSection, RefusesAnotherChecksum) {
  expect_metadata(packed({.descriptor = 0x24, .contents = kRecords, .after = {1, 2, 3, 4}}, size_of(kRecords)),
                  kContents);
}

TEST(MetadataSection, RefusesAFrameThatDoesNotEndWithTheSection) {
  const Bytes whole = packed({.contents = kRecords}, size_of(kRecords));
  expect_metadata(drawing::joined(whole, {0}), kContents);
  expect_metadata(drawing::joined(whole, Bytes(whole.begin() + 4, whole.end())), kContents);
  for (size_t size = 13; size < whole.size(); ++size) {
    expect_metadata(Bytes(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(size)), kContents);
  }
}

TEST(MetadataSection, RefusesWhatIsNotRecords) {
  for (size_t size = 1; size < kRecords.size(); ++size) {
    if (size == 15) continue;  // the first record alone
    const Bytes cut(kRecords.begin(), kRecords.begin() + static_cast<ptrdiff_t>(size));
    expect_metadata(packed({.contents = cut}, size_of(cut)), kNoRecords);
  }
  for (const size_t at : {4u, 5u, 6u, 7u, 8u, 11u, 19u, 20u, 23u}) {
    Bytes wrong = kRecords;
    wrong[at] = 7;
    expect_metadata(packed({.contents = wrong}, size_of(wrong)), kNoRecords);
  }
}

TEST(MetadataSection, RefusesNoRecordAtAll) { expect_metadata(packed({.fields = {0}}, 0), kNoRecords); }

}  // namespace
