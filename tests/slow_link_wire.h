// One direction of a connection through the slow link: a queue of chunks, each with the time at which it leaves.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace slow_link {

inline constexpr uint64_t kMillisecond = 1'000'000;  // nanoseconds, as all times here
inline constexpr size_t kBlockBytes = 64 * 1024;     // what one read takes at most

struct Options {
  uint64_t delay = 0;          // what the link adds to a round trip; half of it each way
  bool connect_delay = false;  // a new connection costs one round trip
  uint64_t rate = 0;           // bytes per second each way, of all connections together; 0: no limit
  double lose = 0;             // probability that a chunk stalls as if a TCP segment was lost
  uint64_t cut_every = 0, cut_after = 1000;
  uint64_t corrupt_every = 0;
  uint64_t status_every = 0, status = 503, retry_after = UINT64_MAX;
  uint64_t window = 4u << 20;  // bytes on the way in one direction of one connection
  uint64_t seed = 1;
};

struct Counters {
  uint64_t connections = 0, open = 0, most_open = 0, bytes_up = 0, bytes_down = 0;
  uint64_t requests = 0, answers = 0, cuts = 0, corrupted = 0, statuses = 0, stalls = 0;
};

uint64_t now();

// What the connections share.
struct Link {
  Options options;
  Counters counters;
  std::mt19937_64 random{1};
  uint64_t free_at[2] = {};  // when the link has sent what was handed to it, up and down; only with a rate
  std::vector<std::unique_ptr<uint8_t[]>> spare;

  std::unique_ptr<uint8_t[]> take_block();
  void give_back(std::unique_ptr<uint8_t[]> block);
};

enum class Ending : uint8_t { kNone, kClose, kReset };

struct Chunk {
  uint64_t due = 0;
  std::unique_ptr<uint8_t[]> bytes;
  size_t size = 0;
  size_t capacity = 0;
  Ending ending = Ending::kNone;  // without bytes
};

// Bytes from one socket to another.
struct Wire {
  bool is_up = false;  // from client to server
  int from = -1, to = -1;
  bool readable = false, writable = false;  // as epoll reported, until the system says otherwise
  bool ended = false;                       // nothing more is read
  bool closed = false;                      // the ending arrived
  uint64_t earliest = 0;                    // nothing arrives before
  uint64_t last_due = 0, bytes = 0, woken_at = 0;
  size_t sent = 0;  // of the first chunk
  std::deque<Chunk> chunks;

  // Puts bytes on the way. A wire keeps their order.
  void push(Link& link, std::unique_ptr<uint8_t[]> block, size_t size, size_t capacity);
  void push(Link& link, const std::string& text);
  void end(Link& link, Ending ending);
  void drop();  // what is on the way
  bool has_room(const Link& link) const { return bytes < link.options.window; }
  // Delivers what is due. Returns kReset, and sets `closed` only if a reset arrived; otherwise the socket failed.
  Ending deliver(Link& link, uint64_t time);
};

}  // namespace slow_link
