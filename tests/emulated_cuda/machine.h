// The emulated devices, their memory, streams, and the work in them. runtime.cpp and driver.cpp provide them under
// CUDA's names. Any thread may call, one at a time: a thread that waits keeps the lock, and runs the work of all
// threads.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "control.h"

namespace emulated {

using Done = std::shared_ptr<uint64_t>;  // when a piece of work was done; 0: not yet

struct Work {
  std::function<void()> run;
  Done done = std::make_shared<uint64_t>(0);
  std::vector<Done> needs;
};

}  // namespace emulated

struct CUgraph_st {
  std::vector<std::function<void()>> nodes;
};
struct CUgraphExec_st {
  std::vector<std::function<void()>> nodes;
};
struct CUevent_st {
  int device = 0;
  bool has_time = true;
  emulated::Done recorded;  // null before the first time
};
struct CUstream_st {
  int device = 0;
  std::deque<emulated::Work> work;
  emulated::Done last;     // of what was put into it
  bool is_legacy = false;  // the device's default stream
  bool is_made = false;    // by a caller, who may destroy it
  bool blocking = true;    // waits for the default stream, and that one for it
  std::unique_ptr<CUgraph_st> captured;
  bool capture_failed = false, capture_forbids = false;
};

namespace emulated {

constexpr size_t kAlignment = 256;
constexpr size_t kTotalBytes = size_t{1} << 30;

struct Allocation {
  size_t size;
  bool on_device;
};

// All that the machine is made of.
struct Machine {
  std::recursive_mutex mutex;
  Control control;
  Counts counts;
  std::mt19937 dice{1};
  uint64_t now = 0;  // in pieces of work
  std::map<char*, Allocation> allocations;
  std::vector<std::unique_ptr<CUstream_st>> streams;
  std::map<const void*, size_t> max_shared;  // of kernels that asked for more
};
Machine& machine();

// What each thread has of its own.
struct ThreadState {
  cudaError_t last_error = cudaSuccess;
  std::vector<int> contexts;  // the devices whose contexts it has pushed; the last one is current
  int chosen = 0;             // where there is none
  cudaStreamCaptureMode capture_mode = cudaStreamCaptureModeGlobal;

  int device() const { return contexts.empty() ? chosen : contexts.back(); }
};
ThreadState& this_thread();

struct [[nodiscard]] Lock {
  Lock() { machine().mutex.lock(); }
  ~Lock() { machine().mutex.unlock(); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
};

cudaError_t give(cudaError_t error);
bool is_there();
bool is_device(int device);
// The context of a device, which the first call that needs it makes.
void start(int device);

// Null where there is none. That of null is the current device's.
CUstream_st* find(cudaStream_t stream);
cudaError_t add_stream(cudaStream_t* stream, unsigned flags);
cudaError_t remove_stream(cudaStream_t stream);
// Takes one of what `resources_accepted` leaves.
bool take_resource();

cudaError_t put(cudaStream_t where, std::function<void()> run, Done* done = nullptr, const Done& needs = nullptr);
void run_one();
cudaError_t wait_for(cudaStream_t where);
cudaError_t wait_for_all();

cudaError_t allocate(void** memory, size_t size, bool on_device);
cudaError_t release(void* memory, bool on_device);
cudaError_t copy(void* to, const void* from, size_t size, cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t fill(void* memory, int value, size_t size, cudaStream_t stream);

}  // namespace emulated
