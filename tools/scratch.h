// A folder for temporary files.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "command_line.h"

namespace tools {

// The destructor removes the folder with everything in it, and so does a signal that ends the process.
class Scratch {
 public:
  // Makes it in the folder `below`; empty: the folder for temporary files. Prints why that failed.
  Scratch(const std::string& below, Context& context);
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  // Empty if it could not be made.
  const std::string& folder() const { return folder_; }

  // Returns the path of a new folder in it.
  std::string make_folder(const std::string& name) const;
  // Writes a file and flushes it to the disk, so that reading it from there can be measured. Prints why that failed.
  bool write(const std::string& path, std::span<const uint8_t> bytes);

 private:
  Context& context_;
  std::string folder_;
  uint64_t cleanup_ = 0;
};

// Asks the system to drop files from its cache. Not all systems do.
void forget_cached(std::span<const std::string> paths);

}  // namespace tools
