// Implements encode_search.h.
#include "encode/encode_search.h"

#include <cstring>
#include <memory>
#include <vector>

#include "encode/image_check.h"
#include "models/model.h"

namespace l3 {
namespace {

// For 8-bit images in which more pixels than this repeat a neighbour, only token models are tried.
constexpr double kMaxRepeats = 0.8;
// A fitted model cannot save enough if the payloads have fewer bytes than this.
constexpr uint64_t kMinSavedByOwnModel = 1024;
// If a named model codes a small image, up to this effort no model is fitted to the image, and above it only if the
// payloads have more bytes than this.
constexpr uint32_t kMaxEffortWithoutFit = 3;
constexpr uint64_t kMinPayloadForFit = 16384;

// Follows a plan, except that the file gets no model if the planned one does not pay.
Written write_planned(const Request& request, const Plan& plan, const EncodeTarget& target, uint8_t* out) {
  const Written file = write_file(request, plan, target, out);
  return file.model_pays ? file : write_file(request, with_origin(plan, L3_MODEL_NONE), target, out);
}

// The same plan with a token model, of the variant that is best as far as this effort can tell.
Plan with_tokens(const Request& request, const Plan& plan, const TileSource& source, uint32_t effort) {
  const auto choice = TokenEncoder(source, request.options.parallel).choose(effort);
  Plan result = with_tile_edge(request, with_effort(plan, effort),
                               edge_for(choice.bytes / static_cast<double>(request.pixels())));
  result.tokens = true;
  result.token_plan = choice.plan;
  return result;
}

// The plans to choose the smallest file from, the fastest ones first.
std::vector<Plan> plans_of(const Request& request, const Plan& plan) {
  const uint32_t bits = request.image.bits;
  // For a small image, the simpler model of a lower effort may make a smaller file.
  const bool try_simpler = request.is_small() && plan.effort > kDefaultEffort;
  std::vector<Plan> all;
  const auto add = [&](const Plan& added) {
    if (try_simpler) all.push_back(with_effort(added, kDefaultEffort));
    all.push_back(added);
  };
  if (request.is_small() && request.options.model_origin == L3_MODEL_NONE &&
      default_model_for(request.channels(), bits) != 0) {
    all.push_back(with_origin(plan, L3_MODEL_DEFAULT));
  }
  const Head head = head_of(request, plan);
  const TileSource source(head, static_cast<const uint8_t*>(request.image.pixels), stride_of(request.image));
  const double repeats = bits == 8 ? share_of_repeats(source) : 1;
  if (repeats >= kRepeatsForTokens) {
    if (try_simpler) all.push_back(with_tokens(request, plan, source, kMinEffort));
    const Plan tokens = with_tokens(request, plan, source, plan.effort);
    add(tokens);
    if (bits != 8 || (tokens.token_plan.literal && repeats > kMaxRepeats)) return all;
  }
  add(plan);
  return all;
}

// Writes the smallest of the files that the plans make.
Written write_smallest(const Request& request, const EncodeTarget& target, uint8_t* out) {
  if (!samples_in_range(request.image)) return {Reason::sample_out_of_range};
  const std::vector<Plan> plans = plans_of(request, first_plan(request));
  Written best;
  std::unique_ptr<uint8_t[]> copy;  // of the best file so far
  bool own_pays = true;             // whether the last plan, which fits a model, may make a smaller file
  for (size_t i = 0; i < plans.size(); ++i) {
    const bool is_last = i + 1 == plans.size();
    if (is_last && !own_pays) break;
    const Written file = write_planned(request, plans[i], target, out);
    if (file.reason != Reason::none) return file;
    if (plans[i].origin == L3_MODEL_DEFAULT) own_pays = file.size - file.head.payload_start > kMinSavedByOwnModel;
    if (copy != nullptr && file.size >= best.size) continue;
    best = file;
    if (is_last) return best;
    copy = std::make_unique_for_overwrite<uint8_t[]>(best.size);
    std::memcpy(copy.get(), out, best.size);
  }
  std::memcpy(out, copy.get(), best.size);
  return best;
}

// Whether the written file has tiles that are neither dense nor constant.
bool has_other_tiles(const Head& head, const uint8_t* file) {
  for (uint64_t tile = 0; tile < head.tile_count; ++tile) {
    const Method method = static_cast<Method>(file[head.head_bytes + tile * kIndexEntryBytes]);
    if (method != Method::dense && method != Method::constant) return true;
  }
  return false;
}

// Writes the file with the named model.
Written write_named(const Request& request, const EncodeTarget& target, uint8_t* out) {
  const Plan plan = first_plan(request);
  const Written file = write_planned(request, plan, target, out);
  const std::vector<uint8_t>& model = request.options.named_model->bytes;
  const bool uses_tokens = file.head.names_model() && kind_of_model(model.data(), model.size()) == kTokenModelKind;
  if (file.reason != Reason::none || !uses_tokens) return file;
  // Now it is known how many bytes a pixel takes, and so how large the tiles should be.
  const double bytes = static_cast<double>(file.size - file.head.payload_start);
  const Plan other = with_tile_edge(request, plan, edge_for(bytes / static_cast<double>(request.pixels())));
  const bool is_same = head_of(request, other).tile_count == file.head.tile_count;
  return is_same ? file : write_planned(request, other, target, out);
}

// The plans without the named model that may make a smaller file than the one written with it.
enum class Others { none, default_only, all };

// Fitting a model to a small image takes many times longer than encoding it with a known one. So efforts up to
// kMaxEffortWithoutFit never do. Higher ones try the default model, and fit one if the payloads are large enough for a
// fitted model to pay.
Others others_than(const Written& named, const Request& request, const uint8_t* file) {
  const bool has_other = has_other_tiles(named.head, file);  // which the model has no code for
  if (!request.is_small()) return has_other ? Others::all : Others::none;
  if (first_plan(request).effort <= kMaxEffortWithoutFit) return has_other ? Others::default_only : Others::none;
  return has_other || named.size - named.head.payload_start > kMinPayloadForFit ? Others::all : Others::default_only;
}

// Writes the file with the named model. If another one may be smaller, also encodes without it and keeps the smaller
// file.
Written write_named_or_smallest(const Request& request, const EncodeTarget& target, uint8_t* out) {
  const Written named = write_named(request, target, out);
  if (named.reason != Reason::none) return named;
  const Others others = others_than(named, request, out);
  if (others == Others::none) return named;
  const Request nameless = without_name(request);
  const bool has_default = default_model_for(request.channels(), request.image.bits) != 0;
  if (others == Others::default_only && !has_default) return named;
  const auto copy = std::make_unique_for_overwrite<uint8_t[]>(named.size);
  std::memcpy(copy.get(), out, named.size);
  const Written other = others == Others::all
                            ? write_smallest(nameless, target, out)
                            : write_planned(nameless, with_origin(first_plan(nameless), L3_MODEL_DEFAULT), target, out);
  if (other.reason != Reason::none || other.size < named.size) return other;
  std::memcpy(out, copy.get(), named.size);
  return named;
}

}  // namespace

bool may_do_without_name(const Request& request) {
  return first_plan(request).origin == L3_MODEL_NAMED && request.options.model_origin == L3_MODEL_NONE;
}

Written write_best(const Request& request, const EncodeTarget& target, uint8_t* out) {
  if (may_do_without_name(request)) return write_named_or_smallest(request, target, out);
  const Plan plan = first_plan(request);
  const bool is_fitted = plan.origin == L3_MODEL_OWN && known_model(request, plan).empty();
  return is_fitted ? write_smallest(request, target, out) : write_planned(request, plan, target, out);
}

}  // namespace l3
