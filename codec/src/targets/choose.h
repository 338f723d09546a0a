// Chooses the processor target at run time: one rule for the decoder's loops and for the encoder's.
#pragma once

#include <cstdlib>
#include <cstring>

namespace l3 {

#if defined(__x86_64__)
#if defined(L3_EMULATE_VBMI)
constexpr bool kEmulatesVbmi = true;  // tests/emulated_vbmi.h
#else
constexpr bool kEmulatesVbmi = false;
#endif
inline bool has_avx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2"); }
inline bool has_vnni() {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512vnni");
}
inline bool has_avx512() { return has_vnni() && (kEmulatesVbmi || __builtin_cpu_supports("avx512vbmi")); }
#endif

// Returns what `Choices` has for the best target that this processor supports, or for the one that the environment
// variable L3_CPU names. Returns null if that target is unknown, not supported, or not in this build.
template <class Choices>
auto choose() -> decltype(Choices::portable()) {
  const char* forced = std::getenv("L3_CPU");
  const bool any = forced == nullptr || *forced == 0;
  const auto wanted = [&](const char* name) { return any || std::strcmp(forced, name) == 0; };
#if defined(__x86_64__)
#if !defined(L3_WITHOUT_AVX512)
  if (wanted("avx512") && has_avx512()) return Choices::avx512();
#endif
#if !defined(L3_WITHOUT_VNNI)
  if (wanted("vnni") && has_vnni()) return Choices::vnni();
#endif
#if !defined(L3_WITHOUT_AVX2)
  if (wanted("avx2") && has_avx2()) return Choices::avx2();
#endif
#endif
#if !defined(L3_WITHOUT_PORTABLE)
  if (wanted("portable")) return Choices::portable();
#endif
  return nullptr;
}

}  // namespace l3
