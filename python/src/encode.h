// Encoding, and reading the head of a file.
#pragma once

#include <nanobind/nanobind.h>

namespace l3_python {

void bind_encode(nanobind::module_& module);

}  // namespace l3_python
