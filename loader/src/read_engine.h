// Reads that others wait for: many at once, from threads that go on.
#pragma once

#include <cstdint>
#include <memory>

#include "l3/l3_loader.h"

namespace loader {

// `size` bytes of a file from `offset` on. Stays where it is until it is done; then `finish` is called, once, by a
// thread of the engine, with 0, an errno, or kFileEnds.
struct Read {
  int descriptor = -1;
  uint64_t offset = 0, size = 0;
  uint8_t* to = nullptr;
  void (*finish)(Read& read, int error) = nullptr;
  void* context = nullptr;
  Read* next = nullptr;  // the engine's
};

inline constexpr int kFileEnds = -1;

class ReadEngine {
 public:
  // Nothing may be under way any more.
  virtual ~ReadEngine() = default;
  // Any thread may call it. `read` is at least one byte.
  virtual void submit(Read& read) = 0;
};

// Null where the system has no io_uring, or does not let this process use it.
std::unique_ptr<ReadEngine> make_uring_engine();
// Throws std::system_error where no thread can be started, as the other one does.
std::unique_ptr<ReadEngine> make_thread_engine();
// Whether make_uring_engine would give one.
bool has_uring();

// What of a file the system has in memory: reads it from `offset` on without waiting, and says how many bytes it got.
// `supported` is set to false where the file system cannot tell.
uint64_t read_cached(int descriptor, uint64_t offset, uint8_t* to, uint64_t size, bool& supported);

}  // namespace loader
