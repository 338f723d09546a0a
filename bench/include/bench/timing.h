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

// All names that Timing knows, whether their library is there or not.
std::vector<std::string> codec_names();

// An image and the file that it was read from.
struct Sample {
  std::string name;
  bridge::Buffer file;
  formats::Image image;
};

// The one timing loop. Images come in batches, so that not all have to be in memory at once. Each batch goes through
// every codec untimed first, which proves losslessness and warms up. Then come the rounds; in each one every codec
// encodes the whole batch and decodes it, on one thread and on all, so that a disturbance hits all codecs alike. Time
// goes from a file in memory to samples in memory and back. On one thread it is the thread's processor time, which does
// not count what other programs take; on all threads it is that of the clock on the wall.
//
// An image that a codec cannot hold is left out of that codec's figures, and is counted there with the reason.
class Timing {
 public:
  // Unknown names are left out. `parallel` may be empty: then there is one thread.
  Timing(const std::vector<std::string>& codecs, uint32_t rounds, l3_parallel parallel);

  // A GPU that decodes those files that it can, in rounds of its own after the others. It must outlive this.
  void use(Gpu* gpu) { gpu_ = gpu; }

  // A sample that a codec fails to encode or decode is left out for all of them and becomes a problem; so does one that
  // does not come back as it was, which is measured all the same.
  // An encoder that takes longer than `long_seconds` for the batch is timed once: its time has averaged the noise.
  void measure(std::vector<Sample> batch, double long_seconds);

  // Adds what another one with the same codecs and rounds has measured.
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
    bool slow = false;  // too slow an encoder for more than a round of this batch
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

// Of an even number of values the mean of the two in the middle; of none 0.
double median(std::vector<double> values);

// What a codec takes for one image, of all codecs that are there and hold it; asked of the system in a process of each
// codec's own. To be called where no other thread is running. Sets nothing where the system does not tell.
void measure_memory(const Sample& sample, SetFigures& figures);

}  // namespace bench
