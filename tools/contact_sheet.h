// l3 info --html: a page with small pictures of the images of a data set, a folder of L3 files, or one L3 file.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "options.h"

namespace tools {

struct SheetOptions {
  std::string in;
  std::string out;       // "-" is stdout
  uint32_t images = 60;  // the most that the page shows
  std::vector<std::string> models;
  l3_limits limits{};
};

int write_contact_sheet(const SheetOptions& options, Context& context);

// How a tile is stored: its method, and for dense tiles where their model comes from.
inline constexpr std::array<std::string_view, 6> kTileKinds = {
    "constant", "raw", "fast", "dense, own model", "dense, named model", "dense, default model"};
// In the picture of the tiles: red, green, blue. They differ for people who see fewer colours, too.
inline constexpr std::array<std::array<uint8_t, 3>, kTileKinds.size()> kTileColours = {{{0x9A, 0x9A, 0x9A},
                                                                                        {0xD5, 0x5E, 0x00},
                                                                                        {0xF0, 0xE4, 0x42},
                                                                                        {0x00, 0x72, 0xB2},
                                                                                        {0xCC, 0x79, 0xA7},
                                                                                        {0x00, 0x9E, 0x73}}};

// What the page says of an image.
struct Card {
  std::string name;
  uint64_t bytes = 0;
  uint32_t width = 0, height = 0;
  std::string layout;         // "rgb, 8 bits"
  std::string label, group;   // empty: it has none
  std::string model;          // name of the model in hexadecimal digits, if it is a named one
  bool is_stretched = false;  // the picture has been brightened
  std::array<uint64_t, kTileKinds.size()> tiles{};
  uint32_t shown_width = 0, shown_height = 0;  // on the page; the picture is enlarged to it by a whole factor
  std::vector<uint8_t> picture, tile_picture;  // PNG files
  std::string failure;                         // why there is no picture, or what is damaged; empty: nothing
};

struct SheetPage {
  std::string title;
  uint64_t images = 0;  // in all, also those without a card
  uint64_t others = 0;  // samples that are not images
  std::vector<Card> cards;
};

// One HTML file for any browser, light and dark, that loads nothing from elsewhere and runs no script.
std::string sheet_html(const SheetPage& page);

}  // namespace tools
