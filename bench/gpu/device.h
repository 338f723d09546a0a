// The device: what it is, how fast memory and link are, and errors of the CUDA runtime.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "l3/l3_cuda.hpp"

namespace gpu_bench {

// An exception that ends the current case. main.cpp catches and prints it.
class Failure : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

void check(cudaError_t code, const char* what);

// Returns the value, or throws a Failure that names `what` failed.
template <class Value>
Value take(l3::Result<Value> result, const char* what) {
  if (!result) throw Failure(std::string(what) + ": " + l3::message(result.error()));
  return std::move(*result);
}

// Times between points of a stream.
class Stopwatch {
 public:
  explicit Stopwatch(size_t laps);
  // Records a point of time in the stream, at most `laps` times.
  void lap(cudaStream_t stream);
  // Seconds from each lap to the next, once the streams have passed all of them.
  std::vector<double> seconds() const;

 private:
  std::vector<l3::cuda::Event> events_;
  size_t laps_ = 0;
};

struct Device {
  std::string name, driver;
  uint64_t l2_bytes = 0;
  double link_bytes_per_second = 0;  // a plain copy from pinned memory
  double copy_bytes_per_second = 0;  // a copy within the device's memory, read plus written
};

// The current device, in words.
std::string describe_device();

// Measures the current device.
Device query_device();

// "SM 1980 MHz of 1980, memory 3201 MHz" as the driver's management library says now; empty where there is none.
std::string clocks();

// Keeps the stream busy for a while, so that the host's next calls are queued before the device comes to them.
void stall_stream(cudaStream_t stream, const l3::cuda::DeviceBuffer& scratch);

}  // namespace gpu_bench
