// Copies one shard from a far store.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "far_set.h"
#include "transfer.h"

namespace tools {

// A shard of an open far data set, and the files to write.
struct ShardToFetch {
  loader::Store& store;
  const l3::DataSet& set;
  const loader::ShardSummary& summary;
  const ShardPlace& place;
  std::string path;       // of the whole shard
  std::string work_path;  // of the unfinished one
  bool replace = false;   // another file of this name
};

// Makes a file that equals the original shard in every byte. It gets its name when everything in it is verified. An
// earlier run may have left a part of it at `work_path`; samples there that verify are not read again.
class ShardDownload {
 public:
  ShardDownload(const ShardToFetch& shard, Transfer& transfer) : shard_(shard), transfer_(transfer) {}

  std::optional<TransferFailure> run();

 private:
  class File;

  std::optional<TransferFailure> begin(File& file, bool& is_new);
  std::optional<Failure> find_missing(const l3::DataSet& local, bool is_new);
  std::optional<TransferFailure> fetch(File& file);
  std::optional<TransferFailure> check(const l3::DataSet& local) const;

  const ShardToFetch& shard_;
  Transfer& transfer_;
  std::vector<uint64_t> missing_;  // samples, numbered in the shard, ascending
};

}  // namespace tools
