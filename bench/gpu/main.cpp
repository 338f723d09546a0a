// l3_gpu_bench measures how fast batches of images are decoded to GPU memory.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <optional>

#include "report.h"

namespace {

using namespace gpu_bench;

constexpr const char* kUsage =
    "usage: l3_gpu_bench [options]\n"
    "\n"
    "  --out FILE       append a line of JSON for each case, method and mode\n"
    "  --images DIR     real images (of any format that is read, or L3; RGB, 8 bits) instead of drawn streets\n"
    "  --limit SECONDS  begin nothing after that time (240), and say what was left out\n"
    "  --only PART      only where CASE/METHOD has this part; may be given again\n"
    "  --distinct N     different images in a batch (four for each thread, at most the batch)\n"
    "  --effort N       of the dense method (1)\n"
    "  --shrink N       edges and batches that many times smaller, for a quick look (1)\n"
    "  --threads N      (one for each processor)\n"
    "  --commit TEXT    for the report\n"
    "  --list           the cases and methods\n"
    "  --device         the device\n"
    "\n"
    "Exit status: 0; 1 where something failed or was not equal; 2 for wrong options; 77 without a device.\n";

constexpr int kNoDevice = 77;

struct Options {
  Settings settings;
  std::string out, commit = "unknown", command;
  double limit = 240;
  uint32_t threads = 0;
  bool list = false, device = false;
};

// A whole number from `least` on; none where `text` is no such number.
std::optional<uint32_t> whole(const char* text, uint32_t minimum) {
  char* end = nullptr;
  const unsigned long value = std::strtoul(text, &end, 10);
  if (*text < '0' || *text > '9' || *end != 0 || value < minimum || value > 1'000'000) return std::nullopt;
  return static_cast<uint32_t>(value);
}

bool take_option(Options& options, const std::string& name, const char* value) {
  const auto number = [&](uint32_t& to, uint32_t minimum) {
    const std::optional<uint32_t> read = whole(value, minimum);
    if (read) to = *read;
    return read.has_value();
  };
  uint32_t seconds = 0;
  if (name == "--out") return options.out = value, true;
  if (name == "--images") return options.settings.images = value, true;
  if (name == "--only") return options.settings.only.emplace_back(value), true;
  if (name == "--commit") return options.commit = value, true;
  if (name == "--distinct") return number(options.settings.distinct, 1);
  if (name == "--effort") return number(options.settings.effort, 1) && options.settings.effort <= 9;
  if (name == "--shrink") return number(options.settings.shrink, 1);
  if (name == "--threads") return number(options.threads, 1);
  if (name == "--limit" && number(seconds, 1)) return options.limit = seconds, true;
  return false;
}

std::optional<Options> read_options(int count, char** arguments) {
  Options options;
  for (int i = 0; i < count; ++i) {
    if (i > 0) options.command += ' ';
    options.command += arguments[i];
  }
  for (int i = 1; i < count; ++i) {
    if (std::strcmp(arguments[i], "--list") == 0) {
      options.list = true;
    } else if (std::strcmp(arguments[i], "--device") == 0) {
      options.device = true;
    } else if (i + 1 == count || !take_option(options, arguments[i], arguments[i + 1])) {
      return std::nullopt;
    } else {
      ++i;
    }
  }
  return options;
}

class Bench {
 public:
  explicit Bench(const Options& options) : options_(options), parallel_(options.threads) {}

  int run() {
    run_.device = query_device();
    run_.commit = options_.commit;
    run_.command = options_.command;
    run_.threads = parallel_.threads();
    if (!options_.out.empty()) {
      out_.open(options_.out, std::ios::app);
      if (!out_) throw Failure("cannot write to " + options_.out);
    }
    std::printf("%s, driver %s; link %.1f GB/s, copies within the device %.0f GB/s (read plus written); %u threads\n",
                run_.device.name.c_str(), run_.device.driver.c_str(), run_.device.link_bytes_per_second / 1e9,
                run_.device.copy_bytes_per_second / 1e9, run_.threads);
    std::printf("%s", table_head().c_str());
    for (const CaseRecipe& recipe : kCases) run_case(recipe);
    for (const std::string& left : left_out_) std::printf("left out, no time: %s\n", left.c_str());
    std::printf("%u lines, %u wrong, %zu left out\n", lines_, wrong_, left_out_.size());
    return wrong_ > 0 || lines_ == 0 ? 1 : 0;
  }

 private:
  bool wanted(const std::string& name) const {
    if (options_.settings.only.empty()) return true;
    for (const std::string& part : options_.settings.only) {
      if (name.find(part) != std::string::npos) return true;
    }
    return false;
  }

  bool in_time() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count() < options_.limit;
  }

  void run_case(const CaseRecipe& recipe) {
    std::optional<Case> a_case;
    for (const Method* method : kMethods) {
      const std::string name = std::string(recipe.name) + "/" + method->name;
      if (!wanted(name)) continue;
      if (!in_time()) {
        left_out_.push_back(name);
        continue;
      }
      try {
        if (!a_case) {
          a_case = recipe.make(options_.settings, parallel_);
          a_case->name = recipe.name;
        }
        run_method(*a_case, *method);
      } catch (const std::exception& failure) {
        ++wrong_;
        std::printf("%-18s %-8s FAILED: %s\n", recipe.name, method->name, failure.what());
      }
      std::fflush(stdout);
    }
  }

  void run_method(const Case& a_case, const Method& method) {
    const auto [job, why_not] = method.prepare(a_case, options_.settings, parallel_);
    if (job == nullptr) {
      std::printf("%-18s %-8s not run: %s\n", a_case.name.c_str(), method.name, why_not.c_str());
      return;
    }
    for (const Measured& measured : measure(a_case, *job, run_.device, parallel_)) {
      ++lines_;
      if (!measured.equal) ++wrong_;
      std::printf("%s", table_row(run_, a_case, method.name, *job, measured).c_str());
      if (!out_.is_open()) continue;
      out_ << json_line(run_, options_.settings, a_case, method.name, *job, measured) << std::flush;
      if (!out_) throw Failure("cannot write to " + options_.out);
    }
  }

  const Options& options_;
  base::Parallel parallel_;
  Run run_;
  std::ofstream out_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  uint32_t lines_ = 0, wrong_ = 0;
  std::vector<std::string> left_out_;
};

}  // namespace

int main(int count, char** arguments) {
  const std::optional<Options> options = read_options(count, arguments);
  if (!options) {
    std::fputs(kUsage, stderr);
    return 2;
  }
  if (options->list) {
    for (const CaseRecipe& recipe : kCases) std::printf("%s\n", recipe.name);
    for (const Method* method : kMethods) std::printf("  %s\n", method->name);
    return 0;
  }
  l3_error error{};
  if (l3_cuda_check_device(&error) != L3_OK) {
    std::fprintf(stderr, "l3_gpu_bench: not run: no device: %s\n", error.reason);
    return kNoDevice;
  }
  try {
    if (options->device) return std::printf("%s\n", describe_device().c_str()) < 0 ? 1 : 0;
    return Bench(*options).run();
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "l3_gpu_bench: %s\n", failure.what());
    return 1;
  }
}
