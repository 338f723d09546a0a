// Which codecs are beaten, and by whom.
#pragma once

#include <vector>

#include "bench/figures.h"

namespace bench {

enum class Direction : uint8_t { decode, encode };

// On one thread, in MP/s.
double speed_of(const CodecFigures& codec, Direction direction);

// Whether a codec is in the contest: it was measured, holds all images of the set, and gives them back as they were.
bool competes(const SetFigures& set, const CodecFigures& codec, Direction direction);

// Those that compete and are no larger and no slower than `codec`, but smaller or quicker. A codec that competes and is
// beaten by none is on the frontier.
std::vector<const CodecFigures*> beaten_by(const SetFigures& set, const CodecFigures& codec, Direction direction);
bool on_frontier(const SetFigures& set, const CodecFigures& codec, Direction direction);

// By our own encoder.
bool is_ours(const CodecFigures& codec);

}  // namespace bench
