// Runs kernels on another executor than the emulated GPU: GPGPU-Sim with their PTX (executor.cpp). Linked into programs
// that call the emulated GPU, and prints at their end what ran.
//
// Environment: L3_EXECUTOR the library, L3_PTX the PTX as lower_ptx.py makes it, L3_ONLY part of the name of the only
// kernel to run there, L3_EVERY=N to run every Nth launch of each kernel there, L3_ALONE=1 not to repeat launches on
// the emulated GPU: if other threads write memory meanwhile, that would undo it. Without L3_EXECUTOR everything runs on
// the emulated GPU.
#include <cxxabi.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <new>
#include <string>
#include <vector>

#include "batch.h"
#include "emulated_cuda/machine.h"

namespace {

using emulated::KernelCall;

[[noreturn]] void stop(const std::string& why) {
  std::fprintf(stderr, "independent: %s\n", why.c_str());
  std::exit(1);
}

// ---- memory: GPGPU-Sim keeps the lower 32 bits of addresses, and global memory begins where this does

constexpr uintptr_t kFirst = 0xC0000000, kLast = 0xFFFF0000;
constexpr size_t kPage = 4096;
// The kernels' constants, where lower_ptx.py puts them: kernels on the emulated GPU see them at the same addresses.
constexpr uintptr_t kConstants = 1 << 20;
constexpr size_t kConstantBytes = 1 << 20;

// Null if there is something.
void* map_at(uintptr_t address, size_t size) {
  void* const at = mmap(reinterpret_cast<void*>(address), size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  return at == MAP_FAILED ? nullptr : at;
}

void* map_low(size_t size) {
  static uintptr_t next = kFirst;
  const size_t all = (size + 2 * kPage - 1) / kPage * kPage;  // its size is in a page before it
  for (uint32_t tries = 0; tries < 1 << 16; ++tries) {
    if (next + all > kLast) next = kFirst;
    void* const at = map_at(next, all);
    next += at == nullptr ? 16 * kPage : all;
    if (at == nullptr) continue;
    std::memcpy(at, &all, sizeof(all));
    return static_cast<char*>(at) + kPage;
  }
  throw std::bad_alloc();
}

void unmap_low(void* memory) {
  if (memory == nullptr) return;
  char* const at = static_cast<char*>(memory) - kPage;
  size_t all = 0;
  std::memcpy(&all, at, sizeof(all));
  munmap(at, all);
}

// ---- the executor

class Executor {
 public:
  Executor() {
    const char* const library = std::getenv("L3_EXECUTOR");
    const char* const ptx = std::getenv("L3_PTX");
    if (library == nullptr || ptx == nullptr) return;
    if (const char* const only = std::getenv("L3_ONLY")) only_ = only;
    if (const char* const every = std::getenv("L3_EVERY")) every_ = std::max(1, std::atoi(every));
    is_alone_ = std::getenv("L3_ALONE") != nullptr;
    // It has functions of CUDA's runtime, as the emulated GPU does.
    library_ = dlopen(library, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    if (library_ == nullptr) stop(dlerror());
    find(load_, "executor_load");
    find(has_, "executor_has");
    find(instructions_, "executor_instructions");
    find(write_, "executor_write");
    find(read_, "executor_read");
    find(run_, "executor_run");
    quietly([&] {
      load_(ptx);
      run_("l3_fill_addresses", 1, 1, 0, nullptr, nullptr);
    });
    read_(kConstants, map_at(kConstants, kConstantBytes), kConstantBytes);
    emulated::control().multiprocessors = 1;
    emulated::control().executor = [this](const KernelCall& call, const auto& run) { launch(call, run); };
  }
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;
  ~Executor() {
    if (library_ == nullptr) return;
    std::printf("\n%-22s %8s %8s %8s %8s %12s %8s\n", "kernel", "launches", "images", "written", "same", "instructions",
                "seconds");
    for (const auto& [name, row] : rows_) {
      std::printf("%-22s %8u %8u %8u %8u %11.1fM %8.1f\n", name.c_str(), row.launches, row.images, row.written,
                  row.same, static_cast<double>(row.instructions) * 1e-6, row.seconds);
    }
  }

 private:
  struct Row {
    uint32_t launches = 0, images = 0, written = 0, same = 0;
    uint64_t instructions = 0;
    double seconds = 0;
  };

  template <class Function>
  void find(Function& function, const char* name) {
    function = reinterpret_cast<Function>(dlsym(library_, name));
    if (function == nullptr) stop(std::string("no function ") + name);
  }

  // GPGPU-Sim writes much to the standard output.
  template <class Work>
  static void quietly(const Work& work) {
    std::fflush(stdout);
    const int output = dup(1), nothing = open("/dev/null", O_WRONLY | O_CLOEXEC);
    dup2(nothing, 1);
    work();
    std::fflush(stdout);
    dup2(output, 1);
    close(output);
    close(nothing);
  }

  void launch(const KernelCall& call, const std::function<void()>& run_emulated) {
    Dl_info info{};
    const bool is_known = dladdr(call.kernel, &info) != 0 && info.dli_sname != nullptr;
    const std::string symbol = is_known ? info.dli_sname : "";
    if (!is_known || !has_(symbol.c_str())) stop("no PTX of the kernel " + symbol);
    if (symbol.find(only_) == std::string::npos || seen_[symbol]++ % every_ != 0) return run_emulated();
    const auto began = std::chrono::steady_clock::now();
    const uint64_t before_it = instructions_();
    std::map<char*, std::vector<char>> before, after;
    for (const auto& [at, allocation] : emulated::machine().allocations) {
      before[at].assign(at, at + allocation.size);
      write_(reinterpret_cast<uintptr_t>(at), at, allocation.size);
    }
    std::vector<const void*> pointers;
    std::vector<size_t> sizes;
    for (const auto& [pointer, size] : call.arguments) {
      pointers.push_back(pointer);
      sizes.push_back(size);
    }
    quietly([&] { run_(symbol.c_str(), call.blocks, call.threads, sizes.size(), pointers.data(), sizes.data()); });
    for (const auto& [at, bytes] : before) {
      after[at].resize(bytes.size());
      read_(reinterpret_cast<uintptr_t>(at), after[at].data(), bytes.size());
    }
    bool is_same = !is_alone_;
    if (is_alone_) {
      // What the kernel did not change stays as it is: another thread may have written it.
      for (const auto& [at, bytes] : after) {
        const std::vector<char>& old = before.at(at);
        for (size_t i = 0; i < bytes.size(); ++i) {
          if (bytes[i] != old[i]) at[i] = bytes[i];
        }
      }
    } else {
      // The same on the emulated GPU, from the same memory. The results of the executor are what later kernels see.
      run_emulated();
      for (const auto& [at, bytes] : after) {
        is_same = is_same && std::memcmp(at, bytes.data(), bytes.size()) == 0;
        std::memcpy(at, bytes.data(), bytes.size());
      }
    }
    char* const readable = abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, nullptr);
    std::string name = readable;
    std::free(readable);
    name = name.substr(0, name.find('('));
    Row& row = rows_[name.substr(name.rfind(':') + 1)];
    ++row.launches;
    row.same += is_same;
    row.instructions += instructions_() - before_it;
    row.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    if (sizes.size() == 1 && sizes[0] == sizeof(l3::Batch)) count_images(pointers[0], before, row);
  }

  // How many images a call has, and of how many the launch wrote pixels.
  static void count_images(const void* argument, const std::map<char*, std::vector<char>>& before, Row& row) {
    l3::Batch batch;
    std::memcpy(&batch, argument, sizeof(batch));
    row.images += batch.count;
    for (uint32_t i = 0; i < batch.count; ++i) {
      l3_cuda_image image{};
      std::memcpy(&image, batch.images + i * batch.image_bytes, sizeof(image));
      auto found = before.upper_bound(static_cast<char*>(image.out));
      if (image.out == nullptr || found == before.begin()) continue;
      const auto& [at, bytes] = *--found;
      const size_t first = static_cast<size_t>(static_cast<char*>(image.out) - at);
      const size_t size =
          size_t{image.region_width} * image.region_height * image.channels * l3::bytes_of_type(image.type);
      if (first >= bytes.size()) continue;
      row.written += std::memcmp(at + first, bytes.data() + first, std::min(size, bytes.size() - first)) != 0;
    }
  }

  void* library_ = nullptr;
  std::string only_;
  int every_ = 1;
  bool is_alone_ = false;
  std::map<std::string, int> seen_;
  std::map<std::string, Row> rows_;
  void (*load_)(const char* ptx) = nullptr;
  bool (*has_)(const char* kernel) = nullptr;
  uint64_t (*instructions_)() = nullptr;
  void (*write_)(uint64_t at, const void* from, size_t size) = nullptr;
  void (*read_)(uint64_t at, void* to, size_t size) = nullptr;
  void (*run_)(const char* kernel, unsigned blocks, unsigned threads, size_t count, const void* const* arguments,
               const size_t* sizes) = nullptr;
};

const Executor executor;

}  // namespace

// The emulated GPU allocates its memory by these.
void* operator new(size_t size, std::align_val_t) { return map_low(size); }
void operator delete(void* memory, std::align_val_t) noexcept { unmap_low(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { unmap_low(memory); }
