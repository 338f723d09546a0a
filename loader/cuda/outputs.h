// Device memory that batches are decoded into, and what still uses it.
#pragma once

#include <mutex>
#include <unordered_map>
#include <vector>

#include "context.h"

namespace loader::cuda {

// For any thread, in the context of the device.
class Outputs {
 public:
  Outputs() = default;
  ~Outputs();  // waits too
  Outputs(const Outputs&) = delete;
  Outputs& operator=(const Outputs&) = delete;

  void* allocate(uint64_t size);
  // Waits for what uses it.
  void free(void* output);
  void use_until(void* output, cudaStream_t stream);
  // Makes `stream` wait for what uses it.
  l3_error wait_for_users(void* output, cudaStream_t stream);

 private:
  struct Output {
    l3::cuda::DeviceBuffer memory;
    std::vector<l3::cuda::Event> users;  // some of which are through

    void wait() const;
  };

  std::mutex mutex_;
  std::unordered_map<void*, Output> outputs_;
};

}  // namespace loader::cuda
