// Times the hot loops of libl3 on each processor target that is here: NAME/TARGET. Options are Google Benchmark's, such
// as --benchmark_filter=decode and --benchmark_min_time=0.05.
#include <benchmark/benchmark.h>

#include <memory>
#include <string>

#include "l3/l3.h"
#include "loop_set.h"

namespace {

using PreparedOnce = std::shared_ptr<micro::Prepared>;

void measure(benchmark::State& state, const micro::Loop& loop, const PreparedOnce& once, const char* target) {
  l3_force_cpu_target(target);
  if (!once->turn && once->failure.empty()) *once = loop.prepare();
  if (!once->turn) return state.SkipWithError(once->failure.c_str());
  for ([[maybe_unused]] const auto turn : state) {
    if (!once->turn()) return state.SkipWithError("libl3 failed");
    benchmark::ClobberMemory();
  }
  const auto turns = static_cast<int64_t>(state.iterations());
  const auto per_turn = [&](uint64_t amount) {
    return benchmark::Counter(static_cast<double>(amount) / 1e6 * static_cast<double>(turns),
                              benchmark::Counter::kIsRate);
  };
  if (once->pixels != 0) {
    state.SetItemsProcessed(static_cast<int64_t>(once->pixels) * turns);
    state.counters["MP/s"] = per_turn(once->pixels);
  } else {
    state.SetBytesProcessed(static_cast<int64_t>(once->bytes) * turns);
    state.counters["MB/s"] = per_turn(once->bytes);
  }
}

void add_all() {
  for (const micro::Loop& loop : micro::all_loops()) {
    // Made once for all targets, and not before it is needed.
    const auto once = std::make_shared<micro::Prepared>();
    for (const char* target : {"portable", "neon", "sse4", "avx2", "vnni", "avx512"}) {
      l3_force_cpu_target(target);
      if (l3_cpu_target() == nullptr) continue;
      benchmark::RegisterBenchmark((std::string(loop.name) + "/" + target).c_str(), [&loop, once,
                                                                                     target](benchmark::State& state) {
        measure(state, loop, once, target);
      })->Unit(benchmark::kMicrosecond);
    }
  }
}

}  // namespace

int main(int count, char** words) {
  benchmark::Initialize(&count, words);
  if (benchmark::ReportUnrecognizedArguments(count, words)) return 2;
  add_all();
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
