// The units of a loader, the tensors requested of them, and their layout in memory.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "data_set.h"
#include "l3/l3_loader.h"
#include "loader/geometry.h"
#include "loader/tensor_writer.h"
#include "sampler.h"

namespace loader {

// A requested tensor. A batch stores its tensors one after the other.
struct Tensor {
  l3_tensor_options wanted{};  // its type is not L3_VALUE_STORED
  std::string role;
  bool any_role = false;
  uint32_t bits = 0;               // of the samples of the output
  uint32_t channels = 0;           // of the output
  uint32_t width = 0, height = 0;  // of the output, if all images have the same size
  uint64_t image_bytes = 0;
  uint64_t place = 0;  // its offset in a batch's memory
  bool is_first = true;
  bool are_indices = false;            // samples of the first image are palette indices
  std::optional<TensorWriter> writer;  // if pixels are only cut, mirrored and converted

  // The samples that libl3 decodes of an image.
  uint32_t bits_of(const l3_data_sample& sample) const {
    return wanted.as_colours != 0 && sample.colour == L3_COLOUR_PALETTE ? 8 : sample.bits;
  }
  // Samples are labels, not colours: they must not be mixed, and mean the same whatever their bits and palette.
  bool are_labels() const { return !is_first || wanted.type >= L3_VALUE_I16; }
  base::Filter filter_of(const l3_data_sample& sample) const;
  Values values() const;
  l3_tensor describe(uint64_t units, uint8_t* memory) const;
};

constexpr uint64_t kMaxBatchBytes = uint64_t{1} << 40;

// A random change of this kind is wanted.
inline bool has_jitter(const l3_loader_options& options) {
  return options.brightness != 0 || options.contrast != 0 || options.saturation != 0 || options.hue != 0;
}

class Units {
 public:
  // `options` must have no zeros that stand for defaults. Fails as described at l3_loader_open.
  l3_status open(const l3_data_set& set, const l3_loader_options& options, l3_data_error* error);

  uint64_t count() const { return all_groups_ ? set_->groups : groups_.size(); }
  uint64_t group(uint64_t unit) const { return all_groups_ ? unit : groups_[unit]; }
  const std::vector<ShardUnits>& shards() const { return shards_; }  // empty unless the order is L3_ORDER_WINDOWS
  const std::vector<Tensor>& tensors() const { return tensors_; }
  uint64_t batch_bytes() const { return batch_bytes_; }  // without labels; 0 if images differ in size
  bool is_ragged() const { return is_ragged_; }
  // The ratio of width to height of a unit's first image.
  uint64_t aspect_of(uint64_t unit) const;
  // The unit of a group; L3_DATA_NONE if it is none.
  uint64_t unit_of(uint64_t group) const;

  // Returns the number of the sample for a tensor of a unit, and its index entry in `told`.
  uint64_t sample_of(uint64_t unit, const Tensor& tensor, l3_data_sample& told) const;

 private:
  l3_status read_groups(const l3_loader_options& options, l3_data_error* error);
  l3_status read_tensors(const l3_loader_options& options, l3_data_error* error);
  l3_status check_unit(uint64_t unit, const l3_loader_options& options, l3_data_error* error);
  l3_status check_image(uint64_t sample, Tensor& tensor, uint64_t unit, const l3_loader_options& options,
                        l3_data_error* error);
  l3_status check_size(const l3_data_sample& told, Tensor& tensor, const l3_loader_options& options, uint64_t unit,
                       l3_data_error* error);
  l3_status resolve_channels(uint64_t sample, uint32_t& channels, l3_data_error* error) const;
  l3_status compute_layout(const l3_loader_options& options, l3_data_error* error);
  void find_shards();

  const l3_data_set* set_ = nullptr;
  bool all_groups_ = true;
  bool is_ragged_ = false;
  bool is_general_ = false;  // a Resampler makes the tensors
  bool draws_boxes_ = false;
  std::vector<uint64_t> groups_;
  std::vector<ShardUnits> shards_;
  std::vector<Tensor> tensors_;
  uint64_t batch_bytes_ = 0;
};

}  // namespace loader
