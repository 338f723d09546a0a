// Sends requests and takes answers, many at once, on one thread.
//
// How long a read takes at most: each of its attempts ends after the time to connect (at most 10 s) plus `timeout_ms`
// without progress, and in any case after both plus one second per 16 KiB. A redirect or a second form of a range
// begins such a time again, at most six times per attempt. Between attempts at most 5 s pass, or as long as the server
// wishes, but at most 60 s. To these times comes the time for which the read waits for others.
#pragma once

#include <curl/curl.h>

#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "http_transfer.h"
#include "pacing.h"
#include "read_queue.h"

namespace loader::net {

// One thread uses it, except wake().
class Loop {
 public:
  // Throws std::bad_alloc.
  Loop(Site& site, const Settings& settings);
  // Whatever is not finished gets the fault ECANCELED.
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  // These take over what they get, and finish it if memory is short.
  void add(Read& read, uint64_t owner);
  void add(std::shared_ptr<Job> job);
  void cancel(uint64_t owner);

  // Does what can be done now.
  void turn();
  // Returns when there is more to do, or after wake().
  void wait();
  void wake() { curl_multi_wakeup(multi_); }

 private:
  // A job with its requests in progress, and a retry that waits for the end of the hedge.
  struct Active {
    std::unique_ptr<Transfer> main, hedge;
    std::optional<Verdict> failure;
  };
  using ActiveJobs = std::map<std::shared_ptr<Job>, Active>;

  bool can_start() const;
  std::shared_ptr<Job> next_job();
  void start_jobs();
  void start(const std::shared_ptr<Job>& job);
  bool send(const std::shared_ptr<Job>& job, bool is_hedge, std::unique_ptr<Transfer>& sent, StoreFault& fault);
  void remove(std::unique_ptr<Transfer>& transfer);
  void end(ActiveJobs::iterator at);
  void end_jobs(const StoreFault& fault);

  void take_results();
  void settle(Transfer& transfer, Verdict verdict);
  void succeed(ActiveJobs::iterator at, Transfer& by);
  void settle_failure(ActiveJobs::iterator at, const Verdict& failure);
  void retry(const std::shared_ptr<Job>& job, const Verdict& verdict);
  void check_times();
  Time next_check(const Active& active) const;
  Time hedge_time(const Active& active) const;
  void hedge(const std::shared_ptr<Job>& job, Active& active);

  Site& site_;
  const Settings& settings_;
  CURLM* multi_ = nullptr;
  CURLSH* shared_ = nullptr;
  std::vector<CURL*> idle_;  // handles for later transfers

  Window window_;
  AnswerTimes answer_times_;
  std::optional<Clock::duration> patience_;  // with a request before a second one is sent
  Backoff backoff_;
  bool has_streams_ = false;  // the server speaks HTTP/2

  ReadQueue waiting_;
  std::deque<std::shared_ptr<Job>> ready_;
  std::multimap<Time, std::shared_ptr<Job>> delayed_;
  ActiveJobs active_;
  size_t hedges_ = 0;
  Time check_at_ = Time::max();
};

}  // namespace loader::net
