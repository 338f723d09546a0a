// Tests that a decode call keeps the order of its stream. Each round queues other work in the stream, frees and
// allocates memory in stream order, and copies files in that order. Right after the call it overwrites the files, and
// frees and refills the outputs. It waits only at the end, and every byte must be correct.
//
// Usage: gpu_stream_order [ROUNDS]   (200). Exit status: 77 without a device.
#include <array>
#include <chrono>
#include <optional>

#include "gpu_files.h"
#include "gpu_spin.h"

namespace {

using namespace gpu_files;
using l3::cuda::Decoder;
using l3::cuda::DeviceBuffer;
using l3::cuda::Event;
using l3::cuda::PinnedBuffer;
using l3::cuda::Stream;

constexpr uint32_t kRounds = 200;
constexpr uint32_t kSlots = 3;                               // rounds under way at once
constexpr uint32_t kImages = 6;                              // of a round
constexpr uint32_t kLongWork = 100'000, kShortWork = 5'000;  // microseconds
constexpr uint32_t kLongEvery = 20;
constexpr double kWaited = 0.05;  // seconds: a call that takes longer has waited for the work before it
constexpr uint8_t kPoison = 0xA5, kOther = 0x5A;

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// Device memory that comes and goes in the stream's order.
class Passing {
 public:
  Passing(uint64_t size, cudaStream_t stream) : size_(size), stream_(stream) {
    check(cudaMallocAsync(&data_, size, stream), "cudaMallocAsync");
  }
  Passing(const Passing&) = delete;
  Passing& operator=(const Passing&) = delete;
  ~Passing() { check(cudaFreeAsync(data_, stream_), "cudaFreeAsync"); }
  uint8_t* bytes() const { return static_cast<uint8_t*>(data_); }
  void fill(uint8_t value) const { check(cudaMemsetAsync(data_, value, size_, stream_), "cudaMemsetAsync"); }

 private:
  void* data_ = nullptr;
  uint64_t size_;
  cudaStream_t stream_;
};

enum class Arrival { copied, from_another_stream, staged };

// A stream, a decoder and what a round needs in the host's memory.
class Slot {
 public:
  Slot(const std::vector<Sample>& samples, bool default_stream) : samples_(samples) {
    if (!default_stream) stream_ = take(l3::cuda::make_stream(), "a stream");
    producer_ = take(l3::cuda::make_stream(), "a stream");
    produced_ = take(l3::cuda::make_event(), "an event");
    done_ = take(l3::cuda::make_event(), "an event");
    std::vector<const Sample*> all;
    all.reserve(samples.size());
    for (const Sample& each : samples) all.push_back(&each);
    const Places maximum(all);
    files_ = take(PinnedBuffer::make(maximum.file_bytes), "pinned memory");
    outputs_ = take(PinnedBuffer::make(maximum.output_bytes), "pinned memory");
    arrived_ = take(DeviceBuffer::make(maximum.file_bytes), "device memory");
    other_ = take(DeviceBuffer::make(maximum.file_bytes), "device memory");
    check(cudaMemset(other_.data(), kOther, other_.size()), "cudaMemset");
    l3_cuda_capacity capacity = maximum.capacity;
    capacity.images = kImages;
    decoder_.emplace(take(Decoder::make(capacity), "a decoder"));
    check(cudaDeviceSynchronize(), "the device");
  }

  // Queues a round, and does not wait.
  void begin(uint32_t round) {
    round_ = round;
    chosen_.clear();
    for (uint32_t i = 0; i < kImages; ++i) chosen_.push_back(&samples_[(round * 5 + i * 7) % samples_.size()]);
    places_.emplace(chosen_);
    const auto arrival = static_cast<Arrival>(round / kSlots % 3);
    const cudaStream_t stream = stream_.get();
    for (uint32_t i = 0; i < kImages; ++i) {
      std::memcpy(files_.bytes() + places_->files[i], chosen_[i]->file.data(), chosen_[i]->file.size());
    }

    const bool long_work = round % kLongEvery == 0;
    check(spin(long_work ? kLongWork : kShortWork, stream), "a kernel");
    Passing(places_->output_bytes, stream).fill(kOther);
    const Passing output(places_->output_bytes, stream);
    output.fill(kPoison);
    {
      const Passing input(places_->file_bytes, stream);
      const uint8_t* files = bring(arrival, input);
      describe(files, output.bytes(), arrival == Arrival::staged);
      const double before = now();
      l3_error error{};
      if (decoder_->decode(kImages, stream, &error) != L3_OK) stop("the call: " + l3::message(error));
      const double seconds = now() - before;
      if (long_work) {
        ++long_calls;
        calls_that_waited += seconds > kWaited ? 1U : 0U;
      }
      calls_before_work += cudaStreamQuery(stream) == cudaErrorNotReady ? 1U : 0U;
      // What the call has read is overwritten when the stream comes here, not before and not by us.
      input.fill(kOther);
      if (arrival == Arrival::staged) {
        check(cudaMemcpyAsync(files_.data(), other_.data(), places_->file_bytes, cudaMemcpyDeviceToHost, stream),
              "cudaMemcpyAsync");
      } else if (arrival == Arrival::from_another_stream) {
        check(cudaMemcpyAsync(arrived_.data(), other_.data(), places_->file_bytes, cudaMemcpyDeviceToDevice, stream),
              "cudaMemcpyAsync");
      }
    }
    Passing(places_->file_bytes, stream).fill(kOther);
    check(cudaMemcpyAsync(outputs_.data(), output.bytes(), places_->output_bytes, cudaMemcpyDeviceToHost, stream),
          "cudaMemcpyAsync");
    output.fill(kOther);
    check(cudaEventRecord(done_.get(), stream), "cudaEventRecord");
  }

  // Waits for the round, if one was begun, and looks at it.
  void finish() {
    if (chosen_.empty()) return;
    check(cudaEventSynchronize(done_.get()), "a round");
    if (!decoder_->idle()) stop("the decoder is not idle although the stream has passed");
    for (uint32_t i = 0; i < kImages; ++i) {
      const uint64_t end = i + 1 < kImages ? places_->outputs[i + 1] : places_->output_bytes;
      const std::string wrong = problem(*chosen_[i], decoder_->result(i), outputs_.bytes() + places_->outputs[i],
                                        outputs_.bytes() + end, kPoison);
      if (!wrong.empty()) stop("round " + std::to_string(round_) + ": " + wrong);
    }
    chosen_.clear();
  }

  uint32_t calls_before_work = 0;  // that returned while the stream was still busy
  uint32_t long_calls = 0, calls_that_waited = 0;

 private:
  // The files' way to where the decoder finds them.
  const uint8_t* bring(Arrival arrival, const Passing& input) {
    const cudaStream_t stream = stream_.get();
    if (arrival == Arrival::staged) return files_.bytes();
    if (arrival == Arrival::copied) {
      check(cudaMemcpyAsync(input.bytes(), files_.data(), places_->file_bytes, cudaMemcpyHostToDevice, stream),
            "cudaMemcpyAsync");
      return input.bytes();
    }
    check(spin(kShortWork, producer_.get()), "a kernel");
    check(cudaMemcpyAsync(arrived_.data(), files_.data(), places_->file_bytes, cudaMemcpyHostToDevice, producer_.get()),
          "cudaMemcpyAsync");
    check(cudaEventRecord(produced_.get(), producer_.get()), "cudaEventRecord");
    check(cudaStreamWaitEvent(stream, produced_.get(), 0), "cudaStreamWaitEvent");
    return arrived_.bytes();
  }

  void describe(const uint8_t* files, uint8_t* output, bool stage) {
    for (uint32_t i = 0; i < kImages; ++i) {
      l3_cuda_image& image = decoder_->images()[i];
      image = chosen_[i]->wanted;
      image.data = files + places_->files[i];
      image.out = output + places_->outputs[i];
      if (stage) image.flags |= L3_CUDA_STAGE;
    }
  }

  const std::vector<Sample>& samples_;
  Stream stream_, producer_;
  Event produced_, done_;
  PinnedBuffer files_, outputs_;
  DeviceBuffer arrived_, other_;
  std::optional<Decoder> decoder_;
  std::vector<const Sample*> chosen_;  // of the round under way
  std::optional<Places> places_;
  uint32_t round_ = 0;
};

}  // namespace

int main(int count, char** arguments) {
  const uint32_t rounds = count > 1 ? static_cast<uint32_t>(std::atoi(arguments[1])) : kRounds;
  want_device("gpu_stream_order");
  std::vector<Sample> samples = good_samples();
  std::vector<Sample> bad = bad_samples(samples);
  for (size_t i = 0; i < bad.size(); i += 5) samples.push_back(std::move(bad[i]));

  uint32_t before_work = 0, long_calls = 0, waited = 0;
  {
    std::vector<Slot> slots;
    slots.reserve(kSlots);
    for (uint32_t i = 0; i < kSlots; ++i) slots.emplace_back(samples, i == 0);
    for (uint32_t round = 0; round < rounds; ++round) {
      slots[round % kSlots].finish();
      slots[round % kSlots].begin(round);
    }
    for (Slot& slot : slots) {
      slot.finish();
      before_work += slot.calls_before_work;
      long_calls += slot.long_calls;
      waited += slot.calls_that_waited;
    }
  }
  check(cudaDeviceSynchronize(), "the device");
  std::printf(
      "stream order: %u rounds right; %u calls returned before the work queued ahead of them was done; "
      "%u of %u calls behind 100 ms of work took more than 50 ms\n",
      rounds, before_work, waited, long_calls);
  if (before_work < rounds / 2) stop("calls wait for the device, or the work ahead of them was too short to tell");
  if (2 * waited > long_calls) stop("calls wait for the device");
  return 0;
}
