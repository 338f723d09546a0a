// The socket of jobs that share batches, and what they say to each other. Messages have fixed sizes; the kernel keeps
// them apart. Both sides take every message for hostile.
#pragma once

#include <compare>
#include <csignal>
#include <cstdint>
#include <string>
#include <utility>

namespace loader {

// An open file or socket. A forked child closes its copy at once: otherwise a job would seem to live on in its
// children.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number);
  ~Descriptor() { reset(); }
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }

  explicit operator bool() const { return number_ >= 0; }
  int get() const { return number_; }
  void reset();

 private:
  int number_ = -1;
};

// What a job wants, or where a batch begins.
struct Place {
  uint64_t epoch = 0, position = 0;
  auto operator<=>(const Place&) const = default;
};

enum class Topic : uint32_t {
  hello = 1,  // a job: its terms, and its state
  welcome,    // the leader: its terms
  state,      // a job: where it is, whether it wants that batch, and that it no longer uses the one before
  batch,      // the leader: the batch that was wanted is in this buffer, whose file comes with the first message
  alone,      // the leader: the batch that was wanted will not come
  news,       // the leader: how many jobs are attached. It comes at least once a second
  forget,     // the leader: this buffer is not used any more
};

// Flags of a message.
constexpr uint32_t kWants = 1;    // hello, state: a batch
constexpr uint32_t kAllCame = 2;  // hello, news: all jobs have been attached once
constexpr uint32_t kRefused = 4;  // welcome

struct Message {
  Topic topic{};
  uint32_t flag = 0;
  uint64_t request = 0;  // hello, state: its number; batch, alone: the number of the state that they answer
  Place place;           // hello, state, batch
  uint64_t bytes = 0;    // batch: of the buffer
  uint32_t buffer = 0;   // batch, forget: its number
  uint32_t jobs = 0;     // welcome, news: how many are attached
};

struct Greeting {
  Message head;
  char text[8192] = {};  // the terms, with a zero byte at the end
};

// Names the meeting point. Jobs of different users, ranks or numbers of ranks do not meet.
std::string socket_name(const std::string& share, uint32_t rank, uint32_t world_size);

// Connects to the leader. `is_free`: there is none. `is_foreign`: somebody else has the name.
Descriptor connect_to(const std::string& name, bool& is_free, bool& is_foreign);
// Takes the name. Returns none if another job has it, or on an error.
Descriptor listen_at(const std::string& name);
// Returns none if nobody waits, or if the peer is another user.
Descriptor accept_at(const Descriptor& listening);

// Never waits. Returns false if the peer is gone or takes no more.
bool send_message(const Descriptor& socket, const void* message, size_t size, const Descriptor* passed = nullptr);

enum class Received { message, nothing, end };
// Never waits. `size` is that of the message, which may be any one.
Received receive_message(const Descriptor& socket, Greeting& message, size_t& size, Descriptor* passed = nullptr);

// An event that poll() waits for.
class Wake {
 public:
  Wake();
  int get() const { return event_.get(); }
  void ring() const;
  void quiet() const;

 private:
  Descriptor event_;
};

// Milliseconds, but only those in which this thread ran: after a process was stopped, peers are not late.
class AwakeClock {
 public:
  uint64_t tick();

 private:
  uint64_t last_ = 0, now_ = 0;
};

// Blocks signals while it lives. Threads that begin meanwhile never take any: these are for the threads of the program.
class NoSignals {
 public:
  NoSignals();
  ~NoSignals();
  NoSignals(const NoSignals&) = delete;
  NoSignals& operator=(const NoSignals&) = delete;

 private:
  sigset_t before_;
};

}  // namespace loader
