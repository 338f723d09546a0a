// l3._native.Writer: writes data sets.
#pragma once

#include <nanobind/nanobind.h>

namespace l3_python {

void bind_writer(nanobind::module_& module);

}  // namespace l3_python
