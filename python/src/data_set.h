// Open data sets, and models.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <string>

#include "l3/l3_data.h"

namespace l3_python {

namespace nb = nanobind;

struct CloseDataSet {
  void operator()(l3_data_set* set) const { l3_data_close(set); }
};

// Shared by all its users: samples in Python, and loaders.
struct DataSet {
  std::shared_ptr<const l3_data_set> set;
};

struct CloseModel {
  void operator()(l3_model* model) const { l3_close_model(model); }
};

struct Model {
  std::unique_ptr<l3_model, CloseModel> model;
};

const char* colour_name(uint32_t colour);
// The name of a sample, for messages; empty if there is no such sample.
std::string sample_name(const l3_data_set* set, uint64_t sample);

void bind_data_set(nb::module_& module);

}  // namespace l3_python
