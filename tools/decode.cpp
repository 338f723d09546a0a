// l3 decode: decodes one L3 file, or a region of it, to a PNG, PNM or PAM file.
#include <array>
#include <charconv>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/parallel.h"
#include "bridge/image_bridge.h"
#include "cuda_decoder.h"
#include "file_io.h"
#include "formats/formats.h"
#include "image_tree.h"
#include "model_files.h"
#include "options.h"

namespace tools {
namespace {

using formats::Format;

struct DecodeOptions {
  std::string in, out;
  std::string roi;
  std::string palette;
  std::string format;
  std::string device = "cpu";
  std::vector<std::string> models;
  l3_limits limits{};
  uint32_t threads = 0;
  bool quiet = false;
};

// Parses "X,Y,W,H" in decimal digits, where W and H are at least 1.
std::optional<bridge::Region> parse_region(std::string_view text) {
  std::array<uint32_t, 4> numbers{};
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (i > 0) {
      if (text.empty() || text.front() != ',') return std::nullopt;
      text.remove_prefix(1);
    }
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), numbers[i]);
    if (error != std::errc()) return std::nullopt;
    text.remove_prefix(static_cast<size_t>(end - text.data()));
  }
  if (!text.empty() || numbers[2] == 0 || numbers[3] == 0) return std::nullopt;
  return bridge::Region{numbers[0], numbers[1], numbers[2], numbers[3]};
}

std::string check_region(const std::string& text) {
  return parse_region(text) ? "" : text + " is not X,Y,W,H (column, row, width and height in pixels)";
}

bool is_inside(const bridge::Region& region, const l3_info& info) {
  return uint64_t{region.x} + region.width <= info.width && uint64_t{region.y} + region.height <= info.height;
}

bool wants_colours(const DecodeOptions& options, Format format) {
  if (options.palette.empty()) return format == Format::ppm;
  return options.palette == "colours";
}

bool has_sections_of_metadata(const l3::File& file) {
  for (const l3_section_type type : {L3_SECTION_COLOUR_SPACE, L3_SECTION_ICC, L3_SECTION_EXIF, L3_SECTION_METADATA}) {
    const l3::Result<std::span<const uint8_t>> section = file.section(type);
    if (!section || !section->empty()) return true;
  }
  return false;
}

std::optional<uint64_t> metadata_offset(const l3::File& file) {
  const l3::Result<std::span<const uint8_t>> section = file.section(L3_SECTION_METADATA);
  if (!section || section->data() == nullptr) return std::nullopt;
  return static_cast<uint64_t>(section->data() - file.bytes().data());
}

// Removes the alpha of a palette's colours, for a format that has no alpha.
void drop_alpha(formats::Image& image) {
  const size_t pixels = image.pixels.size() / 4;
  for (size_t i = 0; i < pixels; ++i) {
    for (size_t c = 0; c < 3; ++c) image.pixels[3 * i + c] = image.pixels[4 * i + c];
  }
  image.pixels.resize(3 * pixels);
  image.colour = formats::Colour::rgb;
}

// Adapts the chunks of a palette image whose pixels became colours. Chunks that PNG has only for palettes are left out
// or converted to colours.
void fit_chunks_to_colours(const l3::File& file, formats::Image& image, std::vector<std::string>& notices) {
  using Type = std::array<char, 4>;
  constexpr Type kHistogram = {'h', 'I', 'S', 'T'}, kBackground = {'b', 'K', 'G', 'D'}, kBits = {'s', 'B', 'I', 'T'},
                 kTransparency = {'t', 'R', 'N', 'S'};
  const l3::Result<std::vector<uint8_t>> palette = file.palette();
  if (!palette) return;
  std::erase_if(image.chunks, [&](formats::Chunk& chunk) {
    if (chunk.type == kHistogram || chunk.type == kTransparency) {
      notices.emplace_back("chunk " + std::string(chunk.type.data(), chunk.type.size()) +
                           " is left out: only palette images have it");
      return true;
    }
    if (chunk.type == kBackground) {
      if (chunk.data.size() != 1 || size_t{chunk.data[0]} * 3 + 3 > palette->size()) {
        notices.emplace_back("chunk bKGD is left out: it names a colour that is not in the palette");
        return true;
      }
      const uint8_t* colour = palette->data() + size_t{chunk.data[0]} * 3;
      chunk.data = {0, colour[0], 0, colour[1], 0, colour[2]};
      notices.emplace_back("chunk bKGD is converted from a palette index to a colour");
    }
    if (chunk.type == kBits && chunk.data.size() == 3 && image.colour == formats::Colour::rgb_alpha) {
      chunk.data.push_back(8);  // PNG requires a number for alpha, too
    }
    return false;
  });
}

constexpr const char* kWithoutMetadata = "; wrote the pixels without metadata";

// The bytes to write. With a warning they are written, too, but the exit code is 1.
struct Written {
  std::vector<uint8_t> bytes;
  std::optional<Failure> warning;
};

// An L3 file that was not made from a PNG may hold chunks that a PNG cannot have. In this case the pixels are written
// without chunks.
Outcome<Written> write_image(Format format, formats::Image& image, const std::string& name,
                             std::vector<std::string>& notices) {
  Written written;
  formats::WriteOptions write;
  write.notices = &notices;
  formats::Result<std::vector<uint8_t>> bytes = formats::write(format, image, write);
  if (!bytes && !image.chunks.empty()) {
    const std::string reason = bytes.error().reason;
    image.chunks.clear();
    bytes = formats::write(format, image, write);
    if (bytes) written.warning = Failure{name, std::nullopt, reason + kWithoutMetadata};
  }
  if (!bytes) return Failure{name, std::nullopt, bytes.error().reason};
  written.bytes = std::move(*bytes);
  return written;
}

Outcome<Written> decode_opened(const l3::File& file, const std::string& name, Format format,
                               const bridge::DecodeSettings& settings, Context& context) {
  const l3_info& info = file.info();
  if (format == Format::png && info.alpha == L3_ALPHA_PREMULTIPLIED) {
    return Failure{name, std::nullopt, "a PNG cannot hold premultiplied alpha: write .pam"};
  }
  formats::Image image;
  std::optional<formats::Error> metadata_error;
  if (const auto error = bridge::decode_l3(file, settings, image, &metadata_error)) return failure_in(name, *error);

  std::vector<std::string> notices;
  const bool palette_had_alpha = info.colour == L3_COLOUR_PALETTE && image.colour == formats::Colour::rgb_alpha;
  if (format == Format::ppm && palette_had_alpha) {
    drop_alpha(image);
    notices.emplace_back("the transparency of the palette is left out");
  }
  if (format != Format::png) {
    if (has_sections_of_metadata(file)) notices.emplace_back("the metadata is left out");
    image.chunks.clear();
  } else if (info.colour == L3_COLOUR_PALETTE && image.colour != formats::Colour::palette) {
    fit_chunks_to_colours(file, image, notices);
  }
  Outcome<Written> written = write_image(format, image, name, notices);
  if (!written) return written;
  for (const std::string& notice : notices) context.console.note(name, notice);
  if (metadata_error) {
    written->warning = failure_in(name, *metadata_error);
    written->warning->reason += kWithoutMetadata;
  } else if (written->warning) {
    written->warning->offset = metadata_offset(file);
  }
  return written;
}

int decode_file(const DecodeOptions& options, Context& context) {
  Console& console = context.console;
  console.set_quiet(options.quiet);
  const std::string wanted = !options.format.empty() ? options.format : options.out == "-" ? "png" : "";
  const std::optional<Format> format = formats::format_of(wanted.empty() ? options.out : "." + wanted);
  if (!format) {
    return wrong_usage(context,
                       "decode: " + options.out + " does not end in .png, .ppm, .pgm, .pbm or .pam; use --format");
  }
  if (options.out == "-" && console.stdout_is_terminal()) {
    return wrong_usage(context, "decode: OUT is -, but stdout is a terminal; redirect it to a file or a pipe");
  }
  if (options.in != "-" && options.out != "-" && is_same_file(options.in, options.out)) {
    return wrong_usage(context, "decode: IN and OUT are the same file");
  }
  if (options.in != "-" && is_folder(options.in)) {
    return wrong_usage(context, "decode: " + options.in +
                                    " is a folder; l3 export writes the images of a data set, l3 cat one of them");
  }
  if (*format == Format::ppm && options.palette == "indices") {
    return wrong_usage(context, "decode: --palette indices: a PPM can hold only colours; write .png, .pgm or .pam");
  }

  const std::string name = display_name(options.in, "stdin");
  const Outcome<bridge::Buffer> file = read_file(options.in);
  if (!file) {
    console.fail(file.failure());
    return kExitFailed;
  }
  ModelFiles models;
  if (const auto failure = models.open(options.models)) {
    console.fail(*failure);
    return kExitFailed;
  }
  base::Parallel parallel(options.threads);
  l3_decode_options decoding = decode_options(options.limits, models.all(), parallel.for_l3());
  decoding.as_colours = wants_colours(options, *format) ? 1 : 0;
  const l3::Result<l3::File> opened = l3::File::open(file->bytes(), decoding);
  if (!opened) {
    console.fail(failure_in(name, bridge::to_error(opened.error())));
    return kExitFailed;
  }
  bridge::DecodeSettings settings;
  if (!options.roi.empty()) {
    const l3_info& info = opened->info();
    settings.region = parse_region(options.roi);
    if (!is_inside(*settings.region, info)) {
      console.fail({name, std::nullopt,
                    "--roi " + options.roi + " is not inside the image of " + std::to_string(info.width) + " x " +
                        std::to_string(info.height) + " pixels"});
      return kExitUsage;
    }
  }
  if (options.device == "cuda") {
    CudaDecoder cuda = cuda_decoder(decoding);
    if (!cuda.problem.empty()) {
      console.fail({"", std::nullopt, "decode: --device cuda: " + cuda.problem + "; use --device cpu"});
      return kExitFailed;
    }
    settings.decoder = std::move(cuda.decode);
  }
  const Outcome<Written> written = decode_opened(*opened, name, *format, settings, context);
  if (!written) {
    console.fail(written.failure());
    return kExitFailed;
  }
  if (const auto failure = write_file(options.out, written->bytes, Flush::to_disk, context.unfinished)) {
    console.fail(*failure);
    return kExitFailed;
  }
  if (!written->warning) return kExitDone;
  console.fail(*written->warning);
  return kExitFailed;
}

int decode(const DecodeOptions& options, Context& context) try { return decode_file(options, context); } catch (...) {
  context.console.fail(caught(display_name(options.in, "stdin")));
  return kExitFailed;
}

}  // namespace

void add_decode(CommandLine& line) {
  Subcommand sub = line.command("decode", "Decode one L3 file, or a region of it, to a PNG, PNM or PAM file");
  auto options = std::make_shared<DecodeOptions>();
  sub.option("IN", options->in, "The L3 file to read, or - for stdin").required().type("").local();
  sub.option("OUT", options->out, "The file to write, a .png, .ppm, .pgm, .pbm or .pam, or - for stdout")
      .required()
      .type("")
      .local();
  sub.option("--roi", options->roi, "Decode only this region: column, row, width and height in pixels")
      .type("X,Y,W,H")
      .check(check_region);
  sub.option("--palette", options->palette,
             "What to write for a palette image (default: colours for .ppm, else indices)")
      .one_of({"colours", "indices"})
      .details(
          "A .ppm can hold only colours. A .png with indices keeps the palette, too. A .pgm or .pam with indices has "
          "no palette; this is how to get the values of a label map");
  sub.option("--format", options->format, "Format of OUT (default: as its extension says; PNG for stdout)")
      .one_of({"png", "ppm", "pgm", "pbm", "pam"});
  sub.option("--device", options->device,
             "Where to decode (default: cpu). cuda: on the first GPU, slower for a single image")
      .one_of({"cpu", "cuda"})
      .details("The pixels and the errors are the same on both");
  add_models(sub, options->models, "A model from l3 train that the file needs")
      .details("Give the option again for another model");
  add_threads(sub, options->threads, "-j,--threads", "Number of threads");
  add_quiet(sub, options->quiet);
  add_limits(sub, options->limits, true);
  sub.examples(
      "  l3 decode photo.l3 photo.png\n"
      "  l3 decode --roi 512,0,256,256 map.l3 corner.png    decode only the tiles of this region\n"
      "  l3 decode labels.l3 labels.pgm                     the label of each pixel, not its colour\n"
      "  l3 decode photo.l3 - --format ppm | viewer         in a pipe\n");
  sub.footer(
      "A .png gets everything: samples, bit depth, palette, transparency and ancillary chunks. The other formats\n"
      "hold samples only; a note names what is left out.\n\n"
      "Exit status 1: nothing is written if pixels are damaged. If only the metadata is damaged, the pixels are\n"
      "written without it.\n");
  sub.run([options](Context& context) { return decode(*options, context); });
}

}  // namespace tools
