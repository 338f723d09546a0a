// Stores in Python: requests of the library, which threads of Python take and answer.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>

#include "l3/l3_data.h"

namespace l3_python {

namespace nb = nanobind;

class Requests;

// A store that puts requests into `requests`, and closes them in the end.
l3_store store_of(std::shared_ptr<Requests> requests);

// What Python has of it.
struct StoreRequests {
  std::shared_ptr<Requests> shared;
};

void bind_store(nb::module_& module);

}  // namespace l3_python
