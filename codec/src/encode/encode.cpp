// Writes a file: first the sections, then all tiles, each to a place with room for the worst case, then closes the
// gaps.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <vector>

#include "api/options.h"
#include "api/parallel.h"
#include "container/metadata.h"
#include "decode/container.h"
#include "encode/dense_encode.h"
#include "encode/image_check.h"
#include "encode/token_encode.h"

namespace l3 {
namespace {

constexpr uint32_t kDefaultTileEdge = 128;
// If token-model tiles of the default size would have fewer bytes than this, larger tiles are used: each tile has a
// fixed cost, and a small tile is decoded by few lanes, which is slow.
constexpr double kMinTileBytes = 4096;
constexpr uint32_t kMaxPlannedTileEdge = 512;
constexpr uint32_t kDefaultEffort = 5, kMinEffort = 1;
// For 8-bit images in which more pixels than this repeat a neighbour, only token models are tried.
constexpr double kMaxRepeats = 0.8;
constexpr uint64_t kMinModelled = 256;  // samples; with fewer, a model costs more than it saves
// For images with at most this many samples, the default model may give the smaller file.
constexpr uint64_t kMaxWithDefault = uint64_t{1} << 20;
// A fitted model cannot save enough if the payloads have fewer bytes than this.
constexpr uint64_t kMinSavedByOwnModel = 1024;

constexpr uint8_t kNotYet = 0;  // stands in for a section whose contents are made later

struct NewSection {
  uint32_t type;
  const uint8_t* bytes;
  uint64_t size;
};

// A valid image with valid options, and the layout of the file that follows from them.
struct Plan {
  l3_image image;
  l3_encode_options options;
  Head head;  // sections and payload_start assume the largest possible metadata until it is packed
  NewSection sections[kMaxSections];
  Palette palette{};  // if the image has one
  size_t stride;
  bool dense = false;      // the file has a model, so tiles may be dense
  bool undecided = false;  // other models and other model origins may be tried too
  bool tokens = false;     // a model that is fitted to the image is a token model
  TokenPlan token_plan;

  NewSection* model() {
    for (uint32_t i = 0; i < head.section_count; ++i) {
      if (sections[i].type == L3_SECTION_MODEL) return &sections[i];
    }
    return nullptr;
  }
};

Reason check_options(const l3_encode_options& options) {
  if (options.method > L3_METHOD_DENSE) return Reason::unknown_method;
  if (options.model != nullptr && (options.model_size == 0 || options.model_size > kMaxTokenModelBytes)) {
    return Reason::bad_model_size;
  }
  if (options.model_origin > L3_MODEL_DEFAULT || (options.model != nullptr && options.named_model != nullptr)) {
    return Reason::bad_model_origin;
  }
  const uint32_t supplied = options.model != nullptr         ? L3_MODEL_OWN
                            : options.named_model != nullptr ? L3_MODEL_NAMED
                                                             : L3_MODEL_NONE;
  const bool fits = options.model_origin == L3_MODEL_NONE || options.model_origin == supplied ||
                    (supplied == L3_MODEL_NONE && options.model_origin != L3_MODEL_NAMED);
  if (!fits) return Reason::bad_model_origin;
  if (options.effort > 9) return Reason::bad_effort;
  const auto bad_edge = [](uint32_t edge) { return edge % 32 != 0 || edge > kMaxTileEdge; };
  if (bad_edge(options.tile_width) || bad_edge(options.tile_height)) return Reason::bad_tile_size;
  return Reason::none;
}

void assign_offsets(Plan& plan) {
  Head& head = plan.head;
  head.head_bytes = head.entries_at() + uint64_t{head.section_count} * kSectionEntryBytes;
  head.index_end = pad_to_unit(head.head_bytes + head.tile_count * kIndexEntryBytes);
  uint64_t at = head.index_end;
  for (uint32_t i = 0; i < head.section_count; ++i) {
    head.sections[i] = {plan.sections[i].type, 0, at, plan.sections[i].size};
    at += pad_to_unit(plan.sections[i].size);
  }
  head.payload_start = at;
}

// Where the model comes from. A fitted model is preferred to a default one if both are allowed.
uint32_t planned_origin(const Plan& plan) {
  const l3_encode_options& options = plan.options;
  if (options.method == L3_METHOD_FAST) return L3_MODEL_NONE;
  if (options.named_model != nullptr) return L3_MODEL_NAMED;
  if (options.model != nullptr) return L3_MODEL_OWN;
  const bool has_default = default_model_for(plan.head.channels, plan.image.bits) != 0;
  if (options.model_origin == L3_MODEL_DEFAULT) return has_default ? L3_MODEL_DEFAULT : L3_MODEL_NONE;
  const bool pays = uint64_t{plan.image.width} * plan.image.height * plan.head.channels > kMinModelled;
  const bool forced = options.model_origin == L3_MODEL_OWN && options.method == L3_METHOD_DENSE;
  if (pays || forced) return L3_MODEL_OWN;
  return has_default && options.model_origin == L3_MODEL_NONE ? L3_MODEL_DEFAULT : L3_MODEL_NONE;
}

void take_origin(Plan& plan, uint32_t origin) {
  plan.dense = origin != L3_MODEL_NONE;
  plan.head.required_features = origin == L3_MODEL_NAMED ? kNamedModel : 0;
  plan.head.default_model = origin == L3_MODEL_DEFAULT ? default_model_for(plan.head.channels, plan.head.bits) : 0;
}

bool fit_payloads(const Head& head) {
  return raw_bytes(head.tile_width, head.tile_height, head.channels, head.bits) <= uint64_t{kMaxPayloadUnits} * kUnit;
}

// Sets the tile size: from the options, otherwise `edge`, halved while the tiles would be too large for a payload.
void set_tiles(Plan& plan, uint32_t edge) {
  Head& head = plan.head;
  const auto set = [&](uint32_t to) {
    head.tile_width = plan.options.tile_width != 0 ? plan.options.tile_width : to;
    head.tile_height = plan.options.tile_height != 0 ? plan.options.tile_height : to;
  };
  set(edge);
  while (edge > kDefaultTileEdge && !fit_payloads(head)) set(edge /= 2);
  head.tiles_across = ceil_div(head.width, head.tile_width);
  head.tiles_down = ceil_div(head.height, head.tile_height);
  head.tile_count = uint64_t{head.tiles_across} * head.tiles_down;
}

bool is_for(const l3_model& model, const Head& head) {
  return model.tables.channels() == head.channels && model.tables.bits() == head.bits;
}

Reason make_plan(const l3_image* image, const l3_encode_options* options, Plan& plan) {
  if (image == nullptr) return Reason::null_argument;
  if (!copy_sized(image, plan.image) || !copy_sized(options, plan.options)) return Reason::bad_struct_size;
  Reason reason = check_image(plan.image);
  if (reason == Reason::none) reason = check_options(plan.options);
  if (reason != Reason::none) return reason;

  const l3_image& in = plan.image;
  Head& head = plan.head;
  head = Head{};
  head.width = in.width;
  head.height = in.height;
  head.colour = in.colour;
  head.alpha = in.alpha;
  head.channels = channels_of(in);
  head.bits = in.bits;
  head.sample_type = in.bits > 8 ? L3_SAMPLE_U16 : L3_SAMPLE_U8;
  set_tiles(plan, kDefaultTileEdge);
  if (!fit_payloads(head)) return Reason::bad_tile_size;

  plan.stride = stride_of(in);

  const uint32_t origin = planned_origin(plan);
  if (origin == L3_MODEL_NAMED && !is_for(*plan.options.named_model, head)) return Reason::wrong_model;
  take_origin(plan, origin);
  const bool supplied = plan.options.model != nullptr;
  plan.undecided = origin == L3_MODEL_OWN && !supplied;
  const bool indexed = in.colour == L3_COLOUR_PALETTE;
  if (indexed) plan.palette = shortest_palette(in.palette, in.palette_entries);
  const NewSection all[] = {
      {L3_SECTION_PALETTE, in.palette, indexed ? plan.palette.section_bytes() : 0},
      {L3_SECTION_TRANSPARENCY, in.transparency, in.transparency_size},
      {L3_SECTION_COLOUR_SPACE, in.colour_space,
       in.colour_space != nullptr ? colour_space_bytes(in.colour_space[0]) : 0},
      {L3_SECTION_ICC, in.icc, in.icc_size},
      {L3_SECTION_EXIF, in.exif, in.exif_size},
      {L3_SECTION_MODEL, supplied ? plan.options.model : &kNotYet,
       origin == L3_MODEL_OWN ? (supplied ? plan.options.model_size : kMaxTokenModelBytes) : 0},
      {L3_SECTION_METADATA, in.metadata, in.metadata != nullptr ? metadata_bound(in.metadata_size) : 0},
  };
  for (const NewSection& section : all) {
    if (section.bytes != nullptr && section.size != 0) plan.sections[head.section_count++] = section;
  }
  assign_offsets(plan);
  return Reason::none;
}

// Where a tile is encoded before the gaps are closed, relative to the payload start. Each tile has room for a raw
// tile.
uint64_t place_of(const Head& head, uint64_t tile) {
  const uint64_t row = tile / head.tiles_across;
  const uint64_t column = tile % head.tiles_across;
  const auto row_bytes = [&](uint32_t height, uint64_t columns) {
    uint64_t bytes = columns * raw_bytes(head.tile_width, height, head.channels, head.bits);
    if (columns == head.tiles_across) {  // the last tile of a row is narrower
      const uint32_t last = head.width - (head.tiles_across - 1) * head.tile_width;
      bytes += raw_bytes(last, height, head.channels, head.bits) -
               raw_bytes(head.tile_width, height, head.channels, head.bits);
    }
    return bytes;
  };
  const uint32_t height = head.tile_shape(tile).height;
  return row * row_bytes(head.tile_height, head.tiles_across) + (column > 0 ? row_bytes(height, column) : 0);
}

uint64_t total_places(const Head& head) {
  const uint64_t last = head.tile_count - 1;
  const TileShape shape = head.tile_shape(last);
  return place_of(head, last) + raw_bytes(shape.width, shape.height, shape.channels, shape.bits);
}

class TileWriter {
 public:
  // `dense` is null if no tile may be dense.
  TileWriter(const Plan& plan, const Target& target, const ModelEncoder* dense, uint8_t* out)
      : plan_(plan), target_(target), dense_(dense), out_(out) {}

  // Encodes one tile into its place and fills in its index entry, except for the payload's offset.
  void operator()(uint64_t tile) {
    if (!in_range_.load(std::memory_order_relaxed)) return;
    const Head& head = plan_.head;
    const uint64_t x = tile % head.tiles_across * head.tile_width;
    const uint64_t y = tile / head.tiles_across * head.tile_height;
    const uint8_t* pixels = static_cast<const uint8_t*>(plan_.image.pixels) + y * plan_.stride + x * head.pixel_bytes();
    uint8_t* place = out_ + head.payload_start + place_of(head, tile);
    TileChoice choice{};
    // With L3_METHOD_DENSE, other methods are used only for tiles that cannot be dense.
    const bool only_dense = dense_ != nullptr && plan_.options.method == L3_METHOD_DENSE;
    if (!only_dense || is_constant(head.tile_shape(tile), pixels) || !try_dense(tile, place, choice)) {
      choice = target_.encode(head.tile_shape(tile), {pixels, plan_.stride}, place);
      if (!choice.in_range) {
        in_range_.store(false, std::memory_order_relaxed);
        return;
      }
      if (!only_dense && dense_ != nullptr && choice.method != Method::constant) try_dense(tile, place, choice);
    }
    uint8_t* entry = entry_of(tile);
    entry[0] = static_cast<uint8_t>(choice.method);
    entry[1] = choice.parameters;
    store_u16(entry + 2, choice.payload_bytes / kUnit);
    if (choice.method == Method::constant) {
      for (uint32_t c = 0; c < kMaxChannels; ++c) store_u16(entry + 4 + 2 * c, choice.value[c]);
    } else {
      store_u32(entry + 8, target_.check(place, choice.payload_bytes / 4));
    }
  }

  bool in_range() const { return in_range_.load(); }
  // How many bytes dense tiles saved compared with the other methods.
  uint64_t saved_bytes() const { return saved_bytes_.load(); }

  // Moves the payloads together. Returns the size of the file.
  uint64_t close_gaps() {
    uint64_t end = plan_.head.payload_start;
    for (uint64_t tile = 0; tile < plan_.head.tile_count; ++tile) {
      uint8_t* entry = entry_of(tile);
      if (entry[0] == static_cast<uint8_t>(Method::constant)) continue;
      const uint64_t bytes = uint64_t{load_u16(entry + 2)} * kUnit;
      std::memmove(out_ + end, out_ + plan_.head.payload_start + place_of(plan_.head, tile), bytes);
      store_u32(entry + 4, static_cast<uint32_t>(end / kUnit));
      end += bytes;
    }
    return end;
  }

 private:
  uint8_t* entry_of(uint64_t tile) { return out_ + plan_.head.head_bytes + tile * kIndexEntryBytes; }

  bool is_constant(const TileShape& shape, const uint8_t* pixels) const {
    const size_t pixel = plan_.head.pixel_bytes(), row = shape.width * pixel;
    if (std::memcmp(pixels, pixels + pixel, row - pixel) != 0) return false;
    for (uint32_t y = 1; y < shape.height; ++y) {
      if (std::memcmp(pixels, pixels + y * plan_.stride, row) != 0) return false;
    }
    return true;
  }

  // Makes a tile dense if that is smaller than the earlier choice, or than a raw tile if there is no earlier choice.
  bool try_dense(uint64_t tile, uint8_t* place, TileChoice& choice) {
    const TileShape shape = plan_.head.tile_shape(tile);
    const uint32_t maximum =
        choice.payload_bytes != 0
            ? choice.payload_bytes
            : static_cast<uint32_t>(raw_bytes(shape.width, shape.height, shape.channels, shape.bits));
    const auto payload = std::make_unique_for_overwrite<uint8_t[]>(maximum);
    uint8_t parameters = 0;
    const uint32_t bytes = dense_->encode(tile, payload.get(), maximum - kUnit, parameters);
    if (bytes == 0) return false;
    std::memcpy(place, payload.get(), bytes);
    saved_bytes_ += maximum - bytes;
    choice.method = Method::dense;
    choice.parameters = parameters;
    choice.payload_bytes = bytes;
    return true;
  }

  const Plan& plan_;
  const Target& target_;
  const ModelEncoder* dense_;
  uint8_t* out_;
  std::atomic<bool> in_range_{true};
  std::atomic<uint64_t> saved_bytes_{0};
};

// Writes the sections and their checks. Packs the metadata, which determines the payload start.
Reason write_sections(Plan& plan, const Target& target, uint8_t* out) {
  Head& head = plan.head;
  for (uint32_t i = 0; i < head.section_count; ++i) {
    NewSection& section = plan.sections[i];
    uint8_t* at = out + head.sections[i].offset;
    if (section.type == L3_SECTION_METADATA) {
      section.size = pack_metadata(plan.image.metadata, plan.image.metadata_size, at, section.size);
      if (section.size == 0) return Reason::pack_failed;
    } else if (section.type == L3_SECTION_PALETTE) {
      write_palette(plan.palette, at);
    } else {
      std::memcpy(at, section.bytes, section.size);
    }
  }
  assign_offsets(plan);
  for (uint32_t i = 0; i < head.section_count; ++i) {
    Section& section = head.sections[i];
    const uint64_t padded = pad_to_unit(section.size);
    std::memset(out + section.offset + section.size, 0, padded - section.size);
    section.check = target.check(out + section.offset, padded / 4);
  }
  return Reason::none;
}

// `name` is the name of a named model.
void write_head(const Head& head, const Target& target, const uint8_t* name, uint8_t* out) {
  const uint64_t index_end = head.head_bytes + head.tile_count * kIndexEntryBytes;
  std::memset(out + index_end, 0, head.index_end - index_end);
  std::memset(out, 0, head.head_bytes);
  for (uint32_t i = 0; i < kSignatureBytes; ++i) out[i] = signature_byte(i);
  store_u16(out + header::kSectionCount, head.section_count);
  store_u16(out + header::kRequired, head.required_features);
  store_u16(out + header::kDefaultModel, head.default_model);
  if (head.names_model()) std::memcpy(out + kHeaderBytes, name, kModelNameBytes);
  store_u32(out + header::kWidth, head.width);
  store_u32(out + header::kHeight, head.height);
  store_u32(out + header::kFrames, 1);
  store_u16(out + header::kChannels, head.channels);
  out[header::kSampleType] = static_cast<uint8_t>(head.sample_type);
  out[header::kBits] = static_cast<uint8_t>(head.bits);
  out[header::kColour] = static_cast<uint8_t>(head.colour);
  out[header::kAlpha] = static_cast<uint8_t>(head.alpha);
  out[header::kTileWidth] = static_cast<uint8_t>(head.tile_width / 32);
  out[header::kTileHeight] = static_cast<uint8_t>(head.tile_height / 32);
  store_u32(out + header::kIndexCheck, target.check(out + head.head_bytes, (head.index_end - head.head_bytes) / 4));
  for (uint32_t i = 0; i < head.section_count; ++i) {
    uint8_t* entry = out + head.entries_at() + i * kSectionEntryBytes;
    store_u16(entry + section_entry::kType, head.sections[i].type);
    store_u32(entry + section_entry::kCheck, head.sections[i].check);
    store_u32(entry + section_entry::kOffset, static_cast<uint32_t>(head.sections[i].offset / kUnit));
    store_u32(entry + section_entry::kSize, static_cast<uint32_t>(head.sections[i].size));
  }
  digest_of(out, head.payload_start, out + header::kDigest);
  store_u32(out + header::kHeadCheck, target.check(out, head.head_bytes / 4));
}

// How many bytes a model adds to a file: its name, or its section and entry and the change of the index's padding.
uint64_t model_bytes(Plan& plan) {
  if (plan.head.names_model()) return kModelNameBytes;
  const uint64_t index_end = plan.head.head_bytes + plan.head.tile_count * kIndexEntryBytes;
  return pad_to_unit(plan.model()->size) + pad_to_unit(index_end) - pad_to_unit(index_end - kSectionEntryBytes);
}

// Undoes the reservation of a model section in the plan.
void drop_section(Plan& plan) {
  NewSection* model = plan.model();
  if (model == nullptr) return;
  NewSection* end = plan.sections + plan.head.section_count--;
  for (NewSection* section = model; section + 1 < end; ++section) *section = section[1];
}

// Changes the plan to a model from elsewhere, or to no model.
void change_origin(Plan& plan, uint32_t origin) {
  drop_section(plan);
  take_origin(plan, origin);
  for (uint32_t i = 0; i < plan.head.section_count; ++i) {
    NewSection& section = plan.sections[i];
    if (section.type == L3_SECTION_METADATA) section.size = metadata_bound(plan.image.metadata_size);
  }
  assign_offsets(plan);
}

// The bytes of the model, or empty if a model is to be fitted.
std::span<const uint8_t> known_model(const Plan& plan) {
  const l3_encode_options& options = plan.options;
  if (plan.head.default_model != 0) {
    const DefaultModel& standard = kDefaultModelTable[plan.head.default_model - 1];
    return {standard.bytes, standard.size};
  }
  if (plan.head.names_model()) return options.named_model->bytes;
  if (options.model != nullptr) return {options.model, options.model_size};
  return {};
}

uint32_t effort_of(const Plan& plan) { return plan.options.effort != 0 ? plan.options.effort : kDefaultEffort; }

TileSource source_of(const Plan& plan) {
  return TileSource(plan.head, static_cast<const uint8_t*>(plan.image.pixels), plan.stride);
}

// Fits the model or uses the known one, and enters it in the plan.
Reason make_encoder(Plan& plan, const Target& target, std::unique_ptr<ModelEncoder>& encoder) {
  const TileSource source = source_of(plan);
  const std::span<const uint8_t> known = known_model(plan);
  const bool tokens = known.empty() ? plan.tokens : kind_of_model(known.data(), known.size()) == kTokenModelKind;
  Fault fault;
  if (tokens) {
    auto made = std::make_unique<TokenEncoder>(source, plan.options.parallel);
    if (known.empty()) {
      made->fit(plan.token_plan, effort_of(plan));
    } else {
      fault = made->use(known.data(), known.size());
    }
    encoder = std::move(made);
  } else {
    if (plan.head.bits != 8) return Reason::model_unexpected;
    auto made = std::make_unique<DenseEncoder>(source, target.dense, plan.options.parallel);
    if (known.empty()) {
      made->fit(effort_of(plan));
    } else {
      fault = made->use(known.data(), known.size(), effort_of(plan));
    }
    encoder = std::move(made);
  }
  if (fault.reason != Reason::none) return fault.reason;
  if (known.empty()) {
    NewSection* section = plan.model();
    section->bytes = encoder->model().data();
    section->size = encoder->model().size();
    assign_offsets(plan);
  }
  return Reason::none;
}

// Writes a file as planned, to a buffer that is large enough. May throw std::bad_alloc.
Reason write_as_planned(Plan& plan, const Target& target, uint8_t* out, size_t& written) {
  std::unique_ptr<ModelEncoder> dense;
  Reason reason = plan.dense ? make_encoder(plan, target, dense) : Reason::none;
  if (reason == Reason::none) reason = write_sections(plan, target, out);
  if (reason != Reason::none) return reason;
  TileWriter writer(plan, target, dense.get(), out);
  run_parallel(plan.options.parallel, plan.head.tile_count, writer);
  if (!writer.in_range()) return Reason::sample_out_of_range;
  const bool is_default = plan.head.default_model != 0;
  if (is_default && writer.saved_bytes() == 0) plan.head.default_model = 0;  // no tile needs it
  if (plan.dense && !is_default && plan.options.method == L3_METHOD_AUTO && writer.saved_bytes() <= model_bytes(plan)) {
    // The model takes more bytes than it saves.
    change_origin(plan, L3_MODEL_NONE);
    return write_as_planned(plan, target, out, written);
  }
  const uint64_t end = writer.close_gaps();
  if (end > kMaxFileBytes) return Reason::file_too_large;
  const l3_model* named = plan.options.named_model;
  write_head(plan.head, target, named != nullptr ? named->name : nullptr, out);
  written = end;
  return Reason::none;
}

// The tile edge for a token model with which a pixel takes this many bytes.
uint32_t edge_for(double bytes_of_pixel) {
  uint32_t edge = kDefaultTileEdge;
  while (edge < kMaxPlannedTileEdge && bytes_of_pixel * edge * edge < kMinTileBytes) edge *= 2;
  return edge;
}

// Whether the image is small enough to try every kind of model.
bool is_small(const Plan& plan) {
  return uint64_t{plan.head.width} * plan.head.height * plan.head.channels <= kMaxWithDefault;
}

// Adds a plan. For a small image, also adds one with the default effort, whose simpler model may make a smaller file.
void add_plan(const Plan& plan, std::vector<Plan>& all) {
  if (is_small(plan) && effort_of(plan) > kDefaultEffort) {
    all.push_back(plan);
    all.back().options.effort = kDefaultEffort;
  }
  all.push_back(plan);
}

// The same plan with a token model, of the variant that is best as far as this effort can tell.
Plan with_tokens(const Plan& plan, const TileSource& source, uint32_t effort) {
  Plan result = plan;
  result.tokens = true;
  result.options.effort = effort;
  const auto choice = TokenEncoder(source, plan.options.parallel).choose(effort);
  result.token_plan = choice.plan;
  set_tiles(result, edge_for(choice.bytes / (static_cast<double>(plan.head.width) * plan.head.height)));
  assign_offsets(result);
  return result;
}

// The plans to choose the smallest file from, the fastest ones first.
std::vector<Plan> plans_of(const Plan& plan) {
  std::vector<Plan> all;
  if (is_small(plan) && plan.options.model_origin == L3_MODEL_NONE &&
      default_model_for(plan.head.channels, plan.head.bits) != 0) {
    all.push_back(plan);
    change_origin(all.back(), L3_MODEL_DEFAULT);
  }
  const TileSource source = source_of(plan);
  const double repeats = plan.head.bits == 8 ? share_of_repeats(source) : 1;
  if (repeats >= kRepeatsForTokens) {
    // For a small image, the simple model of the lowest effort may make the smallest file.
    if (is_small(plan) && effort_of(plan) > kDefaultEffort) all.push_back(with_tokens(plan, source, kMinEffort));
    const Plan tokens = with_tokens(plan, source, effort_of(plan));
    add_plan(tokens, all);
    if (plan.head.bits != 8 || (tokens.token_plan.literal && repeats > kMaxRepeats)) return all;
  }
  add_plan(plan, all);
  return all;
}

// Writes the smallest of the files that the plans make.
Reason write_smallest(const Plan& plan, const Target& target, uint8_t* out, size_t& written) {
  if (!samples_in_range(plan.image)) return Reason::sample_out_of_range;
  std::vector<Plan> plans = plans_of(plan);
  std::unique_ptr<uint8_t[]> best;
  size_t minimum = SIZE_MAX;
  bool own_pays = true;
  for (size_t i = 0; i < plans.size(); ++i) {
    if (i + 1 == plans.size() && !own_pays) break;
    const bool is_default = plans[i].head.default_model != 0;
    size_t size = 0;
    const Reason reason = write_as_planned(plans[i], target, out, size);
    if (reason != Reason::none) return reason;
    if (is_default) own_pays = size - plans[i].head.payload_start > kMinSavedByOwnModel;
    if (size >= minimum) continue;
    minimum = size;
    if (i + 1 == plans.size()) {
      written = size;
      return Reason::none;
    }
    best = std::make_unique_for_overwrite<uint8_t[]>(size);
    std::memcpy(best.get(), out, size);
  }
  std::memcpy(out, best.get(), minimum);
  written = minimum;
  return Reason::none;
}

// Whether the encoder may use another model than the named one.
bool may_do_without_name(const Plan& plan) {
  return plan.head.names_model() && plan.options.model_origin == L3_MODEL_NONE;
}

Reason plan_without_name(const Plan& plan, Plan& other) {
  l3_encode_options options = plan.options;
  options.named_model = nullptr;
  return make_plan(&plan.image, &options, other);
}

// Whether the written file has tiles that are neither dense nor constant.
bool has_other_tiles(const Plan& plan, const uint8_t* file) {
  for (uint64_t tile = 0; tile < plan.head.tile_count; ++tile) {
    const Method method = static_cast<Method>(file[plan.head.head_bytes + tile * kIndexEntryBytes]);
    if (method != Method::dense && method != Method::constant) return true;
  }
  return false;
}

// Writes the file with the named model. If the image is small, or if some tile cannot be coded with that model, also
// encodes without it and keeps the smaller file.
Reason write_named(const Plan& plan, const Target& target, uint8_t* out, size_t& written) {
  Plan named = plan, other;
  Reason reason = plan_without_name(plan, other);
  if (reason == Reason::none) reason = write_as_planned(named, target, out, written);
  const std::vector<uint8_t>& model = plan.options.named_model->bytes;
  if (reason == Reason::none && named.head.names_model() &&
      kind_of_model(model.data(), model.size()) == kTokenModelKind) {
    // Now it is known how many bytes a pixel takes, and so how large the tiles should be.
    const double bytes = static_cast<double>(written - named.head.payload_start);
    set_tiles(named, edge_for(bytes / (static_cast<double>(named.head.width) * named.head.height)));
    assign_offsets(named);
    if (named.head.tile_count != plan.head.tile_count) reason = write_as_planned(named, target, out, written);
  }
  if (reason != Reason::none || !(is_small(plan) || has_other_tiles(named, out))) return reason;
  const size_t size = written;
  const auto copy = std::make_unique_for_overwrite<uint8_t[]>(size);
  std::memcpy(copy.get(), out, size);
  reason = write_smallest(other, target, out, written);
  if (reason != Reason::none || written < size) return reason;
  std::memcpy(out, copy.get(), size);
  written = size;
  return reason;
}

// The size of buffer that is always sufficient.
uint64_t room_for(const Plan& plan) {
  const uint64_t room = plan.head.payload_start + total_places(plan.head);
  Plan other;
  if (!may_do_without_name(plan) || plan_without_name(plan, other) != Reason::none) return room;
  return std::max(room, other.head.payload_start + total_places(other.head));
}

}  // namespace
}  // namespace l3

using namespace l3;

uint64_t l3_encode_bound(const l3_image* image, const l3_encode_options* options) {
  Plan plan;
  if (make_plan(image, options, plan) != Reason::none) return 0;
  return room_for(plan);
}

l3_status l3_encode(const l3_image* image, const l3_encode_options* options, void* out, size_t out_size,
                    size_t* written, l3_error* error) {
  if (out == nullptr || written == nullptr) return fail(error, Reason::null_argument);
  Plan plan;
  Reason reason = make_plan(image, options, plan);
  if (reason != Reason::none) return fail(error, reason);
  const Target* chosen = target();
  if (chosen == nullptr) return fail(error, Reason::unknown_cpu_target);
  if (out_size < room_for(plan)) return fail(error, Reason::buffer_too_small);
  if (overlap(plan.image.pixels, bytes_of(plan.image), out, out_size)) return fail(error, Reason::buffers_overlap);

  try {
    uint8_t* const to = static_cast<uint8_t*>(out);
    if (may_do_without_name(plan)) {
      reason = write_named(plan, *chosen, to, *written);
    } else if (plan.undecided) {
      reason = write_smallest(plan, *chosen, to, *written);
    } else {
      reason = write_as_planned(plan, *chosen, to, *written);
    }
  } catch (const std::bad_alloc&) {
    reason = Reason::out_of_memory;
  }
  return reason == Reason::none ? succeed(error) : fail(error, reason);
}
