// The memory that codecs take, as the system counts it.
#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <optional>
#include <string>

#include "bench/timing.h"
#include "codecs/codec.h"

#ifdef __linux__
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#endif
#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace bench {
namespace {

#if defined(__linux__) && defined(__GLIBC__)

// A line of /proc/self/status, in bytes.
std::optional<uint64_t> status_of(const char* name) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    uint64_t kilobytes = 0;
    if (word == name && status >> kilobytes) return kilobytes * 1024;
  }
  return std::nullopt;
}

// How far what is resident grows while `work` runs. Nothing where the system does not say.
template <typename Work>
std::optional<uint64_t> growth_during(Work work) {
  malloc_trim(0);  // room that is kept would be used again and not be seen
  const std::optional<uint64_t> before = status_of("VmRSS:");
  std::ofstream reset("/proc/self/clear_refs");
  reset << "5" << std::flush;  // the peak begins anew here
  if (!before || !reset || !work()) return std::nullopt;
  const std::optional<uint64_t> peak = status_of("VmHWM:");
  if (!peak) return std::nullopt;
  return *peak - std::min(*peak, *before);
}

// In a process of its own, so that nothing of it is left.
std::optional<PeakMemory> peak_memory(const Codec& codec, const Sample& sample) {
  const Adapter& adapter = *codec.adapter();
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) return std::nullopt;
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    // Signals that end the command are blocked here: an encoder that takes minutes must not outlive it.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    std::array<uint64_t, 3> reply{};
    {
      bridge::Buffer file;
      formats::Image image;
      image.width = sample.image.width;
      image.height = sample.image.height;
      image.bits = sample.image.bits;
      image.colour = sample.image.colour;
      const auto encode = growth_during([&] { return !adapter.encode(sample.image, codec.level, file).has_value(); });
      const bool supplied = adapter.takes_supplied != nullptr && adapter.takes_supplied(sample.file.bytes());
      const auto decode = growth_during(
          [&] { return !adapter.decode(supplied ? sample.file.bytes() : file.bytes(), image).has_value(); });
      if (encode && decode) reply = {1, adapter.decodes_only ? 0 : *encode, *decode};
    }
    const bool told = write(ends[1], reply.data(), sizeof reply) == static_cast<ssize_t>(sizeof reply);
    _exit(told ? 0 : 1);
  }
  close(ends[1]);
  std::array<uint64_t, 3> reply{};
  const bool heard = child > 0 && read(ends[0], reply.data(), sizeof reply) == static_cast<ssize_t>(sizeof reply);
  close(ends[0]);
  if (child > 0) waitpid(child, nullptr, 0);
  if (!heard || reply[0] == 0) return std::nullopt;
  return PeakMemory{reply[1], reply[2]};
}

#else

std::optional<PeakMemory> peak_memory(const Codec&, const Sample&) { return std::nullopt; }

#endif

}  // namespace

void measure_memory(const Sample& sample, SetFigures& figures) {
  for (CodecFigures& measured : figures.codecs) {
    const auto codecs = all_codecs();
    const auto codec =
        std::find_if(codecs.begin(), codecs.end(), [&](const Codec& one) { return measured.name == one.name; });
    if (codec == codecs.end() || codec->adapter() == nullptr || measured.files == 0) continue;
    if (!codec->adapter()->cannot_hold(sample.image).empty()) continue;
    measured.memory = peak_memory(*codec, sample);
  }
}

}  // namespace bench
