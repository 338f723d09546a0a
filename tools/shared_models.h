// Models that small images of a data set share.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/parallel.h"
#include "conversion.h"
#include "model_files.h"
#include "sources.h"

namespace tools {

enum class SharedModels : uint8_t { where_they_pay, always, never };

// Reads a sample of the images, spread evenly over all, and fits a model to the images of each colour and number of
// bits. With `where_they_pay`, this is done only for small images. A model is kept only if it saves more than one
// percent of the bytes of images that it was not fitted to, and more bytes than it has itself. With `always`, each kind
// of image gets a model, except for those that `settings` has a model for. The result depends only on the sources and
// the settings. Running out of memory is a failure, and does not count as a model that does not pay.
Outcome<std::vector<std::vector<uint8_t>>> train_models(const Sources& sources, const ConversionSettings& settings,
                                                        SharedModels which, base::Parallel& parallel, Context& context);

// Opened models.
class OpenModels {
 public:
  // Returns why one of them cannot be opened.
  std::optional<Failure> open(std::span<const std::vector<uint8_t>> models);
  std::span<const l3_model* const> all() const { return handles_; }

 private:
  std::vector<Model> models_;
  std::vector<const l3_model*> handles_;
};

}  // namespace tools
