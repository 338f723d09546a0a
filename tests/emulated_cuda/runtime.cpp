#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "control.h"

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

using Done = std::shared_ptr<bool>;  // of a piece of work

struct Work {
  std::function<void()> run;
  Done done = std::make_shared<bool>(false);
  std::vector<Done> needs;
};

}  // namespace
}  // namespace emulated

struct CUgraph_st {
  std::vector<std::function<void()>> nodes;
};
struct CUgraphExec_st {
  std::vector<std::function<void()>> nodes;
};
struct CUevent_st {
  emulated::Done recorded;  // null before the first time
};
struct CUstream_st {
  std::deque<emulated::Work> work;
  emulated::Done last;   // of what was put into it
  bool blocking = true;  // waits for the default stream, and that one for it
  std::unique_ptr<CUgraph_st> captured;
  bool capture_failed = false, capture_forbids = false;
};

namespace emulated {
namespace {

constexpr size_t kAlignment = 256;
constexpr size_t kTotalBytes = size_t{1} << 30;

struct Allocation {
  size_t size;
  bool on_device;
};

// All that the machine is made of.
struct Machine {
  Control control;
  Counts counts;
  std::mt19937 dice{1};
  cudaError_t last_error = cudaSuccess;
  std::map<char*, Allocation> allocations;
  CUstream_st default_stream;
  std::vector<std::unique_ptr<CUstream_st>> streams;
  std::map<const void*, size_t> most_shared;  // of kernels that asked for more

  template <class Body>
  void each_stream(const Body& body) {
    body(default_stream);
    for (const auto& stream : streams) body(*stream);
  }
};
Machine& machine() {
  static Machine the_one;
  return the_one;
}

cudaError_t give(cudaError_t error) {
  if (error != cudaSuccess && error != cudaErrorNotReady) machine().last_error = error;
  return error;
}
bool is_there() { return machine().control.devices > 0; }

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
const Allocation* find(const void* memory, size_t size) {
  char* const begin = static_cast<char*>(const_cast<void*>(memory));
  auto after = machine().allocations.upper_bound(begin);
  if (after == machine().allocations.begin()) return nullptr;
  --after;
  const size_t at = static_cast<size_t>(begin - after->first);
  return at <= after->second.size && size <= after->second.size - at ? &after->second : nullptr;
}
bool is_on_device(const void* memory, size_t size) {
  const Allocation* const allocation = find(memory, size);
  return allocation != nullptr && allocation->on_device;
}

CUstream_st* find(cudaStream_t stream) {
  if (stream == nullptr || stream == reinterpret_cast<cudaStream_t>(1)) return &machine().default_stream;
  for (const auto& known : machine().streams) {
    if (known.get() == stream) return stream;
  }
  return nullptr;
}

// Whether some capture forbids what is not put into its stream; it is void then.
bool spoils_captures() {
  bool spoilt = false;
  machine().each_stream([&](CUstream_st& stream) {
    if (stream.captured == nullptr || !stream.capture_forbids) return;
    stream.capture_failed = spoilt = true;
  });
  return spoilt;
}

// Runs what some stream has next.
void run_one() {
  std::vector<CUstream_st*> ready;
  machine().each_stream([&](CUstream_st& stream) {
    if (stream.work.empty()) return;
    const std::vector<Done>& needs = stream.work.front().needs;
    if (std::all_of(needs.begin(), needs.end(), [](const Done& done) { return *done; })) ready.push_back(&stream);
  });
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
  *work.done = true;
}
bool is_idle() {
  bool idle = true;
  machine().each_stream([&](const CUstream_st& stream) { idle = idle && stream.work.empty(); });
  return idle;
}

cudaError_t put(cudaStream_t where, std::function<void()> run, Done* done = nullptr, const Done& needs = nullptr) {
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
  if (stream == &machine().default_stream && spoils_captures()) return cudaErrorStreamCaptureImplicit;
  ++machine().counts.work;
  Work work;
  work.run = std::move(run);
  if (needs != nullptr) work.needs.push_back(needs);
  if (stream == &machine().default_stream) {
    for (const auto& other : machine().streams) {
      if (other->blocking && other->last != nullptr) work.needs.push_back(other->last);
    }
  } else if (stream->blocking && machine().default_stream.last != nullptr) {
    work.needs.push_back(machine().default_stream.last);
  }
  stream->last = work.done;
  if (done != nullptr) *done = work.done;
  stream->work.push_back(std::move(work));
  return cudaSuccess;
}

cudaError_t wait_for(cudaStream_t where) {
  if (!is_there()) return cudaErrorNoDevice;
  CUstream_st* const stream = find(where);
  if (stream == nullptr) return cudaErrorInvalidResourceHandle;
  if (stream->captured != nullptr) {
    stream->capture_failed = true;
    return cudaErrorStreamCaptureUnsupported;
  }
  if (stream == &machine().default_stream && spoils_captures()) return cudaErrorStreamCaptureImplicit;
  while (!stream->work.empty()) run_one();
  return cudaSuccess;
}

cudaError_t wait_for_all() {
  if (!is_there()) return cudaErrorNoDevice;
  if (spoils_captures()) return cudaErrorStreamCaptureUnsupported;
  while (!is_idle()) run_one();
  return cudaSuccess;
}

cudaError_t allocate(void** memory, size_t size, bool on_device) {
  if (memory == nullptr) return cudaErrorInvalidValue;
  *memory = nullptr;
  if (!is_there()) return cudaErrorNoDevice;
  if (spoils_captures()) return cudaErrorStreamCaptureUnsupported;
  ++machine().counts.allocations;
  if (size == 0) return cudaSuccess;
  if (size > kTotalBytes) return cudaErrorMemoryAllocation;
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
  const cudaError_t waited = wait_for_all();
  if (waited != cudaSuccess || memory == nullptr) return waited;
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
  CUstream_st* const known = find(stream);
  if (known != nullptr && known->captured == nullptr && find(from, size) == nullptr) {
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

size_t most_shared(const void* kernel) {
  const auto asked = machine().most_shared.find(kernel);
  return asked == machine().most_shared.end() ? kSharedBytesUnasked : asked->second;
}

cudaError_t add_stream(cudaStream_t* stream, unsigned flags) {
  if (stream == nullptr || flags > cudaStreamNonBlocking) return cudaErrorInvalidValue;
  if (!is_there()) return cudaErrorNoDevice;
  machine().streams.push_back(std::make_unique<CUstream_st>());
  *stream = machine().streams.back().get();
  (*stream)->blocking = flags != cudaStreamNonBlocking;
  return cudaSuccess;
}

int attribute_of(cudaDeviceAttr attribute) {
  switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock: return kMostThreads;
    case cudaDevAttrMaxSharedMemoryPerBlock: return kSharedBytesUnasked;
    case cudaDevAttrWarpSize: return 32;
    case cudaDevAttrMultiProcessorCount: return machine().control.multiprocessors;
    case cudaDevAttrMaxThreadsPerMultiProcessor: return 2048;
    case cudaDevAttrComputeCapabilityMajor: return 9;
    case cudaDevAttrComputeCapabilityMinor: return 0;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor: return static_cast<int>(machine().control.shared_of_processor);
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: return static_cast<int>(machine().control.shared_of_block);
    case cudaDevAttrReservedSharedMemoryPerBlock: return 1 << 10;
  }
  return -1;
}

struct ErrorText {
  cudaError_t error;
  const char *name, *text;
};
#define L3_ERROR_TEXT(error, text) \
  { error, #error, text }
constexpr ErrorText kErrors[] = {
    L3_ERROR_TEXT(cudaSuccess, "no error"),
    L3_ERROR_TEXT(cudaErrorInvalidValue, "invalid argument"),
    L3_ERROR_TEXT(cudaErrorMemoryAllocation, "out of memory"),
    L3_ERROR_TEXT(cudaErrorInitializationError, "initialization error"),
    L3_ERROR_TEXT(cudaErrorInvalidConfiguration, "invalid configuration argument"),
    L3_ERROR_TEXT(cudaErrorInvalidMemcpyDirection, "invalid copy direction for memcpy"),
    L3_ERROR_TEXT(cudaErrorInsufficientDriver, "CUDA driver version is insufficient for CUDA runtime version"),
    L3_ERROR_TEXT(cudaErrorInvalidDeviceFunction, "invalid device function"),
    L3_ERROR_TEXT(cudaErrorNoDevice, "no CUDA-capable device is detected"),
    L3_ERROR_TEXT(cudaErrorInvalidDevice, "invalid device ordinal"),
    L3_ERROR_TEXT(cudaErrorNoKernelImageForDevice, "no kernel image is available for execution on the device"),
    L3_ERROR_TEXT(cudaErrorInvalidResourceHandle, "invalid resource handle"),
    L3_ERROR_TEXT(cudaErrorNotReady, "device not ready"),
    L3_ERROR_TEXT(cudaErrorLaunchOutOfResources, "too many resources requested for launch"),
    L3_ERROR_TEXT(cudaErrorLaunchFailure, "unspecified launch failure"),
    L3_ERROR_TEXT(cudaErrorNotSupported, "operation not supported"),
    L3_ERROR_TEXT(cudaErrorStreamCaptureUnsupported, "operation not permitted when stream is capturing"),
    L3_ERROR_TEXT(cudaErrorStreamCaptureInvalidated, "operation failed due to a previous error during capture"),
    L3_ERROR_TEXT(cudaErrorStreamCaptureUnmatched, "capture was not initiated in this stream"),
    L3_ERROR_TEXT(cudaErrorStreamCaptureImplicit, "operation would make the legacy stream depend on a capturing one"),
    L3_ERROR_TEXT(cudaErrorUnknown, "unknown error"),
};
#undef L3_ERROR_TEXT

const ErrorText& text_of(cudaError_t error) {
  for (const ErrorText& known : kErrors) {
    if (known.error == error) return known;
  }
  return std::end(kErrors)[-1];
}

}  // namespace

Control& control() { return machine().control; }
const Counts& counts() { return machine().counts; }
std::mt19937& dice() { return machine().dice; }

cudaError_t put_kernel(cudaStream_t stream, const void* kernel, uint32_t blocks, uint32_t threads, size_t shared,
                       std::function<void()> run) {
  cudaError_t error = cudaSuccess;
  if (is_there() && !machine().control.has_code) {
    error = cudaErrorNoKernelImageForDevice;
  } else if (blocks == 0 || blocks > INT32_MAX || threads == 0 || threads > kMostThreads) {
    error = cudaErrorInvalidConfiguration;
  } else if (shared > most_shared(kernel)) {
    error = cudaErrorInvalidValue;
  } else {
    error = put(stream, std::move(run));
    machine().counts.kernels += error == cudaSuccess;
  }
  return give(error);
}

}  // namespace emulated

using namespace emulated;

const char* cudaGetErrorName(cudaError_t error) { return text_of(error).name; }
const char* cudaGetErrorString(cudaError_t error) { return text_of(error).text; }
cudaError_t cudaGetLastError() { return std::exchange(machine().last_error, cudaSuccess); }
cudaError_t cudaPeekAtLastError() { return machine().last_error; }

cudaError_t cudaGetDeviceCount(int* count) {
  if (count == nullptr) return give(cudaErrorInvalidValue);
  *count = machine().control.devices;
  return give(is_there() ? cudaSuccess : cudaErrorNoDevice);
}
cudaError_t cudaGetDevice(int* device) {
  if (!is_there()) return give(cudaErrorNoDevice);
  *device = 0;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  if (!is_there()) return give(cudaErrorNoDevice);
  return give(device >= 0 && device < machine().control.devices ? cudaSuccess : cudaErrorInvalidDevice);
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (const cudaError_t error = cudaSetDevice(device); error != cudaSuccess) return error;
  *properties = {};
  std::strcpy(properties->name, "emulated");
  properties->totalGlobalMem = kTotalBytes;
  const auto size = [](cudaDeviceAttr attribute) { return static_cast<size_t>(attribute_of(attribute)); };
  properties->sharedMemPerBlock = size(cudaDevAttrMaxSharedMemoryPerBlock);
  properties->sharedMemPerBlockOptin = size(cudaDevAttrMaxSharedMemoryPerBlockOptin);
  properties->sharedMemPerMultiprocessor = size(cudaDevAttrMaxSharedMemoryPerMultiprocessor);
  properties->major = attribute_of(cudaDevAttrComputeCapabilityMajor);
  properties->minor = attribute_of(cudaDevAttrComputeCapabilityMinor);
  properties->multiProcessorCount = attribute_of(cudaDevAttrMultiProcessorCount);
  properties->warpSize = attribute_of(cudaDevAttrWarpSize);
  properties->maxThreadsPerBlock = attribute_of(cudaDevAttrMaxThreadsPerBlock);
  properties->maxThreadsPerMultiProcessor = attribute_of(cudaDevAttrMaxThreadsPerMultiProcessor);
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  if (const cudaError_t error = cudaSetDevice(device); error != cudaSuccess) return error;
  *value = attribute_of(attribute);
  return give(*value < 0 ? cudaErrorInvalidValue : cudaSuccess);
}
cudaError_t cudaDeviceSynchronize() { return give(wait_for_all()); }
cudaError_t cudaDriverGetVersion(int* version) {
  *version = is_there() ? CUDART_VERSION : 0;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** memory, size_t size) { return give(allocate(memory, size, true)); }
cudaError_t cudaFree(void* memory) { return give(release(memory, true)); }
cudaError_t cudaMallocHost(void** memory, size_t size, unsigned) { return give(allocate(memory, size, false)); }
cudaError_t cudaHostAlloc(void** memory, size_t size, unsigned) { return give(allocate(memory, size, false)); }
cudaError_t cudaFreeHost(void* memory) { return give(release(memory, false)); }
cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  if (!is_there()) return give(cudaErrorNoDevice);
  *free_bytes = *total_bytes = kTotalBytes;
  for (const auto& [begin, allocation] : machine().allocations) {
    if (allocation.on_device) *free_bytes -= std::min(*free_bytes, allocation.size);
  }
  return cudaSuccess;
}

cudaError_t cudaMemcpy(void* to, const void* from, size_t size, cudaMemcpyKind kind) {
  const cudaError_t error = copy(to, from, size, kind, nullptr);
  return give(error == cudaSuccess ? wait_for(nullptr) : error);
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t size, cudaMemcpyKind kind, cudaStream_t stream) {
  return give(copy(to, from, size, kind, stream));
}
cudaError_t cudaMemset(void* memory, int value, size_t size) {
  const cudaError_t error = fill(memory, value, size, nullptr);
  return give(error == cudaSuccess ? wait_for(nullptr) : error);
}
cudaError_t cudaMemsetAsync(void* memory, int value, size_t size, cudaStream_t stream) {
  return give(fill(memory, value, size, stream));
}

cudaError_t cudaStreamCreate(cudaStream_t* stream) { return give(add_stream(stream, cudaStreamDefault)); }
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) { return give(add_stream(stream, flags)); }
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  if (find(stream) == nullptr || find(stream) == &machine().default_stream) return give(cudaErrorInvalidResourceHandle);
  stream->captured = nullptr;
  while (!stream->work.empty()) run_one();
  std::erase_if(machine().streams, [&](const auto& known) { return known.get() == stream; });
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) { return give(wait_for(stream)); }
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  CUstream_st* const known = find(stream);
  if (known == nullptr) return give(cudaErrorInvalidResourceHandle);
  if (known->captured != nullptr) return give(wait_for(stream));
  if (known->work.empty()) return cudaSuccess;
  run_one();  // time passes
  return cudaErrorNotReady;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  if (event == nullptr) return give(cudaErrorInvalidResourceHandle);
  return event->recorded == nullptr ? cudaSuccess : give(put(stream, nullptr, nullptr, event->recorded));
}

cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, cudaEventDefault); }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  if (!is_there()) return give(cudaErrorNoDevice);
  *event = new CUevent_st;
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  if (event == nullptr) return give(cudaErrorInvalidResourceHandle);
  return give(put(stream, nullptr, &event->recorded));
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (event == nullptr) return give(cudaErrorInvalidResourceHandle);
  while (event->recorded != nullptr && !*event->recorded) run_one();
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  if (event == nullptr) return give(cudaErrorInvalidResourceHandle);
  if (event->recorded == nullptr || *event->recorded) return cudaSuccess;
  run_one();
  return cudaErrorNotReady;
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  if (start == nullptr || end == nullptr || start->recorded == nullptr || end->recorded == nullptr) {
    return give(cudaErrorInvalidResourceHandle);
  }
  if (!*start->recorded || !*end->recorded) return cudaErrorNotReady;
  *milliseconds = 1;
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  CUstream_st* const known = find(stream);
  if (known == nullptr) return give(cudaErrorInvalidResourceHandle);
  if (known == &machine().default_stream) return give(cudaErrorStreamCaptureUnsupported);
  if (known->captured != nullptr) return give(cudaErrorInvalidValue);
  known->captured = std::make_unique<CUgraph_st>();
  known->capture_failed = false;
  known->capture_forbids = mode != cudaStreamCaptureModeRelaxed;
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  CUstream_st* const known = find(stream);
  *graph = nullptr;
  if (known == nullptr) return give(cudaErrorInvalidResourceHandle);
  if (known->captured == nullptr) return give(cudaErrorStreamCaptureUnmatched);
  const std::unique_ptr<CUgraph_st> captured = std::move(known->captured);
  if (known->capture_failed) return give(cudaErrorStreamCaptureInvalidated);
  *graph = new CUgraph_st(*captured);
  return cudaSuccess;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  CUstream_st* const known = find(stream);
  if (known == nullptr) return give(cudaErrorInvalidResourceHandle);
  *status = known->captured == nullptr ? cudaStreamCaptureStatusNone
            : known->capture_failed    ? cudaStreamCaptureStatusInvalidated
                                       : cudaStreamCaptureStatusActive;
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long) {
  if (exec == nullptr || graph == nullptr) return give(cudaErrorInvalidValue);
  *exec = new CUgraphExec_st{graph->nodes};
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  if (exec == nullptr) return give(cudaErrorInvalidValue);
  for (const auto& node : exec->nodes) {
    if (const cudaError_t error = put(stream, node); error != cudaSuccess) return give(error);
  }
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  delete exec;
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute attribute, int value) {
  if (!is_there()) return give(cudaErrorNoDevice);
  if (!machine().control.has_code) return give(cudaErrorNoKernelImageForDevice);
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaSuccess;
  if (value < 0 || static_cast<size_t>(value) > machine().control.shared_of_block) return give(cudaErrorInvalidValue);
  machine().most_shared[kernel] = static_cast<size_t>(value);
  return cudaSuccess;
}
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* kernel) {
  if (!is_there()) return give(cudaErrorNoDevice);
  if (!machine().control.has_code) return give(cudaErrorNoKernelImageForDevice);
  *attributes = {};
  attributes->maxThreadsPerBlock = kMostThreads;
  attributes->numRegs = 64;
  attributes->ptxVersion = attributes->binaryVersion = 90;
  attributes->maxDynamicSharedSizeBytes = static_cast<int>(most_shared(kernel));
  return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* kernel, int threads, size_t shared) {
  if (!is_there()) return give(cudaErrorNoDevice);
  if (!machine().control.has_code) return give(cudaErrorNoKernelImageForDevice);
  if (threads <= 0 || threads > static_cast<int>(kMostThreads)) return give(cudaErrorInvalidValue);
  const size_t by_shared = (size_t{228} << 10) / (shared + (1 << 10));
  *blocks = shared > most_shared(kernel)
                ? 0
                : static_cast<int>(std::min({size_t{32}, by_shared, size_t{2048} / static_cast<size_t>(threads)}));
  return cudaSuccess;
}
