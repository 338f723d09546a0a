// Finds which codecs are beaten, and by which others.
#pragma once

#include <vector>

#include "bench/figures.h"

namespace bench {

enum class Direction : uint8_t { decode, encode };

// The speed on one thread, in MP/s.
double speed_of(const CodecFigures& codec, Direction direction);

// Returns whether a codec competes: it was measured, can hold all images of the set, and returns them without loss.
bool competes(const SetFigures& set, const CodecFigures& codec, Direction direction);

// Returns the codecs that beat `codec`: those that compete, are no larger and no slower, and are smaller or faster.
// A codec is on the frontier if it competes and no codec beats it.
std::vector<const CodecFigures*> beaten_by(const SetFigures& set, const CodecFigures& codec, Direction direction);
bool on_frontier(const SetFigures& set, const CodecFigures& codec, Direction direction);

// Returns whether the codec is one of ours.
bool is_ours(const CodecFigures& codec);

}  // namespace bench
