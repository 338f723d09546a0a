#include "units.h"

#include <algorithm>
#include <cmath>

#include "data_error.h"

namespace loader {
namespace {

constexpr uint32_t kMaxWanted = 16;
constexpr uint64_t kTensorAlignment = 256;

l3_status wrong(l3_data_error* error, const std::string& reason) { return fail(error, L3_ERROR_ARGUMENT, "", reason); }

std::string size_text(uint64_t width, uint64_t height) {
  return std::to_string(width) + " x " + std::to_string(height);
}

l3_data_sample describe(const l3_data_set& set, uint64_t sample) {
  l3_data_sample told = l3_data_sample_init();
  (void)!l3_data_get(&set, sample, &told);
  return told;
}

// Quotes a name, which may be long and is then cut: 'a/b.png'.
std::string name_text(const l3_data_sample& sample) {
  constexpr size_t kMax = 80;
  const std::string name(sample.name, std::min(sample.name_size, kMax));
  return "'" + name + (sample.name_size > kMax ? "...'" : "'");
}

bool is_float(uint32_t type) { return type >= L3_VALUE_F16 && type <= L3_VALUE_F32; }

// Why a value of padding does not fit a type of integers; null: it does.
const char* misfit_of_pad(uint32_t type, float value) {
  constexpr float kMost = 1 << 24;  // floats have all integers up to here
  const bool is_whole = std::nearbyint(value) == value;
  const auto fits = [&](float least, float most) { return is_whole && value >= least && value <= most; };
  switch (type) {
    case L3_VALUE_U8: return fits(0, 255) ? nullptr : "pad_value must be a whole number from 0 to 255 for uint8";
    case L3_VALUE_U16: return fits(0, 65535) ? nullptr : "pad_value must be a whole number from 0 to 65535 for uint16";
    case L3_VALUE_I16:
      return fits(-32768, 32767) ? nullptr : "pad_value must be a whole number from -32768 to 32767 for int16";
    default: return fits(-kMost, kMost) ? nullptr : "pad_value must be a whole number from -2^24 to 2^24";
  }
}

// The largest number of bits of a sample that a type of integers holds.
uint32_t bits_of_type(uint32_t type) {
  switch (type) {
    case L3_VALUE_U8: return 8;
    case L3_VALUE_I16: return 15;
    default: return 16;
  }
}

}  // namespace

base::Filter Tensor::filter_of(const l3_data_sample& sample) const {
  switch (wanted.interpolation) {
    case L3_INTERPOLATION_NEAREST: return base::kNearest;
    case L3_INTERPOLATION_NEAREST_EXACT: return base::kNearestExact;
    case L3_INTERPOLATION_BILINEAR: return base::kBilinear;
    case L3_INTERPOLATION_BICUBIC: return base::kBicubic;
    case L3_INTERPOLATION_AREA: return base::kArea;
    default: break;
  }
  const bool is_index = sample.colour == L3_COLOUR_PALETTE && wanted.as_colours == 0;
  return is_index || are_labels() ? base::kNearest : base::kBilinear;
}

Values Tensor::values() const {
  Values values;
  values.type = wanted.type;
  values.layout = channels > 1 ? wanted.layout : uint32_t{L3_LAYOUT_CHW};
  const bool no_scale = std::all_of(wanted.scale, wanted.scale + 4, [](float scale) { return scale == 0; });
  for (uint32_t c = 0; c < 4; ++c) {
    values.scale[c] = no_scale ? 1.0f : wanted.scale[c];
    values.bias[c] = wanted.bias[c];
    values.pad[c] = wanted.pad_value[c];
  }
  return values;
}

l3_tensor Tensor::describe(uint64_t units, uint8_t* memory) const {
  l3_tensor told{};
  told.data = memory != nullptr ? memory + place : nullptr;
  told.type = wanted.type;
  told.dimensions = 4;
  told.shape[0] = units;
  const bool planes = wanted.layout == L3_LAYOUT_CHW;
  told.shape[1] = planes ? channels : height;
  told.shape[2] = planes ? height : width;
  told.shape[3] = planes ? width : channels;
  return told;
}

l3_status Units::open(const l3_data_set& set, const l3_loader_options& options, l3_data_error* error) {
  set_ = &set;
  l3_status status = read_groups(options, error);
  if (status == L3_OK) status = read_tensors(options, error);
  // No random choice may decide about the size of the output, so no box is drawn to find it out.
  l3_loader_options fixed = options;
  draws_boxes_ = fixed.box == L3_BOX_RANDOM;
  if (draws_boxes_) fixed.box = L3_BOX_WHOLE;
  for (uint64_t unit = 0; unit < count() && status == L3_OK; ++unit) status = check_unit(unit, fixed, error);
  if (status == L3_OK) status = compute_layout(options, error);
  if (status == L3_OK && options.order == L3_ORDER_WINDOWS) find_shards();
  return status;
}

l3_status Units::read_groups(const l3_loader_options& options, l3_data_error* error) {
  all_groups_ = options.groups == nullptr;
  if (!all_groups_) {
    groups_.assign(options.groups, options.groups + options.group_count);
    // Windows consist of shards, so the units of a shard must be adjacent.
    if (options.order == L3_ORDER_WINDOWS) std::sort(groups_.begin(), groups_.end());
    std::vector<uint64_t> sorted = groups_;
    std::sort(sorted.begin(), sorted.end());
    if (const auto twice = std::adjacent_find(sorted.begin(), sorted.end()); twice != sorted.end()) {
      return wrong(error, "group " + std::to_string(*twice) + " occurs twice");
    }
    if (!sorted.empty() && sorted.back() >= set_->groups) {
      return wrong(error, "there is no group " + std::to_string(sorted.back()) + ": the data set has " +
                              std::to_string(set_->groups));
    }
  }
  return count() > 0 ? L3_OK : wrong(error, "there are no groups to load");
}

l3_status Units::read_tensors(const l3_loader_options& options, l3_data_error* error) {
  if (options.tensor_count > kMaxWanted) return wrong(error, "more than 16 tensors are wanted");
  if (options.tensor_count > 0 && options.tensors == nullptr) {
    return wrong(error, "a pointer that must not be null is null");
  }
  tensors_.resize(std::max(options.tensor_count, 1u));
  is_ragged_ = options.batching != L3_BATCHING_STACK;
  is_general_ = is_ragged_ || options.orient != 0 || options.box != L3_BOX_WHOLE || options.resize != L3_RESIZE_NONE ||
                options.pad != L3_PAD_NONE || options.flip_vertical != 0 || options.turn != L3_TURN_NONE;
  if (options.box == L3_BOX_GIVEN && options.box_count != count()) {
    return wrong(error, "there are " + std::to_string(options.box_count) + " boxes for " + std::to_string(count()) +
                            " units: give each unit its box");
  }
  for (uint32_t i = 0; i < options.tensor_count; ++i) {
    Tensor& tensor = tensors_[i];
    tensor.wanted = options.tensors[i];
    const l3_tensor_options& wanted = tensor.wanted;
    tensor.is_first = i == 0;
    if (wanted.type > L3_VALUE_I64) return wrong(error, "unknown type of values");
    if (wanted.interpolation > L3_INTERPOLATION_AREA) return wrong(error, "unknown interpolation");
    if (wanted.channels > L3_CHANNELS_RGB) return wrong(error, "unknown channels");
    if (wanted.alpha > L3_TRANSPARENCY_BLEND) return wrong(error, "unknown way of treating alpha");
    if (wanted.bits != 0 && wanted.bits != 8) return wrong(error, "bits must be 0, as stored, or 8");
    const bool pads = options.pad != L3_PAD_NONE && options.pad_mode == L3_PAD_VALUE;
    if ((pads || options.batching == L3_BATCHING_PAD) && is_float(wanted.type) && wanted.has_pad_value == 0) {
      return wrong(error, std::string("padding floats needs pad_value, in samples before scale and bias: 0 for black") +
                              (pads ? ", or choose pad_mode edge or reflect" : ""));
    }
    if (std::any_of(wanted.background, wanted.background + 4, [](float b) { return !(b >= 0 && b <= 65535); })) {
      return wrong(error, "background must be from 0 to 65535");
    }
    is_general_ = is_general_ || wanted.channels != 0 || wanted.alpha != 0 || wanted.bits != 0 || wanted.jitter != 0 ||
                  (options.device == L3_DEVICE_CUDA && wanted.type > L3_VALUE_F32);
    if (tensor.wanted.layout > L3_LAYOUT_HWC) return wrong(error, "unknown layout");
    if (tensor.wanted.role != nullptr) tensor.role.assign(tensor.wanted.role, tensor.wanted.role_size);
    tensor.any_role = tensor.wanted.role == nullptr;
    tensor.wanted.role = nullptr;
  }
  if (options.tensor_count == 0) tensors_[0].any_role = true;
  return L3_OK;
}

uint64_t Units::sample_of(uint64_t unit, const Tensor& tensor, l3_data_sample& told) const {
  uint64_t first = 0, samples = 0;
  (void)!l3_data_group(set_, group(unit), &first, &samples);
  for (uint64_t sample = first; sample < first + samples; ++sample) {
    told = describe(*set_, sample);
    if (told.kind == L3_DATA_IMAGE && (tensor.any_role || std::string_view(told.role, told.role_size) == tensor.role)) {
      return sample;
    }
  }
  return L3_DATA_NONE;
}

l3_status Units::check_unit(uint64_t unit, const l3_loader_options& options, l3_data_error* error) {
  uint64_t first = 0, samples = 0;
  (void)!l3_data_group(set_, group(unit), &first, &samples);
  uint32_t width = 0, height = 0;
  for (Tensor& tensor : tensors_) {
    uint64_t found = L3_DATA_NONE;
    for (uint64_t sample = first; sample < first + samples; ++sample) {
      const l3_data_sample told = describe(*set_, sample);
      const bool has_role = std::string_view(told.role, told.role_size) == tensor.role;
      if (told.kind != L3_DATA_IMAGE || (!tensor.any_role && !has_role)) continue;
      if (found != L3_DATA_NONE) {
        return wrong(error, "the group of " + name_text(describe(*set_, first)) + " has several images" +
                                (tensor.any_role ? ": name the wanted roles" : " of role '" + tensor.role + "'"));
      }
      found = sample;
    }
    if (found == L3_DATA_NONE) {
      return wrong(error, "the group of " + name_text(describe(*set_, first)) + " has no image" +
                              (tensor.any_role ? "" : " of role '" + tensor.role + "'"));
    }
    if (const l3_status status = check_image(found, tensor, unit, options, error); status != L3_OK) return status;
    const l3_data_sample told = describe(*set_, found);
    if (&tensor == tensors_.data()) {
      width = told.width;
      height = told.height;
    } else if (told.width != width || told.height != height) {
      return wrong(error, "images of one group have different sizes: " + name_text(told) + " has " +
                              size_text(told.width, told.height) + " pixels, not " + size_text(width, height));
    }
  }
  return L3_OK;
}

l3_status Units::check_image(uint64_t sample, Tensor& tensor, uint64_t unit, const l3_loader_options& options,
                             l3_data_error* error) {
  const l3_data_sample told = describe(*set_, sample);
  const l3_tensor_options& wanted = tensor.wanted;
  const bool as_colours = wanted.as_colours != 0 && told.colour == L3_COLOUR_PALETTE;
  const bool are_indices = told.colour == L3_COLOUR_PALETTE && !as_colours;
  const auto refuse = [&](const std::string& why) { return wrong(error, name_text(told) + " has " + why); };
  uint32_t channels = told.channels;
  // The index does not say whether a palette has transparency. Decoding checks that all images have the same channels.
  const bool is_known = !as_colours || wanted.alpha != L3_TRANSPARENCY_KEEP || unit == 0;
  if (as_colours) {
    channels = 3;
    if (unit == 0 && wanted.alpha == L3_TRANSPARENCY_KEEP) {
      if (const l3_status status = resolve_channels(sample, channels, error); status != L3_OK) return status;
    }
  }
  const bool is_gray_alpha = told.colour == L3_COLOUR_GRAY_ALPHA;
  const float* const behind = wanted.background;
  if (is_gray_alpha && wanted.alpha == L3_TRANSPARENCY_BLEND && (behind[0] != behind[1] || behind[0] != behind[2])) {
    return refuse("gray and alpha, which cannot be blended with a background in colour: give it one gray value");
  }
  if (are_indices && (wanted.channels != 0 || wanted.bits != 0 || wanted.jitter != 0)) {
    return refuse("palette indices, which are no colours: ask for colours (as_colours)");
  }
  const base::Filter filter = tensor.filter_of(told);
  const bool resizes = options.resize != L3_RESIZE_NONE || options.pad == L3_PAD_LETTERBOX;
  if (are_indices && resizes && filter > base::kNearestExact) {
    return refuse(
        "palette indices, which cannot be blended: ask for colours (as_colours), or for "
        "interpolation nearest");
  }
  const uint32_t bits = wanted.bits != 0 ? wanted.bits : tensor.bits_of(told);
  const uint32_t out_channels = channels_of(wanted, channels);
  if (unit == 0) {
    tensor.bits = bits;
    tensor.channels = out_channels;
    tensor.are_indices = are_indices;
    if (wanted.type == L3_VALUE_STORED) tensor.wanted.type = bits > 8 ? L3_VALUE_U16 : L3_VALUE_U8;
  }
  if (!is_float(wanted.type) && bits > bits_of_type(wanted.type)) {
    return refuse("samples of " + std::to_string(bits) + " bits, which do not fit " +
                  std::to_string(bits_of_type(wanted.type)) +
                  (wanted.type == L3_VALUE_I16 ? ": ask for int32" : ": ask for bits 8"));
  }
  if (are_indices != tensor.are_indices && !tensor.are_labels()) {
    return refuse(are_indices ? "palette indices, the images before it have none: ask for colours (as_colours)"
                              : "no palette, the images before it have palette indices: ask for colours (as_colours)");
  }
  // Integers are the samples unchanged, whatever the bits. The meaning of floats and of colours depends on the bits.
  const bool are_scaled = is_float(wanted.type) || wanted.channels != 0;
  if (bits != tensor.bits && (are_scaled || (bits > 8) != (tensor.bits > 8))) {
    return refuse("samples of " + std::to_string(bits) + " bits, the images before it of " +
                  std::to_string(tensor.bits) + ": ask for bits 8");
  }
  if (is_known && out_channels != tensor.channels) {
    return refuse(std::to_string(channels) + " channels, the images before it have " + std::to_string(tensor.channels) +
                  ": ask for channels rgb or gray, and for alpha drop");
  }
  return check_size(told, tensor, options, unit, error);
}

// Checks that the output has the size of those before it.
l3_status Units::check_size(const l3_data_sample& told, Tensor& tensor, const l3_loader_options& options, uint64_t unit,
                            l3_data_error* error) {
  const auto refuse = [&](const std::string& why) {
    return wrong(error, name_text(told) + " has " + size_text(told.width, told.height) + " pixels" + why);
  };
  const l3_box* given = options.box == L3_BOX_GIVEN ? &options.boxes[unit] : nullptr;
  // The orientation may not decide about the size of the output either.
  Steps steps, turned;
  if (const char* reason = draw_steps(options, {told.width, told.height}, 1, 0, given, steps); reason != nullptr) {
    if (options.orient == 0 || draw_steps(options, {told.width, told.height}, 6, 0, given, turned) != nullptr) {
      const bool is_resized = steps.resized.width != 0;
      std::string limit;
      if (!is_resized && given != nullptr) {
        limit = " (x " + std::to_string(given->x) + ", y " + std::to_string(given->y) + ", " +
                size_text(given->width, given->height) + ")";
      } else if (std::string_view(reason).ends_with("the crop")) {
        limit = " of " + size_text(options.crop_width, options.crop_height);
      } else if (std::string_view(reason).ends_with("the pad")) {
        limit = " of " + size_text(options.pad_width, options.pad_height);
      }
      const std::string resized = options.resize != L3_RESIZE_NONE && is_resized
                                      ? ", resized to " + size_text(steps.resized.width, steps.resized.height)
                                      : "";
      return refuse(resized + ": " + reason + limit);
    }
    steps = turned;
  }
  if (options.turn == L3_TURN_RANDOM && !is_ragged_ && steps.padded.width != steps.padded.height) {
    return refuse(", which become " + size_text(steps.padded.width, steps.padded.height) +
                  ": random turns by 90 degrees need square images: change the size, or make batches as lists");
  }
  const Size output = steps.output();
  if (options.orient != 0 && draw_steps(options, {told.width, told.height}, 6, 0, given, turned) == nullptr &&
      turned.output() != output) {
    // The memory of a list is planned before the file is read, and has room for an image that lies on its side.
    const bool has_room =
        options.batching == L3_BATCHING_LIST && !draws_boxes_ && turned.output() == Size{output.height, output.width};
    if (!has_room) {
      return refuse(", or " + size_text(told.height, told.width) +
                    " if its orientation turns it, which only its file says: ask for an exact resize, a crop, "
                    "a letterbox or a pad, or apply the orientation with l3 convert --orient");
    }
  }
  if (is_ragged_) return L3_OK;
  if (unit == 0) {
    tensor.width = output.width;
    tensor.height = output.height;
  }
  if (tensor.width != output.width || tensor.height != output.height) {
    return refuse((is_general_ ? ", which become " + size_text(output.width, output.height) : "") +
                  ", the images before it have " + size_text(tensor.width, tensor.height) +
                  ": such images need a crop, a resize, a pad, or batches as lists");
  }
  return L3_OK;
}

// Colours have three channels, or four if the file has transparency. Its head says which.
l3_status Units::resolve_channels(uint64_t sample, uint32_t& channels, l3_data_error* error) const {
  const l3_data_sample told = describe(*set_, sample);
  uint8_t head[L3_HEAD_MAX_BYTES];
  const size_t size = static_cast<size_t>(std::min<uint64_t>(told.size, sizeof head));
  if (const l3_status status = l3_data_read_part(set_, sample, 0, head, size, error); status != L3_OK) return status;
  const l3_limits any = {UINT64_MAX, UINT64_MAX, UINT64_MAX};
  l3_info info = l3_info_init();
  l3_error why{};
  if (l3_read_info(head, size, &any, &info, &why) != L3_OK) {
    return fail(error, why.status, set_->shard_of(sample).name(), why.reason, told.offset + why.offset);
  }
  l3_decode_options colours = l3_decode_options_init();
  colours.as_colours = 1;
  channels = l3_pixel_bytes(&info, head, size, &colours);
  return L3_OK;
}

l3_status Units::compute_layout(const l3_loader_options& options, l3_data_error* error) {
  for (Tensor& tensor : tensors_) {
    const bool pads =
        (options.pad != L3_PAD_NONE && options.pad_mode == L3_PAD_VALUE) || options.batching == L3_BATCHING_PAD;
    for (uint32_t c = 0; c < tensor.channels && pads && !is_float(tensor.wanted.type); ++c) {
      const char* reason = misfit_of_pad(tensor.wanted.type, tensor.wanted.pad_value[c]);
      if (reason != nullptr) return wrong(error, reason);
    }
    if (!is_general_) tensor.writer.emplace(tensor.wanted, tensor.bits, tensor.channels);
    if (is_ragged_) continue;
    // Each factor is below 2^21.
    tensor.image_bytes = uint64_t{tensor.width} * tensor.height * tensor.channels * value_bytes(tensor.wanted.type);
    tensor.place = batch_bytes_;
    if (tensor.image_bytes > kMaxBatchBytes / options.batch_size) {
      return fail(error, L3_ERROR_LIMIT, "", "a batch is larger than 2^40 bytes");
    }
    batch_bytes_ +=
        (tensor.image_bytes * options.batch_size + kTensorAlignment - 1) / kTensorAlignment * kTensorAlignment;
  }
  return L3_OK;
}

uint64_t Units::aspect_of(uint64_t unit) const {
  l3_data_sample told = l3_data_sample_init();
  (void)!sample_of(unit, tensors_.front(), told);
  return (uint64_t{told.width} << 24) / std::max(told.height, 1u);
}

uint64_t Units::unit_of(uint64_t group) const {
  if (all_groups_) return group;
  const auto at = std::find(groups_.begin(), groups_.end(), group);
  return at != groups_.end() ? static_cast<uint64_t>(at - groups_.begin()) : L3_DATA_NONE;
}

void Units::find_shards() {
  uint64_t unit = 0;
  while (unit < count()) {
    uint64_t first = 0, samples = 0;
    (void)!l3_data_group(set_, group(unit), &first, &samples);
    const Shard& shard = set_->shard_of(first);
    const uint64_t end = shard.first_group + shard.index.footer().groups;
    const uint64_t begin = unit;
    while (unit < count() && group(unit) >= shard.first_group && group(unit) < end) ++unit;
    shards_.push_back({begin, unit - begin});
  }
}

}  // namespace loader
