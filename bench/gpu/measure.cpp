#include "measure.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>

namespace gpu_bench {
namespace {

using l3::cuda::DeviceBuffer;
using l3::cuda::PinnedBuffer;
using l3::cuda::Stream;

constexpr uint8_t kPoison = 0xA5;
constexpr uint32_t kWarmUps = 3, kCalls = 20;
constexpr uint32_t kLoops = 3;
constexpr uint32_t kSlots = 2;   // of batches on their way to the device
constexpr double kLongLoop = 2;  // seconds; what takes longer is done fewer times
constexpr uint32_t kMaxSets = 64;
constexpr uint64_t kScratchBytes = uint64_t{256} << 20;

struct DestroyGraph {
  void operator()(cudaGraph_t graph) const { (void)cudaGraphDestroy(graph); }
  void operator()(cudaGraphExec_t graph) const { (void)cudaGraphExecDestroy(graph); }
};
using Graph = std::unique_ptr<std::remove_pointer_t<cudaGraph_t>, DestroyGraph>;
using Launchable = std::unique_ptr<std::remove_pointer_t<cudaGraphExec_t>, DestroyGraph>;

class Measurement {
 public:
  Measurement(const Case& a_case, Job& job, const Device& device, base::Parallel& parallel)
      : case_(a_case), job_(job), parallel_(parallel) {
    for (Stream& stream : streams_) stream = take(l3::cuda::make_stream(), "a stream");
    make_room(device);
    std::vector<uint8_t*> outputs;
    for (const DeviceBuffer& output : outputs_) outputs.push_back(output.bytes());
    job_.make_sets(outputs);
  }

  Measured run(Mode mode) {
    Measured measured;
    measured.mode = mode;
    if (mode == Mode::graph) make_graphs();
    measured.problem = proved(mode, 0);
    if (measured.problem.empty()) {
      const bool copies = mode == Mode::pinned || mode == Mode::staged;
      for (const DeviceBuffer& output : outputs_) poison(output);
      copies ? time_copies(mode, measured) : time_calls(mode, measured);
      measured.problem = wrong(mode, copies ? kSlots : static_cast<uint32_t>(outputs_.size()));
    }
    measured.equal = measured.problem.empty();
    graphs_.clear();
    return measured;
  }

 private:
  cudaStream_t stream(uint32_t set) const { return streams_[set % kSlots].get(); }

  // Several times what the cache holds, so that it does not serve one call with what another left.
  void make_room(const Device& device) {
    size_t free = 0, total = 0;
    check(cudaMemGetInfo(&free, &total), "the device's memory");
    // Beside output and files a set has the decoder's workspace, which is taken for a quarter of them at most.
    const uint64_t set_bytes = (case_.output_bytes + job_.encoded_bytes()) * 5 / 4 + 1;
    const uint64_t wanted = std::clamp<uint64_t>(4 * device.l2_bytes / set_bytes + 1, 3, kMaxSets);
    const uint64_t possible = (free - free / 10) / set_bytes;
    if (possible < kSlots) throw Failure("the device has too little memory for this case");
    for (uint64_t i = 0; i < std::min(wanted, possible); ++i) {
      outputs_.push_back(take(DeviceBuffer::make(case_.output_bytes), "memory for outputs"));
    }
    check(cudaMemGetInfo(&free, &total), "the device's memory");
    scratch_ = take(DeviceBuffer::make(std::min<uint64_t>(kScratchBytes, free / 4)), "memory");
    copy_ = take(PinnedBuffer::make(case_.output_bytes), "pinned memory for outputs");
  }

  void poison(const DeviceBuffer& output) {
    check(cudaMemset(output.data(), kPoison, output.size()), "filling memory");
    check(cudaDeviceSynchronize(), "filling memory");
  }

  void put(Mode mode, uint32_t set, cudaStream_t into) {
    if (mode != Mode::graph) return job_.run(mode, set, into);
    check(cudaGraphLaunch(graphs_[set].get(), into), "launching a graph");
  }

  // What is wrong with a set that the streams have passed; empty: nothing.
  std::string wrong_set(Mode mode, uint32_t set) {
    if (std::string problem = job_.problem(mode, set); !problem.empty()) return problem;
    check(cudaMemcpy(copy_.data(), outputs_[set].data(), outputs_[set].size(), cudaMemcpyDeviceToHost),
          "copying an output back");
    return difference(case_, copy_.bytes(), kPoison, parallel_);
  }

  // The first and the last of some sets are looked at in full, the others asked how it went.
  std::string wrong(Mode mode, uint32_t sets) {
    for (uint32_t set = 0; set < sets; ++set) {
      std::string problem = set == 0 || set + 1 == sets ? wrong_set(mode, set) : job_.problem(mode, set);
      if (!problem.empty()) return "after the timing: " + problem;
    }
    return "";
  }

  std::string proved(Mode mode, uint32_t set) {
    poison(outputs_[set]);
    put(mode, set, stream(set));
    check(cudaStreamSynchronize(stream(set)), "the first call");
    return wrong_set(mode, set);
  }

  void make_graphs() {
    const Stream stream = take(l3::cuda::make_stream(), "a stream");
    for (uint32_t set = 0; set < outputs_.size(); ++set) {
      check(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal), "beginning to capture");
      job_.run(Mode::kernel, set, stream.get());
      cudaGraph_t captured = nullptr;
      check(cudaStreamEndCapture(stream.get(), &captured), "capturing");
      const Graph graph(captured);
      cudaGraphExec_t launchable = nullptr;
      check(cudaGraphInstantiate(&launchable, graph.get(), 0), "making a graph");
      graphs_.emplace_back(launchable);
    }
  }

  void time_calls(Mode mode, Measured& measured) {
    const auto sets = static_cast<uint32_t>(outputs_.size());
    measured.sets = sets;
    const cudaStream_t into = stream(0);
    uint32_t call = 0;
    for (uint32_t i = 0; i < std::max(kWarmUps, sets); ++i) put(mode, call++ % sets, into);  // each set once at least
    check(cudaStreamSynchronize(into), "warming up");
    Stopwatch each(kCalls + 1);
    stall_stream(into, scratch_);
    each.lap(into);
    for (uint32_t i = 0; i < kCalls; ++i) {
      put(mode, call++ % sets, into);
      each.lap(into);
    }
    measured.clocks = clocks();
    check(cudaStreamSynchronize(into), "decoding");
    measured.seconds = each.seconds();
    std::vector<double> loops;
    for (uint32_t loop = 0; loop < kLoops; ++loop) {
      Stopwatch whole(2);
      stall_stream(into, scratch_);
      whole.lap(into);
      for (uint32_t i = 0; i < kCalls; ++i) put(mode, call++ % sets, into);
      whole.lap(into);
      check(cudaStreamSynchronize(into), "decoding");
      loops.push_back(whole.seconds()[0] / kCalls);
    }
    measured.loop_seconds = base::median(loops);
  }

  void synchronize() {
    for (const Stream& each : streams_) check(cudaStreamSynchronize(each.get()), "decoding");
  }

  // Batches in two slots, each with its stream: one travels while the other is decoded.
  void time_copies(Mode mode, Measured& measured) {
    const auto start = std::chrono::steady_clock::now();
    for (uint32_t i = 0; i < kSlots; ++i) put(mode, i, stream(i));
    synchronize();
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / kSlots;
    measured.batches = static_cast<uint32_t>(std::clamp(kLongLoop / seconds, 2.0, double{kCalls})) / kSlots * kSlots;
    const bool slow = measured.batches < kCalls;
    for (uint32_t loop = 0; loop < (slow ? 1 : kLoops); ++loop) {
      Stopwatch watch(2);
      const uint32_t lead = slow ? kSlots : 2 * kSlots;  // until the rhythm is there
      for (uint32_t i = 0; i < lead + measured.batches; ++i) {
        put(mode, i % kSlots, stream(i));
        if (i + 1 == lead || i + 1 == lead + measured.batches) watch.lap(stream(i));
      }
      if (loop == 0) measured.clocks = clocks();
      synchronize();
      measured.seconds.push_back(watch.seconds()[0] / measured.batches);
    }
  }

  const Case& case_;
  Job& job_;
  base::Parallel& parallel_;
  std::array<Stream, kSlots> streams_;
  std::vector<DeviceBuffer> outputs_;
  DeviceBuffer scratch_;
  PinnedBuffer copy_;
  std::vector<Launchable> graphs_;
};

}  // namespace

std::vector<Measured> measure(const Case& a_case, Job& job, const Device& device, base::Parallel& parallel) {
  Measurement measurement(a_case, job, device, parallel);
  std::vector<Measured> all;
  for (const Mode mode : job.modes()) {
    try {
      all.push_back(measurement.run(mode));
    } catch (const Failure& failure) {
      all.emplace_back();
      all.back().mode = mode;
      all.back().problem = failure.what();
    }
  }
  return all;
}

}  // namespace gpu_bench
