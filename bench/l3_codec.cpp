// L3 by libl3, with the method fast.
#include "bridge/image_bridge.h"
#include "codec.h"

namespace bench {
namespace {

std::optional<formats::Error> encode(const formats::Image& image, bridge::Buffer& file) {
  l3_encode_options options = l3_encode_options_init();
  options.method = L3_METHOD_FAST;
  return bridge::encode_l3(image, options, file);
}

std::optional<formats::Error> decode(std::span<const uint8_t> file, formats::Image& image) {
  bridge::DecodeSettings settings;
  settings.limits = {UINT64_MAX, UINT64_MAX, UINT64_MAX};
  std::optional<formats::Error> metadata_error;
  if (auto error = bridge::decode_l3(file, settings, image, &metadata_error)) return error;
  return metadata_error;
}

bool never(std::span<const uint8_t>) { return false; }

}  // namespace

const Codec kL3Codec = {"l3-fast", encode, decode, never};

}  // namespace bench
