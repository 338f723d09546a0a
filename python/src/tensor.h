// An array in CPU or GPU memory that other libraries can use by DLPack.
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

// The type of labels.
inline constexpr uint32_t kInt64 = L3_VALUE_I64;

uint32_t type_bytes(uint32_t type);
const char* type_name(uint32_t type);
// Returns the type of that name, or raises ValueError.
uint32_t type_named(std::string_view name);

struct Tensor {
  std::shared_ptr<Memory> memory;
  void* data = nullptr;
  uint32_t type = L3_VALUE_U8;
  std::vector<int64_t> shape;
  DLDevice device{kDLCPU, 0};
  // The stream that uses the memory if the user names none.
  void* usual_stream = nullptr;

  uint64_t count() const;
  uint64_t bytes() const { return count() * type_bytes(type); }
  bool is_on_gpu() const { return device.device_type != kDLCPU; }
};

// Allocates CPU memory. Raises MemoryError if there is not enough.
Tensor allocate_tensor(const std::vector<int64_t>& shape, uint32_t type);
// The array of an object with Python's buffer protocol. Raises if the object has no such protocol, is not contiguous,
// or has an unsupported type.
Tensor tensor_of_buffer(nb::handle object, bool writable);
// The array of an object with __dlpack__. On a GPU, work in `stream` is ordered after the object's own stream.
Tensor tensor_of_dlpack(nb::handle object, void* stream);

void bind_tensor(nb::module_& module);

}  // namespace l3_python
