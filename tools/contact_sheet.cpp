#include "contact_sheet.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "base/exif.h"
#include "base/hex.h"
#include "base/parallel.h"
#include "bridge/image_bridge.h"
#include "conversion.h"
#include "data_sets.h"
#include "file_io.h"
#include "image_tree.h"
#include "model_files.h"
#include "picture.h"
#include "progress.h"

namespace tools {
namespace {

using formats::Colour;
using formats::Image;
using loader::Size;

constexpr uint32_t kEdge = 192;         // of the room for a picture, in pixels
constexpr uint32_t kMostEnlarged = 8;   // times
constexpr uint32_t kLeastTileEdge = 6;  // of tiles that get a line, in pixels of the page
constexpr uint8_t kFillOpacity = 120;   // of 255

// The images to choose from.
struct Source {
  std::optional<l3::DataSet> set;
  std::vector<uint64_t> samples;   // of the set: those that are images
  std::vector<std::string> files;  // if there is no set
  uint64_t others = 0;
  bool has_groups = false;  // of several samples
  std::vector<Failure> failures;

  uint64_t count() const { return set ? samples.size() : files.size(); }
};

Source list_images(const std::string& path) {
  Source source;
  if (path != "-" && is_data_set(path)) {
    Outcome<l3::DataSet> set = open_data_set(path);
    if (!set) {
      source.failures.push_back(set.failure());
      return source;
    }
    source.set.emplace(std::move(*set));
    const l3_data_info info = source.set->info();
    source.has_groups = info.groups != info.samples;
    for (uint64_t i = 0; i < info.samples; ++i) {
      if (source.set->sample(i).is_image()) source.samples.push_back(i);
    }
    source.others = info.samples - source.samples.size();
  } else if (path != "-" && is_folder(path)) {
    Tree tree = list_tree(path, Kind::l3);
    source.failures = std::move(tree.failures);
    source.files = std::move(tree.files);
    if (source.files.empty() && source.failures.empty()) {
      source.failures.push_back({path, std::nullopt, "neither a data set nor a folder of .l3 files"});
    }
  } else {
    source.files.push_back(path);
  }
  return source;
}

// Which images the page shows, in their order. Whole groups, as far apart as there are groups: the first ones would
// often be of one class.
std::vector<uint64_t> choose(const Source& source, uint64_t most) {
  const uint64_t count = source.count();
  std::vector<uint64_t> begins;  // of groups
  for (uint64_t i = 0; i < count; ++i) {
    if (i == 0 || !source.has_groups ||
        source.set->sample(source.samples[i]).group != source.set->sample(source.samples[i - 1]).group) {
      begins.push_back(i);
    }
  }
  const uint64_t groups = begins.size();
  begins.push_back(count);
  std::vector<uint64_t> chosen;
  const uint64_t wanted = count <= most ? groups : std::max<uint64_t>(most * groups / count, 1);
  for (uint64_t k = 0; k < wanted; ++k) {
    const uint64_t group = k * groups / wanted;
    for (uint64_t i = begins[group]; i < begins[group + 1] && chosen.size() < most; ++i) chosen.push_back(i);
  }
  return chosen;
}

size_t kind_of(uint32_t method, uint32_t model_origin) {
  if (method != L3_TILE_DENSE) return method;
  return model_origin == L3_MODEL_OWN ? 3 : model_origin == L3_MODEL_NAMED ? 4 : 5;
}

uint32_t orientation_of(const Image& image) {
  constexpr std::array<char, 4> kExif = {'e', 'X', 'I', 'f'};
  const auto found = std::ranges::find(image.chunks, kExif, &formats::Chunk::type);
  return found == image.chunks.end() ? 1 : base::orientation_of(found->data.data(), found->data.size());
}

// Whether a screen would show nearly nothing of it: deep samples, as depth maps have, or small numbers, as label maps.
bool is_dark(const Image& image) {
  if (image.colour == Colour::palette) return false;
  if (image.bits > 8) return true;
  if (image.colour != Colour::gray) return false;
  return *std::ranges::max_element(image.pixels) < (1u << image.bits) / 4;
}

// A picture of `size` that has the colour of the kind of tile at each pixel. Transparent; lines between tiles are not.
Image draw_tiles(const l3::File& file, uint32_t orientation, Size size) {
  const l3_info& info = file.info();
  const auto [columns_reversed, rows_reversed, is_transposed] = loader::lie_of(orientation);
  Image image;
  image.width = size.width;
  image.height = size.height;
  image.colour = Colour::palette;
  for (const auto opacity : {kFillOpacity, uint8_t{255}}) {
    for (const auto& colour : kTileColours) {
      image.palette.insert(image.palette.end(), colour.begin(), colour.end());
      image.transparency.push_back(opacity);
    }
  }
  const uint64_t across = (uint64_t{info.width} + info.tile_width - 1) / info.tile_width;
  // The column or row of tiles at a pixel of the page, along each axis of the stored image.
  const auto tiles_along = [](uint32_t stored, uint32_t shown, uint32_t tile, bool reversed) {
    std::vector<uint32_t> along(shown);
    for (uint32_t i = 0; i < shown; ++i) {
      const auto at = static_cast<uint32_t>((2 * uint64_t{i} + 1) * stored / (2 * uint64_t{shown}));
      along[i] = (reversed ? stored - 1 - at : at) / tile;
    }
    return along;
  };
  const uint32_t shown_width = is_transposed ? size.height : size.width;
  const uint32_t shown_height = is_transposed ? size.width : size.height;
  const std::vector<uint32_t> columns = tiles_along(info.width, shown_width, info.tile_width, columns_reversed);
  const std::vector<uint32_t> rows = tiles_along(info.height, shown_height, info.tile_height, rows_reversed);
  const bool has_lines = uint64_t{info.tile_width} * shown_width >= uint64_t{kLeastTileEdge} * info.width &&
                         uint64_t{info.tile_height} * shown_height >= uint64_t{kLeastTileEdge} * info.height;
  const auto is_end = [](const std::vector<uint32_t>& along, uint32_t i) {
    return i == 0 || along[i] != along[i - 1] || i + 1 == along.size();
  };
  image.pixels.reserve(size_t{size.width} * size.height);
  for (uint32_t y = 0; y < size.height; ++y) {
    for (uint32_t x = 0; x < size.width; ++x) {
      const uint32_t column = is_transposed ? y : x, row = is_transposed ? x : y;
      const uint32_t method = l3_file_tile_method(file.get(), rows[row] * across + columns[column]);
      const size_t kind = kind_of(method, info.model_origin);
      const bool is_line = has_lines && (is_end(columns, column) || is_end(rows, row));
      image.pixels.push_back(static_cast<uint8_t>(kind + (is_line ? kTileKinds.size() : 0)));
    }
  }
  return image;
}

std::optional<Failure> write_png(const std::string& name, const Image& image, std::vector<uint8_t>& out) {
  formats::Result<std::vector<uint8_t>> png = formats::write(formats::Format::png, image);
  if (!png) return failure_in(name, png.error());
  out = std::move(*png);
  return std::nullopt;
}

class CardMaker {
 public:
  CardMaker(const SheetOptions& options, const Source& source, const ModelFiles& models)
      : options_(options), source_(source), models_(models.all().begin(), models.all().end()) {
    if (!source.set) return;
    size_t count = 0;
    const l3_model* const* of_set = l3_data_models(source.set->get(), &count);
    models_.insert(models_.end(), of_set, of_set + count);
  }

  // Returns what is wrong with the image. The card says it, too.
  std::optional<Failure> make(uint64_t index, Card& card, l3_parallel parallel) const {
    std::optional<Failure> failure;
    try {
      failure = make_card(index, card, parallel);
    } catch (...) {
      failure = caught(card.name);
    }
    if (failure) card.failure = failure->reason;
    return failure;
  }

 private:
  std::optional<Failure> make_card(uint64_t index, Card& card, l3_parallel parallel) const {
    if (!source_.set) {
      const std::string& file = source_.files[index];
      card.name = display_name(file, "stdin");
      const std::string path = is_folder(options_.in) ? join(options_.in, file) : file;
      const Outcome<bridge::Buffer> bytes = read_file(path);
      if (!bytes) return bytes.failure();
      return describe(display_name(path, "stdin"), bytes->bytes(), card, parallel);
    }
    const l3::Sample sample = source_.set->sample(source_.samples[index]);
    card.name = sample.name_text();
    card.label = label_text(*source_.set, sample);
    if (source_.has_groups) card.group = std::to_string(sample.group) + " (" + std::string(sample.role_text()) + ")";
    const Outcome<bridge::Buffer> bytes = read_sample(*source_.set, source_.samples[index]);
    if (!bytes) return bytes.failure();
    return describe(display_name(*source_.set, sample), bytes->bytes(), card, parallel);
  }

  std::optional<Failure> describe(const std::string& name, std::span<const uint8_t> bytes, Card& card,
                                  l3_parallel parallel) const {
    card.bytes = bytes.size();
    if (!is_l3(bytes)) return Failure{name, std::nullopt, "not an L3 file; the page shows only these"};
    const l3::Result<l3::File> file = l3::File::open(bytes, decode_options(options_.limits, models_, parallel));
    if (!file) return failure_in(name, bridge::to_error(file.error()));
    const l3_info& info = file->info();
    constexpr std::array kLayouts = {"gray", "gray with alpha", "RGB", "RGB with alpha", "palette"};
    card.width = info.width;
    card.height = info.height;
    card.layout =
        std::string(kLayouts[info.colour]) + ", " + std::to_string(info.bits) + (info.bits == 1 ? " bit" : " bits");
    if (info.model_origin == L3_MODEL_NAMED) card.model = base::hexadecimal(info.model_name);
    for (uint32_t method = 0; method <= L3_TILE_DENSE; ++method) {
      (void)!l3_file_count_tiles(file->get(), method, &card.tiles[kind_of(method, info.model_origin)], nullptr);
    }
    Image image;
    std::optional<formats::Error> damage;
    if (const auto error = bridge::decode_l3(*file, {}, image, &damage)) return failure_in(name, *error);
    const uint32_t orientation = orientation_of(image);
    card.is_stretched = is_dark(image);
    make_visible(image, card.is_stretched, info.alpha == L3_ALPHA_PREMULTIPLIED);
    if (auto failure = fit(name, {kEdge, kEdge}, options_.limits, image)) return failure;
    OpaqueImage opaque = on_checkerboard(image);
    Image picture;
    picture.width = opaque.width;
    picture.height = opaque.height;
    picture.colour = Colour::rgb;
    picture.pixels = std::move(opaque.pixels);
    const uint32_t times = std::clamp(kEdge / std::max(picture.width, picture.height), 1u, kMostEnlarged);
    card.shown_width = picture.width * times;
    card.shown_height = picture.height * times;
    if (auto failure = write_png(name, picture, card.picture)) return failure;
    const Image tiles = draw_tiles(*file, orientation, {card.shown_width, card.shown_height});
    if (auto failure = write_png(name, tiles, card.tile_picture)) return failure;
    if (damage) return failure_in(name, *damage);
    return std::nullopt;
  }

  const SheetOptions& options_;
  const Source& source_;
  std::vector<const l3_model*> models_;
};

}  // namespace

int write_contact_sheet(const SheetOptions& options, Context& context) {
  Console& console = context.console;
  if (options.out == "-" && console.stdout_is_terminal()) {
    return wrong_usage(context, "info: --html -: stdout is a terminal; redirect it to a file or a pipe");
  }
  if (options.in != "-" && options.out != "-" && is_same_file(options.in, options.out)) {
    return wrong_usage(context, "info: --html names the image itself");
  }
  ModelFiles models;
  if (const auto failure = models.open(options.models)) {
    console.fail(*failure);
    return kExitFailed;
  }
  const Source source = list_images(options.in);
  for (const Failure& failure : source.failures) console.fail(failure);
  if (!source.failures.empty()) return kExitFailed;

  SheetPage page;
  page.title = path_text(display_name(options.in, "stdin"));
  page.images = source.count();
  page.others = source.others;
  const std::vector<uint64_t> chosen = choose(source, options.images);
  page.cards.resize(chosen.size());
  std::vector<std::optional<Failure>> failures(chosen.size());
  const CardMaker maker(options, source, models);
  base::Parallel parallel(reading_threads(options.in, 0));
  if (chosen.size() == 1) {
    failures[0] = maker.make(chosen[0], page.cards[0], parallel.for_l3());
  } else {
    parallel.for_each(chosen.size(),
                      [&](uint64_t i) { failures[i] = maker.make(chosen[i], page.cards[i], l3_parallel{}); });
  }
  bool has_failed = false;
  for (const auto& failure : failures) {
    if (!failure) continue;
    console.fail(*failure);
    has_failed = true;
  }
  if (has_failed && !source.set && source.count() == 1 && page.cards[0].picture.empty()) return kExitFailed;
  const std::string html = sheet_html(page);
  const std::span bytes(reinterpret_cast<const uint8_t*>(html.data()), html.size());
  if (const auto failure = write_file(options.out, bytes, Flush::none, context.unfinished)) {
    console.fail(*failure);
    return kExitFailed;
  }
  if (options.out != "-") {
    console.print(one_line(options.out) + ": " + std::to_string(chosen.size()) + " of " + std::to_string(page.images) +
                  (page.images == 1 ? " image, " : " images, ") + format_bytes(html.size()));
  }
  return has_failed ? kExitFailed : kExitDone;
}

}  // namespace tools
