// Tests of the emulated GPU itself: its lanes, blocks, streams, events and graphs follow CUDA's rules, and it detects
// what CUDA forbids.
#include "emulated_gpu.h"

#include <gtest/gtest.h>

namespace {

using emulated::control;
using emulated::counts;

// Device memory for the time of a test.
template <class T>
struct OnDevice {
  explicit OnDevice(size_t size) : count(size) { EXPECT_EQ(cudaMalloc(&data, size * sizeof(T)), cudaSuccess); }
  ~OnDevice() { EXPECT_EQ(cudaFree(data), cudaSuccess); }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

  void put(const std::vector<T>& values) {
    EXPECT_EQ(cudaMemcpy(data, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice), cudaSuccess);
  }
  std::vector<T> get() const {
    std::vector<T> values(count);
    EXPECT_EQ(cudaMemcpy(values.data(), data, count * sizeof(T), cudaMemcpyDeviceToHost), cudaSuccess);
    return values;
  }

  T* data = nullptr;
  size_t count;
};

struct Stream {
  explicit Stream(unsigned flags = cudaStreamNonBlocking) {
    EXPECT_EQ(cudaStreamCreateWithFlags(&stream, flags), cudaSuccess);
  }
  ~Stream() { EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  operator cudaStream_t() const { return stream; }

  cudaStream_t stream = nullptr;
};

// A way to a half's or bfloat's value that has nothing in common with the one that is tested.
double value_of(uint32_t bits, int exponent_bits, int mantissa_bits) {
  const uint32_t mantissa = bits & ((1u << mantissa_bits) - 1);
  const int exponent = static_cast<int>(bits >> mantissa_bits & ((1u << exponent_bits) - 1));
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const double magnitude = exponent == 0
                               ? std::ldexp(mantissa, 1 - bias - mantissa_bits)
                               : std::ldexp(mantissa + (1u << mantissa_bits), exponent - bias - mantissa_bits);
  return bits >> (exponent_bits + mantissa_bits) != 0 ? -magnitude : magnitude;
}

// All numbers of the format, what lies in the middle between two, and the floats beside that.
void expect_nearest(uint32_t (*rounded)(float), int exponent_bits, int mantissa_bits) {
  const uint32_t infinity = ((1u << exponent_bits) - 1) << mantissa_bits;
  for (const uint32_t sign : {0u, 0x8000u}) {
    for (uint32_t bits = 0; bits < infinity; ++bits) {
      const double here = value_of(sign | bits, exponent_bits, mantissa_bits);
      const double above = value_of(sign | (bits + 1), exponent_bits, mantissa_bits);  // as if there was no infinity
      ASSERT_EQ(rounded(static_cast<float>(here)), sign | bits);
      const float middle = static_cast<float>((here + above) / 2);
      if (static_cast<double>(middle) != (here + above) / 2) continue;  // below the least float
      const uint32_t even = bits % 2 == 0 ? bits : bits + 1;
      ASSERT_EQ(rounded(middle), sign | even) << bits;
      ASSERT_EQ(rounded(std::nextafterf(middle, static_cast<float>(here))), sign | bits) << bits;
      ASSERT_EQ(rounded(std::nextafterf(middle, sign != 0 ? -INFINITY : INFINITY)), sign | (bits + 1)) << bits;
    }
    const float end = sign != 0 ? -INFINITY : INFINITY;
    EXPECT_EQ(rounded(end), sign | infinity);
    EXPECT_EQ(rounded(std::nextafterf(end, 0)), sign | infinity);
  }
  for (const uint32_t nan : {0x7F800001u, 0x7FC00000u, 0x7FFFFFFFu, 0xFF800001u, 0xFFFFFFFFu}) {
    EXPECT_EQ(rounded(std::bit_cast<float>(nan)), 0x7FFFu);
  }
}

TEST(EmulatedGpu, HalvesAreRoundedToNearest) {
  expect_nearest(l3::half_of, 5, 10);
  EXPECT_EQ(l3::half_of(1.0f), 0x3C00u);
  EXPECT_EQ(l3::half_of(65519.996f), 0x7BFFu);
  EXPECT_EQ(l3::half_of(65520.0f), 0x7C00u);
  EXPECT_EQ(l3::half_of(0x1p-25f), 0u);
  EXPECT_EQ(l3::half_of(0x1.000002p-25f), 1u);
}
TEST(EmulatedGpu, BfloatsAreRoundedToNearest) {
  expect_nearest(l3::bfloat_of, 8, 7);
  EXPECT_EQ(l3::bfloat_of(1.0f), 0x3F80u);
  EXPECT_EQ(l3::bfloat_of(0x1.01p0f), 0x3F80u);
  EXPECT_EQ(l3::bfloat_of(0x1.03p0f), 0x3F82u);
}

constexpr uint32_t kAll = UINT32_MAX;

__global__ void talk(uint32_t* wrong) {
  const uint32_t lane = threadIdx.x % 32;
  const auto expect = [&](bool holds) { *wrong += !holds; };
  expect(__shfl_sync(kAll, uint64_t{lane} << 40, 7) == uint64_t{7} << 40);
  expect(__shfl_sync(kAll, static_cast<int>(lane) - 9, 3) == -6);
  expect(__shfl_sync(kAll, static_cast<float>(lane), 5) == 5.0f);
  expect(__shfl_xor_sync(kAll, lane, 5) == (lane ^ 5));
  expect(__shfl_up_sync(kAll, lane, 4) == (lane < 4 ? lane : lane - 4));
  expect(__shfl_down_sync(kAll, lane, 4) == (lane < 28 ? lane + 4 : lane));
  expect(__any_sync(kAll, lane == 9) && !__any_sync(kAll, lane == 32) && !__all_sync(kAll, lane != 9));
  expect(__ballot_sync(kAll, lane % 2 == 1) == 0xAAAAAAAA);
  expect(__match_any_sync(kAll, lane / 4) == 0xFu << (lane / 4 * 4));
  expect(__reduce_add_sync(kAll, lane) == 496);
  expect(__reduce_min_sync(kAll, lane + 3) == 3 && __reduce_max_sync(kAll, lane) == 31);
  expect(__reduce_or_sync(kAll, 1u << lane) == kAll && __reduce_and_sync(kAll, ~(1u << lane)) == 0);
  expect(__syncthreads_count(threadIdx.x % 3 == 0) == static_cast<int>((blockDim.x + 2) / 3));
  expect(__syncthreads_or(threadIdx.x == 40) != 0 && __syncthreads_or(0) == 0);
  expect(__syncthreads_and(1) != 0 && __syncthreads_and(threadIdx.x != 1) == 0);
  expect(__clz(1) == 31 && __ffs(8) == 4 && __ffs(0) == 0 && __brev(1) == 0x80000000 && __popcll(UINT64_MAX) == 64);
  expect(__funnelshift_r(0x11223344, 0x55667788, 8) == 0x88112233);
  expect(__float2uint_rn(2.5f) == 2 && __float2uint_rn(-1.0f) == 0 && __float2uint_rn(1e20f) == UINT32_MAX);
}

TEST(EmulatedGpu, LanesAndThreadsTalk) {
  OnDevice<uint32_t> wrong(1);
  wrong.put({0});
  ASSERT_EQ(l3::launch(talk, 3, 1024, 0, nullptr, wrong.data), cudaSuccess);
  EXPECT_EQ(wrong.get()[0], 0u);
}

// A sum through shared memory; warps but the first leave before the end.
__global__ void add_up(const uint32_t* numbers, uint32_t count, uint32_t* next, unsigned long long* sum, uint4* order) {
  uint32_t* const shared = reinterpret_cast<uint32_t*>(l3::shared);
  for (;;) {
    if (threadIdx.x == 0) shared[0] = atomicAdd(next, blockDim.x);
    __syncthreads();
    const uint32_t first = shared[0];
    __syncthreads();
    if (first >= count) break;
    if (threadIdx.x == 0) order[first / blockDim.x] = make_uint4(blockIdx.x, gridDim.x, 0, 0);
    const uint32_t i = first + threadIdx.x;
    shared[threadIdx.x] = i < count ? __ldg(numbers + i) : 0;
    for (uint32_t half = blockDim.x / 2; half > 0; half /= 2) {
      __syncthreads();
      if (threadIdx.x < half) shared[threadIdx.x] += shared[threadIdx.x + half];
    }
    if (threadIdx.x == 0) atomicAdd(sum, static_cast<unsigned long long>(shared[0]));
    __syncthreads();
  }
  if (threadIdx.x >= 32) return;
  __syncthreads();
}

TEST(EmulatedGpu, BlocksTakeWorkInAnyOrder) {
  const uint32_t count = 1000;
  std::vector<uint32_t> numbers(count);
  for (uint32_t i = 0; i < count; ++i) numbers[i] = i;
  OnDevice<uint32_t> on_device(count), next(1);
  OnDevice<unsigned long long> sum(1);
  OnDevice<uint4> order(8);
  on_device.put(numbers);
  bool first_goes_first = false, first_goes_last = false;
  for (int round = 0; round < 20; ++round) {
    next.put({0});
    sum.put({0});
    ASSERT_EQ(l3::launch(add_up, 4, 128, 512, nullptr, on_device.data, count, next.data, sum.data, order.data),
              cudaSuccess);
    EXPECT_EQ(sum.get()[0], uint64_t{count} * (count - 1) / 2);
    (order.get()[0].x == 0 ? first_goes_first : first_goes_last) = true;
    EXPECT_EQ(order.get()[0].y, 4u);
  }
  EXPECT_TRUE(first_goes_first && first_goes_last);
}

__global__ void race(uint32_t* last) { *last = threadIdx.x; }

TEST(EmulatedGpu, AnyThreadMayBeTheLast) {
  OnDevice<uint32_t> last(1);
  std::vector<uint32_t> seen;
  for (int round = 0; round < 60; ++round) {
    ASSERT_EQ(l3::launch(race, 1, 64, 0, nullptr, last.data), cudaSuccess);
    seen.push_back(last.get()[0]);
  }
  std::sort(seen.begin(), seen.end());
  EXPECT_LT(seen.front(), 16u);
  EXPECT_GT(seen.back(), 48u);
}

__global__ void scale(uint32_t* numbers, uint32_t by, uint32_t plus) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  numbers[i] = numbers[i] * by + plus;
}

TEST(EmulatedGpu, WorkWaitsUntilSomethingWaitsForIt) {
  const Stream stream;
  OnDevice<uint32_t> numbers(64);
  uint32_t* pinned = nullptr;
  ASSERT_EQ(cudaMallocHost(&pinned, 256), cudaSuccess);
  std::fill(pinned, pinned + 64, 1u);
  ASSERT_EQ(cudaMemcpyAsync(numbers.data, pinned, 256, cudaMemcpyHostToDevice, stream), cudaSuccess);
  ASSERT_EQ(l3::launch(scale, 2, 32, 0, stream, numbers.data, 3, 1), cudaSuccess);
  ASSERT_EQ(cudaMemcpyAsync(pinned, numbers.data, 256, cudaMemcpyDeviceToHost, stream), cudaSuccess);
  EXPECT_EQ(pinned[63], 1u);
  pinned[0] = 2;  // too early
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(pinned[0], 7u);
  EXPECT_EQ(pinned[63], 4u);
  ASSERT_EQ(cudaFreeHost(pinned), cudaSuccess);
}

TEST(EmulatedGpu, StreamsRespectEventsAndTheDefaultStream) {
  const Stream blocking(cudaStreamDefault), other;
  OnDevice<uint32_t> numbers(32);
  cudaEvent_t event = nullptr;
  ASSERT_EQ(cudaEventCreate(&event), cudaSuccess);
  for (int round = 0; round < 30; ++round) {
    ASSERT_EQ(cudaMemset(numbers.data, 0, 128), cudaSuccess);
    ASSERT_EQ(l3::launch(scale, 1, 32, 0, blocking, numbers.data, 1, 2), cudaSuccess);
    ASSERT_EQ(l3::launch(scale, 1, 32, 0, nullptr, numbers.data, 3, 0), cudaSuccess);
    ASSERT_EQ(l3::launch(scale, 1, 32, 0, blocking, numbers.data, 5, 0), cudaSuccess);
    ASSERT_EQ(cudaEventRecord(event, blocking), cudaSuccess);
    ASSERT_EQ(cudaStreamWaitEvent(other, event), cudaSuccess);
    ASSERT_EQ(l3::launch(scale, 1, 32, 0, other, numbers.data, 1, 7), cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(other), cudaSuccess);
    EXPECT_EQ(cudaEventQuery(event), cudaSuccess);
    EXPECT_EQ(numbers.get()[5], 37u);
  }
  ASSERT_EQ(cudaEventDestroy(event), cudaSuccess);
  // Without an event streams go in any order.
  bool first = false, last = false;
  for (int round = 0; round < 30; ++round) {
    ASSERT_EQ(cudaMemset(numbers.data, 0, 128), cudaSuccess);
    ASSERT_EQ(l3::launch(scale, 1, 32, 0, blocking, numbers.data, 1, 2), cudaSuccess);
    ASSERT_EQ(l3::launch(scale, 1, 32, 0, other, numbers.data, 3, 0), cudaSuccess);
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    (numbers.get()[0] == 6 ? first : last) = true;
  }
  EXPECT_TRUE(first && last);
}

TEST(EmulatedGpu, GraphsRepeatWhatWasCaptured) {
  const Stream stream;
  OnDevice<uint32_t> numbers(32);
  numbers.put(std::vector<uint32_t>(32, 1));
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
  ASSERT_EQ(l3::launch(scale, 1, 32, 0, stream, numbers.data, 2, 1), cudaSuccess);
  ASSERT_EQ(cudaMemsetAsync(numbers.data, 0, 4, stream), cudaSuccess);
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  EXPECT_EQ(numbers.get()[1], 1u);
  cudaGraphExec_t exec = nullptr;
  ASSERT_EQ(cudaGraphInstantiate(&exec, graph), cudaSuccess);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(cudaGraphLaunch(exec, stream), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(numbers.get()[1], 15u);
  EXPECT_EQ(numbers.get()[0], 0u);
  ASSERT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
  ASSERT_EQ(cudaGraphDestroy(graph), cudaSuccess);
}

TEST(EmulatedGpu, CaptureForbidsWhatCudaForbids) {
  const Stream stream;
  void* memory = nullptr;
  cudaGraph_t graph = nullptr;
  const auto try_it = [&](const std::function<cudaError_t()>& call) {
    EXPECT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
    EXPECT_NE(call(), cudaSuccess);
    EXPECT_NE(cudaStreamEndCapture(stream, &graph), cudaSuccess);
    EXPECT_NE(cudaGetLastError(), cudaSuccess);
  };
  try_it([&] { return cudaMalloc(&memory, 16); });
  try_it([&] { return cudaStreamSynchronize(stream); });
  try_it([&] { return cudaDeviceSynchronize(); });
  try_it([&] { return cudaFree(nullptr); });
  OnDevice<uint32_t> numbers(32);
  try_it([&] { return cudaMemset(numbers.data, 0, 128); });
}

TEST(EmulatedGpu, RefusesWhatGpusRefuse) {
  OnDevice<uint32_t> numbers(2048);
  EXPECT_EQ(l3::launch(scale, 0, 32, 0, nullptr, numbers.data, 1, 0), cudaErrorInvalidConfiguration);
  EXPECT_EQ(l3::launch(scale, 1, 2048, 0, nullptr, numbers.data, 1, 0), cudaErrorInvalidConfiguration);
  EXPECT_EQ(l3::launch(scale, 1, 32, 49153, nullptr, numbers.data, 1, 0), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFuncSetAttribute(scale, cudaFuncAttributeMaxDynamicSharedMemorySize, 227 << 10), cudaSuccess);
  EXPECT_EQ(l3::launch(scale, 1, 32, 227 << 10, nullptr, numbers.data, 1, 0), cudaSuccess);
  EXPECT_NE(cudaFuncSetAttribute(scale, cudaFuncAttributeMaxDynamicSharedMemorySize, (227 << 10) + 1), cudaSuccess);
  EXPECT_NE(cudaMemset(numbers.data + 2000, 0, 196), cudaSuccess);
  EXPECT_NE(cudaMemcpy(numbers.data, numbers.data + 1, 4, cudaMemcpyHostToDevice), cudaSuccess);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

TEST(EmulatedGpu, DoesWhatTestsAskFor) {
  OnDevice<uint32_t> numbers(32);
  const uint64_t before = counts().kernels;
  control().work_accepted = 1;
  EXPECT_EQ(l3::launch(scale, 1, 32, 0, nullptr, numbers.data, 1, 0), cudaSuccess);
  EXPECT_EQ(l3::launch(scale, 1, 32, 0, nullptr, numbers.data, 1, 0), cudaErrorLaunchFailure);
  EXPECT_EQ(l3::launch(scale, 1, 32, 0, nullptr, numbers.data, 1, 0), cudaSuccess);
  EXPECT_EQ(counts().kernels - before, 2u);
  control().has_code = false;
  EXPECT_EQ(l3::launch(scale, 1, 32, 0, nullptr, numbers.data, 1, 0), cudaErrorNoKernelImageForDevice);
  control().has_code = true;
  int devices = 7;
  control().devices = 0;
  EXPECT_EQ(cudaGetDeviceCount(&devices), cudaErrorNoDevice);
  EXPECT_EQ(devices, 0);
  EXPECT_EQ(cudaGetLastError(), cudaErrorNoDevice);
  EXPECT_EQ(l3::launch(scale, 1, 32, 0, nullptr, numbers.data, 1, 0), cudaErrorNoDevice);
  control().devices = 1;
}

// ---- what a kernel does wrong

__global__ void unlike(uint32_t) {
  if (threadIdx.x % 2 == 0) __syncwarp();
  __syncwarp();
}
__global__ void leaves(uint32_t) {
  if (threadIdx.x == 5) return;
  __syncwarp();
}
__global__ void divided(uint32_t) {
  if (threadIdx.x < 32) __syncthreads();
  __syncthreads();
}
__global__ void outside(uint32_t address) { (void)l3::load_shared_u8<0>(address); }
__global__ void unaligned(uint32_t address) { (void)l3::load_shared_four<0>(address); }

TEST(EmulatedGpuDeathTest, NoticesWhatKernelsDoWrong) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto run = [](void (*kernel)(uint32_t), uint32_t argument) {
    (void)!l3::launch(kernel, 1, 64, 64, nullptr, argument);
    (void)!cudaDeviceSynchronize();
  };
  EXPECT_DEATH(run(unlike, 0), "met its warp at another place");
  EXPECT_DEATH(run(leaves, 0), "left while its warp met");
  EXPECT_DEATH(run(divided, 0), "met its block at another place");
  EXPECT_DEATH(run(outside, 64), "outside shared memory");
  EXPECT_DEATH(run(unaligned, 4), "unaligned in shared memory");
}

#if defined(__SANITIZE_ADDRESS__)

__global__ void store_shared(uint32_t at) { reinterpret_cast<uint8_t*>(l3::shared)[at] = 1; }

TEST(EmulatedGpuDeathTest, SanitizersSeeEveryMemory) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  OnDevice<uint32_t> numbers(33);
  EXPECT_DEATH(numbers.data[0] = 1, "use-after-poison");
  const auto run = [&](uint32_t blocks) {
    (void)!l3::launch(scale, blocks, 32, 0, nullptr, numbers.data, 1, 0);
    (void)!cudaDeviceSynchronize();
  };
  run(1);
  EXPECT_DEATH(run(2), "heap-buffer-overflow");
  const auto store = [](uint32_t at) {
    (void)!l3::launch(store_shared, 1, 32, 100, nullptr, at);
    (void)!cudaDeviceSynchronize();
  };
  store(99);
  EXPECT_DEATH(store(100), "use-after-poison");
}

#endif

}  // namespace
