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

// The uses of a unit's random numbers.
enum Choice : uint64_t { kChooseColumn = 1, kChooseRow = 2, kChooseFlip = 3 };

uint64_t align(uint64_t at, uint64_t to) { return (at + to - 1) / to * to; }

}  // namespace

struct Pipeline::Scratch {
  std::vector<uint8_t> pixels;
  std::unique_ptr<uint8_t[]> workspace;  // of L3_WORKSPACE_BYTES
};

// Images that one thread begins in turn.
struct Pipeline::Claim {
  std::array<Image*, kMaxClaimed> images{};
  size_t count = 0;
};

Pipeline::Pipeline(const l3_data_set& set, const l3_loader_options& options, std::shared_ptr<Device> device)
    : set_(set),
      options_(options),
      device_(std::move(device)),
      files_(options.max_bytes_in_flight),
      reads_cached_(options.reading == L3_READING_AUTO),
      begun_ns_(steady_ns()) {}

uint64_t Pipeline::now() const { return steady_ns() - begun_ns_; }

l3_status Pipeline::open(l3_data_error* error) {
  if (const l3_status status = units_.open(set_, options_, error); status != L3_OK) return status;
  options_.tensors = nullptr;
  options_.groups = nullptr;
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
    batch_bytes += options_.batch_size * sizeof(int64_t);
    for (uint32_t i = 0; i < options_.prefetch; ++i) {
      l3_error why{};
      slots_.push_back(device_->make_slot(&why));
      if (slots_.back() == nullptr) return fail(error, why.status, "", why.reason);
      free_slots_.push_back(slots_.back().get());
    }
  }
  free_slots_.reserve(slots_.size());
  batches_ = std::make_shared<BatchPool>(batch_bytes, options_.prefetch + 2, device_);
  return start(0, 0, error);
}

Pipeline::~Pipeline() {
  stop_work();
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  work_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  engine_.reset();
  if (batches_ != nullptr) batches_->close();
}

void Pipeline::stop_work() {
  std::unique_lock lock(mutex_);
  stopped_ = true;
  idle_.wait(lock, [this] { return busy_ == 0; });
  first_arrived_ = nullptr;
  while (!jobs_.empty()) {
    const std::unique_ptr<Job> job = std::move(jobs_.front());
    jobs_.pop_front();
    if (job->slot != nullptr) free_slots_.push_back(job->slot);
    discard(*job);
  }
  in_flight_ = 0;
}

l3_status Pipeline::start(uint64_t epoch, uint64_t position, l3_data_error* error) {
  if (position > units_.count()) {
    return fail(error, L3_ERROR_ARGUMENT, "",
                "position " + std::to_string(position) + " is after the end of the epoch, which has " +
                    std::to_string(units_.count()) + " units");
  }
  stop_work();
  const std::lock_guard lock(mutex_);
  epoch_ = epoch;
  order_.emplace(units_.count(), units_.shards(),
                 OrderOptions{static_cast<l3_order>(options_.order), options_.window, options_.seed}, epoch);
  next_position_ = position;
  next_number_ = 0;
  stopped_ = false;
  work_.notify_all();
  return L3_OK;
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
  const auto is_over = [this] { return jobs_.empty() && !opening_ && steps_from(sharing_, next_position_) == 0; };
  const auto there = [&] {
    return interrupted_ || out_of_memory_ || (!jobs_.empty() && jobs_.front()->is_ready) || is_over();
  };
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
  if (!jobs_.empty() && jobs_.front()->is_ready) {
    std::unique_ptr<Job> job = std::move(jobs_.front());
    jobs_.pop_front();
    work_.notify_one();  // another job can be opened
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
  return !opening_ && !out_of_memory_ && jobs_.size() < options_.prefetch && steps_from(sharing_, next_position_) > 0 &&
         (device_ == nullptr || !free_slots_.empty());
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
  while (job.next < job.images.size() && claimed.count < kMaxClaimed) {
    Image& image = job.images[job.next];
    if (claimed.count > 0 && bytes + image.sample.size > kMaxBytesClaimed) break;
    bytes += image.sample.size;
    claimed.images[claimed.count++] = &image;
    ++job.next;
  }
  in_flight_ += bytes;
  return claimed;
}

void Pipeline::work() {
  Scratch scratch;
  std::unique_lock lock(mutex_);
  for (;;) {
    Job* job = nullptr;
    work_.wait(lock, [&] {
      if (ends_) return true;
      if (stopped_) return false;
      job = job_to_begin();
      return first_arrived_ != nullptr || job != nullptr || can_open();
    });
    if (ends_) return;
    ++busy_;
    if (first_arrived_ != nullptr) {
      Image& image = *first_arrived_;
      first_arrived_ = image.next_arrived;
      lock.unlock();
      if (read_and_decode(image, scratch)) done({{&image}, 1});
    } else if (can_open()) {
      // Opened before other work runs out, so that no thread waits for it.
      work_.notify_one();  // there may be images to begin
      open_next(lock);
    } else {
      const Claim claimed = claim(*job);
      work_.notify_one();  // there may be more work
      lock.unlock();
      Claim finished;
      for (size_t i = 0; i < claimed.count; ++i) {
        if (begin(*claimed.images[i], scratch)) finished.images[finished.count++] = claimed.images[i];
      }
      done(finished);
    }
    lock.lock();
    if (--busy_ == 0) idle_.notify_all();
  }
}

// Releases `lock`.
void Pipeline::open_next(std::unique_lock<std::mutex>& lock) {
  try {
    jobs_.push_back(std::make_unique<Job>());
  } catch (const std::bad_alloc&) {
    out_of_memory_ = true;
    lock.unlock();
    return ready_.notify_all();
  }
  opening_ = true;
  Job& job = *jobs_.back();
  const Share share = share_at(sharing_, next_position_);
  next_position_ = share.next;
  job.pipeline = this;
  job.epoch = epoch_;
  job.number = next_number_++;
  job.position = share.next;
  if (device_ != nullptr) {
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
    job.memory = batches_->acquire();
    if (job.memory == nullptr) return fail_job(L3_ERROR_MEMORY, "no memory for a batch");
    job.units = static_cast<uint32_t>(share.own + share.repeats);
    job.repeats = static_cast<uint32_t>(share.repeats);
    for (uint32_t i = 0; i < job.units; ++i) {
      const uint64_t place = i < share.own ? share.first + i : (share.first_repeat + i - share.own) % units_.count();
      const uint64_t unit = order_->unit_at(place);
      const uint64_t random = random_of_group(options_.seed, epoch_, units_.group(unit));
      const auto choose = [&](Choice what, uint64_t count) { return scale_to(hash_of(random, what), count); };
      for (const Tensor& tensor : units_.tensors()) {
        Image& image = job.images.emplace_back();
        image.job = &job;
        image.place = i;
        image.tensor = &tensor;
        image.number = units_.sample_of(unit, tensor, image.sample);
        const uint32_t columns = image.sample.width - tensor.width, rows = image.sample.height - tensor.height;
        if (options_.crop == L3_CROP_RANDOM) {
          image.x = static_cast<uint32_t>(choose(kChooseColumn, uint64_t{columns} + 1));
          image.y = static_cast<uint32_t>(choose(kChooseRow, uint64_t{rows} + 1));
        } else {
          image.x = columns / 2;
          image.y = rows / 2;
        }
        image.is_whole = columns == 0 && rows == 0;
        image.flip = options_.flip != 0 && choose(kChooseFlip, 2) == 1;
        if (&tensor == units_.tensors().data()) {
          job.ids.push_back(static_cast<int64_t>(image.number));
          job.labels.push_back(image.sample.label == L3_NO_LABEL ? -1 : static_cast<int64_t>(image.sample.label));
        }
      }
    }
    job.left = job.images.size();
    if (device_ != nullptr && place_images(job) != L3_OK) fail_job(L3_ERROR_MEMORY, "no pinned memory for a batch");
  } catch (const std::bad_alloc&) {
    fail_job(L3_ERROR_MEMORY, "out of memory");
  }
}

// Assigns each file its place in the staging memory of the slot, after the labels.
l3_status Pipeline::place_images(Job& job) {
  uint64_t at = align(options_.batch_size * sizeof(int64_t), 256);
  for (Image& image : job.images) {
    image.at = at;
    at += align(image.sample.size, 256);
  }
  uint8_t* staging = job.slot->staging(at);
  if (staging == nullptr) return L3_ERROR_MEMORY;
  for (Image& image : job.images) image.file = staging + image.at;
  return L3_OK;
}

// ---------------------------------------------------------------------------------------------------- one image

bool Pipeline::begin(Image& image, Scratch& scratch) {
  const Shard& shard = *set_.shards[image.sample.shard];
  image.read_begun = now();
  image.use = ShardFile::Use(shard.file);
  if (image.use.descriptor() < 0) {
    const FileFault fault{{}, image.use.error()};
    (void)!fail(&image.fault.emplace(), shard.file.path(), fault);
  } else if (image.file == nullptr) {
    image.room = files_.acquire(image.sample.size);
    image.file = image.room.data();
    if (image.file == nullptr) image.fail(shard, L3_ERROR_MEMORY, "out of memory", L3_DATA_NONE);
  }
  return read_and_decode(image, scratch);
}

// Reads what the system has cached, submits the other reads, and decodes once everything is present. Returns whether
// the image is finished.
bool Pipeline::read_and_decode(Image& image, Scratch& scratch) {
  const Shard& shard = *set_.shards[image.sample.shard];
  if (const int error = image.read_error.load(); error == kFileEnds) {
    image.fail(shard, L3_ERROR_TRUNCATED, "the file ends too early", image.sample.offset);
  } else if (error != 0) {
    (void)!fail(&image.fault.emplace(), shard.file.path(), FileFault{{}, error});
  }
  try {
    for (;;) {
      plan_reads(image, shard);
      if (image.reads.empty()) break;
      bool is_all_there = true;
      for (Read& read : image.reads) {
        image.bytes_read += read.size;
        bool supported = true;
        const uint64_t got = reads_cached_.load(std::memory_order_relaxed)
                                 ? read_cached(image.use.descriptor(), read.offset, read.to, read.size, supported)
                                 : 0;
        if (!supported) reads_cached_.store(false, std::memory_order_relaxed);
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
    image.use = {};
    if (device_ == nullptr) decode(image, scratch);
  } catch (const std::bad_alloc&) {
    image.fail(shard, L3_ERROR_MEMORY, "out of memory", L3_DATA_NONE);
  } catch (const std::system_error&) {
    image.fail(shard, L3_ERROR_MEMORY, "cannot start a thread for reading", L3_DATA_NONE);
  }
  image.use = {};
  if (image.room.data() != nullptr) files_.release(std::move(image.room));
  return true;
}

ReadEngine& Pipeline::engine() {
  const std::lock_guard lock(engine_mutex_);
  if (engine_ == nullptr && options_.reading != L3_READING_THREADS) engine_ = make_uring_engine();
  if (engine_ == nullptr) engine_ = make_thread_engine();
  return *engine_;
}

void Pipeline::submit(Image& image) {
  ReadEngine& engine = this->engine();
  std::erase_if(image.reads, [](const Read& read) { return read.size == 0; });
  image.pending = static_cast<uint32_t>(image.reads.size());
  for (Read& read : image.reads) {
    read.descriptor = image.use.descriptor();
    read.finish = &Pipeline::finish_read;
    read.context = &image;
  }
  {
    const std::lock_guard lock(mutex_);
    ++busy_;
  }
  // The last read, and with it the image, may be finished before submit() returns.
  const std::vector<Read>::iterator last = image.reads.end() - 1;
  for (auto read = image.reads.begin(); read != last; ++read) engine.submit(*read);
  engine.submit(*last);
}

void Pipeline::finish_read(Read& read, int error) {
  Image& image = *static_cast<Image*>(read.context);
  if (error != 0) image.read_error = error;
  if (image.pending.fetch_sub(1) > 1) return;
  image.job->pipeline->arrived(image);
}

void Pipeline::arrived(Image& image) {
  const std::lock_guard lock(mutex_);
  image.next_arrived = nullptr;
  (first_arrived_ == nullptr ? first_arrived_ : last_arrived_->next_arrived) = &image;
  last_arrived_ = &image;
  if (--busy_ == 0) idle_.notify_all();
  work_.notify_one();
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
  const uint32_t sample_bytes = image.tensor->bits > 8 ? 2 : 1;
  if (pixel_bytes == image.tensor->channels * sample_bytes) return L3_OK;
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
  uint8_t* out = image.job->memory + tensor.place + image.place * tensor.image_bytes;
  const bool is_direct = tensor.writer->is_same() && !image.flip;
  const uint64_t decoded_bytes = uint64_t{tensor.width} * tensor.height * tensor.channels * (tensor.bits > 8 ? 2 : 1);
  if (!is_direct && scratch.pixels.size() < decoded_bytes) scratch.pixels.resize(decoded_bytes);
  if (l3_file_decode_region(file, image.x, image.y, tensor.width, tensor.height,
                            is_direct ? out : scratch.pixels.data(), decoded_bytes, 0, &error) != L3_OK) {
    return image.fail(shard, error);
  }
  if (!is_direct) tensor.writer->write(scratch.pixels.data(), tensor.width, tensor.height, image.flip, out);
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
      in_flight_ -= image.sample.size;
      times.fetched = std::max(times.fetched, image.read_begun + image.reading);
      times.reading += image.reading;
      times.decoding += image.decoding;
      times.bytes_read += image.bytes_read;
      if (image.decoding > 0) {
        const uint64_t begun = image.read_begun + image.reading;
        times.decode_begun = times.decode_begun == 0 ? begun : std::min(times.decode_begun, begun);
        times.decoded = time;
      }
    }
    job.left -= images.count;
    is_last = job.left == 0;
  }
  work_.notify_one();  // fewer bytes are in flight
  if (is_last) finish(job);
}

}  // namespace loader
