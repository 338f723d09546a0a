// The state of an unfinished data set as bytes. --resume reads it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bridge/buffer.h"
#include "failure.h"
#include "loader/data_writer.h"

namespace tools {

// Counts of converted files.
struct SetTotals {
  uint64_t groups = 0, files = 0, pixels = 0, bytes_in = 0, bytes_out = 0;

  void add(const SetTotals& other) {
    groups += other.groups;
    files += other.files;
    pixels += other.pixels;
    bytes_in += other.bytes_in;
    bytes_out += other.bytes_out;
  }
};

// The state up to the last complete shard.
struct SetState {
  std::string settings;  // lines of NAME=VALUE; a run that resumes must have the same
  bool trained = false;  // whether shared models were made, even if none was worth it
  std::vector<std::vector<uint8_t>> models;
  std::vector<loader::ShardSummary> shards;
  uint64_t next = 0;         // number of the first group after these shards
  loader::Digest sources{};  // of all groups before it
  SetTotals totals;
  std::vector<Failure> failures;
};

std::vector<uint8_t> to_bytes(const SetState& state);
// Returns nothing if the bytes are damaged.
std::optional<SetState> state_of(std::span<const uint8_t> bytes);

// A group after these, as recorded in the journal of the growing shard.
struct JournalEntry {
  loader::Digest sources{};  // of all groups up to this one, inclusive
  std::optional<Failure> failure;
  std::vector<loader::NewSample> samples;
  SetTotals totals;
};

// The entry with its length and check, to be appended to the journal.
std::vector<uint8_t> to_bytes(const JournalEntry& entry);
// Removes the first entry from `bytes` and returns it. Returns nothing if there is no complete entry.
std::optional<JournalEntry> take_entry(std::span<const uint8_t>& bytes);

}  // namespace tools
