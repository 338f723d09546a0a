// Whole files in, whole files out.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bridge/buffer.h"
#include "failure.h"
#include "unfinished.h"

namespace tools {

// All of a file, or of stdin where `path` is "-".
Outcome<bridge::Buffer> read_file(const std::string& path);

// At most the first `size` bytes of a file.
Outcome<bridge::Buffer> read_start(const std::string& path, size_t size);

// `size` bytes of a file from `offset` on; a file that is shorter is a failure.
Outcome<bridge::Buffer> read_part(const std::string& path, uint64_t offset, uint64_t size);

// A regular file, to be read here and there.
class RandomFile {
 public:
  RandomFile() = default;
  ~RandomFile();
  RandomFile(const RandomFile&) = delete;
  RandomFile& operator=(const RandomFile&) = delete;

  std::optional<Failure> open(const std::string& path);
  uint64_t size() const { return size_; }
  // Fills `to` from `offset` on.
  std::optional<Failure> read(uint64_t offset, std::span<uint8_t> to) const;

 private:
  std::string path_;
  int descriptor_ = -1;
  uint64_t size_ = 0;
};

enum class Flush : uint8_t {
  none,     // survives the end of this process
  to_disk,  // survives the end of power
};

// Writes all of `bytes` to a temporary file beside `path` and renames it, so that `path` is whole, or is what it was.
// An existing file's permissions are kept. A symbolic link's target is what is replaced; a link that leads nowhere is
// replaced itself. What is no regular file
// (a pipe, /dev/null) is written to directly, and so is stdout where `path` is "-".
std::optional<Failure> write_file(const std::string& path, std::span<const uint8_t> bytes, Flush flush,
                                  Unfinished& unfinished);

// A new name survives the end of power only with the folder that holds it. Not every file system can do this.
void flush_folder_of(const std::string& path);

// Makes the folder that a path is in, and those above, where they are missing.
std::optional<Failure> make_folder_of(const std::string& path);

// Removes the temporary files that earlier runs have left beside these outputs, because they were killed.
void remove_abandoned_of(const std::vector<std::string>& outputs);

// Whether both name one existing file.
bool is_same_file(const std::string& a, const std::string& b);

}  // namespace tools
