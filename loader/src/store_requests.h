// Requests to a store of the caller: those that wait, and those in progress.
#pragma once

#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>

#include "l3/l3_data.h"
#include "loader/store.h"

namespace loader {

class CallerObject final : public Object {
 public:
  CallerObject(const std::string& store, std::string_view key)
      : Object(store + "/" + std::string(key)), key_(std::make_shared<const std::string>(key)) {}
  // Shared, because a request may still be starting when its read was given up.
  const std::shared_ptr<const std::string>& key() const { return key_; }

 private:
  std::shared_ptr<const std::string> key_;
};

// Never throws; if there is no memory the reason is missing.
StoreFault make_caller_fault(l3_status status, int system_error, std::string_view reason) noexcept;

}  // namespace loader

// Belongs to one process. The functions that do not throw allocate nothing, so that a read always finishes.
struct l3_store_requests {
 public:
  // Starts a thread, which watches the time. Throws std::system_error.
  l3_store_requests(const l3_store& store, const loader::StoreOptions& options);
  ~l3_store_requests();
  l3_store_requests(const l3_store_requests&) = delete;
  l3_store_requests& operator=(const l3_store_requests&) = delete;

  pid_t process() const { return process_; }
  // Ends the thread. No read may be in progress.
  void stop() noexcept;
  // Throws std::bad_alloc, and then starts none of the reads.
  void submit(std::span<loader::Read* const> reads, uint64_t owner);
  void cancel(uint64_t owner) noexcept;
  void finish(uint64_t number, const void* bytes, uint64_t size) noexcept;
  void fail(uint64_t number, const loader::StoreFault& fault) noexcept;

 private:
  using Clock = std::chrono::steady_clock;
  // A read from the end of an object takes two requests: its size comes first.
  struct Request {
    loader::Read* read = nullptr;
    uint64_t owner = 0, number = 0;
    bool wants_size = false, is_started = false;
    Clock::time_point deadline;
  };
  using List = std::list<Request>;

  static uint64_t number_of(const Request& request);
  // The request that the caller knows by this number; the end of in_progress_ if it is not in progress.
  List::iterator find(uint64_t number) noexcept;
  List take(List& from, List::iterator request) noexcept;
  void finish(List taken, const void* bytes, uint64_t size) noexcept;
  void give_up(List taken, const loader::StoreFault& fault) noexcept;
  void start_waiting() noexcept;
  void watch() noexcept;

  const pid_t process_ = getpid();
  const l3_store store_;
  const size_t limit_;
  const Clock::duration timeout_;
  std::mutex mutex_;
  std::condition_variable end_;
  List waiting_, in_progress_;  // the latter in the order of their deadlines
  std::unordered_map<uint64_t, List::iterator> by_number_;
  uint64_t last_number_ = 0;
  bool is_starting_ = false, ends_ = false;
  std::thread watch_;
};
