// Images in files of other formats, such as PNG.
#pragma once

#include <nanobind/nanobind.h>

#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "loader/data_set_writer.h"

namespace l3_python {

// What an L3 file cannot hold of its source, such as the other frames of an animation. Any thread may use it.
class Notices {
 public:
  // Keeps the first notice of each kind. Notices of one kind differ in numbers only.
  void add(const std::string& sample, const std::vector<std::string>& notices);
  // Returns names of samples with notices that are new since the last call.
  std::vector<std::pair<std::string, std::string>> take();

 private:
  std::mutex mutex_;
  std::set<std::string> kinds_;
  std::vector<std::pair<std::string, std::string>> new_;
};

// Turns the bytes of a file into the image that l3 convert makes of it.
std::optional<loader::WriteFailure> unpack(loader::NewItem& item, Notices& notices);

void bind_unpack(nanobind::module_& module);

}  // namespace l3_python
