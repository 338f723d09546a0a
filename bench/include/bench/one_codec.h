// Finds one codec by name, for other uses than the benchmark.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "bridge/buffer.h"
#include "formats/formats.h"

namespace bench {

struct Codec;

class OneCodec {
 public:
  // Returns nothing if there is no such codec, or its library is missing.
  static std::optional<OneCodec> find(const std::string& name);

  bool holds(const formats::Image& image) const;
  // Returns whether the codec reads this source file directly.
  bool takes(std::span<const uint8_t> supplied) const;
  std::optional<formats::Error> encode(const formats::Image& image, bridge::Buffer& file) const;
  // The caller sets the width, height, bits and colour of `image`.
  std::optional<formats::Error> decode(std::span<const uint8_t> file, formats::Image& image) const;

 private:
  explicit OneCodec(const Codec& codec) : codec_(&codec) {}

  const Codec* codec_;
};

}  // namespace bench
