// What the engine sends: requests, and jobs that send a request until it has its answer.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "http_answer.h"
#include "http_url.h"
#include "loader/store.h"

namespace loader::net {

using Clock = std::chrono::steady_clock;
using Time = Clock::time_point;

// As RequestTimes has it.
inline uint64_t stamp(Time time) {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count());
}

// The body of a request.
struct Body {
  uint64_t size = 0;
  std::function<StoreFault(uint64_t offset, std::span<uint8_t> to)> read;  // must not be null if there are bytes
  std::function<void(uint64_t bytes)> sent;                                // may be null
  uint64_t reported = 0;                                                   // what `sent` was told, of all attempts
};

struct Request {
  std::string method = "GET";
  Target target;
  std::vector<std::string> headers;  // "Name: value"
  std::string body_hash;             // SHA-256 in hexadecimal; empty: that of no bytes
  Body* body = nullptr;              // null: none
};

// A server, as the engine needs to know it. Only the engine's thread uses it.
class Site {
 public:
  virtual ~Site() = default;
  // Adds what shows who is asking. Called for each attempt.
  virtual StoreFault authorize(Request&) { return {}; }
  // For the authentication of HTTP. Empty: a .netrc file may name them, if there is one and uses_netrc().
  virtual const std::string& user() const = 0;
  virtual const std::string& password() const = 0;
  virtual bool uses_netrc() const = 0;
  virtual bool follows_redirects() const = 0;
  // Whether error documents are those of S3. explain() adds to the fault of such an answer.
  virtual bool is_s3() const = 0;
  virtual void explain(const Answer&, StoreFault&) const {}
  // Removes secrets from a text that another side wrote.
  virtual void redact(std::string& text) const = 0;
};

// Bytes of an object that an attempt asks for or gets.
struct Part {
  uint64_t first = 0, size = 0;
  bool from_end = false;
  uint64_t total = 0;  // the size of the object; 0: unknown
  bool may_end_early = false;
};

enum class Next {
  kTake,   // the answer's body is what was asked for
  kAgain,  // send another request at once: a redirect, or the range in another form
  kRetry,  // try again later
  kFail,
};

// What follows from an answer.
struct Verdict {
  Next next = Next::kFail;
  StoreFault fault = {};                               // of kRetry and kFail
  Part got = {};                                       // of kTake
  bool has_changed = false;                            // the object is not the one that the bytes so far are from
  bool is_congested = false;                           // fewer requests at once are better
  std::optional<Target> moved = {};                    // of kAgain
  std::optional<std::chrono::milliseconds> wait = {};  // of kRetry: at least so long
};

inline Verdict failed(StoreFault fault) { return {.next = Next::kFail, .fault = std::move(fault)}; }

// Lives until it is finished. Only the engine's thread uses it.
class Job {
 public:
  virtual ~Job() = default;

  virtual Part wanted() const = 0;
  virtual Request request(const Part& part) const = 0;
  // Decides about a successful answer, or one with 416.
  virtual Verdict judge(const Part& asked, const Answer& answer) const = 0;
  // Before the next attempt.
  virtual void learn(const Verdict&) {}

  // The body begins. Returns false if nobody wants it any more.
  virtual bool begin(const Part& got, const Answer& answer) = 0;
  // The next bytes of the body.
  virtual void take(std::span<const uint8_t> bytes) = 0;

  // One of these ends the job.
  virtual void succeed() = 0;
  virtual void fail(const StoreFault& fault) = 0;
  // Gives up what belongs to this owner; returns false if nothing is left.
  virtual bool cancel(uint64_t) { return true; }

  virtual bool may_hedge() const { return false; }

  // Kept by the engine.
  RequestTimes times;
  std::optional<Target> moved;
  uint32_t redirects = 0;  // since the last attempt began
};

inline constexpr uint64_t kNoOwner = 0;

StoreFault cancelled();

}  // namespace loader::net
