#include "callback_store.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <new>
#include <system_error>
#include <vector>

#include "store_requests.h"

namespace loader {
namespace {

constexpr size_t kMaxReason = 200;

// Counts reads that are not finished.
struct Latch {
  std::span<Read> reads;
  std::span<StoreFault> faults;
  std::mutex mutex;
  std::condition_variable all_done;
  size_t left;

  static void finish(Read& read, const StoreFault& fault) {
    Latch& latch = *static_cast<Latch*>(read.context);
    latch.faults[static_cast<size_t>(&read - latch.reads.data())] =
        make_caller_fault(fault.status, fault.system_error, fault.reason);
    latch.faults[static_cast<size_t>(&read - latch.reads.data())].offset = fault.offset;
    read.finish = nullptr;
    const std::lock_guard lock(latch.mutex);
    if (--latch.left == 0) latch.all_done.notify_one();
  }
};

class CallbackStore final : public Store {
 public:
  CallbackStore(CallerStore store, const std::string& name, const StoreOptions& options)
      : store_(std::move(store)), name_(url_without_secrets(name)), options_(options) {}
  ~CallbackStore() override {
    l3_store_requests* const own = own_requests();
    // A child that made no requests leaves the context to its parent.
    if (own == nullptr && getpid() != process_) store_.forget();
    if (own != nullptr) own->stop();
    store_.release();
    delete own;
  }
  CallbackStore(const CallbackStore&) = delete;
  CallbackStore& operator=(const CallbackStore&) = delete;

  const std::string& name() const override { return name_; }
  bool is_far() const override { return (*store_).is_near == 0; }
  std::unique_ptr<Object> open(std::string_view key) const override {
    return std::make_unique<CallerObject>(name_, key);
  }
  std::unique_ptr<Channel> make_channel(l3_reading reading) override;
  void read(std::span<Read> reads, std::span<StoreFault> faults) override;
  StoreFault put(const Upload&) override {
    return {L3_ERROR_UNSUPPORTED, 0, L3_DATA_NONE, "l3 does not write to this store"};
  }

  void submit(std::span<Read* const> reads, uint64_t owner) { requests().submit(reads, owner); }
  void cancel(uint64_t owner) {
    if (l3_store_requests* const own = own_requests()) own->cancel(owner);
  }

 private:
  // Null if this process has none yet.
  l3_store_requests* own_requests() const {
    l3_store_requests* const there = requests_.load();
    return there != nullptr && there->process() == getpid() ? there : nullptr;
  }
  l3_store_requests& requests();

  CallerStore store_;
  const std::string name_;
  const StoreOptions options_;
  const pid_t process_ = getpid();
  std::atomic<l3_store_requests*> requests_ = nullptr;  // after a fork, that of the parent is neither used nor deleted
  std::atomic<uint64_t> channels_ = 0;
};

class CallbackChannel final : public Channel {
 public:
  CallbackChannel(CallbackStore& store, uint64_t number) : store_(store), number_(number) {}
  void submit(std::span<Read* const> reads) override { store_.submit(reads, number_); }
  void cancel() override { store_.cancel(number_); }

 private:
  CallbackStore& store_;
  const uint64_t number_;
};

l3_store_requests& CallbackStore::requests() {
  l3_store_requests* there = requests_.load();
  while (there == nullptr || there->process() != getpid()) {
    auto fresh = std::make_unique<l3_store_requests>(*store_, options_);
    // Another thread of this process may have been faster.
    if (requests_.compare_exchange_strong(there, fresh.get())) return *fresh.release();
  }
  return *there;
}

std::unique_ptr<Channel> CallbackStore::make_channel(l3_reading) {
  return std::make_unique<CallbackChannel>(*this, ++channels_);
}

void CallbackStore::read(std::span<Read> reads, std::span<StoreFault> faults) {
  if (reads.empty()) return;
  Latch latch{reads, faults, {}, {}, reads.size()};
  std::vector<Read*> pointers;
  for (Read& read : reads) pointers.push_back(&read);
  for (Read& read : reads) {
    read.finish = &Latch::finish;
    read.context = &latch;
  }
  try {
    submit(pointers, 0);
  } catch (...) {
    for (Read& read : reads) read.finish = nullptr;
    throw;
  }
  std::unique_lock lock(latch.mutex);
  latch.all_done.wait(lock, [&] { return latch.left == 0; });
}

bool may_be_in_scheme(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '+' || letter == '-' || letter == '.';
}

// The statuses that a store may report.
l3_status status_of(l3_status status) {
  switch (status) {
    case L3_ERROR_TRUNCATED:
    case L3_ERROR_MEMORY:
    case L3_ERROR_LIMIT:
    case L3_ERROR_UNSUPPORTED: return status;
    default: return L3_ERROR_FILE;
  }
}

}  // namespace

std::string cleaned_reason(std::string_view text) {
  std::string cleaned;
  for (;;) {
    const size_t colon = text.find("://");
    size_t begin = std::min(colon, text.size());
    cleaned += text.substr(0, begin);
    if (colon == text.npos) break;
    while (begin > 0 && may_be_in_scheme(text[begin - 1])) --begin;
    cleaned.resize(cleaned.size() - (colon - begin));
    // A URL ends with a space or a quote.
    const size_t end = std::min(text.find_first_of(" \t\r\n\"'<>`", colon), text.size());
    cleaned += url_without_secrets(text.substr(begin, end - begin));
    text.remove_prefix(end);
  }
  for (char& letter : cleaned) {
    if (static_cast<unsigned char>(letter) < ' ' || letter == 127) letter = ' ';
  }
  if (cleaned.size() > kMaxReason) {
    size_t end = kMaxReason - 3;
    while (end > 0 && (static_cast<unsigned char>(cleaned[end]) & 0xC0) == 0x80) --end;  // whole characters of UTF-8
    cleaned.resize(end);
    cleaned += "...";
  }
  return cleaned;
}

std::shared_ptr<Store> make_callback_store(CallerStore store, const std::string& name, const StoreOptions& options) {
  return std::make_shared<CallbackStore>(std::move(store), name, options);
}

}  // namespace loader

void l3_store_finish(l3_store_request request, const void* bytes, uint64_t size) {
  if (request.owner != nullptr) request.owner->finish(request.number, bytes, size);
}

void l3_store_fail(l3_store_request request, l3_status status, int system_error, const char* reason) {
  if (request.owner == nullptr) return;
  std::string text;
  try {
    text = loader::cleaned_reason(reason != nullptr ? reason : "");
    if (text.empty()) text = system_error > 0 ? std::strerror(system_error) : "the store reported an error";
  } catch (const std::bad_alloc&) {
    text.clear();
  }
  request.owner->fail(request.number,
                      loader::make_caller_fault(loader::status_of(status), std::max(system_error, 0), text));
}
