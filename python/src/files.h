// Images to be decoded: files in memory, whose heads were read.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data_set.h"
#include "l3/l3_loader.h"
#include "tensor.h"

namespace l3_python {

struct Region {
  uint32_t x = 0, y = 0, width = 0, height = 0;
  bool is_whole = true;
};

// How values are written, alike for all images.
struct Output {
  uint32_t type = L3_VALUE_STORED;
  uint32_t layout = L3_LAYOUT_HWC;
  bool flip = false;
  // By channel, or one for all of them; empty: 0 and 1.
  std::vector<double> mean, deviation;
};

struct File {
  std::string name;           // a path, or empty
  std::vector<uint8_t> read;  // where it was a path
  Py_buffer buffer{};         // else
  std::span<const uint8_t> bytes;
  l3_info info{};
  Region region;
  uint32_t channels = 0, bits = 0;  // as they are decoded
  l3_error error{};                 // of the library, or
  int system_error = 0;             // of the system
};

class Files {
 public:
  // Reads and verifies what comes before pixels, without the interpreter's lock. A source is a path as bytes in a
  // tuple, or has the buffer protocol. Raises for the first one that is not as it must be.
  Files(const nb::list& sources, const nb::list& models, bool as_colours, const nb::object& region,
        const l3_limits& limits, uint32_t threads);
  ~Files();
  Files(const Files&) = delete;
  Files& operator=(const Files&) = delete;

  const std::vector<File>& files() const { return files_; }
  const l3_decode_options& options() const { return options_; }
  // Raises what went wrong with the first file that has an error.
  void raise_first_error() const;

  // Decodes to memory of a CPU, a tensor for each file, or one for all of them.
  void decode(const std::vector<const Tensor*>& to, const Output& output, uint32_t threads);
  // Decodes on a GPU, in `stream`. Where no tensors are given it makes them.
  std::vector<Tensor> decode_on_gpu(const std::vector<const Tensor*>& to, const Output& output, uint32_t device,
                                    void* stream);

 private:
  void read_head(File& file, const Region& region) const;
  void decode_one(File& file, uint8_t* to, const class Writers& writers, const l3_parallel& parallel) const;
  // Where each file goes. ValueErrors are for Python to raise; what does not fit here is a RuntimeError.
  std::vector<uint8_t*> places(const std::vector<const Tensor*>& to, const Output& output) const;

  std::vector<File> files_;
  std::vector<nb::object> kept_;  // what models belong to
  std::vector<const l3_model*> models_;
  l3_decode_options options_;
};

// What an image of so many bits becomes, as the loader takes it.
l3_tensor_options wanted_of(const Output& output, uint32_t bits, uint32_t channels);
// The bytes that an image takes as a tensor.
uint64_t output_bytes(const File& file, const Output& output);

void bind_files(nb::module_& module);

}  // namespace l3_python
