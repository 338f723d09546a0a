// The results of a benchmark as plain data. Timing fills them in, and reports show them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace bench {

// Million pixels per second over the rounds. All 0 if nothing was measured.
struct Speed {
  double median = 0, minimum = 0, maximum = 0;
  uint32_t rounds = 0;
};

// The most memory in bytes that a codec held at one time, including its output but not its input.
struct PeakMemory {
  uint64_t encode = 0, decode = 0;
};

struct CodecFigures {
  std::string name;
  std::string title;
  std::string version;  // version of the library
  std::string absent;   // why nothing was measured; else empty
  std::string package;  // the Debian package of an absent library
  bool lossy = false;
  bool decodes_only = false;  // has no encode speeds
  bool samples_only = false;  // keeps no palette, no transparency and no chunks

  // Totals of the images that it can store.
  uint64_t files = 0;
  uint64_t pixels = 0;
  uint64_t bytes = 0;           // of its files
  uint64_t supplied_bytes = 0;  // of the source files
  uint64_t sample_bytes = 0;
  std::vector<std::pair<std::string, uint64_t>> not_held;  // images that it cannot store: reason and count

  Speed encode, decode;          // on one thread, by processor time
  Speed encode_all, decode_all;  // on all threads, by wall-clock time; not measured with one thread
  Speed decode_gpu;              // whole batches, from pinned memory of the host to memory of the GPU
  bool lossless = true;          // every image was returned unchanged (by chance, for a lossy codec)
  double psnr = 0;               // in dB, for lossy codecs, from the mean error of all samples
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
  double clock_seconds = 0, processor_seconds = 0;  // time of all work on one thread

  // Wall-clock time divided by processor time. It is 1 on an idle machine.
  double busy() const { return processor_seconds > 0 ? clock_seconds / processor_seconds : 1; }
};

// If busy() is at least this, speeds by wall-clock time are too low to use.
inline constexpr double kBusy = 1.25;

// A way to load data for training: a form of the data set in storage, and a decoder for it.
struct FeedFigures {
  std::string name;
  uint64_t bytes = 0;
  double warm = 0, cold = 0;  // images per second into tensors; 0 if not measured
  double stalled = 0;         // share of time that training with fixed steps waits for data
  bool lossy = false;
};

struct TrainingFigures {
  std::string about;  // describes the images and the tensors
  uint64_t images = 0;
  uint32_t threads = 0, batch = 0;
  double step_seconds = 0;  // time of a training step
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
  std::string command;  // the command that measures this again
  std::string folder;
  uint32_t threads = 1;
  uint64_t listed_files = 0;  // images that were found
  bool sampled = false;       // there was not enough time to measure all of them
  std::string memory_image;   // the image of PeakMemory and its size; empty if not measured
  SetFigures whole;
  std::vector<SetFigures> categories;  // empty if there is only one
  std::optional<TrainingFigures> training;
  uint64_t failed = 0;  // files
};

}  // namespace bench
