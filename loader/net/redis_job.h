// What a store asks a server for: a part of a value, a value to set, or the slots of a cluster. A job takes one
// exchange of commands and replies, or several: after a redirection or a failure, for a long read, or to find out why a
// reply is empty.
#pragma once

#include <array>
#include <cstdint>
#include <list>
#include <string>
#include <string_view>
#include <vector>

#include "loader/store.h"
#include "redis_protocol.h"

namespace loader::redis {

inline constexpr uint64_t kMaxValue = uint64_t{512} << 20;  // Redis has no longer strings
inline constexpr uint64_t kMaxPiece = uint64_t{64} << 20;   // of a read
inline constexpr uint32_t kMaxRedirections = 5;

// Makes the text of an error fit for a message: one line, bounded, without the secrets.
struct Secrets {
  std::string user, password;
  std::string safe_text(std::string_view text) const;
};

struct Node;

enum class Outcome : uint8_t {
  kFinished,  // successfully, or with the fault
  kGoesOn,    // needs another exchange
  kTryLater,  // the server is busy
  kMoved,     // `error` has the node
  kAsk,       // the same, for this time
};

struct Job {
  enum class Step : uint8_t { kTail, kRange, kExists, kSet, kFindSlots };
  enum class Want : uint8_t { kState, kBytes, kLength, kFound, kTree };

  Step step = Step::kRange;
  std::string key;
  uint32_t slot = 0;
  uint64_t owner = 0;  // the channel's number; 0: cancel() does not concern it
  void (*finish)(Job& job, const StoreFault& fault) = nullptr;

  // Reads.
  Read* read = nullptr;          // null once it is cancelled
  bool is_index = false;         // of a shard: the value has its index and footer
  bool is_whole = false;         // the read is for the whole value
  bool checks_size = false;      // compares the value's size with read->object_size
  bool exists = false;           // EXISTS said so after an empty reply
  uint64_t total = 0;            // bytes that the read has; a tail's is known after its first exchange
  uint64_t begin = 0, left = 0;  // the part of the value that is still to read
  uint8_t* to = nullptr;         // for that part
  uint64_t piece = 0;            // bytes of the exchange
  uint64_t value_size = 0;       // of a tail

  // Writing.
  std::vector<uint8_t> value;
  void* context = nullptr;

  // The exchange: the replies that it waits for, and what they were.
  std::array<Want, 4> wants{};
  uint8_t want_count = 0, want_at = 0;
  bool is_nil = false;
  uint64_t bytes = 0, length = 0, found = 0;
  std::string error;  // the first
  Reply slots;

  // Scheduling.
  Node* node = nullptr;  // that answered
  bool asks = false;     // the node has the slot only for those who ask
  bool is_cancelled = false;
  uint32_t attempts = 0, redirections = 0;
  uint64_t due = 0;  // when it is tried again

  // For how much a connection counts it.
  uint64_t cost() const { return piece + value.size() + 64; }
};
using Jobs = std::list<Job>;

// Prepares a job for a read of `key`, which is an object's. Returns a fault if the read is not possible.
StoreFault prepare_read(Job& job, Read& read, const std::string& prefix, std::string_view key);
bool is_shard(std::string_view key);
std::string index_key(std::string_view shard);
std::string sample_key(std::string_view shard, uint64_t sample);

// Checks the end of a value that has a shard's index and footer, and computes the size of the shard's file.
bool shard_size(const uint8_t* value_end, uint64_t value_size, uint64_t& size);

// Begins an exchange. Appends its commands; those of a value end before its bytes.
void begin_exchange(Job& job, std::string& commands);
// Where the bytes of the next reply go, and how many there may be.
void expect_reply(const Job& job, ReplyParser& parser);
// Takes a reply. True if it was the last one. False with `is_wrong`: the server breaks the protocol.
bool take_reply(Job& job, const Reply& reply, bool& is_wrong);
// What to do after the last reply.
Outcome conclude(Job& job, const Secrets& secrets, StoreFault& fault);

}  // namespace loader::redis
