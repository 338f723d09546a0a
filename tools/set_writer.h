// Writes a data set, one shard after the other. After any interruption the work can continue.
//
// Unfinished work is in the folder FOLDER/.l3-convert: a lock, the state up to the last complete shard, the growing
// shard, and its journal. The journal gets an entry when all bytes of a group are in the shard; small groups are
// written together. A complete shard moves to FOLDER. index.json is written last, and then .l3-convert is removed.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bridge/buffer.h"
#include "loader/data_writer.h"
#include "loader/shard_files.h"
#include "options.h"
#include "set_state.h"
#include "sources.h"

namespace tools {

// A digest of the sources of the first 0, 1, 2 ... groups: their names, sizes and times.
class SourceChain {
 public:
  explicit SourceChain(const Sources& sources) : sources_(sources) {}
  const loader::Digest& value() const { return value_; }
  // Adds the next group.
  void advance();
  uint64_t count() const { return count_; }

 private:
  const Sources& sources_;
  uint64_t count_ = 0;
  loader::Digest value_{};
};

struct NewPart {
  loader::NewSample sample;
  bridge::Buffer bytes;
};

// A converted group, or why it failed.
struct NewGroup {
  std::vector<NewPart> parts;
  std::optional<Failure> failure;
  SetTotals totals;
};

enum class Existing : uint8_t { refuse, resume, replace };

struct SetTarget {
  std::string folder;
  uint32_t part = 1, parts = 1;
  uint64_t shard_bytes = 0;  // a shard does not exceed this, unless a single group does
  std::string settings;      // lines of NAME=VALUE
  Existing existing = Existing::refuse;
};

class SetWriter {
 public:
  SetWriter(const SetTarget& target, const Sources& sources, Context& context);
  SetWriter(const SetWriter&) = delete;
  SetWriter& operator=(const SetWriter&) = delete;

  // Locks the folder and reads the state of an earlier run.
  std::optional<Failure> begin();
  // Whether the data set was complete already, so that nothing is to be done.
  bool was_complete() const { return was_whole_; }

  // The number of groups that earlier runs have converted, and their totals and failures.
  uint64_t done() const { return done_; }
  const SetTotals& kept() const { return kept_; }
  const std::vector<Failure>& failures() const { return failures_; }

  bool trained() const { return state_.trained; }
  const std::vector<std::vector<uint8_t>>& models() const { return state_.models; }
  std::optional<Failure> set_models(std::vector<std::vector<uint8_t>> models);

  // Adds the next group of the sources: parts with different roles and without a problem (loader::problem), or a
  // failure. It may not be written before put().
  std::optional<Failure> add(NewGroup group);
  // Writes what was added.
  std::optional<Failure> put();
  // Both are called after the last group. Other files of the data set must be written between the two calls, because
  // the index, which finish() writes, makes the data set complete.
  std::optional<Failure> end_shard();
  std::optional<Failure> finish(const std::vector<std::string>& classes);

  // The number of all shards and their bytes, when the data set is finished.
  uint64_t shards() const { return state_.shards.size(); }
  uint64_t bytes() const;

 private:
  std::optional<Failure> take_lock();
  std::optional<Failure> inspect_existing();
  std::optional<Failure> resume();
  std::optional<Failure> read_journal();
  bool samples_are_there(const JournalEntry& entry);
  std::optional<Failure> compare_settings() const;
  std::optional<Failure> open_shard(bool keep_contents);
  bool head_is_there() const;
  std::optional<Failure> write_state();
  std::optional<Failure> write_index(const std::vector<std::string>& classes);
  void remove_all();
  void remove_work_folder();
  void name_models();
  std::span<const uint8_t> model_of(const loader::NewSample& sample) const;

  std::string in_folder(const std::string& name) const;
  std::string in_work_folder(const std::string& name) const;
  std::string shard_name(uint64_t number) const;
  std::string index_name() const;

  const SetTarget target_;
  const Sources& sources_;
  Context& context_;
  std::string work_folder_;
  loader::FileLock lock_;
  SetState state_;
  std::vector<loader::Digest> model_names_;  // of state_.models
  SourceChain chain_;
  std::optional<loader::ShardBuilder> builder_;
  std::unique_ptr<loader::GrowingFile> shard_, journal_;
  // Entries of the journal for groups that are not written yet, and where the groups end in the shard.
  std::vector<std::pair<uint64_t, std::vector<uint8_t>>> entries_;
  SetTotals since_state_;  // totals of the growing shard
  std::vector<Failure> failures_;
  uint64_t done_ = 0;
  SetTotals kept_;
  bool was_whole_ = false;
};

// The index of one part (see --part), and the number of parts.
struct PartIndex {
  uint32_t part = 0, parts = 0;
  std::string settings;
  loader::DataSetIndex index;
};
std::string to_json(const PartIndex& index);
Outcome<PartIndex> read_part_index(const std::string& path);
// "part-2of8.json"
std::string part_index_name(uint32_t part, uint32_t parts);

}  // namespace tools
