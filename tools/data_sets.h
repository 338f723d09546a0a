// How the subcommands read data sets.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "bridge/buffer.h"
#include "failure.h"
#include "l3/l3_data.hpp"

namespace tools {

// Whether to read a path as a data set: a URL, a folder that has an index.json, shards or an unfinished data set, or a
// file with the signature of a shard.
bool is_data_set(const std::string& path);

// The path in messages: a URL without its user name, password and query, which may be secrets.
std::string path_text(const std::string& path);

// How many threads read a data set if the user has chosen `chosen`; 0: no number. Threads that read from a far store
// mostly wait, so that more of them help.
uint32_t reading_threads(const std::string& path, uint32_t chosen);

Failure failure_of(const l3_data_error& error);

Outcome<l3::DataSet> open_data_set(const std::string& path, const l3_data_options& options = l3_data_options_init());

// The name of a sample in messages: the path of its shard and its name.
std::string display_name(const l3::DataSet& set, const l3::Sample& sample);

// Reads the bytes of a sample and verifies its check.
Outcome<bridge::Buffer> read_sample(const l3::DataSet& set, uint64_t index);

// The number of the sample of this name. `path` is that of the data set.
Outcome<uint64_t> find_sample(const l3::DataSet& set, const std::string& path, const std::string& name);

// The same as read_sample(), but an L3 file that only names its model gets the model of the data set, which is the only
// place that has it.
Outcome<bridge::Buffer> read_with_model(const l3::DataSet& set, uint64_t index);

// The name of the label, or its number if it has no name. Empty if there is no label.
std::string label_text(const l3::DataSet& set, const l3::Sample& sample);

}  // namespace tools
