#include "bench_training.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <thread>
#include <utility>

#include "base/median.h"
#include "bench/timing.h"
#include "training_sets.h"

namespace tools {
namespace {

// A measurement runs whole epochs until this time has passed.
constexpr double kMinSeconds = 1;
constexpr uint64_t kSteps = 24;  // of the simulated training

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

class Training {
 public:
  Training(std::vector<Picture> pictures, const TrainingOptions& options, Context& context)
      : options_(options), context_(context), sets_(std::move(pictures), options.scratch, context) {}

  std::optional<bench::TrainingFigures> measure() {
    if (!sets_.has_folder() || !make_ways()) return std::nullopt;
    for (uint32_t round = 0; round < options_.rounds; ++round) {
      for (const Way& way : sets_.ways()) {
        if (!measure_once(way)) return std::nullopt;
      }
    }
    bench::TrainingFigures figures;
    for (Way& way : sets_.ways()) {
      way.figures.warm = base::median(warm_[way.figures.name]);
      way.figures.cold = base::median(cold_[way.figures.name]);
    }
    const double first = sets_.ways()[0].figures.warm;
    figures.step_seconds = options_.step_seconds > 0 ? options_.step_seconds : sets_.batch() / (2 * first);
    for (Way& way : sets_.ways()) {
      way.figures.stalled = stalled(way, figures.step_seconds);
      figures.feeds.push_back(way.figures);
    }
    figures.about = sets_.about() + ", shuffled, into batches of samples as stored";
    figures.images = sets_.images();
    figures.threads = options_.threads;
    figures.batch = sets_.batch();
    return figures;
  }

 private:
  bool make_ways() {
    return sets_.make_files("png", "PNG files", "png") && sets_.make_files("jpeg90", "JPEG files, quality 90", "jpg") &&
           sets_.make_files("webp", "WebP files, lossless", "webp") &&
           sets_.make_files("l3-fast", "l3 files, fast", "l3") &&
           sets_.make_files("l3-dense5", "l3 files, dense", "l3") && sets_.make_set("l3-fast", "l3 shards, fast") &&
           sets_.make_set("l3-dense5", "l3 shards, dense");
  }

  std::unique_ptr<Feed> open(const Way& way, uint64_t epoch) const {
    return way.open({options_.threads, sets_.batch(), epoch, {}});
  }

  bool failed(const Way& way, const Feed& feed) {
    const std::string problem = feed.problem();
    if (!problem.empty()) context_.console.fail({way.figures.name, std::nullopt, problem});
    return !problem.empty();
  }

  // Measures one epoch from the disk, then epochs from memory.
  bool measure_once(const Way& way) {
    const double images = static_cast<double>(sets_.images());
    forget_cached(way.paths);
    const double cold_begun = now();
    const auto through = [&](uint64_t epoch) {
      const std::unique_ptr<Feed> feed = open(way, epoch);
      while (feed->next()) {
      }
      return !failed(way, *feed);
    };
    if (!through(0)) return false;
    cold_[way.figures.name].push_back(images / (now() - cold_begun));
    const double warm_begun = now();
    double epochs = 0;
    while (now() - warm_begun < kMinSeconds) {
      if (!through(static_cast<uint64_t>(++epochs))) return false;
    }
    warm_[way.figures.name].push_back(images * epochs / (now() - warm_begun));
    return true;
  }

  // The share of the time that the training waits. Waiting for the first batch does not count.
  double stalled(const Way& way, double step_seconds) {
    double waited = 0;
    uint64_t steps = 0;
    for (uint64_t epoch = 0; steps < kSteps; ++epoch) {
      const std::unique_ptr<Feed> feed = open(way, epoch);
      for (; steps < kSteps; ++steps) {
        const double asked = now();
        if (!feed->next()) break;
        if (steps > 0) waited += now() - asked;
        std::this_thread::sleep_for(std::chrono::duration<double>(step_seconds));
      }
      if (failed(way, *feed)) return 1;
    }
    return waited / (waited + static_cast<double>(steps - 1) * step_seconds);
  }

  const TrainingOptions& options_;
  Context& context_;
  TrainingSets sets_;
  std::map<std::string, std::vector<double>> warm_, cold_;  // images a second of each round, by way
};

}  // namespace

std::optional<bench::TrainingFigures> run_training(const std::vector<std::string>& paths,
                                                   const TrainingOptions& options, Context& context) {
  // What cannot be read was printed when the codecs were measured.
  std::vector<Picture> pictures = read_pictures(paths, options.limits, nullptr);
  if (pictures.empty()) return std::nullopt;
  Training training(std::move(pictures), options, context);
  return training.measure();
}

}  // namespace tools
