// A data set that is being written: shards one after the other, and whatever it takes to go on after any end.
//
// What is unfinished stands in a folder of its own in the data set's, FOLDER/.l3-convert: a lock, the state up to the
// last whole shard, the shard that grows, and its journal, which gets an entry once a group's bytes are in the shard.
// A shard moves to its place once it is whole; index.json comes last, and then that folder goes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bridge/buffer.h"
#include "loader/shard_builder.h"
#include "options.h"
#include "set_state.h"
#include "sources.h"

namespace tools {

// The digests of 0, 1, 2 ... groups' sources: their names, sizes and times.
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

// A group as it was converted, or why it was not.
struct NewGroup {
  std::vector<NewPart> parts;
  std::optional<Failure> failure;
  SetTotals totals;
};

enum class Existing : uint8_t { refuse, resume, replace };

struct SetTarget {
  std::string folder;
  uint32_t part = 1, parts = 1;
  uint64_t shard_bytes = 0;  // a shard ends before it would pass this, but has one group at least
  std::string settings;      // lines of NAME=VALUE
  Existing existing = Existing::refuse;
};

class SetWriter {
 public:
  SetWriter(const SetTarget& target, const Sources& sources, Context& context);
  ~SetWriter();
  SetWriter(const SetWriter&) = delete;
  SetWriter& operator=(const SetWriter&) = delete;

  // Takes the folder, and reads what an earlier run has left.
  std::optional<Failure> begin();
  // The data set was whole already: nothing is to be done.
  bool was_complete() const { return was_whole_; }

  // Groups that need not be converted any more, and what there is to say of them.
  uint64_t done() const { return done_; }
  const SetTotals& kept() const { return kept_; }
  const std::vector<Failure>& failures() const { return failures_; }

  bool trained() const { return state_.trained; }
  const std::vector<std::vector<uint8_t>>& models() const { return state_.models; }
  std::optional<Failure> set_models(std::vector<std::vector<uint8_t>> models);

  // Adds the next group of the sources: parts without a problem (loader::problem), in roles of their own, or a failure.
  std::optional<Failure> add(NewGroup group);
  // After the last group. What else belongs to the data set is to be written between the two: once it has its index it
  // is whole.
  std::optional<Failure> end_shard();
  std::optional<Failure> finish(const std::vector<std::string>& classes);

  // Of all shards, once finished.
  uint64_t shards() const { return state_.shards.size(); }
  uint64_t bytes() const;

 private:
  class File;

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
  int lock_ = -1;
  SetState state_;
  std::vector<loader::Digest> model_names_;  // of state_.models
  SourceChain chain_;
  std::optional<loader::ShardBuilder> builder_;
  std::unique_ptr<File> shard_, journal_;
  SetTotals since_state_;  // what the growing shard adds
  std::vector<Failure> failures_;
  uint64_t done_ = 0;
  SetTotals kept_;
  bool was_whole_ = false;
};

// The index of a part (--part), and of all parts.
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
