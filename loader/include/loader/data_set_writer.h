// Writes a data set from images in memory: threads encode them, and the samples keep the order in which they came.
//
// The shards grow in a hidden folder of the data set (kWorkFolder). finish() moves them into place and writes
// index.json last. Until then a data set that is being replaced stays as it was. Without finish() nothing is left.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "l3/l3_data.h"
#include "loader/data_writer.h"
#include "loader/shard_files.h"

namespace loader {

struct WriterOptions {
  std::string folder;
  bool replace = false;                           // an earlier data set
  std::string replace_option = "overwrite=True";  // what messages tell the caller to use for that
  uint64_t shard_bytes = kDefaultShardBytes;
  uint32_t threads = 0;                        // 0: one for each processor
  uint64_t bytes_ahead = uint64_t{192} << 20;  // of items that are not written; one item may exceed this
  bool verify = true;                          // decode each result and compare it
  l3_encode_options encode = l3_encode_options_init();
  std::vector<const l3_model*> models;  // each is used, by name, for images that fit it; they must outlive the writer
};

struct WriteFailure {
  l3_status status = L3_OK;
  int system_error = 0;
  std::string file, reason;
  uint64_t sample = L3_DATA_NONE;  // the number and the name of the sample that failed
  std::string name = {};
  uint64_t offset = L3_DATA_NONE;  // in the bytes of the sample
};

// What is to be written: an image to encode, or the bytes of a file.
struct NewItem {
  NewSample sample;            // name, role, label, metadata, kind and opens_group; the rest follows from the bytes
  std::vector<uint8_t> bytes;  // the file, or the pixels of `image`
  std::optional<l3_image> image;
  std::vector<std::vector<uint8_t>> sections;  // what `image` points to
  // For the bytes of a file of another format. A thread of the writer calls it: it sets `bytes` to the pixels, `image`,
  // and `kept` to what keeps everything else that `image` points to.
  std::function<std::optional<WriteFailure>(NewItem&)> unpack;
  std::shared_ptr<const void> kept;
};

// The same for callers. The number and the name of the sample are left out.
l3_data_error error_of(const WriteFailure& failure);

// The size of a colour space section, which its first byte implies (section 4 of the spec).
size_t colour_space_size(uint8_t parts);

// One thread at a time may call a writer. After a failure every call returns it, and abandon() is all that is left.
class DataSetWriter {
 public:
  explicit DataSetWriter(WriterOptions options);
  ~DataSetWriter();  // abandons what is not finished
  DataSetWriter(const DataSetWriter&) = delete;
  DataSetWriter& operator=(const DataSetWriter&) = delete;

  // Locks the folder and starts the threads. Refuses an existing data set unless it is to be replaced.
  std::optional<WriteFailure> begin();
  // Takes the item if there is room for it within this time. Its sample must have no problem().
  enum class Added : uint8_t { taken, full, failed };
  Added add(NewItem& item, std::chrono::milliseconds patience);
  // Returns false if items are left after this time. A failure ends the wait.
  bool wait(std::chrono::milliseconds patience);
  std::optional<WriteFailure> failure();
  // Makes the data set complete. wait() must have returned true.
  std::optional<WriteFailure> finish(const std::vector<std::string>& classes);
  // Removes everything that was not finished.
  void abandon();

  // The number of items that were taken. Any thread may ask.
  uint64_t samples();
  // After finish().
  uint64_t shards() const { return index_.shards.size(); }
  uint64_t bytes() const;

 private:
  struct Job {
    NewItem item;
    uint64_t number = 0, cost = 0;
    bool is_done = false;
  };
  struct Part {
    NewSample sample;
    std::vector<uint8_t> bytes;
  };

  void work();
  std::optional<WriteFailure> convert(NewItem& item) const;
  std::optional<WriteFailure> encode(NewItem& item) const;
  void write_done(std::unique_lock<std::mutex>& lock);
  std::optional<WriteFailure> write(NewItem item);
  std::optional<WriteFailure> write_group();
  std::optional<WriteFailure> open_shard();
  std::optional<WriteFailure> end_shard();
  std::optional<WriteFailure> inspect_existing() const;
  std::optional<WriteFailure> move_into_place(const std::vector<std::string>& classes);
  const l3_model* model_for(uint32_t channels, uint32_t bits) const;
  std::span<const uint8_t> model_of(const NewSample& sample) const;
  void fail(WriteFailure failure);
  void stop();
  void clear_work_folder();
  std::string in_folder(std::string_view name) const;
  std::string in_work_folder(std::string_view name) const;

  const WriterOptions options_;
  std::string work_folder_;
  bool made_folder_ = false;
  FileLock lock_file_;
  bool is_locked_ = false;
  std::vector<l3_model_info> models_;
  std::vector<std::thread> threads_;

  std::mutex mutex_;
  std::condition_variable room_, ready_;
  std::deque<std::unique_ptr<Job>> jobs_;  // in order; the front is the next to be written
  uint64_t taken_ = 0, started_ = 0, written_ = 0, cost_ = 0;
  uint64_t idle_bytes_ = 0;  // of items that no thread has started
  bool is_writing_ = false, is_stopped_ = false;
  std::optional<WriteFailure> failure_;

  // Of whoever has set is_writing_.
  std::vector<Part> group_;
  std::optional<ShardBuilder> builder_;
  std::unique_ptr<GrowingFile> shard_;
  DataSetIndex index_;
};

}  // namespace loader
