// CUDA's machine on a processor, as far as kernels/ needs it: a fiber for each thread of a block, which runs until its
// warp meets. Include it before a kernel's source.
//
// It finds what a compiler does not: lanes that meet at different places, or leave others waiting; addresses of shared
// memory that are outside or unaligned; shared memory read before it was written (which holds noise at first); results
// that depend on the order in which lanes run. Global memory is the program's own, where sanitizers look.
#pragma once

#include <ucontext.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <vector>

#include "format.h"

#define L3_EMULATED_GPU
// NOLINTBEGIN(bugprone-reserved-identifier): they are CUDA's
#define __device__
#define __global__
#define __shared__
#define __launch_bounds__(...)

struct alignas(8) uint2 {
  uint32_t x, y;
};
struct alignas(16) uint4 {
  uint32_t x, y, z, w;
};
inline uint4 make_uint4(uint32_t x, uint32_t y, uint32_t z, uint32_t w) { return {x, y, z, w}; }

namespace emulated {

constexpr uint32_t kLanes = 32;
constexpr size_t kSharedBytes = 227 << 10;
constexpr size_t kStackBytes = 64 << 10;

struct Index {
  uint32_t x;
};

// What the lanes of a warp meet for; the line is that of the source.
enum class Meeting { ballot, shuffle, maximum, wait, wait_for_block };

class Block {
 public:
  // Runs the threads of one block in an order that the dice choose.
  static void run(uint32_t index, uint32_t threads, size_t shared_bytes, std::mt19937& dice,
                  const std::function<void()>& kernel);

  static Block& running() { return *running_; }
  uint32_t thread() const { return thread_; }
  uint32_t index() const { return index_; }
  uint32_t threads() const { return static_cast<uint32_t>(fibers_.size()); }

  // What a thread gets for `value` when its warp has met; from lane `source` where lanes exchange.
  uint32_t meet(Meeting meeting, int line, uint32_t value, uint32_t source);

  void expect(bool holds, const char* what) const {
    if (holds) return;
    std::fprintf(stderr, "emulated GPU: block %u, thread %u: %s\n", index_, thread_, what);
    std::abort();
  }

 private:
  struct Fiber {
    ucontext_t context;
    enum { ready, waiting, done } state = ready;
    Meeting meeting{};
    int line = 0;
    uint32_t value = 0, source = 0, result = 0;
  };

  static void enter() {
    Block& block = *running_;
    (*block.kernel_)();
    block.fibers_[block.thread_].state = Fiber::done;
    swapcontext(&block.fibers_[block.thread_].context, &block.scheduler_);
  }
  static void prepare(ucontext_t& context, char* stack) {
    getcontext(&context);
    context.uc_stack.ss_sp = stack;
    context.uc_stack.ss_size = kStackBytes;
    context.uc_link = nullptr;
    makecontext(&context, enter, 0);
  }
  bool run_warp(uint32_t first, std::mt19937& dice);
  void finish_meeting(uint32_t first);

  static inline Block* running_ = nullptr;
  static inline std::vector<std::unique_ptr<char[]>> stacks_;  // of the threads, block after block
  uint32_t index_ = 0, thread_ = 0;
  std::vector<Fiber> fibers_;
  ucontext_t scheduler_{};
  const std::function<void()>* kernel_ = nullptr;
};

}  // namespace emulated

namespace l3 {
// As the kernels declare them; one block runs at a time.
extern uint4 shared[emulated::kSharedBytes / sizeof(uint4)];
extern uint16_t lines[emulated::kSharedBytes / sizeof(uint16_t)];
alignas(16) inline uint4 shared[emulated::kSharedBytes / sizeof(uint4)];
alignas(16) inline uint16_t lines[emulated::kSharedBytes / sizeof(uint16_t)];
}  // namespace l3

namespace emulated {

inline size_t shared_bytes_now = 0;

inline void Block::run(uint32_t index, uint32_t threads, size_t shared_bytes, std::mt19937& dice,
                       const std::function<void()>& kernel) {
  Block block;
  running_ = &block;
  block.index_ = index;
  block.kernel_ = &kernel;
  block.expect(shared_bytes <= kSharedBytes && threads % kLanes == 0, "no GPU has such blocks");
  shared_bytes_now = shared_bytes;
  const auto noise = [&] { return static_cast<uint32_t>(dice()); };
  for (size_t i = 0; i < shared_bytes; i += sizeof(uint4)) {
    l3::shared[i / sizeof(uint4)] = {noise(), noise(), noise(), noise()};
    std::memcpy(l3::lines + i / sizeof(uint16_t), &l3::shared[i / sizeof(uint4)], sizeof(uint4));
  }
  block.fibers_.resize(threads);
  while (stacks_.size() < threads) stacks_.push_back(std::make_unique_for_overwrite<char[]>(kStackBytes));
  for (uint32_t i = 0; i < threads; ++i) prepare(block.fibers_[i].context, stacks_[i].get());
  for (bool progress = true; progress;) {
    progress = false;
    for (uint32_t first = 0; first < threads; first += kLanes) progress |= block.run_warp(first, dice);
    const auto at_barrier = [](const Fiber& f) {
      return f.state == Fiber::waiting && f.meeting == Meeting::wait_for_block;
    };
    if (std::all_of(block.fibers_.begin(), block.fibers_.end(), at_barrier)) {
      for (Fiber& fiber : block.fibers_) fiber.state = Fiber::ready;
      progress = true;
    }
  }
  for (const Fiber& fiber : block.fibers_) block.expect(fiber.state == Fiber::done, "waits for ever");
  running_ = nullptr;
}

// Runs a warp's lanes until all wait or are done; false where none could.
inline bool Block::run_warp(uint32_t first, std::mt19937& dice) {
  uint32_t order[kLanes];
  for (uint32_t i = 0; i < kLanes; ++i) order[i] = first + i;
  std::shuffle(order, order + kLanes, dice);
  bool progress = false;
  for (const uint32_t thread : order) {
    if (fibers_[thread].state != Fiber::ready) continue;
    thread_ = thread;
    swapcontext(&scheduler_, &fibers_[thread].context);
    progress = true;
  }
  if (fibers_[first].state == Fiber::waiting && fibers_[first].meeting != Meeting::wait_for_block) {
    finish_meeting(first);
    progress = true;
  }
  return progress;
}

inline void Block::finish_meeting(uint32_t first) {
  Fiber* const lanes = &fibers_[first];
  uint32_t bits = 0, most = 0;
  for (uint32_t i = 0; i < kLanes; ++i) {
    thread_ = first + i;
    expect(lanes[i].state == Fiber::waiting, "left while its warp met");
    expect(lanes[i].meeting == lanes[0].meeting && lanes[i].line == lanes[0].line, "met its warp at another place");
    expect(lanes[i].source < kLanes, "asks a lane that is not there");
    bits |= (lanes[i].value != 0 ? 1u : 0u) << i;
    most = std::max(most, lanes[i].value);
  }
  for (uint32_t i = 0; i < kLanes; ++i) {
    const Meeting meeting = lanes[i].meeting;
    lanes[i].result = meeting == Meeting::ballot    ? bits
                      : meeting == Meeting::maximum ? most
                                                    : lanes[lanes[i].source].value;
    lanes[i].state = Fiber::ready;
  }
}

inline uint32_t Block::meet(Meeting meeting, int line, uint32_t value, uint32_t source) {
  Fiber& fiber = fibers_[thread_];
  fiber.meeting = meeting;
  fiber.line = line;
  fiber.value = value;
  fiber.source = source;
  fiber.state = Fiber::waiting;
  swapcontext(&fiber.context, &scheduler_);
  return fiber.result;
}

inline uint32_t lane() { return Block::running().thread() % kLanes; }

// What of `bytes` of shared memory begins at an address.
template <class Word>
Word load_shared(uint32_t address) {
  const Block& block = Block::running();
  block.expect(address % sizeof(Word) == 0, "unaligned in shared memory");
  block.expect(address + sizeof(Word) <= shared_bytes_now, "outside shared memory");
  Word word;
  std::memcpy(&word, reinterpret_cast<const char*>(l3::shared) + address, sizeof(Word));
  return word;
}

template <class Word>
uint8_t* aligned(uint8_t* p) {
  Block::running().expect(reinterpret_cast<uintptr_t>(p) % sizeof(Word) == 0, "unaligned in global memory");
  return p;
}

}  // namespace emulated

// ---- CUDA's names

#define threadIdx (emulated::Index{emulated::Block::running().thread()})
#define blockIdx (emulated::Index{emulated::Block::running().index()})
#define blockDim (emulated::Index{emulated::Block::running().threads()})

inline uint32_t __shfl_sync(uint32_t, uint32_t v, uint32_t source, int line = __builtin_LINE()) {
  return emulated::Block::running().meet(emulated::Meeting::shuffle, line, v, source);
}
inline uint32_t __shfl_up_sync(uint32_t all, uint32_t v, uint32_t by, int line = __builtin_LINE()) {
  return __shfl_sync(all, v, emulated::lane() < by ? emulated::lane() : emulated::lane() - by, line);
}
inline uint32_t __shfl_down_sync(uint32_t all, uint32_t v, uint32_t by, int line = __builtin_LINE()) {
  return __shfl_sync(all, v, emulated::lane() + by < 32 ? emulated::lane() + by : emulated::lane(), line);
}
inline uint32_t __ballot_sync(uint32_t, bool v, int line = __builtin_LINE()) {
  return emulated::Block::running().meet(emulated::Meeting::ballot, line, v, 0);
}
inline bool __all_sync(uint32_t all, bool v, int line = __builtin_LINE()) {
  return __ballot_sync(all, v, line) == UINT32_MAX;
}
inline uint32_t __reduce_max_sync(uint32_t, uint32_t v, int line = __builtin_LINE()) {
  return emulated::Block::running().meet(emulated::Meeting::maximum, line, v, 0);
}
inline void __syncwarp(int line = __builtin_LINE()) {
  emulated::Block::running().meet(emulated::Meeting::wait, line, 0, 0);
}
inline void __syncthreads(int line = __builtin_LINE()) {
  emulated::Block::running().meet(emulated::Meeting::wait_for_block, line, 0, 0);
}

inline uint32_t __popc(uint32_t v) { return static_cast<uint32_t>(std::popcount(v)); }
inline uint32_t __funnelshift_l(uint32_t low, uint32_t high, uint32_t by) {
  return static_cast<uint32_t>((uint64_t{high} << 32 | low) << (by & 31) >> 32);
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
inline uint32_t __vabsdiffs4(uint32_t a, uint32_t b) { return __vabsdiffu4(a ^ 0x80808080, b ^ 0x80808080); }
inline uint32_t __float_as_uint(float v) { return std::bit_cast<uint32_t>(v); }
inline float __uint_as_float(uint32_t v) { return std::bit_cast<float>(v); }

// NOLINTEND(bugprone-reserved-identifier)

// ---- what kernels/src/cuda_instructions.cuh has for GPUs

namespace l3 {

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
inline uint32_t clamp_to_top(uint32_t a, uint32_t top) {
  return static_cast<uint32_t>(std::clamp(static_cast<int32_t>(a), 0, static_cast<int32_t>(top)));
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
inline uint4 load_shared_four_here(uint32_t address) { return emulated::load_shared<uint4>(address); }

inline uint32_t load_global_u16(const uint8_t* p) {
  uint16_t v;
  std::memcpy(&v, emulated::aligned<uint16_t>(const_cast<uint8_t*>(p)), sizeof(v));
  return v;
}
inline uint8_t* multiply_add_wide(uint32_t a, uint32_t b, uint8_t* base) { return base + uint64_t{a} * b; }
inline void store_global(uint8_t* p, uint32_t word) { std::memcpy(emulated::aligned<uint32_t>(p), &word, 4); }
inline void store_global_byte(uint8_t* p, uint32_t byte) { *p = static_cast<uint8_t>(byte); }

}  // namespace l3
