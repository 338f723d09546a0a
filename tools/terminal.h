// What the terminal is, for l3 show.
#pragma once

#include <cstdint>

#include "command_line.h"
#include "draw.h"
#include "loader/geometry.h"

namespace tools {

// The pixels that a terminal has room for. `columns`: how wide the picture may be, in characters; it may then be
// higher than the terminal. 0: the whole terminal but one line, for the prompt.
loader::Size room_of_terminal(Protocol protocol, uint32_t columns);

// The best protocol that the terminal says it understands, by its environment or by its answer to a question.
// stdout must be a terminal; if stdin is none, it is not asked.
Protocol protocol_of_terminal(Context& context);

bool has_true_colour();

}  // namespace tools
