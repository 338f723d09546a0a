#include "http_transfer.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <new>

namespace loader::net {
namespace {

constexpr uint64_t kHeadLimit = 64 << 10, kErrorBodyLimit = 64 << 10;
constexpr uint64_t kSlowest = 16 << 10;  // bytes per second

// Programs that this process starts must not inherit the connections.
curl_socket_t open_socket(void*, curlsocktype, curl_sockaddr* address) {
  return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

std::string milliseconds_text(std::chrono::milliseconds time) { return std::to_string(time.count()) + " ms"; }

}  // namespace

Settings::Settings(const StoreOptions& options)
    : timeout(options.timeout_ms == 0 ? 30'000 : std::min(options.timeout_ms, 3'600'000U)),
      connect_timeout(std::min<std::chrono::milliseconds>(timeout, std::chrono::seconds(10))),
      attempts(options.attempts == 0 ? 6 : std::min(options.attempts, 100U)),
      connections(options.connections == 0 ? 256 : std::min(options.connections, 4096U)),
      hedge(options.hedge),
      certificates(options.certificates) {}

StoreFault Transfer::prepare(Site& site, const Settings& settings, bool own_connection) {
  asked_ = job_->wanted();
  request_ = job_->request(asked_);
  if (job_->moved) request_.target = *job_->moved;
  if (StoreFault fault = site.authorize(request_)) return fault;

  for (const char* const line : {"Accept:", "Accept-Encoding: identity", "Expect:"})
    request_.headers.emplace_back(line);
  for (const std::string& line : request_.headers) {
    curl_slist* const longer = curl_slist_append(headers_, line.c_str());
    if (longer == nullptr) throw std::bad_alloc();
    headers_ = longer;
  }
  const auto set = [this](CURLoption option, auto value) {
    if (curl_easy_setopt(easy_, option, value) == CURLE_OUT_OF_MEMORY) throw std::bad_alloc();
  };
  set(CURLOPT_URL, request_.target.url().c_str());
  set(CURLOPT_PATH_AS_IS, 1L);
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_FOLLOWLOCATION, 0L);
  set(CURLOPT_HTTPHEADER, headers_);
  set(CURLOPT_USERAGENT, L3_NET_AGENT);
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_TCP_NODELAY, 1L);
  set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  set(CURLOPT_BUFFERSIZE, 128L << 10);
  set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(settings.connect_timeout.count()));
  set(CURLOPT_MAXCONNECTS, static_cast<long>(settings.connections));
  // HTTP/2 if a TLS server offers it. Only then it is worth waiting for the first connection.
  set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_2TLS));
  set(CURLOPT_PIPEWAIT, request_.target.scheme() == "https" ? 1L : 0L);
  set(CURLOPT_FRESH_CONNECT, own_connection ? 1L : 0L);
  if (!settings.certificates.empty()) {
    set(CURLOPT_CAINFO, settings.certificates.c_str());
    set(CURLOPT_CAPATH, static_cast<const char*>(nullptr));
  }
  if (!site.user().empty() || !site.password().empty()) {
    set(CURLOPT_USERNAME, site.user().c_str());
    set(CURLOPT_PASSWORD, site.password().c_str());
  } else if (site.uses_netrc()) {
    set(CURLOPT_NETRC, static_cast<long>(CURL_NETRC_OPTIONAL));
  }
  if (request_.body != nullptr) set_upload(*request_.body);
  if (request_.method != (request_.body == nullptr ? "GET" : "PUT")) {
    set(CURLOPT_CUSTOMREQUEST, request_.method.c_str());
  }
  set(CURLOPT_OPENSOCKETFUNCTION, &open_socket);
  set(CURLOPT_HEADERFUNCTION, &on_header);
  set(CURLOPT_HEADERDATA, this);
  set(CURLOPT_WRITEFUNCTION, &on_body);
  set(CURLOPT_WRITEDATA, this);
  set(CURLOPT_PREREQFUNCTION, &on_sent);
  set(CURLOPT_PREREQDATA, this);
  set(CURLOPT_ERRORBUFFER, &detail_[0]);
  set(CURLOPT_PRIVATE, this);

  started_ = progress_ = Clock::now();
  const uint64_t bytes = asked_.size + (request_.body == nullptr ? 0 : request_.body->size);
  end_ = started_ + settings.connect_timeout + settings.timeout + std::chrono::seconds(bytes / kSlowest + 1);
  return {};
}

void Transfer::set_upload(const Body& body) {
  curl_easy_setopt(easy_, CURLOPT_UPLOAD, 1L);
  curl_easy_setopt(easy_, CURLOPT_INFILESIZE_LARGE, static_cast<curl_off_t>(body.size));
  curl_easy_setopt(easy_, CURLOPT_UPLOAD_BUFFERSIZE, 256L << 10);
  curl_easy_setopt(easy_, CURLOPT_READFUNCTION, &on_read);
  curl_easy_setopt(easy_, CURLOPT_READDATA, this);
  curl_easy_setopt(easy_, CURLOPT_SEEKFUNCTION, &on_seek);
  curl_easy_setopt(easy_, CURLOPT_SEEKDATA, this);
}

// ----------------------------------------------------------------------------------------------- called by libcurl

int Transfer::on_sent(void* self, char*, char*, int, int) {
  Transfer& transfer = *static_cast<Transfer*>(self);
  transfer.sent_ = transfer.progress_ = Clock::now();
  if (!transfer.is_hedge_) transfer.job_->times.sent = stamp(transfer.sent_);
  return CURL_PREREQFUNC_OK;
}

size_t Transfer::on_read(char* to, size_t size, size_t count, void* self) {
  Transfer& transfer = *static_cast<Transfer*>(self);
  Body& body = *transfer.request_.body;
  const uint64_t bytes = std::min<uint64_t>(size * count, body.size - transfer.uploaded_);
  transfer.progress_ = Clock::now();
  if (bytes == 0) return 0;
  try {
    const StoreFault fault =
        body.read(transfer.uploaded_, {reinterpret_cast<uint8_t*>(to), static_cast<size_t>(bytes)});
    if (fault) return transfer.stop(failed(fault)), size_t{CURL_READFUNC_ABORT};
    transfer.uploaded_ += bytes;
    if (transfer.uploaded_ > body.reported) {
      if (body.sent) body.sent(transfer.uploaded_ - body.reported);
      body.reported = transfer.uploaded_;
    }
    return static_cast<size_t>(bytes);
  } catch (const std::bad_alloc&) {
    return transfer.stop(failed(make_fault(L3_ERROR_MEMORY, ENOMEM, "out of memory"))), size_t{CURL_READFUNC_ABORT};
  }
}

int Transfer::on_seek(void* self, curl_off_t offset, int origin) {
  Transfer& transfer = *static_cast<Transfer*>(self);
  if (origin != SEEK_SET || offset < 0) return CURL_SEEKFUNC_CANTSEEK;
  transfer.uploaded_ = std::min(static_cast<uint64_t>(offset), transfer.request_.body->size);
  return CURL_SEEKFUNC_OK;
}

size_t Transfer::on_header(char* data, size_t size, size_t count, void* self) {
  Transfer& transfer = *static_cast<Transfer*>(self);
  try {
    return transfer.take_line({data, size * count}) ? size * count : 0;
  } catch (const std::bad_alloc&) {
    return transfer.stop(failed(make_fault(L3_ERROR_MEMORY, ENOMEM, "out of memory"))), 0;
  }
}

size_t Transfer::on_body(char* data, size_t size, size_t count, void* self) {
  Transfer& transfer = *static_cast<Transfer*>(self);
  try {
    const bool goes_on = transfer.take_body({reinterpret_cast<const uint8_t*>(data), size * count});
    return goes_on ? size * count : 0;
  } catch (const std::bad_alloc&) {
    return transfer.stop(failed(make_fault(L3_ERROR_MEMORY, ENOMEM, "out of memory"))), 0;
  }
}

// ------------------------------------------------------------------------------------------------------ the answer

// Returns false, so that libcurl ends the transfer and closes its connection.
bool Transfer::stop(Verdict verdict) {
  was_stopped_ = true;
  stopped_ = std::move(verdict);
  return false;
}

bool Transfer::take_line(std::string_view line) {
  progress_ = Clock::now();
  if (answered_ == Time{}) answered_ = progress_;
  head_size_ += line.size();
  if (head_size_ > kHeadLimit) return stop(failed(protocol_fault("the head of the answer is too large")));
  if (state_ != State::kHead) return true;  // a trailer
  const bool is_end = line == "\r\n" || line == "\n";
  if (!is_end) return take_header(answer_, line), true;
  return answer_.status < 200 || end_head();
}

bool Transfer::end_head() {
  if (!is_hedge_) job_->times.answered = stamp(answered_);
  if (answer_.status >= 300 && answer_.status != 416) return state_ = State::kErrorBody, true;
  Verdict verdict = job_->judge(asked_, answer_);
  if (verdict.next != Next::kTake) return stop(std::move(verdict));
  got_ = verdict.got;
  // What comes with 416 is an error document.
  state_ = answer_.status == 416 ? State::kErrorBody : State::kBody;
  if (is_hedge_ || job_->begin(got_, answer_)) return true;
  return stop({.next = Next::kTake});
}

bool Transfer::take_body(std::span<const uint8_t> bytes) {
  progress_ = Clock::now();
  if (state_ == State::kErrorBody) {
    if (error_body_.size() + bytes.size() > kErrorBodyLimit) return stop({.next = Next::kTake});
    error_body_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return true;
  }
  if (bytes.size() > got_.size - received_) {
    return stop(failed(protocol_fault("the server sends more bytes than it announced")));
  }
  received_ += bytes.size();
  if (is_hedge_) {
    kept_.insert(kept_.end(), bytes.begin(), bytes.end());
  } else {
    job_->take(bytes);
  }
  return true;
}

void Transfer::deliver() {
  job_->times.answered = stamp(answered_);
  job_->times.sent = stamp(sent());
  if (job_->begin(got_, answer_)) job_->take(kept_);
}

// ----------------------------------------------------------------------------------------------------- the verdict

Verdict Transfer::verdict(CURLcode result, const Site& site, const Settings& settings) {
  const bool is_error = state_ == State::kErrorBody && answer_.status != 416;
  // The error document may be cut or too long.
  if (is_error && !(was_stopped_ && stopped_.next != Next::kTake)) return judge_status(site);
  if (was_stopped_) return stopped_;
  if (result != CURLE_OK) return judge_failure(result, settings);
  if (state_ == State::kHead) return failed(protocol_fault("the answer has no head"));
  if (received_ < got_.size && !got_.may_end_early) {
    return {.next = Next::kRetry, .fault = make_fault(L3_ERROR_FILE, ECONNRESET, "the answer ended early")};
  }
  return {.next = Next::kTake, .got = got_};
}

Verdict Transfer::judge_status(const Site& site) {
  const int status = answer_.status;
  const bool moves = status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
  if (moves && site.follows_redirects() && !answer_.location.empty()) return redirect(site);
  if (site.is_s3()) {
    for (const auto& [text, name] : {std::pair{&answer_.code, "Code"}, {&answer_.message, "Message"}}) {
      *text = xml_text(error_body_, name);
      site.redact(*text);
      *text = printable(*text, 160);
    }
    if (answer_.region.empty()) answer_.region = printable(xml_text(error_body_, "Region"), 40);
  }
  Verdict verdict{.next = is_temporary(answer_) ? Next::kRetry : Next::kFail, .fault = status_fault(answer_)};
  verdict.is_congested = is_overload(answer_);
  verdict.wait = answer_.retry_after;
  site.explain(answer_, verdict.fault);
  return verdict;
}

Verdict Transfer::redirect(const Site& site) const {
  const bool reads = request_.method == "GET";
  if (!reads && answer_.status != 307 && answer_.status != 308) {
    return failed(protocol_fault("the server redirects an upload with " + std::to_string(answer_.status)));
  }
  Target to;
  std::string reason;
  if (!follow(request_.target, answer_.location, to, reason)) {
    site.redact(reason);
    return failed(protocol_fault(std::move(reason)));
  }
  return {.next = Next::kAgain, .moved = std::move(to)};
}

Verdict Transfer::judge_failure(CURLcode result, const Settings& settings) const {
  const std::string text = curl_easy_strerror(result);
  const auto retry = [](int error, std::string reason) -> Verdict {
    return {.next = Next::kRetry, .fault = make_fault(L3_ERROR_FILE, error, std::move(reason))};
  };
  switch (result) {
    case CURLE_OUT_OF_MEMORY: return failed(make_fault(L3_ERROR_MEMORY, ENOMEM, "out of memory"));
    case CURLE_OPERATION_TIMEDOUT: {
      Verdict verdict = retry(ETIMEDOUT, "connecting took longer than " + milliseconds_text(settings.connect_timeout));
      verdict.is_congested = true;
      return verdict;
    }
    case CURLE_COULDNT_RESOLVE_HOST: return retry(EHOSTUNREACH, "the name of the server cannot be resolved");
    case CURLE_COULDNT_RESOLVE_PROXY: return retry(EHOSTUNREACH, "the name of the proxy cannot be resolved");
    case CURLE_COULDNT_CONNECT: {
      long error = 0;
      curl_easy_getinfo(easy_, CURLINFO_OS_ERRNO, &error);
      return retry(error == 0 ? ECONNREFUSED : static_cast<int>(error), "no connection to the server");
    }
    case CURLE_PARTIAL_FILE:
    case CURLE_RECV_ERROR:
    case CURLE_SEND_ERROR:
    case CURLE_GOT_NOTHING:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
    case CURLE_AGAIN: return retry(ECONNRESET, "the connection broke: " + text);
    // The text is OpenSSL's, about the certificate.
    case CURLE_PEER_FAILED_VERIFICATION:
      return failed(protocol_fault("the certificate of the server is not valid: " + printable(&detail_[0])));
    case CURLE_SSL_CACERT_BADFILE:
      return failed(make_fault(L3_ERROR_ARGUMENT, EINVAL, "the file with certificates cannot be read"));
    default: return failed(protocol_fault(text));
  }
}

Time Transfer::deadline(const Settings& settings) const {
  const auto patience = sent_ == Time{} ? settings.connect_timeout + settings.timeout : settings.timeout;
  return std::min(end_, progress_ + patience);
}

Verdict Transfer::timed_out(const Settings& settings) const {
  const bool is_slow = Clock::now() >= end_;
  const std::string reason =
      is_slow ? "the answer is too slow" : "no progress for " + milliseconds_text(settings.timeout);
  return {.next = Next::kRetry, .fault = make_fault(L3_ERROR_FILE, ETIMEDOUT, reason), .is_congested = true};
}

}  // namespace loader::net
