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

// Removes the temporary files that earlier runs have left beside these outputs, because they were killed.
void remove_abandoned_of(const std::vector<std::string>& outputs);

// Whether both name one existing file.
bool is_same_file(const std::string& a, const std::string& b);

}  // namespace tools
