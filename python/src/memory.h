// What tensors lie in. A memory is shared by all tensors in it, ours and those of other libraries, and is given back by
// the last one: in any thread, with or without the interpreter's lock, and at the interpreter's end.
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

  // A stream of a GPU uses it from now on, and is waited for before it is written again. Any thread may call this.
  virtual void used_by(void* /*stream*/) {}
};

// Memory of a CPU, at a multiple of 64; null where there is none.
std::shared_ptr<Memory> allocate_host(uint64_t size, void** data);

}  // namespace l3_python
