// A batch in progress: copies files from pinned memory to the device and decodes them there, in the slot's own stream.
#pragma once

#include "loader/device.h"
#include "models.h"
#include "outputs.h"

namespace loader::cuda {

// State that the slots of a device share. It must outlive them.
struct Shared {
  explicit Shared(const Context& of) : context(of) {}

  Context context;
  Models models;
  Outputs outputs;
};

// A buffer that grows by more than requested, to grow seldom.
template <class Memory>
class Growing {
 public:
  // Makes the buffer at least `size` bytes large. If it must grow, its contents are lost, and nothing may use it.
  [[nodiscard]] l3_error grow(uint64_t size) {
    if (size <= memory_.size()) return no_error();
    memory_ = {};  // first, so that old and new memory never exist together
    auto made = l3::cuda::Buffer<Memory>::make((size + size / 4 + kStep - 1) / kStep * kStep);
    if (!made) return made.error();
    memory_ = std::move(*made);
    return no_error();
  }
  uint8_t* bytes() const { return memory_.bytes(); }
  uint64_t size() const { return memory_.size(); }

 private:
  static constexpr uint64_t kStep = 1 << 16;

  l3::cuda::Buffer<Memory> memory_;
};

class Slot final : public DeviceSlot {
 public:
  // Must be called in the device's context.
  static l3::Result<std::unique_ptr<DeviceSlot>> make(Shared& shared);

  ~Slot() override;
  Slot(const Slot&) = delete;
  Slot& operator=(const Slot&) = delete;

  uint8_t* staging(uint64_t size) override;
  l3_status begin(const DeviceWork& work, l3_error* error) override;
  l3_status finish(std::span<l3_error> verdicts, DeviceTimes& times, l3_error* error) override;

 private:
  // All CUDA objects. They must be destroyed in the device's context.
  struct Machinery {
    Growing<l3::cuda::PinnedMemory> staging;  // files as the loader stores them
    Growing<l3::cuda::DeviceMemory> files;    // the same files on the device, at the same offsets
    Growing<l3::cuda::DeviceMemory> workspace;
    Growing<l3::cuda::PinnedMemory> pinned;  // images, results and models, in this order
    Growing<l3::cuda::PinnedMemory> pinned_changes;
    Growing<l3::cuda::DeviceMemory> changes;  // the same on the device
    Growing<l3::cuda::DeviceMemory> scratch;  // of the changes
    l3::cuda::Event begun, copied, done;      // these record times
    l3::cuda::Event asked;                    // for DeviceWork::after_stream
    l3::cuda::Stream stream;                  // destroyed first
  };
  struct Stretch {
    uint64_t begin, end;
  };
  // A model that is not in its file. For images of another kind, the same model counts as another.
  struct ModelUse {
    Models::Name name;
    uint32_t channels, bits;

    auto operator<=>(const ModelUse&) const = default;
  };

  explicit Slot(Shared& shared) : shared_(shared) {}

  l3_error plan(const DeviceWork& work);
  l3_error plan_image(const DeviceImage& image, std::span<const l3_model* const> models);
  void merge_stretches();
  l3_error make_room(size_t images);
  l3_error plan_changes(const DeviceWork& work);
  l3_cuda_image describe(const DeviceImage& image) const;
  static l3_cuda_change describe(const DeviceChange& from);

  l3_error put(const DeviceWork& work);
  cudaError_t put_files();
  l3_error put_models(const DeviceWork& work);
  l3_error put_waits(const DeviceWork& work);
  cudaError_t put_copies(const DeviceWork& work);
  l3_error put_decoding();
  cudaError_t put_end(const DeviceWork& work);

  l3_cuda_image* images() const { return reinterpret_cast<l3_cuda_image*>(machinery_->pinned.bytes()); }
  l3_cuda_result* results() const { return reinterpret_cast<l3_cuda_result*>(images() + image_count_); }
  l3_cuda_model* models() const { return reinterpret_cast<l3_cuda_model*>(results() + image_count_); }

  Shared& shared_;
  std::unique_ptr<Machinery> machinery_;
  bool is_under_way_ = false;

  // Of the batch in progress.
  uint32_t image_count_ = 0, model_count_ = 0, change_count_ = 0;
  l3_cuda_capacity capacity_{};
  uint64_t files_end_ = 0;          // in the staging memory
  std::vector<Stretch> stretches_;  // its parts to copy
  std::vector<ModelUse> model_uses_;
  std::vector<Models::Name> names_;  // of models that files name, sorted
};

}  // namespace loader::cuda
