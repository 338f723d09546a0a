// Data sets, as the subcommands read them.
#pragma once

#include <optional>
#include <string>

#include "bridge/buffer.h"
#include "failure.h"
#include "l3/l3_data.hpp"

namespace tools {

// Whether a path is to be read as a data set: a folder that has an index.json, shards or an unfinished data set in it,
// or a file that begins as a shard does.
bool is_data_set(const std::string& path);

Failure failure_of(const l3_data_error& error);

Outcome<l3::DataSet> open_data_set(const std::string& path);

// What messages call a sample: the shard's path and the name.
std::string display_name(const l3::DataSet& set, const l3::Sample& sample);

// The bytes of a sample, whose check was verified.
Outcome<bridge::Buffer> read_sample(const l3::DataSet& set, uint64_t index);

// The label's name, or its number; empty where there is none.
std::string label_text(const l3::DataSet& set, const l3::Sample& sample);

}  // namespace tools
