#include "bench_run.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <random>
#include <utility>

#include "base/parallel.h"
#include "bench/gpu.h"
#include "bench/machine.h"
#include "bench/timing.h"
#include "bench_training.h"
#include "file_io.h"
#include "image_tree.h"
#include "options.h"
#include "progress.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace tools {
namespace {

// Size of the samples of a batch. It is larger than most caches, so that every codec starts from memory. The process
// holds an image up to three times, and once more for each codec.
constexpr uint64_t kBatchBytes = uint64_t{128} << 20;
// An encoder that takes longer than this for a batch is timed in one round only. If --seconds is small, the limit is
// this part of it.
constexpr double kLongSeconds = 10, kLongPart = 0.02;
// An image is left out if it would take more than this many times the time left.
constexpr double kOverrun = 2;
// If there are more folders, they are not categories.
constexpr size_t kMaxCategories = 24;
// Memory is measured with an image of at most this many pixels, because slow encoders take long for large images.
constexpr uint64_t kMemoryPixels = uint64_t{1} << 22;

// Keeps freed memory in the process, so that codecs do not pay for new pages in every round.
void keep_freed_memory() {
#ifdef __GLIBC__
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, -1);
#endif
}

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

Outcome<bench::Sample> read_sample(const std::string& path, const l3_limits& limits) try {
  Outcome<bridge::Buffer> file = read_file(path);
  if (!file) return file.failure();
  formats::Result<formats::Image> image = formats::read(file->bytes(), read_options(limits));
  if (!image) return failure_in(path, image.error());
  return bench::Sample{path, std::move(*file), std::move(*image)};
} catch (...) {
  return caught(path);
}

std::string path_of(const BenchOptions& options, const std::string& file) {
  return file.empty() ? options.folder : join(options.folder, file);
}

struct Category {
  std::string name;
  std::vector<std::string> paths;
};

std::vector<Category> categories_of(const Tree& tree, const BenchOptions& options) {
  std::map<std::string, std::vector<std::string>> by_name;
  for (const std::string& file : tree.files) {
    const size_t slash = file.find('/');
    by_name[slash == file.npos ? "" : file.substr(0, slash)].push_back(path_of(options, file));
  }
  std::vector<Category> categories;
  if (options.by != "folder" || by_name.size() > kMaxCategories) {
    Category& all = categories.emplace_back();
    for (auto& [name, paths] : by_name) all.paths.insert(all.paths.end(), paths.begin(), paths.end());
  } else {
    for (auto& [name, paths] : by_name) categories.push_back({name.empty() ? "." : name, std::move(paths)});
  }
  return categories;
}

// Shuffles the paths so that the first ones are a fair sample. The order is the same in every run.
void mix(std::vector<std::string>& paths) {
  std::mt19937_64 random(3);
  for (size_t i = paths.size(); i > 1; --i) std::swap(paths[i - 1], paths[random() % i]);
}

// If the time is limited, the first batch of a category is one image, from which the time for others is estimated. This
// puts an image of medium size first.
void begin_with_middling(std::vector<std::string>& paths) {
  constexpr size_t kLookedAt = 15;
  std::vector<std::pair<uintmax_t, size_t>> sizes;
  for (size_t i = 0; i < std::min(paths.size(), kLookedAt); ++i) {
    std::error_code error;
    const uintmax_t bytes = std::filesystem::file_size(paths[i], error);
    sizes.emplace_back(error ? 0 : bytes, i);
  }
  std::sort(sizes.begin(), sizes.end());
  std::swap(paths[0], paths[sizes[sizes.size() / 2].second]);
}

// Looking for a GPU can take a second, so it is only done if a codec uses one.
bool wants_gpu(const BenchOptions& options) {
  return std::any_of(options.codecs.begin(), options.codecs.end(),
                     [](const std::string& name) { return name.starts_with("l3-"); });
}

// A run over all categories.
class Run {
 public:
  Run(const BenchOptions& options, Console& console)
      : options_(options),
        console_(console),
        parallel_(options.threads),
        gpu_(wants_gpu(options) ? bench::find_gpu() : nullptr),
        whole_(new_timing()) {}

  bench::Results measure(const Tree& tree) {
    bench::Results results;
    results.threads = parallel_.threads();
    results.listed_files = tree.files.size();
    files_ = tree.files.size();
    std::vector<Category> categories = categories_of(tree, options_);
    const double end = now() + options_.seconds;
    for (size_t i = 0; i < categories.size(); ++i) {
      bench::Timing timing = new_timing();
      // The others get what a category leaves of its share.
      const double share = (end - now()) / static_cast<double>(categories.size() - i);
      measure_category(categories[i], now() + share, timing);
      whole_.add(timing);
      bench::SetFigures figures = timing.figures(categories[i].name);
      if (categories.size() > 1 && figures.files > 0) results.categories.push_back(std::move(figures));
    }
    console_.clear_status();
    results.whole = whole_.figures(options_.folder);
    results.sampled = sampled_;
    for (const bench::Problem& problem : whole_.problems()) {
      console_.fail({problem.name, std::nullopt, problem.reason});
    }
    results.failed = failed_ + whole_.problems().size() + tree.failures.size();
    return results;
  }

  std::string gpu_name() const { return gpu_ == nullptr ? "" : gpu_->name(); }
  const std::string& memory_path() const { return memory_path_; }

 private:
  bench::Timing new_timing() {
    bench::Timing timing(options_.codecs, options_.rounds,
                         parallel_.threads() > 1 ? parallel_.for_l3() : l3_parallel{});
    timing.use(gpu_.get());
    return timing;
  }

  void measure_category(Category& category, double end, bench::Timing& timing) {
    const bool hurry = options_.seconds != 0;
    const double long_seconds = hurry ? std::min(kLongSeconds, kLongPart * options_.seconds) : kLongSeconds;
    if (hurry) {
      mix(category.paths);
      begin_with_middling(category.paths);
    }
    uint64_t target = kBatchBytes;
    uint64_t largest = UINT64_MAX;  // the largest image for which time is left
    uint64_t measured_bytes = 0;
    const double begun = now();
    for (size_t next = 0; next < category.paths.size();) {
      std::vector<bench::Sample> batch;
      uint64_t bytes = 0;
      const bool first = measured_bytes == 0;
      // With fewer images than threads, some threads would be idle.
      const auto is_full = [&] {
        if (hurry && (first ? !batch.empty() : now() > end)) return true;
        return bytes >= target && (batch.size() >= parallel_.threads() || bytes >= kBatchBytes);
      };
      for (; next < category.paths.size() && !is_full(); ++next) {
        Outcome<bench::Sample> sample = read_sample(category.paths[next], options_.limits);
        ++done_;
        if (!sample) {
          console_.fail(sample.failure());
          ++failed_;
          continue;
        }
        if (sample->image.pixels.size() > largest) {
          sampled_ = true;
          continue;
        }
        look_at(*sample);
        bytes += sample->image.pixels.size();
        batch.push_back(std::move(*sample));
      }
      if (batch.empty()) {
        sampled_ |= next < category.paths.size();
        break;
      }
      if (console_.stderr_is_terminal()) {
        console_.status(std::to_string(done_) + "/" + std::to_string(files_) + " files read, measuring " +
                        category.name);
      }
      timing.measure(std::move(batch), long_seconds);
      measured_bytes += bytes;
      if (!hurry || next == category.paths.size()) continue;
      const double left = end - now();
      if (left <= 0) {
        sampled_ = true;
        break;
      }
      const double fits = left * static_cast<double>(measured_bytes) / std::max(now() - begun, 1e-9);
      target = static_cast<uint64_t>(std::clamp(fits, 1.0, static_cast<double>(kBatchBytes)));
      largest = static_cast<uint64_t>(std::clamp(kOverrun * fits, 1.0, 1e18));
    }
  }

  // Memory is measured with the largest image that is within the limit, or else with the smallest image.
  void look_at(const bench::Sample& sample) {
    const uint64_t pixels = uint64_t{sample.image.width} * sample.image.height;
    const bool fits = pixels <= kMemoryPixels, had_fits = memory_pixels_ <= kMemoryPixels;
    const bool better =
        memory_path_.empty() || (fits ? !had_fits || pixels > memory_pixels_ : !had_fits && pixels < memory_pixels_);
    if (!better) return;
    memory_pixels_ = pixels;
    memory_path_ = sample.name;
  }

  const BenchOptions& options_;
  Console& console_;
  base::Parallel parallel_;
  std::unique_ptr<bench::Gpu> gpu_;
  bench::Timing whole_;
  uint64_t files_ = 0, done_ = 0, failed_ = 0;
  bool sampled_ = false;
  std::string memory_path_;
  uint64_t memory_pixels_ = 0;
};

std::string quoted(const std::string& word) {
  if (!word.empty() &&
      word.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./,=+:") == word.npos) {
    return word;
  }
  std::string result = "'";
  for (const char c : word) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

// The command that repeats the measurement.
std::string command_of(const BenchOptions& options, uint32_t threads) {
  std::string command = "l3 bench " + quoted(options.folder) + " --codecs ";
  for (size_t i = 0; i < options.codecs.size(); ++i) command += (i > 0 ? "," : "") + options.codecs[i];
  command += " --threads " + std::to_string(threads) + " --rounds " + std::to_string(options.rounds) + " --seconds " +
             std::to_string(options.seconds);
  if (options.by != "folder") command += " --by " + options.by;
  if (options.no_memory) command += " --no-memory";
  if (options.training) command += " --training";
  if (options.step_ms > 0) command += " --step-ms " + format_number(options.step_ms, 3);
  return command;
}

}  // namespace

bench::Results run_bench(const BenchOptions& options, Context& context) {
  Console& console = context.console;
  const Tree tree = is_folder(options.folder) ? list_tree(options.folder, Kind::foreign) : Tree{{""}, {}, {}, {}};
  for (const std::string& skipped : tree.skipped) console.note(skipped, kSkipped);
  for (const Failure& failure : tree.failures) console.fail(failure);
  if (tree.files.empty()) {
    if (tree.failures.empty()) console.fail({options.folder, std::nullopt, "this folder has no images"});
    return {};
  }

  keep_freed_memory();
  bench::Results results;
  std::string memory_path, gpu_name;
  {
    Run run(options, console);
    results = run.measure(tree);
    memory_path = run.memory_path();
    gpu_name = run.gpu_name();
  }
  // The threads have ended, so each codec can now run in its own process.
  if (!options.no_memory && results.whole.files > 0) {
    if (const Outcome<bench::Sample> sample = read_sample(memory_path, options.limits)) {
      bench::measure_memory(*sample, results.whole);
      results.memory_image = memory_path + ", " + std::to_string(sample->image.width) + " x " +
                             std::to_string(sample->image.height) + ", " + formats::name(sample->image.colour) +
                             " of " + std::to_string(sample->image.bits) + " bits";
    }
  }
  if (options.training && results.whole.files > 0) {
    if (console.stderr_is_terminal()) console.status("measuring how data sets feed a training");
    std::vector<std::string> paths;
    for (const std::string& file : tree.files) paths.push_back(path_of(options, file));
    mix(paths);
    const TrainingOptions wish = {results.threads, options.rounds, options.step_ms / 1e3, options.scratch,
                                  options.limits};
    results.training = run_training(paths, wish, context);
    console.clear_status();
    if (!results.training) ++results.failed;
  }
  results.machine = bench::this_machine();
  results.machine.gpu = gpu_name;
  results.command = command_of(options, results.threads);
  results.folder = options.folder;
  return results;
}

}  // namespace tools
