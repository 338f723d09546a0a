// What the places of a cache have in common: folders of this machine, and stores such as Redis on the nodes of a job.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "cache_plan.h"
#include "data_set.h"
#include "steady_clock.h"

namespace loader {

// The data set that a cache is for.
struct SetOfShards {
  std::string name;  // its path or URL, without secrets
  std::span<const std::unique_ptr<Shard>> shards;
};

// Any thread may call these functions. `sample` is a number in the data set.
class CachePlace {
 public:
  virtual ~CachePlace() = default;

  virtual const std::string& name() const = 0;
  // The folder of this data set there; empty if the place is a store.
  virtual std::string folder() const { return {}; }
  // Reads of this place go to its channels.
  virtual Store& store() = 0;
  // True if may_have() is certain. Any other place must be asked.
  virtual bool knows_what_it_has() const = 0;
  // False if a read of the sample would be in vain.
  virtual bool may_have(uint64_t sample) = 0;
  // Makes a read of a sample, or of a part of it, one that this place can answer. `own` gets what must live until the
  // read is finished.
  virtual void direct(Read& read, const Shard& shard, std::unique_ptr<Object>& own) = 0;
  // Such a read failed or succeeded.
  virtual void failed(uint64_t sample, const StoreFault& fault) = 0;
  virtual void succeeded() = 0;

  // False if writing would be in vain.
  virtual bool may_keep() = 0;
  // Writes a whole sample, whose bytes were verified. `offset` is its place in the shard. May wait.
  virtual StoreFault keep(const Shard& shard, uint64_t sample, uint64_t offset, std::span<const uint8_t> bytes) = 0;
  // The sample is damaged here: from now on it is absent.
  virtual void forget(uint64_t sample) = 0;
};

}  // namespace loader
