// Asynchronous reads of local files: many at once, while the submitting threads continue.
#pragma once

#include <cstdint>
#include <memory>

#include "loader/store.h"

namespace loader {

inline constexpr int kFileEnds = -1;

// An engine takes reads whose `descriptor` is open, and changes their offset, size and `to` while it reads. When a read
// is finished, a thread of the engine calls finish_local_read once, with 0, an errno, or kFileEnds.
class ReadEngine {
 public:
  // No read may be in progress.
  virtual ~ReadEngine() = default;
  // Any thread may call this. `read` has at least one byte.
  virtual void submit(Read& read) = 0;
};

// Defined in local_store.cpp.
void finish_local_read(Read& read, int error);

// Returns null if the system has no io_uring, or does not let this process use it.
std::unique_ptr<ReadEngine> make_uring_engine();
// Throws std::system_error if no thread can be started, as make_uring_engine does.
std::unique_ptr<ReadEngine> make_thread_engine();
// Whether make_uring_engine would return an engine.
bool has_uring();

// How a file system reads what it has in memory.
enum class CachedReads : uint8_t {
  no_wait,  // with RWF_NOWAIT, which finds out what is there
  memory,   // all files are in memory: tmpfs
  none,
};

// Reads the part of a file from `offset` that is in memory, without waiting. Returns how many bytes it read. Changes
// `how` if the file system does not support it.
uint64_t read_cached(int descriptor, uint64_t offset, uint8_t* to, uint64_t size, CachedReads& how);

}  // namespace loader
