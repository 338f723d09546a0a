// The memory of tensors. All tensors in a memory share it, including those of other libraries. The last one frees it:
// in any thread, with or without the interpreter's lock, and also when the interpreter ends.
#pragma once

#include <cstdint>
#include <memory>

namespace l3_python {

class Memory {
 public:
  Memory() = default;
  virtual ~Memory() = default;
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  // Records that a GPU stream uses the memory. It is not reused before that stream's work has passed. Any thread may
  // call this.
  virtual void used_by(void* /*stream*/) {}
};

// Allocates CPU memory, aligned to 64 bytes. Returns null if there is not enough.
std::shared_ptr<Memory> allocate_host(uint64_t size, void** data);

}  // namespace l3_python
