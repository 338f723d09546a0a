// JPEG by libjpeg-turbo, the lossy reference. It uses the library's defaults, with colours at half the resolution (full
// resolution at quality 100), and the accurate transform for decoding.
//
// libjpeg reports errors by longjmp, so no object with a destructor may be alive where it can jump.
#include <cstdio>  // before jpeglib.h, which needs it

#include <jpeglib.h>

#include <csetjmp>
#include <cstdlib>
#include <cstring>

#include "codec.h"

namespace bench {
namespace {

struct Failure {
  jpeg_error_mgr manager;  // first: libjpeg knows only this part
  jmp_buf jump;
  char text[JMSG_LENGTH_MAX];
};

[[noreturn]] void on_error(j_common_ptr info) {
  Failure* failure = reinterpret_cast<Failure*>(info->err);
  info->err->format_message(info, failure->text);
  std::longjmp(failure->jump, 1);
}

void on_message(j_common_ptr info, int level) {
  if (level < 0) on_error(info);
}

void prepare(Failure& failure) {
  jpeg_std_error(&failure.manager);
  failure.manager.error_exit = on_error;
  failure.manager.emit_message = on_message;
}

struct Encoder {
  jpeg_compress_struct info;
  Failure failure;
  unsigned char* file;
  unsigned long size;
};

struct Decoder {
  jpeg_decompress_struct info;
  Failure failure;
};

bool is_gray(const formats::Image& image) { return image.colour == formats::Colour::gray; }

bool compress(Encoder& encoder, const uint8_t* pixels, uint32_t width, uint32_t height, bool gray, int quality) {
  jpeg_compress_struct& info = encoder.info;
  info.err = &encoder.failure.manager;
  if (setjmp(encoder.failure.jump) != 0) return false;
  jpeg_create_compress(&info);
  jpeg_mem_dest(&info, &encoder.file, &encoder.size);
  info.image_width = width;
  info.image_height = height;
  info.input_components = gray ? 1 : 3;
  info.in_color_space = gray ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, quality, TRUE);
  if (quality == 100) info.comp_info[0].h_samp_factor = info.comp_info[0].v_samp_factor = 1;
  jpeg_start_compress(&info, TRUE);
  const size_t row_bytes = size_t{width} * static_cast<size_t>(info.input_components);
  while (info.next_scanline < height) {
    JSAMPROW row = const_cast<uint8_t*>(pixels) + info.next_scanline * row_bytes;
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  return true;
}

bool decompress(Decoder& decoder, const uint8_t* file, size_t size, uint8_t* pixels, uint32_t width, uint32_t height,
                bool gray) {
  jpeg_decompress_struct& info = decoder.info;
  info.err = &decoder.failure.manager;
  if (setjmp(decoder.failure.jump) != 0) return false;
  jpeg_create_decompress(&info);
  jpeg_mem_src(&info, file, static_cast<unsigned long>(size));
  jpeg_read_header(&info, TRUE);
  if (info.image_width != width || info.image_height != height) {
    std::strcpy(decoder.failure.text, "another size");
    return false;
  }
  info.out_color_space = gray ? JCS_GRAYSCALE : JCS_RGB;
  info.dct_method = JDCT_ISLOW;
  jpeg_start_decompress(&info);
  const size_t row_bytes = size_t{width} * (gray ? 1 : 3);
  while (info.output_scanline < height) {
    JSAMPROW row = pixels + info.output_scanline * row_bytes;
    jpeg_read_scanlines(&info, &row, 1);
  }
  jpeg_finish_decompress(&info);
  return true;
}

std::string version() {
  return "libjpeg-turbo " + std::to_string(LIBJPEG_TURBO_VERSION_NUMBER / 1000000) + "." +
         std::to_string(LIBJPEG_TURBO_VERSION_NUMBER / 1000 % 1000) + "." +
         std::to_string(LIBJPEG_TURBO_VERSION_NUMBER % 1000);
}

std::string cannot_hold(const formats::Image& image) {
  if (image.colour == formats::Colour::palette) return "palette";
  if (formats::channels(image.colour) % 2 == 0) return "alpha";
  if (image.bits != 8) return std::to_string(image.bits) + (image.bits == 1 ? " bit" : " bits");
  return image.width > JPEG_MAX_DIMENSION || image.height > JPEG_MAX_DIMENSION ? "an edge beyond 65500" : "";
}

std::optional<formats::Error> encode(const formats::Image& image, int level, bridge::Buffer& file) {
  Encoder encoder{};
  prepare(encoder.failure);
  const bool done = compress(encoder, image.pixels.data(), image.width, image.height, is_gray(image), level);
  std::optional<formats::Error> error;
  if (done) {
    std::memcpy(file.reset(encoder.size), encoder.file, encoder.size);
  } else {
    error = failed(encoder.failure.text);
  }
  jpeg_destroy_compress(&encoder.info);
  std::free(encoder.file);
  return error;
}

std::optional<formats::Error> decode(std::span<const uint8_t> file, formats::Image& image) {
  make_room(image);
  Decoder decoder{};
  prepare(decoder.failure);
  const bool done =
      decompress(decoder, file.data(), file.size(), image.pixels.data(), image.width, image.height, is_gray(image));
  jpeg_destroy_decompress(&decoder.info);
  return done ? std::nullopt : std::optional(failed(decoder.failure.text));
}

constexpr Adapter kAdapter = {version, cannot_hold, encode, decode};

}  // namespace

const Adapter* jpeg_adapter() { return &kAdapter; }

}  // namespace bench
