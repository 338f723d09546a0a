// CUDA's runtime by its names, over machine.h.
#include <algorithm>
#include <cstring>
#include <utility>

#include "machine.h"

namespace emulated {
namespace {

size_t max_shared(const void* kernel) {
  const auto asked = machine().max_shared.find(kernel);
  return asked == machine().max_shared.end() ? kSharedBytesUnasked : asked->second;
}

int attribute_of(cudaDeviceAttr attribute) {
  switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock: return kMaxThreads;
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
}  // namespace emulated

using namespace emulated;

const char* cudaGetErrorName(cudaError_t error) { return text_of(error).name; }
const char* cudaGetErrorString(cudaError_t error) { return text_of(error).text; }
cudaError_t cudaGetLastError() {
  const Lock lock;
  return std::exchange(this_thread().last_error, cudaSuccess);
}
cudaError_t cudaPeekAtLastError() {
  const Lock lock;
  return this_thread().last_error;
}

cudaError_t cudaGetDeviceCount(int* count) {
  const Lock lock;
  if (count == nullptr) return give(cudaErrorInvalidValue);
  *count = machine().control.devices;
  return give(is_there() ? cudaSuccess : cudaErrorNoDevice);
}
cudaError_t cudaGetDevice(int* device) {
  const Lock lock;
  if (!is_there()) return give(cudaErrorNoDevice);
  *device = this_thread().device();
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  const Lock lock;
  if (!is_there()) return give(cudaErrorNoDevice);
  if (!is_device(device)) return give(cudaErrorInvalidDevice);
  ThreadState& thread = this_thread();
  thread.chosen = device;
  if (!thread.contexts.empty()) thread.contexts.back() = device;
  start(device);
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  const Lock lock;
  if (!is_there()) return give(cudaErrorNoDevice);
  if (!is_device(device)) return give(cudaErrorInvalidDevice);
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
  const Lock lock;
  if (!is_there()) return give(cudaErrorNoDevice);
  if (!is_device(device)) return give(cudaErrorInvalidDevice);
  *value = attribute_of(attribute);
  return give(*value < 0 ? cudaErrorInvalidValue : cudaSuccess);
}
cudaError_t cudaDeviceSynchronize() {
  const Lock lock;
  return give(wait_for_all());
}
cudaError_t cudaDriverGetVersion(int* version) {
  const Lock lock;
  *version = is_there() ? CUDART_VERSION : 0;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  const Lock lock;
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** memory, size_t size) {
  const Lock lock;
  return give(allocate(memory, size, true));
}
cudaError_t cudaFree(void* memory) {
  const Lock lock;
  return give(release(memory, true));
}
cudaError_t cudaMallocHost(void** memory, size_t size, unsigned) {
  const Lock lock;
  return give(allocate(memory, size, false));
}
cudaError_t cudaHostAlloc(void** memory, size_t size, unsigned) {
  const Lock lock;
  return give(allocate(memory, size, false));
}
cudaError_t cudaFreeHost(void* memory) {
  const Lock lock;
  return give(release(memory, false));
}
cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  const Lock lock;
  if (!is_there()) return give(cudaErrorNoDevice);
  *free_bytes = *total_bytes = kTotalBytes;
  for (const auto& [begin, allocation] : machine().allocations) {
    if (allocation.on_device) *free_bytes -= std::min(*free_bytes, allocation.size);
  }
  return cudaSuccess;
}

cudaError_t cudaMemcpy(void* to, const void* from, size_t size, cudaMemcpyKind kind) {
  const Lock lock;
  const cudaError_t error = copy(to, from, size, kind, nullptr);
  return give(error == cudaSuccess ? wait_for(nullptr) : error);
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t size, cudaMemcpyKind kind, cudaStream_t stream) {
  const Lock lock;
  return give(copy(to, from, size, kind, stream));
}
cudaError_t cudaMemset(void* memory, int value, size_t size) {
  const Lock lock;
  const cudaError_t error = fill(memory, value, size, nullptr);
  return give(error == cudaSuccess ? wait_for(nullptr) : error);
}
cudaError_t cudaMemsetAsync(void* memory, int value, size_t size, cudaStream_t stream) {
  const Lock lock;
  return give(fill(memory, value, size, stream));
}

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  const Lock lock;
  return give(add_stream(stream, cudaStreamDefault));
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  const Lock lock;
  return give(add_stream(stream, flags));
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const Lock lock;
  return give(remove_stream(stream));
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  const Lock lock;
  return give(wait_for(stream));
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  const Lock lock;
  CUstream_st* const known = find(stream);
  if (known == nullptr) return give(cudaErrorInvalidResourceHandle);
  if (known->captured != nullptr) return give(wait_for(stream));
  if (known->work.empty()) return cudaSuccess;
  run_one();  // time passes
  return cudaErrorNotReady;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  const Lock lock;
  if (event == nullptr) return give(cudaErrorInvalidResourceHandle);
  return event->recorded == nullptr ? cudaSuccess : give(put(stream, nullptr, nullptr, event->recorded));
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  const Lock lock;
  return cudaEventCreateWithFlags(event, cudaEventDefault);
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  const Lock lock;
  if (event == nullptr || flags > (cudaEventBlockingSync | cudaEventDisableTiming)) return give(cudaErrorInvalidValue);
  if (!is_there()) return give(cudaErrorNoDevice);
  if (!take_resource()) return give(cudaErrorMemoryAllocation);
  start(this_thread().device());
  ++machine().counts.events;
  *event = new CUevent_st{this_thread().device(), (flags & cudaEventDisableTiming) == 0, nullptr};
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  const Lock lock;
  if (event == nullptr) return give(cudaErrorInvalidResourceHandle);
  --machine().counts.events;
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  const Lock lock;
  if (event == nullptr) return give(cudaErrorInvalidResourceHandle);
  const CUstream_st* const known = find(stream);
  if (known != nullptr && known->device != event->device) return give(cudaErrorInvalidResourceHandle);
  return give(put(stream, nullptr, &event->recorded));
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  const Lock lock;
  if (event == nullptr) return give(cudaErrorInvalidResourceHandle);
  const Done recorded = event->recorded;
  while (recorded != nullptr && *recorded == 0) run_one();
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  const Lock lock;
  if (event == nullptr) return give(cudaErrorInvalidResourceHandle);
  if (event->recorded == nullptr || *event->recorded != 0) return cudaSuccess;
  run_one();
  return cudaErrorNotReady;
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  const Lock lock;
  const auto is_usable = [](cudaEvent_t event) {
    return event != nullptr && event->has_time && event->recorded != nullptr;
  };
  if (!is_usable(start) || !is_usable(end) || start->device != end->device) {
    return give(cudaErrorInvalidResourceHandle);
  }
  if (*start->recorded == 0 || *end->recorded == 0) return cudaErrorNotReady;
  *milliseconds = (static_cast<float>(*end->recorded) - static_cast<float>(*start->recorded)) / 1000;
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  const Lock lock;
  CUstream_st* const known = find(stream);
  if (known == nullptr) return give(cudaErrorInvalidResourceHandle);
  if (known->is_legacy) return give(cudaErrorStreamCaptureUnsupported);
  if (known->captured != nullptr) return give(cudaErrorInvalidValue);
  known->captured = std::make_unique<CUgraph_st>();
  known->capture_failed = false;
  known->capture_forbids = mode != cudaStreamCaptureModeRelaxed;
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  const Lock lock;
  CUstream_st* const known = find(stream);
  *graph = nullptr;
  if (known == nullptr) return give(cudaErrorInvalidResourceHandle);
  if (known->captured == nullptr) return give(cudaErrorStreamCaptureUnmatched);
  const std::unique_ptr<CUgraph_st> captured = std::move(known->captured);
  if (known->capture_failed) return give(cudaErrorStreamCaptureInvalidated);
  *graph = new CUgraph_st(*captured);
  return cudaSuccess;
}
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  if (mode == nullptr || *mode > cudaStreamCaptureModeRelaxed) return give(cudaErrorInvalidValue);
  std::swap(*mode, this_thread().capture_mode);
  return cudaSuccess;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  const Lock lock;
  CUstream_st* const known = find(stream);
  if (known == nullptr) return give(cudaErrorInvalidResourceHandle);
  *status = known->captured == nullptr ? cudaStreamCaptureStatusNone
            : known->capture_failed    ? cudaStreamCaptureStatusInvalidated
                                       : cudaStreamCaptureStatusActive;
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long) {
  const Lock lock;
  if (exec == nullptr || graph == nullptr) return give(cudaErrorInvalidValue);
  *exec = new CUgraphExec_st{graph->nodes};
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  const Lock lock;
  if (exec == nullptr) return give(cudaErrorInvalidValue);
  for (const auto& node : exec->nodes) {
    if (const cudaError_t error = put(stream, node); error != cudaSuccess) return give(error);
  }
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  const Lock lock;
  delete exec;
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  const Lock lock;
  delete graph;
  return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute attribute, int value) {
  const Lock lock;
  if (!is_there()) return give(cudaErrorNoDevice);
  if (!machine().control.has_code) return give(cudaErrorNoKernelImageForDevice);
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaSuccess;
  if (value < 0 || static_cast<size_t>(value) > machine().control.shared_of_block) return give(cudaErrorInvalidValue);
  machine().max_shared[kernel] = static_cast<size_t>(value);
  return cudaSuccess;
}
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* kernel) {
  const Lock lock;
  if (!is_there()) return give(cudaErrorNoDevice);
  if (!machine().control.has_code) return give(cudaErrorNoKernelImageForDevice);
  *attributes = {};
  attributes->maxThreadsPerBlock = kMaxThreads;
  attributes->numRegs = 64;
  attributes->ptxVersion = attributes->binaryVersion = 90;
  attributes->maxDynamicSharedSizeBytes = static_cast<int>(max_shared(kernel));
  return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* kernel, int threads, size_t shared) {
  const Lock lock;
  if (!is_there()) return give(cudaErrorNoDevice);
  if (!machine().control.has_code) return give(cudaErrorNoKernelImageForDevice);
  if (threads <= 0 || threads > static_cast<int>(kMaxThreads)) return give(cudaErrorInvalidValue);
  const size_t by_shared = (size_t{228} << 10) / (shared + (1 << 10));
  *blocks = shared > max_shared(kernel)
                ? 0
                : static_cast<int>(std::min({size_t{32}, by_shared, size_t{2048} / static_cast<size_t>(threads)}));
  return cudaSuccess;
}
