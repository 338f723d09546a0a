#include "bench/machine.h"

#include <array>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <sstream>
#include <thread>

#include "l3/l3.h"

namespace bench {
namespace {

// The value of a line "NAME : VALUE" of a file of /proc.
std::string value_of(const char* path, const std::string& name) {
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    const size_t colon = line.find(':');
    if (!line.starts_with(name) || colon == line.npos) continue;
    const size_t begin = line.find_first_not_of(" \t", colon + 1);
    return begin == line.npos ? "" : line.substr(begin);
  }
  return "";
}

std::string text_of(const char* path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

std::string compiler() {
#if defined(__clang__)
  return std::string("clang ") + std::to_string(__clang_major__) + "." + std::to_string(__clang_minor__);
#elif defined(__GNUC__)
  return std::string("gcc ") + std::to_string(__GNUC__) + "." + std::to_string(__GNUC_MINOR__);
#else
  return "an unknown compiler";
#endif
}

}  // namespace

Machine this_machine() {
  Machine machine;
  machine.processor = value_of("/proc/cpuinfo", "model name");
  if (machine.processor.empty()) machine.processor = "an unknown processor";
  machine.processors = std::thread::hardware_concurrency();
  std::istringstream memory(value_of("/proc/meminfo", "MemTotal"));
  if (double kilobytes = 0; memory >> kilobytes) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.1f GiB", kilobytes / (1 << 20));
    machine.memory = text.data();
  }
  machine.system = text_of("/proc/sys/kernel/ostype") + " " + text_of("/proc/sys/kernel/osrelease");
  machine.compiler = compiler();
  machine.library = std::string("libl3 ") + l3_version_text() + ", " + l3_cpu_target();
  const std::time_t now = std::time(nullptr);
  std::array<char, 16> day{};
  std::tm parts{};
  std::strftime(day.data(), day.size(), "%Y-%m-%d", gmtime_r(&now, &parts));
  machine.date = day.data();
  return machine;
}

}  // namespace bench
