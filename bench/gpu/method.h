// The interface of a decoder or encoder in the GPU benchmark. Each has a file with its table. Add new ones to kMethods.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/parallel.h"
#include "case.h"

namespace gpu_bench {

enum class Mode : uint8_t {
  kernel,  // the files lie in the device's memory
  graph,   // the same as a captured graph
  pinned,  // the files lie in pinned memory, and a copy brings them to the device first
  staged,  // the files lie in pinned memory, and the decoder reads them from there
};

inline constexpr std::array<const char*, 4> kModeNames = {"kernel", "graph", "pinned", "staged"};
inline const char* name_of(Mode mode) { return kModeNames[static_cast<size_t>(mode)]; }

// The files of a case, and their decoder. Throws a Failure on errors. One thread makes all calls.
class Job {
 public:
  virtual ~Job() = default;
  Job() = default;
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  // Of the files of a batch: what travels.
  virtual uint64_t encoded_bytes() const = 0;
  // More that is worth reporting, as numbers with names.
  virtual std::vector<std::pair<std::string, uint64_t>> facts() const { return {}; }
  virtual std::vector<Mode> modes() const = 0;

  // Makes as many sets of what a batch needs as there are outputs (two at least), each with a copy of the files of its
  // own. An item is written at its offset in its set's output, in device memory.
  virtual void make_sets(std::span<uint8_t* const> outputs) = 0;
  // Adds a whole batch to the stream. Mode::graph calls it as Mode::kernel does, with a stream that is being captured.
  // The modes that copy (pinned, staged) use sets 0 and 1, each always with the same stream.
  virtual void run(Mode mode, uint32_t set, cudaStream_t stream) = 0;
  // What the decoder says went wrong with the last batch of a set, once its stream has passed it; empty: nothing. An
  // encoder has its files decoded to the output now.
  virtual std::string problem(Mode mode, uint32_t set) = 0;
};

struct Prepared {
  std::unique_ptr<Job> job;  // null where the case is nothing for the method
  std::string why_not;       // and then this says why
};

struct Method {
  const char* name;
  Prepared (*prepare)(const Case& a_case, const Settings& settings, base::Parallel& parallel);
};

extern const Method kL3Fast, kL3Dense, kL3Encode, kPaper, kPngOnProcessor;

inline const std::array<const Method*, 5> kMethods = {&kL3Fast, &kL3Dense, &kL3Encode, &kPaper, &kPngOnProcessor};

}  // namespace gpu_bench
