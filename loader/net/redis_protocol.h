// RESP2, the protocol of Redis: commands, and a parser of replies that trusts nothing.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace loader::redis {

// Appends a command with these arguments.
void append_command(std::string& to, std::initializer_list<std::string_view> arguments);
// Appends "SET key " up to the first byte of a value of `size` bytes, which kLineEnd follows.
void append_set(std::string& to, std::string_view key, uint64_t size);
inline constexpr std::string_view kLineEnd = "\r\n";

struct Reply {
  enum Type : uint8_t { kStatus, kError, kInteger, kBulk, kNil, kArray };
  Type type = kNil;
  int64_t integer = 0;       // kInteger; kBulk: its size
  std::string text;          // kStatus, kError; kBulk within an array: its bytes
  std::vector<Reply> items;  // kArray
};

// Parses one reply at a time, from pieces of any size. The bytes of a bulk go to the place that expect() was given.
class ReplyParser {
 public:
  enum class State : uint8_t { kMore, kDone, kBroken };

  // Prepares for the next reply. A bulk must have at most `most` bytes. `to` may be null: the bytes are dropped.
  // `takes_array`: the reply may be an array, and its bulks are kept in the tree.
  void expect(uint8_t* to, uint64_t most, bool takes_array);
  // From here on, drops the bytes of the bulk that expect() named a place for.
  void drop() { to_ = nullptr; }

  // Returns how many bytes it used: all of them, unless the reply is complete or the other side broke the protocol.
  size_t take(const uint8_t* bytes, size_t size);
  // Where the next bytes of a bulk may be received without a copy; empty if take() must have them. Call received()
  // after writing there.
  std::span<uint8_t> place() const;
  void received(size_t size);

  State state() const { return state_; }
  // Why it is kBroken.
  const char* problem() const { return problem_; }
  // True once the first byte of the reply arrived.
  bool has_begun() const { return has_begun_; }
  const Reply& reply() const { return reply_; }

 private:
  enum class Part : uint8_t { kLine, kBulk, kBulkEnd };

  void take_line();
  void begin_bulk(Reply& to, int64_t size);
  void begin_array(Reply& to, int64_t count);
  void complete();
  void fail(const char* problem) {
    state_ = State::kBroken;
    problem_ = problem;
  }

  State state_ = State::kDone;
  const char* problem_ = "";
  Part part_ = Part::kLine;
  bool takes_array_ = false, has_begun_ = false;
  uint8_t* to_ = nullptr;
  uint64_t most_ = 0;
  std::string line_;
  Reply reply_;
  uint64_t bulk_done_ = 0, bulk_size_ = 0;
  size_t end_done_ = 0;  // of the line end after a bulk
  struct Level {
    Reply* array;
    int64_t left;
  };
  std::vector<Level> levels_;  // the arrays that are not complete
  uint64_t items_ = 0;
};

// What a request does after an error.
enum class ErrorKind : uint8_t {
  kFails,
  kDenied,  // NOAUTH, WRONGPASS, NOPERM, DENIED
  kBusy,    // LOADING, BUSY, CLUSTERDOWN, TRYAGAIN, MASTERDOWN, too many clients: try again later
  kFull,    // OOM
  kMoved,   // MOVED
  kAsk,     // ASK
};
ErrorKind kind_of_error(std::string_view text);
// The first word, such as WRONGPASS; empty if it has none.
std::string_view code_of_error(std::string_view text);

}  // namespace loader::redis
