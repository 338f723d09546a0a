#include "data_sets.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <utility>

#include "conversion.h"
#include "file_io.h"
#include "image_tree.h"
#include "loader/data_set_index.h"
#include "loader/store.h"

namespace tools {
namespace {

namespace fs = std::filesystem;

// True for an incomplete data set, too. Opening it reports that.
bool has_parts_of_set(const std::string& folder) {
  std::error_code error;
  if (fs::exists(join(folder, loader::kIndexFile), error)) return true;
  for (auto entry = fs::directory_iterator(folder, error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name.ends_with(".l3s") || name.starts_with(".l3-convert")) return true;
  }
  return false;
}

}  // namespace

bool is_data_set(const std::string& path) {
  if (loader::is_url(path)) return true;
  std::error_code error;
  if (is_folder(path)) return has_parts_of_set(path);
  if (!fs::is_regular_file(path, error)) return false;
  constexpr std::string_view kSignature = "\x8BL3S";
  const Outcome<bridge::Buffer> start = read_start(path, kSignature.size());
  return start && start->size() == kSignature.size() &&
         std::equal(kSignature.begin(), kSignature.end(), start->bytes().begin(),
                    [](char letter, uint8_t byte) { return static_cast<uint8_t>(letter) == byte; });
}

std::string path_text(const std::string& path) {
  return loader::is_url(path) ? loader::url_without_secrets(path) : path;
}

uint32_t reading_threads(const std::string& path, uint32_t chosen) {
  constexpr uint32_t kFarThreads = 32;
  return chosen == 0 && loader::is_url(path) ? kFarThreads : chosen;
}

Failure failure_of(const l3_data_error& error) {
  Failure failure{error.file, std::nullopt, error.reason};
  if (error.offset != L3_DATA_NONE) failure.offset = error.offset;
  return failure;
}

Outcome<l3::DataSet> open_data_set(const std::string& path, const l3_data_options& options) {
  l3::DataResult<l3::DataSet> set = l3::DataSet::open(path, options);
  if (set) return std::move(*set);
  if (loader::is_url(path)) return failure_of(set.error());
  const Outcome<bridge::Buffer> start = is_folder(path) ? Outcome(bridge::Buffer()) : read_start(path, 4);
  if (start && is_l3(start->bytes())) return Failure{path, std::nullopt, "this is an L3 file, not a data set"};
  return failure_of(set.error());
}

std::string display_name(const l3::DataSet& set, const l3::Sample& sample) {
  return std::string(l3_data_shard_name(set.get(), sample.shard)) + ": " + std::string(sample.name_text());
}

Outcome<bridge::Buffer> read_sample(const l3::DataSet& set, uint64_t index) {
  const l3::Sample sample = set.sample(index);
  bridge::Buffer bytes;
  l3_data_error error{};
  // This cannot allocate more than the size of the file: the index was checked against it.
  uint8_t* const to = bytes.reset(static_cast<size_t>(sample.size));
  if (l3_data_read(set.get(), index, to, bytes.size(), &error) == L3_OK) return bytes;
  Failure failure = failure_of(error);
  failure.file = display_name(set, sample);
  return failure;
}

Outcome<uint64_t> find_sample(const l3::DataSet& set, const std::string& path, const std::string& name) {
  const std::optional<uint64_t> index = set.find(name);
  if (index) return *index;
  return Failure{path_text(path), std::nullopt, "no sample has the name " + name + " (l3 ls prints the names)"};
}

Outcome<bridge::Buffer> read_with_model(const l3::DataSet& set, uint64_t index) {
  Outcome<bridge::Buffer> file = read_sample(set, index);
  const l3::Sample sample = set.sample(index);
  if (!file || !sample.is_image() || sample.model_bytes == nullptr) return file;
  const std::string name = display_name(set, sample);
  if (sample.model == nullptr) return Failure{name, std::nullopt, "the model of this image is damaged"};
  l3_error error{};
  size_t size = 0;
  bridge::Buffer standalone;
  l3_status status = l3_embed_model(file->bytes().data(), file->size(), sample.model, nullptr, 0, &size, &error);
  if (status == L3_ERROR_BUFFER) {
    uint8_t* const to = standalone.reset(size);
    status = l3_embed_model(file->bytes().data(), file->size(), sample.model, to, size, &size, &error);
  }
  if (status != L3_OK) return Failure{name, error.offset, error.reason};
  return standalone;
}

std::string label_text(const l3::DataSet& set, const l3::Sample& sample) {
  if (sample.label == L3_NO_LABEL) return "";
  const char* name = l3_data_class(set.get(), sample.label);
  return name != nullptr ? name : std::to_string(sample.label);
}

}  // namespace tools
