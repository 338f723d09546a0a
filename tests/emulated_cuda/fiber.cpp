#include "fiber.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#if defined(__SANITIZE_ADDRESS__)
#define L3_ADDRESS_SANITIZER
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define L3_ADDRESS_SANITIZER
#endif
#endif
#ifdef L3_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

// Saves what a call leaves alone, then takes another stack. swapcontext() does the same and asks the kernel for the
// signal mask each time, which takes twenty times as long.
extern "C" void l3_emulated_switch(void** stack_pointer, void* to);

#if defined(__x86_64__)
asm(R"(
  .text
  .globl l3_emulated_switch
  .type l3_emulated_switch, @function
l3_emulated_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
  .size l3_emulated_switch, .-l3_emulated_switch
)");
#elif defined(__aarch64__)
asm(R"(
  .text
  .globl l3_emulated_switch
  .type l3_emulated_switch, %function
l3_emulated_switch:
  sub sp, sp, #160
  stp x19, x20, [sp]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
  .size l3_emulated_switch, .-l3_emulated_switch
)");
#else
#error "no emulated GPU on this processor: l3_emulated_switch is not written for it"
#endif

namespace emulated {

namespace {

#ifdef L3_ADDRESS_SANITIZER
constexpr size_t kStackBytes = 256 << 10;  // frames are larger
#else
constexpr size_t kStackBytes = 64 << 10;
#endif

Fiber* left = nullptr;  // by the last switch

size_t page_bytes() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }

}  // namespace

Fiber::~Fiber() {
  if (memory_ != nullptr) munmap(memory_, page_bytes() + kStackBytes);
}

void Fiber::prepare(void (*entry)()) {
  if (memory_ == nullptr) {
    // The lowest page is there to be run into.
    void* const memory = mmap(nullptr, page_bytes() + kStackBytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED || mprotect(memory, page_bytes(), PROT_NONE) != 0) {
      std::fprintf(stderr, "emulated GPU: no memory for stacks\n");
      std::abort();
    }
    memory_ = static_cast<char*>(memory);
    lowest_ = memory_ + page_bytes();
    size_ = kStackBytes;
  }
#ifdef L3_ADDRESS_SANITIZER
  // Where the last one's frames stood that never returned.
  constexpr size_t kLeft = 4096;
  __asan_unpoison_memory_region(memory_ + page_bytes() + kStackBytes - kLeft, kLeft);
#endif
  void** const top = reinterpret_cast<void**>(memory_ + page_bytes() + kStackBytes);
#if defined(__x86_64__)
  void** const saved = top - 8;
  constexpr int kReturn = 6;  // then nothing: the place of a caller
#else
  void** const saved = top - 20;
  constexpr int kReturn = 11;
#endif
  for (void** p = saved; p < top; ++p) *p = nullptr;
  saved[kReturn] = reinterpret_cast<void*>(entry);
  stack_pointer_ = saved;
}

void Fiber::switch_to(Fiber& from, Fiber& to, [[maybe_unused]] bool done) {
  left = &from;
#ifdef L3_ADDRESS_SANITIZER
  void* fake_stack = nullptr;
  __sanitizer_start_switch_fiber(done ? nullptr : &fake_stack, to.lowest_, to.size_);
  l3_emulated_switch(&from.stack_pointer_, to.stack_pointer_);
  const void* lowest;
  size_t size;
  __sanitizer_finish_switch_fiber(fake_stack, &lowest, &size);
#else
  l3_emulated_switch(&from.stack_pointer_, to.stack_pointer_);
#endif
}

void Fiber::arrive() {
#ifdef L3_ADDRESS_SANITIZER
  const void* lowest;
  size_t size;
  __sanitizer_finish_switch_fiber(nullptr, &lowest, &size);
  if (left->memory_ == nullptr) {
    left->lowest_ = lowest;
    left->size_ = size;
  }
#endif
}

}  // namespace emulated
