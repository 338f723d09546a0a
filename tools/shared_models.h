// Models that the small images of a data set share.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "conversion.h"
#include "model_files.h"
#include "sources.h"

namespace tools {

enum class SharedModels : uint8_t { where_they_pay, always, never };

// Looks at a sample of the images, spread evenly over all, and fits a model to those of each colour and number of bits.
// `where_they_pay`: only to images that are small, and a model stays only where it saves more than one percent of what
// images take that it has not seen, and more than it takes itself. `always`: a model for each, but for those that
// `settings` has one for. What it gives depends on sources and settings alone. What runs out of memory is a failure,
// and never counts as a model that does not pay.
Outcome<std::vector<std::vector<uint8_t>>> train_models(const Sources& sources, const ConversionSettings& settings,
                                                        SharedModels which, l3_parallel parallel, Context& context);

// Models, opened.
class OpenModels {
 public:
  // Why one of them cannot be opened.
  std::optional<Failure> open(std::span<const std::vector<uint8_t>> models);
  std::span<const l3_model* const> all() const { return handles_; }

 private:
  std::vector<Model> models_;
  std::vector<const l3_model*> handles_;
};

}  // namespace tools
