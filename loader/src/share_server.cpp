#include "share_server.h"

#include <poll.h>

#include <algorithm>
#include <cstring>
#include <system_error>

namespace loader {
namespace {

// In milliseconds.
constexpr uint64_t kTick = 100;
constexpr uint64_t kGather = 2000;  // how long a new leader waits for the jobs of the one before
constexpr uint64_t kLinger = 2000;  // how long a leader stays for others to take what is prepared
constexpr uint64_t kHello = 5000;   // how long a connection may say nothing
constexpr uint64_t kNews = 1000;
constexpr size_t kMaxMembers = 1024;

}  // namespace

ShareServer::ShareServer(const l3_data_set& set, const l3_loader_options& options, const Pipeline& own,
                         std::string terms, Descriptor listening, SharedGroup before)
    : terms_(std::move(terms)),
      timeout_(options.share_timeout_ms),
      jobs_(options.jobs),
      room_(std::max<size_t>(2 * size_t{options.prefetch}, 4)),
      reach_(room_ + options.prefetch),
      sharing_(own.sharing()),
      layout_(own.units(), sharing_),
      memory_(std::make_shared<SharedMemory>(layout_.bytes(), room_ + 1)),
      pipeline_(set, options, nullptr, memory_),
      listening_(std::move(listening)),
      expected_(before.attached),
      is_complete_(before.is_complete),
      gathers_(before.attached > 0) {}

l3_status ShareServer::open(l3_data_error* error) {
  if (const l3_status status = pipeline_.open(error); status != L3_OK) return status;
  const NoSignals blocked;
  preparer_ = std::thread([this] { prepare(); });
  server_ = std::thread([this] { serve(); });
  return L3_OK;
}

ShareServer::~ShareServer() {
  end();
  if (preparer_.joinable()) preparer_.join();
  if (server_.joinable()) server_.join();
  for (Entry& entry : window_) pipeline_.discard(*entry.job);
}

void ShareServer::end() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  work_.notify_all();
  pipeline_.interrupt();
  wake_.ring();
}

// --------------------------------------------------------------------------------------------------- preparing

void ShareServer::prepare() {
  std::unique_lock lock(mutex_);
  for (;;) {
    work_.wait(lock, [this] { return ends_ || target_ || (runs_ && !is_broken_ && window_.size() < room_); });
    if (ends_) return;
    const std::optional<Place> target = std::exchange(target_, std::nullopt);
    lock.unlock();
    bool ended = false;
    l3_data_error error{};
    std::unique_ptr<Job> job;
    try {
      if (target) {
        (void)!pipeline_.start(target->epoch, target->position, {}, &error);
      } else {
        job = pipeline_.wait_for_job(kTick, ended, &error);
      }
    } catch (const std::bad_alloc&) {
      error.status = L3_ERROR_MEMORY;
    }
    lock.lock();
    if (job != nullptr && target_) {
      pipeline_.discard(*job);
    } else if (job != nullptr) {
      try {
        add(std::move(job));
      } catch (const std::bad_alloc&) {
        error.status = L3_ERROR_MEMORY;
      }
    } else if (ended && !target_) {
      runs_ = false;
    }
    // The jobs then prepare batches on their own, and have the same failure or not.
    if (error.status != L3_OK) is_broken_ = true;
    wake_.ring();
  }
}

void ShareServer::add(std::unique_ptr<Job> job) {
  // A batch that failed as a whole may have no memory, but others must learn of its failure.
  if (job->memory == nullptr) job->memory = pipeline_.batches()->acquire();
  const Place at{job->epoch, job->begin}, next{job->epoch, job->position};
  uint32_t buffer = 0;
  if (job->memory != nullptr) {
    layout_.write(*job, pipeline_.begun(), job->memory);
    buffer = memory_->number_of(job->memory);
  }
  window_.push_back({std::move(job), at, buffer});
  next_ = next;
  ++prepared_;
}

// ----------------------------------------------------------------------------------------------------- serving

void ShareServer::serve() {
  for (;;) {
    wait_for_events();
    wake_.quiet();
    now_ = clock_.tick();
    const std::lock_guard lock(mutex_);
    try {
      accept();
      for (const auto& member : members_) {
        if (!read(*member)) member->socket.reset();
      }
      remove_closed();
      if (attached() >= jobs_ || now_ >= timeout_) is_complete_ = true;
      if (attached() >= expected_ || now_ >= std::min(kGather, timeout_ / 2)) gathers_ = false;
      if (!gathers_) {
        if (!ends_) choose();
        answer();
        while (evict()) stuck_since_ = now_;
        leave_behind();
      }
      if (!ends_) tell_news();
    } catch (const std::bad_alloc&) {
      members_.clear();  // they come again, or go on alone
    }
    work_.notify_all();
    if (!ends_) continue;
    if (ends_at_ == 0) ends_at_ = now_ + kLinger;
    const auto is_wanted = [this](const auto& member) {
      return member->is_attached && !member->is_left && find(member->place) != nullptr;
    };
    if (now_ >= ends_at_ || std::none_of(members_.begin(), members_.end(), is_wanted)) return;
  }
}

void ShareServer::wait_for_events() {
  std::vector<pollfd> events{{wake_.get(), POLLIN, 0}, {listening_.get(), POLLIN, 0}};
  for (const auto& member : members_) events.push_back({member->socket.get(), POLLIN, 0});
  (void)!poll(events.data(), events.size(), static_cast<int>(kTick));
}

void ShareServer::accept() {
  while (members_.size() < kMaxMembers) {
    auto member = std::make_unique<Member>();
    member->socket = accept_at(listening_);
    if (!member->socket) return;
    member->came = member->moved = now_;
    members_.push_back(std::move(member));
  }
}

// Returns false if the member is gone, or has said what makes no sense.
bool ShareServer::read(Member& member) {
  if (!member.socket) return false;
  if (!member.is_attached && now_ - member.came > kHello) return false;
  Greeting said;
  for (int i = 0; i < 16; ++i) {
    size_t size = 0;
    const Received received = receive_message(member.socket, said, size);
    if (received == Received::nothing) return true;
    if (received == Received::end) return false;
    const Message& message = said.head;
    const bool is_hello = !member.is_attached;
    if (size != (is_hello ? sizeof said : sizeof message)) return false;
    if (message.topic != (is_hello ? Topic::hello : Topic::state)) return false;
    if (message.place.position > sharing_.units) return false;
    if (is_hello && !greet(member, said)) return false;
    if (member.place != message.place || is_hello) member.moved = now_;
    member.is_left = false;
    member.place = message.place;
    member.wants = (message.flag & kWants) != 0;
    if (is_hello && (message.flag & kAllCame) != 0) is_complete_ = true;
    member.request = message.request;
    member.uses = 0;
  }
  return true;
}

bool ShareServer::greet(Member& member, const Greeting& hello) {
  Greeting welcome;
  welcome.head = news();
  welcome.head.topic = Topic::welcome;
  const bool is_same = std::memchr(hello.text, 0, sizeof hello.text) != nullptr && terms_ == hello.text;
  welcome.head.flag = is_same ? 0 : kRefused;
  terms_.copy(welcome.text, sizeof welcome.text - 1);
  member.is_attached = send_message(member.socket, &welcome, sizeof welcome) && is_same;
  return member.is_attached;
}

// Decides where the pipeline goes on, if that is not where it is.
void ShareServer::choose() {
  const auto wanting = [](const auto& member) { return member->is_attached && member->wants; };
  const Member* lowest = nullptr;
  bool some_want_the_next_epoch = false;
  const Place next_epoch{next_.epoch + 1, 0};
  for (const auto& member : members_) {
    if (!wanting(member) || find(member->place) != nullptr) continue;
    if (lowest == nullptr || member->place < lowest->place) lowest = member.get();
    some_want_the_next_epoch = some_want_the_next_epoch || member->place == next_epoch;
  }
  if (lowest == nullptr) return;
  if (is_parked() && some_want_the_next_epoch) return go_to(next_epoch);
  if (has_begun_ &&
      std::any_of(members_.begin(), members_.end(), [this](const auto& member) { return is_on_stream(*member); })) {
    return;
  }
  // A job that has enough batches ready may be behind the one that wants.
  Place place = lowest->place;
  for (const auto& member : members_) {
    if (member->is_attached && !member->is_left && reaches(member->place, lowest->place, room_ - 1)) {
      place = std::min(place, member->place);
    }
  }
  while (!window_.empty()) drop_first();
  go_to(place);
}

void ShareServer::go_to(Place place) {
  // Jobs that are between two epochs are expected to begin the one that the others begin.
  if (is_parked()) {
    for (const auto& member : members_) {
      if (!member->wants && member->place == Place{next_.epoch + 1, 0}) member->place = place;
    }
  }
  target_ = next_ = place;
  has_begun_ = runs_ = true;
}

void ShareServer::answer() {
  if (!has_begun_) return;
  for (const auto& member : members_) {
    if (!member->is_attached || !member->wants) continue;
    const Entry* const entry = find(member->place);
    if (entry != nullptr && entry->buffer != 0) {
      if (!send(*member, *entry)) member->socket.reset();
      continue;
    }
    if (entry == nullptr && !is_broken_ && is_coming(member->place)) continue;
    Message message;
    message.topic = Topic::alone;
    message.request = member->request;
    member->wants = false;
    member->place = {member->place.epoch + 1, 0};
    if (!send_message(member->socket, &message, sizeof message)) member->socket.reset();
  }
  remove_closed();
}

void ShareServer::remove_closed() {
  std::erase_if(members_, [](const auto& member) { return !member->socket; });
}

bool ShareServer::send(Member& member, const Entry& entry) {
  Message message;
  message.topic = Topic::batch;
  message.request = member.request;
  message.place = entry.at;
  message.bytes = memory_->bytes();
  message.buffer = entry.buffer;
  member.wants = false;
  member.uses = entry.buffer;
  const bool is_new = member.knows.insert(entry.buffer).second;
  return send_message(member.socket, &message, sizeof message, is_new ? &memory_->file_of(entry.job->memory) : nullptr);
}

// Removes the first batch of the window if no job needs it. Before all jobs came, one that comes late may.
bool ShareServer::evict() {
  if (!is_complete_ || window_.empty() || is_held(window_.front())) return false;
  drop_first();
  if (window_.empty()) wake_.ring();  // the pipeline may go elsewhere now
  return true;
}

// If others can go on no other way, stops waiting for those that hold the first batch.
void ShareServer::leave_behind() {
  const bool is_waited_for = std::any_of(members_.begin(), members_.end(), [this](const auto& member) {
    return member->is_attached && member->wants && find(member->place) == nullptr;
  });
  if (!is_complete_ || window_.empty() || !is_waited_for || (runs_ && window_.size() < room_)) {
    stuck_since_ = now_;
    return;
  }
  for (const auto& member : members_) {
    const bool holds = member->is_attached && !member->is_left && member->place == window_.front().at;
    if (holds && now_ - std::max(stuck_since_, member->moved) >= timeout_) member->is_left = true;
  }
}

void ShareServer::tell_news() {
  const size_t jobs = attached();
  if (jobs == told_jobs_ && now_ - told_at_ < std::min(kNews, timeout_ / 4)) return;
  told_jobs_ = jobs;
  told_at_ = now_;
  const Message message = news();
  for (const auto& member : members_) {
    if (member->is_attached) (void)!send_message(member->socket, &message, sizeof message);
  }
}

Message ShareServer::news() const {
  Message message;
  message.topic = Topic::news;
  message.flag = is_complete_ ? kAllCame : 0;
  message.jobs = static_cast<uint32_t>(attached());
  return message;
}

// A job that was left behind may still copy from the buffer, which is then not used again.
void ShareServer::drop_first() {
  Entry entry = std::move(window_.front());
  window_.pop_front();
  if (entry.buffer == 0) return;
  const bool is_used =
      std::any_of(members_.begin(), members_.end(), [&](const auto& member) { return member->uses == entry.buffer; });
  if (!is_used) return pipeline_.discard(*entry.job);
  pipeline_.batches()->drop(std::exchange(entry.job->memory, nullptr));
  Message message;
  message.topic = Topic::forget;
  message.buffer = entry.buffer;
  for (const auto& member : members_) {
    if (member->knows.erase(entry.buffer) == 0) continue;
    // One that takes no messages comes again, and knows no buffer then.
    if (!send_message(member->socket, &message, sizeof message)) member->socket.reset();
  }
}

// ------------------------------------------------------------------------------------------------------ places

const ShareServer::Entry* ShareServer::find(Place place) const {
  const auto at = std::find_if(window_.begin(), window_.end(), [&](const Entry& entry) { return entry.at == place; });
  return at != window_.end() ? &*at : nullptr;
}

// Whether the batch at `to` is one of the next `most` after the one at `from`, or that one.
bool ShareServer::reaches(Place from, Place to, size_t most) const {
  uint64_t position = from.position;
  for (size_t i = 0; from.epoch == to.epoch && i <= most && steps_from(sharing_, position) > 0; ++i) {
    if (position == to.position) return true;
    position = share_at(sharing_, position).next;
  }
  return false;
}

// Whether a job takes batches of the window, or will take one that comes soon.
bool ShareServer::is_on_stream(const Member& member) const {
  if (!member.is_attached || member.is_left) return false;
  return find(member.place) != nullptr || reaches(next_, member.place, reach_);
}

bool ShareServer::is_coming(Place place) const {
  if (reaches(next_, place, reach_) || place == Place{next_.epoch + 1, 0}) return true;
  return is_parked() && place.position == 0 && !window_.empty();  // when the others have ended their epoch
}

bool ShareServer::is_held(const Entry& entry) const {
  return std::any_of(members_.begin(), members_.end(), [&](const auto& member) {
    return member->is_attached && !member->is_left && member->place == entry.at;
  });
}

size_t ShareServer::attached() const {
  return static_cast<size_t>(
      std::count_if(members_.begin(), members_.end(), [](const auto& member) { return member->is_attached; }));
}

}  // namespace loader
