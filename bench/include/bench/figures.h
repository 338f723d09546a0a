// What was measured, as plain data: Timing fills it in, reports show it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace bench {

// Million pixels per second over the rounds. All 0 where nothing was measured.
struct Speed {
  double median = 0, minimum = 0, maximum = 0;
  uint32_t rounds = 0;
};

// Bytes that a codec held at most at one time beyond its input, its output included.
struct PeakMemory {
  uint64_t encode = 0, decode = 0;
};

struct CodecFigures {
  std::string name;
  std::string title;
  std::string version;  // of the library
  std::string absent;   // why nothing was measured; else empty
  std::string package;  // what Debian calls the library that is absent
  bool lossy = false;
  bool decodes_only = false;  // has no encode speeds
  bool samples_only = false;  // keeps no palette, no transparency and no chunks

  // Of the images that it holds.
  uint64_t files = 0;
  uint64_t pixels = 0;
  uint64_t bytes = 0;           // of its files
  uint64_t supplied_bytes = 0;  // of the files as supplied
  uint64_t sample_bytes = 0;
  std::vector<std::pair<std::string, uint64_t>> not_held;  // why not, and how many images

  Speed encode, decode;          // on one thread, in its processor time
  Speed encode_all, decode_all;  // on all of them, by the clock on the wall; not measured where one is all
  Speed decode_gpu;              // whole batches, from pinned memory of the host to memory of the GPU
  bool lossless = true;          // every image came back as it was; of lossy codecs: by chance
  double psnr = 0;               // of lossy codecs, in dB, from the mean error of all samples
  std::optional<PeakMemory> memory;

  double ratio() const {
    return supplied_bytes > 0 ? static_cast<double>(bytes) / static_cast<double>(supplied_bytes) : 0;
  }
  double bits_per_pixel() const {
    return pixels > 0 ? 8 * static_cast<double>(bytes) / static_cast<double>(pixels) : 0;
  }
};

// A set of images, and every codec on it.
struct SetFigures {
  std::string name;
  uint64_t files = 0;  // measured
  uint64_t pixels = 0;
  uint64_t supplied_bytes = 0;
  uint64_t sample_bytes = 0;
  std::vector<CodecFigures> codecs;
  double clock_seconds = 0, processor_seconds = 0;  // what everything on one thread took

  // How many times its processor time everything took: 1 on an idle machine.
  double busy() const { return processor_seconds > 0 ? clock_seconds / processor_seconds : 1; }
};

// From here on figures by the clock on the wall are too low to go by.
inline constexpr double kBusy = 1.25;

// A way to feed a training: a data set as it lies in the store, and who unpacks it.
struct FeedFigures {
  std::string name;
  uint64_t bytes = 0;
  double warm = 0, cold = 0;  // images a second into tensors; 0 where it was not measured
  double stalled = 0;         // share of the time that a training of fixed steps waits
  bool lossy = false;
};

struct TrainingFigures {
  std::string about;  // the images and the tensors, in words
  uint64_t images = 0;
  uint32_t threads = 0, batch = 0;
  double step_seconds = 0;  // of the training that waits
  std::vector<FeedFigures> feeds;
};

struct Machine {
  std::string processor;
  uint32_t processors = 0;
  std::string memory;
  std::string system;
  std::string compiler;
  std::string library;  // libl3, and the processor target that it uses
  std::string gpu;      // empty where none was measured
  std::string date;
};

struct Problem {
  std::string name;  // of the file
  std::string reason;
};

struct Results {
  Machine machine;
  std::string command;  // that measures this again
  std::string folder;
  uint32_t threads = 1;
  uint64_t listed_files = 0;  // images that were there to measure
  bool sampled = false;       // there was no time to measure all of them
  std::string memory_image;   // that PeakMemory is of, with its size; empty where it was not measured
  SetFigures whole;
  std::vector<SetFigures> categories;  // none where there is one alone
  std::optional<TrainingFigures> training;
  uint64_t failed = 0;  // files
};

}  // namespace bench
