// The models that files name, copied to the device once and kept there.
#pragma once

#include <algorithm>
#include <array>
#include <map>
#include <mutex>

#include "context.h"

namespace loader::cuda {

// Any thread may use it, in the context of the device.
class Models {
 public:
  using Name = std::array<uint8_t, L3_MODEL_NAME_BYTES>;

  // Describes a model for kernels, and makes `stream` wait for its bytes. If it fails, no copy is in progress.
  l3_error get(const l3_model_info& model, cudaStream_t stream, l3_cuda_model& supplied);

 private:
  struct Kept {
    l3::cuda::PinnedBuffer source;
    l3::cuda::DeviceBuffer copy;
    l3::cuda::Event arrived;
  };
  static l3::Result<Kept> upload(const l3_model_info& model, cudaStream_t stream);

  std::mutex mutex_;
  std::map<Name, Kept> kept_;
};

inline Models::Name name_of(const uint8_t* name) {
  Models::Name copy;
  std::copy_n(name, copy.size(), copy.begin());
  return copy;
}

}  // namespace loader::cuda
