// l3._native: what of the package is C++. python/l3/ has what users see, and checks arguments before they come here.
#include <nanobind/nanobind.h>

#include "data_set.h"
#include "encode.h"
#include "files.h"
#include "loader.h"
#include "tensor.h"

NB_MODULE(_native, module) {
  // What is alive when the interpreter ends is not a leak: a loop that was left, an exception that was kept.
  nanobind::set_leak_warnings(false);
  l3_python::bind_tensor(module);
  l3_python::bind_data_set(module);
  l3_python::bind_files(module);
  l3_python::bind_encode(module);
  l3_python::bind_loader(module);
  module.def("version", &l3_version_text);
  module.def("cpu_target", &l3_cpu_target);
}
