// Writes samples to the places of a cache, on threads of its own.
#pragma once

#include <unistd.h>

#include <condition_variable>
#include <functional>
#include <list>
#include <mutex>
#include <thread>
#include <vector>

#include "cache_place.h"
#include "memory_pool.h"

namespace loader {

// A sample to write. `bytes` has `size` bytes.
struct Keepsake {
  CachePlace* place = nullptr;
  const Shard* shard = nullptr;
  uint64_t sample = 0, offset = 0, size = 0;
  uint32_t check = 0;
  Bytes bytes;
};

// Belongs to one process. Its memory is bounded: a read that fills the cache needs room here from when it is submitted
// until it is written or has failed.
class CacheKeeper {
 public:
  // `write` writes a sample, on any thread.
  explicit CacheKeeper(std::function<void(const Keepsake&)> write) : write_(std::move(write)) {}
  // Writes what is left. No room may be in use otherwise.
  ~CacheKeeper();
  CacheKeeper(const CacheKeeper&) = delete;
  CacheKeeper& operator=(const CacheKeeper&) = delete;

  pid_t process() const { return process_; }
  // Waits until there is room.
  void take_room(uint64_t size);
  void return_room(uint64_t size);
  // Takes over the room of the sample. Never waits. Throws std::bad_alloc or std::system_error, and then the caller
  // still has the room.
  void add(Keepsake sample);
  // Copies a part of a sample that is not written yet. Returns false if there is no such sample here.
  bool copy(const CachePlace& place, uint64_t sample, uint64_t offset, std::span<uint8_t> to);

 private:
  static constexpr uint64_t kRoom = uint64_t{64} << 20;
  static constexpr size_t kThreads = 4;

  void run();

  const pid_t process_ = getpid();
  std::function<void(const Keepsake&)> write_;
  std::mutex mutex_;
  std::condition_variable work_, room_;
  uint64_t taken_ = 0;
  size_t idle_ = 0;
  std::list<Keepsake> samples_;  // those that are being written come first
  size_t writing_ = 0;
  bool ends_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace loader
