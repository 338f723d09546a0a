#include "store_requests.h"

#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <system_error>

namespace l3_python {

RequestQueue::RequestQueue(bool has_event) {
  if (!has_event) return;
  event_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (event_ < 0) throw std::system_error(errno, std::system_category(), "eventfd");
}

RequestQueue::~RequestQueue() {
  if (event_ >= 0) ::close(event_);
}

void RequestQueue::signal() const {
  const uint64_t one = 1;
  if (event_ >= 0) (void)!write(event_, &one, sizeof one);
}

void RequestQueue::add(StoreRequest request) {
  const l3_store_request known = request.known;
  try {
    const std::lock_guard lock(mutex_);
    if (!is_closed_) {
      unanswered_.insert(known.number);
      waiting_.push_back(std::move(request));
      owner_ = known.owner;
      there_.notify_one();
      return signal();
    }
  } catch (const std::bad_alloc&) {
    (void)remove(known);
    return l3_store_fail(known, L3_ERROR_MEMORY, 0, "out of memory");
  }
  l3_store_fail(known, L3_ERROR_FILE, ECANCELED, "the store is closed");
}

bool RequestQueue::remove(l3_store_request known) {
  const std::lock_guard lock(mutex_);
  return unanswered_.erase(known.number) > 0;
}

void RequestQueue::cancel(l3_store_request known) {
  const std::lock_guard lock(mutex_);
  if (unanswered_.erase(known.number) == 0) return;
  const auto found = std::find_if(waiting_.begin(), waiting_.end(),
                                  [&](const StoreRequest& request) { return request.known.number == known.number; });
  if (found != waiting_.end()) {
    waiting_.erase(found);
  } else if (event_ >= 0) {
    try {
      cancelled_.push_back(known.number);
      signal();
    } catch (const std::bad_alloc&) {  // it ends later, and its answer is ignored
    }
  }
}

std::optional<StoreRequest> RequestQueue::take(bool& is_short) {
  std::unique_lock lock(mutex_);
  ++idle_;
  there_.wait(lock, [&] { return is_closed_ || !waiting_.empty(); });
  --idle_;
  if (waiting_.empty()) return std::nullopt;
  std::optional<StoreRequest> taken(std::move(waiting_.front()));
  waiting_.pop_front();
  is_short = waiting_.size() > idle_;
  return taken;
}

void RequestQueue::drain(std::vector<StoreRequest>& requests, std::vector<uint64_t>& cancelled) {
  uint64_t count = 0;
  (void)!read(event_, &count, sizeof count);
  const std::lock_guard lock(mutex_);
  requests.assign(std::make_move_iterator(waiting_.begin()), std::make_move_iterator(waiting_.end()));
  waiting_.clear();
  cancelled.swap(cancelled_);
}

void RequestQueue::close() {
  const std::shared_lock answering(answering_);
  std::unordered_set<uint64_t> open;
  l3_store_requests* owner = nullptr;
  {
    const std::lock_guard lock(mutex_);
    is_closed_ = true;
    waiting_.clear();
    open.swap(unanswered_);
    owner = owner_;
  }
  there_.notify_all();
  signal();
  if (is_released_) return;
  for (const uint64_t number : open) l3_store_fail({owner, number}, L3_ERROR_FILE, ECANCELED, "the store is closed");
}

void RequestQueue::release() {
  {
    // Waits for answers that are on their way.
    const std::lock_guard lock(answering_);
    is_released_ = true;
  }
  close();
}

void RequestQueue::finish(l3_store_request known, const void* bytes, uint64_t size) {
  const std::shared_lock answering(answering_);
  if (!is_released_ && remove(known)) l3_store_finish(known, bytes, size);
}

void RequestQueue::fail(l3_store_request known, l3_status status, int system_error, const char* reason) {
  const std::shared_lock answering(answering_);
  if (!is_released_ && remove(known)) l3_store_fail(known, status, system_error, reason);
}

}  // namespace l3_python
