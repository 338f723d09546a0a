// The thread that sends the requests of a store.
#pragma once

#include <future>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "call_job.h"
#include "http_loop.h"

namespace loader::net {

// Any thread may call its functions.
class HttpEngine {
 public:
  // Starts nothing yet.
  HttpEngine(std::unique_ptr<Site> site, const StoreOptions& options) : settings_(options), site_(std::move(site)) {}
  // Ends the thread and closes all connections.
  ~HttpEngine();
  HttpEngine(const HttpEngine&) = delete;
  HttpEngine& operator=(const HttpEngine&) = delete;

  // Throws std::bad_alloc or std::system_error, and then starts none of the reads.
  void submit(std::span<Read* const> reads, uint64_t owner);
  // Finishes the reads of this owner soon.
  void cancel(uint64_t owner);
  // The result is in `call` when the future is ready. Throws as submit() does.
  std::future<void> start(Call& call);
  void run_call(Call& call) { start(call).wait(); }

  const Settings& settings() const { return settings_; }

 private:
  // One of the three.
  struct Message {
    Read* read = nullptr;
    std::shared_ptr<Job> job;
    uint64_t owner = kNoOwner;
  };

  void start_thread();
  void make_room(size_t count);
  void run();

  Settings settings_;
  std::unique_ptr<Site> site_;
  std::mutex mutex_;
  std::vector<Message> inbox_;
  bool ends_ = false;
  std::unique_ptr<Loop> loop_;
  std::thread thread_;
};

}  // namespace loader::net
