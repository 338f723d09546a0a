// Emulates on a CPU the part of CUDA that kernels/ needs. Include it before the source of a kernel, and link
// emulated_cuda/fiber.cpp and emulated_cuda/runtime.cpp.
//
// It detects errors that a compiler does not: lanes that synchronise at different places, or leave others waiting;
// addresses outside shared memory, or unaligned ones; reads of shared memory before a write (it holds noise at first);
// and results that depend on the order of lanes, warps or blocks. Global memory is ordinary memory of the program,
// which sanitizers check.
#pragma once

#define L3_EMULATED_GPU

#include "container/format.h"
#include "emulated_cuda/intrinsics.h"

namespace l3 {

// ---- what kernels/src/launch.h has for GPUs

template <class... Arguments>
cudaError_t launch(void (*kernel)(Arguments...), uint32_t blocks, uint32_t threads, size_t shared_bytes,
                   cudaStream_t stream, std::type_identity_t<Arguments>... arguments) {
  const void* const address = reinterpret_cast<const void*>(kernel);
  return emulated::put_kernel(stream, address, blocks, threads, shared_bytes, [=] {
    const auto run = [&] { emulated::run_grid(blocks, threads, shared_bytes, [&] { kernel(arguments...); }); };
    if (!emulated::control().executor) return run();
    emulated::control().executor({address, blocks, threads, {{&arguments, sizeof(arguments)}...}}, run);
  });
}

// ---- what kernels/src/cuda_instructions.cuh has for GPUs

using std::max;
using std::min;

inline uint32_t lane_number() { return emulated::lane(); }
inline uint32_t lanes_so_far() { return UINT32_MAX >> (31 - emulated::lane()); }

inline uint32_t dot_unsigned(uint32_t a, uint32_t b, uint32_t sum) {
  for (uint32_t i = 0; i < 32; i += 8) sum += (a >> i & 0xFF) * static_cast<uint32_t>(static_cast<int8_t>(b >> i));
  return sum;
}
inline uint32_t dot_signed(uint32_t a, uint32_t b, uint32_t sum) {
  for (uint32_t i = 0; i < 32; i += 8) {
    sum += static_cast<uint32_t>(static_cast<int8_t>(a >> i)) * static_cast<uint32_t>(static_cast<int8_t>(b >> i));
  }
  return sum;
}
inline uint32_t dot_all_unsigned(uint32_t a, uint32_t b, uint32_t sum) {
  for (uint32_t i = 0; i < 32; i += 8) sum += (a >> i & 0xFF) * (b >> i & 0xFF);
  return sum;
}
inline uint32_t dot_of_lower(uint32_t a, uint32_t b, uint32_t sum) {
  for (uint32_t i = 0; i < 2; ++i) {
    sum += static_cast<uint32_t>(static_cast<int16_t>(a >> (16 * i)) * static_cast<int8_t>(b >> (8 * i)));
  }
  return sum;
}
inline uint32_t dot_of_upper(uint32_t a, uint32_t b, uint32_t sum) { return dot_of_lower(a, b >> 16, sum); }
inline uint32_t dot_of_lower_unsigned(uint32_t a, uint32_t b, uint32_t sum) {
  for (uint32_t i = 0; i < 2; ++i) {
    sum += static_cast<uint32_t>(static_cast<uint16_t>(a >> (16 * i)) * static_cast<int8_t>(b >> (8 * i)));
  }
  return sum;
}
inline uint32_t dot_of_upper_unsigned(uint32_t a, uint32_t b, uint32_t sum) {
  return dot_of_lower_unsigned(a, b >> 16, sum);
}
template <uint32_t kNumber>
uint32_t add_if_equal(uint32_t a, uint32_t b, uint32_t one, uint32_t sum) {
  return a == b ? sum + one * kNumber : sum;
}
template <uint32_t kNumber>
uint32_t add_if_not_less(uint32_t a, uint32_t b, uint32_t one, uint32_t sum) {
  return a >= b ? sum + one * kNumber : sum;
}
inline uint32_t clamp_to_top(uint32_t a, uint32_t top) {
  return static_cast<uint32_t>(std::clamp(static_cast<int32_t>(a), 0, static_cast<int32_t>(top)));
}
inline uint32_t add_and_clamp_to_top(uint32_t a, uint32_t b, uint32_t top) { return clamp_to_top(a + b, top); }
inline uint32_t clamp_half_to_top(uint32_t a, uint32_t top) {
  return clamp_to_top(static_cast<uint32_t>(static_cast<int32_t>(static_cast<int16_t>(a))), top);
}
template <uint32_t kBytes>
uint32_t signs_of_bytes(uint32_t a) {
  uint32_t r = 0;
  for (uint32_t i = 0; i < 4; ++i) {
    const uint32_t byte = (kBytes >> (4 * i) & 0xF) - 8;
    r |= (a >> (8 * byte + 7) & 1) * 0xFFu << (8 * i);
  }
  return r;
}
template <uint32_t kBytes>
uint32_t signs_of_bytes(uint32_t a, uint32_t b) {
  const uint64_t both = uint64_t{b} << 32 | a;
  uint32_t r = 0;
  for (uint32_t i = 0; i < 4; ++i) {
    const uint32_t byte = (kBytes >> (4 * i) & 0xF) - 8;
    r |= static_cast<uint32_t>(both >> (8 * byte + 7) & 1) * 0xFFu << (8 * i);
  }
  return r;
}

inline uint32_t bytes_of(uint32_t a, uint32_t b, uint32_t order) {
  emulated::Block::running().expect((order & 0x8888) == 0, "repeats signs of bytes");
  return __byte_perm(a, b, order);
}
inline uint32_t lowest_bits(uint32_t count) { return count >= 32 ? UINT32_MAX : (1u << count) - 1; }
inline uint32_t shift_right_of_two(uint32_t low, uint32_t high, uint32_t by) {
  return by < 64 ? static_cast<uint32_t>((uint64_t{high} << 32 | low) >> by) : 0;
}
template <uint32_t kStep>
uint32_t add_from_below(uint32_t v) {
  const uint32_t below = __shfl_up_sync(UINT32_MAX, v, kStep);
  return emulated::lane() % 8 >= kStep ? v + below : v;
}
inline uint32_t value_of_lane_or(uint32_t v, uint32_t lane, uint32_t other) {
  const uint32_t value = __shfl_sync(UINT32_MAX, v, lane);
  return lane < 31 ? value : other;
}

// To nearest, ties to even, as IEEE 754 has them: binary16, and the upper half of binary32.
inline uint32_t half_of(float v) {
  const uint32_t bits = std::bit_cast<uint32_t>(v), sign = bits >> 16 & 0x8000, magnitude = bits & 0x7FFFFFFF;
  if (magnitude > 0x7F800000) return 0x7FFF;
  if (magnitude >= 0x47800000) return sign | 0x7C00;  // 2^16
  uint32_t number = magnitude - (112u << 23), places = 13;
  if (magnitude < 0x38800000) {  // 2^-14: in units of 2^-24
    const uint32_t exponent = magnitude >> 23;
    if (exponent < 102) return sign;
    number = (magnitude & 0x7FFFFF) | 0x800000;
    places = 126 - exponent;
  }
  const uint32_t half = 1u << (places - 1);
  return sign | (number + half - 1 + (number >> places & 1)) >> places;
}
inline uint32_t bfloat_of(float v) {
  const uint32_t bits = std::bit_cast<uint32_t>(v);
  if ((bits & 0x7FFFFFFF) > 0x7F800000) return 0x7FFF;
  return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
}

inline uint32_t shared_address(const void* p) {
  return static_cast<uint32_t>(static_cast<const char*>(p) - reinterpret_cast<const char*>(shared));
}
inline uint32_t from_here_on(uint32_t address) { return address; }
template <uint32_t kOffset>
uint32_t load_shared_u8(uint32_t address) {
  return emulated::load_shared<uint8_t>(address + kOffset);
}
template <uint32_t kOffset>
uint32_t load_shared_u16(uint32_t address) {
  return emulated::load_shared<uint16_t>(address + kOffset);
}
template <uint32_t kOffset>
uint2 load_shared_two(uint32_t address) {
  return emulated::load_shared<uint2>(address + kOffset);
}
template <uint32_t kOffset>
uint4 load_shared_four(uint32_t address) {
  return emulated::load_shared<uint4>(address + kOffset);
}
template <uint32_t kOffset>
uint32_t load_shared_u8_here(uint32_t address) {
  return emulated::load_shared<uint8_t>(address + kOffset);
}
inline uint32_t load_shared_half_here(uint32_t address) { return emulated::load_shared<uint16_t>(address); }
inline uint32_t load_shared_word_here(uint32_t address) { return emulated::load_shared<uint32_t>(address); }
inline uint2 load_shared_two_here(uint32_t address) { return emulated::load_shared<uint2>(address); }
inline uint4 load_shared_four_here(uint32_t address) { return emulated::load_shared<uint4>(address); }
inline void store_shared_word(uint32_t address, uint32_t v) {
  std::memcpy(emulated::aligned<uint32_t>(reinterpret_cast<char*>(shared) + address), &v, 4);
}

template <class Word>
Word load_global_as(const uint8_t* p) {
  Word v;
  std::memcpy(&v, emulated::aligned<Word>(p), sizeof(Word));
  return v;
}
inline uint32_t load_global_u8(const uint8_t* p) { return load_global_as<uint8_t>(p); }
inline uint32_t load_global_u16(const uint8_t* p) { return load_global_as<uint16_t>(p); }
inline uint32_t load_global_word(const uint8_t* p) { return load_global_as<uint32_t>(p); }
inline uint2 load_global_two(const uint8_t* p) { return load_global_as<uint2>(p); }
inline uint4 load_global_four(const uint8_t* p) { return load_global_as<uint4>(p); }
inline uint32_t load_written_half(const uint8_t* p) { return load_global_as<uint16_t>(p); }
inline uint32_t load_written_word(const uint8_t* p) { return load_global_as<uint32_t>(p); }
inline uint32_t load_atomic(const uint32_t* p) { return load_global_as<uint32_t>(reinterpret_cast<const uint8_t*>(p)); }
inline uint2 load_written_two(const uint8_t* p) { return load_global_as<uint2>(p); }
template <class Byte>
Byte* multiply_add_wide(uint32_t a, uint32_t b, Byte* base) {
  return base + uint64_t{a} * b;
}
inline void store_global(uint8_t* p, uint32_t word) { std::memcpy(emulated::aligned<uint32_t>(p), &word, 4); }
inline void store_global_byte(uint8_t* p, uint32_t byte) { *p = static_cast<uint8_t>(byte); }
inline void store_global_half(uint8_t* p, uint32_t v) {
  const uint16_t half = static_cast<uint16_t>(v);
  std::memcpy(emulated::aligned<uint16_t>(p), &half, 2);
}
inline void store_global_two(uint8_t* p, uint2 words) { std::memcpy(emulated::aligned<uint2>(p), &words, 8); }
inline void store_global_four(uint8_t* p, uint4 words) { std::memcpy(emulated::aligned<uint4>(p), &words, 16); }

}  // namespace l3
