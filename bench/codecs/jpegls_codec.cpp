// JPEG-LS by CharLS, with HP's reversible colour transform.
#include <charls/charls.h>

#include <algorithm>
#include <memory>

#include "codec.h"

namespace bench {
namespace {

struct Destroy {
  void operator()(charls_jpegls_encoder* encoder) const { charls_jpegls_encoder_destroy(encoder); }
  void operator()(charls_jpegls_decoder* decoder) const { charls_jpegls_decoder_destroy(decoder); }
};

std::string version() { return std::string("CharLS ") + charls_get_version_string(); }

std::string cannot_hold(const formats::Image& image) {
  if (image.colour == formats::Colour::gray_alpha) return "gray with alpha";
  return image.width > 65535 || image.height > 65535 ? "an edge beyond 65535" : "";
}

formats::Error error_of(charls_jpegls_errc code) { return failed(charls_get_error_message(code)); }

std::optional<formats::Error> encode(const formats::Image& image, int, bridge::Buffer& file) {
  const std::unique_ptr<charls_jpegls_encoder, Destroy> encoder(charls_jpegls_encoder_create());
  if (encoder == nullptr) return failed("out of memory");
  const uint32_t channels = formats::channels(image.colour);
  charls_frame_info frame{};
  frame.width = image.width;
  frame.height = image.height;
  frame.bits_per_sample = static_cast<int32_t>(std::max(image.bits, 2U));
  frame.component_count = static_cast<int32_t>(channels);
  charls_jpegls_errc code = charls_jpegls_encoder_set_frame_info(encoder.get(), &frame);
  const auto then = [&](charls_jpegls_errc next) {
    if (code == charls::jpegls_errc::success) code = next;
  };
  if (channels > 1) then(charls_jpegls_encoder_set_interleave_mode(encoder.get(), charls::interleave_mode::line));
  if (channels == 3 && (image.bits == 8 || image.bits == 16)) {
    then(charls_jpegls_encoder_set_color_transformation(encoder.get(), charls::color_transformation::hp1));
  }
  size_t bound = 0, written = 0;
  then(charls_jpegls_encoder_get_estimated_destination_size(encoder.get(), &bound));
  // The library's estimate is too low for noise, which may grow.
  bound += bound / 2;
  then(charls_jpegls_encoder_set_destination_buffer(encoder.get(), file.reset(bound), bound));
  then(charls_jpegls_encoder_encode_from_buffer(encoder.get(), image.pixels.data(), image.pixels.size(), 0));
  then(charls_jpegls_encoder_get_bytes_written(encoder.get(), &written));
  if (code != charls::jpegls_errc::success) return error_of(code);
  file.truncate(written);
  return std::nullopt;
}

std::optional<formats::Error> decode(std::span<const uint8_t> file, formats::Image& image) {
  const std::unique_ptr<charls_jpegls_decoder, Destroy> decoder(charls_jpegls_decoder_create());
  if (decoder == nullptr) return failed("out of memory");
  make_room(image);
  size_t size = 0;
  charls_jpegls_errc code = charls_jpegls_decoder_set_source_buffer(decoder.get(), file.data(), file.size());
  const auto then = [&](auto next) {
    if (code == charls::jpegls_errc::success) code = next();
  };
  then([&] { return charls_jpegls_decoder_read_header(decoder.get()); });
  then([&] { return charls_jpegls_decoder_get_destination_size(decoder.get(), 0, &size); });
  if (code == charls::jpegls_errc::success && size != image.pixels.size())
    return failed("the decoded image has another size");
  then([&] { return charls_jpegls_decoder_decode_to_buffer(decoder.get(), image.pixels.data(), size, 0); });
  return code == charls::jpegls_errc::success ? std::nullopt : std::optional(error_of(code));
}

constexpr Adapter kAdapter = {version, cannot_hold, encode, decode};

}  // namespace

const Adapter* jpegls_adapter() { return &kAdapter; }

}  // namespace bench
