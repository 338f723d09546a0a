#include "http_engine.h"

#include <pthread.h>

#include <algorithm>
#include <csignal>
#include <new>

namespace loader::net {

HttpEngine::~HttpEngine() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
    loop_->wake();  // the thread deletes the loop after this lock
  }
  thread_.join();
}

// With the mutex locked.
void HttpEngine::start_thread() {
  if (thread_.joinable()) return;
  if (loop_ == nullptr) loop_ = std::make_unique<Loop>(*site_, settings_);
  // Signals are for the program's own threads, and a broken connection must not end the program.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    thread_ = std::thread([this] { run(); });
  } catch (...) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void HttpEngine::make_room(size_t count) {
  const size_t needed = inbox_.size() + count;
  if (needed > inbox_.capacity()) inbox_.reserve(std::max(needed, 2 * inbox_.capacity()));
}

void HttpEngine::submit(std::span<Read* const> reads, uint64_t owner) {
  const uint64_t now = stamp(Clock::now());
  const std::lock_guard lock(mutex_);
  make_room(reads.size());
  start_thread();
  for (Read* const read : reads) {
    read->times = {};
    read->times.queued = now;
    inbox_.push_back({read, nullptr, owner});
  }
  loop_->wake();
}

void HttpEngine::cancel(uint64_t owner) {
  const std::lock_guard lock(mutex_);
  if (!thread_.joinable()) return;
  try {
    inbox_.push_back({nullptr, nullptr, owner});
  } catch (const std::bad_alloc&) {
    return;  // the reads finish by themselves
  }
  loop_->wake();
}

std::future<void> HttpEngine::start(Call& call) {
  std::promise<void> done;
  std::future<void> result = done.get_future();
  auto job = std::make_shared<CallJob>(call, std::move(done));
  const std::lock_guard lock(mutex_);
  make_room(1);
  start_thread();
  inbox_.push_back({nullptr, std::move(job), kNoOwner});
  loop_->wake();
  return result;
}

void HttpEngine::run() {
  std::vector<Message> messages;
  for (bool ends = false;;) {
    {
      const std::lock_guard lock(mutex_);
      ends = ends_;
      messages.swap(inbox_);
    }
    for (Message& message : messages) {
      if (message.read != nullptr) {
        loop_->add(*message.read, message.owner);
      } else if (message.job != nullptr) {
        loop_->add(std::move(message.job));
      } else {
        loop_->cancel(message.owner);
      }
    }
    messages.clear();
    if (ends) break;
    loop_->turn();
    loop_->wait();
  }
  loop_.reset();
}

}  // namespace loader::net
