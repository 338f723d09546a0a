// A far store for tests: it answers from a folder, late and in any order.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "loader/store.h"

namespace loader_testing {

class FarStore final : public loader::Store {
 public:
  using Clock = std::chrono::steady_clock;

  // What all channels have done.
  struct Counts {
    uint64_t reads = 0, bytes = 0, at_once = 0, most_at_once = 0, bytes_at_once = 0, most_bytes_at_once = 0;
    uint64_t blocking_calls = 0, cancelled = 0;
  };

  explicit FarStore(const std::string& folder) : local_(loader::make_local_store(folder, 0)), name_("far://" + folder) {
    thread_ = std::thread([this] { run(); });
  }
  ~FarStore() override {
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
    }
    wake_.notify_all();
    thread_.join();
  }

  // Answers take from `least` to `most` milliseconds.
  void set_delay(uint32_t least, uint32_t most) {
    const std::lock_guard lock(mutex_);
    least_ = least, most_ = most;
  }
  // Returns how many milliseconds the answer to a read takes, instead of set_delay.
  std::function<uint32_t(const loader::Read&)> delay;
  // Called before a read is answered. A fault replaces the answer.
  std::function<loader::StoreFault(const loader::Read&)> refuse;
  // Called with a read that was answered.
  std::function<void(loader::Read&)> change;
  bool is_apart = false;

  Counts counts() const {
    const std::lock_guard lock(mutex_);
    return counts_;
  }
  void reset_counts() {
    const std::lock_guard lock(mutex_);
    counts_ = {};
  }

  const std::string& name() const override { return name_; }
  bool is_far() const override { return true; }
  bool keeps_samples_apart() const override { return is_apart; }
  std::unique_ptr<loader::Object> open(std::string_view key) const override { return local_->open(key); }
  std::unique_ptr<loader::Channel> make_channel(l3_reading) override { return std::make_unique<FarChannel>(*this); }
  void read(std::span<loader::Read> reads, std::span<loader::StoreFault> faults) override {
    struct Wait {
      std::mutex mutex;
      std::condition_variable done;
      size_t left = 0;
      std::map<const loader::Read*, loader::StoreFault> faults;
    } wait;
    wait.left = reads.size();
    std::vector<loader::Read*> all;
    for (loader::Read& read : reads) {
      read.context = &wait;
      read.finish = [](loader::Read& finished, const loader::StoreFault& fault) {
        Wait& of = *static_cast<Wait*>(finished.context);
        const std::lock_guard lock(of.mutex);
        if (fault) of.faults[&finished] = fault;
        if (--of.left == 0) of.done.notify_one();
      };
      all.push_back(&read);
    }
    {
      const std::lock_guard lock(mutex_);
      ++counts_.blocking_calls;
    }
    FarChannel(*this).submit(all);
    std::unique_lock lock(wait.mutex);
    wait.done.wait(lock, [&] { return wait.left == 0; });
    for (size_t i = 0; i < reads.size(); ++i) faults[i] = wait.faults[&reads[i]];
  }
  loader::StoreFault put(const loader::Upload&) override { return {L3_ERROR_UNSUPPORTED, 0, L3_DATA_NONE, "no"}; }

 private:
  struct Waiting {
    loader::Read* read;
    const void* channel;
    uint64_t size;
  };

  class FarChannel final : public loader::Channel {
   public:
    explicit FarChannel(FarStore& store) : store_(store) {}
    void submit(std::span<loader::Read* const> reads) override {
      const std::lock_guard lock(store_.mutex_);
      for (loader::Read* read : reads) {
        const uint32_t any = static_cast<uint32_t>(store_.dice_()) % (store_.most_ - store_.least_ + 1);
        const uint32_t wait = store_.delay ? store_.delay(*read) : store_.least_ + any;
        store_.waiting_.emplace(Clock::now() + std::chrono::milliseconds(wait), Waiting{read, this, read->size});
        read->times.sent = now();
        ++read->times.attempts;
        Counts& counts = store_.counts_;
        ++counts.reads;
        counts.bytes += read->size;
        counts.most_at_once = std::max(counts.most_at_once, ++counts.at_once);
        counts.most_bytes_at_once = std::max(counts.most_bytes_at_once, counts.bytes_at_once += read->size);
      }
      store_.wake_.notify_one();
    }
    void cancel() override { store_.cancel(this); }

   private:
    FarStore& store_;
  };

  static uint64_t now() { return static_cast<uint64_t>(Clock::now().time_since_epoch().count()); }

  void cancel(const void* channel) {
    std::vector<Waiting> cancelled;
    {
      const std::lock_guard lock(mutex_);
      for (auto at = waiting_.begin(); at != waiting_.end();) {
        if (at->second.channel == channel) {
          cancelled.push_back(at->second);
          at = waiting_.erase(at);
        } else {
          ++at;
        }
      }
      counts_.cancelled += cancelled.size();
      for (const Waiting& one : cancelled) count_end(one);
    }
    for (const Waiting& one : cancelled) {
      one.read->finish(*one.read, {L3_ERROR_FILE, ECANCELED, L3_DATA_NONE, "cancelled"});
    }
  }

  void count_end(const Waiting& one) {
    --counts_.at_once;
    counts_.bytes_at_once -= one.size;
  }

  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      if (ends_) return;
      if (waiting_.empty()) {
        wake_.wait(lock);
        continue;
      }
      if (const auto first = waiting_.begin()->first; first > Clock::now()) {
        wake_.wait_until(lock, first);
        continue;
      }
      const Waiting one = waiting_.begin()->second;
      waiting_.erase(waiting_.begin());
      count_end(one);
      lock.unlock();
      answer(*one.read);
      lock.lock();
    }
  }
  void answer(loader::Read& read) {
    loader::StoreFault fault;
    if (refuse) fault = refuse(read);
    if (!fault) {
      loader::Read own = read;
      own.finish = nullptr;
      local_->read({&own, 1}, {&fault, 1});
      read.size = own.size;
      read.object_size = own.object_size;
    }
    if (!fault && change) change(read);
    read.times.answered = read.times.finished = now();
    read.finish(read, fault);
  }

  std::unique_ptr<loader::Store> local_;
  std::string name_;
  uint32_t least_ = 0, most_ = 3;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::multimap<Clock::time_point, Waiting> waiting_;
  std::minstd_rand dice_{1};
  Counts counts_;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace loader_testing
