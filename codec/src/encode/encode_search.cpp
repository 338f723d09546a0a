// Implements encode_search.h.
#include "encode/encode_search.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "encode/coded_image.h"
#include "encode/dense_encode.h"
#include "encode/image_check.h"
#include "encode/tiny_file.h"
#include "encode/token_encode.h"
#include "models/model.h"

namespace l3 {
namespace {

// Images with at most this many samples are also tried with a default model, since a model of their own may cost more
// than it saves.
constexpr uint64_t kMaxWithDefault = uint64_t{1} << 17;
// Such a model cannot save enough if the payloads have fewer bytes than this, and up to effort kMaxQuickEffort is not
// worth its time if they have fewer than the second number: fitting one takes ten times as long as encoding.
constexpr uint64_t kMinSavedByOwnModel = 320, kMinSavedQuickly = 1280;
constexpr uint32_t kMaxQuickEffort = 2;

// Images with fewer pixels have all channels coded: a channel map takes 32 bytes, and tiny files have none.
constexpr uint64_t kMinMapped = uint64_t{1} << 14;

// A way to encode the image.
struct Candidate {
  Plan plan;
  Fitted fitted{};  // nothing if no model is fitted yet
};

// If more pixels repeat, and few colours occur, only token models are tried.
constexpr double kMaxRepeats = 0.8;
// If more pixels repeat than this, samples say little, and a token model nearly always makes the smaller file. Then
// this is the share of TokenRules.
constexpr double kManyRepeats = 0.85, kShareOfMany = 1.1;
// How many pixels are looked at to see how they repeat, and which values do not occur.
constexpr uint64_t kLookedAt = 1u << 17;
// Estimates are made with models of this effort at most.
constexpr uint32_t kTrialEffort = 2;
// If nearly all pixels repeat, as in label maps, a model of effort 1 takes little time, and may be all that pays. From
// this effort on, it is tried too.
constexpr double kNearlyAllRepeat = 0.97;
constexpr uint32_t kTriesSimple = 4;
// Estimates of token models are too large by this factor, compared with those of kind 0.
constexpr double kOfEstimate = 0.938;
// From this effort on, both kinds are tried if the estimates differ by less than this fraction.
constexpr uint32_t kTriesBoth = 8;
constexpr double kClose = 0.1;
// The same where more pixels repeat than this: there, a sample says less.
constexpr double kFarRepeats = 0.6;
constexpr uint32_t kTriesBothOfFar = 4;
constexpr double kCloseOfFar = 0.2;
// If a named model codes a small image, up to this effort no model is fitted to the image, and above it only if the
// payloads have more bytes than this.
constexpr uint32_t kMaxEffortWithoutFit = 3;
constexpr uint64_t kMinPayloadForFit = 16384;

// Of two colours: bit models decode several times as fast as others, so their files may be larger by this factor. But
// if a pixel takes fewer bits than this, others decode as fast as memory, and their files are preferred if they are not
// larger.
constexpr double kSizeOfBits = 1.005, kMaxBitsOfSparse = 0.02;
// Up to this effort, only one kind is tried: others than bit models where a pixel takes few bytes.
constexpr uint32_t kMaxEffortOfOneKind = 3;

// Follows a plan, except that tiles are smaller if a payload is too large.
Written write_fitting(const Request& request, const Plan& plan, const EncodeTarget& target, uint8_t* out,
                      Fitted fitted = {}) {
  const Written file = write_file(request, plan, target, out, std::move(fitted));
  if (file.reason != Reason::bad_tile_size) return file;
  return write_file(request, with_tile_edge(request, plan, kMaxPlannedTileEdge), target, out);
}

// The same, except that the file gets no model if the planned one does not pay.
Written write_planned(const Request& request, Candidate& candidate, const EncodeTarget& target, uint8_t* out) {
  const Written file = write_fitting(request, candidate.plan, target, out, std::move(candidate.fitted));
  return file.model_pays ? file : write_fitting(request, with_origin(candidate.plan, L3_MODEL_NONE), target, out);
}

Written write_planned(const Request& request, const Plan& plan, const EncodeTarget& target, uint8_t* out) {
  Candidate candidate{plan};
  return write_planned(request, candidate, target, out);
}

TileSource source_of(const Request& request, const Plan& plan) {
  return {head_of(request, plan), static_cast<const uint8_t*>(request.image.pixels), stride_of(request.image)};
}

// The variant of a token model that is best as far as this effort can tell.
TokenEncoder::Choice choose_tokens(const Request& request, const Plan& plan, uint32_t effort) {
  const TileSource source = source_of(request, with_tile_edge(request, plan, kLargeTileEdge));
  return TokenEncoder(source, request.options.parallel).choose(effort);
}

// The same plan with this token model.
Candidate with_tokens(const Request& request, const Plan& plan, const TokenEncoder::Choice& choice) {
  Plan result =
      with_tile_edge(request, plan, edge_for(choice.bytes / static_cast<double>(request.pixels()), choice.plan.follow));
  result.kind = kTokenModelKind;
  result.token_plan = choice.plan;
  return {result};
}

// The same plan with the token model that an effort chooses and fits.
Candidate with_tokens_of(const Request& request, const Plan& plan, uint32_t effort) {
  return with_tokens(request, with_effort(plan, effort), choose_tokens(request, plan, effort));
}

bool has_gaps(const TileSource& source) {
  std::vector<uint16_t> ranks[kMaxChannels];
  ranks_of(source, ranks);
  return ValueCounts(ranks, source.channels()).has_gaps();
}

// The kinds of models to fit, from estimates. Of several, the smallest file is kept.
std::vector<Candidate> kinds_for(const Request& request, const Plan& plan, const EncodeTarget& target) {
  const TileSource source = source_of(request, plan);
  std::vector<Candidate> kinds;
  if (request.image.bits != 8) {
    kinds.push_back(with_tokens_of(request, plan, plan.effort));
    return kinds;
  }
  const TokenRules rules = token_rules_of(plan.effort);
  const std::vector<SampleTile> pieces = pieces_of(source, kLookedAt);
  const TileSource sample(pieces);
  const double repeats = share_of_repeats(sample);
  if (repeats < rules.repeats && !has_gaps(sample)) {
    kinds.push_back({plan});
    return kinds;
  }
  const TokenEncoder::Choice choice = choose_tokens(request, plan, plan.effort);
  Candidate tokens = with_tokens(request, plan, choice);
  if (plan.effort >= kTriesSimple && repeats > kNearlyAllRepeat) {
    kinds.push_back(with_tokens_of(request, plan, 1));
  }
  if (choice.plan.literal && repeats > kMaxRepeats) {
    kinds.push_back(std::move(tokens));
    return kinds;
  }
  const uint32_t effort = std::min(plan.effort, kTrialEffort);
  const Plan dense =
      with_tile_edge(request, plan, edge_for(choice.bytes / static_cast<double>(request.pixels()), false));
  auto fitted = std::make_unique<DenseEncoder>(source_of(request, dense), target.dense, request.options.parallel);
  fitted->fit_sample(effort);
  const double bytes = fitted->estimate(choice.repeats);
  const double share = repeats > kManyRepeats ? kShareOfMany : rules.share;
  const double difference = kOfEstimate * choice.bytes / (share * bytes) - 1;
  if (effort != plan.effort) fitted.reset();
  const bool is_far = repeats > kFarRepeats && plan.effort >= kTriesBothOfFar;
  const bool both =
      is_far ? std::abs(difference) < kCloseOfFar : plan.effort >= kTriesBoth && std::abs(difference) < kClose;
  if (difference >= 0 || both) kinds.push_back({dense, {std::move(fitted), nullptr}});
  if (difference < 0 || both) kinds.push_back(std::move(tokens));
  return kinds;
}

// Both kinds of models, of more and less effort: a sample of a small image says little, and its model costs much.
void add_everything(const Request& request, const Plan& plan, std::vector<Candidate>& all) {
  for (const uint32_t effort : {1u, kDefaultEffort, plan.effort}) {
    all.push_back(with_tokens_of(request, plan, effort));
    if (request.image.bits == 8) all.push_back({with_effort(plan, effort)});
  }
}

// Whether the default models are tried. This takes little time.
bool tries_defaults(const Request& request, const Plan& plan) {
  return plan.origin == L3_MODEL_DEFAULT ||
         (request.samples() <= kMaxWithDefault && request.options.model_origin == L3_MODEL_NONE &&
          default_model_for(request.channels(), request.image.bits) != 0);
}

// What is tried with models of the image's own, the quickest first.
std::vector<Candidate> own_candidates(const Request& request, const Plan& plan, const EncodeTarget& target) {
  std::vector<Candidate> all;
  if (plan.effort > kDefaultEffort && request.samples() <= kMaxWithDefault) {
    add_everything(request, plan, all);
    return all;
  }
  for (Candidate& kind : kinds_for(request, plan, target)) {
    // For a small image, the simpler model of a lower effort may make a smaller file.
    if (request.is_small() && plan.effort > kDefaultEffort) all.push_back({with_effort(kind.plan, kDefaultEffort)});
    all.push_back(std::move(kind));
  }
  return all;
}

// What is known of an image of exactly two colours.
struct TwoColours {
  Candidate bits;   // with a bit model
  bool is_sparse;   // it takes so few bytes that nearly all blocks of a token model would be still
  bool tries_bits;  // whether to write it
  bool tries_others;
};

std::optional<TwoColours> two_colours_of(const Request& request, const Plan& plan) {
  TwoColours result{{with_tile_edge(request, plan, kLargeTileEdge)}, false, true, false};
  result.bits.plan.kind = kBitModelKind;
  const TileSource source = source_of(request, result.bits.plan);
  BitColours colours;
  if (!find_two_colours(source, colours)) return {};
  result.bits.fitted.bits = std::make_unique<BitEncoder>(source, request.options.parallel);
  result.bits.fitted.bits->fit(colours, plan.effort);
  result.is_sparse = 8 * result.bits.fitted.bits->bytes() < kMaxBitsOfSparse * static_cast<double>(request.pixels());
  if (plan.effort <= kMaxEffortOfOneKind) {
    result.tries_bits = !result.is_sparse;
    result.tries_others = result.is_sparse;
  } else {
    result.tries_others = result.is_sparse || request.pixels() <= kMaxWithDefault;
  }
  return result;
}

// Writes files, and keeps the smallest one.
class Smallest {
 public:
  Smallest(const Request& request, const EncodeTarget& target, uint8_t* out)
      : request_(request), target_(target), out_(out) {}

  // Writes a candidate's file. Its `reason` says whether that failed. The file is kept if its size, divided by
  // `tolerance`, is less than that of the files before.
  Written add(Candidate& candidate, double tolerance = 1) {
    if (is_in_out_) {
      copy_ = std::make_unique_for_overwrite<uint8_t[]>(best_.size);
      std::memcpy(copy_.get(), out_, best_.size);
    }
    const Written file = write_planned(request_, candidate, target_, out_);
    is_in_out_ = file.reason == Reason::none &&
                 (copy_ == nullptr || static_cast<double>(file.size) < tolerance * static_cast<double>(best_.size));
    if (is_in_out_) best_ = file;
    return file;
  }
  // The smallest file so far.
  const Written& best() const { return best_; }
  Written finish() {
    if (!is_in_out_) std::memcpy(out_, copy_.get(), best_.size);
    return best_;
  }

 private:
  const Request& request_;
  const EncodeTarget& target_;
  uint8_t* const out_;
  Written best_;
  bool is_in_out_ = false;
  std::unique_ptr<uint8_t[]> copy_;  // of the smallest file, if another one was written after it
};

// Tries models of other kinds than bit models. Returns the last file, or one that failed.
Written try_others(const Request& request, const Plan& plan, const EncodeTarget& target, Smallest& smallest) {
  Written file;
  if (tries_defaults(request, plan)) {
    bool own_pays = plan.origin != L3_MODEL_DEFAULT;  // whether a model that is fitted may make a smaller file
    const uint64_t least = plan.effort <= kMaxQuickEffort ? kMinSavedQuickly : kMinSavedByOwnModel;
    for (const bool drawn : {false, true}) {
      Candidate candidate{with_default(request, plan, drawn)};
      file = smallest.add(candidate);
      if (file.reason != Reason::none) return file;
      own_pays = own_pays && file.payloads > least;
    }
    if (!own_pays) return file;
  }
  for (Candidate& candidate : own_candidates(request, plan, target)) {
    file = smallest.add(candidate);
    if (file.reason != Reason::none) return file;
  }
  return file;
}

// Writes the smallest of the files that are tried, of an image whose samples are in range.
Written write_smallest_of(const Request& request, const EncodeTarget& target, uint8_t* out) {
  const Plan plan = first_plan(request);
  const bool may_have_bits = plan.origin == L3_MODEL_OWN, may_be_small = may_be_tiny(head_of(request, plan));
  std::optional<TwoColours> two;
  if (may_have_bits && !may_be_small) two = two_colours_of(request, plan);
  Smallest smallest(request, target, out);
  if (!two || two->tries_others) {
    const Written file = try_others(request, plan, target, smallest);
    if (file.reason != Reason::none) return file;
    // Tiny files have no bit models.
    if (may_have_bits && may_be_small && smallest.best().size > kMaxTinyBytes) two = two_colours_of(request, plan);
  }
  if (two && two->tries_bits) {
    const Written file = smallest.add(two->bits, two->is_sparse ? 1 : kSizeOfBits);
    if (file.reason != Reason::none) return file;
  }
  return smallest.finish();
}

Written write_smallest(const Request& request, const EncodeTarget& target, uint8_t* out) {
  if (!samples_in_range(request.image)) return {Reason::sample_out_of_range};
  std::optional<ChannelMap> map;
  if (request.pixels() >= kMinMapped) map = find_channel_map(request.image);
  return map ? write_smallest_of(CodedImage(request, *map).request(), target, out)
             : write_smallest_of(request, target, out);
}

// The plan with a model that the caller supplies.
Plan known_plan(const Request& request) {
  const Plan plan = first_plan(request);
  return model_kind(request, plan) == kBitModelKind ? with_tile_edge(request, plan, kLargeTileEdge) : plan;
}

// Writes the file with the named model.
Written write_named(const Request& request, const EncodeTarget& target, uint8_t* out) {
  const Plan plan = known_plan(request);
  const Written file = write_planned(request, plan, target, out);
  const std::vector<uint8_t>& model = request.options.named_model->bytes;
  const bool uses_tokens = file.head.names_model() && kind_of_model(model.data(), model.size()) == kTokenModelKind;
  if (file.reason != Reason::none || !uses_tokens) return file;
  // Now it is known how many bytes a pixel takes, and so how large the tiles should be.
  const double bytes = static_cast<double>(file.payloads);
  const bool follow = (model[3] & kFollowFlag) != 0;
  const Plan other = with_tile_edge(request, plan, edge_for(bytes / static_cast<double>(request.pixels()), follow));
  const bool is_same = head_of(request, other).tile_count == file.head.tile_count;
  return is_same ? file : write_planned(request, other, target, out);
}

// The plans without the named model that may make a smaller file than the one written with it.
enum class Others { none, default_only, all };

// Fitting a model to a small image takes many times longer than encoding it with a known one. So efforts up to
// kMaxEffortWithoutFit never do. Higher ones try the default model, and fit one if the payloads are large enough for a
// fitted model to pay.
Others others_than(const Written& named, const Request& request) {
  const bool has_other = named.has_others;  // which the model has no code for
  if (!request.is_small()) return has_other ? Others::all : Others::none;
  if (first_plan(request).effort <= kMaxEffortWithoutFit) return has_other ? Others::default_only : Others::none;
  return has_other || named.payloads > kMinPayloadForFit ? Others::all : Others::default_only;
}

// A file of so few pixels that does without the named model must be smaller by this factor: processors take several
// times as long for tiny images with the default model of kind 0.
constexpr double kSizeWithoutName = 0.94;

// Writes the file with the named model. If another one may be smaller, also encodes without it and keeps the better
// file.
Written write_named_or_smallest(const Request& request, const EncodeTarget& target, uint8_t* out) {
  const Written named = write_named(request, target, out);
  if (named.reason != Reason::none) return named;
  const Others others = others_than(named, request);
  if (others == Others::none) return named;
  const Request nameless = without_name(request);
  const bool has_default = default_model_for(request.channels(), request.image.bits) != 0;
  if (others == Others::default_only && !has_default) return named;
  const auto copy = std::make_unique_for_overwrite<uint8_t[]>(named.size);
  std::memcpy(copy.get(), out, named.size);
  const Written other = others == Others::all
                            ? write_smallest(nameless, target, out)
                            : write_planned(nameless, with_default(nameless, first_plan(nameless), false), target, out);
  const double factor = request.pixels() <= kMaxPixelsOfSingleLane ? kSizeWithoutName : 1;
  const bool is_smaller = static_cast<double>(other.size) < factor * static_cast<double>(named.size);
  if (other.reason != Reason::none || is_smaller) return other;
  std::memcpy(out, copy.get(), named.size);
  return named;
}

}  // namespace

TokenRules token_rules_of(uint32_t effort) {
  switch (effort) {
    case 1: return {0.5, 0.92};
    case 2: return {0.25, 0.94};
    case 3: return {0.15, 0.95};
    case 4: return {0.12, 0.96};
    case 5: return {0.12, 0.965};
    case 6: return {0.1, 0.97};
    default: return {0.08, 0.99};
  }
}

bool may_do_without_name(const Request& request) {
  return first_plan(request).origin == L3_MODEL_NAMED && request.options.model_origin == L3_MODEL_NONE;
}

Written write_best(const Request& request, const EncodeTarget& target, uint8_t* out) {
  if (may_do_without_name(request)) return write_named_or_smallest(request, target, out);
  const Plan plan = first_plan(request);
  const bool has_choice =
      plan.origin == L3_MODEL_DEFAULT || (plan.origin == L3_MODEL_OWN && known_model(request, plan).empty());
  return has_choice ? write_smallest(request, target, out) : write_planned(request, known_plan(request), target, out);
}

}  // namespace l3
