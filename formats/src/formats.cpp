#include "formats/formats.h"

#include <algorithm>
#include <array>
#include <new>
#include <stdexcept>

#include "adapters.h"

namespace formats {
namespace {

struct Reader {
  std::string_view name;
  bool (*recognises)(std::span<const uint8_t> file);
  Result<Image> (*read)(std::span<const uint8_t> file, const ReadOptions& options);
};

constexpr std::array kReaders = {Reader{"png", is_png, read_png},    Reader{"pnm", is_pnm, read_pnm},
                                 Reader{"jpeg", is_jpeg, read_jpeg}, Reader{"webp", is_webp, read_webp},
                                 Reader{"bmp", is_bmp, read_bmp},    Reader{"gif", is_gif, read_gif},
                                 Reader{"psd", is_psd, read_psd},    Reader{"tiff", is_tiff, read_tiff},
                                 Reader{"jxl", is_jxl, read_jxl},    Reader{"tga", is_tga, read_tga}};

struct Extension {
  std::string_view name;
  Format format;
};

constexpr std::array kExtensions = {Extension{".png", Format::png}, Extension{".pbm", Format::pbm},
                                    Extension{".pgm", Format::pgm}, Extension{".ppm", Format::ppm},
                                    Extension{".pam", Format::pam}};

// Beside those that are written too.
constexpr std::array<std::string_view, 12> kReadExtensions = {".pnm", ".jpg", ".jpeg", ".jpe", ".webp", ".bmp",
                                                              ".gif", ".psd", ".tga",  ".tif", ".tiff", ".jxl"};

const Reader* reader_of(std::span<const uint8_t> file) {
  const auto found =
      std::find_if(kReaders.begin(), kReaders.end(), [&](const Reader& reader) { return reader.recognises(file); });
  return found == kReaders.end() ? nullptr : &*found;
}

// The one place where running out of memory becomes a value.
template <typename Function>
auto guarded(Function function) -> decltype(function()) {
  try {
    return function();
  } catch (const std::bad_alloc&) {
    return Error{0, "out of memory"};
  } catch (const std::length_error&) {
    return Error{0, "out of memory"};
  }
}

char lower(char letter) { return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter + ('a' - 'A')) : letter; }

bool ends_with(std::string_view path, std::string_view ending) {
  if (path.size() < ending.size()) return false;
  const std::string_view tail = path.substr(path.size() - ending.size());
  for (size_t i = 0; i < ending.size(); ++i) {
    if (lower(tail[i]) != ending[i]) return false;
  }
  return true;
}

}  // namespace

Result<Image> read(std::span<const uint8_t> file, const ReadOptions& options) {
  return guarded([&]() -> Result<Image> {
    if (file.empty()) return Error{0, "the file is empty"};
    if (const Reader* reader = reader_of(file)) return reader->read(file, options);
    if (file.size() >= 3 && file[0] == 'P' && (file[1] == 'F' || file[1] == 'f') &&
        (file[2] == '\n' || file[2] == '\r')) {
      return Error{0, "a PFM: its samples are floating-point numbers, which are not read"};
    }
    return Error{0, "neither PNG, PNM, PAM, JPEG, WebP, BMP, GIF, PSD, TIFF, JPEG XL nor TGA of version 2"};
  });
}

Result<uint32_t> count_pages(std::span<const uint8_t> file) {
  return guarded([&]() -> Result<uint32_t> { return is_tiff(file) ? count_tiff_pages(file) : Result<uint32_t>(1U); });
}

bool is_known(std::span<const uint8_t> file) { return reader_of(file) != nullptr; }

std::string_view known_name(std::span<const uint8_t> file) {
  const Reader* reader = reader_of(file);
  return reader == nullptr ? std::string_view() : reader->name;
}

Result<std::vector<uint8_t>> write(Format format, const Image& image, const WriteOptions& options) {
  return guarded([&]() -> Result<std::vector<uint8_t>> {
    if (std::string reason = problem(image); !reason.empty()) return Error{0, std::move(reason)};
    return format == Format::png ? write_png(image, options) : write_pnm(format, image, options);
  });
}

std::optional<Format> format_of(std::string_view path) {
  for (const Extension& extension : kExtensions) {
    if (ends_with(path, extension.name)) return extension.format;
  }
  return std::nullopt;
}

bool is_readable_name(std::string_view path) {
  return format_of(path) || std::any_of(kReadExtensions.begin(), kReadExtensions.end(),
                                        [&](std::string_view extension) { return ends_with(path, extension); });
}

std::optional<Error> over_limit(const Image& header, const ReadOptions& options, uint64_t offset) {
  const uint64_t pixels = uint64_t{header.width} * header.height;
  const std::string size = std::to_string(header.width) + " x " + std::to_string(header.height) + " pixels";
  if (pixels > options.max_pixels) {
    return Error{offset, size + " are more than the limit of " + std::to_string(options.max_pixels)};
  }
  if (header.width > options.max_edge || header.height > options.max_edge) {
    return Error{offset, size + ": a side is longer than the limit of " + std::to_string(options.max_edge)};
  }
  const uint64_t bytes_per_pixel = channels(header.colour) * bytes_per_sample(header.bits);
  if (pixels > options.max_bytes / bytes_per_pixel || pixels > SIZE_MAX / bytes_per_pixel) {
    return Error{offset, size + " of " + std::to_string(bytes_per_pixel) + " bytes are more than the limit of " +
                             std::to_string(options.max_bytes) + " bytes"};
  }
  return std::nullopt;
}

size_t pixel_bytes(const Image& header) {
  return size_t{header.width} * header.height * channels(header.colour) * bytes_per_sample(header.bits);
}

}  // namespace formats
