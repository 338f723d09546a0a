#include "stalls_runs.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "base/parallel.h"
#include "bench/machine.h"
#include "data_sets.h"
#include "image_tree.h"
#include "l3/l3_loader.h"
#include "progress.h"
#include "scratch.h"

namespace tools {
namespace {

using bench::StallCase, bench::StallRun;
using Clock = std::chrono::steady_clock;

// The groups that are used have at most so many bytes, so that they fit into the memory of most machines.
constexpr uint64_t kMaxBytes = uint64_t{1} << 30;
constexpr uint64_t kMinBatches = 4;
constexpr uint64_t kWarmUp = 5;         // batches that do not count
constexpr uint32_t kReadsAtOnce = 128;  // when the store is measured alone

struct CloseSet {
  void operator()(l3_data_set* set) const { l3_data_close(set); }
};
using Set = std::unique_ptr<l3_data_set, CloseSet>;

struct CloseLoader {
  void operator()(l3_loader* loader) const { l3_loader_close(loader); }
};

double seconds_since(Clock::time_point begun) { return std::chrono::duration<double>(Clock::now() - begun).count(); }

double processor_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// Where the samples of a run come from.
struct Source {
  Link link;             // none: the set as it is
  std::string cache;     // the cache of the data set; empty: none
  bool is_cold = false;  // the page cache was emptied, so that one epoch is measured
};

class Measurement {
 public:
  Measurement(const StallOptions& options, Context& context)
      : options_(options), context_(context), scratch_(scratch_folder(options), context) {}

  std::optional<bench::StallFigures> run() {
    if (scratch_.folder().empty()) return std::nullopt;
    if (!open_plain() || !choose_groups() || !measure()) return std::nullopt;
    context_.console.clear_status();
    return figures_;
  }

 private:
  // A cache in memory is as fast as a cache can be.
  static std::string scratch_folder(const StallOptions& options) {
    if (!options.scratch.empty()) return options.scratch;
    return access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "";
  }

  bool is_url() const { return loader::is_url(options_.path); }
  bool fail(const l3_data_error& error) {
    context_.console.fail(failure_of(error));
    return false;
  }
  bool fail(const std::string& reason) {
    context_.console.fail({path_text(options_.path), std::nullopt, reason});
    return false;
  }

  Set open(const Source& source) {
    l3_data_options options = l3_data_options_init();
    if (!source.cache.empty()) options.cache = source.cache.c_str();
    l3_data_set* opened = nullptr;
    l3_data_error error{};
    if (source.link) {
      const bool is_set = is_folder(options_.path);
      std::shared_ptr<loader::Store> files = loader::make_local_store(is_set ? options_.path : "", 0);
      (void)!loader::open_data_set(make_slow_store(std::move(files), source.link), is_set ? "" : options_.path, options,
                                   &opened, &error);
    } else {
      (void)!l3_data_open(options_.path.c_str(), &options, &opened, &error);
    }
    if (opened == nullptr) fail(error);
    return Set(opened);
  }

  bool open_plain() {
    plain_ = open({});
    if (plain_ == nullptr) return false;
    for (uint64_t shard = 0;; ++shard) {
      const char* const name = l3_data_shard_name(plain_.get(), shard);
      if (name == nullptr) break;
      files_.emplace_back(name);
    }
    return true;
  }

  // Takes groups at random until they are large enough.
  bool choose_groups() {
    l3_data_info info = l3_data_info_init();
    (void)!l3_data_describe(plain_.get(), &info);
    std::vector<uint64_t> all(info.groups);
    for (uint64_t i = 0; i < info.groups; ++i) all[i] = i;
    std::shuffle(all.begin(), all.end(), std::mt19937_64(1));
    uint64_t bytes = 0, pixels = 0;
    l3_data_sample sample = l3_data_sample_init();
    for (const uint64_t group : all) {
      uint64_t first = 0, count = 0;
      if (bytes >= kMaxBytes || l3_data_group(plain_.get(), group, &first, &count) != L3_OK) break;
      groups_.push_back(group);
      for (uint64_t i = first; i < first + count; ++i) {
        (void)!l3_data_get(plain_.get(), i, &sample);
        samples_.push_back(i);
        bytes += sample.size;
        pixels += uint64_t{sample.width} * sample.height;
      }
    }
    if (groups_.size() < kMinBatches * options_.batch) {
      return fail("has " + std::to_string(groups_.size()) + " images, and " + std::to_string(kMinBatches) +
                  " batches of " + std::to_string(options_.batch) + " are needed: use a smaller --batch-size");
    }
    std::sort(samples_.begin(), samples_.end());
    figures_.set = path_text(options_.path);
    figures_.about = std::to_string(groups_.size()) + " images" +
                     (groups_.size() < info.groups ? " of " + std::to_string(info.groups) : "") + ", " +
                     format_bytes(bytes) + ", " + format_number(static_cast<double>(pixels) / 1e6, 0) +
                     " megapixels; batches of " + std::to_string(options_.batch);
    return true;
  }

  l3_loader_options loader_options(double threads) const {
    l3_loader_options options = l3_loader_options_init();
    options.batch_size = options_.batch;
    options.threads = static_cast<uint32_t>(threads);
    options.order = L3_ORDER_SHUFFLED;
    options.last_batch = L3_LAST_BATCH_DROP;  // a step takes as long for a smaller batch
    options.groups = groups_.data();
    options.group_count = groups_.size();
    options.device = options_.device == "cuda" ? L3_DEVICE_CUDA : L3_DEVICE_CPU;
    if (options_.crop_width > 0) {
      options.crop = L3_CROP_RANDOM;
      options.crop_width = options_.crop_width;
      options.crop_height = options_.crop_height;
    }
    return options;
  }

  // Runs a loader for some seconds, or for one epoch if the source is cold.
  std::optional<StallRun> run_loader(const l3_data_set& set, const std::string& name, double threads, double step,
                                     double seconds, bool is_cold) {
    context_.console.status("measuring: " + name);
    l3_loader_options options = loader_options(threads);
    l3_tensor_options tensor{};
    tensor.type = options_.type == "float32"   ? L3_VALUE_F32
                  : options_.type == "float16" ? L3_VALUE_F16
                                               : L3_VALUE_STORED;
    std::fill_n(tensor.scale, 4, 1.0f / 255);
    options.tensors = &tensor;
    options.tensor_count = 1;
    l3_loader* opened = nullptr;
    l3_data_error error{};
    if (l3_loader_open(&set, &options, &opened, &error) != L3_OK) return fail(error), std::nullopt;
    const std::unique_ptr<l3_loader, CloseLoader> loader(opened);

    StallRun run;
    run.name = name;
    l3_batch_times sum{};
    double images = 0, batches = 0, waited = 0, copying = 0, device = 0;
    Clock::time_point begun = Clock::now();
    double cpu = processor_seconds();
    bool is_warm = is_cold;
    uint64_t taken = 0;
    // What is in the queues now is there at the end, too.
    const auto start = [&] {
      is_warm = true;
      images = batches = waited = copying = device = 0;
      sum = {};
      begun = Clock::now();
      cpu = processor_seconds();
    };
    for (uint64_t epoch = 0;;) {
      l3_next next = L3_NEXT_WAITING;
      l3_batch* batch = nullptr;
      l3_failure failure{};
      if (l3_loader_next(loader.get(), UINT32_MAX, &next, &batch, nullptr, &failure) != L3_OK) {
        return fail(failure.error), std::nullopt;
      }
      if (next == L3_NEXT_END) {
        // Whole epochs, if they are short: which samples are cached differs from batch to batch.
        const double passed = seconds_since(begun);
        if (is_cold || (is_warm && passed >= seconds)) break;
        if (!is_warm && taken >= kWarmUp && passed > seconds / 6) start();
        if (l3_loader_start(loader.get(), ++epoch, 0, &error) != L3_OK) return fail(error), std::nullopt;
        continue;
      }
      l3_batch_info info = l3_batch_info_init();
      (void)!l3_batch_describe(batch, &info);
      const l3_batch_times& times = info.times;
      images += info.units;
      batches += 1;
      waited += static_cast<double>(times.given - times.asked) / 1e9;
      copying += static_cast<double>(times.copied - times.copy_begun) / 1e9;
      device += times.copied > 0 ? static_cast<double>(times.decoded - times.copied) / 1e9 : 0;
      sum.decoding += times.decoding;
      sum.converting += times.converting;
      sum.bytes_read += times.bytes_read;
      l3_batch_release(batch, nullptr);
      if (step > 0) std::this_thread::sleep_for(std::chrono::duration<double>(step));
      const double passed = seconds_since(begun);
      ++taken;
      if (!is_warm && passed > seconds / 2) {
        start();
      } else if (is_warm && passed >= 1.5 * seconds) {
        break;
      }
    }
    const double passed = seconds_since(begun);
    if (images == 0) return fail("no image was loaded in the time: use more --seconds"), std::nullopt;
    run.images_per_second = images / passed;
    run.cpu = (processor_seconds() - cpu) / images;
    run.decoding = static_cast<double>(sum.decoding) / 1e9 / images;
    run.converting = static_cast<double>(sum.converting) / 1e9 / images;
    run.copying = copying / batches;
    run.device = device / batches;
    run.waited = std::min(waited / passed, 1.0);
    run.bytes = static_cast<double>(sum.bytes_read) / images;
    return run;
  }

  // Reads samples without decoding them, many at once, and returns bytes per second; 0 after a failure.
  double read_alone(const l3_data_set& set, double seconds, bool is_cold) {
    context_.console.status("measuring: the store alone");
    std::vector<uint64_t> order = samples_;
    std::shuffle(order.begin(), order.end(), std::mt19937_64(2));
    std::atomic<uint64_t> bytes{0};
    std::atomic<size_t> next{0};
    std::atomic<bool> failed{false};
    std::mutex mutex;
    l3_data_error first{};
    const Clock::time_point begun = Clock::now();
    std::vector<std::thread> threads;
    const auto work = [&] {
      std::vector<uint8_t> file;
      l3_data_sample sample = l3_data_sample_init();
      while (seconds_since(begun) < seconds && !failed) {
        const size_t at = next++;
        if (is_cold && at >= order.size()) return;
        const uint64_t number = order[at % order.size()];
        (void)!l3_data_get(&set, number, &sample);
        file.resize(sample.size);
        l3_data_error error{};
        if (l3_data_read(&set, number, file.data(), file.size(), &error) == L3_OK) {
          bytes += sample.size;
        } else if (!failed.exchange(true)) {
          const std::lock_guard lock(mutex);
          first = error;
        }
      }
    };
    for (uint32_t i = 0; i < kReadsAtOnce; ++i) threads.emplace_back(work);
    for (std::thread& thread : threads) thread.join();
    if (failed) return fail(first), 0;
    if (bytes == 0) return fail("no sample was read in the time: use more --seconds"), 0;
    return static_cast<double>(bytes) / seconds_since(begun);
  }

  // Reads the samples that are used, which brings them into the page cache or the cache of the set.
  bool read_through(const l3_data_set& set) {
    context_.console.status("filling a cache");
    std::atomic<bool> failed{false};
    base::for_each_of(samples_.size(), is_url() ? 64 : 8, [&](size_t i) {
      if (failed || (l3_data_is_cached(&set, samples_[i]) == L3_CACHED_NEVER && has_cache(set))) return;
      l3_data_sample sample = l3_data_sample_init();
      (void)!l3_data_get(&set, samples_[i], &sample);
      std::vector<uint8_t> file(sample.size);
      l3_data_error error{};
      if (l3_data_read(&set, samples_[i], file.data(), file.size(), &error) != L3_OK && !failed.exchange(true))
        fail(error);
    });
    if (failed || !has_cache(set)) return !failed;
    l3_data_cache_info info = l3_data_cache_info_init();
    (void)!l3_data_cache(&set, &info);
    return info.failures == 0 || fail(info.last_failure);
  }
  static bool has_cache(const l3_data_set& set) {
    l3_data_cache_info info = l3_data_cache_info_init();
    return l3_data_cache(&set, &info) == L3_OK && info.places > 0;
  }

  // The share of the samples in use that the cache of a set holds.
  double share_cached(const l3_data_set& set) const {
    const auto cached = std::count_if(samples_.begin(), samples_.end(),
                                      [&](uint64_t sample) { return l3_data_is_cached(&set, sample) == L3_CACHED; });
    return static_cast<double>(cached) / static_cast<double>(samples_.size());
  }

  // A set of which a share is in memory. Empties the page cache if the store is the disk of this machine.
  Set open_case(const Link& link, double share, double& real_share) {
    Source source;
    source.link = link;
    if (share > 0) {
      source.cache =
          scratch_.folder() + "/cache" + std::to_string(++caches_) + "=" + format_number(100 * share, 4) + "%";
    }
    Set set = open(source);
    if (set == nullptr) return nullptr;
    real_share = 0;
    if (share > 0) {
      // What a link delays need not be waited for to fill a cache.
      const Set filler = link ? open({{}, source.cache, false}) : nullptr;
      const l3_data_set& fills = filler != nullptr ? *filler : *set;
      if (!read_through(fills)) return nullptr;
      real_share = share_cached(fills);
    }
    if (!link && !is_url()) forget_cached(files_);
    return set;
  }

  bool is_cold(const Link& link) const { return !link && !is_url(); }

  bool measure() {
    bench::StallModel& model = figures_.model;
    const double part = options_.seconds / 6;
    model.batch = options_.batch;
    model.step = options_.step_ms / 1000;
    model.processors = std::max(std::thread::hardware_concurrency(), 1u);
    model.threads = options_.threads;
    figures_.link = options_.link ? link_text(options_.link) : "";
    figures_.machine = bench::this_machine();

    // From memory.
    double share = 0;
    Set in_memory = is_url() ? open_case({}, 1, share) : open({});
    if (in_memory == nullptr || (!is_url() && !read_through(*in_memory))) return false;
    const auto one = run_loader(*in_memory, "from memory, one thread", 1, 0, part, false);
    if (!one) return false;
    auto all = options_.threads > 1
                   ? run_loader(*in_memory, "from memory, " + std::to_string(options_.threads) + " threads",
                                options_.threads, 0, part, false)
                   : one;
    if (!all) return false;
    model.one_thread = one->images_per_second;
    model.all_threads = all->images_per_second;
    model.cpu_from_memory = all->cpu;
    if (options_.device == "cuda") model.device_seconds = (all->copying + all->device) / model.batch;
    model.bytes = all->bytes;
    in_memory.reset();

    // From the store.
    Set from_store = open_case(options_.link, 0, share);
    if (from_store == nullptr) return false;
    model.link = read_alone(*from_store, part, is_cold(options_.link));
    if (model.link == 0) return false;
    if (is_cold(options_.link)) forget_cached(files_);
    const auto store = run_loader(*from_store, "from the store", options_.threads, 0, part, is_cold(options_.link));
    if (!store) return false;
    from_store.reset();
    model.cpu_from_store = std::max(store->cpu, all->cpu);

    StallRun consumer;
    consumer.name = "the training alone";
    if (model.step > 0) {
      const Clock::time_point begun = Clock::now();
      uint32_t steps = 0;
      for (; steps < 4 || seconds_since(begun) < 0.5; ++steps) {
        std::this_thread::sleep_for(std::chrono::duration<double>(model.step));
      }
      model.step = seconds_since(begun) / steps;  // sleeping takes a little longer
      consumer.images_per_second = model.batch / model.step;
      figures_.runs.push_back(consumer);
    }
    figures_.runs.push_back(*one);
    if (options_.threads > 1) figures_.runs.push_back(*all);
    figures_.runs.push_back(*store);
    bench::explain(figures_);
    add_predictions();
    return options_.check == "none" || check();
  }

  void add_table(const std::string& title, const std::vector<std::pair<std::string, StallCase>>& cases) {
    bench::PredictionTable table;
    table.title = title;
    const StallCase now = current();
    for (const auto& [what, one] : cases) {
      const bool is_now =
          one.step == now.step && one.threads == now.threads && one.cached == now.cached && one.link == now.link;
      table.rows.push_back({what, bench::predict(figures_.model, one), is_now});
    }
    figures_.predictions.push_back(std::move(table));
  }

  StallCase current() const {
    StallCase now = bench::measured_case(figures_.model);
    now.step = figures_.model.step;
    return now;
  }

  void add_predictions() {
    using Cases = std::vector<std::pair<std::string, StallCase>>;
    const bench::StallModel& model = figures_.model;
    const StallCase now = current();
    Cases cases;
    for (const double share : {0.0, 0.25, 0.35, 0.5, 0.65, 0.8, 1.0}) {
      cases.emplace_back(format_number(100 * share, 0) + " %", now);
      cases.back().second.cached = share;
    }
    add_table("share of the data set in a cache", cases);
    cases.clear();
    for (const double factor : {0.25, 0.5, 1.0, 2.0, 4.0, 8.0}) {
      cases.emplace_back(format_bytes(static_cast<uint64_t>(model.link * factor)) + "/s", now);
      cases.back().second.link = model.link * factor;
    }
    add_table("link to the store", cases);
    cases.clear();
    for (double threads = 1; threads <= std::max(8.0, 2 * model.threads); threads *= 2) {
      cases.emplace_back(format_number(threads, 0), now);
      cases.back().second.threads = threads;
    }
    add_table("threads, each with a processor", cases);
    cases.clear();
    // Around the step at which the training and the loader are equally fast.
    StallCase unlimited = now;
    unlimited.step = 0;
    const double balanced = model.batch / bench::predict(model, unlimited).images_per_second;
    for (const double factor : {0.0, 0.5, 1.0, 2.0, 4.0}) {
      cases.emplace_back(factor == 0 ? "none" : format_number(balanced * factor * 1000, 1) + " ms", now);
      cases.back().second.step = balanced * factor;
    }
    if (model.step > 0) cases.emplace_back(format_number(model.step * 1000, 1) + " ms", now);
    add_table("step of the training", cases);
  }

  // Chooses a case that has another bottleneck than now, or at least another speed.
  StallCase case_to_check(std::string& what, std::string& name) const {
    const bench::StallModel& model = figures_.model;
    StallCase one = current();
    std::string kind = options_.check.substr(0, options_.check.find(':'));
    const std::string value = options_.check.substr(std::min(options_.check.size(), kind.size() + 1));
    if (kind == "auto") {
      const bench::Bound bound = bench::predict(model, one).bound;
      kind = bound == bench::Bound::link ? "cache" : !is_url() ? "link" : "step";
    }
    what = kind;
    if (kind == "cache") {
      one.cached = value.empty() ? 0.5 : std::stod(value) / 100;
      name = format_number(100 * one.cached, 0) + " % in a cache";
    } else if (kind == "threads") {
      one.threads = value.empty() ? 1 : std::stod(value);
      name = format_number(one.threads, 0) + " threads";
    } else if (kind == "step") {
      StallCase unlimited = one;
      unlimited.step = 0;
      one.step = value.empty() ? 2 * model.batch / bench::predict(model, unlimited).images_per_second
                               : std::stod(value) / 1000;
      name = "a step of " + format_number(one.step * 1000, 1) + " ms";
    } else {
      Link link;
      if (value.empty()) {
        link.bytes_per_second = bench::predict(model, one).images_per_second * model.bytes / 2;
      } else {
        (void)parse_link(value, link);
      }
      one.link = link.bytes_per_second;
      name = "a link of " + format_bytes(static_cast<uint64_t>(one.link)) + "/s";
    }
    return one;
  }

  bool check() {
    std::string what, name;
    StallCase one = case_to_check(what, name);
    Link link = options_.link;
    if (what == "link") {
      if (is_url()) return fail("a link can only be checked with a local data set");
      link.bytes_per_second = one.link;
    }
    const double wanted = one.cached;
    Set set = open_case(link, wanted, one.cached);
    if (set == nullptr) return false;
    if (wanted > 0) name = format_number(100 * one.cached, 1) + " % in a cache";
    const bench::Prediction predicted = bench::predict(figures_.model, one);
    const auto run = run_loader(*set, "the check: " + name, one.threads, one.step, options_.seconds / 6, is_cold(link));
    if (!run) return false;
    figures_.checks.push_back({name, predicted.images_per_second, run->images_per_second});
    return true;
  }

  const StallOptions& options_;
  Context& context_;
  Scratch scratch_;
  Set plain_;
  std::vector<std::string> files_;
  std::vector<uint64_t> groups_, samples_;
  uint32_t caches_ = 0;
  bench::StallFigures figures_;
};

}  // namespace

std::optional<bench::StallFigures> measure_stalls(const StallOptions& options, Context& context) {
  Measurement measurement(options, context);
  return measurement.run();
}

std::string link_text(const Link& link) {
  std::string text;
  if (link.bytes_per_second > 0) text = format_bytes(static_cast<uint64_t>(link.bytes_per_second)) + "/s";
  if (link.delay > 0) text += (text.empty() ? "" : ", ") + format_number(link.delay * 1000, 1) + " ms";
  return text;
}

std::string parse_link(const std::string& text, Link& link) {
  link = {};
  for (size_t at = 0; at <= text.size();) {
    const std::string part = text.substr(at, text.find(',', at) - at);
    at += part.size() + 1;
    size_t digits = 0;
    double number = 0;
    try {
      number = std::stod(part, &digits);
    } catch (const std::exception&) {
      return "a link is written as 100MB/s,20ms";
    }
    const std::string unit = part.substr(digits);
    const std::pair<const char*, double> rates[] = {{"B/s", 1},    {"kB/s", 1e3},       {"MB/s", 1e6},
                                                    {"GB/s", 1e9}, {"Mbit/s", 1e6 / 8}, {"Gbit/s", 1e9 / 8}};
    const auto rate =
        std::find_if(std::begin(rates), std::end(rates), [&](const auto& one) { return unit == one.first; });
    if (!(number > 0) || !std::isfinite(number)) return "a link must be above 0";
    if (rate != std::end(rates) && link.bytes_per_second == 0) {
      link.bytes_per_second = number * rate->second;
    } else if (unit == "ms" && link.delay == 0) {
      link.delay = number / 1000;
    } else {
      return "a link is written as 100MB/s,20ms";
    }
  }
  // Opening a data set reads its indexes through the link.
  if (link.bytes_per_second > 0 && link.bytes_per_second < 10e3) return "a link must have at least 10kB/s";
  if (link.delay > 10) return "a link must have at most 10000ms";
  return "";
}

std::string check_of_check(const std::string& text) {
  if (text == "auto" || text == "none") return "";
  const size_t colon = text.find(':');
  const std::string kind = text.substr(0, colon);
  if (kind != "cache" && kind != "threads" && kind != "link" && kind != "step") {
    return "must be auto, none, cache:PERCENT, threads:N, link:RATE or step:MS";
  }
  if (colon == text.npos) return "";
  const std::string value = text.substr(colon + 1);
  if (kind == "link") {
    Link link;
    const std::string wrong = parse_link(value, link);
    return wrong.empty() && link.bytes_per_second == 0 ? "a link to check has a rate, such as link:10MB/s" : wrong;
  }
  char* end = nullptr;
  const double number = std::strtod(value.c_str(), &end);
  if (value.empty() || *end != 0 || !(number > 0) || number > (kind == "cache" ? 100 : 1024 * 1024)) {
    return "\"" + value + "\" is no number that " + kind + " can have";
  }
  return "";
}

}  // namespace tools
