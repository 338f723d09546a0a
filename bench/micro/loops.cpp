// Runs one loop, for tools that count instructions. bench/gate.py runs it with one turn and with two: the difference
// excludes the preparation.
// Usage: l3_loops NAME COUNT. Without arguments it lists the names; --build prints how it was compiled.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#if defined(__GLIBC__)
#include <gnu/libc-version.h>
#endif

#include "l3/l3.h"
#include "loop_set.h"

namespace {

constexpr int kUsage = 2;
constexpr int kLacksTarget = 3;  // the processor does not have what L3_CPU names

// What counts depend on beside the source: "word: value" in each line.
void say_build() {
  std::printf("compiler: %s\nflags: %s\nmachine: %s\n", L3_LOOPS_COMPILER, L3_LOOPS_FLAGS, L3_LOOPS_MACHINE);
#if defined(__GLIBC__)
  std::printf("libc: glibc %s\n", gnu_get_libc_version());
#else
  std::printf("libc: unknown\n");
#endif
}

int run(const char* name, unsigned long turns) {
  for (const micro::Loop& loop : micro::all_loops()) {
    if (loop.name != name) continue;
    const micro::Prepared prepared = loop.prepare();
    if (!prepared.turn) return std::fprintf(stderr, "l3_loops: %s: %s\n", name, prepared.failure.c_str()), 1;
    for (unsigned long i = 0; i < turns; ++i) {
      if (!prepared.turn()) return std::fprintf(stderr, "l3_loops: %s: libl3 failed\n", name), 1;
    }
    return 0;
  }
  return std::fprintf(stderr, "l3_loops: %s: no such loop\n", name), kUsage;
}

}  // namespace

int main(int count, char** words) {
  if (count == 2 && std::strcmp(words[1], "--build") == 0) {
    say_build();
    return 0;
  }
  if (count == 1) {
    for (const micro::Loop& loop : micro::all_loops()) {
      std::printf("%.*s\n", static_cast<int>(loop.name.size()), loop.name.data());
    }
    return 0;
  }
  char* end = nullptr;
  const unsigned long turns = count == 3 ? std::strtoul(words[2], &end, 10) : 0;
  if (turns == 0 || *end != 0) return std::fprintf(stderr, "usage: l3_loops [NAME COUNT | --build]\n"), kUsage;
  if (l3_cpu_target() == nullptr) {
    return std::fprintf(stderr, "l3_loops: this processor lacks what L3_CPU names\n"), kLacksTarget;
  }
  return run(words[1], turns);
}
