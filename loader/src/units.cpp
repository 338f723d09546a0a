#include "units.h"

#include <algorithm>

#include "data_error.h"

namespace loader {
namespace {

constexpr uint32_t kMaxWanted = 16;
constexpr uint64_t kTensorAlignment = 256;
constexpr uint64_t kMaxBatchBytes = uint64_t{1} << 40;

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

bool is_float(uint32_t type) { return type >= L3_VALUE_F16; }

}  // namespace

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
  for (uint64_t unit = 0; unit < count() && status == L3_OK; ++unit) status = check_unit(unit, options, error);
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
  for (uint32_t i = 0; i < options.tensor_count; ++i) {
    Tensor& tensor = tensors_[i];
    tensor.wanted = options.tensors[i];
    if (tensor.wanted.type > L3_VALUE_F32) return wrong(error, "unknown type of values");
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
    if (const l3_status status = check_image(found, tensor, unit == 0, options, error); status != L3_OK) return status;
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

l3_status Units::check_image(uint64_t sample, Tensor& tensor, bool is_first, const l3_loader_options& options,
                             l3_data_error* error) {
  const l3_data_sample told = describe(*set_, sample);
  const bool as_colours = tensor.wanted.as_colours != 0 && told.colour == L3_COLOUR_PALETTE;
  const uint32_t bits = as_colours ? 8 : told.bits;
  if (is_first) {
    tensor.bits = bits;
    tensor.channels = told.channels;
    if (as_colours) {
      if (const l3_status status = resolve_channels(sample, tensor, error); status != L3_OK) return status;
    }
    tensor.width = options.crop == L3_CROP_NONE ? told.width : options.crop_width;
    tensor.height = options.crop == L3_CROP_NONE ? told.height : options.crop_height;
    if (tensor.wanted.type == L3_VALUE_STORED) tensor.wanted.type = bits > 8 ? L3_VALUE_U16 : L3_VALUE_U8;
  }
  if (tensor.wanted.type == L3_VALUE_U8 && bits > 8) {
    return wrong(error, name_text(told) + " has samples of " + std::to_string(bits) + " bits, which do not fit 8");
  }
  // Integers are the samples unchanged, whatever the bits. The meaning of a float depends on the bits.
  if (bits != tensor.bits && (is_float(tensor.wanted.type) || (bits > 8) != (tensor.bits > 8))) {
    return wrong(error, name_text(told) + " has samples of " + std::to_string(bits) +
                            " bits, the images before it of " + std::to_string(tensor.bits));
  }
  if (!as_colours && told.channels != tensor.channels) {
    return wrong(error, name_text(told) + " has " + std::to_string(told.channels) +
                            " channels, the images before it have " + std::to_string(tensor.channels));
  }
  const std::string size = name_text(told) + " has " + size_text(told.width, told.height) + " pixels";
  if (options.crop == L3_CROP_NONE) {
    if (told.width != tensor.width || told.height != tensor.height) {
      return wrong(error, size + ", the images before it have " + size_text(tensor.width, tensor.height) +
                              ": such images need a crop");
    }
  } else if (told.width < tensor.width || told.height < tensor.height) {
    return wrong(error, size + ", which is less than the crop of " + size_text(tensor.width, tensor.height));
  }
  return L3_OK;
}

// Colours have three channels, or four if the file has transparency. Its head says which.
l3_status Units::resolve_channels(uint64_t sample, Tensor& tensor, l3_data_error* error) const {
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
  tensor.channels = l3_pixel_bytes(&info, head, size, &colours);
  return L3_OK;
}

l3_status Units::compute_layout(const l3_loader_options& options, l3_data_error* error) {
  for (Tensor& tensor : tensors_) {
    // Each factor is below 2^21.
    tensor.image_bytes = uint64_t{tensor.width} * tensor.height * tensor.channels * value_bytes(tensor.wanted.type);
    tensor.place = batch_bytes_;
    if (tensor.image_bytes > kMaxBatchBytes / options.batch_size) {
      return fail(error, L3_ERROR_LIMIT, "", "a batch is larger than 2^40 bytes");
    }
    batch_bytes_ +=
        (tensor.image_bytes * options.batch_size + kTensorAlignment - 1) / kTensorAlignment * kTensorAlignment;
    tensor.writer.emplace(tensor.wanted, tensor.bits, tensor.channels);
  }
  return L3_OK;
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
