// The files of a data set that is being written: what l3 convert and DataSetWriter (data_set_writer.h) share.
//
// Unfinished work is in a hidden folder of the data set. A lock in it keeps two writers apart.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "loader/data_writer.h"

namespace loader {

inline constexpr const char* kWorkFolder = ".l3-convert";
inline constexpr const char* kBusy = "another l3 convert, or an l3.DatasetWriter, is writing to this folder";
inline constexpr uint64_t kDefaultShardBytes = 256000000;

// A file that grows at its end. The functions that return an int return 0 or an errno.
class GrowingFile {
 public:
  GrowingFile() = default;
  ~GrowingFile();
  GrowingFile(const GrowingFile&) = delete;
  GrowingFile& operator=(const GrowingFile&) = delete;

  int open(const std::string& path, bool keep_contents);
  const std::string& path() const { return path_; }
  // Keeps the bytes until put().
  void append(std::span<const uint8_t> bytes) { waiting_.insert(waiting_.end(), bytes.begin(), bytes.end()); }
  // Whether enough bytes wait that put() should write them.
  bool has_much_to_put() const { return waiting_.size() >= size_t{1} << 20; }
  // If it fails, some of the bytes may be written.
  int put();
  // Truncates the file. The next bytes are appended there.
  int cut(uint64_t size);
  // Waits until the file would survive a power failure.
  int flush();
  uint64_t size() const { return size_ + waiting_.size(); }
  uint64_t written() const { return size_; }

 private:
  std::string path_;
  int descriptor_ = -1;
  uint64_t size_ = 0;  // of the file
  std::vector<uint8_t> waiting_;
};

// What a group needs in a shard.
struct GroupSize {
  uint64_t samples = 0, bytes = 0, texts = 0;

  void add(const NewSample& sample, size_t model_bytes);
};

// Whether a group goes into this shard. If not, the next shard begins with it. An empty shard takes every group, so
// that a single group may exceed `shard_bytes`.
bool takes(const ShardBuilder& shard, const GroupSize& group, uint64_t shard_bytes);

// Appends a sample, for which problem() must return null, to a shard and its file.
void append_sample(ShardBuilder& shard, GrowingFile& file, const NewSample& sample, std::span<const uint8_t> bytes,
                   std::span<const uint8_t> model);

// "PREFIX00012.l3s"
std::string shard_file_name(std::string_view prefix, uint64_t number);
// The files in a folder that have such names, sorted.
std::vector<std::string> shards_in(const std::string& folder, const std::string& prefix);
// Finds a file that does not belong to a data set. Returns an empty text if there is none. Hidden files do not count.
std::string file_of_others(const std::string& folder);
// Whether something has this name, such as a file, or a link to nothing.
bool path_exists(const std::string& path);

// A lock file.
class FileLock {
 public:
  FileLock() = default;
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

  // Returns 0 or an errno; EWOULDBLOCK if another process or object has the lock. On file systems without locks,
  // everyone gets it.
  int take(const std::string& path);

 private:
  int descriptor_ = -1;
};

}  // namespace loader
