// The content of libl3_data_cuda.so: implements Device of loader/device.h with the CUDA runtime and l3_cuda.h.
#include <new>

#include "encoders.h"
#include "slot.h"

namespace loader::cuda {
namespace {

class CudaDevice final : public Device {
 public:
  explicit CudaDevice(const Context& context) : shared_(std::make_unique<Shared>(context)) {}
  ~CudaDevice() override {
    const InContext here(shared_->context);
    encoders_.clear();
    shared_.reset();
  }
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;

  std::unique_ptr<DeviceSlot> make_slot(l3_error* error) override {
    const InContext here(shared_->context);
    if (!here) return (void)return_error(error, InContext::problem()), nullptr;
    try {
      auto slot = Slot::make(*shared_);
      (void)return_error(error, slot ? no_error() : slot.error());
      return slot ? std::move(*slot) : nullptr;
    } catch (const std::bad_alloc&) {
      return (void)return_error(error, make_error(L3_ERROR_MEMORY, "out of memory")), nullptr;
    }
  }

  void* allocate_output(uint64_t size) override {
    const InContext here(shared_->context);
    try {
      return here ? shared_->outputs.allocate(size) : nullptr;
    } catch (const std::bad_alloc&) {
      return nullptr;
    }
  }

  void free_output(void* output) override {
    const InContext here(shared_->context);
    if (here) shared_->outputs.free(output);
  }

  void use_until(void* output, void* stream) override {
    const InContext here(shared_->context);
    if (here) shared_->outputs.use_until(output, static_cast<cudaStream_t>(stream));
  }

  l3_status encode(std::span<const DevicePixels> images, void* stream, std::span<DeviceFile> files,
                   l3_error* error) override {
    const InContext here(shared_->context);
    if (!here) return return_error(error, InContext::problem());
    try {
      return return_error(error, encoders_.encode(images, static_cast<cudaStream_t>(stream), files));
    } catch (const std::bad_alloc&) {
      return return_error(error, make_error(L3_ERROR_MEMORY, "out of memory"));
    }
  }

 private:
  std::unique_ptr<Shared> shared_;
  Encoders encoders_;
};

}  // namespace
}  // namespace loader::cuda

extern "C" __attribute__((visibility("default"))) loader::Device* l3_data_open_cuda_device(uint32_t version,
                                                                                           uint32_t number,
                                                                                           l3_error* error) {
  using namespace loader::cuda;
  if (version != loader::kDeviceVersion) {
    (void)return_error(error, make_error(L3_ERROR_DEVICE, "libl3_data_cuda.so has another version"));
    return nullptr;
  }
  try {
    const auto context = Context::open(number);
    if (!context) return (void)return_error(error, context.error()), nullptr;
    const InContext here(*context);
    if (!here) return (void)return_error(error, InContext::problem()), nullptr;
    if (l3_cuda_check_device(error) != L3_OK) return nullptr;
    auto* const device = new CudaDevice(*context);
    (void)return_error(error, no_error());
    return device;
  } catch (const std::bad_alloc&) {
    (void)return_error(error, make_error(L3_ERROR_MEMORY, "out of memory"));
    return nullptr;
  }
}
