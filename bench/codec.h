// What a codec must be able to do to be measured. One file for each of them has its table.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>

#include "bridge/buffer.h"
#include "formats/formats.h"

namespace bench {

// Both functions work on one thread, are safe to call from many, and keep the room of their output from call to call.
struct Codec {
  const char* name;
  std::optional<formats::Error> (*encode)(const formats::Image& image, bridge::Buffer& file);
  std::optional<formats::Error> (*decode)(std::span<const uint8_t> file, formats::Image& image);
  // Which file is sized and decoded: the one as supplied, where this codec can read it, or what `encode` makes.
  bool (*takes_supplied)(std::span<const uint8_t> supplied);
};

extern const Codec kPngCodec;
extern const Codec kL3Fast, kL3Dense1, kL3Dense5, kL3Dense9;
extern const Codec kL3Paper;

inline const std::array<const Codec*, 6> kCodecs = {&kPngCodec, &kL3Fast,   &kL3Dense1,
                                                    &kL3Dense5, &kL3Dense9, &kL3Paper};

}  // namespace bench
