// Device memory for decoded batches, and the streams that still use it.
#pragma once

#include <mutex>
#include <unordered_map>
#include <vector>

#include "context.h"

namespace loader::cuda {

// Any thread may use it, in the context of the device.
class Outputs {
 public:
  Outputs() = default;
  ~Outputs();  // waits for all users
  Outputs(const Outputs&) = delete;
  Outputs& operator=(const Outputs&) = delete;

  void* allocate(uint64_t size);
  // Waits for the users of an output, and frees it.
  void free(void* output);
  void use_until(void* output, cudaStream_t stream);
  // Makes `stream` wait for the users of an output.
  l3_error wait_for_users(void* output, cudaStream_t stream);

 private:
  struct Output {
    l3::cuda::DeviceBuffer memory;
    std::vector<l3::cuda::Event> users;  // some may have passed already

    void wait() const;
  };

  std::mutex mutex_;
  std::unordered_map<void*, Output> outputs_;
};

}  // namespace loader::cuda
