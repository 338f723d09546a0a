// Moves the shards of a data set, several at a time, and shows the progress.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "console.h"

namespace tools {

struct TransferFailure {
  Failure failure;
  bool stops = false;  // the other shards would fail, too
};

class Transfer {
 public:
  // `bytes` is the size of all shards.
  Transfer(Console& console, uint64_t shards, uint64_t bytes) : console_(console), shards_(shards), bytes_(bytes) {}

  // Calls move(i) for each shard on `threads` threads, and prints failures. After a failure that stops, no other shard
  // begins, and failures of the same kind are not printed. Returns the number of shards that are not done.
  uint64_t run(uint32_t threads, const std::function<std::optional<TransferFailure>(uint64_t)>& move);

  // Bytes were moved, or were there already. Any thread may call these.
  void count_moved(uint64_t bytes);
  void count_kept(uint64_t bytes);
  // A shard was there already.
  void keep_shard(uint64_t bytes);

  // "3 shards WHAT: 1.20 GB, 85.10 MB/s; 2 already there"
  std::string summary(const std::string& what) const;
  uint64_t shards_moved() const { return done_ - shards_kept_; }
  uint64_t bytes_moved() const { return moved_; }
  double seconds() const;

 private:
  using Clock = std::chrono::steady_clock;
  void show();
  std::string line() const;

  Console& console_;
  const uint64_t shards_, bytes_;
  const Clock::time_point start_ = Clock::now();
  mutable std::mutex mutex_;
  Clock::time_point shown_ = start_;
  uint64_t done_ = 0, shards_kept_ = 0, moved_ = 0, kept_ = 0;
  bool stopped_ = false;
};

}  // namespace tools
