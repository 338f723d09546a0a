#include "conversion.h"

#include <sys/stat.h>

#include <optional>
#include <utility>
#include <vector>

#include "bridge/image_bridge.h"
#include "formats/formats.h"
#include "model_files.h"

namespace tools {
namespace {

constexpr size_t kMaxKeptBytes = size_t{1} << 26;  // of memory for the samples of the next image

// Returns how `file` differs from `image`, or an empty text if they are equal.
std::string difference_from(const formats::Image& image, std::span<const uint8_t> file,
                            const ConversionSettings& settings) {
  const l3_decode_options options = decode_options(settings.limits, settings.models, settings.encode.parallel);
  // Fresh memory would take longer than decoding: the system clears it, page by page.
  thread_local formats::Image decoded;
  const auto error = bridge::decode_l3(file, options, decoded);
  const std::string difference = error ? error->reason : formats::difference(image, decoded);
  if (decoded.pixels.capacity() > kMaxKeptBytes) decoded = {};
  return difference;
}

// The largest edge of square tiles whose samples, packed to bits, are within the limit of the format.
uint32_t largest_tile(const formats::Image& image) {
  constexpr uint64_t kMaxBits = uint64_t{8} * 16 * 65535;
  constexpr uint64_t kStep = 32, kMax = 1024;
  uint64_t edge = kMax;
  while (edge * edge * formats::channels(image.colour) * image.bits > kMaxBits) edge -= kStep;
  return static_cast<uint32_t>(edge);
}

Outcome<Converted> convert(const std::string& in, const std::string& out, const ConversionSettings& settings,
                           Context& context) {
  const std::string name = display_name(in, "stdin");
  const Stamp before(in);
  Outcome<bridge::Buffer> source = read_file(in);
  if (!source) return source.failure();
  Converted result;
  result.bytes_in = source->size();
  StageTimes times;
  const Outcome<formats::Image> image = unpack(name, source->bytes(), settings, times, context);
  if (!image) return image.failure();
  *source = bridge::Buffer();  // free this memory early
  result.pixels = uint64_t{image->width} * image->height;
  const Outcome<bridge::Buffer> encoded = encode_image(name, *image, settings, times);
  if (!encoded) return encoded.failure();
  result.bytes_out = encoded->size();
  if (!before.is_still(in)) return Failure{name, std::nullopt, kChangedMeanwhile};
  if (auto failure = write_file(out, encoded->bytes(), settings.flush, context.unfinished)) return *failure;
  return result;
}

}  // namespace

Stamp::Stamp(const std::string& path) {
  struct stat status {};
  if (path == "-" || stat(path.c_str(), &status) != 0) return;
  known_ = true;
  seconds_ = status.st_mtim.tv_sec;
  nanoseconds_ = status.st_mtim.tv_nsec;
  size_ = status.st_size;
}

bool Stamp::is_still(const std::string& path) const {
  if (path == "-") return true;
  const Stamp now(path);
  return known_ && now.known_ && seconds_ == now.seconds_ && nanoseconds_ == now.nanoseconds_ && size_ == now.size_;
}

bool is_l3(std::span<const uint8_t> file) {
  // T: tiny files of version 0, which libl3 refuses with a reason.
  return file.size() >= 4 && file[0] == 0x8B && file[1] == 'L' && file[2] == '3' &&
         (file[3] == 'I' || file[3] == 't' || file[3] == 'T');
}

Outcome<formats::Image> unpack(const std::string& name, std::span<const uint8_t> bytes,
                               const ConversionSettings& settings, StageTimes& times, Context& context, uint32_t page,
                               std::string_view role, Reshaped* reshaped) {
  std::vector<std::string> notices;
  formats::ReadOptions read = read_options(settings.limits);
  read.tells_orientation = !settings.reshaping.orient;
  read.notices = &notices;
  read.page = page;
  read.max_edge = bridge::kMaxEdge;
  std::optional<formats::Result<formats::Image>> decoded;
  {
    const Stopwatch watch(times.unpack);
    decoded.emplace(formats::read(bytes, read));
  }
  formats::Result<formats::Image>& image = *decoded;
  for (const std::string& notice : notices) context.console.note(name, notice);
  if (!image && is_l3(bytes)) return Failure{name, 0, "this is already an L3 file"};
  if (!image) {
    Failure failure = failure_in(name, image.error());
    const formats::Result<uint32_t> pages = formats::count_pages(bytes);
    if (page == 0 && pages && *pages > 1) failure.reason += " (l3 convert --pages makes a sample of each page)";
    return failure;
  }
  if (!settings.reshaping.does_anything()) return std::move(*image);
  const Stopwatch watch(times.reshape);
  const Outcome<Reshaped> done = reshape(name, settings.reshaping, role, settings.limits, *image);
  if (!done) return done.failure();
  if (reshaped != nullptr) *reshaped = *done;
  return std::move(*image);
}

Outcome<bridge::Buffer> encode_image(const std::string& name, const formats::Image& image,
                                     const ConversionSettings& settings, StageTimes& times) {
  if (const uint32_t maximum = largest_tile(image); settings.encode.tile_width > maximum) {
    const std::string edge = std::to_string(settings.encode.tile_width);
    return Failure{name, std::nullopt,
                   "tiles of " + edge + " x " + edge +
                       " pixels hold 1 MiB of samples or more; the largest size for this image is --tile " +
                       std::to_string(maximum)};
  }
  bridge::Buffer encoded;
  {
    const Stopwatch watch(times.encode);
    l3_encode_options encode = settings.encode;
    encode.named_model = bridge::model_for(settings.models, formats::channels(image.colour), image.bits);
    if (const auto error = bridge::encode_l3(image, encode, encoded)) {
      return Failure{name, std::nullopt, error->reason};
    }
  }
  if (settings.verify) {
    const Stopwatch watch(times.verify);
    const std::string difference = difference_from(image, encoded.bytes(), settings);
    if (!difference.empty()) {
      return Failure{name, std::nullopt, "not written, because decoding the result gave another image: " + difference};
    }
  }
  return encoded;
}

Outcome<Converted> convert_file(const std::string& in, const std::string& out, const ConversionSettings& settings,
                                Context& context) {
  try {
    return convert(in, out, settings, context);
  } catch (...) {
    return caught(display_name(in, "stdin"));
  }
}

}  // namespace tools
