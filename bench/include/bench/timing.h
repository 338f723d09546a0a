// Measures codecs against each other on the same images in the same run.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "bridge/buffer.h"
#include "formats/formats.h"
#include "l3/l3.h"

namespace bench {

// The names that Timing knows.
std::vector<std::string> codec_names();

// An image and the file that it was read from.
struct Sample {
  std::string name;
  bridge::Buffer file;
  formats::Image image;
};

struct CodecReport {
  std::string codec;
  uint64_t bytes = 0;      // of all its files
  double ratio = 0;        // to the files as supplied
  double encode_mpps = 0;  // million pixels per second: the median over the rounds
  double decode_mpps = 0;
  bool lossless = true;
};

struct Problem {
  std::string name;  // of the sample
  std::string reason;
};

struct Report {
  std::vector<CodecReport> codecs;
  uint64_t files = 0;  // measured
  uint64_t pixels = 0;
  uint64_t supplied_bytes = 0;
  std::vector<Problem> problems;
};

// The one timing loop. Images come in batches, so that not all have to be in memory at once. Each batch goes through
// every codec untimed first, which proves losslessness and warms up. Then come the rounds; in each one every codec
// encodes the whole batch and decodes it, so that a disturbance hits all codecs alike. Time is that of the clock on the
// wall, from a file in memory to samples in memory and back; files of the batch run side by side on the caller's
// threads.
class Timing {
 public:
  // Unknown names are left out. `parallel` may be empty.
  Timing(const std::vector<std::string>& codecs, uint32_t rounds, l3_parallel parallel);

  // A sample that a codec cannot encode or decode is left out for all of them and becomes a problem; so does one that
  // does not come back as it was, which is measured all the same.
  void measure(std::vector<Sample> batch);

  Report report() const;

 private:
  struct Measured {
    size_t codec;  // in kCodecs
    uint64_t bytes = 0;
    bool lossless = true;
    std::vector<double> encode_seconds, decode_seconds;  // of each round, over all batches
  };
  struct Trial;

  std::vector<Trial> prove(std::vector<Sample> batch);
  void time_round(std::vector<Trial>& trials, uint32_t round);

  std::vector<Measured> codecs_;
  uint32_t rounds_;
  l3_parallel parallel_;
  uint64_t files_ = 0, pixels_ = 0, supplied_bytes_ = 0;
  std::vector<Problem> problems_;
};

}  // namespace bench
