// Model files: what l3 train writes, and what --model names.
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
// In hexadecimal digits.
std::string name_text(std::span<const uint8_t> name);

// --model, as often as there are models.
void add_models(Subcommand& sub, std::vector<std::string>& paths, const std::string& purpose);

// The models that --model names, opened.
class ModelFiles {
 public:
  // Why one of the files cannot be used.
  std::optional<Failure> open(const std::vector<std::string>& paths);
  // Also: two of them are for the same images, so that nobody knows which one is to be used.
  std::optional<Failure> open_for_encoding(const std::vector<std::string>& paths);

  std::span<const l3_model* const> all() const { return handles_; }

 private:
  std::vector<Model> models_;
  std::vector<const l3_model*> handles_;
};

// The one for images of so many channels and bits; null where there is none.
const l3_model* model_for(std::span<const l3_model* const> models, uint32_t channels, uint32_t bits);

}  // namespace tools
