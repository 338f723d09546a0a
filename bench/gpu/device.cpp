#include "device.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>

#include "base/median.h"

namespace gpu_bench {
namespace {

using l3::cuda::DeviceBuffer;
using l3::cuda::PinnedBuffer;

constexpr uint64_t kLinkBytes = uint64_t{256} << 20;
constexpr uint64_t kCopyBytes = uint64_t{1} << 30;
constexpr int kCopies = 10;

// What this program asks of libnvidia-ml.so.1, which comes with the driver and has no header of its own there.
class Management {
 public:
  Management() {
    library_ = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    if (library_ == nullptr) return;
    char bus[32] = {};
    int device = 0;
    working_ = find(init_, "nvmlInit_v2") && find(by_bus_, "nvmlDeviceGetHandleByPciBusId_v2") &&
               find(driver_, "nvmlSystemGetDriverVersion") && find(clock_, "nvmlDeviceGetClockInfo") &&
               find(max_, "nvmlDeviceGetMaxClockInfo") && init_() == 0 && cudaGetDevice(&device) == cudaSuccess &&
               cudaDeviceGetPCIBusId(bus, sizeof(bus), device) == cudaSuccess && by_bus_(bus, &device_) == 0;
  }

  static const Management& get() {
    static const Management management;
    return management;
  }

  std::string driver() const {
    char text[96] = {};
    return working_ && driver_(text, sizeof(text)) == 0 ? text : "";
  }

  // MHz of a kind of clock, or "?".
  std::string now(unsigned kind) const { return megahertz(clock_, kind); }
  std::string maximum(unsigned kind) const { return megahertz(max_, kind); }
  bool working() const { return working_; }

 private:
  using Clock = int (*)(void*, unsigned, unsigned*);

  template <class Function>
  bool find(Function& function, const char* name) {
    function = reinterpret_cast<Function>(dlsym(library_, name));
    return function != nullptr;
  }
  std::string megahertz(Clock clock, unsigned kind) const {
    unsigned value = 0;
    return working_ && clock(device_, kind, &value) == 0 ? std::to_string(value) : "?";
  }

  void* library_ = nullptr;
  void* device_ = nullptr;
  bool working_ = false;
  int (*init_)() = nullptr;
  int (*by_bus_)(const char*, void**) = nullptr;
  int (*driver_)(char*, unsigned) = nullptr;
  Clock clock_ = nullptr, max_ = nullptr;
};

// Bytes of `size` a second that `copy` moves, the median of some.
double rate(uint64_t size, const std::function<cudaError_t(cudaStream_t)>& copy) {
  const l3::cuda::Stream stream = take(l3::cuda::make_stream(), "a stream");
  check(copy(stream.get()), "a copy");  // the first one may be slower
  Stopwatch watch(kCopies + 1);
  watch.lap(stream.get());
  for (int i = 0; i < kCopies; ++i) {
    check(copy(stream.get()), "a copy");
    watch.lap(stream.get());
  }
  check(cudaStreamSynchronize(stream.get()), "copies");
  return static_cast<double>(size) / base::median(watch.seconds());
}

// Without the measurements.
Device identify() {
  Device device;
  int index = 0, driver = 0, l2_bytes = 0;
  cudaDeviceProp properties{};
  check(cudaGetDevice(&index), "the device");
  check(cudaGetDeviceProperties(&properties, index), "the device's properties");
  check(cudaDriverGetVersion(&driver), "the driver's version");
  check(cudaDeviceGetAttribute(&l2_bytes, cudaDevAttrL2CacheSize, index), "the size of the cache");
  device.name = properties.name;
  device.driver = Management::get().driver();
  if (!device.driver.empty()) device.driver += ", ";
  device.driver += "CUDA " + std::to_string(driver / 1000) + "." + std::to_string(driver % 1000 / 10);
  device.l2_bytes = static_cast<uint64_t>(l2_bytes);
  return device;
}

}  // namespace

void check(cudaError_t code, const char* what) {
  if (code != cudaSuccess) throw Failure(std::string(what) + ": " + cudaGetErrorString(code));
}

Stopwatch::Stopwatch(size_t laps) {
  while (events_.size() < laps) events_.push_back(take(l3::cuda::make_event(cudaEventDefault), "an event"));
}

void Stopwatch::lap(cudaStream_t stream) {
  check(cudaEventRecord(events_.at(laps_++).get(), stream), "recording an event");
}

std::vector<double> Stopwatch::seconds() const {
  std::vector<double> seconds;
  for (size_t i = 1; i < laps_; ++i) {
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, events_[i - 1].get(), events_[i].get()), "the time between events");
    seconds.push_back(static_cast<double>(milliseconds) / 1e3);
  }
  return seconds;
}

std::string describe_device() {
  const Device device = identify();
  return device.name + ", driver " + device.driver;
}

Device query_device() {
  Device device = identify();
  size_t free = 0, total = 0;
  check(cudaMemGetInfo(&free, &total), "the device's memory");
  const uint64_t copy_bytes = std::min<uint64_t>(kCopyBytes, free / 8);
  const DeviceBuffer from = take(DeviceBuffer::make(copy_bytes), "memory to copy"),
                     to = take(DeviceBuffer::make(copy_bytes), "memory to copy to");
  check(cudaMemset(from.data(), 1, copy_bytes), "filling memory");
  device.copy_bytes_per_second = rate(2 * copy_bytes, [&](cudaStream_t stream) {
    return cudaMemcpyAsync(to.data(), from.data(), copy_bytes, cudaMemcpyDeviceToDevice, stream);
  });
  const uint64_t link_bytes = std::min(kLinkBytes, copy_bytes);
  const PinnedBuffer pinned = take(PinnedBuffer::make(link_bytes), "pinned memory");
  std::fill_n(pinned.bytes(), link_bytes, uint8_t{1});
  device.link_bytes_per_second = rate(link_bytes, [&](cudaStream_t stream) {
    return cudaMemcpyAsync(to.data(), pinned.data(), link_bytes, cudaMemcpyHostToDevice, stream);
  });
  return device;
}

std::string clocks() {
  constexpr unsigned kMultiprocessors = 1, kMemory = 2;
  const Management& management = Management::get();
  if (!management.working()) return "";
  return "SM " + management.now(kMultiprocessors) + " MHz of " + management.maximum(kMultiprocessors) + ", memory " +
         management.now(kMemory) + " MHz of " + management.maximum(kMemory);
}

void stall_stream(cudaStream_t stream, const l3::cuda::DeviceBuffer& scratch) {
  constexpr int kFills = 32;
  for (int i = 0; i < kFills; ++i) check(cudaMemsetAsync(scratch.data(), i, scratch.size(), stream), "filling memory");
}

}  // namespace gpu_bench
