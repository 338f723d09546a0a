// Writes small L3 files, good ones and bad ones, with what libl3 says of each, for oracle_test.py to compare:
//
//     oracle_samples DIR
//
// DIR/list.tsv has a line for each file: its name, l3_decode's verdict, l3_verify's verdict; a verdict is "ok",
// "reject", or "reject-metadata" where what is wrong is inside packed metadata. An accepted NAME.l3 has a NAME.pam
// beside it.
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "any_model.h"
#include "any_token_tile.h"
#include "pam.h"
#include "screen.h"

namespace {

using by_hand::Parts;
using drawing::Bytes;
using drawing::Dice;
using drawing::Drawing;
using drawing::Size;
using drawing::Type;

[[noreturn]] void stop(const std::string& why) {
  std::fprintf(stderr, "oracle_samples: %s\n", why.c_str());
  std::exit(1);
}

Bytes encode(const Drawing& drawing, uint32_t tile_width, uint32_t tile_height, l3_method method = L3_METHOD_FAST,
             const Bytes& model = {}, uint32_t effort = 1) {
  const l3_image image = drawing.image();
  l3_encode_options options = l3_encode_options_init();
  options.method = method;
  options.effort = effort;
  options.model = model.empty() ? nullptr : model.data();
  options.model_size = model.size();
  options.tile_width = tile_width;
  options.tile_height = tile_height;
  Bytes file(l3_encode_bound(&image, &options));
  size_t written = 0;
  l3_error error{};
  if (l3_encode(&image, &options, file.data(), file.size(), &written, &error) != L3_OK) {
    stop(drawing.name() + ": " + error.reason);
  }
  file.resize(written);
  return file;
}

class Samples {
 public:
  explicit Samples(std::filesystem::path directory)
      : directory_(std::move(directory)), list_(directory_ / "list.tsv", std::ios::binary) {}

  // Judges a file and writes it with the verdicts.
  void add(const char* kind, const Bytes& file) {
    char number[16];
    std::snprintf(number, sizeof(number), "%04d_", count_++);
    const std::string name = number + std::string(kind);
    write(name + ".l3", file);

    l3_info info = l3_info_init();
    l3_error error{};
    Bytes samples(1);
    if (l3_read_info(file.data(), file.size(), nullptr, &info, nullptr) == L3_OK) samples.resize(info.image_bytes);
    const l3_status decoded = l3_decode(file.data(), file.size(), nullptr, samples.data(), samples.size(), 0, &error);
    if (decoded == L3_OK) {
      const std::string header = pam::header(info);
      pam::reorder(info, samples);
      write(name + ".pam", drawing::joined(Bytes(header.begin(), header.end()), samples));
    }
    const l3_status verified = l3_verify(file.data(), file.size(), nullptr, &error);
    const bool inside_metadata = std::string(error.reason).find("metadata") != std::string::npos;
    list_ << name << '\t' << (decoded == L3_OK ? "ok" : "reject") << '\t'
          << (verified == L3_OK ? "ok"
              : inside_metadata ? "reject-metadata"
                                : "reject")
          << '\n';
  }

  void finish() {
    list_.close();
    if (!list_) stop("cannot write the list");
    std::printf("%d files\n", count_);
  }

 private:
  void write(const std::string& name, const Bytes& bytes) {
    std::ofstream out(directory_ / name, std::ios::binary);
    out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    out.close();
    if (!out) stop("cannot write " + name);
  }

  std::filesystem::path directory_;
  std::ofstream list_;
  int count_ = 0;
};

void add_drawn(Samples& samples) {
  const Size sizes[] = {{1, 1}, {1, 9}, {9, 1}, {31, 33}, {33, 9}, {32, 8}, {40, 20}};
  size_t i = 0;
  for (const Type& type : drawing::all_types()) {
    const Size& size = sizes[i % std::size(sizes)];
    const drawing::Pattern pattern = drawing::kPatterns[i / 2 % std::size(drawing::kPatterns)];
    Drawing d = drawing::draw(size, type, pattern);
    if (++i % 3 == 0) d = drawing::with_sections(d);
    samples.add(drawing::name_of(pattern), encode(d, 32, 32));
    samples.add("mixed", encode(drawing::draw_mixed({1 + size.width / 2, size.height}, type), 32, 32));
  }
  const Type rgb{L3_COLOUR_RGB, 8};
  samples.add("larger_tiles", encode(drawing::draw({150, 70}, rgb, drawing::Pattern::natural), 64, 64));
  samples.add("one_tile", encode(drawing::draw({65, 127}, rgb, drawing::Pattern::natural), 128, 128));
}

constexpr l3_colour kColours[] = {L3_COLOUR_GRAY, L3_COLOUR_GRAY_ALPHA, L3_COLOUR_RGB, L3_COLOUR_RGB_ALPHA,
                                  L3_COLOUR_PALETTE};

// Dense tiles, by models that were fitted and by models that no encoder would make.
void add_dense(Samples& samples) {
  Dice dice(35);
  const auto draw = [&](l3_colour colour, uint32_t most_width, uint32_t most_height) {
    const Size size{1 + dice.roll(most_width), 1 + dice.roll(most_height)};
    return drawing::draw(size, {colour, 8}, dice.pick(drawing::kPatterns), dice.next());
  };
  for (const l3_colour colour : kColours) {
    for (int round = 0; round < 4; ++round) samples.add("dense", encode(draw(colour, 70, 40), 64, 32, L3_METHOD_DENSE));
    for (int round = 0; round < 30; ++round) {
      const Drawing d = draw(colour, 50, 25);
      const Bytes file = encode(d, 32, 32, L3_METHOD_DENSE, by_hand::any_model(dice, d.channels()));
      samples.add("any_model", file);
      // With one bit less or more, sealed again: of the model, or of a tile.
      Parts parts = by_hand::take_apart(file);
      Bytes& model = parts.sections.back().bytes;
      Bytes& payload = parts.tiles[0].payload;
      Bytes& bytes = dice.chance(3) && !payload.empty() ? payload : model;
      const size_t reach = dice.chance(2) ? bytes.size() : std::min<size_t>(bytes.size(), 60);
      bytes[dice.roll(reach)] ^= static_cast<uint8_t>(1u << dice.roll(8));
      samples.add("sealed_dense", by_hand::put_together(parts));
    }
  }
}

// Token models, and with one bit less or more, sealed again: of the model, or of a tile.
void add_tokens(Samples& samples) {
  Dice dice(36);
  for (const Type& type : drawing::all_types()) {
    const uint32_t channels = type.colour == L3_COLOUR_PALETTE ? 1 : static_cast<uint32_t>(type.colour) + 1;
    for (int round = 0; round < 3; ++round) {
      const Size size{1 + dice.roll(40), 1 + dice.roll(20)};
      const by_hand::TokenModel model = by_hand::any_token_model(dice, channels, type.bits, dice.chance(2));
      const Parts parts = by_hand::any_token_file(dice, size, type, model).parts;
      samples.add("token", by_hand::put_together(parts));
      for (int spoiled = 0; spoiled < 3; ++spoiled) {
        Parts other = parts;
        Bytes& payload = other.tiles[0].payload;
        Bytes& bytes = dice.chance(4) && !payload.empty() ? payload : other.sections.back().bytes;
        const size_t reach = dice.chance(2) ? bytes.size() : std::min<size_t>(bytes.size(), 60);
        bytes[dice.roll(reach)] ^= static_cast<uint8_t>(1u << dice.roll(8));
        samples.add("sealed_token", by_hand::put_together(other));
      }
    }
  }
}

// Screens, whose pixels follow others: from this effort on, the encoder lets them do so where that saves little, too.
void add_screens(Samples& samples) {
  constexpr uint32_t kEffort = 6;
  for (const l3_colour colour : kColours) {
    const Drawing d = drawing::screen({300, 180}, {colour, 8});
    samples.add("screen", encode(d, 160, 96, L3_METHOD_DENSE, {}, kEffort));
  }
}

void add_any_streams(Samples& samples) {
  Dice dice(31);
  for (const Type& type : drawing::all_types()) {
    for (int round = 0; round < 2; ++round) {
      const Size size{1 + dice.roll(70), 1 + dice.roll(20)};
      samples.add("any_stream",
                  by_hand::put_together(by_hand::any_parts(dice, size, type, 32 + 32 * dice.roll(2), 32)));
    }
  }
}

// Files to damage: with all methods, and with all sections.
std::vector<Bytes> subjects() {
  const auto mixed = [](Size third, l3_colour colour, uint32_t bits) {
    return drawing::draw_mixed(third, {colour, bits});
  };
  return {encode(mixed({32, 10}, L3_COLOUR_GRAY, 1), 32, 32), encode(mixed({32, 3}, L3_COLOUR_RGB, 8), 32, 32),
          encode(mixed({32, 2}, L3_COLOUR_GRAY_ALPHA, 16), 32, 32),
          encode(drawing::with_sections(mixed({32, 5}, L3_COLOUR_PALETTE, 4)), 32, 32),
          encode(drawing::with_sections(mixed({5, 5}, L3_COLOUR_RGB_ALPHA, 11)), 32, 32)};
}

void add_damaged(Samples& samples) {
  Dice dice(32);
  for (const Bytes& subject : subjects()) {
    for (int i = 0; i < 40; ++i) {
      Bytes flipped = subject;
      const size_t bit = dice.roll(8 * subject.size());
      flipped[bit / 8] = static_cast<uint8_t>(flipped[bit / 8] ^ 1u << (bit % 8));
      samples.add("flip", flipped);
    }
    for (int i = 0; i < 12; ++i) {
      samples.add("truncated",
                  Bytes(subject.begin(), subject.begin() + static_cast<ptrdiff_t>(dice.roll(subject.size()))));
    }
    samples.add("appended", drawing::joined(subject, Bytes(16)));
  }
}

// Metadata in stored blocks, into which the oracle can look.
void add_metadata(Samples& samples) {
  Dice dice(34);
  for (int i = 0; i < 200; ++i) {
    by_hand::Frame frame{.contents = by_hand::two_records()};
    uint32_t unpacked = static_cast<uint32_t>(frame.contents.size());
    switch (i % 8) {
      case 0: unpacked += dice.roll(3); break;
      case 1: frame.contents.resize(dice.roll(30)); break;
      case 2: frame.after = dice.bytes(dice.roll(3)); break;
      case 3: frame.descriptor = dice.byte(); break;
      case 4:
        frame = {.descriptor = 0, .fields = {static_cast<uint8_t>(dice.roll(256))}, .contents = frame.contents};
        break;
      case 5:
        frame = {.descriptor = static_cast<uint8_t>(0x20 | dice.roll(4)),
                 .fields = {static_cast<uint8_t>(dice.roll(2)), 27, 0, 0, 0},
                 .contents = frame.contents};
        frame.fields.resize(2 + dice.roll(4));
        break;
      case 6:
        frame = {.descriptor = 0x80,
                 .fields = {static_cast<uint8_t>(dice.roll(256)), 27, 0, 0, 0},
                 .contents = frame.contents};
        break;
      default: frame.contents[dice.roll(27)] = static_cast<uint8_t>(dice.roll(5)); break;
    }
    Parts parts;
    parts.header = by_hand::header(1, 1, L3_COLOUR_GRAY, 8);
    parts.sections.push_back({L3_SECTION_METADATA, by_hand::packed(frame, unpacked)});
    if (i % 40 == 39) parts.sections[0].bytes.resize(1 + dice.roll(16));
    parts.tiles.resize(1);
    samples.add("metadata", by_hand::put_together(parts));
  }
}

// Damaged, with checks that match: what is refused is refused by a rule.
void add_sealed(Samples& samples) {
  Dice dice(33);
  const auto any_types = drawing::all_types();
  const std::vector<Bytes> from = subjects();
  for (int i = 0; i < 1600; ++i) {
    Parts parts = dice.chance(2)
                      ? by_hand::take_apart(dice.pick(from))
                      : by_hand::any_parts(dice, {1 + dice.roll(40), 1 + dice.roll(12)}, dice.pick(any_types));
    by_hand::Edit edit;
    const char* kind = "sealed_payload";
    switch (i % 14) {
      case 0: {
        const uint64_t value = dice.next();
        constexpr size_t kFields[] = {8, 12, 16, 20, 24, 28, 32, 34, 35, 36, 37, 38, 39};
        parts.header[dice.pick(kFields)] ^= static_cast<uint8_t>(1u << value % 8);
        kind = "sealed_header";
        break;
      }
      case 1:
      case 2: {
        const uint64_t seed = dice.next();
        edit = [seed](Bytes& file, const by_hand::Layout& layout) {
          Dice own(seed);
          const size_t size = by_hand::pad(layout.index_end) - 64;
          const size_t at = 64 + own.roll(size);
          file[at] = static_cast<uint8_t>(own.chance(2) ? file[at] ^ 1u << own.roll(8) : own.roll(6));
        };
        kind = "sealed_entries";
        break;
      }
      case 3: {
        parts = by_hand::take_apart(from[3 + dice.roll(2)]);  // those with all sections
        by_hand::SectionPart& section = dice.pick(parts.sections);
        if (dice.chance(2)) {
          section.bytes.resize(1 + dice.roll(section.bytes.size() + 2));
        } else {
          section.bytes[dice.roll(section.bytes.size())] ^= 1;
        }
        kind = "sealed_section";
        break;
      }
      case 4: {
        by_hand::TilePart& tile = dice.pick(parts.tiles);
        tile.payload.resize(tile.payload.size() + (dice.chance(2) ? 16 : tile.payload.empty() ? 0u : size_t(-16)));
        kind = "sealed_size";
        break;
      }
      default: {
        by_hand::TilePart& tile = dice.pick(parts.tiles);
        if (tile.payload.empty()) {
          tile.value[dice.roll(4)] ^= static_cast<uint16_t>(1u << dice.roll(16));
          break;
        }
        const size_t reach = dice.chance(2) ? tile.payload.size() : 16;
        tile.payload[dice.roll(reach)] ^= static_cast<uint8_t>(1u << dice.roll(8));
        break;
      }
    }
    samples.add(kind, by_hand::put_together(parts, edit));
  }
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) stop("wants a directory");
  Samples samples(arguments[1]);
  add_drawn(samples);
  add_any_streams(samples);
  add_dense(samples);
  add_tokens(samples);
  add_screens(samples);
  add_damaged(samples);
  add_sealed(samples);
  add_metadata(samples);
  samples.finish();
  return 0;
}
