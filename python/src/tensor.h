// An array in memory of a CPU or a GPU, which other libraries take over by DLPack.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "dlpack.h"
#include "l3/l3_loader.h"
#include "memory.h"

namespace l3_python {

namespace nb = nanobind;

// Types are those of l3_value_type; in its place for what is stored, whole numbers of 64 bits (labels).
inline constexpr uint32_t kInt64 = L3_VALUE_STORED;

uint32_t type_bytes(uint32_t type);
const char* type_name(uint32_t type);
// The type of that name; a ValueError where there is none.
uint32_t type_named(std::string_view name);

struct Tensor {
  std::shared_ptr<Memory> memory;
  void* data = nullptr;
  uint32_t type = L3_VALUE_U8;
  std::vector<int64_t> shape;
  DLDevice device{kDLCPU, 0};
  // The stream that is taken to use the memory where its user does not say.
  void* usual_stream = nullptr;

  uint64_t count() const;
  uint64_t bytes() const { return count() * type_bytes(type); }
  bool is_on_gpu() const { return device.device_type != kDLCPU; }
};

// New memory of a CPU. MemoryError where there is none.
Tensor allocate_tensor(const std::vector<int64_t>& shape, uint32_t type);
// The array of an object with Python's buffer protocol. A TypeError where it has none, or gaps, or no type of ours.
Tensor tensor_of_buffer(nb::handle object, bool writable);
// The array of an object that has __dlpack__, ordered behind its own stream in `stream` if it is on a GPU.
Tensor tensor_of_dlpack(nb::handle object, void* stream);

void bind_tensor(nb::module_& module);

}  // namespace l3_python
