// What is known of a data set that is not finished yet, as bytes: what --resume reads.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bridge/buffer.h"
#include "failure.h"
#include "loader/shard_builder.h"

namespace tools {

// Counts of what was converted.
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

// All up to the last shard that is whole.
struct SetState {
  std::string settings;  // lines of NAME=VALUE; who resumes must have the same
  bool trained = false;  // the shared models are there, if any pays
  std::vector<std::vector<uint8_t>> models;
  std::vector<loader::ShardSummary> shards;
  uint64_t next = 0;         // the number of the first group that is in none of them
  loader::Digest sources{};  // of all groups before that
  SetTotals totals;
  std::vector<Failure> failures;
};

std::vector<uint8_t> to_bytes(const SetState& state);
// Nothing where the bytes are damaged.
std::optional<SetState> state_of(std::span<const uint8_t> bytes);

// A group behind those: what the journal of the growing shard says of it.
struct JournalEntry {
  loader::Digest sources{};  // of all groups up to and with this one
  std::optional<Failure> failure;
  std::vector<loader::NewSample> samples;
  SetTotals totals;
};

// With a length and a check of their own, to be appended to others.
std::vector<uint8_t> to_bytes(const JournalEntry& entry);
// The first entry of `bytes`, which it takes away; nothing where they hold no whole one.
std::optional<JournalEntry> take_entry(std::span<const uint8_t>& bytes);

}  // namespace tools
