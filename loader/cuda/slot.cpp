#include "slot.h"

#include <algorithm>
#include <cstring>
#include <new>

namespace loader::cuda {
namespace {

constexpr uint32_t kMaxImages = 65535;  // the limit of a call of l3_cuda.h
constexpr uint64_t kMaxTiles = uint64_t{1} << 31;
// Stretches that are at most this far apart are copied as one. Starting a copy costs as much as this many bytes.
constexpr uint64_t kGap = 16 << 10;

static_assert(L3_VALUE_U8 - 1 == L3_CUDA_U8 && L3_VALUE_U16 - 1 == L3_CUDA_U16 && L3_VALUE_F16 - 1 == L3_CUDA_F16 &&
              L3_VALUE_BF16 - 1 == L3_CUDA_BF16 && L3_VALUE_F32 - 1 == L3_CUDA_F32 && L3_VALUE_I16 - 1 == L3_CUDA_I16 &&
              L3_VALUE_I32 - 1 == L3_CUDA_I32 && L3_VALUE_I64 - 1 == L3_CUDA_I64);
static_assert(sizeof(base::ResizeAxis) == sizeof(l3_cuda_axis) &&
              sizeof(Colours::factor) == sizeof(l3_cuda_change::factor));
static_assert(L3_LAYOUT_CHW != L3_LAYOUT_HWC && L3_CUDA_CHW != L3_CUDA_HWC);
static_assert(sizeof(l3_tensor_options::scale) == sizeof(l3_cuda_image::scale) &&
              sizeof(l3_tensor_options::bias) == sizeof(l3_cuda_image::bias));
// They are stored one after the other.
static_assert(sizeof(l3_cuda_image) % alignof(l3_cuda_result) == 0 &&
              sizeof(l3_cuda_result) % alignof(l3_cuda_model) == 0);

l3_error argument_error(const char* reason) { return make_error(L3_ERROR_ARGUMENT, reason); }

cudaStream_t stream_of(void* stream) { return static_cast<cudaStream_t>(stream); }

bool is_inside(uint64_t at, uint64_t size, uint64_t end) { return at <= end && size <= end - at; }

}  // namespace

l3::Result<std::unique_ptr<DeviceSlot>> Slot::make(Shared& shared) {
  auto machinery = std::make_unique<Machinery>();
  auto stream = l3::cuda::make_stream();
  if (!stream) return stream.error();
  machinery->stream = std::move(*stream);
  const auto make = [](l3::cuda::Event& event, unsigned flags) {
    auto made = l3::cuda::make_event(flags);
    if (!made) return made.error();
    event = std::move(*made);
    return no_error();
  };
  l3_error result = make(machinery->begun, cudaEventDefault);
  if (result.status == L3_OK) result = make(machinery->copied, cudaEventDefault);
  if (result.status == L3_OK) result = make(machinery->done, cudaEventBlockingSync);
  if (result.status == L3_OK) result = make(machinery->asked, cudaEventDisableTiming);
  if (result.status != L3_OK) return result;
  std::unique_ptr<Slot> slot(new Slot(shared));
  slot->machinery_ = std::move(machinery);
  return std::unique_ptr<DeviceSlot>(std::move(slot));
}

Slot::~Slot() {
  const InContext here(shared_.context);
  (void)cudaStreamSynchronize(machinery_->stream.get());
  machinery_.reset();
}

uint8_t* Slot::staging(uint64_t size) {
  const InContext here(shared_.context);
  if (!here || is_under_way_ || machinery_->staging.grow(std::max<uint64_t>(size, 1)).status != L3_OK) return nullptr;
  return machinery_->staging.bytes();
}

l3_status Slot::begin(const DeviceWork& work, l3_error* error) {
  if (is_under_way_) return return_error(error, argument_error("the slot is still working"));
  const InContext here(shared_.context);
  if (!here) return return_error(error, InContext::problem());
  l3_error result = no_error();
  try {
    result = plan(work);
    if (result.status != L3_OK) return return_error(error, result);
    result = put(work);
  } catch (const std::bad_alloc&) {
    result = make_error(L3_ERROR_MEMORY, "out of memory");
  }
  is_under_way_ = result.status == L3_OK;
  if (!is_under_way_) {
    (void)cudaStreamSynchronize(machinery_->stream.get());  // wait for the work that was enqueued before the failure
    (void)cudaGetLastError();
  }
  return return_error(error, result);
}

l3_status Slot::finish(std::span<l3_error> verdicts, DeviceTimes& times, l3_error* error) {
  if (!is_under_way_) return return_error(error, argument_error("the slot has no work"));
  if (verdicts.size() != image_count_)
    return return_error(error, argument_error("the number of verdicts differs from the number of images"));
  const InContext here(shared_.context);
  if (!here) return return_error(error, InContext::problem());
  is_under_way_ = false;
  if (const cudaError_t code = cudaEventSynchronize(machinery_->done.get()); code != cudaSuccess) {
    const l3_error result = from_cuda(code);
    (void)cudaStreamSynchronize(machinery_->stream.get());
    (void)cudaGetLastError();
    return return_error(error, result);
  }
  for (uint32_t i = 0; i < image_count_; ++i) verdicts[i] = l3_cuda_explain(results() + i);
  const auto since_begun = [&](const l3::cuda::Event& event, uint64_t& nanoseconds) {
    float milliseconds = 0;
    const cudaError_t code = cudaEventElapsedTime(&milliseconds, machinery_->begun.get(), event.get());
    nanoseconds = static_cast<uint64_t>(std::max(0.0, double{milliseconds} * 1e6));
    return code;
  };
  cudaError_t code = since_begun(machinery_->copied, times.copied);
  if (code == cudaSuccess) code = since_begun(machinery_->done, times.decoded);
  return return_error(error, from_cuda(code));
}

// ---- planning

l3_error Slot::plan(const DeviceWork& work) {
  stretches_.clear();
  model_uses_.clear();
  names_.clear();
  capacity_ = {};
  files_end_ = 0;
  if (work.images.size() > kMaxImages) return argument_error("a batch has at most 65535 images");
  for (const DeviceImage& image : work.images) {
    if (const l3_error result = plan_image(image, work.models); result.status != L3_OK) return result;
  }
  for (const DeviceCopy& copy : work.copies) {
    if (!is_inside(copy.at, copy.size, machinery_->staging.size()) || (copy.out == nullptr && copy.size != 0)) {
      return argument_error("a copy is not inside the staging memory");
    }
  }
  if (work.ordered && is_captured(stream_of(work.after_stream))) {
    return argument_error("the stream is being captured, and a batch cannot be part of a graph");
  }
  merge_stretches();
  std::sort(model_uses_.begin(), model_uses_.end());
  const auto last_use = std::unique(model_uses_.begin(), model_uses_.end());
  capacity_.models += static_cast<uint32_t>(last_use - model_uses_.begin());
  std::sort(names_.begin(), names_.end());
  names_.erase(std::unique(names_.begin(), names_.end()), names_.end());
  capacity_.images = static_cast<uint32_t>(work.images.size());
  capacity_.models = std::max(capacity_.models, 1U);  // 0 would mean one per image
  capacity_.tiles = std::max<uint64_t>(capacity_.tiles, 1);
  if (capacity_.tiles > kMaxTiles) return make_error(L3_ERROR_LIMIT, "a batch has at most 2^31 tiles");
  if (const l3_error result = make_room(work.images.size()); result.status != L3_OK) return result;
  image_count_ = capacity_.images;
  model_count_ = 0;
  for (uint32_t i = 0; i < image_count_; ++i) {
    ::new (static_cast<void*>(images() + i)) l3_cuda_image(describe(work.images[i]));
  }
  return plan_changes(work);
}

// Gives the changes of images and their scratch memory places on the device.
l3_error Slot::plan_changes(const DeviceWork& work) {
  change_count_ = static_cast<uint32_t>(
      std::count_if(work.images.begin(), work.images.end(), [](const auto& image) { return image.change != nullptr; }));
  if (change_count_ == 0) return no_error();
  Machinery& of = *machinery_;
  l3_error result = of.changes.grow(change_count_ * sizeof(l3_cuda_change));
  if (result.status == L3_OK) result = of.pinned_changes.grow(change_count_ * sizeof(l3_cuda_change));
  if (result.status != L3_OK) return result;
  auto* const pinned = reinterpret_cast<l3_cuda_change*>(of.pinned_changes.bytes());
  auto* const on_device = reinterpret_cast<l3_cuda_change*>(of.changes.bytes());
  uint64_t scratch = 0;
  std::vector<uint64_t> places;
  for (uint32_t i = 0; i < image_count_; ++i) {
    if (work.images[i].change == nullptr) continue;
    const size_t next = places.size();
    ::new (static_cast<void*>(pinned + next)) l3_cuda_change(describe(*work.images[i].change));
    images()[i].change = on_device + next;
    places.push_back(scratch);
    scratch += (l3_cuda_change_bytes(images() + i, pinned + next) + 255) / 256 * 256;
  }
  result = of.scratch.grow(scratch);
  if (result.status != L3_OK) return result;
  for (size_t i = 0; i < places.size(); ++i) pinned[i].scratch = of.scratch.bytes() + places[i];
  return no_error();
}

l3_cuda_change Slot::describe(const DeviceChange& from) {
  const auto axis_of = [](const base::ResizeAxis& axis) {
    l3_cuda_axis told{};
    std::memcpy(&told, &axis, sizeof told);
    return told;
  };
  const Colours& colours = from.colours;
  l3_cuda_change change{};
  change.rows = axis_of(from.geometry.rows);
  change.columns = axis_of(from.geometry.columns);
  change.transposed = from.geometry.transposed ? 1 : 0;
  change.bits = from.bits;
  change.limit_between = from.geometry.between;
  change.channels = colours.to;
  change.used = colours.used;
  change.mixes = colours.is_same ? 0 : 1;
  change.clamps = colours.clamps ? 1 : 0;
  std::memcpy(change.factor, colours.factor, sizeof change.factor);
  std::copy(std::begin(colours.offset), std::end(colours.offset), change.offset);
  change.most = colours.most;
  change.blends = !colours.composes ? 0 : colours.is_premultiplied ? 2 : 1;
  std::copy(std::begin(colours.background), std::end(colours.background), change.background);
  std::copy(std::begin(from.values.pad), std::end(from.values.pad), change.pad_value);
  return change;
}

l3_error Slot::plan_image(const DeviceImage& image, std::span<const l3_model* const> models) {
  const uint64_t end = machinery_->staging.size();
  if (image.at % 16 != 0 || !is_inside(image.at, image.size, end)) {
    return argument_error("a file is not inside the staging memory, at a multiple of 16");
  }
  if (image.wanted == nullptr || image.wanted->type < L3_VALUE_U8 ||
      image.wanted->type > (image.change != nullptr ? L3_VALUE_I64 : L3_VALUE_F32) ||
      image.wanted->layout > L3_LAYOUT_HWC || image.out == nullptr || image.width == 0 || image.height == 0) {
    return argument_error("the output of an image is invalid");
  }
  files_end_ = std::max(files_end_, image.at + image.size);
  if (image.present.empty()) {
    stretches_.push_back({image.at, image.at + image.size});
  }
  for (const l3_range& range : image.present) {
    if (!is_inside(range.offset, range.size, end - image.at)) {
      return argument_error("a part of a file is not inside the staging memory");
    }
    stretches_.push_back({image.at + range.offset, image.at + range.offset + range.size});
    files_end_ = std::max(files_end_, stretches_.back().end);
  }
  // Tiles of a file that ends before its payloads do not count, however many it claims: such a file is refused.
  if (image.size >= image.info.payload_start) {
    capacity_.tiles += l3_cuda_count_tiles(&image.info, image.width, image.height);
    if (image.info.model_origin != L3_MODEL_NONE) {
      // The head and the model are always present.
      capacity_.follow_bytes += l3_cuda_count_follow_bytes(machinery_->staging.bytes() + image.at, image.size,
                                                           models.data(), models.size(), image.width, image.height);
    }
  }
  const uint32_t origin = image.info.model_origin;
  if (origin == L3_MODEL_OWN) {
    ++capacity_.models;
  } else if (origin != L3_MODEL_NONE) {
    model_uses_.push_back({name_of(image.info.model_name), image.info.channels, image.info.bits});
    if (origin == L3_MODEL_NAMED) names_.push_back(model_uses_.back().name);
  }
  return no_error();
}

void Slot::merge_stretches() {
  std::sort(stretches_.begin(), stretches_.end(), [](const Stretch& a, const Stretch& b) { return a.begin < b.begin; });
  size_t merged = 0;
  for (const Stretch& stretch : stretches_) {
    if (stretch.begin == stretch.end) continue;
    if (merged > 0 && stretch.begin <= stretches_[merged - 1].end + kGap) {
      stretches_[merged - 1].end = std::max(stretches_[merged - 1].end, stretch.end);
    } else {
      stretches_[merged++] = stretch;
    }
  }
  stretches_.resize(merged);
}

l3_error Slot::make_room(size_t images) {
  if (images == 0) return no_error();
  Machinery& of = *machinery_;
  // An empty file needs an address too.
  l3_error result = of.files.grow(std::max<uint64_t>(files_end_, 16));
  if (result.status == L3_OK) result = of.workspace.grow(l3_cuda_workspace_size(&capacity_));
  if (result.status == L3_OK) {
    result = of.pinned.grow(images * (sizeof(l3_cuda_image) + sizeof(l3_cuda_result)) +
                            names_.size() * sizeof(l3_cuda_model));
  }
  return result;
}

l3_cuda_image Slot::describe(const DeviceImage& image) const {
  const l3_tensor_options& wanted = *image.wanted;
  l3_cuda_image described = l3_cuda_image_init();
  described.data = machinery_->files.bytes() + image.at;
  described.size = image.size;
  described.width = image.info.width;
  described.height = image.info.height;
  described.channels = image.channels;
  described.x = image.x;
  described.y = image.y;
  described.region_width = image.width;
  described.region_height = image.height;
  if (image.flip) described.flags |= L3_CUDA_FLIP;
  if (wanted.as_colours != 0) described.flags |= L3_CUDA_COLOURS;
  described.type = wanted.type - L3_VALUE_U8;
  described.layout = wanted.layout == L3_LAYOUT_CHW ? L3_CUDA_CHW : L3_CUDA_HWC;
  if (image.change != nullptr) {
    described.channels = image.change->colours.from;
    described.row_stride = image.change->values.row_stride;
    described.plane_stride = image.change->values.plane_stride;
  }
  described.out = image.out;
  const bool no_scale = std::all_of(std::begin(wanted.scale), std::end(wanted.scale), [](float s) { return s == 0; });
  if (!no_scale) std::copy(std::begin(wanted.scale), std::end(wanted.scale), described.scale);
  std::copy(std::begin(wanted.bias), std::end(wanted.bias), described.bias);
  return described;
}

// ---- enqueueing

l3_error Slot::put(const DeviceWork& work) {
  const cudaStream_t stream = machinery_->stream.get();
  l3_error result = from_cuda(cudaEventRecord(machinery_->begun.get(), stream));
  if (result.status == L3_OK) result = from_cuda(put_files());
  if (result.status == L3_OK) result = put_models(work);
  if (result.status == L3_OK) result = from_cuda(cudaEventRecord(machinery_->copied.get(), stream));
  // From here on, outputs are written.
  if (result.status == L3_OK) result = put_waits(work);
  if (result.status == L3_OK) result = from_cuda(put_copies(work));
  if (result.status == L3_OK) result = put_decoding();
  if (result.status == L3_OK) result = from_cuda(put_end(work));
  return result;
}

cudaError_t Slot::put_files() {
  cudaError_t code = cudaSuccess;
  for (const Stretch& stretch : stretches_) {
    if (code != cudaSuccess) break;
    code = cudaMemcpyAsync(machinery_->files.bytes() + stretch.begin, machinery_->staging.bytes() + stretch.begin,
                           stretch.end - stretch.begin, cudaMemcpyHostToDevice, machinery_->stream.get());
  }
  if (code == cudaSuccess && change_count_ > 0) {
    code = cudaMemcpyAsync(machinery_->changes.bytes(), machinery_->pinned_changes.bytes(),
                           change_count_ * sizeof(l3_cuda_change), cudaMemcpyHostToDevice, machinery_->stream.get());
  }
  return code;
}

// If nobody supplies a model, the device reports that for its images.
l3_error Slot::put_models(const DeviceWork& work) {
  if (names_.empty()) return no_error();
  std::vector<bool> supplied(names_.size());
  for (const l3_model* model : work.models) {
    l3_model_info info = l3_model_info_init();
    if (l3_describe_model(model, &info, nullptr) != L3_OK) continue;
    const auto name = std::lower_bound(names_.begin(), names_.end(), name_of(info.name));
    if (name == names_.end() || *name != name_of(info.name)) continue;
    const size_t place = static_cast<size_t>(name - names_.begin());
    if (supplied[place]) continue;
    supplied[place] = true;
    l3_cuda_model* const known = ::new (static_cast<void*>(models() + model_count_)) l3_cuda_model{};
    const l3_error result = shared_.models.get(info, machinery_->stream.get(), *known);
    if (result.status != L3_OK) return result;
    if (++model_count_ == names_.size()) break;
  }
  return no_error();
}

l3_error Slot::put_waits(const DeviceWork& work) {
  const cudaStream_t stream = machinery_->stream.get();
  if (work.output != nullptr) {
    const l3_error result = shared_.outputs.wait_for_users(work.output, stream);
    if (result.status != L3_OK) return result;
  }
  if (!work.ordered) return no_error();
  cudaError_t code = cudaEventRecord(machinery_->asked.get(), stream_of(work.after_stream));
  if (code == cudaSuccess) code = cudaStreamWaitEvent(stream, machinery_->asked.get(), 0);
  return from_cuda(code);
}

cudaError_t Slot::put_copies(const DeviceWork& work) {
  cudaError_t code = cudaSuccess;
  for (const DeviceCopy& copy : work.copies) {
    if (code != cudaSuccess) break;
    if (copy.size == 0) continue;
    code = cudaMemcpyAsync(copy.out, machinery_->staging.bytes() + copy.at, copy.size, cudaMemcpyHostToDevice,
                           machinery_->stream.get());
  }
  return code;
}

l3_error Slot::put_decoding() {
  if (image_count_ == 0) return no_error();
  l3_cuda_batch batch = l3_cuda_batch_init();
  batch.image_count = image_count_;
  batch.images = images();
  batch.results = results();
  batch.capacity = capacity_;
  batch.workspace = machinery_->workspace.bytes();
  batch.workspace_size = machinery_->workspace.size();
  batch.models = models();
  batch.model_count = model_count_;
  batch.changes = change_count_ > 0 ? 1 : 0;
  l3_error result = no_error();
  (void)!l3_cuda_decode_batch_async(&batch, &result, machinery_->stream.get());
  return result;
}

cudaError_t Slot::put_end(const DeviceWork& work) {
  cudaError_t code = cudaEventRecord(machinery_->done.get(), machinery_->stream.get());
  if (code == cudaSuccess && work.ordered) {
    code = cudaStreamWaitEvent(stream_of(work.after_stream), machinery_->done.get(), 0);
  }
  if (code == cudaSuccess && work.output != nullptr) shared_.outputs.use_until(work.output, machinery_->stream.get());
  return code;
}

}  // namespace loader::cuda
