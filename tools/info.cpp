// l3 info: describes a file without decoding its pixels.
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/hex.h"
#include "base/json_writer.h"
#include "bridge/image_bridge.h"
#include "contact_sheet.h"
#include "conversion.h"
#include "data_sets.h"
#include "file_io.h"
#include "formats/formats.h"
#include "image_tree.h"
#include "info_set.h"
#include "l3/l3.hpp"
#include "model_files.h"
#include "options.h"
#include "progress.h"
#include "reshape.h"

namespace tools {
namespace {

constexpr uint32_t kMostImages = 2000;

struct InfoOptions {
  std::string in;
  bool json = false;
  bool sizes = false;
  std::string html;
  uint32_t images = SheetOptions().images;
  std::vector<std::string> models;
  l3_limits limits{};
};

struct SectionInfo {
  const char* name;
  uint64_t bytes;
};

// All that is known about a file. Members that do not apply stay empty.
struct FileInfo {
  std::string file, format;
  uint64_t file_bytes = 0;
  uint32_t width = 0, height = 0, channels = 0, bits = 0;
  uint32_t coded_channels = 0;  // the others equal these, or have one sample
  std::string colour, alpha;
  uint32_t palette_entries = 0;
  uint64_t raw_bytes = 0;  // size without compression: samples packed to bits, rows to whole bytes
  std::vector<formats::Chunk> chunks;
  std::optional<l3_info> l3;
  std::vector<std::pair<std::string, uint64_t>> tiles;  // of each method
  std::vector<SectionInfo> sections;
  std::optional<l3_sizes> sizes;
  std::string model_name;              // empty: the file has none
  uint64_t model_bytes = 0;            // 0: not known
  std::optional<uint32_t> model_kind;  // as the spec numbers them
};

constexpr std::array<std::pair<l3_section_type, const char*>, 8> kSectionNames = {
    {{L3_SECTION_PALETTE, "palette"},
     {L3_SECTION_TRANSPARENCY, "transparency"},
     {L3_SECTION_COLOUR_SPACE, "colour space"},
     {L3_SECTION_ICC, "icc"},
     {L3_SECTION_EXIF, "exif"},
     {L3_SECTION_MODEL, "model"},
     {L3_SECTION_CHANNEL_MAP, "channel map"},
     {L3_SECTION_METADATA, "metadata"}}};

constexpr std::array kColourNames = {"gray", "gray_alpha", "rgb", "rgb_alpha", "palette"};
constexpr std::array kModelOrigins = {"none", "own", "named", "default"};
constexpr std::array kModelKinds = {"0", "1 (token model)", "2 (bit model)"};
constexpr std::array kAlphaNames = {"none", "straight", "premultiplied"};

uint64_t raw_bytes(const FileInfo& info) {
  return (uint64_t{info.width} * info.channels * info.bits + 7) / 8 * info.height;
}

std::string tag(const formats::Chunk& chunk) { return {chunk.type.data(), chunk.type.size()}; }

// Finds the name, the size and the kind of the model, in the file or elsewhere.
void describe_model(const l3::File& opened, std::span<const l3_model* const> supplied, FileInfo& info) {
  const uint8_t* bytes = nullptr;
  size_t size = 0;
  if (info.l3->model_origin == L3_MODEL_OWN) {
    (void)!l3_file_section(opened.get(), L3_SECTION_MODEL, &bytes, &size, nullptr);
    std::array<uint8_t, L3_MODEL_NAME_BYTES> name{};
    l3_digest(bytes, size, name.data());
    info.model_name = base::hexadecimal(name);
  } else if (info.l3->model_origin != L3_MODEL_NONE) {
    info.model_name = base::hexadecimal(info.l3->model_name);
    if (info.l3->default_model != 0) (void)!l3_default_model(info.l3->default_model, &bytes, &size);
    for (const l3_model* model : supplied) {
      const l3_model_info known = describe(model);
      if (base::hexadecimal(known.name) != info.model_name) continue;
      bytes = known.bytes;
      size = known.size;
    }
  }
  info.model_bytes = size;
  if (size > 0) info.model_kind = bytes[0];
}

// How many channels a channel map says to be coded: the sources that are no channel's before.
uint32_t coded_channels(std::span<const uint8_t> map) {
  constexpr size_t kEntryBytes = 4;
  uint32_t coded = 0;
  for (size_t at = 0; at < map.size(); at += kEntryBytes) coded += map[at] == coded;
  return coded;
}

// Damaged sections go to `failures`. The rest of the file is described all the same.
std::optional<Failure> describe_l3(std::span<const uint8_t> file, const InfoOptions& options,
                                   std::span<const l3_model* const> supplied, FileInfo& info,
                                   std::vector<Failure>& failures) {
  const l3_decode_options decode = decode_options(options.limits, supplied, {});
  const l3::Result<l3::File> opened = l3::File::open(file, decode);
  // If the file does not open, perhaps its head can be described.
  const l3::Result<l3_info> of_head = opened ? opened->info() : l3::read_info(file, l3::no_limits());
  if (!of_head) return failure_in(info.file, bridge::to_error(of_head.error()));
  const l3_info& head = *of_head;
  info.format = "l3";
  info.width = head.width;
  info.height = head.height;
  info.channels = info.coded_channels = head.channels;
  info.bits = head.bits;
  info.colour = kColourNames[head.colour];
  info.alpha = kAlphaNames[head.alpha];
  info.l3 = head;
  const char* method_name = nullptr;
  for (uint32_t method = 0; (method_name = l3_tile_method_text(method)) != nullptr; ++method) {
    uint64_t count = 0;
    if (opened) (void)!l3_file_count_tiles(opened->get(), method, &count, nullptr);
    info.tiles.emplace_back(method_name, count);
  }
  if (!opened) {
    (void)!l3_read_palette(file.data(), file.size(), nullptr, 0, &info.palette_entries, nullptr);
    failures.push_back(failure_in(info.file, bridge::to_error(opened.error())));
    return std::nullopt;
  }
  (void)!l3_file_palette(opened->get(), nullptr, 0, &info.palette_entries, nullptr);
  describe_model(*opened, supplied, info);
  if (options.sizes) {
    l3_sizes sizes = l3_sizes_init();
    l3_error error{};
    if (l3_file_measure(opened->get(), &sizes, &error) != L3_OK) {
      failures.push_back(failure_in(info.file, bridge::to_error(error, *opened)));
    } else {
      info.sizes = sizes;
    }
  }
  for (const auto& [type, name] : kSectionNames) {
    const l3::Result<std::span<const uint8_t>> section = opened->section(type);
    if (!section) {
      failures.push_back(failure_in(info.file, bridge::to_error(section.error())));
    } else if (section->data() != nullptr) {
      info.sections.push_back({name, section->size()});
      if (type == L3_SECTION_CHANNEL_MAP) info.coded_channels = coded_channels(*section);
    }
  }
  if (!failures.empty()) return std::nullopt;
  formats::Result<std::vector<formats::Chunk>> records = bridge::read_metadata(*opened);
  if (!records) {
    failures.push_back(failure_in(info.file, records.error()));
  } else {
    info.chunks = std::move(*records);
  }
  return std::nullopt;
}

std::string foreign_format(std::span<const uint8_t> file) {
  const std::string_view known = formats::known_name(file);
  if (known != "pnm") return std::string(known);
  constexpr std::array kNames = {"pbm", "pgm", "ppm", "pbm", "pgm", "ppm", "pam"};
  const size_t digit = static_cast<size_t>(file[1] - '1');
  return digit < kNames.size() ? kNames[digit] : "pnm";
}

std::optional<Failure> describe_foreign(std::span<const uint8_t> file, const InfoOptions& options, FileInfo& info,
                                        Console& console) {
  std::vector<std::string> notices;
  formats::ReadOptions read = read_options(options.limits);
  read.notices = &notices;
  read.with_pixels = false;
  formats::Result<formats::Image> image = formats::read(file, read);
  if (!file.empty() && !formats::is_known(file)) {
    return Failure{info.file, 0, "not an image in a known format (L3, " + formats::readable_formats() + ")"};
  }
  if (!image) return failure_in(info.file, image.error());
  for (const std::string& notice : notices) console.note(info.file, notice);
  info.format = foreign_format(file);
  info.width = image->width;
  info.height = image->height;
  info.channels = formats::channels(image->colour);
  info.bits = image->bits;
  info.colour = kColourNames[static_cast<size_t>(image->colour)];
  info.alpha =
      image->colour == formats::Colour::gray_alpha || image->colour == formats::Colour::rgb_alpha ? "straight" : "none";
  info.palette_entries = static_cast<uint32_t>(image->palette.size() / 3);
  if (!image->transparency.empty()) info.sections.push_back({"transparency", image->transparency.size()});
  info.chunks = std::move(image->chunks);
  return std::nullopt;
}

double ratio(const FileInfo& info) {
  return static_cast<double>(info.file_bytes) / static_cast<double>(info.raw_bytes);
}

double bits_per_pixel(const FileInfo& info) {
  return 8 * static_cast<double>(info.file_bytes) / (static_cast<double>(info.width) * info.height);
}

std::string as_json(const FileInfo& info) {
  base::Json json;
  json.open_object().member("file", info.file).member("format", info.format).member("file_bytes", info.file_bytes);
  json.member("width", info.width).member("height", info.height).member("channels", info.channels);
  json.member("bits", info.bits).member("colour", info.colour).member("alpha", info.alpha);
  json.member("palette_entries", info.palette_entries).member("raw_bytes", info.raw_bytes);
  json.key("ratio").number(ratio(info), 6).key("bits_per_pixel").number(bits_per_pixel(info), 4);
  if (info.l3) {
    json.member("coded_channels", info.coded_channels);
    json.member("version", info.l3->version).member("required_features", info.l3->required_features);
    json.member("optional_features", info.l3->optional_features).member("frames", info.l3->frames);
    json.member("tile_width", info.l3->tile_width).member("tile_height", info.l3->tile_height);
    json.member("tiles", info.l3->tile_count).member("payload_start", info.l3->payload_start);
    for (const auto& [method, count] : info.tiles) json.member("tiles_" + method, count);
    json.member("model_origin", kModelOrigins[info.l3->model_origin]);
    json.member("default_model", info.l3->default_model).member("model_name", info.model_name);
    json.member("model_bytes", info.model_bytes);
    if (info.model_kind) json.member("model_kind", *info.model_kind);
    json.member("digest", base::hexadecimal(info.l3->digest));
  }
  if (info.sizes) {
    json.key("sizes").open_object().member("head", info.sizes->head).member("index", info.sizes->index);
    json.member("model", info.sizes->model).member("sections", info.sizes->sections);
    json.member("payloads", info.sizes->payloads).member("dense_payloads", info.sizes->dense_payloads);
    json.member("dense_states", info.sizes->dense_states).member("dense_classes", info.sizes->dense_classes);
    json.member("dense_samples", info.sizes->dense_samples).close_object();
  }
  json.key("sections").open_array();
  for (const SectionInfo& section : info.sections) {
    json.open_object().member("name", section.name).member("bytes", section.bytes).close_object();
  }
  json.close_array().key("chunks").open_array();
  for (const formats::Chunk& chunk : info.chunks) {
    json.open_object().member("tag", tag(chunk)).member("place", uint32_t{chunk.place});
    json.member("bytes", chunk.data.size());
    if (const std::string record = record_text(chunk); !record.empty()) json.member("text", record);
    json.close_object();
  }
  return json.close_array().close_object().line();
}

void print_text(const FileInfo& info, Console& console) {
  const auto line = [&](const std::string& label, const std::string& value) {
    console.print("  " + label + std::string(label.size() < 12 ? 12 - label.size() : 1, ' ') + value);
  };
  console.print(one_line(info.file));
  line("format", info.l3 ? "L3 version " + std::to_string(info.l3->version) : info.format);
  line("image", std::to_string(info.width) + " x " + std::to_string(info.height) + " pixels, " + info.colour + ", " +
                    std::to_string(info.channels) + (info.channels == 1 ? " channel of " : " channels of ") +
                    std::to_string(info.bits) + (info.bits == 1 ? " bit" : " bits") +
                    (info.alpha == "none" ? "" : ", alpha " + info.alpha) +
                    (info.l3 && info.coded_channels < info.channels
                         ? ", " + std::to_string(info.coded_channels) + " of the channels coded"
                         : ""));
  if (info.palette_entries > 0) line("palette", std::to_string(info.palette_entries) + " colours");
  line("size", std::to_string(info.file_bytes) + " bytes, " + format_number(bits_per_pixel(info), 3) +
                   " bits per pixel, ratio " + format_number(ratio(info), 4) + " to raw (" +
                   std::to_string(info.raw_bytes) + " bytes)");
  if (info.l3) {
    std::string methods;
    for (const auto& [method, count] : info.tiles) {
      if (count != 0) methods += (methods.empty() ? ": " : ", ") + std::to_string(count) + " " + method;
    }
    line("tiles", std::to_string(info.l3->tile_count) + " of " + std::to_string(info.l3->tile_width) + " x " +
                      std::to_string(info.l3->tile_height) + " pixels" + methods);
    if (!info.model_name.empty()) {
      std::string origin = info.l3->default_model != 0 ? "default " + std::to_string(info.l3->default_model)
                                                       : kModelOrigins[info.l3->model_origin];
      if (info.model_kind) origin += std::string(", kind ") + kModelKinds[*info.model_kind];
      if (info.model_bytes > 0) origin += ", " + std::to_string(info.model_bytes) + " bytes";
      line("model", origin + ", name " + info.model_name);
    }
    line("digest", base::hexadecimal(info.l3->digest));
  }
  if (info.sizes) {
    const l3_sizes& sizes = *info.sizes;
    line("bytes", "head " + std::to_string(sizes.head) + ", index " + std::to_string(sizes.index) + ", model " +
                      std::to_string(sizes.model) + ", other sections " + std::to_string(sizes.sections) +
                      ", payloads " + std::to_string(sizes.payloads));
    if (sizes.dense_payloads > 0) {
      line("dense", std::to_string(sizes.dense_payloads) + " bytes: states " + std::to_string(sizes.dense_states) +
                        ", classes worth " + std::to_string(sizes.dense_classes) + ", samples worth " +
                        std::to_string(sizes.dense_samples));
    }
  }
  for (const SectionInfo& section : info.sections) {
    line("section", std::string(section.name) + ", " + std::to_string(section.bytes) + " bytes");
  }
  constexpr std::array kPlaces = {"before the palette", "before the pixels", "after the pixels"};
  for (const formats::Chunk& chunk : info.chunks) {
    const std::string record = record_text(chunk);
    line("chunk", one_line(tag(chunk)) + ", " + std::to_string(chunk.data.size()) + " bytes, " +
                      (chunk.place < kPlaces.size() ? kPlaces[chunk.place] : "at no known place") +
                      (record.empty() ? "" : ": " + record));
  }
}

int describe(const InfoOptions& options, Context& context) {
  if (!options.html.empty()) {
    return write_contact_sheet({options.in, options.html, options.images, options.models, options.limits}, context);
  }
  if (options.in != "-" && (is_data_set(options.in) || is_folder(options.in))) {
    return describe_data_set(options.in, options.json, context);
  }
  Console& console = context.console;
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
  FileInfo found;
  found.file = display_name(options.in, "stdin");
  found.file_bytes = file->size();
  std::vector<Failure> failures;
  const std::optional<Failure> failure = is_l3(file->bytes())
                                             ? describe_l3(file->bytes(), options, models.all(), found, failures)
                                             : describe_foreign(file->bytes(), options, found, console);
  if (failure) {
    console.fail(*failure);
    return kExitFailed;
  }
  found.raw_bytes = raw_bytes(found);
  if (options.json) {
    console.print(as_json(found));
  } else {
    print_text(found, console);
  }
  for (const Failure& damaged : failures) console.fail(damaged);
  return failures.empty() ? kExitDone : kExitFailed;
}

int info(const InfoOptions& options, Context& context) try { return describe(options, context); } catch (...) {
  context.console.fail(caught(path_text(display_name(options.in, "stdin"))));
  return kExitFailed;
}

}  // namespace

void add_info(CommandLine& line) {
  Subcommand sub = line.command("info", "Describe a data set, an L3 file or another image");
  auto options = std::make_shared<InfoOptions>();
  sub.option("IN", options->in, "A data set, a shard, an L3 file or another image; - is stdin").required().type("");
  const Option json = sub.flag("--json", options->json, "Print one line of JSON")
                          .details("Its keys keep their meaning in later versions");
  const Option sizes =
      sub.flag("--sizes", options->sizes, "Also print the sizes of the parts of an L3 file; this decodes it");
  sub.option("--html", options->html, "Write a page with small pictures of the images; - is stdout")
      .type("FILE")
      .local()
      .excludes(json)
      .excludes(sizes)
      .details(
          "IN is a data set, a shard, a folder of L3 files or one L3 file. The page says name, label, group, size and "
          "bits a pixel of each image, and can show how its tiles are stored. It is one file without scripts. Deep and "
          "dark images are brightened; colour profiles are not applied");
  sub.option("--images", options->images, "Pictures that the page may have (default: 60)")
      .type("N")
      .whole_between(1, kMostImages)
      .needs("--html")
      .details("If there are more images, those on the page are spread over all of them");
  add_models(sub, options->models, "A model from l3 train that the file needs, for --sizes and --html");
  add_limits(sub, options->limits, true);
  sub.examples(
      "  l3 info photo.l3\n"
      "  l3 info set/\n"
      "  l3 info --json photo.l3 | jq .digest\n"
      "  l3 info --html set.html set/          small pictures of the images\n");
  sub.footer(
      "The ratio is the size of the file divided by the size of its raw samples: lower is better.\n"
      "Without --html, only headers, indexes and metadata are checked, not the pixels; for these use l3 verify.\n");
  sub.manual(
      "For the ratio, raw samples are packed to bits. The pixels of an L3 file or a PNG are not decoded. The head, "
      "the\n"
      "index, the sections and the metadata of an L3 file are checked, and so are the indexes of a data set.\n");
  sub.run([options](Context& context) { return info(*options, context); });
}

}  // namespace tools
