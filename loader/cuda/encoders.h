// Encodes images in device memory, for several threads at once.
#pragma once

#include <mutex>
#include <span>
#include <vector>

#include "context.h"
#include "loader/device.h"

namespace loader::cuda {

// Any thread may use it, in the context of the device. Encoders that are idle are kept: their memory is expensive.
class Encoders {
 public:
  l3_error encode(std::span<const DevicePixels> images, cudaStream_t stream, std::span<DeviceFile> files);
  void clear() { idle_.clear(); }

 private:
  struct One {
    l3::cuda::Encoder encoder;
    l3::cuda::PinnedBuffer files;  // on their way to the host

    l3_error encode(std::span<const DevicePixels> images, cudaStream_t stream, std::span<DeviceFile> to);
  };
  l3::Result<One> take();

  std::mutex mutex_;
  std::vector<One> idle_;
};

}  // namespace loader::cuda
