// The memory of shared batches: files without a name, which end with the last process that has them. A batch is
// followed by what a job must know of it.
#pragma once

#include <map>
#include <mutex>
#include <vector>

#include "pipeline.h"
#include "share_socket.h"

namespace loader {

// How a prepared batch lies in a buffer.
class SharedLayout {
 public:
  SharedLayout(const Units& units, const Sharing& sharing);

  uint64_t bytes() const { return failures_at_ + failures_ * sizeof(l3_failure); }
  // Writes what a job must know. `begun` is when the pipeline began, which all times count from.
  void write(const Job& job, uint64_t begun, uint8_t* buffer) const;
  // Reads it from a buffer that others can write to, and the tensors too if the job has memory. Returns false if it is
  // not the batch at this place, or makes no sense.
  bool read(const uint8_t* buffer, Place place, uint64_t begun, uint32_t on_error, BatchPool& pool, Job& job) const;

 private:
  struct Head;

  const Units& units_;
  Sharing sharing_;
  uint64_t head_at_, ids_at_, labels_at_, failures_at_, failures_;
};

// The leader's buffers. They cannot shrink, so that reading them is safe.
class SharedMemory final : public BatchMemory {
 public:
  // A buffer has `bytes`; `held` of them are in use beside those of the pipeline.
  SharedMemory(uint64_t bytes, size_t held) : bytes_(bytes), held_(held) {}
  ~SharedMemory() override;

  uint8_t* allocate(uint64_t size) override;
  void free(uint8_t* memory) override;
  size_t held() const override { return held_; }

  uint64_t bytes() const { return bytes_; }
  // The number of a buffer, and its file.
  uint32_t number_of(const uint8_t* memory) const;
  const Descriptor& file_of(const uint8_t* memory) const;

 private:
  struct Buffer {
    uint32_t number;
    Descriptor file;
  };

  uint64_t bytes_;
  size_t held_;
  mutable std::mutex mutex_;
  std::map<const uint8_t*, Buffer> buffers_;
  uint32_t next_ = 1;
};

// A buffer of a leader, as a job sees it.
class SharedView {
 public:
  // data() is null if the file has not these bytes, or could shrink.
  SharedView(const Descriptor& file, uint64_t bytes);
  ~SharedView();
  SharedView(SharedView&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  SharedView& operator=(SharedView&&) = delete;

  const uint8_t* data() const { return data_; }

 private:
  uint8_t* data_ = nullptr;
  uint64_t bytes_ = 0;
};

// Whether the system has such files.
bool has_shared_memory();

}  // namespace loader
