// The thread of a store: it sends jobs to the nodes of a server or a cluster, follows redirections, and tries again.
#pragma once

#include <curl/curl.h>
#include <sys/types.h>

#include <atomic>
#include <list>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "redis_cluster.h"
#include "redis_connection.h"

namespace loader::redis {

// A server, and what goes to it.
struct Node {
  explicit Node(Address at) : address(std::move(at)) {}
  Address address;
  Jobs waiting;  // for room on a connection
  std::list<Connection> connections;
  uint32_t failures = 0;  // to connect, since it answered
  uint64_t retry_at = 0;
  bool is_master = false;  // according to the cluster
};

class Engine {
 public:
  // Starts the thread. Throws std::bad_alloc or std::system_error.
  Engine(const Url& url, const StoreOptions& options);
  // No job may be in progress.
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // The process that has the thread. In another one, a child, the engine must not be touched.
  pid_t process() const { return process_; }
  // Takes all jobs. The thread calls their `finish`.
  void submit(Jobs& jobs);
  // Finishes the channel's jobs that were submitted before.
  void cancel(uint64_t owner);

 private:
  void run();
  bool step();
  void fail_all(const StoreFault& fault);

  // What other threads ask for.
  bool take_inbox();
  void cancel_jobs(uint64_t owner);
  void cancel_jobs(uint64_t owner, Jobs& jobs);

  // Connections.
  void connect();
  void receive();
  bool remove_failed();
  void lose(Connection& connection, Jobs& jobs);
  uint64_t check_times(uint64_t now);
  void wait(uint64_t until);

  // Jobs, in redis_dispatch.cpp.
  void take_due(uint64_t now);
  void dispatch(uint64_t now);
  void fill(Node& node, uint64_t now);
  void take_pending_of(Node& node);
  void conclude_jobs();
  void redirect(bool asks);
  void apply_slots(Job& job);
  void forget_nodes();
  void refresh_slots(uint64_t now);
  void charge(Jobs& jobs, const StoreFault& fault);
  void charge_first(Jobs& jobs, const StoreFault& fault);
  void finish_first(Jobs& jobs, const StoreFault& fault);
  void finish_all(Jobs& jobs, const StoreFault& fault);
  uint64_t delay(uint32_t attempt);
  Node& node_at(const Address& address);
  Node& node_of(const Job& job);
  uint64_t in_progress() const;
  bool needs_slots() const;

  const pid_t process_;
  Access access_;
  const uint32_t attempts_, most_in_progress_;
  std::unique_ptr<CURLM, CURLMcode (*)(CURLM*)> multi_;

  std::mutex mutex_;
  Jobs inbox_;
  std::vector<uint64_t> cancelled_;
  bool ends_ = false;

  // Of the thread.
  std::list<Node> nodes_;     // the first is that of the URL
  std::vector<Node*> slots_;  // empty: not a cluster, so far
  bool slots_are_old_ = false, slots_are_under_way_ = false, slots_are_new_ = false;
  uint64_t refresh_at_ = 0;  // not before
  uint32_t refreshed_ = 0;   // how often
  Jobs pending_;             // in the order of submission
  Jobs delayed_;
  Jobs complete_;         // their exchange is
  uint64_t window_ = 32;  // jobs in progress at once; grows with each success
  bool was_connected_ = false;
  bool is_more_ = false;  // a connection has more to receive
  std::minstd_rand random_;
  std::vector<curl_waitfd> sockets_;
  std::vector<Connection*> polled_;
  std::thread thread_;
};

}  // namespace loader::redis
