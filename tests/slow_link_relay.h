// The relay: accepts connections, connects each to the server, and moves bytes between both over two slow wires.
#pragma once

#include <netinet/in.h>

#include <memory>
#include <queue>
#include <unordered_map>

#include "slow_link_wire.h"

namespace slow_link {

class Relay {
 public:
  // Takes the listening socket, and `server`, the address to connect to.
  Relay(int listener, const sockaddr_in& server);
  ~Relay();  // resets all connections
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  Link& link() { return link_; }
  // Another descriptor that may end run().
  bool watch(int descriptor);
  // Runs until a watched descriptor is readable, and returns it.
  int run();

 private:
  struct Connection;

  void accept_all();
  void handle(uint64_t token, uint32_t events);
  void move(Connection& connection);
  bool read_from(Connection& connection, Wire& wire);
  void take_request(Connection& connection, std::unique_ptr<uint8_t[]> block, size_t size, size_t capacity);
  void take_answer(Connection& connection, std::unique_ptr<uint8_t[]> block, size_t size, size_t capacity);
  void corrupt(Connection& connection, uint8_t* bytes, size_t size);
  void wake_at(Wire& wire, uint64_t id);
  void set_timer();
  void destroy(uint64_t id, bool reset);

  struct Wake {
    uint64_t due, id;
    bool operator>(const Wake& other) const { return due > other.due; }
  };

  int listener_, epoll_, timer_;
  sockaddr_in server_;
  Link link_;
  uint64_t next_id_ = 1, timer_due_ = 0;
  std::unordered_map<uint64_t, std::unique_ptr<Connection>> connections_;
  std::priority_queue<Wake, std::vector<Wake>, std::greater<>> wakes_;
  std::vector<uint64_t> again_;  // connections that may have more to read
};

}  // namespace slow_link
