// Implements encode_plan.h.
#include "encode/encode_plan.h"

#include "api/options.h"
#include "container/metadata.h"
#include "decode/container.h"
#include "encode/image_check.h"
#include "models/model.h"

namespace l3 {
namespace {

// If pixels take few bytes, larger tiles are used: each tile has a fixed cost, and a small tile is decoded by few
// lanes, which is slow. Pixels that follow others also find more in larger tiles.
constexpr double kBytesOfLarge = 0.1, kBytesOfLargeThatFollow = 0.3, kBytesOfMedium = 0.4;  // a pixel, at most
constexpr uint32_t kEdgeStep = 32;
constexpr uint64_t kMinModelled = 256;             // samples; with fewer, a model costs more than it saves
constexpr uint64_t kMaxSmall = uint64_t{1} << 20;  // samples

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
  if (!is_tile_edge(options.tile_width) || !is_tile_edge(options.tile_height)) return Reason::bad_tile_size;
  return Reason::none;
}

bool is_for(const l3_model& model, const Request& request) {
  return model.tables.channels() == request.channels() && model.tables.bits() == request.image.bits;
}

uint32_t first_origin(const Request& request) {
  const l3_encode_options& options = request.options;
  if (options.method == L3_METHOD_FAST) return L3_MODEL_NONE;
  if (options.named_model != nullptr) return L3_MODEL_NAMED;
  if (options.model != nullptr) return L3_MODEL_OWN;
  const bool has_default = default_model_for(request.channels(), request.image.bits) != 0;
  if (options.model_origin == L3_MODEL_DEFAULT) return has_default ? L3_MODEL_DEFAULT : L3_MODEL_NONE;
  const bool pays = request.samples() > kMinModelled;
  const bool forced = options.model_origin == L3_MODEL_OWN && options.method == L3_METHOD_DENSE;
  if (pays || forced) return L3_MODEL_OWN;
  return has_default && options.model_origin == L3_MODEL_NONE ? L3_MODEL_DEFAULT : L3_MODEL_NONE;
}

bool fit_payloads(const Request& request, const Plan& plan) {
  return raw_bytes(plan.tile_width, plan.tile_height, request.channels(), request.image.bits) <=
         uint64_t{kMaxPayloadUnits} * kUnit;
}

// Whether one tile of kMaxTinyEdge, which always fits, should hold the image, so that the file may be tiny.
bool is_tiny(const Request& request) {
  const l3_encode_options& options = request.options;
  return options.method != L3_METHOD_FAST && options.tile_width == 0 && options.tile_height == 0 &&
         request.image.width <= kMaxTinyEdge && request.image.height <= kMaxTinyEdge &&
         request.pixels() <= kDefaultTileEdge * kDefaultTileEdge;
}

}  // namespace

uint32_t Request::channels() const { return channels_of(image); }

bool Request::is_small() const { return samples() <= kMaxSmall; }

Reason make_request(const l3_image* image, const l3_encode_options* options, Request& request) {
  if (image == nullptr) return Reason::null_argument;
  if (!copy_sized(image, request.image) || !copy_sized(options, request.options)) return Reason::bad_struct_size;
  Reason reason = check_image(request.image);
  if (reason == Reason::none) reason = check_options(request.options);
  if (reason != Reason::none) return reason;
  const Plan plan = first_plan(request);
  if (!fit_payloads(request, plan)) return Reason::bad_tile_size;
  if (plan.origin == L3_MODEL_NAMED && !is_for(*request.options.named_model, request)) return Reason::wrong_model;
  const l3_image& own = request.image;
  if (own.colour == L3_COLOUR_PALETTE) request.palette = shortest_palette(own.palette, own.palette_entries);
  return Reason::none;
}

Request without_name(const Request& request) {
  Request result = request;
  result.options.named_model = nullptr;
  return result;
}

Plan first_plan(const Request& request) {
  const uint32_t effort = request.options.effort != 0 ? request.options.effort : kDefaultEffort;
  const Plan plan = with_tile_edge(request, {0, 0, first_origin(request), effort}, kDefaultTileEdge);
  return plan.origin == L3_MODEL_DEFAULT ? with_default(request, plan, false) : plan;
}

Plan with_origin(const Plan& plan, uint32_t origin) {
  Plan result = plan;
  result.origin = origin;
  return result;
}

Plan with_default(const Request& request, const Plan& plan, bool drawn) {
  Plan result = with_origin(plan, L3_MODEL_DEFAULT);
  result.default_model = default_model_for(request.channels(), request.image.bits) + (drawn ? kDefaultDrawn : 0);
  return result;
}

Plan with_effort(const Plan& plan, uint32_t effort) {
  Plan result = plan;
  result.effort = effort;
  return result;
}

Plan with_tile_edge(const Request& request, const Plan& plan, uint32_t edge) {
  Plan result = plan;
  if (edge == kDefaultTileEdge && is_tiny(request)) edge = kMaxTinyEdge;
  result.tile_width = request.options.tile_width != 0 ? request.options.tile_width : edge;
  result.tile_height = request.options.tile_height != 0 ? request.options.tile_height : edge;
  const bool fits = edge <= kDefaultTileEdge || edge == kLargeTileEdge || fit_payloads(request, result);
  return fits ? result : with_tile_edge(request, plan, edge - kEdgeStep);
}

uint32_t edge_for(double bytes_of_pixel, bool follow) {
  if (bytes_of_pixel < (follow ? kBytesOfLargeThatFollow : kBytesOfLarge)) return kLargeTileEdge;
  return follow || bytes_of_pixel < kBytesOfMedium ? kMaxPlannedTileEdge : kDefaultTileEdge;
}

std::span<const uint8_t> known_model(const Request& request, const Plan& plan) {
  const l3_encode_options& options = request.options;
  if (plan.origin == L3_MODEL_DEFAULT) {
    const DefaultModel& standard = kDefaultModelTable[plan.default_model - 1];
    return {standard.bytes, standard.size};
  }
  if (plan.origin == L3_MODEL_NAMED) return options.named_model->bytes;
  if (plan.origin == L3_MODEL_OWN && options.model != nullptr) return {options.model, options.model_size};
  return {};
}

uint32_t model_kind(const Request& request, const Plan& plan) {
  const std::span<const uint8_t> known = known_model(request, plan);
  return known.empty() ? plan.kind : kind_of_model(known.data(), known.size());
}

KeptCodes* kept_codes(const Request& request, const Plan& plan) {
  static KeptCodes of_default[kDefaultModels];
  if (plan.origin == L3_MODEL_DEFAULT) return &of_default[plan.default_model - 1];
  return plan.origin == L3_MODEL_NAMED ? &request.options.named_model->codes : nullptr;
}

Head head_of(const Request& request, const Plan& plan) {
  const l3_image& in = request.image;
  Head head{};
  if (plan.origin == L3_MODEL_NAMED) head.required_features |= kNamedModel;
  if (plan.origin != L3_MODEL_NONE && model_kind(request, plan) == kBitModelKind) head.required_features |= kBitModel;
  head.default_model = plan.origin == L3_MODEL_DEFAULT ? plan.default_model : 0;
  head.width = in.width;
  head.height = in.height;
  head.channels = request.channels();
  head.bits = in.bits;
  head.sample_type = in.bits > 8 ? L3_SAMPLE_U16 : L3_SAMPLE_U8;
  head.colour = in.colour;
  head.alpha = in.alpha;
  if (const MappedImage* const mapped = request.mapped) {
    head.required_features |= kChannelMap;
    head.map = mapped->map;
    head.channels = mapped->channels;
    head.colour = mapped->colour;
    head.alpha = mapped->alpha;
  }
  head.tile_width = plan.tile_width;
  head.tile_height = plan.tile_height;
  head.count_tiles();
  return head;
}

Head lay_out(const Request& request, const Plan& plan, uint64_t model, uint64_t metadata) {
  const l3_image& in = request.image;
  Head head = head_of(request, plan);
  const auto add = [&](uint32_t type, const void* bytes, uint64_t size) {
    if (bytes != nullptr && size != 0) head.sections[head.section_count++] = {type, 0, 0, size};
  };
  add(L3_SECTION_PALETTE, in.palette, in.colour == L3_COLOUR_PALETTE ? request.palette.section_bytes() : 0);
  add(L3_SECTION_TRANSPARENCY, in.transparency, in.transparency_size);
  add(L3_SECTION_COLOUR_SPACE, in.colour_space,
      in.colour_space != nullptr ? colour_space_bytes(in.colour_space[0]) : 0);
  add(L3_SECTION_ICC, in.icc, in.icc_size);
  add(L3_SECTION_EXIF, in.exif, in.exif_size);
  add(L3_SECTION_MODEL, &plan, plan.origin == L3_MODEL_OWN ? model : 0);
  add(L3_SECTION_CHANNEL_MAP, request.mapped, request.mapped != nullptr ? head.channels * kMapEntryBytes : 0);
  add(L3_SECTION_METADATA, in.metadata, metadata);

  place_sections(head);
  return head;
}

Head lay_out_largest(const Request& request, const Plan& plan) {
  const std::span<const uint8_t> model = known_model(request, plan);
  return lay_out(request, plan, model.empty() ? kMaxTokenModelBytes : model.size(),
                 metadata_bound(request.image.metadata_size));
}

}  // namespace l3
