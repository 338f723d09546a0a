#include "slow_store.h"

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

namespace tools {
namespace {

using loader::Read, loader::StoreFault;
using Clock = std::chrono::steady_clock;

uint64_t nanoseconds(Clock::time_point time) {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count());
}

class SlowStore final : public loader::Store {
 public:
  SlowStore(std::shared_ptr<loader::Store> behind, const Link& link) : behind_(std::move(behind)), link_(link) {
    thread_ = std::thread([this] { run(); });
  }
  ~SlowStore() override {
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
    }
    wake_.notify_one();
    thread_.join();
  }
  SlowStore(const SlowStore&) = delete;
  SlowStore& operator=(const SlowStore&) = delete;

  const std::string& name() const override { return behind_->name(); }
  bool is_far() const override { return true; }
  std::unique_ptr<loader::Object> open(std::string_view key) const override { return behind_->open(key); }
  std::unique_ptr<loader::Channel> make_channel(l3_reading) override { return std::make_unique<SlowChannel>(*this); }
  StoreFault put(const loader::Upload& upload) override { return behind_->put(upload); }

  void read(std::span<Read> reads, std::span<StoreFault> faults) override {
    if (reads.empty()) return;
    struct Latch {
      std::mutex mutex;
      std::condition_variable done;
      size_t left = 0;
      const Read* first = nullptr;
      std::span<StoreFault> faults;
    } latch;
    latch.left = reads.size();
    latch.first = reads.data();
    latch.faults = faults;
    std::vector<Read*> all;
    for (Read& read : reads) {
      read.context = &latch;
      read.finish = [](Read& finished, const StoreFault& fault) {
        Latch& of = *static_cast<Latch*>(finished.context);
        const std::lock_guard lock(of.mutex);
        of.faults[static_cast<size_t>(&finished - of.first)] = fault;
        if (--of.left == 0) of.done.notify_one();
      };
      all.push_back(&read);
    }
    submit(all, nullptr);
    std::unique_lock lock(latch.mutex);
    latch.done.wait(lock, [&] { return latch.left == 0; });
    for (Read& read : reads) read.finish = nullptr;
  }

 private:
  struct Waiting {
    Read* read;
    const void* channel;
  };

  class SlowChannel final : public loader::Channel {
   public:
    explicit SlowChannel(SlowStore& store) : store_(store) {}
    void submit(std::span<Read* const> reads) override { store_.submit(reads, this); }
    void cancel() override { store_.cancel(this); }

   private:
    SlowStore& store_;
  };

  void submit(std::span<Read* const> reads, const void* channel) {
    const auto seconds = [](double count) {
      return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(count));
    };
    {
      const std::lock_guard lock(mutex_);
      const Clock::time_point now = Clock::now();
      for (Read* const read : reads) {
        free_ = std::max(free_, now);
        if (link_.bytes_per_second > 0) free_ += seconds(static_cast<double>(read->size) / link_.bytes_per_second);
        read->times.queued = read->times.sent = nanoseconds(now);
        read->times.attempts = 1;
        waiting_.emplace(free_ + seconds(link_.delay), Waiting{read, channel});
      }
    }
    wake_.notify_one();
  }

  void cancel(const void* channel) {
    std::vector<Read*> cancelled;
    {
      const std::lock_guard lock(mutex_);
      for (auto at = waiting_.begin(); at != waiting_.end();) {
        const bool is_own = at->second.channel == channel;
        if (is_own) cancelled.push_back(at->second.read);
        at = is_own ? waiting_.erase(at) : std::next(at);
      }
      free_ = Clock::now();  // what was cancelled needs no link
    }
    for (Read* const read : cancelled) read->finish(*read, {L3_ERROR_FILE, ECANCELED, L3_DATA_NONE, "cancelled"});
  }

  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      if (ends_) return;
      if (waiting_.empty()) {
        wake_.wait(lock);
      } else if (const Clock::time_point first = waiting_.begin()->first; first > Clock::now()) {
        wake_.wait_until(lock, first);
      } else {
        Read& read = *waiting_.begin()->second.read;
        waiting_.erase(waiting_.begin());
        lock.unlock();
        answer(read);
        lock.lock();
      }
    }
  }

  void answer(Read& read) {
    Read own = read;
    own.finish = nullptr;
    StoreFault fault;
    behind_->read({&own, 1}, {&fault, 1});
    read.size = own.size;
    read.object_size = own.object_size;
    read.times.answered = read.times.finished = nanoseconds(Clock::now());
    read.finish(read, fault);
  }

  const std::shared_ptr<loader::Store> behind_;
  const Link link_;
  std::mutex mutex_;
  std::condition_variable wake_;
  Clock::time_point free_ = Clock::now();  // when the link has sent everything
  std::multimap<Clock::time_point, Waiting> waiting_;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace

std::shared_ptr<loader::Store> make_slow_store(std::shared_ptr<loader::Store> behind, const Link& link) {
  return std::make_shared<SlowStore>(std::move(behind), link);
}

}  // namespace tools
