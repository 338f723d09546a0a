#include "slow_link_relay.h"

#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <system_error>
#include <utility>

namespace slow_link {
namespace {

constexpr size_t kMostConnections = 1024;
constexpr size_t kReadsInTurn = 4;                // of one wire, before others have their turn
constexpr size_t kMostHead = 64 * 1024;           // of an answer, until its body must begin
constexpr uint64_t kWatched = uint64_t{1} << 62;  // tokens of epoll: 2 * id, plus one for the server's socket
constexpr uint64_t kListener = kWatched - 1, kTimer = kWatched - 2;
constexpr uint64_t kNever = UINT64_MAX;

std::string_view view(const uint8_t* bytes, size_t size) { return {reinterpret_cast<const char*>(bytes), size}; }

bool is_request(std::string_view text) {
  for (const char* method : {"GET ", "HEAD ", "PUT ", "POST ", "DELETE "}) {
    if (text.starts_with(method)) return true;
  }
  return false;
}

// The number after "content-length:" in the head of an answer; 0 if there is none.
uint64_t content_length(std::string head) {
  std::transform(head.begin(), head.end(), head.begin(), [](unsigned char c) { return std::tolower(c); });
  const size_t at = head.find("\r\ncontent-length:");
  return at == std::string::npos ? 0 : std::strtoull(head.c_str() + at + 17, nullptr, 10);
}

void be_quick(int socket) {
  const int one = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

[[noreturn]] void fail(const char* what) { throw std::system_error(errno, std::generic_category(), what); }

}  // namespace

struct Relay::Connection {
  Connection(int to_client, int to_server) : client(to_client), server(to_server) {}
  ~Connection() {
    close(client);
    close(server);
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  uint64_t id = 0;
  int client, server;
  Wire up, down;
  bool refused = false;       // an answer was made up, and what the client still sends is dropped
  bool asked = false;         // the client sent something since the last answer began
  uint64_t answer_bytes = 0;  // of the running answer
  uint64_t cut_at = kNever, flip_at = kNever;
  bool finds_body = false;  // reads the answer's head to find the place of the flip
  std::string head;
};

Relay::Relay(int listener, const sockaddr_in& server)
    : listener_(listener),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      timer_(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)),
      server_(server) {
  if (epoll_ < 0 || timer_ < 0) fail("epoll");
  for (const auto& [descriptor, token] : {std::pair{listener_, kListener}, std::pair{timer_, kTimer}}) {
    epoll_event event{EPOLLIN | EPOLLET, {.u64 = token}};
    if (epoll_ctl(epoll_, EPOLL_CTL_ADD, descriptor, &event) != 0) fail("epoll_ctl");
  }
}

Relay::~Relay() {
  close(timer_);
  close(epoll_);
}

bool Relay::watch(int descriptor) {
  epoll_event event{EPOLLIN, {.u64 = kWatched + static_cast<uint64_t>(descriptor)}};
  return epoll_ctl(epoll_, EPOLL_CTL_ADD, descriptor, &event) == 0;
}

int Relay::run() {
  for (;;) {
    epoll_event events[128];
    set_timer();
    const int count = epoll_wait(epoll_, events, 128, again_.empty() ? -1 : 0);
    if (count < 0 && errno != EINTR) fail("epoll_wait");
    int watched = -1;
    for (int i = 0; i < count; ++i) {
      const uint64_t token = events[i].data.u64;
      if (token >= kWatched) watched = static_cast<int>(token - kWatched);
      if (token == kListener) accept_all();
      if (token < kTimer) handle(token, events[i].events);
    }
    for (const uint64_t id : std::exchange(again_, {})) {
      if (const auto found = connections_.find(id); found != connections_.end()) move(*found->second);
    }
    for (const uint64_t time = now(); !wakes_.empty() && wakes_.top().due <= time;) {
      const uint64_t id = wakes_.top().id;
      wakes_.pop();
      if (const auto found = connections_.find(id); found != connections_.end()) move(*found->second);
    }
    if (watched >= 0) return watched;
  }
}

void Relay::set_timer() {
  const uint64_t due = wakes_.empty() ? 0 : wakes_.top().due;
  if (due == timer_due_) return;
  timer_due_ = due;
  itimerspec when{};
  when.it_value = {static_cast<time_t>(due / 1'000'000'000), static_cast<long>(due % 1'000'000'000)};
  timerfd_settime(timer_, TFD_TIMER_ABSTIME, &when, nullptr);
}

void Relay::accept_all() {
  while (connections_.size() < kMostConnections) {
    const int client = accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (client < 0) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      return;
    }
    const int server = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (server < 0) {
      close(client);
      return;
    }
    be_quick(client);
    be_quick(server);
    auto connection = std::make_unique<Connection>(client, server);
    const uint64_t id = connection->id = next_id_++;
    const uint64_t delay = link_.options.delay;
    const uint64_t earliest = link_.options.connect_delay ? now() + delay + delay / 2 : 0;
    connection->up.is_up = true;
    connection->up.from = connection->down.to = client;
    connection->down.from = connection->up.to = server;
    connection->up.earliest = connection->down.earliest = earliest;
    const bool failed =
        connect(server, reinterpret_cast<const sockaddr*>(&server_), sizeof server_) != 0 && errno != EINPROGRESS;
    if (failed) connection->down.end(link_, Ending::kReset);
    Counters& counters = link_.counters;
    ++counters.connections;
    counters.most_open = std::max(counters.most_open, ++counters.open);
    Connection& placed = *connections_.emplace(id, std::move(connection)).first->second;
    wake_at(placed.down, id);
    for (const auto& [descriptor, token] : {std::pair{client, 2 * id}, std::pair{server, 2 * id + 1}}) {
      epoll_event event{EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, {.u64 = token}};
      if (epoll_ctl(epoll_, EPOLL_CTL_ADD, descriptor, &event) != 0) fail("epoll_ctl");
    }
  }
}

void Relay::handle(uint64_t token, uint32_t events) {
  const auto found = connections_.find(token / 2);
  if (found == connections_.end()) return;
  Connection& connection = *found->second;
  const bool is_server = token % 2 == 1;
  Wire& in = is_server ? connection.down : connection.up;
  Wire& out = is_server ? connection.up : connection.down;
  if ((events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) in.readable = true;
  if ((events & EPOLLOUT) != 0) out.writable = true;
  move(connection);
}

// Reads and delivers what is possible now. May destroy the connection.
void Relay::move(Connection& connection) {
  const uint64_t id = connection.id;
  bool more = false;
  for (Wire* wire : {&connection.up, &connection.down}) more |= read_from(connection, *wire);
  for (Wire* wire : {&connection.up, &connection.down}) {
    const bool was_full = !wire->has_room(link_);
    if (wire->deliver(link_, now()) == Ending::kReset) {
      if (!wire->is_up || wire->closed) return destroy(id, true);
      // The server is gone. The client hears of it after what the server sent before.
      connection.refused = true;
      wire->drop();
      connection.down.end(link_, Ending::kReset);
    }
    wake_at(*wire, id);
    more |= was_full && wire->has_room(link_) && wire->readable && !wire->ended;
  }
  if (connection.up.closed && connection.down.closed) return destroy(id, false);
  if (more) again_.push_back(id);
}

void Relay::wake_at(Wire& wire, uint64_t id) {
  if (wire.chunks.empty() || wire.chunks.front().due == wire.woken_at) return;
  wire.woken_at = wire.chunks.front().due;
  wakes_.push({wire.woken_at, id});
}

// Returns true if the wire may have more to read now.
bool Relay::read_from(Connection& connection, Wire& wire) {
  for (size_t turn = 0; turn < kReadsInTurn; ++turn) {
    if (!wire.readable || wire.ended || !wire.has_room(link_)) return false;
    std::unique_ptr<uint8_t[]> block = link_.take_block();
    const ssize_t got = recv(wire.from, block.get(), kBlockBytes, MSG_DONTWAIT);
    if (got <= 0) {
      const int error = errno;
      link_.give_back(std::move(block));
      if (got < 0 && error == EINTR) continue;
      if (got < 0 && (error == EAGAIN || error == EWOULDBLOCK)) {
        wire.readable = false;
      } else {
        wire.end(link_, got == 0 ? Ending::kClose : Ending::kReset);
      }
      return false;
    }
    const auto size = static_cast<size_t>(got);
    size_t capacity = kBlockBytes;
    if (size < kBlockBytes / 8) {  // a small read must not keep a large block
      auto small = std::make_unique_for_overwrite<uint8_t[]>(size);
      std::memcpy(small.get(), block.get(), size);
      link_.give_back(std::exchange(block, std::move(small)));
      capacity = size;
    }
    if (wire.is_up) {
      take_request(connection, std::move(block), size, capacity);
    } else {
      take_answer(connection, std::move(block), size, capacity);
    }
  }
  return true;
}

void Relay::take_request(Connection& connection, std::unique_ptr<uint8_t[]> block, size_t size, size_t capacity) {
  if (connection.refused) return;
  const Options& options = link_.options;
  const std::string_view text = view(block.get(), size);
  if (is_request(text)) ++link_.counters.requests;
  if (is_request(text) && options.status_every != 0 && link_.counters.requests % options.status_every == 0) {
    ++link_.counters.statuses;
    // A request that comes in one piece and has no body leaves the connection as it was.
    const bool keeps = (text.starts_with("GET ") || text.starts_with("HEAD ")) && text.ends_with("\r\n\r\n");
    std::string answer = "HTTP/1.1 " + std::to_string(options.status) + " Slow Link\r\nContent-Length: 0\r\n";
    if (options.retry_after != UINT64_MAX) answer += "Retry-After: " + std::to_string(options.retry_after) + "\r\n";
    if (!keeps) answer += "Connection: close\r\n";
    // The way up counts too, as if the server had answered.
    const uint64_t arrived = std::max(now() + options.delay / 2, connection.up.earliest);
    connection.down.last_due = std::max(connection.down.last_due, arrived + options.delay / 2);
    connection.down.push(link_, answer + "\r\n");
    if (!keeps) {
      connection.refused = true;
      connection.down.end(link_, Ending::kClose);
    }
    return;
  }
  connection.asked = true;
  connection.up.push(link_, std::move(block), size, capacity);
}

void Relay::take_answer(Connection& connection, std::unique_ptr<uint8_t[]> block, size_t size, size_t capacity) {
  const Options& options = link_.options;
  if (std::exchange(connection.asked, false)) {
    const uint64_t number = ++link_.counters.answers;
    connection.answer_bytes = 0;
    connection.cut_at = options.cut_every != 0 && number % options.cut_every == 0 ? options.cut_after : kNever;
    connection.finds_body = options.corrupt_every != 0 && number % options.corrupt_every == 0;
    connection.flip_at = kNever;
    connection.head.clear();
  }
  corrupt(connection, block.get(), size);
  const uint64_t room = connection.cut_at == kNever ? kNever : connection.cut_at - connection.answer_bytes;
  const bool cuts = size >= room;
  if (cuts) size = static_cast<size_t>(room);
  connection.answer_bytes += size;
  if (size != 0) connection.down.push(link_, std::move(block), size, capacity);
  if (cuts) {
    // Ends as a server does that is stopped, or as one that crashes.
    connection.down.end(link_, ++link_.counters.cuts % 2 != 0 ? Ending::kClose : Ending::kReset);
    connection.refused = true;
    connection.up.drop();
    shutdown(connection.server, SHUT_RDWR);
  }
}

// Flips a bit in the answer's body. An answer that is not HTTP has no head.
void Relay::corrupt(Connection& connection, uint8_t* bytes, size_t size) {
  const uint64_t begin = connection.answer_bytes;
  if (connection.finds_body) {
    connection.head += view(bytes, size);
    const bool is_http = connection.head.starts_with("HTTP/");
    const size_t end = is_http ? connection.head.find("\r\n\r\n") : 0;
    if (end != std::string::npos) {
      const uint64_t length = is_http ? content_length(connection.head.substr(0, end)) : size;
      if (length != 0) connection.flip_at = end + (is_http ? 4 : 0) + link_.random() % length;
    }
    connection.finds_body = end == std::string::npos && connection.head.size() < kMostHead;
  }
  if (connection.flip_at >= begin && connection.flip_at - begin < size) {
    bytes[connection.flip_at - begin] ^= 0x10;
    ++link_.counters.corrupted;
  }
}

void Relay::destroy(uint64_t id, bool reset) {
  const auto found = connections_.find(id);
  if (reset) {
    const linger at_once{1, 0};
    for (const int descriptor : {found->second->client, found->second->server}) {
      setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    }
  }
  connections_.erase(found);
  --link_.counters.open;
  // Connections may wait that there was no room for.
  if (connections_.size() + 1 == kMostConnections) accept_all();
}

}  // namespace slow_link
