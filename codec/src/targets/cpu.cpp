// Implements cpu.h and the functions of l3.h that choose the target.
#include "targets/cpu.h"

#include <atomic>
#include <cstdlib>
#include <cstring>

#include "l3/l3.h"

namespace l3 {
namespace {

struct Choice {
  Cpu cpu;
  const char* name;
  bool (*is_supported)();
};

bool is_always_supported() { return true; }
#if defined(__x86_64__)
#if defined(L3_EMULATE_VBMI)
constexpr bool kEmulatesVbmi = true;  // tests/emulated_vbmi.h
#else
constexpr bool kEmulatesVbmi = false;
#endif
bool has_sse4() { return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt"); }
bool has_avx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2"); }
bool has_vnni() {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512vnni");
}
bool has_avx512() { return has_vnni() && (kEmulatesVbmi || __builtin_cpu_supports("avx512vbmi")); }
#endif

// The targets of this build, best first.
constexpr Choice kChoices[] = {
#if defined(__x86_64__)
    {Cpu::avx512, "avx512", L3_WITH_AVX512 ? has_avx512 : nullptr},
    {Cpu::vnni, "vnni", L3_WITH_VNNI ? has_vnni : nullptr},
    {Cpu::avx2, "avx2", L3_WITH_AVX2 ? has_avx2 : nullptr},
    {Cpu::sse4, "sse4", L3_WITH_SSE4 ? has_sse4 : nullptr},
#endif
#if defined(__aarch64__)
    {Cpu::neon, "neon", L3_WITH_NEON ? is_always_supported : nullptr},
#endif
    {Cpu::portable, "portable", L3_WITH_PORTABLE ? is_always_supported : nullptr},
};

Cpu choose(const char* forced) {
  const bool any = forced == nullptr || *forced == 0;
  for (const Choice& choice : kChoices) {
    if (!any && std::strcmp(forced, choice.name) != 0) continue;
    if (choice.is_supported != nullptr && choice.is_supported()) return choice.cpu;
  }
  return Cpu::none;
}

// The environment is read once, since another thread may change it at any time.
std::atomic<Cpu>& chosen() {
  static std::atomic<Cpu> cpu = choose(std::getenv("L3_CPU"));
  return cpu;
}

}  // namespace

Cpu chosen_cpu() { return chosen().load(std::memory_order_relaxed); }

}  // namespace l3

using namespace l3;

const char* l3_cpu_target(void) {
  const Cpu cpu = chosen_cpu();
  for (const Choice& choice : kChoices) {
    if (choice.cpu == cpu) return choice.name;
  }
  return nullptr;
}

void l3_force_cpu_target(const char* name) { chosen() = choose(name); }
