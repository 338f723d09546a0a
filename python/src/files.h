// Images to decode: files in memory that were opened.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data_set.h"
#include "l3/l3.hpp"
#include "l3/l3_loader.h"
#include "tensor.h"

namespace l3_python {

struct Region {
  uint32_t x = 0, y = 0, width = 0, height = 0;
  bool is_whole = true;
};

// How values are written; the same for all images.
struct Output {
  uint32_t type = L3_VALUE_STORED;
  uint32_t layout = L3_LAYOUT_HWC;
  bool flip = false;
  // One number per channel, or one for all; empty: mean 0, deviation 1.
  std::vector<double> mean, deviation;
};

struct File {
  std::string name;           // the path, or empty
  std::vector<uint8_t> read;  // the contents, if the source is a path
  Py_buffer buffer{};         // the source, if it is not a path
  std::span<const uint8_t> bytes;
  std::optional<l3::File> opened;
  Region region;
  uint32_t channels = 0, bits = 0;  // of the decoded image
  l3_error error{};                 // an error of the library, or
  int system_error = 0;             // an errno of the system
};

class Files {
 public:
  // Reads and verifies everything before the pixels, without the interpreter's lock. A source is a tuple with a path as
  // bytes, an object with the buffer protocol, or a tuple with its name for messages and such an object. Raises an
  // exception for the first source that is wrong.
  Files(const nb::list& sources, const nb::list& models, bool as_colours, const nb::object& region,
        const l3_limits& limits, uint32_t threads);
  ~Files();
  Files(const Files&) = delete;
  Files& operator=(const Files&) = delete;

  const std::vector<File>& files() const { return files_; }
  const l3_decode_options& options() const { return options_; }
  // Raises the error of the first file that has one.
  void raise_first_error() const;

  // Decodes to CPU memory: one tensor per file, or one for all files.
  void decode(const std::vector<const Tensor*>& to, const Output& output, uint32_t threads);
  // Decodes on a GPU, ordered in `stream`. Makes the tensors if none are given.
  std::vector<Tensor> decode_on_gpu(const std::vector<const Tensor*>& to, const Output& output, uint32_t device,
                                    void* stream);

 private:
  void open(File& file, const Region& region) const;
  // The memory of each file's output. Python has checked the shapes already, so a mismatch is a RuntimeError.
  std::vector<uint8_t*> places(const std::vector<const Tensor*>& to, const Output& output) const;

  std::vector<File> files_;
  std::vector<nb::object> kept_;  // the owners of the models
  std::vector<const l3_model*> models_;
  l3_decode_options options_;
};

// Describes the output of an image for the loader's writer.
l3_tensor_options wanted_of(const Output& output, uint32_t bits, uint32_t channels);
// The size of an image as a tensor.
uint64_t output_bytes(const File& file, const Output& output);

void bind_files(nb::module_& module);

}  // namespace l3_python
