// l3 convert: declarations for its two ways, to data sets and to files.
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
  std::string report;                       // empty: errors.tsv in the data set's folder
  std::string shared_model;                 // "auto", "on" or "off"; empty: auto
  std::string resize;                       // "shorter=256"; empty: not
  std::vector<std::string> interpolations;  // NAME or ROLE=NAME
  uint64_t shard_bytes = 0;                 // 0: the default
  std::string part;                         // "2/8"; empty: all
  std::string spool;                        // for a URL as destination; empty: a folder for temporary files
  bool files = false;
  bool resume = false;
  bool force = false;
  bool orient = false;
  bool no_verify = false;
  bool quiet = false;
  bool json = false;
};

// Writes an L3 file for each image, in the same folders as in the source, or a single file.
int convert_to_files(const ConvertOptions& options, Context& context);
// Writes shards with an index. Sets `is_complete` if the data set is complete in the end, even if files were left out.
int convert_to_set(const ConvertOptions& options, Context& context, bool& is_complete);
// The same, and uploads them.
int convert_to_far(const ConvertOptions& options, Context& context);

// Sets the message that is printed when a signal ends the run from now on. A quiet run has no message.
void explain_interruption(bool quiet, bool force, Context& context);

// What is said if a file failed and the others are not converted.
inline constexpr const char* kStopped =
    "l3: stopped. All work so far is kept. Continue with --resume; add --on-error skip to leave out files that fail";

// Writes a line for each failure: file, offset and reason, separated by tabs.
std::optional<Failure> write_report(const std::string& path, const std::vector<Failure>& failures, Context& context);

}  // namespace tools
