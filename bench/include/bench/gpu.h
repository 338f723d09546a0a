// Decoding on a GPU, for who has one.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "formats/formats.h"

namespace bench {

// A batch of l3 files that is decoded over and over. One at a time.
class GpuBatch {
 public:
  GpuBatch() = default;
  virtual ~GpuBatch() = default;
  GpuBatch(const GpuBatch&) = delete;
  GpuBatch& operator=(const GpuBatch&) = delete;

  // Takes the next image: its file, and what it must come back as. Neither is needed afterwards. Or says why not.
  virtual std::optional<std::string> add(std::span<const uint8_t> file, const formats::Image& image) = 0;

  // Decodes the batch once and compares every sample. Says what is wrong.
  virtual std::optional<std::string> check_lossless() = 0;

  // The seconds from files in pinned memory of the host to samples in the GPU's memory, of all images together.
  virtual double run() = 0;
};

class Gpu {
 public:
  Gpu() = default;
  virtual ~Gpu() = default;
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  virtual std::string name() const = 0;
  virtual std::unique_ptr<GpuBatch> make_batch() = 0;
};

// The GPU that is current. Null where there is none, or where this was built without kernels/.
std::unique_ptr<Gpu> find_gpu();

}  // namespace bench
