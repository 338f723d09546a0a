#include "formats/formats.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <new>
#include <stdexcept>

#include "adapters.h"

namespace formats {
namespace {

struct Reader {
  std::string_view name;
  std::string_view title;  // for users
  bool (*recognises)(std::span<const uint8_t> file);
  Result<Image> (*read)(std::span<const uint8_t> file, const ReadOptions& options);
};

constexpr Reader kReaders[] = {{"png", "PNG", is_png, read_png},     {"pnm", "PBM, PGM, PPM, PAM", is_pnm, read_pnm},
                               {"jpeg", "JPEG", is_jpeg, read_jpeg}, {"webp", "WebP", is_webp, read_webp},
                               {"bmp", "BMP", is_bmp, read_bmp},     {"gif", "GIF", is_gif, read_gif},
                               {"psd", "PSD", is_psd, read_psd},     {"tiff", "TIFF", is_tiff, read_tiff},
                               {"jxl", "JPEG XL", is_jxl, read_jxl}, {"tga", "TGA (version 2)", is_tga, read_tga}};

struct Extension {
  std::string_view name;
  Format format;
};

constexpr std::array kExtensions = {Extension{".png", Format::png}, Extension{".pbm", Format::pbm},
                                    Extension{".pgm", Format::pgm}, Extension{".ppm", Format::ppm},
                                    Extension{".pam", Format::pam}};

// Extensions of formats that can only be read.
constexpr std::string_view kReadExtensions[] = {".pnm", ".jpg",  ".jpeg", ".jpe", ".jfif", ".webp", ".bmp", ".dib",
                                                ".gif", ".apng", ".psd",  ".tga", ".tif",  ".tiff", ".jxl"};

// Extensions of image formats that cannot be read, except for those in the lists above. Only extensions that nearly
// always mean images are here. NumPy's .npy is not, because such files often hold labels or features.
constexpr std::string_view kImageExtensions[] = {
    ".tif", ".tiff", ".btf", ".jxl", ".avif", ".avifs", ".heic", ".heif", ".hif", ".jp2", ".j2k", ".jpf", ".jpx",
    ".jpm", ".j2c", ".jpc", ".jph", ".jhc", ".jxr", ".wdp", ".hdp", ".jls", ".bpg", ".flif", ".qoi", ".mng", ".jng",
    // floating point
    ".exr", ".hdr", ".rgbe", ".pfm", ".phm",
    // cameras
    ".dng", ".nef", ".nrw", ".cr2", ".cr3", ".crw", ".arw", ".srf", ".sr2", ".raf", ".orf", ".rw2", ".pef", ".srw",
    ".x3f", ".3fr", ".fff", ".iiq", ".rwl", ".kdc", ".dcr", ".mrw", ".erf", ".mef", ".mos", ".raw",
    // medicine and microscopy
    ".dcm", ".dicom", ".nii", ".nii.gz", ".nrrd", ".nhdr", ".mha", ".mhd", ".mgz", ".mnc", ".svs", ".ndpi", ".scn",
    ".mrxs", ".vms", ".bif", ".vsi", ".czi", ".lif", ".nd2", ".oib", ".oif", ".lsm", ".stk", ".ims",
    // astronomy and maps
    ".fits", ".fit", ".fts", ".fits.fz", ".ntf", ".nitf", ".ecw", ".sid",
    // textures and screens
    ".dds", ".ktx", ".ktx2", ".basis", ".astc", ".pvr", ".ico", ".cur", ".icns", ".svg", ".svgz",
    // editors and older systems
    ".psb", ".xcf", ".kra", ".ora", ".pcx", ".sgi", ".rgb", ".rgba", ".bw", ".ras", ".sun", ".xbm", ".xpm", ".pict",
    ".pct", ".wmf", ".emf", ".icb", ".vda", ".vst"};

const Reader* reader_of(std::span<const uint8_t> file) {
  const auto found = std::find_if(std::begin(kReaders), std::end(kReaders),
                                  [&](const Reader& reader) { return reader.recognises(file); });
  return found == std::end(kReaders) ? nullptr : &*found;
}

// Converts running out of memory to an Error.
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
      return Error{0, "a PFM: its samples are floating-point numbers, which are not supported"};
    }
    return Error{0, "unknown image format; supported are " + readable_formats()};
  });
}

Result<uint32_t> count_pages(std::span<const uint8_t> file) {
  return guarded([&]() -> Result<uint32_t> { return is_tiff(file) ? count_tiff_pages(file) : Result<uint32_t>(1U); });
}

bool is_known(std::span<const uint8_t> file) { return reader_of(file) != nullptr; }

std::string readable_formats() {
  std::string titles;
  for (const Reader& reader : kReaders) titles.append(titles.empty() ? "" : ", ").append(reader.title);
  return titles;
}

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
  return format_of(path) || std::any_of(std::begin(kReadExtensions), std::end(kReadExtensions),
                                        [&](std::string_view extension) { return ends_with(path, extension); });
}

std::string_view unread_extension(std::string_view path) {
  if (is_readable_name(path)) return {};
  const auto found = std::find_if(std::begin(kImageExtensions), std::end(kImageExtensions),
                                  [&](std::string_view extension) { return ends_with(path, extension); });
  return found == std::end(kImageExtensions) ? std::string_view() : *found;
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
