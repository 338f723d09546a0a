#include "machine.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#if defined(__SANITIZE_ADDRESS__)
#define L3_ADDRESS_SANITIZER
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define L3_ADDRESS_SANITIZER
#endif
#endif
#ifdef L3_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#endif

namespace emulated {
namespace {

const cudaStream_t kLegacyStream = reinterpret_cast<cudaStream_t>(1);
const cudaStream_t kPerThreadStream = reinterpret_cast<cudaStream_t>(2);

// Device memory is out of the host's reach but while work runs.
void let_reach([[maybe_unused]] bool allowed) {
#ifdef L3_ADDRESS_SANITIZER
  for (const auto& [begin, allocation] : machine().allocations) {
    if (!allocation.on_device) continue;
    if (allowed) {
      __asan_unpoison_memory_region(begin, allocation.size);
    } else {
      __asan_poison_memory_region(begin, allocation.size);
    }
  }
#endif
}

// What holds all of `size` bytes; null where that is no memory of CUDA's.
const Allocation* find_memory(const void* memory, size_t size) {
  char* const begin = static_cast<char*>(const_cast<void*>(memory));
  auto after = machine().allocations.upper_bound(begin);
  if (after == machine().allocations.begin()) return nullptr;
  --after;
  const size_t at = static_cast<size_t>(begin - after->first);
  return at <= after->second.size && size <= after->second.size - at ? &after->second : nullptr;
}
bool is_on_device(const void* memory, size_t size) {
  const Allocation* const allocation = find_memory(memory, size);
  return allocation != nullptr && allocation->on_device;
}

CUstream_st& made_stream(int device) {
  machine().streams.push_back(std::make_unique<CUstream_st>());
  CUstream_st& stream = *machine().streams.back();
  stream.device = device;
  return stream;
}

// The default stream of a device; a thread's own one is a stream like others.
CUstream_st& default_stream(int device) {
  for (const auto& stream : machine().streams) {
    if (stream->is_legacy && stream->device == device) return *stream;
  }
  CUstream_st& stream = made_stream(device);
  stream.is_legacy = true;
  return stream;
}
CUstream_st& stream_of_thread(int device) {
  thread_local std::map<int, CUstream_st*> streams;
  CUstream_st*& stream = streams[device];
  if (stream == nullptr) stream = &made_stream(device);
  return *stream;
}

// Whether some capture forbids what is not put into its stream; it is void then.
bool spoils_captures() {
  bool spoilt = false;
  for (const auto& stream : machine().streams) {
    if (stream->captured == nullptr || !stream->capture_forbids) continue;
    stream->capture_failed = spoilt = true;
  }
  return spoilt;
}
// The same of calls that are forbidden for safety's sake alone, which a thread may lift.
bool spoils_captures_of_others() {
  return this_thread().capture_mode != cudaStreamCaptureModeRelaxed && spoils_captures();
}

}  // namespace

Machine& machine() {
  static Machine the_one;
  return the_one;
}
ThreadState& this_thread() {
  thread_local ThreadState state;
  return state;
}

Control& control() { return machine().control; }
const Counts& counts() { return machine().counts; }
std::mt19937& dice() { return machine().dice; }
uint32_t resources() {
  const Lock lock;
  return static_cast<uint32_t>(machine().allocations.size() + machine().counts.events +
                               static_cast<size_t>(std::count_if(machine().streams.begin(), machine().streams.end(),
                                                                 [](const auto& stream) { return stream->is_made; })));
}

bool is_idle() {
  const Lock lock;
  const auto& streams = machine().streams;
  return std::all_of(streams.begin(), streams.end(), [](const auto& stream) { return stream->work.empty(); });
}
void forget_contexts() {
  const Lock lock;
  machine().counts.contexts = 0;
}

cudaError_t give(cudaError_t error) {
  if (error != cudaSuccess && error != cudaErrorNotReady) this_thread().last_error = error;
  return error;
}
bool is_there() { return machine().control.devices > 0; }
bool is_device(int device) { return device >= 0 && device < machine().control.devices; }
void start(int device) { machine().counts.contexts |= uint64_t{1} << device; }

bool take_resource() {
  uint64_t& left = machine().control.resources_accepted;
  if (left == 0) {
    left = UINT64_MAX;
    return false;
  }
  if (left != UINT64_MAX) --left;
  return true;
}

// ---- streams

CUstream_st* find(cudaStream_t stream) {
  if (stream == nullptr || stream == kLegacyStream) return &default_stream(this_thread().device());
  if (stream == kPerThreadStream) return &stream_of_thread(this_thread().device());
  for (const auto& known : machine().streams) {
    if (known.get() == stream) return stream;
  }
  return nullptr;
}

cudaError_t add_stream(cudaStream_t* stream, unsigned flags) {
  if (stream == nullptr || flags > cudaStreamNonBlocking) return cudaErrorInvalidValue;
  if (!is_there()) return cudaErrorNoDevice;
  if (!take_resource()) return cudaErrorMemoryAllocation;
  start(this_thread().device());
  CUstream_st& made = made_stream(this_thread().device());
  made.is_made = true;
  made.blocking = flags != cudaStreamNonBlocking;
  *stream = &made;
  return cudaSuccess;
}

cudaError_t remove_stream(cudaStream_t stream) {
  const CUstream_st* const known = find(stream);
  if (known == nullptr || !known->is_made) return cudaErrorInvalidResourceHandle;
  stream->captured = nullptr;
  while (!stream->work.empty()) run_one();
  std::erase_if(machine().streams, [&](const auto& each) { return each.get() == stream; });
  return cudaSuccess;
}

cudaError_t put(cudaStream_t where, std::function<void()> run, Done* done, const Done& needs) {
  if (!is_there()) return cudaErrorNoDevice;
  CUstream_st* const stream = find(where);
  if (stream == nullptr) return cudaErrorInvalidResourceHandle;
  if (machine().control.work_accepted == 0) {
    machine().control.work_accepted = UINT64_MAX;
    if (stream->captured != nullptr) stream->capture_failed = true;
    return cudaErrorLaunchFailure;
  }
  if (machine().control.work_accepted != UINT64_MAX) --machine().control.work_accepted;
  if (stream->captured != nullptr) {
    if (done != nullptr || needs != nullptr) stream->capture_failed = true;  // events are not emulated there
    if (stream->capture_failed) return cudaErrorStreamCaptureInvalidated;
    stream->captured->nodes.push_back(std::move(run));
    ++machine().counts.work;
    return cudaSuccess;
  }
  if (stream->is_legacy && spoils_captures()) return cudaErrorStreamCaptureImplicit;
  start(stream->device);
  ++machine().counts.work;
  Work work;
  work.run = std::move(run);
  if (needs != nullptr) work.needs.push_back(needs);
  if (stream->blocking) {
    for (const auto& other : machine().streams) {
      const bool waits = other->device == stream->device && other.get() != stream && other->last != nullptr &&
                         (stream->is_legacy ? other->blocking : other->is_legacy);
      if (waits) work.needs.push_back(other->last);
    }
  }
  stream->last = work.done;
  if (done != nullptr) *done = work.done;
  stream->work.push_back(std::move(work));
  return cudaSuccess;
}

// Runs what some stream has next.
void run_one() {
  std::vector<CUstream_st*> ready;
  for (const auto& stream : machine().streams) {
    if (stream->work.empty()) continue;
    const std::vector<Done>& needs = stream->work.front().needs;
    if (std::all_of(needs.begin(), needs.end(), [](const Done& done) { return *done != 0; })) {
      ready.push_back(stream.get());
    }
  }
  if (ready.empty()) {
    std::fprintf(stderr, "emulated GPU: work that waits for ever\n");
    std::abort();
  }
  CUstream_st& stream = *ready[machine().dice() % ready.size()];
  const Work work = std::move(stream.work.front());
  stream.work.pop_front();
  let_reach(true);
  if (work.run) work.run();
  let_reach(false);
  *work.done = ++machine().now;
}

cudaError_t wait_for(cudaStream_t where) {
  if (!is_there()) return cudaErrorNoDevice;
  CUstream_st* const stream = find(where);
  if (stream == nullptr) return cudaErrorInvalidResourceHandle;
  if (stream->captured != nullptr) {
    stream->capture_failed = true;
    return cudaErrorStreamCaptureUnsupported;
  }
  if (stream->is_legacy && spoils_captures()) return cudaErrorStreamCaptureImplicit;
  while (!stream->work.empty()) run_one();
  return cudaSuccess;
}

cudaError_t wait_for_all() {
  if (!is_there()) return cudaErrorNoDevice;
  if (spoils_captures()) return cudaErrorStreamCaptureUnsupported;
  while (!is_idle()) run_one();
  return cudaSuccess;
}

cudaError_t put_kernel(cudaStream_t stream, const void* kernel, uint32_t blocks, uint32_t threads, size_t shared,
                       std::function<void()> run) {
  const Lock lock;
  const auto asked = machine().max_shared.find(kernel);
  const size_t max_shared = asked == machine().max_shared.end() ? kSharedBytesUnasked : asked->second;
  const CUstream_st* const known = find(stream);
  cudaError_t error = cudaSuccess;
  if (is_there() && !machine().control.has_code) {
    error = cudaErrorNoKernelImageForDevice;
  } else if (blocks == 0 || blocks > INT32_MAX || threads == 0 || threads > kMaxThreads) {
    error = cudaErrorInvalidConfiguration;
  } else if (shared > max_shared) {
    error = cudaErrorInvalidValue;
  } else if (known != nullptr && known->device != this_thread().device()) {
    error = cudaErrorInvalidResourceHandle;  // copies may be put into streams of another device, kernels not
  } else {
    error = put(stream, std::move(run));
    machine().counts.kernels += error == cudaSuccess;
  }
  return give(error);
}

// ---- memory

cudaError_t allocate(void** memory, size_t size, bool on_device) {
  if (memory == nullptr) return cudaErrorInvalidValue;
  *memory = nullptr;
  if (!is_there()) return cudaErrorNoDevice;
  if (spoils_captures_of_others()) return cudaErrorStreamCaptureUnsupported;
  start(this_thread().device());
  ++machine().counts.allocations;
  if (size == 0) return cudaSuccess;
  if (size > kTotalBytes || !take_resource()) return cudaErrorMemoryAllocation;
  char* const bytes = static_cast<char*>(::operator new (size, std::align_val_t{kAlignment}));
  uint64_t noise = machine().dice();
  for (size_t i = 0; i < size; ++i) {
    noise = noise * 6364136223846793005 + 1442695040888963407;
    bytes[i] = static_cast<char>(noise >> 56);
  }
  machine().allocations[bytes] = {size, on_device};
  let_reach(false);
  *memory = bytes;
  return cudaSuccess;
}

cudaError_t release(void* memory, bool on_device) {
  if (!is_there()) return cudaErrorNoDevice;
  if (spoils_captures_of_others()) return cudaErrorStreamCaptureUnsupported;
  while (!is_idle()) run_one();
  if (memory == nullptr) return cudaSuccess;
  const auto known = machine().allocations.find(static_cast<char*>(memory));
  if (known == machine().allocations.end() || known->second.on_device != on_device) return cudaErrorInvalidValue;
  let_reach(true);
  machine().allocations.erase(known);
  ::operator delete (memory, std::align_val_t{kAlignment});
  let_reach(false);
  return cudaSuccess;
}

cudaError_t copy(void* to, const void* from, size_t size, cudaMemcpyKind kind, cudaStream_t stream) {
  if (size == 0) return cudaSuccess;
  const bool from_device = is_on_device(from, size), to_device = is_on_device(to, size);
  const int is = 2 * from_device + to_device;
  constexpr int kWanted[] = {0, 1, 2, 3};
  if (to == nullptr || from == nullptr || kind < 0 || kind > cudaMemcpyDefault) return cudaErrorInvalidValue;
  if (kind != cudaMemcpyDefault && is != kWanted[kind]) return cudaErrorInvalidValue;
  if (!from_device && to_device) machine().counts.bytes_to_device += size;
  CUstream_st* const known = find(stream);
  if (known != nullptr && known->captured == nullptr && find_memory(from, size) == nullptr) {
    // From memory that is not pinned: it may change as soon as the call has returned.
    const char* const bytes = static_cast<const char*>(from);
    return put(stream,
               [to, held = std::vector<char>(bytes, bytes + size)] { std::memcpy(to, held.data(), held.size()); });
  }
  return put(stream, [to, from, size] { std::memmove(to, from, size); });
}

cudaError_t fill(void* memory, int value, size_t size, cudaStream_t stream) {
  if (size == 0) return cudaSuccess;
  if (!is_on_device(memory, size)) return cudaErrorInvalidValue;
  return put(stream, [memory, value, size] { std::memset(memory, value, size); });
}

}  // namespace emulated
