#include "model_files.h"

#include "bridge/image_bridge.h"
#include "command_tree.h"
#include "file_io.h"

namespace tools {

l3_model_info describe(const l3_model* model) {
  l3_model_info info = l3_model_info_init();
  (void)!l3_describe_model(model, &info, nullptr);
  return info;
}

Option add_models(Subcommand& sub, std::vector<std::string>& paths, const std::string& purpose) {
  return sub.option("--model", paths, purpose).type(kPathType).one_word().local();
}

std::optional<Failure> ModelFiles::open(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    const Outcome<bridge::Buffer> file = read_file(path);
    if (!file) return file.failure();
    l3_model* model = nullptr;
    l3_error error{};
    if (l3_open_model(file->bytes().data(), file->size(), &model, &error) != L3_OK) {
      return Failure{path, error.offset, std::string("not a model: ") + error.reason};
    }
    models_.emplace_back(model);
    handles_.push_back(model);
  }
  return std::nullopt;
}

std::optional<Failure> ModelFiles::open_for_encoding(const std::vector<std::string>& paths) {
  if (auto failure = open(paths)) return failure;
  for (size_t i = 0; i < handles_.size(); ++i) {
    const l3_model_info info = describe(handles_[i]);
    if (bridge::model_for(std::span(handles_).first(i), info.channels, info.bits) == nullptr) continue;
    return Failure{paths[i], std::nullopt,
                   "another --model is for images with " + std::to_string(info.channels) + " channels of " +
                       std::to_string(info.bits) + " bits, too; name only one"};
  }
  return std::nullopt;
}

}  // namespace tools
