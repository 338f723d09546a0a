// The settings and counters of the emulated machine for tests, and how kernels are added to its streams.
#pragma once

#include <functional>
#include <random>
#include <utility>
#include <vector>

#include "cuda_runtime_api.h"

namespace emulated {

constexpr size_t kSharedBytes = 227 << 10;        // the most that a block may have
constexpr size_t kSharedBytesUnasked = 48 << 10;  // without cudaFuncSetAttribute
constexpr uint32_t kMaxThreads = 1024;            // of a block

// A kernel whose turn has come: its address, and where its arguments are.
struct KernelCall {
  const void* kernel;
  uint32_t blocks, threads;
  std::vector<std::pair<const void*, size_t>> arguments;
};

struct Control {
  int devices = 1;
  int multiprocessors = 2;
  size_t shared_of_block = kSharedBytes, shared_of_processor = 228 << 10;
  bool has_code = true;                      // whether kernels were compiled for the device
  uint64_t work_accepted = UINT64_MAX;       // so much more goes into streams; what comes then fails, once
  uint64_t resources_accepted = UINT64_MAX;  // the same of memory, streams and events that are made
  // Runs kernels in place of the emulated GPU, if it is set. `run` runs this one on the emulated GPU.
  std::function<void(const KernelCall& call, const std::function<void()>& run)> executor;
};
Control& control();

// Since the program started.
struct Counts {
  uint64_t allocations = 0;  // of device and pinned memory, tried ones too
  uint64_t work = 0;         // put into streams and graphs
  uint64_t kernels = 0;      // of that
  uint64_t bytes_to_device = 0;
  uint64_t contexts = 0;  // a bit for each device that has one
  uint64_t events = 0;    // that are there
};
const Counts& counts();
// Memory, streams and events that are there.
uint32_t resources();
// Whether nothing is left in any stream.
bool is_idle();
// Begins anew with Counts::contexts.
void forget_contexts();

// Decides about every order that CUDA leaves open.
std::mt19937& dice();

// Puts a kernel into a stream; `run` is called when its turn has come.
cudaError_t put_kernel(cudaStream_t stream, const void* kernel, uint32_t blocks, uint32_t threads, size_t shared,
                       std::function<void()> run);

}  // namespace emulated
