// Writes small L3 files of token models, with the samples that whoever wrote them knows, for oracle_test.py to compare.
// libl3 has no part in it:
//
//     token_samples DIR
//
// DIR/list.tsv and the files are those of oracle_samples.cpp; all of them are good.
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "any_token_tile.h"
#include "pam.h"

namespace {

using namespace by_hand;

std::filesystem::path directory;
int count = 0;

void write(const std::string& name, const Bytes& bytes) {
  std::ofstream out(directory / name, std::ios::binary);
  out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  out.close();
  if (!out) {
    std::fprintf(stderr, "token_samples: cannot write %s\n", name.c_str());
    std::exit(1);
  }
}

void add(std::ofstream& list, const drawing::Size& size, const drawing::Type& type, const Bytes& file, Bytes pixels) {
  char name[16];
  std::snprintf(name, sizeof(name), "%04d_token", count++);
  write(std::string(name) + ".l3", file);
  l3_info info = l3_info_init();
  info.width = size.width;
  info.height = size.height;
  info.bits = type.bits;
  info.colour = type.colour;
  info.channels = type.colour == L3_COLOUR_PALETTE ? 1 : static_cast<uint32_t>(type.colour) + 1;
  const std::string header = pam::header(info);
  pam::reorder(info, pixels);
  write(std::string(name) + ".pam", drawing::joined(Bytes(header.begin(), header.end()), pixels));
  list << name << "\tok\tok\n";
}

// Drawn models, with symbols as chance has them; some in wide tiles, whose rows are stored in several parts.
void add_random(std::ofstream& list) {
  Dice dice(41);
  for (const drawing::Type& type : drawing::all_types()) {
    for (int round = 0; round < 6; ++round) {
      const bool is_wide = round < 2;
      const drawing::Size size{1 + dice.roll(is_wide ? 300 : 60), 1 + dice.roll(is_wide ? 8 : 30)};
      const uint32_t channels = type.colour == L3_COLOUR_PALETTE ? 1 : static_cast<uint32_t>(type.colour) + 1;
      const TokenFile file =
          any_token_file(dice, size, type, any_token_model(dice, channels, type.bits, dice.chance(2)),
                         is_wide ? 320 : 32 + 32 * dice.roll(2), 32);
      add(list, size, type, put_together(file.parts), file.pixels);
    }
  }
}

// Drawn images, in whose pixels models find things to match.
void add_drawn(std::ofstream& list) {
  Dice dice(42);
  for (const drawing::Type& type : drawing::all_types()) {
    const drawing::Size size{1 + dice.roll(32), 1 + dice.roll(32)};
    const drawing::Drawing d = drawing::draw(size, type, dice.pick(drawing::kPatterns), dice.next());
    uint32_t flags = 0;
    do {
      flags = any_token_flags(dice, d.channels());
    } while ((flags & (kRanks | kColours)) != 0);
    const TokenModel model = any_token_model(dice, d.channels(), type.bits, flags);
    std::vector<uint32_t> samples;
    for (uint32_t y = 0; y < size.height; ++y) {
      for (uint32_t x = 0; x < size.width; ++x) {
        for (uint32_t c = 0; c < d.channels(); ++c) samples.push_back(d.sample(x, y, c));
      }
    }
    Parts parts;
    parts.header = header(size.width, size.height, type.colour, type.bits, 32, 32);
    if (!d.palette.empty()) parts.sections.push_back({L3_SECTION_PALETTE, palette_section(d.palette)});
    parts.sections.push_back({L3_SECTION_MODEL, model.section.bytes()});
    TokenTileWriter writer(dice, model, size.width, size.height, dice.roll(6));
    const Bytes payload = writer.of(samples);
    parts.tiles.push_back({3, writer.parameters(), {}, payload});
    add(list, size, type, put_together(parts), d.pixels);
  }
}

}  // namespace

int main(int arguments, char** words) {
  if (arguments != 2) {
    std::fputs("token_samples: wants a directory\n", stderr);
    return 1;
  }
  directory = words[1];
  std::ofstream list(directory / "list.tsv", std::ios::binary);
  add_random(list);
  add_drawn(list);
  list.close();
  std::printf("%d files\n", count);
  return list ? 0 : 1;
}
