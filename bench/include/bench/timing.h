// Measures codecs against each other on the same images in the same run.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "bench/figures.h"
#include "bench/gpu.h"
#include "bridge/buffer.h"
#include "formats/formats.h"
#include "l3/l3.h"

namespace bench {

// Returns all codec names, including those whose library is missing.
std::vector<std::string> codec_names();

// Sets models of `l3 train` for the codecs of l3, before the first measurement. Each image is encoded with the model
// for its number of channels and bits, if there is one. They must not be closed until the last measurement.
void use_l3_models(std::span<const l3_model* const> models);

// An image and the file that it was read from.
struct Sample {
  std::string name;
  bridge::Buffer file;
  formats::Image image;
};

// The timing loop for all codecs. It takes the images in batches, so that they need not all be in memory at once. Every
// codec first processes a batch untimed: this checks that it is lossless, and warms up. Then come the rounds. In each
// round, every codec encodes and decodes the whole batch, on one thread and on all threads, so that a disturbance
// affects all codecs alike. The time covers the work between a file in memory and samples in memory. On one thread it
// is the thread's processor time, which excludes other programs. On all threads it is wall-clock time.
//
// An image that a codec cannot store is left out of that codec's figures, and counted there with the reason.
class Timing {
 public:
  // Ignores unknown names. If `parallel` is empty, there is one thread.
  Timing(const std::vector<std::string>& codecs, uint32_t rounds, l3_parallel parallel);

  // Adds a GPU. It decodes the files that it can, in separate rounds after the others. It must outlive this object.
  void use(Gpu* gpu) { gpu_ = gpu; }

  // If a codec fails to encode or decode a sample, the sample is left out for all codecs and reported as a problem. If
  // a codec returns a changed sample, that is a problem too, but the sample is still measured. An encoder that takes
  // longer than `long_seconds` for the batch is timed only once: its time averages out the noise.
  void measure(std::vector<Sample> batch, double long_seconds);

  // Adds the results of another Timing with the same codecs and rounds.
  void add(const Timing& other);

  SetFigures figures(const std::string& name) const;
  const std::vector<Problem>& problems() const { return problems_; }

 private:
  // The time of each round over all batches; of these the first `rounds` count.
  struct Rounds {
    std::vector<double> seconds;
    uint32_t rounds;

    void add(const Rounds& other);
  };
  struct Measured {
    CodecFigures figures;
    size_t codec;  // of all_codecs()
    Rounds encode, decode, encode_all, decode_all, decode_gpu;
    bool slow = false;  // the encoder is too slow for more than one round of this batch
    double squared_error = 0;
    uint64_t compared_samples = 0;
  };
  struct Trial;

  std::vector<Trial> check_lossless(std::vector<Sample> batch);
  void count(const Trial& trial);
  void time_one(std::vector<Trial>& trials, uint32_t round, size_t at, const l3_parallel& parallel, Rounds& encode,
                Rounds& decode);

  void time_gpu(const std::vector<Trial>& trials, size_t at);

  std::vector<Measured> codecs_;
  uint32_t rounds_;
  l3_parallel parallel_;
  Gpu* gpu_ = nullptr;
  uint64_t files_ = 0, pixels_ = 0, supplied_bytes_ = 0, sample_bytes_ = 0;
  double clock_seconds_ = 0, processor_seconds_ = 0;  // of all that was timed on one thread
  std::vector<Problem> problems_;
};

// Measures the memory that each codec takes for one image, for the codecs that are present and can store it. Each runs
// in its own process. Call it while no other thread is running. Sets nothing if the system does not report memory.
void measure_memory(const Sample& sample, SetFigures& figures);

}  // namespace bench
