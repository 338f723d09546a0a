// What jobs must agree on to share batches, as text.
#pragma once

#include <string>

#include "pipeline.h"

namespace loader {

// One line for each option that changes a batch, "name=value". At most kMaxTerms bytes.
std::string share_terms(const l3_data_set& set, const l3_loader_options& options, const Units& units);
constexpr size_t kMaxTerms = 8000;

// Names the first line that differs, for an error message: "seed: 1, not 2". Empty if none does.
std::string difference_of_terms(std::string_view theirs, std::string_view own);

}  // namespace loader
