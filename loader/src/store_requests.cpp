#include "store_requests.h"

#include <pthread.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <new>
#include <utility>

#include "steady_clock.h"

namespace loader {
namespace {

void deliver(Read& read, const StoreFault& fault) noexcept {
  read.times.finished = steady_ns();
  read.finish(read, fault);
}

}  // namespace

StoreFault make_caller_fault(l3_status status, int system_error, std::string_view reason) noexcept {
  StoreFault fault{status, system_error, L3_DATA_NONE, {}};
  try {
    fault.reason = reason;
  } catch (const std::bad_alloc&) {
  }
  return fault;
}

}  // namespace loader

using namespace loader;

l3_store_requests::l3_store_requests(const l3_store& store, const StoreOptions& options)
    : store_(store), limit_(options.connections), timeout_(std::chrono::milliseconds(options.timeout_ms)) {
  // Signals are for the threads of the program.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    watch_ = std::thread([this] { watch(); });
  } catch (...) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

l3_store_requests::~l3_store_requests() { stop(); }

void l3_store_requests::stop() noexcept {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  end_.notify_one();
  if (watch_.joinable()) watch_.join();
}

void l3_store_requests::submit(std::span<Read* const> reads, uint64_t owner) {
  List added;
  const uint64_t now = steady_ns();
  for (Read* const read : reads) {
    read->times = {};
    read->times.queued = now;
    Request& request = added.emplace_back();
    request.read = read;
    request.owner = owner;
    request.wants_size = read->from_end;
  }
  {
    const std::lock_guard lock(mutex_);
    auto next = added.begin();
    try {
      for (; next != added.end(); ++next) {
        next->number = ++last_number_;
        by_number_.emplace(next->number, next);
      }
    } catch (...) {
      for (auto one = added.begin(); one != next; ++one) by_number_.erase(one->number);
      throw;
    }
    waiting_.splice(waiting_.end(), added);
  }
  start_waiting();
}

// The two requests of a read from the end have different numbers, so that an answer is not taken twice.
uint64_t l3_store_requests::number_of(const Request& request) {
  return request.number * 2 + (request.wants_size ? 1 : 0);
}

l3_store_requests::List::iterator l3_store_requests::find(uint64_t number) noexcept {
  const auto found = by_number_.find(number / 2);
  if (found == by_number_.end()) return in_progress_.end();
  const List::iterator request = found->second;
  return request->is_started && number_of(*request) == number ? request : in_progress_.end();
}

l3_store_requests::List l3_store_requests::take(List& from, List::iterator request) noexcept {
  by_number_.erase(request->number);
  List taken;
  taken.splice(taken.begin(), from, request);
  return taken;
}

void l3_store_requests::finish(uint64_t number, const void* bytes, uint64_t size) noexcept {
  List taken;
  {
    const std::lock_guard lock(mutex_);
    const List::iterator request = find(number);
    if (request == in_progress_.end()) return;
    request->read->times.answered = steady_ns();
    if (request->wants_size && size <= INT64_MAX) {
      Read& read = *request->read;
      read.object_size = size;
      read.size = std::min(read.size, size);
      if (read.size > 0) {  // its bytes come next, before those of others
        request->wants_size = request->is_started = false;
        waiting_.splice(waiting_.begin(), in_progress_, request);
      }
    }
    if (request->is_started) taken = take(in_progress_, request);
  }
  if (!taken.empty()) finish(std::move(taken), bytes, size);
  start_waiting();
}

// This thread alone has the request.
void l3_store_requests::finish(List taken, const void* bytes, uint64_t size) noexcept {
  Read& read = *taken.front().read;
  StoreFault fault;
  if (taken.front().wants_size) {
    if (size > INT64_MAX) fault = make_caller_fault(L3_ERROR_FILE, EPROTO, "the store gave an impossible size");
  } else if (size < read.size) {
    fault = make_caller_fault(L3_ERROR_TRUNCATED, 0, "the store gave fewer bytes than were asked for");
    fault.offset = (read.from_end ? read.object_size - read.size : read.offset) + size;
  } else if (size > read.size) {
    fault = make_caller_fault(L3_ERROR_FILE, EPROTO, "the store gave more bytes than were asked for");
  } else if (bytes == nullptr) {
    fault = make_caller_fault(L3_ERROR_FILE, EPROTO, "the store gave no bytes");
  } else {
    std::memcpy(read.to, bytes, static_cast<size_t>(size));
  }
  deliver(read, fault);
}

void l3_store_requests::fail(uint64_t number, const StoreFault& fault) noexcept {
  List taken;
  {
    const std::lock_guard lock(mutex_);
    const List::iterator request = find(number);
    if (request == in_progress_.end()) return;
    taken = take(in_progress_, request);
  }
  deliver(*taken.front().read, fault);
  start_waiting();
}

void l3_store_requests::give_up(List taken, const StoreFault& fault) noexcept {
  const Request& request = taken.front();
  if (request.is_started && store_.cancel != nullptr) store_.cancel(store_.context, {this, number_of(request)});
  deliver(*request.read, fault);
}

void l3_store_requests::cancel(uint64_t owner) noexcept {
  const StoreFault fault = make_caller_fault(L3_ERROR_FILE, ECANCELED, "the read was cancelled");
  const auto is_own = [&](const Request& one) { return one.owner == owner; };
  for (;;) {
    List taken;
    {
      const std::lock_guard lock(mutex_);
      List* from = &waiting_;
      auto found = std::find_if(from->begin(), from->end(), is_own);
      if (found == from->end()) {
        from = &in_progress_;
        found = std::find_if(from->begin(), from->end(), is_own);
        if (found == from->end()) break;
      }
      taken = take(*from, found);
    }
    give_up(std::move(taken), fault);
  }
  start_waiting();
}

// One thread at a time starts requests, in a loop: a store that answers at once does not make the stack grow.
void l3_store_requests::start_waiting() noexcept {
  std::unique_lock lock(mutex_);
  if (is_starting_) return;
  is_starting_ = true;
  while (!waiting_.empty() && in_progress_.size() < limit_) {
    Request& request = waiting_.front();
    Read& read = *request.read;
    request.is_started = true;
    request.deadline = Clock::now() + timeout_;
    read.times.sent = steady_ns();
    read.times.attempts = 1;
    in_progress_.splice(in_progress_.end(), waiting_, waiting_.begin());
    // From here on another thread may finish the read.
    const std::shared_ptr<const std::string> key = static_cast<const CallerObject*>(read.object)->key();
    const bool wants_size = request.wants_size;
    const uint64_t offset = read.from_end ? read.object_size - read.size : read.offset, size = read.size;
    const l3_store_request shown{this, number_of(request)};
    lock.unlock();
    if (wants_size) {
      store_.size(store_.context, key->c_str(), shown);
    } else {
      store_.read(store_.context, key->c_str(), offset, size, shown);
    }
    lock.lock();
  }
  is_starting_ = false;
}

// Gives up requests whose time is over.
void l3_store_requests::watch() noexcept {
  const StoreFault fault = make_caller_fault(L3_ERROR_FILE, ETIMEDOUT, "the store did not answer in time");
  std::unique_lock lock(mutex_);
  while (!ends_) {
    // What is started from now on ends later than that.
    const Clock::time_point next = in_progress_.empty() ? Clock::now() + timeout_ : in_progress_.front().deadline;
    if (Clock::now() < next) {
      end_.wait_until(lock, next);
      continue;
    }
    List taken = take(in_progress_, in_progress_.begin());
    lock.unlock();
    give_up(std::move(taken), fault);
    start_waiting();
    lock.lock();
  }
}
