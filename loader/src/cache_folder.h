// A folder that caches samples, on a disk or in memory (/dev/shm), shared by all processes of a machine.
//
//   PLACE/DIGEST.l3cache/     a data set; DIGEST identifies its contents
//     about.json              which samples are to be here
//     present                 one byte for each sample of the data set: 1 if it is here
//     shard-00000.l3s         samples at the same places as in the data set's shard, with holes between them
//
// A sample is written, and then its byte in `present`. So whoever is killed leaves samples that are complete or absent.
// After a power failure a sample may be damaged although its byte is set. Like every damaged sample it is found when it
// is decoded, read from the store, and written again.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "cache_place.h"

namespace loader {

class CacheFolder final : public CachePlace {
 public:
  // Creates what is missing in the folder. Returns null and a fault if that fails, or if the folder holds another part
  // of this data set.
  static std::unique_ptr<CacheFolder> open(const std::string& folder, const CachePlan& plan, size_t number,
                                           const SetOfShards& set, StoreFault& fault);
  ~CacheFolder() override;

  const std::string& name() const override { return name_; }
  std::string folder() const override { return folder_; }
  Store& store() override { return *files_; }
  bool knows_what_it_has() const override { return true; }
  bool may_have(uint64_t sample) override;
  void direct(Read& read, const Shard& shard, std::unique_ptr<Object>& own) override;
  void failed(uint64_t sample, const StoreFault& fault) override;
  void succeeded() override {}
  bool may_keep() override;
  StoreFault keep(const Shard& shard, uint64_t sample, uint64_t offset, std::span<const uint8_t> bytes) override;
  void forget(uint64_t sample) override;

 private:
  CacheFolder() = default;
  StoreFault create(const std::string& place, const CachePlan& plan, size_t number, const SetOfShards& set);
  StoreFault agree(const CachePlan& plan, size_t number, const SetOfShards& set);
  StoreFault write(const Shard& shard, uint64_t offset, std::span<const uint8_t> bytes) const;
  StoreFault mark(uint64_t sample, uint8_t value);

  std::string name_;                         // of the folder that the caller named
  std::string folder_;                       // of this data set
  int descriptor_ = -1;                      // of that folder
  int present_ = -1;                         // of the file
  std::vector<std::atomic<uint8_t>> known_;  // what this process knows to be present
  std::unique_ptr<Store> files_;
  std::vector<std::unique_ptr<Object>> objects_;  // by shard
  std::atomic<uint64_t> full_until_{0};           // steady clock, nanoseconds
};

}  // namespace loader
