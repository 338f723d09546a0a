// Errors of the libraries to exceptions; python/l3/_errors.py has the classes and the words.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <string>

#include "l3/l3_data.h"

namespace l3_python {

// `file` is what the caller calls it, or empty where it has no name.
[[noreturn]] void raise_error(const l3_error& error, const std::string& file = {});
[[noreturn]] void raise_error(const l3_data_error& error);
// A sample of a data set, L3_DATA_NONE where it was no single one.
[[noreturn]] void raise_sample_error(const l3_data_error& error, uint64_t sample, const std::string& name);
[[noreturn]] void raise_memory_error();

}  // namespace l3_python
