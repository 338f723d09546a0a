#include "http_loop.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <new>

namespace loader::net {
namespace {

constexpr uint32_t kRedirects = 5;  // and other repetitions at once, per attempt
constexpr size_t kFewHedges = 4;

// Finishes a read that was not sent.
void finish(Read& read, const StoreFault& fault) {
  read.times.finished = stamp(Clock::now());
  read.finish(read, fault);
}

constexpr long kConnectionsWithStreams = 4;

uint32_t seed() { return static_cast<uint32_t>(stamp(Clock::now())) ^ static_cast<uint32_t>(getpid()); }

}  // namespace

Loop::Loop(Site& site, const Settings& settings)
    : site_(site), settings_(settings), window_(settings.connections), backoff_(seed()) {
  multi_ = curl_multi_init();
  shared_ = curl_share_init();
  if (multi_ == nullptr || shared_ == nullptr) {
    curl_multi_cleanup(multi_);
    curl_share_cleanup(shared_);
    throw std::bad_alloc();
  }
  curl_multi_setopt(multi_, CURLMOPT_PIPELINING, static_cast<long>(CURLPIPE_MULTIPLEX));
  curl_multi_setopt(multi_, CURLMOPT_MAXCONNECTS, static_cast<long>(settings.connections));
  curl_multi_setopt(multi_, CURLMOPT_MAX_CONCURRENT_STREAMS, static_cast<long>(settings.connections));
  // One thread uses it, so it needs no locks.
  curl_share_setopt(shared_, CURLSHOPT_SHARE, CURL_LOCK_DATA_SSL_SESSION);
}

Loop::~Loop() {
  end_jobs(cancelled());
  for (CURL* const easy : idle_) curl_easy_cleanup(easy);
  curl_multi_cleanup(multi_);
  curl_share_cleanup(shared_);
}

void Loop::end_jobs(const StoreFault& fault) {
  while (Read* const read = waiting_.take_first()) finish(*read, fault);
  for (const auto& job : ready_) job->fail(fault);
  for (const auto& [time, job] : delayed_) job->fail(fault);
  while (!active_.empty()) {
    const std::shared_ptr<Job> job = active_.begin()->first;
    end(active_.begin());
    job->fail(fault);
  }
}

// ------------------------------------------------------------------------------------------------------- what comes

void Loop::add(Read& read, uint64_t owner) {
  try {
    waiting_.add(read, owner);
  } catch (const std::bad_alloc&) {
    finish(read, out_of_memory());
  }
}

void Loop::add(const std::shared_ptr<Job>& job) {
  try {
    ready_.push_back(job);
  } catch (const std::bad_alloc&) {
    job->fail(out_of_memory());
  }
}

void Loop::cancel(uint64_t owner) {
  waiting_.take_of(owner, [](Read& read) { finish(read, cancelled()); });
  std::erase_if(ready_, [owner](const auto& job) { return !job->cancel(owner); });
  std::erase_if(delayed_, [owner](const auto& entry) { return !entry.second->cancel(owner); });
  for (auto at = active_.begin(); at != active_.end();) {
    const auto here = at++;
    if (!here->first->cancel(owner)) end(here);
  }
}

// -------------------------------------------------------------------------------------------------------- each turn

void Loop::turn() {
  const Time now = Clock::now();
  while (!delayed_.empty() && delayed_.begin()->first <= now) {
    add(delayed_.begin()->second);
    delayed_.erase(delayed_.begin());
  }
  start_jobs();
  int running = 0;
  curl_multi_perform(multi_, &running);
  take_results();
  check_times();
}

void Loop::wait() {
  if (can_start()) return;
  Time until = check_at_;
  if (!delayed_.empty()) until = std::min(until, delayed_.begin()->first);
  int timeout = 60'000;
  const Time now = Clock::now();
  if (until < now + std::chrono::milliseconds(timeout)) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - now).count();
    timeout = static_cast<int>(std::max<int64_t>(left, 0));
  }
  curl_multi_poll(multi_, nullptr, 0, timeout, nullptr);
}

bool Loop::can_start() const { return active_.size() < window_.size() && !(ready_.empty() && waiting_.empty()); }

void Loop::start_jobs() {
  while (can_start()) {
    std::shared_ptr<Job> job;
    try {
      job = next_job();
    } catch (const std::bad_alloc&) {
      Read* const read = waiting_.take_first();
      if (read != nullptr) finish(*read, out_of_memory());
      continue;
    }
    start(job);
  }
}

std::shared_ptr<Job> Loop::next_job() {
  if (!ready_.empty()) {
    std::shared_ptr<Job> job = std::move(ready_.front());
    ready_.pop_front();
    return job;
  }
  // The memory for the job comes before the reads leave the queue.
  auto job = std::make_shared<RangeJob>();
  job->fill(waiting_.take());
  return job;
}

void Loop::start(const std::shared_ptr<Job>& job) {
  StoreFault fault = out_of_memory();
  try {
    Active& active = active_[job];
    if (job->redirects == 0) ++job->times.attempts;
    if (send(job, false, active.main, fault)) {
      check_at_ = std::min(check_at_, next_check(active));
      return;
    }
  } catch (const std::bad_alloc&) {
  }
  active_.erase(job);
  job->fail(fault);
}

// Returns false and the fault if it cannot be sent. May throw std::bad_alloc.
bool Loop::send(const std::shared_ptr<Job>& job, bool is_hedge, std::unique_ptr<Transfer>& sent, StoreFault& fault) {
  if (idle_.empty()) {
    idle_.reserve(active_.size() + hedges_ + 1);  // so that remove() can always put it back
    CURL* const made = curl_easy_init();
    if (made == nullptr) throw std::bad_alloc();
    curl_easy_setopt(made, CURLOPT_SHARE, shared_);
    idle_.push_back(made);
  }
  CURL* const easy = idle_.back();
  auto transfer = std::make_unique<Transfer>(job, is_hedge, easy);
  try {
    if (StoreFault why = transfer->prepare(site_, settings_, is_hedge && has_streams_)) return fault = why, false;
  } catch (const std::bad_alloc&) {
    curl_easy_reset(easy);
    throw;
  }
  if (curl_multi_add_handle(multi_, easy) != CURLM_OK) {
    curl_easy_reset(easy);
    throw std::bad_alloc();
  }
  idle_.pop_back();
  if (is_hedge) ++hedges_;
  sent = std::move(transfer);
  return true;
}

void Loop::remove(std::unique_ptr<Transfer>& transfer) {
  if (transfer == nullptr) return;
  if (transfer->is_hedge()) --hedges_;
  CURL* const easy = transfer->easy();
  curl_multi_remove_handle(multi_, easy);
  curl_easy_reset(easy);
  idle_.push_back(easy);
  transfer.reset();
}

void Loop::end(ActiveJobs::iterator at) {
  remove(at->second.main);
  remove(at->second.hedge);
  active_.erase(at);
}

// --------------------------------------------------------------------------------------------------------- results

void Loop::take_results() {
  int left = 0;
  while (const CURLMsg* const message = curl_multi_info_read(multi_, &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    CURL* const easy = message->easy_handle;
    const CURLcode result = message->data.result;
    void* data = nullptr;
    curl_easy_getinfo(easy, CURLINFO_PRIVATE, &data);
    Transfer& transfer = *static_cast<Transfer*>(data);
    long version = 0;
    if (curl_easy_getinfo(easy, CURLINFO_HTTP_VERSION, &version) == CURLE_OK && version == CURL_HTTP_VERSION_2_0) {
      // Requests beyond the server's limit of streams wait for a stream, instead of a connection each.
      if (!has_streams_) curl_multi_setopt(multi_, CURLMOPT_MAX_HOST_CONNECTIONS, kConnectionsWithStreams);
      has_streams_ = true;
    }
    Verdict verdict;
    try {
      verdict = transfer.verdict(result, site_, settings_);
    } catch (const std::bad_alloc&) {
      verdict = failed(out_of_memory());
    }
    settle(transfer, std::move(verdict));
  }
}

void Loop::settle(Transfer& transfer, Verdict verdict) {
  const auto at = active_.find(transfer.job());
  Active& active = at->second;
  if (verdict.is_congested) window_.congest(transfer.sent(), Clock::now());
  if (verdict.next == Next::kTake) return succeed(at, transfer);
  if (transfer.is_hedge()) {
    remove(active.hedge);
    // If the main request failed before, it waited for this one.
    if (active.main == nullptr) settle_failure(at, *active.failure);
    return;
  }
  remove(active.main);
  if (verdict.next == Next::kRetry && active.hedge != nullptr) {
    active.failure = std::move(verdict);
  } else {
    settle_failure(at, verdict);
  }
}

void Loop::succeed(ActiveJobs::iterator at, Transfer& by) {
  const std::shared_ptr<Job> job = at->first;
  window_.succeed();
  if (by.has_answer() && job->may_hedge()) answer_times_.add(by.answered() - by.started());
  if (by.is_hedge()) {
    remove(at->second.main);
    by.deliver();
  }
  end(at);
  job->succeed();
}

void Loop::settle_failure(ActiveJobs::iterator at, const Verdict& failure) {
  const Verdict verdict = failure;  // it may be the entry's
  const std::shared_ptr<Job> job = at->first;
  end(at);
  job->learn(verdict);
  switch (verdict.next) {
    case Next::kAgain:
      if (++job->redirects > kRedirects) return job->fail(protocol_fault("the server redirects again and again"));
      if (verdict.moved) job->moved = verdict.moved;
      return start(job);
    case Next::kRetry: return retry(job, verdict);
    default: return job->fail(verdict.fault);
  }
}

void Loop::retry(const std::shared_ptr<Job>& job, const Verdict& verdict) {
  const uint32_t attempts = job->times.attempts;
  if (attempts >= settings_.attempts) {
    StoreFault fault = verdict.fault;
    if (attempts > 1) fault.reason += " (sent " + std::to_string(attempts) + " times)";
    return job->fail(fault);
  }
  job->redirects = 0;
  job->moved.reset();
  auto wait = backoff_.after(attempts);
  if (verdict.wait) wait = std::max(wait, *verdict.wait);
  try {
    delayed_.emplace(Clock::now() + wait, job);
  } catch (const std::bad_alloc&) {
    job->fail(out_of_memory());
  }
}

// ----------------------------------------------------------------------------------------------------------- times

// When something is due for this job.
Time Loop::next_check(const Active& active) const {
  Time next = hedge_time(active);
  for (const Transfer* const transfer : {active.main.get(), active.hedge.get()}) {
    if (transfer != nullptr) next = std::min(next, transfer->deadline(settings_));
  }
  return next;
}

// When a second request is due.
Time Loop::hedge_time(const Active& active) const {
  if (!patience_ || active.is_late || active.main == nullptr || active.main->has_answer()) return Time::max();
  return active.main->job()->may_hedge() ? active.main->started() + *patience_ : Time::max();
}

void Loop::check_times() {
  const Time now = Clock::now();
  if (settings_.hedge) {
    patience_ = answer_times_.patience();
  } else if (now < check_at_) {
    return;
  }
  check_at_ = Time::max();
  for (auto at = active_.begin(); at != active_.end();) {
    const auto here = at++;
    Active& active = here->second;
    if (hedge_time(active) <= now) hedge(here->first, active);
    Transfer* late = nullptr;
    for (Transfer* const transfer : {active.main.get(), active.hedge.get()}) {
      if (transfer != nullptr && transfer->deadline(settings_) <= now) late = transfer;
    }
    check_at_ = std::min(check_at_, late == nullptr ? next_check(active) : now);
    if (late != nullptr) settle(*late, late->timed_out(settings_));
  }
}

void Loop::hedge(const std::shared_ptr<Job>& job, Active& active) {
  active.is_late = true;  // also if none is sent: that is decided once
  if (hedges_ >= std::max<size_t>(kFewHedges, active_.size() / 8)) return;
  try {
    StoreFault unused;
    if (send(job, true, active.hedge, unused)) job->times.hedged = true;
  } catch (const std::bad_alloc&) {
    return;  // the first request goes on
  }
}

}  // namespace loader::net
