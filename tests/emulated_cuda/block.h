// Emulates a block of threads on a CPU: a fiber per thread, which runs until its warp synchronises.
#pragma once

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "control.h"
#include "fiber.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#define L3_POISON(address, size) __asan_poison_memory_region(address, size)
#define L3_UNPOISON(address, size) __asan_unpoison_memory_region(address, size)
#else
#define L3_POISON(address, size) static_cast<void>(0)
#define L3_UNPOISON(address, size) static_cast<void>(0)
#endif

namespace emulated {

constexpr uint32_t kLanes = 32;

struct Index {
  uint32_t x;
};

// What the lanes of a warp, or from wait_for_block on the threads of a block, meet for.
enum class Meeting {
  ballot,
  shuffle,
  match,
  sum,
  minimum,
  maximum,
  bitwise_and,
  bitwise_or,
  bitwise_xor,
  wait,
  wait_for_block,
  block_count,
  block_and,
  block_or,
};

// Called whenever a warp has met, if it is set (bank_conflicts.cpp). `bits`: the lanes that brought another number than
// 0.
struct WarpMeeting {
  uint32_t block, warp;
  Meeting meeting;
  int line;
  uint32_t bits;
};
// Called after each one, if it is set (bank_conflicts.cpp).
inline void (*on_warp_meets)(const WarpMeeting& meeting) = nullptr;

// splitmix64: dice that cost next to nothing.
struct Noise {
  uint64_t state;

  uint64_t next() {
    uint64_t z = state += 0x9E3779B97F4A7C15;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
  }
  uint32_t roll(uint64_t sides) { return static_cast<uint32_t>((next() >> 32) * sides >> 32); }
};

class Block {
 public:
  // Runs the threads of one block of a grid in an order that the dice choose.
  static void run(uint32_t index, uint32_t threads, size_t shared_bytes, std::mt19937& dice,
                  const std::function<void()>& kernel, uint32_t blocks = 1);

  static Block& running() { return *running_; }
  uint32_t thread() const { return thread_; }
  uint32_t index() const { return index_; }
  uint32_t blocks() const { return blocks_; }
  uint32_t threads() const { return static_cast<uint32_t>(threads_.size()); }
  size_t shared_bytes() const { return shared_bytes_; }

  // What a thread gets for `value` when all have met; from lane `source` where lanes exchange. The line is that of the
  // source code.
  uint64_t meet(Meeting meeting, int line, uint64_t value, uint32_t source = 0);

  void expect(bool holds, const char* what) const { expect(holds, what, thread_); }

 private:
  struct Thread {
    enum { ready, waiting, done } state = ready;
    Meeting meeting{};
    int line = 0;
    uint32_t source = 0;
    uint64_t value = 0, result = 0;

    bool waits_for_block() const { return state == waiting && meeting >= Meeting::wait_for_block; }
    bool waits_for_warp() const { return state == waiting && meeting < Meeting::wait_for_block; }
  };
  static constexpr uint32_t kNobody = UINT32_MAX;

  void expect(bool holds, const char* what, uint32_t thread) const {
    if (holds) return;
    std::fprintf(stderr, "emulated GPU: block %u, thread %u: %s\n", index_, thread, what);
    std::abort();
  }
  static void enter();
  void fill_shared_memory();
  void leave(uint32_t thread);
  uint32_t next();
  void take_warp(bool any);
  bool finish_warp();
  bool finish_block();
  static uint64_t result_of(const Thread* lanes, uint32_t i, const Thread& all);

  static inline Block* running_ = nullptr;
  static inline std::vector<std::unique_ptr<Fiber>> fibers_;  // of the threads, block after block
  static inline Fiber program_;
  uint32_t index_ = 0, blocks_ = 1, thread_ = 0;
  size_t shared_bytes_ = 0;
  std::vector<Thread> threads_;
  std::vector<uint32_t> running_warps_;  // those that are neither done nor wait for the block
  uint32_t place_ = 0;                   // of the current warp there
  uint32_t turn_ = 0, stride_ = 1, first_ = 0;
  Noise noise_{0};
  const std::function<void()>* kernel_ = nullptr;
};

}  // namespace emulated

namespace l3 {
// As the kernels declare them; one block runs at a time.
extern uint4 shared[emulated::kSharedBytes / sizeof(uint4)];
alignas(16) inline uint4 shared[emulated::kSharedBytes / sizeof(uint4)];
}  // namespace l3

namespace emulated {

inline void Block::run(uint32_t index, uint32_t threads, size_t shared_bytes, std::mt19937& dice,
                       const std::function<void()>& kernel, uint32_t blocks) {
  Block block;
  running_ = &block;
  block.index_ = index;
  block.blocks_ = blocks;
  block.kernel_ = &kernel;
  block.noise_.state = dice();
  block.shared_bytes_ = shared_bytes;
  block.expect(shared_bytes <= kSharedBytes && threads > 0 && threads % kLanes == 0 && threads <= kMaxThreads,
               "no GPU has such blocks");
  block.fill_shared_memory();
  block.threads_.resize(threads);
  while (fibers_.size() < threads) fibers_.push_back(std::make_unique<Fiber>());
  for (uint32_t i = 0; i < threads; ++i) fibers_[i]->prepare(enter);
  for (uint32_t i = 0; i < threads / kLanes; ++i) block.running_warps_.push_back(i);
  block.take_warp(true);
  block.thread_ = block.next();
  Fiber::switch_to(program_, *fibers_[block.thread_]);
  running_ = nullptr;
}

// Noise, and under a sanitizer nothing behind it.
inline void Block::fill_shared_memory() {
  const size_t size = (shared_bytes_ + sizeof(uint4) - 1) / sizeof(uint4) * sizeof(uint4);
  L3_UNPOISON(l3::shared, sizeof(l3::shared));
  for (size_t i = 0; i < size; i += sizeof(uint64_t)) {
    const uint64_t noise = noise_.next();
    std::memcpy(reinterpret_cast<char*>(l3::shared) + i, &noise, sizeof(noise));
  }
  L3_POISON(reinterpret_cast<char*>(l3::shared) + shared_bytes_, sizeof(l3::shared) - shared_bytes_);
}

inline void Block::enter() {
  Fiber::arrive();
  const uint32_t self = running_->thread_;
  (*running_->kernel_)();
  running_->threads_[self].state = Thread::done;
  running_->leave(self);
}

inline uint64_t Block::meet(Meeting meeting, int line, uint64_t value, uint32_t source) {
  const uint32_t self = thread_;
  Thread& thread = threads_[self];
  thread.meeting = meeting;
  thread.line = line;
  thread.value = value;
  thread.source = source;
  thread.state = Thread::waiting;
  leave(self);
  return thread.result;
}

// Lets others run, until it is this thread's turn again.
inline void Block::leave(uint32_t thread) {
  const bool done = threads_[thread].state == Thread::done;
  thread_ = next();
  if (thread_ == thread) return;
  Fiber::switch_to(*fibers_[thread], thread_ == kNobody ? program_ : *fibers_[thread_], done);
}

// The thread whose turn it is. Lanes run until all wait or are done; once they have met, another warp may go first.
inline uint32_t Block::next() {
  for (;;) {
    const uint32_t first = running_warps_[place_] * kLanes;
    while (turn_ < kLanes) {
      const uint32_t thread = first + (turn_++ * stride_ + first_) % kLanes;
      if (threads_[thread].state == Thread::ready) return thread;
    }
    const bool met = finish_warp();
    if (!met) {
      running_warps_[place_] = running_warps_.back();
      running_warps_.pop_back();
      if (running_warps_.empty() && !finish_block()) return kNobody;
    }
    take_warp(!met || noise_.roll(8) == 0);
  }
}

// Begins a round of a warp, in an order of its own.
inline void Block::take_warp(bool any) {
  if (any) place_ = noise_.roll(running_warps_.size());
  const uint32_t order = noise_.roll(kLanes * kLanes / 2);
  turn_ = 0;
  first_ = order % kLanes;
  stride_ = order / kLanes * 2 + 1;
}

// False where the warp's lanes are done, or wait for the block.
inline bool Block::finish_warp() {
  const uint32_t first = running_warps_[place_] * kLanes;
  Thread* const lanes = &threads_[first];
  if (std::none_of(lanes, lanes + kLanes, [](const Thread& lane) { return lane.waits_for_warp(); })) return false;
  Thread all;
  all.value = UINT64_MAX;
  all.result = 0;
  uint32_t bits = 0, sum = 0, minimum = UINT32_MAX, maximum = 0, common = UINT32_MAX, any = 0, odd = 0;
  for (uint32_t i = 0; i < kLanes; ++i) {
    expect(lanes[i].state != Thread::done, "left while its warp met", first + i);
    expect(lanes[i].meeting == lanes[0].meeting && lanes[i].line == lanes[0].line, "met its warp at another place",
           first + i);
    expect(lanes[i].source < kLanes, "asks a lane that is not there", first + i);
    const uint32_t value = static_cast<uint32_t>(lanes[i].value);
    bits |= (value != 0 ? 1u : 0u) << i;
    sum += value;
    minimum = std::min(minimum, value);
    maximum = std::max(maximum, value);
    common &= value;
    any |= value;
    odd ^= value;
  }
  if (on_warp_meets != nullptr) on_warp_meets({index(), running_warps_[place_], lanes[0].meeting, lanes[0].line, bits});
  for (uint32_t i = 0; i < kLanes; ++i) {
    Thread& lane = lanes[i];
    switch (lane.meeting) {
      case Meeting::ballot: lane.result = bits; break;
      case Meeting::shuffle: lane.result = lanes[lane.source].value; break;
      case Meeting::match:
        lane.result = 0;
        for (uint32_t k = 0; k < kLanes; ++k) lane.result |= (lanes[k].value == lane.value ? 1u : 0u) << k;
        break;
      case Meeting::sum: lane.result = sum; break;
      case Meeting::minimum: lane.result = minimum; break;
      case Meeting::maximum: lane.result = maximum; break;
      case Meeting::bitwise_and: lane.result = common; break;
      case Meeting::bitwise_or: lane.result = any; break;
      case Meeting::bitwise_xor: lane.result = odd; break;
      default: break;
    }
    lane.state = Thread::ready;
  }
  return true;
}

// False where all threads are done. Those that are no longer there are not waited for.
inline bool Block::finish_block() {
  const Thread* wanted = nullptr;
  uint64_t count = 0, there = 0;
  for (uint32_t i = 0; i < threads(); ++i) {
    if (threads_[i].state == Thread::done) continue;
    if (wanted == nullptr) wanted = &threads_[i];
    expect(threads_[i].meeting == wanted->meeting && threads_[i].line == wanted->line, "met its block at another place",
           i);
    ++there;
    count += threads_[i].value != 0;
  }
  if (wanted == nullptr) return false;
  for (uint32_t i = 0; i < threads(); ++i) {
    Thread& thread = threads_[i];
    if (thread.state == Thread::done) continue;
    thread.result = thread.meeting == Meeting::block_count ? count
                    : thread.meeting == Meeting::block_and ? count == there
                                                           : count != 0;
    thread.state = Thread::ready;
    if (running_warps_.empty() || running_warps_.back() != i / kLanes) running_warps_.push_back(i / kLanes);
  }
  return true;
}

inline uint32_t lane() { return Block::running().thread() % kLanes; }

// Called for each load from shared memory, if it is set (bank_conflicts.cpp).
inline void (*on_load_shared)(uint32_t bytes, uint32_t address) = nullptr;

// What of the block's shared memory begins at an address.
template <class Word>
Word load_shared(uint32_t address) {
  const Block& block = Block::running();
  if (on_load_shared != nullptr) on_load_shared(sizeof(Word), address);
  block.expect(address % sizeof(Word) == 0, "unaligned in shared memory");
  block.expect(address + sizeof(Word) <= block.shared_bytes(), "outside shared memory");
  Word word;
  std::memcpy(&word, reinterpret_cast<const char*>(l3::shared) + address, sizeof(Word));
  return word;
}

template <class Word, class Byte>
Byte* aligned(Byte* p) {
  Block::running().expect(reinterpret_cast<uintptr_t>(p) % alignof(Word) == 0, "unaligned in global memory");
  return p;
}

// Runs a grid, block after block in any order.
inline void run_grid(uint32_t blocks, uint32_t threads, size_t shared, const std::function<void()>& kernel) {
  std::vector<uint32_t> order(blocks);
  for (uint32_t i = 0; i < blocks; ++i) order[i] = i;
  std::shuffle(order.begin(), order.end(), dice());
  for (const uint32_t block : order) Block::run(block, threads, shared, dice(), kernel, blocks);
}

}  // namespace emulated
