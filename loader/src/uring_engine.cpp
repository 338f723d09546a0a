// Reads with io_uring: one thread, many reads at once. Uses the kernel interface directly, without liburing.
#include "read_engine.h"

#if defined(__linux__) && __has_include(<linux/io_uring.h>)
#define L3_HAS_URING 1
#include <linux/io_uring.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <thread>
#endif

namespace loader {

#ifdef L3_HAS_URING
namespace {

constexpr uint32_t kEntries = 256;                   // reads in progress at once; others wait in a list
constexpr uint64_t kMaxPerRead = uint64_t{1} << 30;  // the field has 32 bits

uint32_t load_acquire(const uint32_t* at) { return __atomic_load_n(at, __ATOMIC_ACQUIRE); }
void store_release(uint32_t* at, uint32_t value) { __atomic_store_n(at, value, __ATOMIC_RELEASE); }

int set_up(io_uring_params& parameters) {
  return static_cast<int>(syscall(__NR_io_uring_setup, kEntries, &parameters));
}

class Mapping {
 public:
  Mapping() = default;
  Mapping(int descriptor, size_t size, uint64_t offset) : size_(size) {
    void* at =
        mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, descriptor, static_cast<off_t>(offset));
    if (at != MAP_FAILED) at_ = static_cast<uint8_t*>(at);
  }
  ~Mapping() {
    if (at_ != nullptr) munmap(at_, size_);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  explicit operator bool() const { return at_ != nullptr; }
  template <class T>
  T* at(uint32_t offset) const {
    return reinterpret_cast<T*>(at_ + offset);
  }

 private:
  uint8_t* at_ = nullptr;
  size_t size_ = 0;
};

class UringEngine final : public ReadEngine {
 public:
  UringEngine(int descriptor, const io_uring_params& parameters)
      : descriptor_(descriptor),
        submissions_(descriptor, parameters.sq_off.array + parameters.sq_entries * sizeof(uint32_t),
                     IORING_OFF_SQ_RING),
        completions_(descriptor, parameters.cq_off.cqes + parameters.cq_entries * sizeof(io_uring_cqe),
                     IORING_OFF_CQ_RING),
        entries_(descriptor, parameters.sq_entries * sizeof(io_uring_sqe), IORING_OFF_SQES),
        offsets_(parameters) {}
  ~UringEngine() override {
    if (thread_.joinable()) {
      {
        const std::lock_guard lock(mutex_);
        push(IORING_OP_NOP, nullptr);
      }
      thread_.join();
    }
    close(descriptor_);
  }
  UringEngine(const UringEngine&) = delete;
  UringEngine& operator=(const UringEngine&) = delete;

  bool is_mapped() const { return submissions_ && completions_ && entries_; }
  void start() {
    thread_ = std::thread([this] { run(); });
  }

  void submit(Read& read) override {
    read.next = nullptr;
    const std::lock_guard lock(mutex_);
    if (under_way_ < kEntries) {
      push(IORING_OP_READ, &read);
    } else {
      (first_ == nullptr ? first_ : last_->next) = &read;
      last_ = &read;
    }
  }

 private:
  // The ring has room: at most kEntries reads are in progress, and the request that ends the thread comes after all.
  void push(uint8_t operation, Read* read) {
    uint32_t* tail = submissions_.at<uint32_t>(offsets_.sq_off.tail);
    const uint32_t mask = *submissions_.at<uint32_t>(offsets_.sq_off.ring_mask);
    const uint32_t place = *tail & mask;
    io_uring_sqe& entry = entries_.at<io_uring_sqe>(0)[place];
    entry = {};
    entry.opcode = operation;
    entry.fd = -1;
    if (read != nullptr) {
      ++under_way_;
      entry.fd = read->descriptor;
      entry.off = read->offset;
      entry.addr = reinterpret_cast<uint64_t>(read->to);
      entry.len = static_cast<uint32_t>(std::min(read->size, kMaxPerRead));
      entry.user_data = reinterpret_cast<uint64_t>(read);
    }
    submissions_.at<uint32_t>(offsets_.sq_off.array)[place] = place;
    store_release(tail, *tail + 1);
    // EBUSY and EAGAIN end once completions are taken, which the thread does at the same time.
    while (syscall(__NR_io_uring_enter, descriptor_, 1, 0, 0, nullptr, 0) < 1) {
      if (errno != EINTR) std::this_thread::yield();
    }
  }

  void run() {
    uint32_t* head = completions_.at<uint32_t>(offsets_.cq_off.head);
    const uint32_t* tail = completions_.at<uint32_t>(offsets_.cq_off.tail);
    const uint32_t mask = *completions_.at<uint32_t>(offsets_.cq_off.ring_mask);
    const io_uring_cqe* results = completions_.at<io_uring_cqe>(offsets_.cq_off.cqes);
    for (;;) {
      const uint32_t at = *head;
      if (at == load_acquire(tail)) {
        syscall(__NR_io_uring_enter, descriptor_, 0, 1, IORING_ENTER_GETEVENTS, nullptr, 0);
        continue;
      }
      const io_uring_cqe result = results[at & mask];
      store_release(head, at + 1);
      if (result.user_data == 0) return;
      // NOLINTNEXTLINE(performance-no-int-to-ptr): the address that push() stored
      take(*reinterpret_cast<Read*>(result.user_data), result.res);
    }
  }

  void take(Read& read, int result) {
    bool goes_on = result == -EINTR || result == -EAGAIN;
    {
      const std::lock_guard lock(mutex_);
      --under_way_;
      if (result > 0 && static_cast<uint64_t>(result) < read.size) {
        goes_on = true;
        read.offset += static_cast<uint64_t>(result);
        read.size -= static_cast<uint64_t>(result);
        read.to += result;
      }
      if (goes_on) {
        push(IORING_OP_READ, &read);
      } else if (first_ != nullptr) {
        Read& waiting = *first_;
        first_ = waiting.next;
        push(IORING_OP_READ, &waiting);
      }
    }
    if (!goes_on) finish_local_read(read, result > 0 ? 0 : result == 0 ? kFileEnds : -result);
  }

  int descriptor_;
  Mapping submissions_, completions_, entries_;
  io_uring_params offsets_;
  std::mutex mutex_;
  uint32_t under_way_ = 0;
  Read* first_ = nullptr;  // reads that wait for room
  Read* last_ = nullptr;
  std::thread thread_;
};

}  // namespace

std::unique_ptr<ReadEngine> make_uring_engine() {
  io_uring_params parameters{};
  const int descriptor = set_up(parameters);
  if (descriptor < 0) return nullptr;
  std::unique_ptr<UringEngine> engine;
  try {
    engine = std::make_unique<UringEngine>(descriptor, parameters);
  } catch (const std::bad_alloc&) {
    close(descriptor);
    throw;
  }
  // IORING_OP_READ came with Linux 5.6, as this feature did.
  if (!engine->is_mapped() || (parameters.features & IORING_FEAT_RW_CUR_POS) == 0) return nullptr;
  engine->start();
  return engine;
}

bool has_uring() {
  io_uring_params parameters{};
  const int descriptor = set_up(parameters);
  if (descriptor < 0) return false;
  close(descriptor);
  return (parameters.features & IORING_FEAT_RW_CUR_POS) != 0;
}

#else

std::unique_ptr<ReadEngine> make_uring_engine() { return nullptr; }
bool has_uring() { return false; }

#endif

}  // namespace loader
