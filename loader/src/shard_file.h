// Reads the file of a shard. Any number of threads may do so at once.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "shard_index.h"

namespace loader {

// A fault of the file, or an errno of the system.
struct FileFault {
  Fault fault;
  int system_error = 0;

  explicit operator bool() const { return fault || system_error != 0; }
};

// Counts the files that stay open for all shards of a data set.
class OpenFiles {
 public:
  explicit OpenFiles(uint32_t maximum) : most_(maximum) {}
  // Returns whether one more file may stay open, and if so counts it.
  bool acquire();
  void release() { --open_; }

 private:
  uint32_t most_;
  std::atomic<uint32_t> open_{0};
};

class ShardFile {
 public:
  // An open file. The destructor closes it unless it may stay open. The ShardFile must outlive it.
  class Use {
   public:
    Use() = default;
    explicit Use(const ShardFile& file);
    ~Use();
    Use(Use&& other) noexcept
        : descriptor_(std::exchange(other.descriptor_, -1)),
          error_(other.error_),
          owned_(std::exchange(other.owned_, false)) {}
    Use& operator=(Use&& other) noexcept {
      std::swap(descriptor_, other.descriptor_);
      std::swap(error_, other.error_);
      std::swap(owned_, other.owned_);
      return *this;
    }

    int descriptor() const { return descriptor_; }  // below 0: opening failed, see error()
    int error() const { return error_; }

   private:
    int descriptor_ = -1;
    int error_ = 0;
    bool owned_ = false;
  };

  ShardFile(std::string path, OpenFiles& open_files) : path_(std::move(path)), open_files_(open_files) {}
  ~ShardFile();
  ShardFile(const ShardFile&) = delete;
  ShardFile& operator=(const ShardFile&) = delete;

  const std::string& path() const { return path_; }
  uint64_t size() const { return size_; }

  // Determines the size. Must be called first.
  FileFault measure();
  // Reads `size` bytes from `offset`.
  FileFault read(uint64_t offset, void* to, uint64_t size) const;

 private:
  int open_file(int& error) const;

  std::string path_;
  OpenFiles& open_files_;
  uint64_t size_ = 0;
  mutable std::atomic<int> kept_{-1};
};

// Reads a whole file, which must not be larger than `most`.
FileFault read_whole(const std::string& path, uint64_t maximum, std::vector<uint8_t>& bytes);

}  // namespace loader
