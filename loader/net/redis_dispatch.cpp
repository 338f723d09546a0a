// Which job goes to which node, and what becomes of it after an answer.
#include <algorithm>
#include <cerrno>

#include "redis_engine.h"

namespace loader::redis {
namespace {

constexpr size_t kConnectionsPerNode = 4;
constexpr size_t kJobsPerConnection = 16;  // more than these are worth another connection
constexpr size_t kMaxNodes = 1024;
constexpr uint64_t kFirstDelay = 200 * kMillisecond, kLongestDelay = 10'000 * kMillisecond;
constexpr uint64_t kBetweenRefreshes = 250 * kMillisecond;
// A server that was never reached is probably not there.
constexpr uint32_t kAttemptsToReach = 3;

}  // namespace

void Engine::take_due(uint64_t now) {
  Jobs due;
  for (auto at = delayed_.begin(); at != delayed_.end();) {
    const auto job = at++;
    if (job->due <= now) due.splice(due.end(), delayed_, job);
  }
  pending_.splice(pending_.begin(), due);
}

uint64_t Engine::in_progress() const {
  uint64_t count = 0;
  for (const Node& node : nodes_) {
    count += node.waiting.size();
    for (const Connection& connection : node.connections) count += connection.job_count();
  }
  return count;
}

void Engine::dispatch(uint64_t now) {
  uint64_t room = std::min<uint64_t>(window_, most_in_progress_);
  room -= std::min(room, in_progress());
  for (; room > 0 && !pending_.empty(); --room) {
    Node& node = node_of(pending_.front());
    node.waiting.splice(node.waiting.end(), pending_, pending_.begin());
  }
  for (Node& node : nodes_) fill(node, now);
}

// What is to go to the node waits for it.
void Engine::take_pending_of(Node& node) {
  for (auto at = pending_.begin(); at != pending_.end();) {
    const auto job = at++;
    if (&node_of(*job) == &node) node.waiting.splice(node.waiting.end(), pending_, job);
  }
}

void Engine::fill(Node& node, uint64_t now) {
  while (!node.waiting.empty()) {
    Connection* best = nullptr;
    for (Connection& connection : node.connections) {
      if (!connection.has_room(node.waiting.front().cost())) continue;
      if (best == nullptr || connection.cost() < best->cost()) best = &connection;
    }
    if (best == nullptr) break;
    best->add(node.waiting);
  }
  size_t jobs = 0;
  bool is_opening = false;
  for (Connection& connection : node.connections) {
    connection.send();
    jobs += connection.job_count();
    is_opening |= !connection.is_ready() && !connection.has_failed();
  }
  const size_t count = node.connections.size();
  const bool is_busy = !node.waiting.empty() || jobs > count * kJobsPerConnection;
  if (!is_busy || is_opening || count == kConnectionsPerNode || now < node.retry_at) return;
  node.connections.emplace_back(multi_.get(), node.address, access_, node);
}

void Engine::conclude_jobs() {
  while (!complete_.empty()) {
    Job& job = complete_.front();
    if (job.is_cancelled) {
      complete_.pop_front();
      continue;
    }
    StoreFault fault;
    switch (conclude(job, access_.secrets, fault)) {
      case Outcome::kFinished:
        if (!fault) window_ = std::min<uint64_t>(window_ + 1, most_in_progress_);
        if (job.step == Job::Step::kFindSlots) apply_slots(job);
        finish_first(complete_, fault);
        break;
      case Outcome::kGoesOn:
        job.redirections = 0;
        pending_.splice(pending_.begin(), complete_, complete_.begin());
        break;
      case Outcome::kTryLater:
        window_ = std::max<uint64_t>(window_ / 2, 32);
        charge_first(complete_, fault);
        break;
      case Outcome::kMoved: redirect(false); break;
      case Outcome::kAsk: redirect(true); break;
    }
  }
}

// Follows MOVED or ASK. The nodes that a cluster names are part of it, wherever they are.
void Engine::redirect(bool asks) {
  Job& job = complete_.front();
  uint32_t slot = 0;
  Address to;
  const bool is_clear = parse_redirection(job.error, job.node->address, slot, to) && slot == job.slot;
  if (!is_clear || nodes_.size() >= kMaxNodes) {
    const char* const why =
        is_clear ? "the cluster has too many nodes" : "the cluster redirects the request to nowhere";
    return finish_first(complete_, {L3_ERROR_FILE, EPROTO, L3_DATA_NONE, why});
  }
  Node& node = node_at(to);
  if (!asks) {
    if (slots_.empty()) slots_.assign(kSlots, &nodes_.front());
    slots_[slot] = &node;
    slots_are_old_ = true;
  }
  job.asks = asks;
  node.waiting.splice(node.waiting.end(), complete_, complete_.begin());
}

bool Engine::needs_slots() const {
  const bool has_jobs = !pending_.empty() || !delayed_.empty() || in_progress() > 0;
  return slots_are_old_ && !slots_are_under_way_ && has_jobs;
}

// Asks a node for the slots of the cluster: one after the other, because some may be down.
void Engine::refresh_slots(uint64_t now) {
  if (!needs_slots() || now < refresh_at_) return;
  refresh_at_ = now + kBetweenRefreshes;
  std::vector<Node*> candidates;
  for (const bool must_be_ready : {true, false}) {
    for (Node& node : nodes_) {
      const bool is_ready = std::any_of(node.connections.begin(), node.connections.end(),
                                        [](const Connection& connection) { return connection.is_ready(); });
      if (is_ready || !must_be_ready) candidates.push_back(&node);
    }
    if (!candidates.empty()) break;
  }
  Jobs jobs;
  Job& job = jobs.emplace_back();
  job.step = Job::Step::kFindSlots;
  job.context = this;
  job.finish = [](Job& done, const StoreFault&) { static_cast<Engine*>(done.context)->slots_are_under_way_ = false; };
  Node& node = *candidates[refreshed_++ % candidates.size()];
  slots_are_under_way_ = true;
  node.waiting.splice(node.waiting.begin(), jobs);
}

void Engine::apply_slots(Job& job) {
  std::vector<SlotRange> ranges;
  if (!job.error.empty() || !parse_slots(job.slots, job.node->address, ranges) || ranges.empty()) {
    slots_are_old_ = kind_of_error(job.error) != ErrorKind::kDenied;  // then MOVED must do
    return;
  }
  slots_are_old_ = false;
  for (Node& node : nodes_) node.is_master = false;
  for (const SlotRange& range : ranges) {
    if (nodes_.size() >= kMaxNodes) break;
    Node& node = node_at(range.master);
    node.is_master = true;
    for (uint32_t slot = range.first; slot <= range.last; ++slot) slots_[slot] = &node;
  }
  // What waits for a node that has lost its slot goes to the new one.
  for (Node& node : nodes_) {
    for (auto at = node.waiting.begin(); at != node.waiting.end();) {
      const auto waiting = at++;
      const bool stays = waiting->asks || waiting->step == Job::Step::kFindSlots || slots_[waiting->slot] == &node;
      if (!stays) pending_.splice(pending_.begin(), node.waiting, waiting);
    }
  }
  slots_are_new_ = true;
}

// Forgets nodes that are not needed any more.
void Engine::forget_nodes() {
  if (!slots_are_new_) return;
  slots_are_new_ = false;
  for (auto at = std::next(nodes_.begin()); at != nodes_.end();) {
    const auto node = at++;
    const bool is_idle = node->waiting.empty() && std::all_of(node->connections.begin(), node->connections.end(),
                                                              [](Connection& c) { return c.job_count() == 0; });
    const bool is_used = node->is_master || !is_idle || std::find(slots_.begin(), slots_.end(), &*node) != slots_.end();
    if (!is_used) nodes_.erase(node);
  }
}

// Tries jobs again later, unless they have been tried often enough.
void Engine::charge(Jobs& jobs, const StoreFault& fault) {
  while (!jobs.empty()) charge_first(jobs, fault);
}

void Engine::charge_first(Jobs& jobs, const StoreFault& fault) {
  Job& job = jobs.front();
  const uint32_t most = was_connected_ ? attempts_ : std::min(attempts_, kAttemptsToReach);
  if (++job.attempts >= most || job.step == Job::Step::kFindSlots) return finish_first(jobs, fault);
  job.asks = false;
  job.redirections = 0;
  job.due = now_ns() + delay(job.attempts);
  delayed_.splice(delayed_.end(), jobs, jobs.begin());
}

void Engine::finish_first(Jobs& jobs, const StoreFault& fault) {
  Jobs finished;
  finished.splice(finished.end(), jobs, jobs.begin());
  Job& job = finished.front();
  job.finish(job, fault);
}

void Engine::finish_all(Jobs& jobs, const StoreFault& fault) {
  while (!jobs.empty()) finish_first(jobs, fault);
}

// Three times as long after each attempt, and never the same for two jobs.
uint64_t Engine::delay(uint32_t attempt) {
  uint64_t delay = kFirstDelay;
  for (uint32_t i = 1; i < attempt && delay < kLongestDelay; ++i) delay *= 3;
  return std::min(delay, kLongestDelay) / 100 * (75 + random_() % 50);
}

Node& Engine::node_at(const Address& address) {
  const auto at = std::find_if(nodes_.begin(), nodes_.end(), [&](const Node& node) { return node.address == address; });
  return at != nodes_.end() ? *at : nodes_.emplace_back(address);
}

Node& Engine::node_of(const Job& job) { return slots_.empty() ? nodes_.front() : *slots_[job.slot]; }

}  // namespace loader::redis
