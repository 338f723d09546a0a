#include "redis_store.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstdlib>
#include <new>
#include <system_error>
#include <utility>

#include "redis_engine.h"
#include "redis_put.h"

namespace loader {
namespace redis {
namespace {

class RedisObject final : public Object {
 public:
  RedisObject(const std::string& store, std::string_view key) : Object(store + "/" + std::string(key)), key_(key) {}
  const std::string& key() const { return key_; }

 private:
  std::string key_;
};

void finish_read(Read& read, const StoreFault& fault) {
  read.times.finished = now_ns();
  read.finish(read, fault);
}

// Waits for reads without a `finish` of their own.
struct Waiter {
  std::mutex mutex;
  std::condition_variable wake;
  const Read* first = nullptr;
  std::span<StoreFault> faults;
  size_t left = 0;

  static void finish(Read& read, const StoreFault& fault) {
    Waiter& waiter = *static_cast<Waiter*>(read.context);
    read.finish = nullptr;
    const std::lock_guard lock(waiter.mutex);
    copy_fault(fault, waiter.faults[static_cast<size_t>(&read - waiter.first)]);
    if (--waiter.left == 0) waiter.wake.notify_one();
  }
};

class RedisStore final : public Store {
 public:
  RedisStore(Url url, const StoreOptions& options) : url_(std::move(url)), name_(url_.name()), options_(options) {}
  ~RedisStore() override {
    if (Engine* const own = own_engine()) delete own;
  }
  RedisStore(const RedisStore&) = delete;
  RedisStore& operator=(const RedisStore&) = delete;

  const std::string& name() const override { return name_; }
  bool is_far() const override { return true; }
  bool keeps_samples_apart() const override { return true; }
  std::unique_ptr<Object> open(std::string_view key) const override {
    return std::make_unique<RedisObject>(name_, key);
  }
  std::unique_ptr<Channel> make_channel(l3_reading reading) override;
  void read(std::span<Read> reads, std::span<StoreFault> faults) override;
  StoreFault put(const Upload& upload) override;

  void submit(std::span<Read* const> reads, uint64_t owner);
  void cancel(uint64_t owner) {
    if (Engine* const own = own_engine()) own->cancel(owner);
  }

 private:
  // Null if this process has none yet.
  Engine* own_engine() const {
    Engine* const engine = engine_.load();
    return engine != nullptr && engine->process() == getpid() ? engine : nullptr;
  }
  Engine& engine();

  const Url url_;
  const std::string name_;
  const StoreOptions options_;
  std::atomic<Engine*> engine_ = nullptr;  // after a fork, that of the parent is neither used nor deleted
  std::atomic<uint64_t> channels_ = 0;
};

class RedisChannel final : public Channel {
 public:
  RedisChannel(RedisStore& store, uint64_t number) : store_(store), number_(number) {}
  void submit(std::span<Read* const> reads) override { store_.submit(reads, number_); }
  void cancel() override { store_.cancel(number_); }

 private:
  RedisStore& store_;
  const uint64_t number_;
};

Engine& RedisStore::engine() {
  Engine* there = engine_.load();
  while (there == nullptr || there->process() != getpid()) {
    auto started = std::make_unique<Engine>(url_, options_);
    if (engine_.compare_exchange_strong(there, started.get())) return *started.release();
  }
  return *there;
}

std::unique_ptr<Channel> RedisStore::make_channel(l3_reading) {
  return std::make_unique<RedisChannel>(*this, ++channels_);
}

void RedisStore::submit(std::span<Read* const> reads, uint64_t owner) {
  Jobs jobs;
  std::vector<std::pair<Read*, StoreFault>> impossible;
  const uint64_t now = now_ns();
  for (Read* const read : reads) {
    read->times = {};
    read->times.queued = now;
    Job& job = jobs.emplace_back();
    StoreFault fault = prepare_read(job, *read, url_.prefix, static_cast<const RedisObject*>(read->object)->key());
    if (fault) {
      impossible.emplace_back(read, std::move(fault));
      jobs.pop_back();
      continue;
    }
    job.slot = slot_of(job.key);
    job.owner = owner;
    job.finish = [](Job& done, const StoreFault& why) { finish_read(*done.read, why); };
  }
  if (!jobs.empty()) engine().submit(jobs);
  for (const auto& [read, fault] : impossible) finish_read(*read, fault);
}

void RedisStore::read(std::span<Read> reads, std::span<StoreFault> faults) {
  Waiter waiter;
  waiter.first = reads.data();
  waiter.faults = faults;
  waiter.left = reads.size();
  const auto fail = [&](const StoreFault& fault) {
    for (size_t i = 0; i < reads.size(); ++i) {
      reads[i].finish = nullptr;
      copy_fault(fault, faults[i]);
    }
  };
  try {
    std::vector<Read*> pointers;
    for (Read& read : reads) {
      read.finish = &Waiter::finish;
      read.context = &waiter;
      pointers.push_back(&read);
    }
    submit(pointers, 0);
  } catch (const std::bad_alloc&) {
    return fail({L3_ERROR_MEMORY, ENOMEM, L3_DATA_NONE, "out of memory"});
  } catch (const std::system_error& error) {
    return fail({L3_ERROR_FILE, error.code().value(), L3_DATA_NONE, "no thread"});
  }
  std::unique_lock lock(waiter.mutex);
  waiter.wake.wait(lock, [&] { return waiter.left == 0; });
}

StoreFault RedisStore::put(const Upload& upload) {
  try {
    return put_object(engine(), url_.prefix, upload);
  } catch (const std::bad_alloc&) {
    return {L3_ERROR_MEMORY, ENOMEM, L3_DATA_NONE, "out of memory"};
  } catch (const std::system_error& error) {
    return {L3_ERROR_FILE, error.code().value(), L3_DATA_NONE, "no thread"};
  }
}

}  // namespace
}  // namespace redis

std::unique_ptr<Store> open_redis(const std::string& url, const StoreOptions& options, StoreFault& fault) {
  redis::Url parsed;
  fault = redis::parse_url(url, std::getenv("REDISCLI_AUTH"), parsed);
  if (fault) return nullptr;
  return std::make_unique<redis::RedisStore>(std::move(parsed), options);
}

}  // namespace loader
