#include "target.h"

#include <cstdlib>
#include <cstring>

namespace l3 {
namespace {

#if defined(__x86_64__)
#if defined(L3_EMULATE_VBMI)
constexpr bool kEmulatesVbmi = true;  // tests/emulated_vbmi.h
#else
constexpr bool kEmulatesVbmi = false;
#endif
bool has_avx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2"); }
bool has_avx512() {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512vnni") &&
         (kEmulatesVbmi || __builtin_cpu_supports("avx512vbmi"));
}
#endif

}  // namespace

const Target* target() {
  const char* forced = std::getenv("L3_CPU");
  const bool any = forced == nullptr || *forced == 0;
#if defined(__x86_64__)
  if ((any || std::strcmp(forced, kAvx512Target.name) == 0) && has_avx512()) return &kAvx512Target;
  if ((any || std::strcmp(forced, kAvx2Target.name) == 0) && has_avx2()) return &kAvx2Target;
#endif
  if (any || std::strcmp(forced, kPortableTarget.name) == 0) return &kPortableTarget;
  return nullptr;
}

}  // namespace l3
