// What a training waits for: what was measured with a loader, and what that says about other machines.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/figures.h"

namespace bench {

// What an image costs, as measured. Times are in seconds.
struct StallModel {
  double batch = 1;            // images
  double bytes = 0;            // of files, read for an image
  double step = 0;             // of a batch, in the training
  double processors = 1;       // of the machine
  double threads = 1;          // of the loader
  double one_thread = 0;       // images per second from memory with one thread, without a step
  double all_threads = 0;      // the same with all threads
  double cpu_from_memory = 0;  // processor time of an image that is in memory
  double cpu_from_store = 0;   // and of one that comes from the store
  double link = 0;             // bytes per second that the store delivers at most
  double device_seconds = 0;   // of a GPU, copying and decoding an image; 0: the processors decode
};

// A training as it could be.
struct StallCase {
  double step = 0;     // seconds; 0: it only takes batches
  double threads = 1;  // at most as many as processors
  double cached = 0;   // the share of the images that come from memory, 0 to 1
  double link = 0;     // bytes per second
};

enum class Bound : uint8_t { step, processors, device, link };

struct Prediction {
  double images_per_second = 0;
  Bound bound = Bound::step;
};

// The loader prepares batches while the training works, so the slowest part alone determines the speed: the training's
// steps, the processors, the GPU's decoding, or the link for the images that are not in memory.
Prediction predict(const StallModel& model, const StallCase& training);

// The case that was measured: all from the store, no step.
StallCase measured_case(const StallModel& model);

// One of the runs.
struct StallRun {
  std::string name;
  double images_per_second = 0;
  double cpu = 0;       // seconds of processor time per image, of the whole process
  double decoding = 0;  // seconds of threads per image, of which `converting` made the values of the tensor
  double converting = 0;
  double copying = 0, device = 0;  // seconds per batch on a GPU
  double waited = 0;               // the share of the time that the consumer waited
  double bytes = 0;                // of files, per image
  double hits = 0;                 // the share of the reads that the cache answered
};

struct PredictionRow {
  std::string what;  // "50 %", "2 threads"
  Prediction prediction;
  bool is_now = false;  // the set-up that was measured
};

struct PredictionTable {
  std::string title;
  std::vector<PredictionRow> rows;
};

struct StallCheck {
  std::string what;
  double predicted = 0, measured = 0;  // images per second
  double error() const { return measured > 0 ? predicted / measured - 1 : 0; }
};

struct StallFigures {
  Machine machine;
  std::string command, set, about;
  std::string link;  // what limits the store, if that is simulated
  StallModel model;
  std::vector<StallRun> runs;
  // The time of an image, in seconds: the training's step, and what decoding and the store add to it.
  double step_share = 0, decode_share = 0, store_share = 0;
  std::vector<PredictionTable> predictions;
  std::vector<StallCheck> checks;
  std::string advice;
};

// One way to keep images, and how fast each place delivers it.
struct LayoutRow {
  std::string name;
  bool lossy = false;
  uint64_t bytes = 0;
  std::vector<double> images_per_second;  // by place
};

struct LayoutFigures {
  Machine machine;
  std::string command, about;
  uint64_t images = 0;
  uint32_t threads = 0, batch = 0;
  std::vector<std::string> places, details;  // "page cache", and what it was
  std::vector<LayoutRow> rows;
};

std::string bound_text(Bound bound);  // "the link"

// Computes the shares of time and the advice from the model.
void explain(StallFigures& figures);

// Pages like the report of l3 bench.
std::string stalls_page(const StallFigures& figures);
std::string layouts_page(const LayoutFigures& figures);

}  // namespace bench
