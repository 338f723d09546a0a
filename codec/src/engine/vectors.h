// Vectors of the compiler's vector extension, and the lanes that warps on processors make of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "container/dense.h"
#include "container/format.h"

namespace l3 {

// Native vectors by size in bytes.
template <size_t kBytes>
struct VectorTypes {
  typedef uint8_t U8 __attribute__((vector_size(kBytes)));
  typedef int8_t I8 __attribute__((vector_size(kBytes)));
  typedef uint16_t U16 __attribute__((vector_size(kBytes)));
  typedef int16_t I16 __attribute__((vector_size(kBytes)));
  typedef uint32_t U32 __attribute__((vector_size(kBytes)));
  typedef int32_t I32 __attribute__((vector_size(kBytes)));
  typedef uint64_t U64 __attribute__((vector_size(kBytes)));
  typedef float F32 __attribute__((vector_size(kBytes)));
};

// 32 numbers of 16 bits.
template <size_t kBytes>
struct Lanes {
  using Vector = typename VectorTypes<kBytes>::U16;
  using Signed = typename VectorTypes<kBytes>::I16;
  static constexpr int kPerVector = static_cast<int>(kBytes / 2);
  static constexpr int kVectors = static_cast<int>(64 / kBytes);
  Vector v[64 / kBytes];

  L3_INLINE friend Lanes operator+(Lanes a, const Lanes& b) {
    for (int i = 0; i < kVectors; ++i) a.v[i] += b.v[i];
    return a;
  }
  L3_INLINE friend Lanes operator-(Lanes a, const Lanes& b) {
    for (int i = 0; i < kVectors; ++i) a.v[i] -= b.v[i];
    return a;
  }
  L3_INLINE friend Lanes operator&(Lanes a, const Lanes& b) {
    for (int i = 0; i < kVectors; ++i) a.v[i] &= b.v[i];
    return a;
  }
  L3_INLINE friend Lanes operator|(Lanes a, const Lanes& b) {
    for (int i = 0; i < kVectors; ++i) a.v[i] |= b.v[i];
    return a;
  }
  L3_INLINE friend Lanes operator^(Lanes a, const Lanes& b) {
    for (int i = 0; i < kVectors; ++i) a.v[i] ^= b.v[i];
    return a;
  }
};

// 32 numbers of 32 bits.
template <size_t kBytes>
struct Words {
  using Vector = typename VectorTypes<kBytes>::U32;
  static constexpr int kVectors = static_cast<int>(128 / kBytes);
  Vector v[128 / kBytes];

  L3_INLINE friend Words operator^(Words a, const Words& b) {
    for (int i = 0; i < kVectors; ++i) a.v[i] ^= b.v[i];
    return a;
  }
  L3_INLINE friend Words operator*(Words a, uint32_t b) {
    for (int i = 0; i < kVectors; ++i) a.v[i] *= b;
    return a;
  }
  L3_INLINE friend Words operator>>(Words a, int count) {
    for (int i = 0; i < kVectors; ++i) a.v[i] >>= count;
    return a;
  }
};

// A constant in all lanes. GCC 12 builds a constant vector with three instructions wherever it has no free register to
// keep it in. If the words appear variable to it, it loads the vector with one instruction.
template <uint32_t kValue>
struct ConstantWords {
  alignas(64) static inline uint32_t words[16] = {kValue, kValue, kValue, kValue, kValue, kValue, kValue, kValue,
                                                  kValue, kValue, kValue, kValue, kValue, kValue, kValue, kValue};
};

template <size_t kBytes>
struct WordLanes {
  using Vector = typename VectorTypes<kBytes>::U32;
  Vector v;

  template <uint32_t kValue>
  L3_INLINE static Vector of(Constant<kValue>) {
    Vector r;
    std::memcpy(&r, ConstantWords<kValue>::words, kBytes);
    return r;
  }
  template <uint32_t kValue>
  L3_INLINE friend WordLanes operator+(WordLanes a, Constant<kValue> b) {
    return {a.v + of(b)};
  }
  template <uint32_t kValue>
  L3_INLINE friend WordLanes operator*(WordLanes a, Constant<kValue> b) {
    return {a.v * of(b)};
  }
  template <uint32_t kValue>
  L3_INLINE friend WordLanes operator&(WordLanes a, Constant<kValue> b) {
    return {a.v & of(b)};
  }
  template <uint32_t kValue>
  L3_INLINE friend WordLanes operator^(WordLanes a, Constant<kValue> b) {
    return {a.v ^ of(b)};
  }
  template <uint32_t kValue>
  L3_INLINE friend WordLanes operator|(WordLanes a, Constant<kValue> b) {
    return {a.v | of(b)};
  }

  L3_INLINE friend WordLanes operator+(WordLanes a, WordLanes b) { return {a.v + b.v}; }
  L3_INLINE friend WordLanes operator-(WordLanes a, WordLanes b) { return {a.v - b.v}; }
  L3_INLINE friend WordLanes operator*(WordLanes a, WordLanes b) { return {a.v * b.v}; }
  L3_INLINE friend WordLanes operator&(WordLanes a, WordLanes b) { return {a.v & b.v}; }
  L3_INLINE friend WordLanes operator|(WordLanes a, WordLanes b) { return {a.v | b.v}; }
  L3_INLINE friend WordLanes operator^(WordLanes a, WordLanes b) { return {a.v ^ b.v}; }
  L3_INLINE friend WordLanes operator+(WordLanes a, uint32_t b) { return {a.v + b}; }
  L3_INLINE friend WordLanes operator*(WordLanes a, uint32_t b) { return {a.v * b}; }
  L3_INLINE friend WordLanes operator~(WordLanes a) { return {~a.v}; }
  L3_INLINE friend WordLanes operator<<(WordLanes a, int count) { return {a.v << count}; }
  L3_INLINE friend WordLanes operator>>(WordLanes a, int count) { return {a.v >> count}; }
};

// Hides from the compiler where a number or a pointer comes from. It then addresses everything from this pointer,
// instead of keeping a pointer for each array.
template <class Number>
L3_INLINE Number held(Number number) {
  asm("" : "+r"(number));
  return number;
}

// A byte for each of 32 lanes, in the order that the warp has chosen.
template <size_t kBytes>
struct BytePlane {
  using Vector = typename VectorTypes<kBytes>::U8;
  static constexpr uint32_t kVectors = kLanes / kBytes;
  Vector v[kVectors];

  // Makes a plane from a function of the number of the byte.
  template <class F>
  L3_INLINE static BytePlane of(const F& f) {
    uint8_t bytes[kLanes];
    for (uint32_t i = 0; i < kLanes; ++i) bytes[i] = static_cast<uint8_t>(f(i));
    BytePlane r;
    std::memcpy(r.v, bytes, kLanes);
    return r;
  }
  L3_INLINE void store(uint8_t* to) const { std::memcpy(to, v, kLanes); }
  L3_INLINE friend BytePlane operator+(BytePlane a, const BytePlane& b) {
    for (uint32_t i = 0; i < kVectors; ++i) a.v[i] += b.v[i];
    return a;
  }
  L3_INLINE friend BytePlane operator-(BytePlane a, const BytePlane& b) {
    for (uint32_t i = 0; i < kVectors; ++i) a.v[i] -= b.v[i];
    return a;
  }
  L3_INLINE friend BytePlane operator^(BytePlane a, const BytePlane& b) {
    for (uint32_t i = 0; i < kVectors; ++i) a.v[i] ^= b.v[i];
    return a;
  }
};

}  // namespace l3
