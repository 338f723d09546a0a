// The way of an image through a pipeline: its reads, and decoding it on a processor.
#include <algorithm>
#include <memory>
#include <system_error>

#include "data_error.h"
#include "image_head.h"
#include "pipeline.h"
#include "steady_clock.h"

namespace loader {
namespace {

constexpr size_t kMaxRequests = 65536;

}  // namespace

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
