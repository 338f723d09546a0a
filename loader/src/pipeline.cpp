#include "pipeline.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <system_error>

#include "data_error.h"
#include "image_head.h"

namespace loader {
namespace {

uint64_t steady_ns() {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
          .count());
}

// A thread takes at most this many small images at once.
constexpr size_t kMaxClaimed = 32;
constexpr uint64_t kMaxBytesClaimed = 64 << 10;
// A far store may have this many batches open.
constexpr size_t kMaxAhead = 1024;
constexpr size_t kMaxRequests = 65536;
constexpr uint64_t kBuckets = 6;  // a use of the seed that no other has

}  // namespace

struct Pipeline::Scratch {
  std::vector<uint8_t> pixels;
  std::unique_ptr<uint8_t[]> workspace;  // of L3_WORKSPACE_BYTES
  Resampler resampler;
};

// Images that one thread begins in turn.
struct Pipeline::Claim {
  std::array<Image*, kMaxClaimed> images{};
  size_t count = 0;
};

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

// ---------------------------------------------------------------------------------------------------- one image

// Submits the reads of all images before any is decoded.
void Pipeline::begin(const Claim& claimed, Scratch& scratch, Claim& finished) {
  Claim present;
  for (size_t i = 0; i < claimed.count; ++i) {
    Image& image = *claimed.images[i];
    image.read_begun = now();
    if (image.file == nullptr) {
      image.memory = files_.acquire(image.sample.size);
      image.file = image.memory.data();
      if (image.file == nullptr) {
        image.fail(*set_.shards[image.sample.shard], L3_ERROR_MEMORY, "out of memory", L3_DATA_NONE);
      }
    }
    if (fetch(image)) present.images[present.count++] = &image;
  }
  {
    const std::lock_guard lock(mutex_);
    if (--beginning_ == 0) work_.notify_one();  // the next batch may be opened
  }
  for (size_t i = 0; i < present.count; ++i) decode_or_put_aside(*present.images[i], scratch, finished);
}

// Continues with an image whose reads have arrived.
void Pipeline::advance(Image& image, Scratch& scratch, Claim& finished) {
  if (fetch(image)) decode_or_put_aside(image, scratch, finished);
}

void Pipeline::decode_or_put_aside(Image& image, Scratch& scratch, Claim& finished) {
  if (is_far_ && !is_next(image)) return;
  if (decode_or_fetch_again(image, scratch)) {
    finished.images[finished.count++] = &image;
  }
}

// Whether an image of a far store is to be decoded now. If not, it is put aside: its batch may be too far ahead. Images
// that have waited are always put aside, because beginning more reads is more urgent than decoding.
bool Pipeline::is_next(Image& image) {
  const std::lock_guard lock(mutex_);
  if (image.job->is_decoding && !image.has_waited) return true;
  image.next = std::exchange(image.job->fetched, &image);
  if (image.job->is_decoding) work_.notify_one();
  return false;
}

// Reads what the system has cached, and submits the other reads. Returns whether everything is present or the image has
// failed.
bool Pipeline::fetch(Image& image) {
  const Shard& shard = *set_.shards[image.sample.shard];
  if (image.read_fault) {
    const StoreFault& why = *image.read_fault;
    image.fail(shard, why.status, why.reason, why.status == L3_ERROR_TRUNCATED ? image.sample.offset : why.offset,
               why.system_error);
  }
  try {
    for (;;) {
      plan_reads(image, set_);
      if (image.reads.empty()) break;
      bool is_all_there = true;
      for (Read& read : image.reads) {
        image.bytes_read += read.size;
        const uint64_t got = reads_cached_ ? set_.store->read_cached(read) : 0;
        read.offset += got;
        read.to += got;
        read.size -= got;
        is_all_there = is_all_there && read.size == 0;
      }
      if (!is_all_there) {
        submit(image);
        return false;
      }
    }
    image.reading = now() - image.read_begun;
  } catch (const std::bad_alloc&) {
    image.fail(shard, L3_ERROR_MEMORY, "out of memory", L3_DATA_NONE);
  } catch (const std::system_error&) {
    image.fail(shard, L3_ERROR_MEMORY, "cannot start a thread for reading", L3_DATA_NONE);
  }
  return true;
}

Channel& Pipeline::channel() {
  const std::lock_guard lock(channel_mutex_);
  if (channel_ == nullptr) channel_ = set_.store->make_channel(static_cast<l3_reading>(options_.reading));
  return *channel_;
}

void Pipeline::submit(Image& image) {
  Channel& channel = this->channel();
  std::erase_if(image.reads, [](const Read& read) { return read.size == 0; });
  std::vector<Read*> reads;
  reads.reserve(image.reads.size());
  const uint64_t time = steady_ns();
  for (Read& read : image.reads) {
    read.finish = &Pipeline::finish_read;
    read.context = &image;
    read.times.queued = time;
    reads.push_back(&read);
  }
  image.pending = static_cast<uint32_t>(reads.size());
  image.has_waited = true;
  {
    const std::lock_guard lock(mutex_);
    ++busy_;
  }
  try {
    // The last read, and with it the image, may be finished before submit() returns.
    channel.submit(reads);
  } catch (...) {
    const std::lock_guard lock(mutex_);
    --busy_;
    throw;
  }
}

void Pipeline::finish_read(Read& read, const StoreFault& fault) {
  Image& image = *static_cast<Image*>(read.context);
  Pipeline& pipeline = *image.job->pipeline;
  if (read.times.finished == 0) read.times.finished = steady_ns();
  if (fault) {
    const std::lock_guard lock(pipeline.mutex_);
    if (!image.read_fault) image.read_fault = fault;
  }
  if (image.pending.fetch_sub(1) > 1) return;
  pipeline.arrived(image);
}

void Pipeline::arrived(Image& image) {
  const std::lock_guard lock(mutex_);
  keep_requests(image);
  image.next = nullptr;
  (first_arrived_ == nullptr ? first_arrived_ : last_arrived_->next) = &image;
  last_arrived_ = &image;
  if (--busy_ == 0) idle_.notify_all();
  work_.notify_one();
}

void Pipeline::keep_requests(const Image& image) {
  const auto since = [this](uint64_t time) { return time > begun_ns_ ? time - begun_ns_ : 0; };
  try {
    for (const Read& read : image.reads) {
      const RequestTimes& times = read.times;
      requests_.push_back({image.job->number, image.number, read.offset - image.sample.offset, read.size,
                           since(times.queued), since(times.sent), since(times.answered), since(times.finished),
                           times.attempts, times.shared, times.hedged ? 1u : 0u, image.read_fault ? 1u : 0u,
                           times.cached ? 1u : 0u, 0});
      if (requests_.size() > kMaxRequests) requests_.pop_front();
    }
  } catch (const std::bad_alloc&) {
    // Not kept.
  }
}

size_t Pipeline::requests(l3_request* requests, size_t capacity) const {
  const std::lock_guard lock(mutex_);
  std::copy_n(requests_.begin(), std::min(capacity, requests_.size()), requests);
  return requests_.size();
}

bool Pipeline::take_memory(Job& job) {
  const std::lock_guard lock(memory_mutex_);
  if (job.memory == nullptr)
    job.memory = batches_->acquire(units_.is_ragged() ? std::max<uint64_t>(job.bytes + label_bytes(), 1) : 0);
  return job.memory != nullptr;
}

// Decodes an image that is present, unless a device does. Returns false if a far store must send the file again,
// because it arrived damaged.
bool Pipeline::decode_or_fetch_again(Image& image, Scratch& scratch) {
  const Shard& shard = *set_.shards[image.sample.shard];
  try {
    if (device_ == nullptr) {
      if (image.fault) {
        // It could not be read, or its head is damaged.
      } else if (take_memory(*image.job)) {
        decode(image, scratch);
      } else {
        image.fail(shard, L3_ERROR_MEMORY, "no memory for a batch", L3_DATA_NONE);
      }
      if (is_far_ && image.is_worth_reading_again()) {
        image.forget();
        if (!fetch(image)) return false;
      }
    }
  } catch (const std::bad_alloc&) {
    image.fail(shard, L3_ERROR_MEMORY, "out of memory", L3_DATA_NONE);
  }
  // A device still needs it, unless it is in its own memory.
  if (image.memory.data() != nullptr && device_ == nullptr) files_.release(std::move(image.memory));
  return true;
}

// Called also before a device decodes. The entry's check of the whole file is not verified: libl3 verifies the checks
// of the head and of each payload, which cover everything that is decoded.
l3_status Pipeline::check_head(Image& image, l3_info& info) {
  const Shard& shard = *set_.shards[image.sample.shard];
  l3_error error{};
  const size_t size = static_cast<size_t>(image.is_whole ? image.sample.size : image.prefix);
  if (check_image_head(image.sample, {image.file, size}, info, error) != L3_OK) {
    image.fail(shard, error);
    return error.status;
  }
  l3_decode_options options = l3_decode_options_init();
  options.as_colours = image.tensor->wanted.as_colours;
  return check_channels(image, l3_pixel_bytes(&info, image.file, size, &options));
}

l3_status Pipeline::check_channels(Image& image, uint32_t pixel_bytes) {
  const uint32_t sample_bytes = image.tensor->bits_of(image.sample) > 8 ? 2 : 1;
  if (channels_of(image.tensor->wanted, pixel_bytes / sample_bytes) == image.tensor->channels) return L3_OK;
  image.fail(*set_.shards[image.sample.shard], L3_ERROR_CORRUPT,
             "as colours, the image has other channels than the first one", image.sample.offset);
  return L3_ERROR_CORRUPT;
}

void Pipeline::decode(Image& image, Scratch& scratch) {
  if (image.fault) return;
  const uint64_t begun = now();
  const Shard& shard = *set_.shards[image.sample.shard];
  const Tensor& tensor = *image.tensor;
  l3_decode_options options = l3_decode_options_init();
  options.as_colours = tensor.wanted.as_colours;
  options.limits = options_.limits;
  options.models = models_.data();
  options.model_count = models_.size();
  if (scratch.workspace == nullptr) scratch.workspace = std::make_unique_for_overwrite<uint8_t[]>(L3_WORKSPACE_BYTES);
  l3_file* file = nullptr;  // in the workspace, so it need not be closed
  l3_info info = l3_info_init();
  l3_error error{};
  if (l3_open(image.file, image.sample.size, &options, scratch.workspace.get(), L3_WORKSPACE_BYTES, &file, &error) !=
          L3_OK ||
      l3_file_info(file, &info, &error) != L3_OK) {
    // If the head already differs from the index, that is the reason.
    if (check_head(image, info) == L3_OK) image.fail(shard, error);
    return;
  }
  if (const char* reason = difference(image.sample, info)) {
    return image.fail(shard, {L3_ERROR_CORRUPT, 0, L3_NO_TILE, reason});
  }
  if (check_channels(image, l3_file_pixel_bytes(file)) != L3_OK) return;
  if (!settle(image, image.sample.size)) return;
  uint8_t* out = unit_memory(*image.job, tensor, image.place);
  const uint32_t pixel_bytes = l3_file_pixel_bytes(file);
  const bool is_direct = tensor.writer && tensor.writer->is_same() && !image.steps.mirrored_x;
  const uint64_t decoded_bytes = uint64_t{image.width} * image.height * pixel_bytes;
  if (!is_direct && scratch.pixels.size() < decoded_bytes) scratch.pixels.resize(decoded_bytes);
  if (l3_file_decode_region(file, image.x, image.y, image.width, image.height, is_direct ? out : scratch.pixels.data(),
                            decoded_bytes, 0, &error) != L3_OK) {
    return image.fail(shard, error);
  }
  const uint64_t decoded = now();
  if (tensor.writer && !is_direct) {
    tensor.writer->write(scratch.pixels.data(), image.width, image.height, image.steps.mirrored_x, out);
  } else if (!tensor.writer) {
    const uint32_t sample_bytes = tensor.bits_of(image.sample) > 8 ? 2 : 1;
    const DeviceChange change = change_of(image, info, pixel_bytes / sample_bytes);
    scratch.resampler.run(scratch.pixels.data(), change.bits, change.geometry, change.colours, change.values, out);
  }
  if (!is_direct) image.converting = now() - decoded;
  image.decoding = now() - begun;
}

// Records that these images of one batch are finished, with or without a fault. The last image finishes the batch.
void Pipeline::done(const Claim& images) {
  if (images.count == 0) return;
  Job& job = *images.images[0]->job;
  const uint64_t time = now();
  bool is_last = false;
  {
    const std::lock_guard lock(mutex_);
    l3_batch_times& times = job.times;
    for (size_t i = 0; i < images.count; ++i) {
      const Image& image = *images.images[i];
      if (device_ == nullptr || !is_far_) in_flight_ -= image.sample.size;
      times.fetched = std::max(times.fetched, image.read_begun + image.reading);
      if (image.has_waited) job.arrived = std::max(job.arrived, image.read_begun + image.reading);
      times.reading += image.reading;
      times.decoding += image.decoding;
      times.converting += image.converting;
      times.bytes_read += image.bytes_read;
      if (image.decoding > 0) {
        const uint64_t begun = image.read_begun + image.reading;
        times.decode_begun = times.decode_begun == 0 ? begun : std::min(times.decode_begun, begun);
        times.decoded = std::max(times.decoded, time);  // another thread may have been later, and locked first
      }
    }
    job.left -= images.count;
    is_last = job.left == 0;
  }
  work_.notify_one();  // fewer bytes are in flight
  if (is_last) finish(job);
}

}  // namespace loader
