#include "redis_engine.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <new>

namespace loader::redis {
namespace {

constexpr uint64_t kMostConnectMs = 10'000, kTimeoutMs = 30'000;
constexpr uint32_t kAttempts = 6, kInProgress = 256;
constexpr uint64_t kLongestWaitMs = 1000;
// Short, so that no memory is needed to say it.
const StoreFault kOutOfMemory{L3_ERROR_MEMORY, ENOMEM, L3_DATA_NONE, "out of memory"};
const StoreFault kCancelled{L3_ERROR_FILE, ECANCELED, L3_DATA_NONE, "cancelled"};

Access make_access(const Url& url, const StoreOptions& options) {
  const uint64_t timeout = options.timeout_ms != 0 ? options.timeout_ms : kTimeoutMs;
  return {url.is_secure, options.certificates, std::min(timeout, kMostConnectMs),
          timeout,       url.database,         {url.user, url.password}};
}

// Signals are for the threads of the program.
class NoSignals {
 public:
  NoSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~NoSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  NoSignals(const NoSignals&) = delete;
  NoSignals& operator=(const NoSignals&) = delete;

 private:
  sigset_t before_;
};

CURLM* make_multi() {
  static const CURLcode initialised = curl_global_init(CURL_GLOBAL_DEFAULT);
  CURLM* const multi = initialised == CURLE_OK ? curl_multi_init() : nullptr;
  if (multi == nullptr) throw std::bad_alloc();
  return multi;
}

}  // namespace

Engine::Engine(const Url& url, const StoreOptions& options)
    : process_(getpid()),
      access_(make_access(url, options)),
      attempts_(options.attempts != 0 ? options.attempts : kAttempts),
      most_in_progress_(options.connections != 0 ? options.connections : kInProgress),
      multi_(make_multi(), curl_multi_cleanup),
      random_(static_cast<uint32_t>(now_ns())) {
  nodes_.emplace_back(url.address);
  const NoSignals blocked;
  thread_ = std::thread([this] { run(); });
}

Engine::~Engine() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  curl_multi_wakeup(multi_.get());
  thread_.join();
  nodes_.clear();
}

void Engine::submit(Jobs& jobs) {
  bool was_empty = false;
  {
    const std::lock_guard lock(mutex_);
    was_empty = inbox_.empty();
    inbox_.splice(inbox_.end(), jobs);
  }
  if (was_empty) curl_multi_wakeup(multi_.get());
}

void Engine::cancel(uint64_t owner) {
  {
    const std::lock_guard lock(mutex_);
    for (Job& job : inbox_) {
      if (job.owner == owner) job.is_cancelled = true;
    }
    try {
      cancelled_.push_back(owner);
    } catch (const std::bad_alloc&) {
      return;  // the reads finish by themselves
    }
  }
  curl_multi_wakeup(multi_.get());
}

void Engine::run() {
  for (;;) {
    try {
      if (!step()) return;
    } catch (const std::bad_alloc&) {
      fail_all(kOutOfMemory);
    }
  }
}

bool Engine::step() {
  if (!take_inbox()) return false;
  connect();
  receive();
  remove_failed();
  forget_nodes();
  uint64_t now = now_ns();
  take_due(now);
  refresh_slots(now);
  dispatch(now);
  now = now_ns();
  check_times(now);
  const bool has_room = remove_failed();
  wait(has_room ? now : check_times(now));
  return true;
}

void Engine::fail_all(const StoreFault& fault) {
  polled_.clear();
  finish_all(complete_, fault);
  for (Node& node : nodes_) {
    Jobs jobs;
    for (Connection& connection : node.connections) jobs.splice(jobs.end(), connection.jobs());
    node.connections.clear();
    std::erase_if(jobs, [](const Job& job) { return job.is_cancelled; });  // those are finished
    finish_all(jobs, fault);
    finish_all(node.waiting, fault);
  }
  finish_all(delayed_, fault);
  finish_all(pending_, fault);
}

bool Engine::take_inbox() {
  Jobs jobs;
  std::vector<uint64_t> cancelled;
  bool ends = false;
  {
    const std::lock_guard lock(mutex_);
    jobs.swap(inbox_);
    cancelled.swap(cancelled_);
    ends = ends_;
  }
  // Jobs that a channel submitted after cancel() go on.
  for (const uint64_t owner : cancelled) cancel_jobs(owner);
  Jobs early;
  for (auto at = jobs.begin(); at != jobs.end();) {
    const auto job = at++;
    if (job->is_cancelled) early.splice(early.end(), jobs, job);
  }
  pending_.splice(pending_.end(), jobs);
  finish_all(early, kCancelled);
  if (ends) fail_all(kCancelled);
  return !ends;
}

void Engine::cancel_jobs(uint64_t owner) {
  cancel_jobs(owner, pending_);
  cancel_jobs(owner, delayed_);
  for (Node& node : nodes_) {
    cancel_jobs(owner, node.waiting);
    for (Connection& connection : node.connections) {
      for (Job& job : connection.jobs()) {
        if (job.owner != owner || job.is_cancelled) continue;
        job.is_cancelled = true;
        // Its replies still arrive, and are dropped.
        connection.drop_cancelled();
        job.finish(job, kCancelled);
        job.read = nullptr;
      }
    }
  }
}

void Engine::cancel_jobs(uint64_t owner, Jobs& jobs) {
  Jobs cancelled;
  for (auto at = jobs.begin(); at != jobs.end();) {
    const auto job = at++;
    if (job->owner == owner) cancelled.splice(cancelled.end(), jobs, job);
  }
  finish_all(cancelled, kCancelled);
}

// libcurl goes on with the connections that are not made yet.
void Engine::connect() {
  bool is_connecting = false;
  for (Node& node : nodes_) {
    for (Connection& connection : node.connections) is_connecting |= connection.is_connecting();
  }
  if (!is_connecting) return;
  int running = 0, left = 0;
  curl_multi_perform(multi_.get(), &running);
  while (const CURLMsg* message = curl_multi_info_read(multi_.get(), &left)) {
    char* connection = nullptr;
    curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &connection);
    reinterpret_cast<Connection*>(connection)->connected(message->data.result);
  }
}

void Engine::receive() {
  for (size_t i = 0; i < polled_.size(); ++i) {
    if (sockets_[i].revents == 0 && !polled_[i]->has_more()) continue;
    polled_[i]->receive(complete_);
    was_connected_ |= polled_[i]->is_ready();
    if (polled_[i]->was_useful()) polled_[i]->node().failures = 0;
  }
  conclude_jobs();
}

// Returns true if there was one.
bool Engine::remove_failed() {
  bool has_failed = false;
  for (Node& node : nodes_) {
    for (auto at = node.connections.begin(); at != node.connections.end();) {
      const auto connection = at++;
      if (!connection->has_failed()) continue;
      Jobs jobs;
      jobs.splice(jobs.end(), connection->jobs());
      std::list<Connection> failed;  // its end is that of what it sends
      failed.splice(failed.end(), node.connections, connection);
      lose(failed.front(), jobs);
      has_failed = true;
    }
  }
  return has_failed;
}

// Decides what becomes of the jobs of a connection that failed, and of those that wait for its node. If the connection
// answered something, its first job loses an attempt, and the others are sent again. If it was of no use, all do.
void Engine::lose(Connection& connection, Jobs& jobs) {
  Node& node = connection.node();
  const StoreFault& fault = connection.fault();
  std::erase_if(jobs, [](const Job& job) { return job.is_cancelled; });
  const bool is_useful = connection.was_useful() && fault.system_error != ETIMEDOUT;
  const bool has_other = std::any_of(node.connections.begin(), node.connections.end(),
                                     [](const Connection& other) { return other.is_ready(); });
  if (!slots_.empty() && !(is_useful && jobs.empty())) slots_are_old_ = true;
  if (!jobs.empty() && connection.is_first_guilty()) {
    finish_first(jobs, fault);
  } else if (!jobs.empty() && is_useful) {
    charge_first(jobs, fault);
  }
  if (is_useful) {
    node.waiting.splice(node.waiting.begin(), jobs);
    return;
  }
  node.retry_at = now_ns() + delay(connection.is_permanent() ? 1 : ++node.failures);
  window_ = std::max<uint64_t>(window_ / 2, 32);
  if (!has_other) {
    take_pending_of(node);
    jobs.splice(jobs.end(), node.waiting);
  }
  connection.is_permanent() ? finish_all(jobs, fault) : charge(jobs, fault);
}

uint64_t Engine::check_times(uint64_t now) {
  uint64_t until = UINT64_MAX;
  for (Node& node : nodes_) {
    for (Connection& connection : node.connections) until = std::min(until, connection.check_time(now));
    if (!node.waiting.empty() && node.retry_at > now) until = std::min(until, node.retry_at);
  }
  for (const Job& job : delayed_) until = std::min(until, job.due);
  if (needs_slots()) until = std::min(until, refresh_at_);
  return until;
}

void Engine::wait(uint64_t until) {
  sockets_.clear();
  polled_.clear();
  for (Node& node : nodes_) {
    for (Connection& connection : node.connections) {
      if (connection.is_connecting() || connection.socket() == CURL_SOCKET_BAD) continue;
      const auto events = static_cast<short>(CURL_WAIT_POLLIN | (connection.has_to_send() ? CURL_WAIT_POLLOUT : 0));
      polled_.push_back(&connection);
      sockets_.push_back({connection.socket(), events, 0});
    }
  }
  const uint64_t now = now_ns();
  const bool has_more = std::any_of(polled_.begin(), polled_.end(), [](const Connection* c) { return c->has_more(); });
  const uint64_t left_ms = until <= now || has_more ? 0 : (until - now) / kMillisecond + 1;
  const int timeout = static_cast<int>(std::min(left_ms, kLongestWaitMs));
  curl_multi_poll(multi_.get(), sockets_.data(), static_cast<unsigned>(sockets_.size()), timeout, nullptr);
}

}  // namespace loader::redis
