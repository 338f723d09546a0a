#include "pipeline.h"

#include <algorithm>
#include <memory>
#include <system_error>

#include "data_error.h"
#include "steady_clock.h"

namespace loader {
namespace {

// A thread takes at most kMaxClaimed small images at once, of this many bytes.
constexpr uint64_t kMaxBytesClaimed = 64 << 10;
// A far store may have this many batches open.
constexpr size_t kMaxAhead = 1024;
constexpr uint64_t kBuckets = 6;  // a use of the seed that no other has

}  // namespace

Pipeline::Pipeline(const l3_data_set& set, const l3_loader_options& options, std::shared_ptr<Device> device,
                   std::shared_ptr<BatchMemory> memory)
    : set_(set),
      options_(options),
      device_(std::move(device)),
      memory_(std::move(memory)),
      files_(options.max_bytes_in_flight),
      is_far_(set.store->is_far()),
      reads_cached_(options.reading == L3_READING_AUTO && set.store->has_cached_reads()),
      begun_ns_(steady_ns()),
      ahead_(options.prefetch) {}

uint64_t Pipeline::now() const { return steady_ns() - begun_ns_; }

l3_status Pipeline::open(l3_data_error* error) {
  if (const l3_status status = units_.open(set_, options_, error); status != L3_OK) return status;
  if (options_.box == L3_BOX_GIVEN) boxes_.assign(options_.boxes, options_.boxes + options_.box_count);
  options_.tensors = nullptr;
  options_.groups = nullptr;
  options_.boxes = nullptr;
  sharing_ = {units_.count(), options_.batch_size, options_.rank, options_.world_size,
              static_cast<l3_last_batch>(options_.last_batch)};

  // Open the models once, so that decoding need not build their tables for each file.
  size_t count = 0;
  const l3_model* const* of_set = l3_data_models(&set_, &count);
  models_.assign(of_set, of_set + count);
  for (uint32_t number = 1;; ++number) {
    const uint8_t* bytes = nullptr;
    size_t size = 0;
    if (l3_default_model(number, &bytes, &size) != L3_OK) break;
    l3_model* model = nullptr;
    if (l3_open_model(bytes, size, &model, nullptr) != L3_OK) throw std::bad_alloc();
    own_models_.emplace_back(model);
    models_.push_back(model);
  }

  uint64_t batch_bytes = units_.batch_bytes();
  if (device_ != nullptr) {
    constexpr uint64_t kMaxImages = 65535;  // the limit of a device call
    if (options_.batch_size * uint64_t{units_.tensors().size()} > kMaxImages) {
      return fail(error, L3_ERROR_ARGUMENT, "", "a batch has more than 65535 images, which are too many for a GPU");
    }
    batch_bytes += label_bytes();
    for (uint32_t i = 0; i < options_.prefetch; ++i) {
      l3_error why{};
      slots_.push_back(device_->make_slot(&why));
      if (slots_.back() == nullptr) return fail(error, why.status, "", why.reason);
      free_slots_.push_back(slots_.back().get());
    }
  }
  free_slots_.reserve(slots_.size());
  const size_t held = memory_ != nullptr ? memory_->held() : 0;
  batches_ = std::make_shared<BatchPool>(batch_bytes, options_.prefetch + 2 + held, device_, memory_);
  return start(0, 0, {}, error);
}

Pipeline::~Pipeline() {
  stop_work();
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  work_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  channel_.reset();
  if (batches_ != nullptr) batches_->close();
}

void Pipeline::stop_work() {
  std::unique_lock lock(mutex_);
  stopped_ = true;
  while (!idle_.wait_for(lock, std::chrono::milliseconds(is_far_ ? 5 : 1000), [this] { return busy_ == 0; })) {
    // A thread may be about to submit reads, so this may be needed more than once.
    lock.unlock();
    {
      const std::lock_guard channel_lock(channel_mutex_);
      if (channel_ != nullptr) channel_->cancel();
    }
    lock.lock();
  }
  first_arrived_ = nullptr;
  while (!jobs_.empty()) {
    const std::unique_ptr<Job> job = std::move(jobs_.front());
    jobs_.pop_front();
    if (job->slot != nullptr) free_slots_.push_back(job->slot);
    discard(*job);
  }
  in_flight_ = 0;
}

l3_status Pipeline::start(uint64_t epoch, uint64_t position, std::set<uint64_t> ahead, l3_data_error* error) {
  if (position > units_.count()) {
    return fail(error, L3_ERROR_ARGUMENT, "",
                "position " + std::to_string(position) + " is after the end of the epoch, which has " +
                    std::to_string(units_.count()) + " units");
  }
  {
    const std::lock_guard lock(mutex_);
    takes_all_epochs_ = is_far_ && epoch == epoch_ + 1 && is_epoch_open();
    const bool is_next = open_epoch_ == epoch && epoch == epoch_ + 1 && position == 0 && ahead.empty();
    const bool is_at_end = jobs_.empty() || jobs_.front()->epoch == epoch;
    if (is_next && is_at_end && !opening_) {  // it has been opened already
      epoch_ = epoch;
      takes_all_epochs_ = true;
      move_window();
      work_.notify_all();
      return L3_OK;
    }
  }
  stop_work();
  const std::lock_guard lock(mutex_);
  epoch_ = epoch;
  go_to(epoch, position, std::move(ahead));
  stopped_ = false;
  work_.notify_all();
  return L3_OK;
}

// Makes batches from this position on the next ones to open.
void Pipeline::go_to(uint64_t epoch, uint64_t position, std::set<uint64_t> ahead) {
  const OrderOptions order{static_cast<l3_order>(options_.order), options_.window, options_.seed};
  order_ = EpochOrder(units_.count(), units_.shards(), order, epoch);
  buckets_.reset();
  if (options_.bucket_by == L3_BUCKET_ASPECT) {
    const uint64_t step = options_.batch_size * uint64_t{options_.world_size};
    buckets_.emplace(units_.count(), step, hash_of(hash_of(options_.seed, epoch), kBuckets),
                     [this](uint64_t unit) { return units_.aspect_of(unit); });
  }
  open_epoch_ = epoch;
  next_position_ = position;
  next_number_ = 0;
  left_out_ = std::move(ahead);
  skip_steps();
}

// Whether all batches of the consumer's epoch are open or delivered.
bool Pipeline::is_epoch_open() const {
  return open_epoch_ != epoch_ || (!opening_ && steps_from(sharing_, next_position_) == 0);
}

void Pipeline::start_threads() {
  while (threads_.size() < options_.threads) {
    try {
      threads_.emplace_back([this] { work(); });
    } catch (const std::system_error&) {
      if (threads_.empty()) throw;  // continue with fewer threads
      options_.threads = static_cast<uint32_t>(threads_.size());
    }
  }
}

std::unique_ptr<Job> Pipeline::wait_for_job(uint32_t milliseconds, bool& ended, l3_data_error* error) {
  ended = false;
  try {
    start_threads();
  } catch (const std::system_error& why) {
    (void)!fail(error, L3_ERROR_MEMORY, "", std::string("cannot start a thread: ") + why.what());
    return nullptr;
  }
  std::unique_lock lock(mutex_);
  const uint64_t asked = now();
  const auto is_over = [this] { return is_epoch_open() && (jobs_.empty() || jobs_.front()->epoch != epoch_); };
  const auto there = [&] { return interrupted_ || out_of_memory_ || job_to_deliver() != jobs_.end() || is_over(); };
  if (milliseconds == UINT32_MAX) {
    ready_.wait(lock, there);
  } else {
    ready_.wait_for(lock, std::chrono::milliseconds(milliseconds), there);
  }
  if (std::exchange(interrupted_, false)) return nullptr;
  if (std::exchange(out_of_memory_, false)) {
    work_.notify_all();
    (void)!fail(error, L3_ERROR_MEMORY, "", "out of memory");
    return nullptr;
  }
  if (const auto at = job_to_deliver(); at != jobs_.end()) {
    std::unique_ptr<Job> job = std::move(*at);
    jobs_.erase(at);
    // Its files came late: read further ahead. This doubles what is on its way until no batch comes late.
    if (is_far_ && job->arrived > asked) ahead_ = std::min(std::max(ahead_, jobs_.size()) * 2, kMaxAhead);
    move_window();
    work_.notify_all();  // other jobs can be opened and decoded
    return job;
  }
  ended = is_over();
  return nullptr;
}

void Pipeline::interrupt() {
  {
    const std::lock_guard lock(mutex_);
    interrupted_ = true;
  }
  ready_.notify_all();
}

// --------------------------------------------------------------------------------------------------- the threads

bool Pipeline::can_open() const {
  if (opening_ || out_of_memory_) return false;
  const bool may_go_on = takes_all_epochs_ && open_epoch_ == epoch_ && steps_from(sharing_, 0) > 0;
  if (steps_from(sharing_, next_position_) == 0 && !may_go_on) return false;
  if (is_far_) return may_open_ahead();
  return jobs_.size() < options_.prefetch && (device_ == nullptr || !free_slots_.empty());
}

// Opens the next batch of a far store once the reads of all images before are submitted, and while more bytes may be on
// their way.
bool Pipeline::may_open_ahead() const {
  if (jobs_.size() >= ahead_ || in_flight_ > options_.max_bytes_in_flight) return false;
  return beginning_ == 0 && (jobs_.empty() || jobs_.back()->next == jobs_.back()->images.size());
}

// The first batch, or with L3_DELIVERY_ANY the first one that is ready. The end if it is not ready.
std::deque<std::unique_ptr<Job>>::iterator Pipeline::job_to_deliver() {
  const auto is_ready = [this](const std::unique_ptr<Job>& job) { return job->is_ready && job->epoch == epoch_; };
  if (options_.delivery == L3_DELIVERY_ANY) return std::find_if(jobs_.begin(), jobs_.end(), is_ready);
  return !jobs_.empty() && is_ready(jobs_.front()) ? jobs_.begin() : jobs_.end();
}

// Moves the next position behind batches that were delivered before.
void Pipeline::skip_steps() {
  while (left_out_.erase(next_position_) > 0) {
    next_position_ = share_at(sharing_, next_position_).next;
    ++next_number_;
  }
}

// Lets the next `prefetch` batches of this epoch be decoded.
void Pipeline::move_window() {
  for (size_t i = 0; i < std::min<size_t>(jobs_.size(), options_.prefetch); ++i) {
    if (jobs_[i]->epoch == epoch_) jobs_[i]->is_decoding = true;
  }
}

Job* Pipeline::job_to_decode() const {
  for (const std::unique_ptr<Job>& job : jobs_) {
    if (!job->is_decoding) return nullptr;
    if (job->fetched != nullptr) return job.get();
  }
  return nullptr;
}

// Returns the first job with images to begin, if the limit of bytes in flight allows it.
Job* Pipeline::job_to_begin() {
  for (const std::unique_ptr<Job>& job : jobs_) {
    if (!job->is_open) return nullptr;
    if (job->next == job->images.size()) continue;
    const uint64_t size = job->images[job->next].sample.size;
    const uint64_t maximum = options_.max_bytes_in_flight;
    return in_flight_ == 0 || (in_flight_ <= maximum && size <= maximum - in_flight_) ? job.get() : nullptr;
  }
  return nullptr;
}

// Takes the next image, or several small ones.
Pipeline::Claim Pipeline::claim(Job& job) {
  Claim claimed;
  uint64_t bytes = 0;
  const uint64_t room = options_.max_bytes_in_flight - std::min(in_flight_, options_.max_bytes_in_flight);
  const uint64_t maximum = std::min(kMaxBytesClaimed, room);
  while (job.next < job.images.size() && claimed.count < kMaxClaimed) {
    Image& image = job.images[job.next];
    if (claimed.count > 0 && bytes + image.sample.size > maximum) break;
    bytes += image.sample.size;
    claimed.images[claimed.count++] = &image;
    ++job.next;
  }
  in_flight_ += bytes;
  ++beginning_;
  return claimed;
}

void Pipeline::work() {
  Scratch scratch;
  std::unique_lock lock(mutex_);
  for (;;) {
    Job *job = nullptr, *decodable = nullptr;
    work_.wait(lock, [&] {
      if (ends_) return true;
      if (stopped_) return false;
      job = job_to_begin();
      decodable = job_to_decode();
      return first_arrived_ != nullptr || job != nullptr || decodable != nullptr || can_open();
    });
    if (ends_) return;
    ++busy_;
    Claim finished;
    if (first_arrived_ != nullptr) {
      Image& image = *first_arrived_;
      first_arrived_ = image.next;
      lock.unlock();
      advance(image, scratch, finished);
    } else if (can_open()) {
      // Opened before other work runs out, so that no thread waits for it.
      work_.notify_one();  // there may be images to begin
      open_next(lock);
    } else if (job != nullptr) {
      const Claim claimed = claim(*job);
      work_.notify_one();  // there may be more work
      lock.unlock();
      begin(claimed, scratch, finished);
    } else {
      Image& image = *decodable->fetched;
      decodable->fetched = image.next;
      work_.notify_one();  // there may be more work
      lock.unlock();
      if (decode_or_fetch_again(image, scratch)) finished.images[finished.count++] = &image;
    }
    done(finished);
    lock.lock();
    if (--busy_ == 0) idle_.notify_all();
  }
}

// Releases `lock`.
void Pipeline::open_next(std::unique_lock<std::mutex>& lock) {
  try {
    if (steps_from(sharing_, next_position_) == 0) go_to(open_epoch_ + 1, 0, {});
    jobs_.push_back(std::make_unique<Job>());
  } catch (const std::bad_alloc&) {
    out_of_memory_ = true;
    lock.unlock();
    return ready_.notify_all();
  }
  opening_ = true;
  Job& job = *jobs_.back();
  const Share share = share_at(sharing_, next_position_);
  job.pipeline = this;
  job.epoch = open_epoch_;
  job.number = next_number_++;
  job.begin = next_position_;
  job.position = next_position_ = share.next;
  skip_steps();
  move_window();
  if (device_ != nullptr && !is_far_) {
    job.slot = free_slots_.back();
    free_slots_.pop_back();
  }
  lock.unlock();
  open_job(job, share);
  lock.lock();
  opening_ = false;
  job.is_open = true;
  job.is_ready = job.fault.has_value();
  if (job.is_ready && job.slot != nullptr) free_slots_.push_back(std::exchange(job.slot, nullptr));
  lock.unlock();
  work_.notify_all();
  ready_.notify_all();
}

void Pipeline::open_job(Job& job, const Share& share) {
  job.times.begun = now();
  const auto fail_job = [&](l3_status status, const char* reason) {
    job.images.clear();
    (void)!fail(&job.fault.emplace(), status, "", reason);
  };
  try {
    job.units = static_cast<uint32_t>(share.own + share.repeats);
    job.repeats = static_cast<uint32_t>(share.repeats);
    for (uint32_t i = 0; i < job.units; ++i) {
      const uint64_t place = i < share.own ? share.first + i : (share.first_repeat + i - share.own) % units_.count();
      const uint64_t unit = buckets_ ? buckets_->unit_at(*order_, place) : order_->unit_at(place);
      const uint64_t random = random_of(unit, job.epoch);
      for (const Tensor& tensor : units_.tensors()) {
        Image& image = job.images.emplace_back();
        image.job = &job;
        image.place = i;
        image.tensor = &tensor;
        image.number = units_.sample_of(unit, tensor, image.sample);
        image.options = &options_;
        image.random = random;
        image.given = box_of(unit);
        image.is_whole = false;
        if (options_.orient == 0) {
          if (const char* reason = image.settle(1); reason != nullptr) {
            image.fail(*set_.shards[image.sample.shard], L3_ERROR_ARGUMENT, reason, L3_DATA_NONE);
          }
        }
        if (&tensor == units_.tensors().data()) {
          job.ids.push_back(static_cast<int64_t>(image.number));
          job.labels.push_back(image.sample.label == L3_NO_LABEL ? -1 : static_cast<int64_t>(image.sample.label));
        }
      }
    }
    job.left = job.images.size();
    if (units_.is_ragged() && !place_units(job)) return fail_job(L3_ERROR_LIMIT, "a batch is larger than 2^40 bytes");
    if (job.slot != nullptr && !take_memory(job)) return fail_job(L3_ERROR_MEMORY, "no memory for a batch");
    if (job.slot != nullptr && place_images(job) != L3_OK) fail_job(L3_ERROR_MEMORY, "no pinned memory for a batch");
  } catch (const std::bad_alloc&) {
    fail_job(L3_ERROR_MEMORY, "out of memory");
  }
}

}  // namespace loader
