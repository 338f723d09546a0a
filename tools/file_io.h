// Reads and writes files.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bridge/buffer.h"
#include "failure.h"
#include "unfinished.h"

namespace tools {

// Reads a whole file, or stdin if `path` is "-".
Outcome<bridge::Buffer> read_file(const std::string& path);

// Reads the first `size` bytes of a file, or fewer if it is shorter.
Outcome<bridge::Buffer> read_start(const std::string& path, size_t size);

// Reads `size` bytes from `offset`. Fails if the file is shorter.
Outcome<bridge::Buffer> read_part(const std::string& path, uint64_t offset, uint64_t size);

// A regular file for reads at any offset.
class RandomFile {
 public:
  RandomFile() = default;
  ~RandomFile();
  RandomFile(const RandomFile&) = delete;
  RandomFile& operator=(const RandomFile&) = delete;

  std::optional<Failure> open(const std::string& path);
  uint64_t size() const { return size_; }
  // Fills `to` with the bytes from `offset`.
  std::optional<Failure> read(uint64_t offset, std::span<uint8_t> to) const;

 private:
  std::string path_;
  int descriptor_ = -1;
  uint64_t size_ = 0;
};

enum class Flush : uint8_t {
  none,     // the file survives the end of this process
  to_disk,  // the file survives a power failure
};

// A file that is written piece by piece to a temporary file in the folder of `path`, which finish() renames. So `path`
// is complete, or stays as it was: without finish() the temporary file is removed. The permissions of an existing file
// are kept. If `path` is a symbolic link, its target is replaced; a link to a file that does not exist is replaced
// itself. A file that is not regular, such as a pipe or /dev/null, is written directly, and so is stdout if `path` is
// "-".
class OutputFile {
 public:
  OutputFile(std::string path, Unfinished& unfinished) : path_(std::move(path)), unfinished_(unfinished) {}
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  std::optional<Failure> open();
  std::optional<Failure> write(std::span<const uint8_t> bytes);
  std::optional<Failure> finish(Flush flush);

 private:
  void abandon();

  std::string path_;
  Unfinished& unfinished_;
  std::string target_;     // without symbolic links
  std::string temporary_;  // empty if `path` is written directly
  std::optional<uint32_t> permissions_;
  int descriptor_ = -1;
};

// Writes all of an OutputFile at once.
std::optional<Failure> write_file(const std::string& path, std::span<const uint8_t> bytes, Flush flush,
                                  Unfinished& unfinished);

// Flushes the folder of `path`, so that a new name survives a power failure. Not every file system can do this.
void flush_folder_of(const std::string& path);

// Creates the folder of `path`, and all folders above it, if they do not exist.
std::optional<Failure> make_folder_of(const std::string& path);

// Removes temporary files for these outputs that earlier runs left behind because they were killed.
void remove_abandoned_of(const std::vector<std::string>& outputs);

// Whether both paths lead to the same existing file.
bool is_same_file(const std::string& a, const std::string& b);

}  // namespace tools
