// One request and its answer, with libcurl.
#pragma once

#include <curl/curl.h>

#include <memory>
#include <string>
#include <vector>

#include "http_job.h"

namespace loader::net {

// Of all requests of a store.
struct Settings {
  explicit Settings(const StoreOptions& options);

  std::chrono::milliseconds timeout, connect_timeout;
  uint32_t attempts, connections;
  bool hedge;
  std::string certificates;
};

class Transfer {
 public:
  // `easy` has no options set, except those that are the same for all transfers.
  Transfer(std::shared_ptr<Job> job, bool is_hedge, CURL* easy)
      : job_(std::move(job)), easy_(easy), is_hedge_(is_hedge) {}
  ~Transfer() { curl_slist_free_all(headers_); }
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  // Sets the options. May throw std::bad_alloc.
  StoreFault prepare(Site& site, const Settings& settings, bool own_connection);

  // What came of it, once libcurl has ended it.
  Verdict verdict(CURLcode result, const Site& site, const Settings& settings);
  // Hands a hedge's answer to the job.
  void deliver();

  // When it fails for lack of progress.
  Time deadline(const Settings& settings) const;
  Verdict timed_out(const Settings& settings) const;

  const std::shared_ptr<Job>& job() const { return job_; }
  CURL* easy() const { return easy_; }
  bool is_hedge() const { return is_hedge_; }
  bool has_answer() const { return answered_ != Time{}; }
  Time started() const { return started_; }
  Time sent() const { return sent_ == Time{} ? started_ : sent_; }
  Time answered() const { return answered_; }

 private:
  static size_t on_header(char* data, size_t size, size_t count, void* self);
  static size_t on_body(char* data, size_t size, size_t count, void* self);
  static size_t on_read(char* to, size_t size, size_t count, void* self);
  static int on_seek(void* self, curl_off_t offset, int origin);
  static int on_sent(void* self, char*, char*, int, int);

  void set_upload(const Body& body);
  bool take_line(std::string_view line);
  bool end_head();
  bool take_body(std::span<const uint8_t> bytes);
  bool stop(Verdict verdict);
  Verdict judge_status(const Site& site);
  Verdict judge_failure(CURLcode result, const Settings& settings) const;
  Verdict redirect(const Site& site) const;

  std::shared_ptr<Job> job_;
  CURL* easy_;
  bool is_hedge_;
  curl_slist* headers_ = nullptr;
  Request request_;
  Part asked_, got_;
  Answer answer_;
  Time started_{}, sent_{}, answered_{}, progress_{}, end_{};

  enum class State { kHead, kBody, kErrorBody } state_ = State::kHead;
  bool was_stopped_ = false;  // by us, with stopped_
  Verdict stopped_;
  uint64_t head_size_ = 0, received_ = 0, uploaded_ = 0;
  std::string error_body_;
  std::vector<uint8_t> kept_;  // the body of a hedge
  char detail_[CURL_ERROR_SIZE] = {};
};

}  // namespace loader::net
