// One codec by its name, for whoever does more with it than measure it alone.
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
  // Nothing where there is no such codec, or where its library is not there.
  static std::optional<OneCodec> find(const std::string& name);

  bool holds(const formats::Image& image) const;
  // Whether files as supplied are this codec's own.
  bool takes(std::span<const uint8_t> supplied) const;
  std::optional<formats::Error> encode(const formats::Image& image, bridge::Buffer& file) const;
  // `image` comes with the shape that the file's image has.
  std::optional<formats::Error> decode(std::span<const uint8_t> file, formats::Image& image) const;

 private:
  explicit OneCodec(const Codec& codec) : codec_(&codec) {}

  const Codec* codec_;
};

}  // namespace bench
