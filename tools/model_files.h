// Model files: l3 train writes them, and the option --model reads them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "command_line.h"
#include "failure.h"
#include "l3/l3.h"

namespace tools {

struct CloseModel {
  void operator()(l3_model* model) const { l3_close_model(model); }
};
using Model = std::unique_ptr<l3_model, CloseModel>;

l3_model_info describe(const l3_model* model);
// Adds --model, which may be given several times.
Option add_models(Subcommand& sub, std::vector<std::string>& paths, const std::string& purpose);

// The models that --model names, opened.
class ModelFiles {
 public:
  // Returns why one of the files cannot be used.
  std::optional<Failure> open(const std::vector<std::string>& paths);
  // The same. It is also a failure if two models are for the same images: it is not clear then which one to use.
  std::optional<Failure> open_for_encoding(const std::vector<std::string>& paths);

  std::span<const l3_model* const> all() const { return handles_; }

 private:
  std::vector<Model> models_;
  std::vector<const l3_model*> handles_;
};

}  // namespace tools
