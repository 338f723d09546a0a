// CUDA's keywords and intrinsics, as far as kernels/ needs them.
#pragma once

#include <bit>
#include <cmath>
#include <concepts>
#include <type_traits>

#include "block.h"

// NOLINTBEGIN(bugprone-reserved-identifier): they are CUDA's
#define __device__
#define __host__
#define __global__
#define __shared__
#define __grid_constant__
#define __forceinline__ inline
#define __launch_bounds__(...)

#define threadIdx (emulated::Index{emulated::Block::running().thread()})
#define blockIdx (emulated::Index{emulated::Block::running().index()})
#define blockDim (emulated::Index{emulated::Block::running().threads()})
#define gridDim (emulated::Index{emulated::Block::running().blocks()})

namespace emulated {

// All lanes must be asked for.
inline uint32_t meet_warp(Meeting meeting, uint32_t mask, int line, uint32_t value) {
  Block::running().expect(mask == UINT32_MAX, "asks for some lanes only");
  return static_cast<uint32_t>(Block::running().meet(meeting, line, value));
}

// What passes between lanes, and through memory at once, as a number.
template <class T>
uint64_t to_number(T v) {
  static_assert(std::is_arithmetic_v<T> && (sizeof(T) == 4 || sizeof(T) == 8));
  uint64_t number = 0;
  std::memcpy(&number, &v, sizeof(v));
  return number;
}
template <class T>
T from_number(uint64_t number) {
  T v;
  std::memcpy(&v, &number, sizeof(v));
  return v;
}

template <class T>
T shuffle(uint32_t mask, T v, uint32_t source, int line) {
  Block::running().expect(mask == UINT32_MAX, "asks for some lanes only");
  return from_number<T>(Block::running().meet(Meeting::shuffle, line, to_number(v), source));
}

// One step of memory, which nobody comes between: threads take turns.
template <class T, class Change>
T change(T* at, const Change& to) {
  T before;
  std::memcpy(&before, aligned<T>(at), sizeof(T));
  const T after = to(before);
  std::memcpy(at, &after, sizeof(T));
  return before;
}

}  // namespace emulated

// ---- between lanes

// Lanes may be counted with or without a sign.
template <class T, std::integral Lane>
T __shfl_sync(uint32_t mask, T v, Lane source, int line = __builtin_LINE()) {
  return emulated::shuffle(mask, v, static_cast<uint32_t>(source), line);
}
template <class T, std::integral Lane>
T __shfl_up_sync(uint32_t mask, T v, Lane by, int line = __builtin_LINE()) {
  const uint32_t lane = emulated::lane(), step = static_cast<uint32_t>(by);
  return emulated::shuffle(mask, v, lane < step ? lane : lane - step, line);
}
template <class T, std::integral Lane>
T __shfl_down_sync(uint32_t mask, T v, Lane by, int line = __builtin_LINE()) {
  const uint32_t lane = emulated::lane(), step = static_cast<uint32_t>(by);
  return emulated::shuffle(mask, v, lane + step < emulated::kLanes ? lane + step : lane, line);
}
template <class T, std::integral Lane>
T __shfl_xor_sync(uint32_t mask, T v, Lane bits, int line = __builtin_LINE()) {
  return emulated::shuffle(mask, v, emulated::lane() ^ static_cast<uint32_t>(bits), line);
}
inline uint32_t __ballot_sync(uint32_t mask, bool v, int line = __builtin_LINE()) {
  return emulated::meet_warp(emulated::Meeting::ballot, mask, line, v);
}
inline bool __all_sync(uint32_t mask, bool v, int line = __builtin_LINE()) {
  return __ballot_sync(mask, v, line) == UINT32_MAX;
}
inline bool __any_sync(uint32_t mask, bool v, int line = __builtin_LINE()) { return __ballot_sync(mask, v, line) != 0; }
template <class T>
uint32_t __match_any_sync(uint32_t mask, T v, int line = __builtin_LINE()) {
  emulated::Block::running().expect(mask == UINT32_MAX, "asks for some lanes only");
  return static_cast<uint32_t>(emulated::Block::running().meet(emulated::Meeting::match, line, emulated::to_number(v)));
}
inline uint32_t __reduce_add_sync(uint32_t mask, uint32_t v, int line = __builtin_LINE()) {
  return emulated::meet_warp(emulated::Meeting::sum, mask, line, v);
}
inline uint32_t __reduce_min_sync(uint32_t mask, uint32_t v, int line = __builtin_LINE()) {
  return emulated::meet_warp(emulated::Meeting::minimum, mask, line, v);
}
inline uint32_t __reduce_max_sync(uint32_t mask, uint32_t v, int line = __builtin_LINE()) {
  return emulated::meet_warp(emulated::Meeting::maximum, mask, line, v);
}
inline uint32_t __reduce_and_sync(uint32_t mask, uint32_t v, int line = __builtin_LINE()) {
  return emulated::meet_warp(emulated::Meeting::bitwise_and, mask, line, v);
}
inline uint32_t __reduce_or_sync(uint32_t mask, uint32_t v, int line = __builtin_LINE()) {
  return emulated::meet_warp(emulated::Meeting::bitwise_or, mask, line, v);
}
inline uint32_t __reduce_xor_sync(uint32_t mask, uint32_t v, int line = __builtin_LINE()) {
  return emulated::meet_warp(emulated::Meeting::bitwise_xor, mask, line, v);
}
inline void __syncwarp(uint32_t mask = UINT32_MAX, int line = __builtin_LINE()) {
  emulated::meet_warp(emulated::Meeting::wait, mask, line, 0);
}

// ---- between the threads of a block

inline void __syncthreads(int line = __builtin_LINE()) {
  emulated::Block::running().meet(emulated::Meeting::wait_for_block, line, 0);
}
inline int __syncthreads_count(int v, int line = __builtin_LINE()) {
  return static_cast<int>(emulated::Block::running().meet(emulated::Meeting::block_count, line, v != 0));
}
inline int __syncthreads_and(int v, int line = __builtin_LINE()) {
  return static_cast<int>(emulated::Block::running().meet(emulated::Meeting::block_and, line, v != 0));
}
inline int __syncthreads_or(int v, int line = __builtin_LINE()) {
  return static_cast<int>(emulated::Block::running().meet(emulated::Meeting::block_or, line, v != 0));
}
inline void __threadfence() {}
inline void __threadfence_block() {}
inline void __threadfence_system() {}

// ---- memory

// Overloads for the types that CUDA has them for, and no others.
#define L3_ATOMIC(type, name, result)                                         \
  inline type name(type* at, type v) {                                        \
    return emulated::change(at, [v](type before) -> type { return result; }); \
  }
#define L3_ATOMIC_OF_ALL(name, result) \
  L3_ATOMIC(int, name, result)         \
  L3_ATOMIC(unsigned, name, result)    \
  L3_ATOMIC(unsigned long long, name, result)
L3_ATOMIC(int, atomicAdd, static_cast<int>(static_cast<unsigned>(before) + static_cast<unsigned>(v)))
L3_ATOMIC(unsigned, atomicAdd, before + v)
L3_ATOMIC(unsigned long long, atomicAdd, before + v)
L3_ATOMIC(float, atomicAdd, before + v)
L3_ATOMIC(unsigned, atomicSub, before - v)
L3_ATOMIC_OF_ALL(atomicMin, before < v ? before : v)
L3_ATOMIC_OF_ALL(atomicMax, before > v ? before : v)
L3_ATOMIC_OF_ALL(atomicAnd, before& v)
L3_ATOMIC_OF_ALL(atomicOr, before | v)
L3_ATOMIC_OF_ALL(atomicXor, before ^ v)
L3_ATOMIC_OF_ALL(atomicExch, (static_cast<void>(before), v))
#undef L3_ATOMIC_OF_ALL
#undef L3_ATOMIC

template <class T>
T atomicCAS(T* at, std::type_identity_t<T> expected, std::type_identity_t<T> v) {
  static_assert(std::is_same_v<T, int> || std::is_same_v<T, unsigned> || std::is_same_v<T, unsigned long long>);
  return emulated::change(at, [=](T before) { return before == expected ? v : before; });
}

// Memory that nobody writes to while the kernel runs.
template <class T>
T __ldg(const T* p) {
  T v;
  std::memcpy(&v, emulated::aligned<T>(p), sizeof(T));
  return v;
}

// ---- numbers

// Numbers of 32 and of 64 bits, with or without a sign. Counts are unsigned, where CUDA has int: the processor's
// compiler warns of more than nvcc does.
namespace emulated {
template <size_t kBytes, std::integral T>
auto bits_of(T v) {
  static_assert(sizeof(T) == kBytes);
  return static_cast<std::make_unsigned_t<T>>(v);
}
}  // namespace emulated
template <class T>
uint32_t __popc(T v) {
  return static_cast<uint32_t>(std::popcount(emulated::bits_of<4>(v)));
}
template <class T>
uint32_t __popcll(T v) {
  return static_cast<uint32_t>(std::popcount(emulated::bits_of<8>(v)));
}
template <class T>
uint32_t __clz(T v) {
  return static_cast<uint32_t>(std::countl_zero(emulated::bits_of<4>(v)));
}
template <class T>
uint32_t __clzll(T v) {
  return static_cast<uint32_t>(std::countl_zero(emulated::bits_of<8>(v)));
}
template <class T>
uint32_t __ffs(T v) {
  return v == 0 ? 0 : static_cast<uint32_t>(std::countr_zero(emulated::bits_of<4>(v))) + 1;
}
template <class T>
uint32_t __ffsll(T v) {
  return v == 0 ? 0 : static_cast<uint32_t>(std::countr_zero(emulated::bits_of<8>(v))) + 1;
}
inline uint32_t __brev(uint32_t v) {
  uint32_t r = 0;
  for (uint32_t i = 0; i < 32; ++i) r |= (v >> i & 1) << (31 - i);
  return r;
}
inline uint32_t __sad(int a, int b, uint32_t sum) { return sum + static_cast<uint32_t>(std::abs(int64_t{a} - b)); }
inline uint32_t __umulhi(uint32_t a, uint32_t b) { return static_cast<uint32_t>(uint64_t{a} * b >> 32); }
inline uint32_t __funnelshift_l(uint32_t low, uint32_t high, uint32_t by) {
  return static_cast<uint32_t>((uint64_t{high} << 32 | low) << (by & 31) >> 32);
}
inline uint32_t __funnelshift_r(uint32_t low, uint32_t high, uint32_t by) {
  return static_cast<uint32_t>((uint64_t{high} << 32 | low) >> (by & 31));
}
inline uint32_t __funnelshift_rc(uint32_t low, uint32_t high, uint32_t by) {
  return by < 32 ? __funnelshift_r(low, high, by) : high;
}
inline uint32_t __byte_perm(uint32_t a, uint32_t b, uint32_t order) {
  const uint64_t both = uint64_t{b} << 32 | a;
  uint32_t r = 0;
  for (uint32_t i = 0; i < 4; ++i) r |= static_cast<uint32_t>(both >> (8 * (order >> (4 * i) & 7)) & 0xFF) << (8 * i);
  return r;
}
inline uint32_t __vabsdiffu4(uint32_t a, uint32_t b) {
  uint32_t r = 0;
  for (uint32_t i = 0; i < 32; i += 8) {
    const int x = static_cast<int>(a >> i & 0xFF), y = static_cast<int>(b >> i & 0xFF);
    r |= static_cast<uint32_t>(std::abs(x - y)) << i;
  }
  return r;
}
inline uint32_t __float_as_uint(float v) { return std::bit_cast<uint32_t>(v); }
inline float __uint_as_float(uint32_t v) { return std::bit_cast<float>(v); }
inline float __fmaf_rn(float a, float b, float c) { return std::fmaf(a, b, c); }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __int2float_rn(int v) { return static_cast<float>(v); }
inline float __uint2float_rn(uint32_t v) { return static_cast<float>(v); }
// To nearest, ties to even; what is outside is brought inside, and no number is 0.
inline int32_t __float2int_rn(float v) { return static_cast<int32_t>(std::nearbyint(v)); }
inline uint32_t __float2uint_rn(float v) {
  if (!(v > 0)) return 0;
  return v >= 0x1p32f ? UINT32_MAX : static_cast<uint32_t>(std::nearbyintf(v));
}

// NOLINTEND(bugprone-reserved-identifier)
