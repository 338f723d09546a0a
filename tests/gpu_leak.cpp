// Tests for memory leaks: ten thousand calls with good and damaged files, with decoders made and destroyed.
//
// Usage: gpu_leak [CALLS]   (10000). Exit status: 77 without a device.
#include <fstream>

#include "gpu_files.h"

namespace {

using namespace gpu_files;
using l3::cuda::Decoder;
using l3::cuda::DeviceBuffer;
using l3::cuda::Stream;

constexpr uint32_t kCalls = 10'000;
constexpr uint32_t kImages = 8;
constexpr uint32_t kQueued = 64;     // calls before the host waits
constexpr int64_t kNoise = 4 << 20;  // bytes; the device's memory is also other programs'
constexpr int kTries = 3;

struct Memory {
  int64_t device, host;  // bytes in use
};

Memory memory_in_use() {
  check(cudaDeviceSynchronize(), "the device");
  size_t free = 0, total = 0;
  check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  std::ifstream status("/proc/self/statm");
  int64_t all = 0, resident = 0;
  status >> all >> resident;
  return {static_cast<int64_t>(total - free), resident * 4096};
}

// One decoder and its files.
class Caller {
 public:
  explicit Caller(std::vector<const Sample*> samples)
      : samples_(std::move(samples)),
        places_(samples_),
        files_(take(DeviceBuffer::make(places_.file_bytes), "device memory")),
        output_(take(DeviceBuffer::make(places_.output_bytes), "device memory")),
        decoder_(take(Decoder::make(places_.capacity), "a decoder")),
        stream_(take(l3::cuda::make_stream(), "a stream")) {
    check(cudaMemset(files_.data(), 0, files_.size()), "cudaMemset");
    for (size_t i = 0; i < samples_.size(); ++i) {
      check(cudaMemcpy(files_.bytes() + places_.files[i], samples_[i]->file.data(), samples_[i]->file.size(),
                       cudaMemcpyHostToDevice),
            "cudaMemcpy");
      l3_cuda_image& image = decoder_.images()[i];
      image = samples_[i]->wanted;
      image.data = files_.bytes() + places_.files[i];
      image.out = output_.bytes() + places_.outputs[i];
    }
    check(cudaDeviceSynchronize(), "the device");
  }

  void call(uint32_t times) {
    for (uint32_t i = 0; i < times; ++i) {
      l3_error error{};
      if (decoder_.decode(static_cast<uint32_t>(samples_.size()), stream_.get(), &error) != L3_OK) {
        stop("the call: " + l3::message(error));
      }
      if (i % kQueued == kQueued - 1 && decoder_.wait(&error) != L3_OK) stop("a call: " + l3::message(error));
    }
    l3_error error{};
    if (decoder_.wait(&error) != L3_OK) stop("a call: " + l3::message(error));
    for (uint32_t i = 0; i < samples_.size(); ++i) {
      if (decoder_.result(i).status != samples_[i]->error.status) stop(samples_[i]->name + ": another verdict");
    }
  }

 private:
  std::vector<const Sample*> samples_;
  Places places_;
  DeviceBuffer files_, output_;
  Decoder decoder_;
  Stream stream_;
};

}  // namespace

int main(int count, char** arguments) {
  const uint32_t calls = count > 1 ? static_cast<uint32_t>(std::atoi(arguments[1])) : kCalls;
  want_device("gpu_leak");
  const std::vector<Sample> good = good_samples(), bad = bad_samples(good);
  std::vector<const Sample*> samples;
  for (uint32_t i = 0; i < kImages; ++i) samples.push_back(i % 2 == 0 ? &good[i] : &bad[(i * 11) % bad.size()]);

  const auto make_and_drop = [&](uint32_t times) {
    for (uint32_t i = 0; i < times; ++i) {
      Caller(samples).call(1);
      const Sample& one = *samples[i % kImages];
      const auto decoded = l3::cuda::decode(one.file);
      if (bool{decoded} != (one.error.status == L3_OK)) stop(one.name + ": another verdict of decode()");
    }
  };
  for (int attempt = 1;; ++attempt) {
    Caller caller(samples);
    caller.call(std::min(calls, 500U));
    make_and_drop(20);
    const Memory before = memory_in_use();
    caller.call(calls);
    const Memory between = memory_in_use();
    make_and_drop(100);
    const Memory after = memory_in_use();
    std::printf(
        "leaks: %u calls: %+lld bytes on the device, %+lld in the host; 100 decoders: %+lld and %+lld\n", calls,
        static_cast<long long>(between.device - before.device), static_cast<long long>(between.host - before.host),
        static_cast<long long>(after.device - between.device), static_cast<long long>(after.host - between.host));
    if (after.device - before.device <= kNoise && after.host - before.host <= 2 * kNoise) return 0;
    if (attempt == kTries) stop("memory is lost, " + std::to_string(kTries) + " times out of as many");
  }
}
