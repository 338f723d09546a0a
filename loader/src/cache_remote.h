// A store that caches samples, such as Redis on a node of a job. Each sample is an object of its own: DIGEST/SHARD/N.
//
// A place that does not answer is left alone for a while. Its samples are then read from the data set's store.
#pragma once

#include <atomic>

#include "cache_place.h"

namespace loader {

class CacheRemote final : public CachePlace {
 public:
  // Makes no request.
  static std::unique_ptr<CacheRemote> open(const std::string& url, const CachePlan& plan, const StoreOptions& options,
                                           StoreFault& fault);

  const std::string& name() const override { return store_->name(); }
  Store& store() override { return *store_; }
  bool knows_what_it_has() const override { return false; }
  bool may_have(uint64_t) override { return is_up(); }
  void direct(Read& read, const Shard& shard, std::unique_ptr<Object>& own) override;
  void failed(uint64_t sample, const StoreFault& fault) override;
  void succeeded() override;
  bool may_keep() override { return is_up() && full_until_.load(std::memory_order_relaxed) <= steady_ns(); }
  StoreFault keep(const Shard& shard, uint64_t sample, uint64_t offset, std::span<const uint8_t> bytes) override;
  void forget(uint64_t) override {}  // it is written again

 private:
  CacheRemote(std::unique_ptr<Store> store, const Digest& data_set) : store_(std::move(store)), data_set_(data_set) {}
  bool is_up() const { return down_until_.load(std::memory_order_relaxed) <= steady_ns(); }
  std::unique_ptr<Object> object_of(const Shard& shard, uint64_t number) const;

  std::unique_ptr<Store> store_;
  Digest data_set_;
  std::atomic<uint64_t> down_until_{0}, full_until_{0};  // steady clock, nanoseconds
  std::atomic<uint32_t> failures_{0};                    // one after the other
};

}  // namespace loader
