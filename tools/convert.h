// l3 convert: what its two ways share.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "conversion.h"
#include "options.h"
#include "sources.h"

namespace tools {

struct ConvertOptions {
  SourceOptions source;
  std::string destination;
  MethodOptions method;
  std::vector<std::string> models;
  l3_limits limits{};
  uint32_t jobs = 0;
  std::string on_error = "fail";
  std::string report;        // empty: errors.tsv in the data set's folder
  std::string shared_model;  // "auto", "on" or "off"; empty: auto
  uint64_t shard_bytes = 0;  // 0: the default
  std::string part;          // "2/8"; empty: all
  bool files = false;
  bool resume = false;
  bool force = false;
  bool no_verify = false;
  bool quiet = false;
  bool json = false;
};

// A file for each image, in a folder that mirrors the source's, or a single one.
int convert_to_files(const ConvertOptions& options, Context& context);
// Shards with an index.
int convert_to_set(const ConvertOptions& options, Context& context);

// What a signal says when it ends the run from here on; nothing where the run is quiet.
void explain_interruption(const ConvertOptions& options, Context& context);

// Writes a line for each failure: file, offset, reason, with tabs between.
std::optional<Failure> write_report(const std::string& path, const std::vector<Failure>& failures, Context& context);

}  // namespace tools
