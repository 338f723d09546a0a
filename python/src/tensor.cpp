#include "tensor.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <utility>

#include "raise.h"

namespace l3_python {
namespace {

using namespace nb::literals;

struct TypeRow {
  uint32_t type;
  const char* name;
  uint32_t bytes;
  uint8_t code;         // of DLPack
  const char* typestr;  // of NumPy; null where it has none
  const char* formats;  // of the buffer protocol
};

constexpr std::array<TypeRow, 8> kTypes{{
    {L3_VALUE_U8, "uint8", 1, kDLUInt, "|u1", "B"},
    {L3_VALUE_U16, "uint16", 2, kDLUInt, "<u2", "H"},
    {L3_VALUE_F16, "float16", 2, kDLFloat, "<f2", "e"},
    {L3_VALUE_BF16, "bfloat16", 2, kDLBfloat, nullptr, ""},
    {L3_VALUE_F32, "float32", 4, kDLFloat, "<f4", "f"},
    {L3_VALUE_I16, "int16", 2, kDLInt, "<i2", "h"},
    {L3_VALUE_I32, "int32", 4, kDLInt, "<i4", "i"},
    {kInt64, "int64", 8, kDLInt, "<i8", "lq"},
}};

const TypeRow& row_of(uint32_t type) {
  for (const TypeRow& row : kTypes) {
    if (row.type == type) return row;
  }
  return kTypes[0];
}

class HostMemory : public Memory {
 public:
  explicit HostMemory(void* data) : data_(data) {}
  ~HostMemory() override { std::free(data_); }

 private:
  void* data_;
};

// Memory of an object with the buffer protocol.
class BufferMemory : public Memory {
 public:
  ~BufferMemory() override {
    if (view.obj == nullptr || Py_IsInitialized() == 0) return;
    const PyGILState_STATE state = PyGILState_Ensure();
    PyBuffer_Release(&view);
    PyGILState_Release(state);
  }

  Py_buffer view{};
};

// Memory of another library, by DLPack. Exactly one of the two pointers is set.
class ForeignMemory : public Memory {
 public:
  ~ForeignMemory() override {
    // Deleters of other libraries may take the interpreter's lock, which is not allowed once it has ended.
    if (Py_IsInitialized() == 0) return;
    if (legacy != nullptr && legacy->deleter != nullptr) legacy->deleter(legacy);
    if (versioned != nullptr && versioned->deleter != nullptr) versioned->deleter(versioned);
  }

  DLManagedTensor* legacy = nullptr;
  DLManagedTensorVersioned* versioned = nullptr;
};

bool is_without_gaps(const std::vector<int64_t>& shape, const int64_t* strides) {
  if (strides == nullptr) return true;
  int64_t step = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    if (shape[i] != 1 && strides[i] != step) return false;
    step *= shape[i];
  }
  return true;
}

// ------------------------------------------------------------------------------------------------ to other libraries

// The target of our capsules: the structure that others read, and the memory that keeps it valid.
template <class Managed>
struct Exported {
  Managed managed{};
  std::shared_ptr<Memory> memory;
  std::vector<int64_t> numbers;  // shape, then strides
};

template <class Managed>
void delete_exported(Managed* managed) {
  delete static_cast<Exported<Managed>*>(managed->manager_ctx);
}

template <class Managed>
constexpr const char* kCapsuleName = "dltensor";
template <>
constexpr const char* kCapsuleName<DLManagedTensorVersioned> = "dltensor_versioned";

template <class Managed>
void delete_capsule(PyObject* capsule) {
  // A consumer has renamed the capsule if it will call the deleter itself.
  if (PyCapsule_IsValid(capsule, kCapsuleName<Managed>) == 0) return;
  auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, kCapsuleName<Managed>));
  if (managed != nullptr) managed->deleter(managed);
}

template <class Managed>
nb::object make_capsule(const Tensor& tensor, [[maybe_unused]] uint64_t flags) {
  auto exported = std::make_unique<Exported<Managed>>();
  exported->memory = tensor.memory;
  const size_t dimensions = tensor.shape.size();
  exported->numbers = tensor.shape;
  exported->numbers.resize(2 * dimensions);
  int64_t step = 1;
  for (size_t i = dimensions; i-- > 0;) {
    exported->numbers[dimensions + i] = step;
    step *= tensor.shape[i];
  }
  const TypeRow& row = row_of(tensor.type);
  DLTensor& shown = exported->managed.dl_tensor;
  shown.data = tensor.data;
  shown.device = tensor.device;
  shown.ndim = static_cast<int32_t>(dimensions);
  shown.dtype = {row.code, static_cast<uint8_t>(8 * row.bytes), 1};
  shown.shape = exported->numbers.data();
  shown.strides = exported->numbers.data() + dimensions;
  exported->managed.manager_ctx = exported.get();
  exported->managed.deleter = delete_exported<Managed>;
  if constexpr (std::is_same_v<Managed, DLManagedTensorVersioned>) {
    exported->managed.version = {1, 0};
    exported->managed.flags = flags;
  }
  PyObject* capsule = PyCapsule_New(&exported->managed, kCapsuleName<Managed>, delete_capsule<Managed>);
  if (capsule == nullptr) throw nb::python_error();
  (void)exported.release();
  return nb::steal<nb::object>(capsule);
}

// Converts a Python int, or raises a TypeError that names the argument.
int64_t number_of(nb::handle object, const char* name) {
  const long long number = PyLong_Check(object.ptr()) ? PyLong_AsLongLong(object.ptr()) : -1;
  if (number == -1 && PyErr_Occurred() != nullptr) throw nb::python_error();
  if (!PyLong_Check(object.ptr())) throw nb::type_error((std::string(name) + " must be a whole number").c_str());
  return number;
}

bool is_versioned(nb::handle max_version) {
  if (max_version.is_none()) return false;
  if (!PyTuple_Check(max_version.ptr()) || PyTuple_Size(max_version.ptr()) != 2) {
    throw nb::type_error("max_version must be a tuple (major, minor) or None");
  }
  return number_of(PyTuple_GetItem(max_version.ptr(), 0), "max_version") >= 1;
}

void note_stream(const Tensor& tensor, nb::handle stream) {
  if (!tensor.is_on_gpu()) {
    if (!stream.is_none()) throw nb::value_error("stream must be None for a tensor on a CPU");
    return;
  }
  // All work that writes a tensor has finished before it is returned, so the consumer's stream need not wait.
  const int64_t number = stream.is_none() ? 1 : number_of(stream, "stream");
  if (number == 0) {
    throw nb::value_error("stream 0 is ambiguous: pass 1 for the legacy default stream, 2 for the per-thread one");
  }
  if (number < -1) throw nb::value_error("stream must be None, -1, 1, 2 or the address of a stream");
  tensor.memory->used_by(number == -1 ? tensor.usual_stream : reinterpret_cast<void*>(number));
}

nb::object to_dlpack(const Tensor& tensor, nb::handle stream, nb::handle max_version, nb::handle dl_device,
                     nb::handle copy) {
  if (!dl_device.is_none()) {
    if (!PyTuple_Check(dl_device.ptr()) || PyTuple_Size(dl_device.ptr()) != 2) {
      throw nb::type_error("dl_device must be a tuple (type, number) or None");
    }
    const int64_t type = number_of(PyTuple_GetItem(dl_device.ptr(), 0), "dl_device");
    const int64_t number = number_of(PyTuple_GetItem(dl_device.ptr(), 1), "dl_device");
    if (type != tensor.device.device_type || number != tensor.device.device_id) {
      throw nb::buffer_error("a tensor cannot be moved to another device");
    }
  }
  const bool versioned = is_versioned(max_version);
  const bool copies = !copy.is_none() && nb::cast<bool>(copy);
  if (copies && tensor.is_on_gpu()) throw nb::buffer_error("a tensor on a GPU is not copied: pass copy=None");
  note_stream(tensor, stream);
  Tensor shown = tensor;
  if (copies) {
    shown = allocate_tensor(tensor.shape, tensor.type);
    if (tensor.bytes() != 0) std::memcpy(shown.data, tensor.data, tensor.bytes());
  }
  return versioned ? make_capsule<DLManagedTensorVersioned>(shown, copies ? kDLIsCopied : 0)
                   : make_capsule<DLManagedTensor>(shown, 0);
}

nb::tuple shape_of(const Tensor& tensor) { return nb::tuple(nb::cast(tensor.shape)); }

std::string device_name(const Tensor& tensor) {
  return tensor.is_on_gpu() ? "cuda:" + std::to_string(tensor.device.device_id) : "cpu";
}

nb::dict array_interface(const Tensor& tensor, bool of_gpu) {
  const TypeRow& row = row_of(tensor.type);
  if (tensor.is_on_gpu() != of_gpu || row.typestr == nullptr) {
    const std::string reason =
        std::string("a tensor of ") + row.name + " on " + device_name(tensor) + " has no such interface: use DLPack";
    throw nb::attribute_error(reason.c_str());
  }
  if (of_gpu) tensor.memory->used_by(tensor.usual_stream);
  std::string typestr = row.typestr;
  if constexpr (std::endian::native == std::endian::big) {
    if (typestr[0] == '<') typestr[0] = '>';
  }
  nb::dict shown;
  shown["version"] = 3;
  shown["shape"] = shape_of(tensor);
  shown["typestr"] = typestr;
  shown["data"] = nb::make_tuple(reinterpret_cast<uintptr_t>(tensor.data), false);
  shown["strides"] = nb::none();
  if (of_gpu) shown["stream"] = nb::none();
  return shown;
}

std::string describe(const Tensor& tensor) {
  std::string text = "l3.Tensor(shape=(";
  for (size_t i = 0; i < tensor.shape.size(); ++i) text += (i != 0 ? ", " : "") + std::to_string(tensor.shape[i]);
  return text + (tensor.shape.size() == 1 ? ",)" : ")") + ", dtype='" + type_name(tensor.type) + "', device='" +
         device_name(tensor) + "')";
}

// ---------------------------------------------------------------------------------------------- from other libraries

template <class Managed>
Managed* take_capsule(nb::handle capsule, const char* used_name) {
  auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule.ptr(), kCapsuleName<Managed>));
  if (managed == nullptr || PyCapsule_SetName(capsule.ptr(), used_name) != 0) throw nb::python_error();
  return managed;
}

// Libraries older than DLPack 1.0 do not know max_version.
nb::object call_dlpack(nb::handle object, const nb::object& stream) {
  try {
    return object.attr("__dlpack__")("stream"_a = stream, "max_version"_a = nb::make_tuple(1, 0));
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_TypeError)) throw;
  }
  return object.attr("__dlpack__")("stream"_a = stream);
}

}  // namespace

std::shared_ptr<Memory> allocate_host(uint64_t size, void** data) {
  constexpr uint64_t kAlignment = 64;
  if (size > std::numeric_limits<uint64_t>::max() / 2) return nullptr;
  const uint64_t rounded = (size + kAlignment - 1) / kAlignment * kAlignment;
  *data = std::aligned_alloc(kAlignment, rounded != 0 ? rounded : kAlignment);
  return *data != nullptr ? std::make_shared<HostMemory>(*data) : nullptr;
}

uint32_t type_bytes(uint32_t type) { return row_of(type).bytes; }
const char* type_name(uint32_t type) { return row_of(type).name; }

uint32_t type_named(std::string_view name) {
  for (const TypeRow& row : kTypes) {
    if (name == row.name) return row.type;
  }
  throw nb::value_error(("there is no type '" + std::string(name) + "'").c_str());
}

uint64_t Tensor::count() const {
  uint64_t product = 1;
  for (const int64_t size : shape) product *= static_cast<uint64_t>(size);
  return product;
}

Tensor allocate_tensor(const std::vector<int64_t>& shape, uint32_t type) {
  Tensor tensor;
  tensor.shape = shape;
  tensor.type = type;
  tensor.memory = allocate_host(tensor.bytes(), &tensor.data);
  if (tensor.memory == nullptr) raise_memory_error();
  return tensor;
}

Tensor tensor_of_buffer(nb::handle object, bool writable) {
  auto memory = std::make_shared<BufferMemory>();
  const int flags = PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (writable ? PyBUF_WRITABLE : 0);
  if (PyObject_GetBuffer(object.ptr(), &memory->view, flags) != 0) throw nb::python_error();
  const Py_buffer& view = memory->view;
  std::string_view format = view.format != nullptr ? view.format : "B";
  constexpr bool kLittle = std::endian::native == std::endian::little;
  if (!format.empty() && (format[0] == '@' || format[0] == '=' || format[0] == (kLittle ? '<' : '>'))) {
    format.remove_prefix(1);
  }
  Tensor tensor;
  for (const TypeRow& row : kTypes) {
    if (format.size() == 1 && std::string_view(row.formats).find(format) != std::string_view::npos &&
        static_cast<Py_ssize_t>(row.bytes) == view.itemsize) {
      tensor.type = row.type;
      tensor.data = view.buf;
      tensor.shape.assign(view.shape, view.shape + view.ndim);
      tensor.memory = std::move(memory);
      return tensor;
    }
  }
  throw nb::type_error("an array of a type that l3 does not support");
}

Tensor tensor_of_dlpack(nb::handle object, void* stream) {
  const nb::object device = object.attr("__dlpack_device__")();
  const int64_t device_type = nb::cast<int64_t>(nb::int_(device[0]));
  if (device_type != kDLCPU && device_type != kDLCUDA && device_type != kDLCUDAHost && device_type != kDLCUDAManaged) {
    throw nb::buffer_error("a tensor on a device that is neither a CPU nor a CUDA GPU");
  }
  const bool on_gpu = device_type == kDLCUDA || device_type == kDLCUDAManaged;
  // DLPack has its own number for the default stream.
  const auto address = reinterpret_cast<uintptr_t>(stream);
  const nb::object number = on_gpu ? nb::cast(address != 0 ? address : 1) : nb::none();
  const nb::object capsule = call_dlpack(object, number);

  auto memory = std::make_shared<ForeignMemory>();
  const DLTensor* shown = nullptr;
  uint64_t flags = 0;
  if (PyCapsule_IsValid(capsule.ptr(), kCapsuleName<DLManagedTensorVersioned>) != 0) {
    memory->versioned = take_capsule<DLManagedTensorVersioned>(capsule, "used_dltensor_versioned");
    // In another major version, only the position of the deleter is known.
    if (memory->versioned->version.major != 1) throw nb::buffer_error("a tensor of an unknown version of DLPack");
    flags = memory->versioned->flags;
    shown = &memory->versioned->dl_tensor;
  } else {
    memory->legacy = take_capsule<DLManagedTensor>(capsule, "used_dltensor");
    shown = &memory->legacy->dl_tensor;
  }
  if ((flags & kDLReadOnly) != 0) throw nb::buffer_error("a read-only tensor");
  Tensor tensor;
  tensor.shape.assign(shown->shape, shown->shape + shown->ndim);
  if (!is_without_gaps(tensor.shape, shown->strides)) {
    throw nb::buffer_error("a tensor that is not C-contiguous");
  }
  for (const TypeRow& row : kTypes) {
    if (shown->dtype.code != row.code || shown->dtype.bits != 8 * row.bytes || shown->dtype.lanes != 1) continue;
    tensor.type = row.type;
    tensor.data = static_cast<uint8_t*>(shown->data) + shown->byte_offset;
    tensor.device = {on_gpu ? kDLCUDA : kDLCPU, on_gpu ? shown->device.device_id : 0};
    tensor.usual_stream = stream;
    tensor.memory = std::move(memory);
    return tensor;
  }
  throw nb::buffer_error("a tensor of a type that l3 does not support");
}

void bind_tensor(nb::module_& module) {
  nb::class_<Tensor>(
      module, "Tensor", nb::is_final(),
      "An array in the memory of a CPU or a GPU, for libraries with DLPack: torch.from_dlpack(tensor).\n\n"
      "It gives no access to single values. Its memory stays valid as long as the tensor or any array made of "
      "it\nexists. All work that writes it has finished, so any stream may read it.")
      .def_prop_ro("shape", &shape_of, "The dimensions, a tuple of ints.")
      .def_prop_ro(
          "ndim", [](const Tensor& tensor) { return tensor.shape.size(); }, "The number of dimensions.")
      .def_prop_ro(
          "dtype", [](const Tensor& tensor) { return type_name(tensor.type); },
          "'uint8', 'uint16', 'int16', 'int32', 'int64', 'float16', 'bfloat16' or 'float32'.")
      .def_prop_ro("device", &device_name, "'cpu', or 'cuda:' and a number.")
      .def_prop_ro("nbytes", &Tensor::bytes, "The size of the memory in bytes.")
      .def_prop_ro("__array_interface__", [](const Tensor& tensor) { return array_interface(tensor, false); })
      .def_prop_ro("__cuda_array_interface__", [](const Tensor& tensor) { return array_interface(tensor, true); })
      .def("__dlpack__", &to_dlpack, nb::kw_only(), "stream"_a = nb::none(), "max_version"_a = nb::none(),
           "dl_device"_a = nb::none(), "copy"_a = nb::none(),
           "Returns a DLPack capsule, of version 1.0 if max_version allows it. On a GPU `stream` is the stream that "
           "will "
           "use the\ntensor: None or 1 is the legacy default stream, 2 the per-thread default stream, -1 unspecified.")
      .def("__dlpack_device__",
           [](const Tensor& tensor) { return nb::make_tuple(tensor.device.device_type, tensor.device.device_id); })
      .def("__repr__", &describe);
  module.def("allocate_tensor", [](const std::vector<int64_t>& shape, const std::string& dtype) {
    return allocate_tensor(shape, type_named(dtype));
  });
  module.def("tensor_of_buffer", &tensor_of_buffer);
  module.def("tensor_of_dlpack", [](nb::handle object, uintptr_t stream) {
    return tensor_of_dlpack(object, reinterpret_cast<void*>(stream));
  });
}

}  // namespace l3_python
