// Reads of a loader through a cache.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "cache_store.h"

namespace loader {

class CacheChannel final : public Channel {
 public:
  CacheChannel(CacheStore& store, l3_reading reading);
  void submit(std::span<Read* const> reads) override;
  void cancel() override;

 private:
  // A read of the caller that a place answers, or that fills a place.
  struct Pending {
    ~Pending();
    CacheChannel* channel = nullptr;
    Read* wanted = nullptr;  // the caller's
    CacheStore::Choice choice;
    Read own;
    std::unique_ptr<Object> object;
    Bytes bytes;        // of the whole sample, if it fills the place
    uint64_t room = 0;  // that it has in the keeper
  };
  struct Batch;

  void prepare(Read& read, Batch& batch);
  Channel& channel_of(size_t place);
  void read_behind(std::unique_ptr<Pending> pending);
  static void finish_at_place(Read& read, const StoreFault& fault);
  static void finish_behind(Read& read, const StoreFault& fault);
  static void deliver(std::unique_ptr<Pending> pending, const StoreFault& fault);

  CacheStore& store_;
  const l3_reading reading_;
  std::unique_ptr<Channel> behind_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Channel>> places_;  // made when they are needed
};

}  // namespace loader
