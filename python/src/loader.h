// Loaders and their batches.
#pragma once

#include <nanobind/nanobind.h>

namespace l3_python {

void bind_loader(nanobind::module_& module);

}  // namespace l3_python
