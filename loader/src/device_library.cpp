#include "data_error.h"
#include "loader/device.h"
namespace loader {
std::shared_ptr<Device> open_cuda_device(uint32_t, l3_data_error* error) {
  (void)!fail(error, L3_ERROR_DEVICE, "", "this build has no CUDA part");
  return nullptr;
}
void set_device_entry(OpenDevice) {}
}  // namespace loader
