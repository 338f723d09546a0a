// One connection to a server, on which many commands are under way. libcurl connects it (names, timeouts, TLS), and
// moves its bytes. Everything here belongs to the thread of the engine.
#pragma once

#include <curl/curl.h>

#include <deque>
#include <memory>
#include <string>

#include "redis_job.h"
#include "redis_url.h"

namespace loader::redis {

// Nanoseconds of std::chrono::steady_clock.
uint64_t now_ns();
inline constexpr uint64_t kMillisecond = 1'000'000;

// How the connections of a store are made.
struct Access {
  bool is_secure = false;
  std::string certificates;  // see StoreOptions
  uint64_t connect_ms = 0, timeout_ms = 0;
  uint32_t database = 0;
  Secrets secrets;
};

class Connection {
 public:
  static constexpr size_t kMaxJobs = 128;
  static constexpr uint64_t kMaxCost = uint64_t{8} << 20;

  // Begins to connect. Throws std::bad_alloc.
  Connection(CURLM* multi, const Address& address, const Access& access, Node& node);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  Node& node() const { return node_; }
  bool is_connecting() const { return state_ == State::kConnecting; }
  bool is_ready() const { return state_ == State::kReady; }
  // Set once the connection is of no use any more.
  bool has_failed() const { return state_ == State::kFailed; }
  const StoreFault& fault() const { return fault_; }
  bool is_permanent() const { return is_permanent_; }        // the same would happen again
  bool is_first_guilty() const { return is_first_guilty_; }  // the fault concerns the first job only
  bool was_useful() const { return was_useful_; }            // it answered something

  // libcurl has connected, or could not.
  void connected(CURLcode result);
  bool has_room(uint64_t cost) const;
  uint64_t cost() const { return cost_; }
  // Takes the first job of `from`. send() sends its commands.
  void add(Jobs& from);
  void send();
  // Receives what has arrived, up to a limit. Jobs whose exchange is complete go to `complete`. Returns true if there
  // may be more.
  bool receive(Jobs& complete);
  // The jobs whose commands are under way, in their order.
  Jobs& jobs() { return jobs_; }
  size_t job_count() const { return jobs_.size(); }
  // Must be called after jobs() were cancelled: their memory is not used any more.
  void drop_cancelled();
  // Fails if nothing has happened for too long. Returns when that would be; UINT64_MAX: never.
  uint64_t check_time(uint64_t now);

  curl_socket_t socket() const { return socket_; }
  bool has_to_send() const { return !segments_.empty() && !is_deaf_; }

 private:
  enum class State : uint8_t { kConnecting, kGreeting, kReady, kFailed };
  struct Segment {
    std::string text;
    std::span<const uint8_t> bytes;  // instead of the text, if not empty
  };

  std::string& text_to_send();
  void greet();
  void take(const uint8_t* bytes, size_t size, Jobs& complete);
  void take_greeting();
  void take_answer(Jobs& complete);
  void begin_reply();
  void moved(uint64_t bytes);
  void fail(int error, std::string reason, bool is_permanent = false);
  void fail_unasked(std::string_view text);
  void fail_broken(const char* what);

  Node& node_;
  const Access& access_;
  CURLM* multi_;
  CURL* easy_;
  char curl_reason_[CURL_ERROR_SIZE] = {};
  curl_socket_t socket_ = CURL_SOCKET_BAD;
  State state_ = State::kConnecting;
  StoreFault fault_;
  bool is_permanent_ = false, is_first_guilty_ = false, was_useful_ = false;

  std::deque<Segment> segments_;
  size_t segment_sent_ = 0;
  bool is_pinned_ = false;  // the first segment must not change: TLS repeats the same call
  bool is_deaf_ = false;    // sending failed; what the server said before may still arrive
  Jobs jobs_;
  uint64_t cost_ = 0;
  ReplyParser parser_;
  uint32_t greetings_ = 0;  // replies to them that are missing
  bool login_is_next_ = false;
  uint64_t progress_at_ = 0, bytes_since_ = 0;
};

}  // namespace loader::redis
