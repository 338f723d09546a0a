#include "frontier.h"

namespace bench {

double speed_of(const CodecFigures& codec, Direction direction) {
  return direction == Direction::decode ? codec.decode.median : codec.encode.median;
}

bool competes(const SetFigures& set, const CodecFigures& codec, Direction direction) {
  return codec.absent.empty() && !codec.lossy && codec.lossless && codec.files == set.files && codec.files > 0 &&
         speed_of(codec, direction) > 0;
}

std::vector<const CodecFigures*> beaten_by(const SetFigures& set, const CodecFigures& codec, Direction direction) {
  std::vector<const CodecFigures*> better;
  const double speed = speed_of(codec, direction);
  for (const CodecFigures& other : set.codecs) {
    if (&other == &codec || !competes(set, other, direction)) continue;
    const double other_speed = speed_of(other, direction);
    if (other.bytes > codec.bytes || other_speed < speed) continue;
    if (other.bytes < codec.bytes || other_speed > speed) better.push_back(&other);
  }
  return better;
}

bool on_frontier(const SetFigures& set, const CodecFigures& codec, Direction direction) {
  return competes(set, codec, direction) && beaten_by(set, codec, direction).empty();
}

bool is_ours(const CodecFigures& codec) {
  return codec.name.starts_with("l3-fast") || codec.name.starts_with("l3-dense");
}

}  // namespace bench
