// Chooses the processor target at run time.
#include "targets/target.h"

#include <atomic>
#include <cstdlib>
#include <cstring>

#include "l3/l3.h"

#if defined(__x86_64__)
#include "targets/dense_avx512.h"
#endif

namespace l3 {
namespace {

#if defined(__x86_64__)
#if defined(L3_EMULATE_VBMI)
constexpr bool kEmulatesVbmi = true;  // tests/emulated_vbmi.h
#else
constexpr bool kEmulatesVbmi = false;
#endif
bool has_avx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2"); }
bool has_vnni() {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512vnni");
}
bool has_avx512() { return has_vnni() && (kEmulatesVbmi || __builtin_cpu_supports("avx512vbmi")); }

#if !defined(L3_WITHOUT_VNNI)
// The AVX2 target, except that dense tiles are decoded with AVX-512.
const Target& vnni_target() {
  static const Target combined = [] {
    Target target = kAvx2Target;
    target.name = "vnni";
    target.decode_dense = decode_dense_avx512;
    target.decode_tokens = decode_tokens_avx512;
    return target;
  }();
  return combined;
}
#endif
#endif

const Target* choose(const char* forced) {
  const bool any = forced == nullptr || *forced == 0;
  const auto wanted = [&](const char* name) { return any || std::strcmp(forced, name) == 0; };
#if defined(__x86_64__)
#if !defined(L3_WITHOUT_AVX512)
  if (wanted("avx512") && has_avx512()) return &kAvx512Target;
#endif
#if !defined(L3_WITHOUT_VNNI)
  if (wanted("vnni") && has_vnni()) return &vnni_target();
#endif
#if !defined(L3_WITHOUT_AVX2)
  if (wanted("avx2") && has_avx2()) return &kAvx2Target;
#endif
#endif
#if !defined(L3_WITHOUT_PORTABLE)
  if (wanted("portable")) return &kPortableTarget;
#endif
  return nullptr;
}

// The environment is read once, since another thread may change it at any time.
std::atomic<const Target*>& chosen() {
  static std::atomic<const Target*> target = choose(std::getenv("L3_CPU"));
  return target;
}

}  // namespace

const Target* target() { return chosen().load(std::memory_order_relaxed); }

}  // namespace l3

const char* l3_cpu_target(void) {
  const l3::Target* target = l3::target();
  return target != nullptr ? target->name : nullptr;
}

void l3_force_cpu_target(const char* name) { l3::chosen() = l3::choose(name); }
