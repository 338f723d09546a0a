// Measures decoding on a GPU, if there is one.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "formats/formats.h"

namespace bench {

// A batch of l3 files that is decoded repeatedly. Only one batch may exist at a time.
class GpuBatch {
 public:
  GpuBatch() = default;
  virtual ~GpuBatch() = default;
  GpuBatch(const GpuBatch&) = delete;
  GpuBatch& operator=(const GpuBatch&) = delete;

  // Adds an image: its file, and the image that decoding must return. Copies both. Returns an error text on failure.
  virtual std::optional<std::string> add(std::span<const uint8_t> file, const formats::Image& image) = 0;

  // Decodes the batch once and compares every sample. Returns a text that describes the first difference, if any.
  virtual std::optional<std::string> check_lossless() = 0;

  // Decodes the batch from files in pinned host memory to samples in GPU memory. Returns the time in seconds.
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

// Returns the current GPU, or null if there is none or this was built without the CUDA decoder.
std::unique_ptr<Gpu> find_gpu();

}  // namespace bench
