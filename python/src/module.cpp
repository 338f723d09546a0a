// l3._native, the C++ part of the package. python/l3/ is the public interface and checks arguments first.
#include <nanobind/nanobind.h>

#include "data_set.h"
#include "encode.h"
#include "files.h"
#include "loader.h"
#include "store.h"
#include "tensor.h"
#include "unpack.h"
#include "writer.h"

NB_MODULE(_native, module) {
  // Objects that are alive when the interpreter ends are no leaks: an unfinished loop, a stored exception.
  nanobind::set_leak_warnings(false);
  l3_python::bind_tensor(module);
  l3_python::bind_data_set(module);
  l3_python::bind_files(module);
  l3_python::bind_encode(module);
  l3_python::bind_loader(module);
  l3_python::bind_store(module);
  l3_python::bind_unpack(module);
  l3_python::bind_writer(module);
  module.def("version", &l3_version_text);
  module.def("cpu_target", &l3_cpu_target);
}
