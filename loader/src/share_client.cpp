#include "share_client.h"

#include <poll.h>

#include <algorithm>
#include <cstring>
#include <system_error>

#include "data_error.h"
#include "share_terms.h"

namespace loader {
namespace {

// In milliseconds.
constexpr uint64_t kTick = 100;
constexpr uint64_t kFirstPause = 10, kLongestPause = 500;  // before it tries to connect again
constexpr uint64_t kRetry = 10000;                         // after a leader that makes no sense, or if it cannot lead
constexpr uint64_t kNoEpoch = uint64_t{1} << 63;
constexpr size_t kMaxViews = 8192;

}  // namespace

OwnedOptions::OwnedOptions(const l3_loader_options& options) : options_(options), share_(options.share) {
  options_.share = nullptr;
  if (options.tensors != nullptr) {
    tensors_.assign(options.tensors, options.tensors + options.tensor_count);
    roles_.reserve(tensors_.size());
    for (l3_tensor_options& tensor : tensors_) {
      if (tensor.role == nullptr) continue;
      tensor.role = roles_.emplace_back(tensor.role, tensor.role_size).data();
    }
    options_.tensors = tensors_.data();
  }
  if (options.groups != nullptr) {
    groups_.assign(options.groups, options.groups + options.group_count);
    options_.groups = groups_.data();
  }
  if (options.boxes != nullptr) {
    boxes_.assign(options.boxes, options.boxes + options.box_count);
    options_.boxes = boxes_.data();
  }
}

SharedBatches::SharedBatches(const l3_data_set& set, const l3_loader_options& options, Pipeline& own)
    : set_(set),
      options_(options),
      own_(own),
      terms_(share_terms(set, options, own.units())),
      name_(socket_name(options_.share(), options.rank, options.world_size)),
      layout_(own.units(), own.sharing()),
      timeout_(options.share_timeout_ms) {}

SharedBatches::~SharedBatches() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  wake_.ring();
  if (thread_.joinable()) thread_.join();
  // First of all, so that the others do not hear that one less is attached: the next leader counts with them.
  if (server_ != nullptr) server_->end();
  socket_.reset();
  views_.clear();
  server_.reset();
  for (const auto& job : jobs_) own_.discard(*job);
}

// ------------------------------------------------------------------------------------------------- the consumer

l3_status SharedBatches::start(uint64_t epoch, uint64_t position, l3_data_error* error) {
  // At the end of an epoch the own pipeline prepares nothing.
  const uint64_t end = own_.units().count();
  const bool is_valid = position <= end;
  const l3_status status = own_.start(is_valid ? kNoEpoch : epoch, is_valid ? end : position, {}, error);
  if (status != L3_OK) return status;
  {
    const std::lock_guard lock(mutex_);
    given_ = next_ = {epoch, position};
    ++start_;
    number_ = 0;
    is_alone_ = own_begun_ = false;
    for (const auto& job : jobs_) own_.discard(*job);
    jobs_.clear();
  }
  wake_.ring();
  return L3_OK;
}

std::unique_ptr<Job> SharedBatches::wait_for_job(uint32_t milliseconds, bool& ended, l3_data_error* error) {
  ended = false;
  try {
    if (!thread_.joinable()) {
      const NoSignals blocked;
      thread_ = std::thread([this] { run(); });
    }
  } catch (const std::system_error& why) {
    (void)!fail(error, L3_ERROR_MEMORY, "", std::string("cannot start a thread: ") + why.what());
    return nullptr;
  }
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds);
  std::unique_lock lock(mutex_);
  const auto is_there = [this] {
    return interrupted_ || !refusal_.empty() || !jobs_.empty() || is_end(given_) || is_alone_;
  };
  if (milliseconds == UINT32_MAX) {
    ready_.wait(lock, is_there);
  } else if (!ready_.wait_until(lock, until, is_there)) {
    return nullptr;
  }
  if (std::exchange(interrupted_, false)) return nullptr;
  if (!refusal_.empty()) {
    (void)!fail(error, L3_ERROR_ARGUMENT, "", refusal_);
    return nullptr;
  }
  if (!jobs_.empty()) {
    std::unique_ptr<Job> job = std::move(jobs_.front());
    jobs_.pop_front();
    given_.position = job->position;
    job->number = number_++;
    lock.unlock();
    wake_.ring();  // there is room for another one
    return job;
  }
  if (is_end(given_)) {
    ended = true;
    return nullptr;
  }
  if (!std::exchange(own_begun_, true)) {
    lock.unlock();
    if (own_.start(given_.epoch, given_.position, {}, error) != L3_OK) return nullptr;
  } else {
    lock.unlock();
  }
  uint32_t left = milliseconds;
  if (milliseconds != UINT32_MAX) {
    const auto more = std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    left = static_cast<uint32_t>(std::max<int64_t>(more.count(), 0));
  }
  return wait_alone(left, ended, error);
}

std::unique_ptr<Job> SharedBatches::wait_alone(uint32_t milliseconds, bool& ended, l3_data_error* error) {
  std::unique_ptr<Job> job = own_.wait_for_job(milliseconds, ended, error);
  if (job == nullptr) return job;
  const std::lock_guard lock(mutex_);
  given_.position = job->position;
  job->number = number_++;
  ++alone_;
  return job;
}

void SharedBatches::interrupt() {
  {
    const std::lock_guard lock(mutex_);
    if (own_begun_) return own_.interrupt();
    interrupted_ = true;
  }
  ready_.notify_all();
}

size_t SharedBatches::requests(l3_request* requests, size_t capacity) const {
  std::vector<l3_request> all(own_.requests(nullptr, 0));
  all.resize(std::min(all.size(), own_.requests(all.data(), all.size())));
  const std::lock_guard lock(mutex_);
  if (server_ != nullptr) {
    const Pipeline& shared = server_->pipeline();
    const uint64_t later = own_.now() - shared.now();  // how much later it began
    const size_t alone = all.size();
    all.resize(alone + shared.requests(nullptr, 0));
    const size_t count = shared.requests(all.data() + alone, all.size() - alone);
    all.resize(std::min(all.size(), alone + count));
    for (size_t i = alone; i < all.size(); ++i) {
      for (uint64_t* const time : {&all[i].queued, &all[i].sent, &all[i].answered, &all[i].finished}) {
        if (*time != 0) *time += later;
      }
    }
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const l3_request& a, const l3_request& b) { return a.finished < b.finished; });
  std::copy_n(all.begin(), std::min(capacity, all.size()), requests);
  return all.size();
}

void SharedBatches::describe(l3_loader_info& info) const {
  const std::lock_guard lock(mutex_);
  info.from_other_jobs = from_others_;
  info.prepared_for_all = server_ != nullptr ? server_->prepared() : 0;
  info.prepared_alone = alone_;
  info.jobs = attached_;
}

// --------------------------------------------------------------------------------------------------- the thread

void SharedBatches::run() {
  for (;;) {
    wait_for_events();
    wake_.quiet();
    now_ = clock_.tick();
    {
      const std::lock_guard lock(mutex_);
      if (ends_) return;
    }
    try {
      if (!socket_ && refusal_.empty() && now_ >= attach_at_) attach();
      if (socket_ && !read()) leave();
      if (socket_ && is_welcome_ && !tell()) leave();
      judge();
    } catch (const std::exception&) {  // no memory, or no threads for a leader
      leave();
      attach_at_ = now_ + kRetry;
      const std::lock_guard lock(mutex_);
      go_alone();
    }
  }
}

void SharedBatches::wait_for_events() {
  pollfd events[2] = {{wake_.get(), POLLIN, 0}, {socket_.get(), POLLIN, 0}};
  const uint64_t wait = socket_ || !refusal_.empty() ? kTick : std::min(kTick, attach_at_ - std::min(now_, attach_at_));
  (void)!poll(events, socket_ ? 2 : 1, static_cast<int>(wait));
}

// Connects to the leader, or leads. If neither is possible it tries again soon.
void SharedBatches::attach() {
  bool is_free = false, is_foreign = false;
  pause_ = std::clamp(2 * pause_, kFirstPause, kLongestPause);
  attach_at_ = now_ + pause_;
  Descriptor socket = connect_to(name_, is_free, is_foreign);
  if (is_free) {
    Descriptor listening = listen_at(name_);
    if (!listening) return;
    lead(std::move(listening));
    socket = connect_to(name_, is_free, is_foreign);
  }
  if (is_foreign) is_silent_ = true;
  if (!socket) return;
  socket_ = std::move(socket);
  greet();
}

void SharedBatches::lead(Descriptor listening) {
  SharedGroup before = group_;
  if (before.attached > 0) --before.attached;  // the leader that ended was one of them
  auto server = std::make_unique<ShareServer>(set_, options_.get(), own_, terms_, std::move(listening), before);
  l3_data_error error{};
  if (server->open(&error) != L3_OK) throw std::bad_alloc();
  const std::lock_guard lock(mutex_);
  server_ = std::move(server);
}

void SharedBatches::greet() {
  Greeting hello;
  {
    const std::lock_guard lock(mutex_);
    hello.head = state();
    // The time counts from the first leader that was asked for this batch.
    if (told_start_ != start_ || told_.place != hello.head.place) asked_at_ = now_;
    told_start_ = start_;
  }
  hello.head.topic = Topic::hello;
  hello.head.request = told_.request + 1;
  terms_.copy(hello.text, sizeof hello.text - 1);
  told_ = hello.head;
  is_asked_ = told_.flag != 0;
  if (group_.is_complete) hello.head.flag |= kAllCame;
  if (!send_message(socket_, &hello, sizeof hello)) leave();
}

void SharedBatches::leave() {
  socket_.reset();
  views_.clear();
  is_welcome_ = is_asked_ = false;
  const std::lock_guard lock(mutex_);
  attached_ = 0;
}

// Returns false if the leader is gone, or has said what makes no sense.
bool SharedBatches::read() {
  Greeting said;
  for (;;) {
    size_t size = 0;
    Descriptor passed;
    const Received received = receive_message(socket_, said, size, &passed);
    if (received == Received::nothing) return true;
    if (received == Received::end) return false;
    heard_at_ = now_;
    is_silent_ = !accept(said, size, std::move(passed));
    if (!is_silent_) continue;
    attach_at_ = now_ + kRetry;
    return false;
  }
}

bool SharedBatches::accept(const Greeting& said, size_t size, Descriptor passed) {
  const Message& message = said.head;
  if (size != (is_welcome_ ? sizeof message : sizeof said)) return false;
  switch (message.topic) {
    case Topic::welcome: {
      if (is_welcome_ || std::memchr(said.text, 0, sizeof said.text) == nullptr) return false;
      const std::string difference = difference_of_terms(said.text, terms_);
      if (difference.empty() != ((message.flag & kRefused) == 0)) return false;
      if (!difference.empty()) {
        const std::lock_guard lock(mutex_);
        refusal_.append("the jobs that share \"")
            .append(options_.share())
            .append("\" have another ")
            .append(difference);
        ready_.notify_all();
        return false;
      }
      is_welcome_ = true;
      pause_ = 0;
      return true;
    }
    case Topic::news: {
      group_ = {message.jobs, (message.flag & kAllCame) != 0};
      const std::lock_guard lock(mutex_);
      attached_ = message.jobs;
      return is_welcome_;
    }
    case Topic::forget: views_.erase(message.buffer); return is_welcome_;
    case Topic::alone: {
      if (!is_welcome_ || message.request != told_.request) return is_welcome_;
      is_asked_ = false;
      const std::lock_guard lock(mutex_);
      if (told_start_ == start_) go_alone();
      return true;
    }
    case Topic::batch: {
      if (!is_welcome_) return false;
      if (passed) {
        if (message.bytes != layout_.bytes() || views_.contains(message.buffer) || views_.size() > kMaxViews) {
          return false;
        }
        views_.emplace(message.buffer, SharedView(passed, message.bytes));
      }
      if (message.request != told_.request || !is_asked_) return true;
      const auto view = views_.find(message.buffer);
      if (view == views_.end() || view->second.data() == nullptr || message.place != told_.place) return false;
      is_asked_ = false;
      take(view->second, message.place);
      return true;
    }
    default: return false;
  }
}

// Copies a batch. The next state tells the leader that this is done.
void SharedBatches::take(const SharedView& view, Place place) {
  auto job = std::make_unique<Job>();
  if (!layout_.read(view.data(), place, own_.begun(), options_.get().on_error, *own_.batches(), *job)) {
    throw std::bad_alloc();  // the leader makes no sense: go on alone
  }
  const std::lock_guard lock(mutex_);
  if (told_start_ != start_) return own_.discard(*job);
  next_.position = job->position;
  if (server_ == nullptr) ++from_others_;
  jobs_.push_back(std::move(job));
  ready_.notify_all();
}

Message SharedBatches::state() const {
  Message message;
  message.topic = Topic::state;
  // When the epoch has ended, or this job is alone until then, it is expected at the next one.
  const bool is_between = is_alone_ || is_end(next_);
  message.place = is_between ? Place{next_.epoch + 1, 0} : next_;
  message.flag = !is_between && jobs_.size() < options_.get().prefetch ? kWants : 0;
  return message;
}

// Tells the leader the state if it is another one than before. Returns false if the leader is gone.
bool SharedBatches::tell() {
  const std::lock_guard lock(mutex_);
  Message message = state();
  if (message.place == told_.place && message.flag == told_.flag && told_start_ == start_) return true;
  message.request = told_.request + 1;
  told_ = message;
  told_start_ = start_;
  is_asked_ = message.flag != 0;
  asked_at_ = now_;
  return send_message(socket_, &message, sizeof message);
}

// Goes on alone if the leader is silent, or if the batch does not come.
void SharedBatches::judge() {
  const std::lock_guard lock(mutex_);
  const Message wanted = state();
  if (wanted.flag == 0) {
    asked_at_ = heard_at_ = now_;
    return;
  }
  const bool is_late = now_ - std::max(heard_at_, asked_at_) >= timeout_;
  if (is_late) is_silent_ = true;
  if (is_silent_ || now_ - asked_at_ >= 2 * timeout_ + kTick) go_alone();
}

// `mutex_` must be locked.
void SharedBatches::go_alone() {
  if (is_alone_ || is_end(next_)) return;
  is_alone_ = true;
  ready_.notify_all();
}

// ------------------------------------------------------------------------------------------------------- options

const char* complete_share(l3_loader_options& options) {
  constexpr size_t kLongestName = 64;
  constexpr uint32_t kMaxJobs = 1024, kTimeout = 60000;
  const size_t size = strnlen(options.share, kLongestName + 1);
  if (size == 0 || size > kLongestName) return "the name in share must have 1 to 64 bytes";
  if (options.device != L3_DEVICE_CPU) {
    return "share is for batches on a CPU: each GPU decodes for itself, so use a cache for the files instead";
  }
  if (options.delivery != L3_DELIVERY_ORDERED)
    return "batches that jobs share come in order: share needs ordered delivery";
  if (options.jobs == 0) options.jobs = 2;
  if (options.jobs > kMaxJobs) return "at most 1024 jobs can share batches";
  if (options.share_timeout_ms == 0) options.share_timeout_ms = kTimeout;
  return has_shared_memory() ? nullptr
                             : "this system has no memory that jobs could share (memfd_create), or does not allow it";
}

std::unique_ptr<SharedSource> share_batches(const l3_data_set& set, const l3_loader_options& options, Pipeline& own) {
  return std::make_unique<SharedBatches>(set, options, own);
}

}  // namespace loader
