// Turns errors of the libraries into exceptions. python/l3/_errors.py defines the classes and messages.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <string>

#include "l3/l3_data.h"

namespace l3_python {

// `file` is the caller's name for the file, or empty.
[[noreturn]] void raise_error(const l3_error& error, const std::string& file = {});
[[noreturn]] void raise_error(const l3_data_error& error);
// `sample` is L3_DATA_NONE if no single sample failed.
[[noreturn]] void raise_sample_error(const l3_data_error& error, uint64_t sample, const std::string& name);
[[noreturn]] void raise_memory_error();

}  // namespace l3_python
