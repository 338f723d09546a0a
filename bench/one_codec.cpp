#include "bench/one_codec.h"

#include "codecs/codec.h"

namespace bench {

std::optional<OneCodec> OneCodec::find(const std::string& name) {
  for (const Codec& codec : all_codecs()) {
    if (name == codec.name && codec.adapter() != nullptr) return OneCodec(codec);
  }
  return std::nullopt;
}

bool OneCodec::holds(const formats::Image& image) const { return codec_->adapter()->cannot_hold(image).empty(); }

bool OneCodec::takes(std::span<const uint8_t> supplied) const {
  const Adapter& adapter = *codec_->adapter();
  return adapter.takes_supplied != nullptr && adapter.takes_supplied(supplied);
}

std::optional<formats::Error> OneCodec::encode(const formats::Image& image, bridge::Buffer& file) const {
  return codec_->adapter()->encode(image, codec_->level, file);
}

std::optional<formats::Error> OneCodec::decode(std::span<const uint8_t> file, formats::Image& image) const {
  return codec_->adapter()->decode(file, image);
}

}  // namespace bench
