// Reads JPEG with libjpeg-turbo: gray, colour and CMYK (as RGB) with 8 bits. The pixels are those of the accurate
// transform.
//
// libjpeg reports errors with longjmp. Functions that call setjmp, and callbacks of libjpeg, must not have objects with
// destructors when libjpeg may jump. They share only plain structs with the C++ code around them.
#include <cstdio>  // before jpeglib.h, which needs it

#include <jerror.h>
#include <jpeglib.h>

#include <algorithm>
#include <csetjmp>
#include <cstdlib>
#include <memory>
#include <string_view>

#include "adapters.h"
#include "metadata.h"

namespace formats {
namespace {

// Each scan takes time for the whole image, even if it has few bytes. Encoders write about ten scans.
constexpr int kMaxScans = 100;

// The reason why libjpeg failed. `manager` must be first, because libjpeg knows only this part.
struct Failure {
  jpeg_error_mgr manager;
  jmp_buf jump;
  char text[JMSG_LENGTH_MAX];
  char harmless[JMSG_LENGTH_MAX];  // the first warning that affects no pixel
};

struct Decoder {
  jpeg_decompress_struct info;
  jpeg_progress_mgr progress;
  Failure failure;
  const uint8_t* file;
  size_t size;
  uint8_t* pixels;
  size_t row_bytes;
  uint8_t* inks;    // a row of CMYK; null if the file is not CMYK
  JOCTET* profile;  // from malloc
  unsigned int profile_bytes;
};

[[noreturn]] void give_up(j_common_ptr info) { std::longjmp(reinterpret_cast<Failure*>(info->err)->jump, 1); }

[[noreturn]] void on_error(j_common_ptr info) {
  info->err->format_message(info, reinterpret_cast<Failure*>(info->err)->text);
  give_up(info);
}

// After damage, libjpeg gives a warning and invents pixels. This is treated as an error.
// Some warnings affect no pixel: bytes between two markers, except restart markers, where a scan has lost its place;
// and versions or transforms that the file names wrongly.
void on_message(j_common_ptr info, int level) {
  if (level >= 0) return;
  const int code = info->err->msg_code;
  const int marker = info->err->msg_parm.i[1];
  const bool extraneous = code == JWRN_EXTRANEOUS_DATA && !(marker >= JPEG_RST0 && marker <= JPEG_RST0 + 7);
  if (!extraneous && code != JWRN_JFIF_MAJOR && code != JWRN_ADOBE_XFORM) on_error(info);
  Failure* failure = reinterpret_cast<Failure*>(info->err);
  if (failure->harmless[0] == '\0') info->err->format_message(info, failure->harmless);
}

void on_progress(j_common_ptr info) {
  if (reinterpret_cast<j_decompress_ptr>(info)->input_scan_number <= kMaxScans) return;
  std::snprintf(reinterpret_cast<Failure*>(info->err)->text, JMSG_LENGTH_MAX, "more than %d scans", kMaxScans);
  give_up(info);
}

// Owns the memory of libjpeg for one file.
class Handle {
 public:
  explicit Handle(std::span<const uint8_t> file) {
    decoder_.info.err = jpeg_std_error(&decoder_.failure.manager);
    decoder_.failure.manager.error_exit = on_error;
    decoder_.failure.manager.emit_message = on_message;
    decoder_.progress.progress_monitor = on_progress;
    decoder_.file = file.data();
    decoder_.size = file.size();
  }
  ~Handle() {
    jpeg_destroy_decompress(&decoder_.info);
    std::free(decoder_.profile);
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  Decoder* operator->() { return &decoder_; }
  Decoder* get() { return &decoder_; }

  // Number of bytes that libjpeg has not read yet.
  size_t left() const { return decoder_.info.src == nullptr ? decoder_.size : decoder_.info.src->bytes_in_buffer; }

  Error error(const char* what) const {
    return Error{decoder_.size - left(), std::string(what) + ": " + decoder_.failure.text};
  }

 private:
  Decoder decoder_{};
};

// Reads up to the first scan. If libjpeg fails, this and the next two functions set failure.text and return false.
bool read_header(Decoder* decoder) {
  if (setjmp(decoder->failure.jump)) return false;
  jpeg_decompress_struct* info = &decoder->info;
  jpeg_create_decompress(info);
  info->progress = &decoder->progress;
  jpeg_mem_src(info, decoder->file, static_cast<unsigned long>(decoder->size));
  // Keeps the contents of markers that are used. Of others only the length is needed.
  for (int number = 1; number < 16; ++number) {
    if (number != 14) jpeg_save_markers(info, JPEG_APP0 + number, number <= 2 ? 0xFFFF : 1);
  }
  jpeg_save_markers(info, JPEG_COM, 1);
  jpeg_read_header(info, TRUE);
  return true;
}

bool read_profile(Decoder* decoder) {
  if (setjmp(decoder->failure.jump)) return false;
  jpeg_read_icc_profile(&decoder->info, &decoder->profile, &decoder->profile_bytes);
  return true;
}

// libjpeg sets the table of a component when its first scan begins, and does not report a component without a scan.
bool has_all_components(const jpeg_decompress_struct& info) {
  return std::all_of(info.comp_info, info.comp_info + info.num_components,
                     [](const jpeg_component_info& component) { return component.quant_table != nullptr; });
}

// Converts CMYK as Pillow's convert("RGB") does. Files have inverted values as Adobe writes them: 255 is no ink.
void inks_to_colours(const uint8_t* inks, size_t count, uint8_t* colours) {
  for (size_t i = 0; i < count; ++i, inks += 4, colours += 3) {
    const uint32_t light = inks[3];
    for (size_t c = 0; c < 3; ++c) {
      const uint32_t product = (255U - inks[c]) * light + 128;
      colours[c] = static_cast<uint8_t>(light - (((product >> 8) + product) >> 8));
    }
  }
}

bool read_rows(Decoder* decoder) {
  if (setjmp(decoder->failure.jump)) return false;
  jpeg_decompress_struct* info = &decoder->info;
  info->out_color_space = info->jpeg_color_space == JCS_GRAYSCALE ? JCS_GRAYSCALE
                          : decoder->inks != nullptr              ? JCS_CMYK
                                                                  : JCS_RGB;
  info->dct_method = JDCT_ISLOW;
  // Block smoothing would guess missing data of a progressive file, and differently in each version of libjpeg-turbo.
  info->do_block_smoothing = FALSE;
  jpeg_start_decompress(info);
  // By now all scans have been read, unless there is only one. The tables of components are lost at the end.
  if (!has_all_components(*info)) {
    std::snprintf(decoder->failure.text, JMSG_LENGTH_MAX, "a component is missing");
    return false;
  }
  while (info->output_scanline < info->output_height) {
    uint8_t* pixels = decoder->pixels + info->output_scanline * decoder->row_bytes;
    JSAMPROW row = decoder->inks != nullptr ? decoder->inks : pixels;
    jpeg_read_scanlines(info, &row, 1);
    if (decoder->inks != nullptr) inks_to_colours(decoder->inks, info->output_width, pixels);
  }
  jpeg_finish_decompress(info);
  return true;
}

std::string kind_problem(const jpeg_decompress_struct& info) {
  if (info.data_precision != 8) return "a JPEG of " + std::to_string(info.data_precision) + " bits per sample";
  switch (info.jpeg_color_space) {
    case JCS_GRAYSCALE:
    case JCS_YCbCr:
    case JCS_RGB:
    case JCS_CMYK:
    case JCS_YCCK: return "";
    default:
      return "a JPEG of " + std::to_string(info.num_components) + " components that are neither gray nor RGB nor CMYK";
  }
}

// With Huffman coding, each block takes at least one bit. A header with more blocks than that is refused here, before
// memory for the pixels is allocated.
bool can_hold_pixels(const jpeg_decompress_struct& info, size_t size) {
  if (info.arith_code) return true;
  uint64_t blocks = 0;
  for (int i = 0; i < info.num_components; ++i) {
    blocks += uint64_t{info.comp_info[i].width_in_blocks} * info.comp_info[i].height_in_blocks;
  }
  return blocks / 8 <= size;
}

struct Marker {
  int code;
  std::string_view data;
  uint64_t bytes;  // its size in the file

  bool begins(std::string_view head) const { return data.substr(0, head.size()) == head; }
};

constexpr std::string_view kExifHead("Exif\0\0", 6);
constexpr std::string_view kProfileHead("ICC_PROFILE\0", 12);

void notice_marker(const Marker& marker, const ReadOptions& options) {
  if (marker.code == JPEG_COM) {
    notice_left_out(options, "a comment", marker.bytes);
  } else if (marker.code == JPEG_APP0 + 1 && marker.begins("http://ns.adobe.com/x")) {
    notice_left_out(options, "XMP", marker.bytes);
  } else {
    notice_left_out(options, "application data (APP" + std::to_string(marker.code - JPEG_APP0) + ")", marker.bytes);
  }
}

std::optional<Error> take_exif_and_notice(const jpeg_decompress_struct& info, Image& image, const ReadOptions& options,
                                          uint64_t offset) {
  bool exif_seen = false;
  for (const jpeg_marker_struct* saved = info.marker_list; saved != nullptr; saved = saved->next) {
    const Marker marker{
        saved->marker, {reinterpret_cast<const char*>(saved->data), saved->data_length}, saved->original_length};
    if (marker.code == JPEG_APP0 + 2 && marker.begins(kProfileHead)) continue;
    if (marker.code == JPEG_APP0 + 1 && marker.begins(kExifHead) && !exif_seen) {
      exif_seen = true;
      const std::span<const uint8_t> exif(saved->data + kExifHead.size(), saved->data_length - kExifHead.size());
      if (std::optional<Error> error = add_exif(image, exif, options, offset)) return error;
    } else {
      notice_marker(marker, options);
    }
  }
  return std::nullopt;
}

std::optional<Error> take_density(const jpeg_decompress_struct& info, Image& image, const ReadOptions& options,
                                  uint64_t offset) {
  if (!info.saw_JFIF_marker) return std::nullopt;
  const uint32_t across = info.X_density;
  const uint32_t down = info.Y_density;
  const auto per_metre = [](uint32_t per_inch) { return (per_inch * 10000 + 127) / 254; };
  switch (info.density_unit) {
    case 0: return add_density(image, across, down, DensityUnit::none, options, offset);
    case 1: return add_density(image, per_metre(across), per_metre(down), DensityUnit::metre, options, offset);
    case 2: return add_density(image, across * 100, down * 100, DensityUnit::metre, options, offset);
    default: return std::nullopt;
  }
}

}  // namespace

Result<Image> read_jpeg(std::span<const uint8_t> file, const ReadOptions& options) {
  const auto decoder = std::make_unique<Handle>(file);  // too large for the stack: a jmp_buf and tables
  Handle& handle = *decoder;
  if (!read_header(handle.get())) return handle.error("header");
  const jpeg_decompress_struct& info = handle->info;
  const uint64_t offset = file.size() - handle.left();
  if (std::string reason = kind_problem(info); !reason.empty()) return Error{offset, std::move(reason)};

  Image image;
  image.width = info.image_width;
  image.height = info.image_height;
  image.colour = info.jpeg_color_space == JCS_GRAYSCALE ? Colour::gray : Colour::rgb;
  if (std::optional<Error> error = over_limit(image, options, offset)) return *std::move(error);
  if (!can_hold_pixels(info, file.size())) return Error{offset, "the file is too short for the size of the image"};

  if (!read_profile(handle.get())) return handle.error("colour profile");
  const bool has_inks = info.jpeg_color_space == JCS_CMYK || info.jpeg_color_space == JCS_YCCK;
  std::span<const uint8_t> profile(handle->profile, handle->profile_bytes);
  // The profile is for CMYK, but the pixels are RGB now.
  if (has_inks && !profile.empty()) {
    notice_left_out(options, "the CMYK profile", profile.size());
    profile = {};
  }
  if (std::optional<Error> error = add_profile(image, profile, options, offset)) return *std::move(error);
  if (std::optional<Error> error = take_exif_and_notice(info, image, options, offset)) return *std::move(error);
  if (std::optional<Error> error = take_density(info, image, options, offset)) return *std::move(error);

  image.pixels.resize(pixel_bytes(image));
  handle->pixels = image.pixels.data();
  handle->row_bytes = pixel_bytes(image) / image.height;
  std::vector<uint8_t> inks(has_inks ? size_t{4} * image.width : 0);
  handle->inks = has_inks ? inks.data() : nullptr;
  if (!read_rows(handle.get())) return handle.error("pixels");
  if (has_inks) notice(options.notices, "CMYK JPEG: converted to RGB without a profile, as Pillow does");
  if (handle->failure.harmless[0] != '\0') {
    notice(options.notices,
           std::string("libjpeg warns of something that affects no pixel: ") + handle->failure.harmless);
  }
  notice_lossy(options, "JPEG");
  if (const size_t left = handle.left(); left > 0) {
    notice(options.notices, std::to_string(left) + " bytes after the image are left out");
  }
  return image;
}

}  // namespace formats
