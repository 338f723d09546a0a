// The store of a data set with a cache: it answers reads of samples from the places of the cache, and the others, and
// those that a place cannot answer, from the store behind it. What it reads there for a place, it writes to that place.
//
// Two invariants. A place that fails or is damaged costs time, never a sample: the store behind it is asked. And each
// sample is looked for in one place only, the one that the plan names.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cache_keeper.h"
#include "cache_place.h"
#include "loader/cache_sets.h"

namespace loader {

// An object of the store behind the cache.
class CachedObject final : public Object {
 public:
  CachedObject(std::unique_ptr<Object> behind, const Shard* shard)
      : Object(behind->name()), behind_(std::move(behind)), shard_(shard) {}
  const Object& behind() const { return *behind_; }
  const Shard* shard() const { return shard_; }  // null if it is no shard

 private:
  std::unique_ptr<Object> behind_;
  const Shard* shard_;
};

class CacheStore final : public Store {
 public:
  // Counts of reads since the data set was opened.
  struct Counts {
    std::atomic<uint64_t> hits{0}, hit_bytes{0}, misses{0}, miss_bytes{0}, others{0}, other_bytes{0};
    std::atomic<uint64_t> kept{0}, damaged{0}, failures{0};
  };

  CacheStore(std::shared_ptr<Store> behind, CachePlan plan, std::vector<std::unique_ptr<CachePlace>> places);
  ~CacheStore() override { stop(); }
  // Writes what is left, and ends the threads. No read may be in progress.
  void stop();

  const std::string& name() const override { return behind_->name(); }
  // Also if the store behind it is near: it has a cache because it is slow.
  bool is_far() const override { return true; }
  bool keeps_samples_apart() const override { return behind_->keeps_samples_apart(); }
  bool has_cached_reads() const override { return has_cached_reads_; }
  std::unique_ptr<Object> open(std::string_view key) const override;
  std::unique_ptr<Channel> make_channel(l3_reading reading) override;
  void read(std::span<Read> reads, std::span<StoreFault> faults) override;
  uint64_t read_cached(const Read& read) override;
  StoreFault put(const Upload& upload) override { return behind_->put(upload); }

  void describe(l3_data_cache_info& info) const;
  l3_cached state_of(uint64_t sample) const;
  std::vector<CachePart> parts(std::span<const std::unique_ptr<Shard>> shards) const;

 private:
  friend class CacheChannel;
  struct Choice {
    const Shard* shard = nullptr;
    CachePlace* place = nullptr;  // null: the sample has none
    size_t number = 0;            // of the place
    uint64_t sample = 0;          // its number in the data set
    bool is_there = false;        // reading it there is worth trying
  };

  Choice choose(const Read& read) const;
  // Count reads that a place answered, and those that the store behind answered: with a place, and without.
  void count_hit(uint64_t bytes);
  void count_miss(uint64_t bytes);
  void count_other(uint64_t bytes);
  void note_failure(const CachePlace& place, const StoreFault& fault);
  // A read that fills the cache: all of the sample.
  Read whole_of(const Read& read, const Choice& choice, Bytes& bytes) const;
  Keepsake keepsake_of(const Read& read, const Choice& choice, Bytes bytes) const;
  void read_behind(std::span<Read> reads, std::span<StoreFault> faults, std::span<const size_t> which,
                   std::span<const Choice> choices);
  // Verifies a sample and writes it to its place.
  void keep(const Keepsake& sample);
  CacheKeeper& keeper();

  std::shared_ptr<Store> behind_;
  const CachePlan plan_;
  std::vector<std::unique_ptr<CachePlace>> places_;
  bool has_cached_reads_ = false;
  mutable Counts counts_;
  mutable std::mutex failure_mutex_;
  l3_data_error last_failure_{};
  std::atomic<CacheKeeper*> keeper_{nullptr};  // after a fork, that of the parent is neither used nor deleted
};

// Puts a cache before the store of a data set whose shards are open. `shard` is empty unless a single shard was opened.
l3_status add_cache(l3_data_set& set, const std::string& shard, const char* places, l3_data_error* error);

}  // namespace loader
