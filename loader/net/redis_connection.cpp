#include "redis_connection.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <new>

namespace loader::redis {
namespace {

constexpr size_t kScratch = size_t{64} << 10;
constexpr size_t kDirect = size_t{16} << 10;        // a rest of this size goes to its place without a copy
constexpr size_t kReceiveAtOnce = size_t{4} << 20;  // then other connections have their turn
constexpr size_t kSendAtOnce = size_t{256} << 10;
constexpr uint64_t kLeastProgress = uint64_t{16} << 10;  // bytes that count as progress, without a whole reply

int errno_of(CURLcode code, CURL* easy) {
  long error = 0;
  curl_easy_getinfo(easy, CURLINFO_OS_ERRNO, &error);
  if (code == CURLE_OPERATION_TIMEDOUT) return ETIMEDOUT;
  if (code == CURLE_COULDNT_RESOLVE_HOST) return EHOSTUNREACH;
  return error > 0 ? static_cast<int>(error) : ECONNABORTED;
}

bool is_permanent_code(CURLcode code) {
  return code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE || code == CURLE_SSL_CERTPROBLEM ||
         code == CURLE_SSL_ISSUER_ERROR || code == CURLE_URL_MALFORMAT || code == CURLE_UNSUPPORTED_PROTOCOL;
}

}  // namespace

uint64_t now_ns() {
  return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1));
}

Connection::Connection(CURLM* multi, const Address& address, const Access& access, Node& node)
    : node_(node), access_(access), multi_(multi), easy_(curl_easy_init()), progress_at_(now_ns()) {
  if (easy_ == nullptr) throw std::bad_alloc();
  bool ok = true;
  const auto set = [&](CURLoption option, auto value) { ok &= curl_easy_setopt(easy_, option, value) == CURLE_OK; };
  // libcurl connects, and knows nothing of Redis.
  const std::string url = (access.is_secure ? "https://" : "http://") + text_of(address) + "/";
  set(CURLOPT_URL, url.c_str());
  set(CURLOPT_CONNECT_ONLY, 1L);
  set(CURLOPT_PRIVATE, this);
  set(CURLOPT_ERRORBUFFER, curl_reason_);
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_PROXY, "");
  set(CURLOPT_FRESH_CONNECT, 1L);
  set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  set(CURLOPT_SSL_ENABLE_ALPN, 0L);
  set(CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(access.connect_ms));
  set(CURLOPT_TCP_NODELAY, 1L);
  set(CURLOPT_TCP_KEEPALIVE, 1L);
  set(CURLOPT_BUFFERSIZE, 512L << 10);
#if LIBCURL_VERSION_NUM >= 0x075700
  set(CURLOPT_QUICK_EXIT, 1L);  // does not wait for a name server at the end
#endif
  if (!access.certificates.empty()) {
    set(CURLOPT_CAINFO, access.certificates.c_str());
    set(CURLOPT_CAPATH, static_cast<const char*>(nullptr));
  }
  if (!ok || curl_multi_add_handle(multi_, easy_) != CURLM_OK) {
    curl_easy_cleanup(easy_);
    throw std::bad_alloc();
  }
}

Connection::~Connection() {
  curl_multi_remove_handle(multi_, easy_);
  curl_easy_cleanup(easy_);
}

void Connection::connected(CURLcode result) {
  if (state_ != State::kConnecting) return;
  if (result != CURLE_OK) {
    const std::string why = curl_reason_[0] != 0 ? curl_reason_ : curl_easy_strerror(result);
    return fail(errno_of(result, easy_), "cannot connect: " + access_.secrets.safe_text(why),
                is_permanent_code(result));
  }
  if (curl_easy_getinfo(easy_, CURLINFO_ACTIVESOCKET, &socket_) != CURLE_OK || socket_ == CURL_SOCKET_BAD) {
    return fail(ECONNABORTED, "the connection was closed");
  }
  greet();
}

// No other command may run before the server has accepted these: it would run as another user or in another database.
void Connection::greet() {
  const Secrets& secrets = access_.secrets;
  std::string& text = text_to_send();
  if (!secrets.password.empty()) {
    if (secrets.user.empty()) {
      append_command(text, {"AUTH", secrets.password});
    } else {
      append_command(text, {"AUTH", secrets.user, secrets.password});
    }
    login_is_next_ = true;
    ++greetings_;
  }
  if (access_.database != 0) {
    append_command(text, {"SELECT", std::to_string(access_.database)});
    ++greetings_;
  }
  progress_at_ = now_ns();
  if (greetings_ == 0) {
    segments_.clear();
    state_ = State::kReady;
    return;
  }
  state_ = State::kGreeting;
  parser_.expect(nullptr, 0, false);
  send();
}

std::string& Connection::text_to_send() {
  const bool is_free = !segments_.empty() && segments_.back().bytes.empty() && !(segments_.size() == 1 && is_pinned_);
  if (!is_free) segments_.emplace_back();
  return segments_.back().text;
}

bool Connection::has_room(uint64_t cost) const {
  return state_ == State::kReady && !is_deaf_ && jobs_.size() < kMaxJobs && (jobs_.empty() || cost_ + cost <= kMaxCost);
}

void Connection::add(Jobs& from) {
  Job& job = from.front();
  begin_exchange(job, text_to_send());
  if (job.step == Job::Step::kSet) {
    if (!job.value.empty()) segments_.push_back({{}, job.value});
    text_to_send() += kLineEnd;
  }
  if (jobs_.empty()) progress_at_ = now_ns();
  job.node = &node_;
  if (job.read != nullptr) {
    job.read->times.sent = now_ns();
    job.read->times.answered = 0;
    job.read->times.attempts = job.attempts + 1;
  }
  cost_ += job.cost();
  jobs_.splice(jobs_.end(), from, from.begin());
  if (jobs_.size() == 1) begin_reply();
}

void Connection::send() {
  while (!segments_.empty() && state_ != State::kFailed && !is_deaf_) {
    const Segment& segment = segments_.front();
    const bool is_text = segment.bytes.empty();
    const char* const at = is_text ? segment.text.data() : reinterpret_cast<const char*>(segment.bytes.data());
    const size_t size = is_text ? segment.text.size() : segment.bytes.size();
    size_t count = 0;
    is_pinned_ = true;
    const CURLcode result =
        curl_easy_send(easy_, at + segment_sent_, std::min(size - segment_sent_, kSendAtOnce), &count);
    if (result == CURLE_AGAIN) return;
    // The server may have said why before it closed the connection: receive() finds out.
    if (result != CURLE_OK) {
      is_deaf_ = true;
      return;
    }
    moved(count);
    segment_sent_ += count;
    if (segment_sent_ < size) continue;
    segments_.pop_front();
    segment_sent_ = 0;
    is_pinned_ = false;
  }
}

bool Connection::receive(Jobs& complete) {
  std::array<uint8_t, kScratch> scratch;
  size_t all = 0;
  while (state_ == State::kGreeting || state_ == State::kReady) {
    if (all >= kReceiveAtOnce) return true;
    const std::span<uint8_t> place = parser_.place();
    const bool is_direct = place.size() >= kDirect;
    size_t count = 0;
    const CURLcode result = is_direct ? curl_easy_recv(easy_, place.data(), place.size(), &count)
                                      : curl_easy_recv(easy_, scratch.data(), scratch.size(), &count);
    if (result == CURLE_AGAIN) return false;
    if (result != CURLE_OK || count == 0) {
      fail(ECONNRESET, "the connection was cut");
      return false;
    }
    all += count;
    moved(count);
    if (is_direct) {
      parser_.received(count);
    } else {
      take(scratch.data(), count, complete);
    }
  }
  return false;
}

void Connection::take(const uint8_t* bytes, size_t size, Jobs& complete) {
  while (size > 0 && state_ != State::kFailed) {
    if (state_ == State::kReady && jobs_.empty()) return fail_unasked({reinterpret_cast<const char*>(bytes), size});
    const size_t used = parser_.take(bytes, size);
    bytes += used;
    size -= used;
    Read* const read = jobs_.empty() ? nullptr : jobs_.front().read;
    if (read != nullptr && read->times.answered == 0 && parser_.has_begun()) read->times.answered = now_ns();
    if (parser_.state() == ReplyParser::State::kBroken) return fail_broken(parser_.problem());
    if (parser_.state() != ReplyParser::State::kDone) continue;
    progress_at_ = now_ns();
    bytes_since_ = 0;
    state_ == State::kGreeting ? take_greeting() : take_answer(complete);
  }
}

void Connection::take_greeting() {
  const Reply& reply = parser_.reply();
  const bool is_login = login_is_next_;
  login_is_next_ = false;
  if (reply.type == Reply::kError) {
    const ErrorKind kind = kind_of_error(reply.text);
    if (kind == ErrorKind::kBusy) return fail(EBUSY, "the server answered: " + access_.secrets.safe_text(reply.text));
    if (!is_login) return fail(EIO, "the server answered: " + access_.secrets.safe_text(reply.text), true);
    // Nothing of what the server says to a password is repeated but its code.
    const std::string code(code_of_error(reply.text));
    return fail(EACCES, "the server refused user or password" + (code.empty() ? "" : " (" + code + ")"), true);
  }
  if (reply.type != Reply::kStatus || reply.text != "OK") return fail_broken("it sent a wrong reply");
  parser_.expect(nullptr, 0, false);
  if (--greetings_ == 0) state_ = State::kReady;
}

void Connection::take_answer(Jobs& complete) {
  Job& job = jobs_.front();
  bool is_wrong = false;
  const bool is_last = take_reply(job, parser_.reply(), is_wrong);
  if (is_wrong) return fail_broken("it sent a reply of another kind");
  was_useful_ = true;
  const auto is_unsent = [&](const Segment& segment) {
    return !job.value.empty() && segment.bytes.data() == job.value.data();
  };
  if (std::any_of(segments_.begin(), segments_.end(), is_unsent)) {
    // The job must not finish while its value is being sent.
    const std::string why = job.error.empty() ? "before it had the value" : access_.secrets.safe_text(job.error);
    fail(EIO, "the server answered: " + why);
    is_first_guilty_ = true;
    return;
  }
  if (is_last) {
    cost_ -= job.cost();
    complete.splice(complete.end(), jobs_, jobs_.begin());
  }
  if (!jobs_.empty()) begin_reply();
}

void Connection::begin_reply() { expect_reply(jobs_.front(), parser_); }

void Connection::drop_cancelled() {
  if (!jobs_.empty() && jobs_.front().is_cancelled) parser_.drop();
}

void Connection::moved(uint64_t bytes) {
  bytes_since_ += bytes;
  if (bytes_since_ < kLeastProgress) return;
  bytes_since_ = 0;
  progress_at_ = now_ns();
}

uint64_t Connection::check_time(uint64_t now) {
  const bool is_idle = state_ == State::kReady && jobs_.empty();
  if (is_idle || state_ == State::kConnecting || state_ == State::kFailed) return UINT64_MAX;
  const uint64_t limit = state_ == State::kGreeting ? access_.connect_ms : access_.timeout_ms;
  const uint64_t end = progress_at_ + limit * kMillisecond;
  if (now < end) return end;
  fail(ETIMEDOUT, "no answer for " + std::to_string(limit) + " ms");
  return UINT64_MAX;
}

void Connection::fail(int error, std::string reason, bool is_permanent) {
  state_ = State::kFailed;
  is_permanent_ = is_permanent;
  fault_ = {L3_ERROR_FILE, error, L3_DATA_NONE, std::move(reason)};
}

// A server that takes no more clients, or none from elsewhere, says so and closes the connection.
void Connection::fail_unasked(std::string_view text) {
  if (!text.starts_with('-')) return fail_broken("it answered without a question");
  text = text.substr(1, std::min(text.find('\r'), text.size()) - 1);
  const ErrorKind kind = kind_of_error(text);
  const int error = kind == ErrorKind::kDenied ? EACCES : kind == ErrorKind::kBusy ? EBUSY : EIO;
  fail(error, "the server answered: " + access_.secrets.safe_text(text), kind == ErrorKind::kDenied);
}

void Connection::fail_broken(const char* what) {
  // Whoever greets in another language would do so again.
  fail(EPROTO, "the server breaks the protocol of Redis: " + std::string(what), state_ == State::kGreeting);
  is_first_guilty_ = !jobs_.empty();
}

}  // namespace loader::redis
