// Draws a picture with the escape sequences of a terminal.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "picture.h"

namespace tools {

// kitty: the pixels themselves. sixel: at most 256 colours. blocks: a character, half a block, for each two pixels.
enum class Protocol : uint8_t { blocks, sixel, kitty };

// Gets the output, piece by piece. Between pieces no escape sequence is half-written, except that all of a sixel
// picture is one. Returns false if there is no point in more.
using Put = std::function<bool(std::string_view)>;

void draw_kitty(const OpaqueImage& picture, const Put& put);
void draw_sixel(const OpaqueImage& picture, const Put& put);
// `true_colour`: colours of 24 bits; else the nearest ones of the 240 that are the same in all terminals.
void draw_blocks(const OpaqueImage& picture, bool true_colour, const Put& put);

// What ends a picture of which only some bytes arrived.
std::string_view ending(Protocol protocol);

}  // namespace tools
