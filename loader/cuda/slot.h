// A batch on its way: files from pinned memory to the device, and decoded there, in a stream of the slot's own.
#pragma once

#include "loader/device.h"
#include "models.h"
#include "outputs.h"

namespace loader::cuda {

// What the slots of a device share. It outlives them.
struct Shared {
  explicit Shared(const Context& of) : context(of) {}

  Context context;
  Models models;
  Outputs outputs;
};

// Memory of one kind that grows by more than it has to.
template <class Memory>
class Growing {
 public:
  // Makes it at least that large. Where it has to grow, what was in it is gone, and nothing may be using it.
  [[nodiscard]] l3_error grow(uint64_t size) {
    if (size <= memory_.size()) return no_error();
    memory_ = {};  // first, so that there is never both
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
  // In the device's context.
  static l3::Result<std::unique_ptr<DeviceSlot>> make(Shared& shared);

  ~Slot() override;
  Slot(const Slot&) = delete;
  Slot& operator=(const Slot&) = delete;

  uint8_t* staging(uint64_t size) override;
  l3_status begin(const DeviceWork& work, l3_error* error) override;
  l3_status finish(std::span<l3_error> verdicts, DeviceTimes& times, l3_error* error) override;

 private:
  // All that is CUDA's; goes in the device's context.
  struct Machinery {
    Growing<l3::cuda::PinnedMemory> staging;  // files as the loader puts them there
    Growing<l3::cuda::DeviceMemory> files;    // the same on the device, each at the same place
    Growing<l3::cuda::DeviceMemory> workspace;
    Growing<l3::cuda::PinnedMemory> pinned;  // images, results and models, in this order
    l3::cuda::Event begun, copied, done;     // with the time
    l3::cuda::Event asked;                   // of the stream that is to be followed
    l3::cuda::Stream stream;                 // goes first
  };
  struct Stretch {
    uint64_t begin, end;
  };
  // A model that is not in its file. The same one is another for images of another kind.
  struct ModelUse {
    Models::Name name;
    uint32_t channels, bits;

    auto operator<=>(const ModelUse&) const = default;
  };

  explicit Slot(Shared& shared) : shared_(shared) {}

  l3_error plan(const DeviceWork& work);
  l3_error plan_image(const DeviceImage& image);
  void merge_stretches();
  l3_error make_room(size_t images);
  l3_cuda_image describe(const DeviceImage& image) const;

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

  // Of the batch that is under way.
  uint32_t image_count_ = 0, model_count_ = 0;
  l3_cuda_capacity capacity_{};
  uint64_t files_end_ = 0;          // in the staging memory
  std::vector<Stretch> stretches_;  // of it, that travel
  std::vector<ModelUse> model_uses_;
  std::vector<Models::Name> names_;  // of models that files name, in order
};

}  // namespace loader::cuda
