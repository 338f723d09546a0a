// Requests of the library to a store in Python. Nothing here takes the interpreter's lock, so that the threads of a
// loader never wait for it.
#pragma once

#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "l3/l3_data.h"

namespace l3_python {

struct StoreRequest {
  l3_store_request known{};  // to the library
  std::string key;
  uint64_t offset = 0, size = 0;
  bool wants_size = false;
};

// Of one process. Any thread may call every function.
class RequestQueue {
 public:
  // With an event, a file descriptor becomes readable when there is something to drain. Throws std::system_error.
  explicit RequestQueue(bool has_event);
  ~RequestQueue();
  RequestQueue(const RequestQueue&) = delete;
  RequestQueue& operator=(const RequestQueue&) = delete;

  pid_t process() const { return process_; }
  int event() const { return event_; }
  bool is_closed() const { return is_closed_; }

  // Called by the library.
  void add(StoreRequest request);
  void cancel(l3_store_request known);
  // No answer reaches the library after this.
  void release();

  // Waits for a request. `is_short` tells that more requests wait than threads. Nothing if the queue is closed.
  std::optional<StoreRequest> take(bool& is_short);
  // Takes all requests, and the numbers of those that were taken before and then cancelled.
  void drain(std::vector<StoreRequest>& requests, std::vector<uint64_t>& cancelled);
  // Makes all requests fail, also later ones, so that who waits for them continues.
  void close();
  void finish(l3_store_request known, const void* bytes, uint64_t size);
  void fail(l3_store_request known, l3_status status, int system_error, const char* reason);

 private:
  bool remove(l3_store_request known);
  void signal() const;

  const pid_t process_ = getpid();
  int event_ = -1;
  std::atomic<bool> is_closed_ = false;
  std::mutex mutex_;
  std::condition_variable there_;
  std::deque<StoreRequest> waiting_;
  std::unordered_set<uint64_t> unanswered_;
  std::vector<uint64_t> cancelled_;
  l3_store_requests* owner_ = nullptr;
  size_t idle_ = 0;
  std::shared_mutex answering_;
  bool is_released_ = false;
};

// The queue of this process. A child of a fork begins with an empty one: that of its parent may be locked forever.
class Requests {
 public:
  explicit Requests(bool has_event) : has_event_(has_event), queue_(new RequestQueue(has_event)) {}
  ~Requests() {
    if (RequestQueue* const own = queue()) delete own;
  }
  Requests(const Requests&) = delete;
  Requests& operator=(const Requests&) = delete;

  // Null in a child of a fork that has not called restart().
  RequestQueue* queue() const {
    RequestQueue* const there = queue_;
    return there->process() == getpid() ? there : nullptr;
  }
  void restart() { queue_ = new RequestQueue(has_event_); }

 private:
  const bool has_event_;
  std::atomic<RequestQueue*> queue_;
};

}  // namespace l3_python
