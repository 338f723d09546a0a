#include "web_store.h"

#include <cerrno>
#include <condition_variable>
#include <new>
#include <system_error>

namespace loader::net {
namespace {

class WebChannel final : public Channel {
 public:
  WebChannel(WebStore& store, uint64_t owner) : store_(store), owner_(owner) {}
  void submit(std::span<Read* const> reads) override { store_.engine().submit(reads, owner_); }
  void cancel() override { store_.engine().cancel(owner_); }

 private:
  WebStore& store_;
  uint64_t owner_;
};

// Counts reads that are not finished.
struct Latch {
  std::span<Read> reads;
  std::span<StoreFault> faults;
  std::mutex mutex;
  std::condition_variable all_done;
  size_t left;

  static void finish(Read& read, const StoreFault& fault) {
    Latch& latch = *static_cast<Latch*>(read.context);
    latch.faults[static_cast<size_t>(&read - latch.reads.data())] = fault;
    read.finish = nullptr;
    read.context = nullptr;
    const std::lock_guard lock(latch.mutex);
    if (--latch.left == 0) latch.all_done.notify_one();
  }
};

// Errors as values.
template <class Action>
StoreFault guarded(Action action) {
  try {
    return action();
  } catch (const std::bad_alloc&) {
    return make_fault(L3_ERROR_MEMORY, ENOMEM, "out of memory");
  } catch (const std::system_error& error) {
    return make_fault(L3_ERROR_FILE, error.code().value(), "no thread can be started");
  }
}

}  // namespace

WebStore::~WebStore() {
  Started* const started = started_.load();
  if (started != nullptr && started->process == getpid()) delete started;
}

HttpEngine& WebStore::engine() {
  Started* started = started_.load();
  const pid_t process = getpid();
  if (started != nullptr && started->process == process) return started->engine;
  auto fresh = std::unique_ptr<Started>(new Started{process, {make_site(), options_}});
  // Another thread of this process may have been faster.
  if (started_.compare_exchange_strong(started, fresh.get())) started = fresh.release();
  return started->engine;
}

std::unique_ptr<Channel> WebStore::make_channel(l3_reading) { return std::make_unique<WebChannel>(*this, ++owners_); }

void WebStore::read(std::span<Read> reads, std::span<StoreFault> faults) {
  if (reads.empty()) return;
  Latch latch{reads, faults, {}, {}, reads.size()};
  for (Read& read : reads) {
    read.finish = &Latch::finish;
    read.context = &latch;
  }
  const StoreFault fault = guarded([&] {
    std::vector<Read*> pointers;
    for (Read& read : reads) pointers.push_back(&read);
    engine().submit(pointers, ++owners_);
    return StoreFault{};
  });
  if (fault) {
    for (Read& read : reads) Latch::finish(read, fault);
  }
  std::unique_lock lock(latch.mutex);
  latch.all_done.wait(lock, [&] { return latch.left == 0; });
}

StoreFault WebStore::put(const Upload& upload) {
  return guarded([&] {
    const std::unique_ptr<Object> object = open(upload.key);
    const StoreFault fault = put_object(*object, upload);
    return fault ? fault : verify_size(*object, upload.size);
  });
}

// An answer that says that an upload succeeded is not enough.
StoreFault WebStore::verify_size(const Object& object, uint64_t size) {
  uint8_t last = 0;
  Read read;
  read.object = &object;
  read.size = 1;
  read.to = &last;
  read.from_end = true;
  StoreFault fault;
  this->read({&read, 1}, {&fault, 1});
  if (fault) {
    fault.reason = "the upload could not be verified: " + fault.reason;
  } else if (read.object_size != size) {
    fault = protocol_fault("the stored object has " + std::to_string(read.object_size) + " bytes instead of " +
                           std::to_string(size));
  }
  return fault;
}

}  // namespace loader::net
