// Runs a loader in different set-ups, and measures what a training would wait for.
#pragma once

#include <optional>
#include <string>

#include "bench/stalls.h"
#include "options.h"
#include "slow_store.h"

namespace tools {

struct StallOptions {
  std::string path;
  uint32_t batch = 32, threads = 0, crop_width = 0, crop_height = 0;
  std::string type = "stored";
  double step_ms = 0, seconds = 30;
  Link link;               // that the store is measured behind
  std::string link_words;  // as the caller wrote it
  std::string check = "auto";
  std::string device = "cpu";
  std::string out, scratch;
  bool json = false, quiet = false;
};

// Returns nothing if a run fails, and prints why.
std::optional<bench::StallFigures> measure_stalls(const StallOptions& options, Context& context);

// Reads "100MB/s", "20ms" or "100MB/s,20ms". Returns what is wrong with it, or an empty text.
std::string parse_link(const std::string& text, Link& link);

// Reads "cache:50", "threads:2", "link:10MB/s", "step:30", "auto" or "none". Returns what is wrong, or an empty text.
std::string check_of_check(const std::string& text);

// "12.3 MB/s, 20 ms"
std::string link_text(const Link& link);

}  // namespace tools
