// Machine instructions that have no equivalent in C++.
#pragma once

#include "container/format.h"

namespace l3 {

constexpr uint32_t kAllLanes = 0xFFFFFFFFu;

#if !defined(L3_EMULATED_GPU)  // tests/emulated_gpu.h has its own

L3_INLINE uint32_t lane_number() {
  uint32_t lane;
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  return lane;
}
// A bit for each lane up to and including this one. Reading it takes long, so the compiler shall keep it (volatile).
L3_INLINE uint32_t lanes_so_far() {
  uint32_t mask;
  asm volatile("mov.u32 %0, %%lanemask_le;" : "=r"(mask));
  return mask;
}

// Add the four products of the bytes of a and b to `sum`. The bytes of a are unsigned in the first function and signed
// in the second, and the bytes of b are signed in both. In the third function no byte is signed.
L3_INLINE uint32_t dot_unsigned(uint32_t a, uint32_t b, uint32_t sum) {
  uint32_t r;
  asm("dp4a.u32.s32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(sum));
  return r;
}
L3_INLINE uint32_t dot_signed(uint32_t a, uint32_t b, uint32_t sum) {
  uint32_t r;
  asm("dp4a.s32.s32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(sum));
  return r;
}
L3_INLINE uint32_t dot_all_unsigned(uint32_t a, uint32_t b, uint32_t sum) {
  uint32_t r;
  asm("dp4a.u32.u32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(sum));
  return r;
}

// Add two products of signed numbers to `sum`: the 16-bit halves of a times the two lower, or the two upper, bytes of
// b.
L3_INLINE uint32_t dot_of_lower(uint32_t a, uint32_t b, uint32_t sum) {
  uint32_t r;
  asm("dp2a.lo.s32.s32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(sum));
  return r;
}
L3_INLINE uint32_t dot_of_upper(uint32_t a, uint32_t b, uint32_t sum) {
  uint32_t r;
  asm("dp2a.hi.s32.s32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(sum));
  return r;
}
// The same for unsigned halves of a.
L3_INLINE uint32_t dot_of_lower_unsigned(uint32_t a, uint32_t b, uint32_t sum) {
  uint32_t r;
  asm("dp2a.lo.u32.s32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(sum));
  return r;
}
L3_INLINE uint32_t dot_of_upper_unsigned(uint32_t a, uint32_t b, uint32_t sum) {
  uint32_t r;
  asm("dp2a.hi.u32.s32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(sum));
  return r;
}
// Adds kNumber to `sum` if a equals b. `one` is 1, which the compiler must not know: a product keeps the addition away
// from the pipe that comparisons use.
template <uint32_t kNumber>
L3_INLINE uint32_t add_if_equal(uint32_t a, uint32_t b, uint32_t one, uint32_t sum) {
  asm("{ .reg .pred p; setp.eq.u32 p, %1, %2; @p mad.lo.u32 %0, %3, %4, %0; }"
      : "+r"(sum)
      : "r"(a), "r"(b), "r"(one), "n"(kNumber));
  return sum;
}
// The same if a is not less than b.
template <uint32_t kNumber>
L3_INLINE uint32_t add_if_not_less(uint32_t a, uint32_t b, uint32_t one, uint32_t sum) {
  asm("{ .reg .pred p; setp.ge.u32 p, %1, %2; @p mad.lo.u32 %0, %3, %4, %0; }"
      : "+r"(sum)
      : "r"(a), "r"(b), "r"(one), "n"(kNumber));
  return sum;
}

// __byte_perm() for an order without digits above 7, which the compiler then need not cut.
L3_INLINE uint32_t bytes_of(uint32_t a, uint32_t b, uint32_t order) {
  uint32_t r;
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(order));
  return r;
}

// The lowest `count` bits.
L3_INLINE uint32_t lowest_bits(uint32_t count) {
  uint32_t r;
  asm("bmsk.clamp.b32 %0, 0, %1;" : "=r"(r) : "r"(count));
  return r;
}
// The lower 32 bits of a 64-bit number, given as two words, shifted right by `by`, which may be 64 or more.
L3_INLINE uint32_t shift_right_of_two(uint32_t low, uint32_t high, uint32_t by) {
  uint64_t r;
  asm("shr.u64 %0, %1, %2;" : "=l"(r) : "l"(uint64_t{high} << 32 | low), "r"(by));
  return static_cast<uint32_t>(r);
}
// Adds the value of the lane `kStep` below, within groups of eight lanes.
template <uint32_t kStep>
L3_INLINE uint32_t add_from_below(uint32_t v) {
  uint32_t r;
  asm volatile(
      "{ .reg .pred p; .reg .u32 t; shfl.sync.up.b32 t|p, %1, %2, 0x1800, 0xffffffff; mov.u32 %0, %1; @p add.u32 %0, "
      "%0, "
      "t; }"
      : "=&r"(r)
      : "r"(v), "n"(kStep));
  return r;
}
// The value of a lane, which is not the last one: for the last one `other`.
L3_INLINE uint32_t value_of_lane_or(uint32_t v, uint32_t lane, uint32_t other) {
  uint32_t r;
  asm volatile("{ .reg .pred p; shfl.sync.idx.b32 %0|p, %1, %2, 30, 0xffffffff; @!p mov.u32 %0, %3; }"
               : "=&r"(r)
               : "r"(v), "r"(lane), "r"(other));
  return r;
}

// Return the bits of the nearest IEEE half, and of the nearest bfloat16. Ties go to even.
L3_INLINE uint32_t half_of(float v) {
  uint16_t r;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(r) : "f"(v));
  return r;
}
L3_INLINE uint32_t bfloat_of(float v) {
  uint16_t r;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(r) : "f"(v));
  return r;
}

// Clamps a signed number to 0 to `top`.
L3_INLINE uint32_t clamp_to_top(uint32_t a, uint32_t top) {
  return static_cast<uint32_t>(__vimin_s32_relu(static_cast<int>(a), static_cast<int>(top)));
}
// Adds two numbers, of which the second one is signed, and clamps the sum to 0 to `top`.
L3_INLINE uint32_t add_and_clamp_to_top(uint32_t a, uint32_t b, uint32_t top) {
  return static_cast<uint32_t>(__viaddmin_s32_relu(static_cast<int>(a), static_cast<int>(b), static_cast<int>(top)));
}
// Clamps the lower half of a word, a signed number, to 0 to `top`.
L3_INLINE uint32_t clamp_half_to_top(uint32_t a, uint32_t top) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  return __vimin_s16x2_relu(a, top);  // the upper half becomes 0
#else
  return clamp_to_top(static_cast<uint32_t>(static_cast<int32_t>(static_cast<int16_t>(a))), top);
#endif
}

// Each byte of the result is all ones or all zeros: it repeats the top bit of a source byte. A digit of `kBytes`, minus
// 8, selects the source byte.
template <uint32_t kBytes>
L3_INLINE uint32_t signs_of_bytes(uint32_t a) {
  uint32_t r;
  asm("prmt.b32 %0, %1, 0, %2;" : "=r"(r) : "r"(a), "n"(kBytes));
  return r;
}
// The same for bytes of two words: digits 8 to 11 select bytes of a, 12 to 15 of b.
template <uint32_t kBytes>
L3_INLINE uint32_t signs_of_bytes(uint32_t a, uint32_t b) {
  uint32_t r;
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "n"(kBytes));
  return r;
}

// Loads from shared memory that no thread writes to. The compiler may move these loads and drop repeated ones.
L3_INLINE uint32_t shared_address(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }
// Returns the address unchanged. The compiler cannot move a load that uses the result to before this call.
L3_INLINE uint32_t from_here_on(uint32_t address) {
  asm volatile("" : "+r"(address)::"memory");
  return address;
}
template <uint32_t kOffset>
L3_INLINE uint32_t load_shared_u8(uint32_t address) {
  uint32_t v;
  asm("ld.shared.u8 %0, [%1+%2];" : "=r"(v) : "r"(address), "n"(kOffset));
  return v;
}
template <uint32_t kOffset>
L3_INLINE uint32_t load_shared_u16(uint32_t address) {
  uint32_t v;
  asm("{ .reg .b16 t; ld.shared.u16 t, [%1+%2]; cvt.u32.u16 %0, t; }" : "=r"(v) : "r"(address), "n"(kOffset));
  return v;
}
template <uint32_t kOffset>
L3_INLINE uint2 load_shared_two(uint32_t address) {
  uint2 v;
  asm("ld.shared.v2.u32 {%0, %1}, [%2+%3];" : "=r"(v.x), "=r"(v.y) : "r"(address), "n"(kOffset));
  return v;
}
template <uint32_t kOffset>
L3_INLINE uint4 load_shared_four(uint32_t address) {
  uint4 v;
  asm("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4+%5];"
      : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
      : "r"(address), "n"(kOffset));
  return v;
}
// The same, but these loads are not moved.
template <uint32_t kOffset>
L3_INLINE uint32_t load_shared_u8_here(uint32_t address) {
  uint32_t v;
  asm volatile("ld.shared.u8 %0, [%1+%2];" : "=r"(v) : "r"(address), "n"(kOffset) : "memory");
  return v;
}
L3_INLINE uint32_t load_shared_half_here(uint32_t address) {
  uint32_t v;
  asm volatile("{ .reg .b16 t; ld.shared.u16 t, [%1]; cvt.u32.u16 %0, t; }" : "=r"(v) : "r"(address) : "memory");
  return v;
}
L3_INLINE uint32_t load_shared_word_here(uint32_t address) {
  uint32_t v;
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(v) : "r"(address) : "memory");
  return v;
}
L3_INLINE uint2 load_shared_two_here(uint32_t address) {
  uint2 v;
  asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(v.x), "=r"(v.y) : "r"(address));
  return v;
}
L3_INLINE uint4 load_shared_four_here(uint32_t address) {
  uint4 v;
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "r"(address));
  return v;
}

L3_INLINE void store_shared_word(uint32_t address, uint32_t v) {
  asm volatile("st.shared.u32 [%0], %1;" ::"r"(address), "r"(v) : "memory");
}

// Loads and stores of device memory. The compiler could not tell that the address is in device memory.
L3_INLINE uint32_t load_global_u8(const uint8_t* p) {
  uint32_t v;
  asm("ld.global.nc.u8 %0, [%1];" : "=r"(v) : "l"(__cvta_generic_to_global(p)));
  return v;
}
L3_INLINE uint32_t load_global_u16(const uint8_t* p) {
  uint16_t v;
  asm("ld.global.nc.u16 %0, [%1];" : "=h"(v) : "l"(__cvta_generic_to_global(p)));
  return v;
}
// The same for 16 bytes, which no thread writes while the kernel runs.
L3_INLINE uint4 load_global_four(const uint8_t* p) {
  uint4 v;
  asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(__cvta_generic_to_global(p)));
  return v;
}
L3_INLINE uint32_t load_global_word(const uint8_t* p) {
  uint32_t v;
  asm("ld.global.nc.u32 %0, [%1];" : "=r"(v) : "l"(__cvta_generic_to_global(p)));
  return v;
}
// base + a * b
template <class Byte>
L3_INLINE Byte* multiply_add_wide(uint32_t a, uint32_t b, Byte* base) {
  uint64_t r;
  asm("mad.wide.u32 %0, %1, %2, %3;" : "=l"(r) : "r"(a), "r"(b), "l"(reinterpret_cast<uint64_t>(base)));
  return reinterpret_cast<Byte*>(r);
}
// Loads of what lanes of this warp may have written.
L3_INLINE uint32_t load_written_half(const uint8_t* p) {
  uint16_t v;
  asm volatile("ld.global.u16 %0, [%1];" : "=h"(v) : "l"(__cvta_generic_to_global(p)) : "memory");
  return v;
}
L3_INLINE uint32_t load_written_word(const uint8_t* p) {
  uint32_t v;
  asm volatile("ld.global.u32 %0, [%1];" : "=r"(v) : "l"(__cvta_generic_to_global(p)) : "memory");
  return v;
}
L3_INLINE uint2 load_written_two(const uint8_t* p) {
  uint2 v;
  asm volatile("ld.global.v2.u32 {%0, %1}, [%2];" : "=r"(v.x), "=r"(v.y) : "l"(__cvta_generic_to_global(p)) : "memory");
  return v;
}
// Loads what atomics have written: past the first cache, which they do not update.
L3_INLINE uint32_t load_atomic(const uint32_t* p) {
  uint32_t v;
  asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(__cvta_generic_to_global(p)) : "memory");
  return v;
}
L3_INLINE void store_global(uint8_t* p, uint32_t word) {
  asm volatile("st.global.u32 [%0], %1;" ::"l"(__cvta_generic_to_global(p)), "r"(word) : "memory");
}
L3_INLINE void store_global_two(uint8_t* p, uint2 words) {
  asm volatile("st.global.v2.u32 [%0], {%1, %2};" ::"l"(__cvta_generic_to_global(p)), "r"(words.x), "r"(words.y)
               : "memory");
}
L3_INLINE void store_global_four(uint8_t* p, uint4 words) {
  asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(p)), "r"(words.x),
               "r"(words.y), "r"(words.z), "r"(words.w)
               : "memory");
}
L3_INLINE void store_global_half(uint8_t* p, uint32_t half) {
  asm volatile("st.global.u16 [%0], %1;" ::"l"(__cvta_generic_to_global(p)), "h"(static_cast<uint16_t>(half))
               : "memory");
}
L3_INLINE void store_global_byte(uint8_t* p, uint32_t byte) {
  asm volatile("st.global.u8 [%0], %1;" ::"l"(__cvta_generic_to_global(p)), "r"(byte) : "memory");
}

#endif

}  // namespace l3
