// Converts sources to a data set: reads them ahead, converts several at a time, and writes the results in order.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "conversion.h"
#include "options.h"
#include "progress.h"
#include "set_writer.h"
#include "sources.h"

namespace tools {

struct SetConversion {
  ConversionSettings settings;
  uint32_t threads = 1;
  bool stop_at_failure = true;
};

struct SetOutcome {
  SetTotals totals;  // of this run
  StageTimes times;
  uint64_t failed = 0;     // groups
  uint64_t not_begun = 0;  // groups
  std::optional<Failure> stopped_by;
  std::optional<Failure> broken;  // the target cannot be written
};

// Converts the groups of `sources` that `writer` does not have yet. Sources are read ahead up to a number of bytes.
// Groups are converted in parallel and written in order, so that the data set does not depend on the number of threads.
SetOutcome convert_set(const Sources& sources, const SetConversion& conversion, SetWriter& writer, Progress& progress,
                       Context& context);

}  // namespace tools
