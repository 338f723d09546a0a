// Writes the times of batches and requests to a file for chrome://tracing.
#pragma once

#include <vector>

#include "l3/l3_loader.h"

namespace loader {

l3_status write_trace(const std::vector<l3_batch_times>& times, const std::vector<l3_request>& requests,
                      const char* path, l3_data_error* error);

}  // namespace loader
