// Runs a fuzz target where there is no libFuzzer: on every seed, and then on changed ones, without a look at what is
// reached. Takes of libFuzzer's options those that soak.py gives; others are ignored. ./run fuzz has the real one.
#include <sanitizer/common_interface_defs.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);
extern "C" __attribute__((weak)) size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                                                unsigned seed);

namespace {

using Bytes = std::vector<uint8_t>;
using Clock = std::chrono::steady_clock;

constexpr unsigned kMaxSeconds = 60;  // for one input

std::mt19937_64 dice(1);

size_t below(size_t count) { return static_cast<size_t>(dice() % count); }

// What is running, for whoever looks at a finding.
const Bytes* running = nullptr;
std::string artifact_prefix = "finding_";

void keep_input() {
  if (running == nullptr) return;
  const std::string path = artifact_prefix + std::to_string(getpid());
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(running->data()), static_cast<std::streamsize>(running->size()));
  std::fprintf(stderr, "Test unit written to %s\n", path.c_str());
  running = nullptr;
}

// Of what sanitizers do not end: an expectation that does not hold, and an input that takes too long.
void end(int signal) {
  std::fprintf(stderr, signal == SIGALRM ? "takes too long\n" : "aborted\n");
  keep_input();
  _exit(1);
}

void run(const Bytes& input) {
  running = &input;
  alarm(kMaxSeconds);
  // A copy of its very size, so that reading past its end is noticed.
  const Bytes exact(input.begin(), input.end());
  LLVMFuzzerTestOneInput(exact.data(), exact.size());
  running = nullptr;
}

Bytes changed(const Bytes& seed, size_t maximum) {
  Bytes input = seed;
  const size_t size = std::min(input.size(), maximum);
  input.resize(maximum);
  const size_t left = LLVMFuzzerCustomMutator != nullptr
                          ? LLVMFuzzerCustomMutator(input.data(), size, maximum, static_cast<unsigned>(dice()))
                          : LLVMFuzzerMutate(input.data(), size, maximum);
  input.resize(left);
  return input;
}

bool starts_with(std::string_view word, std::string_view option, std::string& value) {
  if (!word.starts_with(option)) return false;
  value = word.substr(option.size());
  return true;
}

}  // namespace

// One to four changes: a bit, a byte, a run of bytes taken away, doubled or drawn.
size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size) {
  if (max_size == 0) return 0;
  for (size_t changes = 1 + below(4); changes > 0; --changes) {
    const size_t run = 1 + below(8);
    if (size == 0) {
      data[size++] = static_cast<uint8_t>(dice());
      continue;
    }
    const size_t at = below(size);
    switch (below(5)) {
      case 0: data[at] = static_cast<uint8_t>(data[at] ^ 1u << below(8)); break;
      case 1: data[at] = static_cast<uint8_t>(dice()); break;
      case 2: {
        const size_t end = std::min(at + run, size);
        std::memmove(data + at, data + end, size - end);
        size -= end - at;
        break;
      }
      case 3: {
        const size_t more = std::min({run, size - at, max_size - size});
        std::memmove(data + at + more, data + at, size - at);
        size += more;
        break;
      }
      default:
        for (size_t i = at; i < std::min(at + run, size); ++i) data[i] = static_cast<uint8_t>(dice());
    }
  }
  return size;
}

int main(int count, char** words) {
  __sanitizer_set_death_callback(keep_input);
  std::signal(SIGABRT, end);
  std::signal(SIGALRM, end);
  double seconds = 10;
  size_t maximum = 4096;
  std::vector<Bytes> seeds;
  for (int i = 1; i < count; ++i) {
    const std::string_view word = words[i];
    std::string value;
    if (starts_with(word, "-max_total_time=", value)) {
      seconds = std::stod(value);
    } else if (starts_with(word, "-max_len=", value)) {
      maximum = std::stoul(value);
    } else if (starts_with(word, "-artifact_prefix=", value)) {
      artifact_prefix = value;
    } else if (!word.starts_with('-')) {
      std::vector<std::filesystem::path> files;
      for (const auto& entry : std::filesystem::directory_iterator(word)) files.push_back(entry.path());
      std::sort(files.begin(), files.end());
      for (const auto& file : files) {
        std::ifstream in(file, std::ios::binary);
        seeds.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
      }
    }
  }
  const auto begun = Clock::now();
  uint64_t executions = 0;
  if (seeds.empty()) seeds.emplace_back();
  for (const Bytes& seed : seeds) {
    run(seed);
    ++executions;
  }
  while (std::chrono::duration<double>(Clock::now() - begun).count() < seconds) {
    run(changed(seeds[below(seeds.size())], maximum));
    ++executions;
  }
  std::fprintf(stderr, "stat::number_of_executed_units: %llu\n", static_cast<unsigned long long>(executions));
  return 0;
}
