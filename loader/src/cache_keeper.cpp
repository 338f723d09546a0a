#include "cache_keeper.h"

#include <pthread.h>

#include <csignal>
#include <cstring>
#include <iterator>
#include <new>

namespace loader {

CacheKeeper::~CacheKeeper() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  work_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void CacheKeeper::take_room(uint64_t size) {
  std::unique_lock lock(mutex_);
  room_.wait(lock, [&] { return taken_ == 0 || (taken_ <= kRoom && size <= kRoom - taken_); });
  taken_ += size;
}

void CacheKeeper::return_room(uint64_t size) {
  {
    const std::lock_guard lock(mutex_);
    taken_ -= size;
  }
  room_.notify_all();
}

void CacheKeeper::add(Keepsake sample) {
  std::list<Keepsake> added;
  added.push_back(std::move(sample));
  const std::lock_guard lock(mutex_);
  if (idle_ <= samples_.size() - writing_ && threads_.size() < kThreads) {
    // Signals are for the threads of the program.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool is_started = true;
    try {
      threads_.emplace_back([this] { run(); });
    } catch (...) {
      is_started = false;
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (!is_started && threads_.empty()) throw std::bad_alloc();
  }
  samples_.splice(samples_.end(), added);
  work_.notify_one();
}

bool CacheKeeper::copy(const CachePlace& place, uint64_t sample, uint64_t offset, std::span<uint8_t> to) {
  const std::lock_guard lock(mutex_);
  for (const Keepsake& one : samples_) {
    if (one.place != &place || one.sample != sample) continue;
    if (!to.empty()) std::memcpy(to.data(), one.bytes.data() + (offset - one.offset), to.size());
    return true;
  }
  return false;
}

void CacheKeeper::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    ++idle_;
    work_.wait(lock, [this] { return ends_ || samples_.size() > writing_; });
    --idle_;
    if (samples_.size() == writing_) return;
    const auto sample = std::next(samples_.begin(), static_cast<ptrdiff_t>(writing_));
    ++writing_;
    lock.unlock();
    write_(*sample);
    const uint64_t size = sample->size;
    std::list<Keepsake> written;
    lock.lock();
    --writing_;
    written.splice(written.end(), samples_, sample);
    lock.unlock();
    written.clear();
    return_room(size);
    lock.lock();
  }
}

}  // namespace loader
