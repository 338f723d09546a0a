// Finishes batches: handles failed units, and decodes on the device if there is one.
#include <algorithm>
#include <cstring>
#include <system_error>

#include "data_error.h"
#include "pipeline.h"

namespace loader {
namespace {

// The channels that a device decodes.
uint32_t decoded_channels(const Image& image, const l3_info& info) {
  l3_decode_options options = l3_decode_options_init();
  options.as_colours = image.tensor->wanted.as_colours;
  const size_t known = static_cast<size_t>(image.is_whole ? image.sample.size : image.prefix);
  const uint32_t sample_bytes = image.tensor->bits_of(image.sample) > 8 ? 2 : 1;
  return l3_pixel_bytes(&info, image.file, known, &options) / sample_bytes;
}

uint64_t align(uint64_t at) { return (at + 255) / 256 * 256; }

}  // namespace

// All images of a unit get the same. Their files may not agree about the orientation.
void Pipeline::check_orientations(Job& job) const {
  if (options_.orient == 0 || units_.tensors().size() == 1) return;
  const Image* first = nullptr;
  for (Image& image : job.images) {
    if (image.tensor == units_.tensors().data()) first = &image;
    if (image.fault || first->fault || !image.is_settled || !first->is_settled) continue;
    if (image.steps.orientation == first->steps.orientation) continue;
    image.fail(*set_.shards[image.sample.shard], L3_ERROR_CORRUPT,
               "the EXIF orientation is " + std::to_string(image.steps.orientation) +
                   ", that of the first image of its group " + std::to_string(first->steps.orientation) +
                   ": leave orient out, or store both the same way",
               L3_DATA_NONE);
  }
}

// Collects one failure per failed unit, in the order of units.
std::vector<bool> Pipeline::gather_failures(Job& job) {
  std::vector<bool> failed(job.units);
  job.failures.clear();
  for (Image& image : job.images) {
    if (!image.fault || failed[image.place]) continue;
    failed[image.place] = true;
    job.failures.push_back({job.epoch, image.number, *image.fault});
  }
  job.failed = static_cast<uint32_t>(job.failures.size());
  return failed;
}

// Removes units from a batch, except their pixels.
void Pipeline::drop_units(Job& job, const std::vector<bool>& failed) const {
  uint32_t to = 0, repeats = 0;
  for (uint32_t i = 0; i < job.units; ++i) {
    if (failed[i]) continue;
    job.ids[to] = job.ids[i];
    job.labels[to] = job.labels[i];
    ++to;
    repeats += i >= job.units - job.repeats ? 1 : 0;
  }
  if (units_.is_ragged()) {
    std::vector<UnitPlace> kept;
    for (size_t first = 0; first < job.places.size(); first += job.units) {
      size_t moved_to = first;
      for (size_t i = first; i < first + job.units; ++i) {
        if (failed[i - first]) continue;
        // Images of a list stay where they are.
        const size_t at = options_.batching == L3_BATCHING_LIST ? i : moved_to++;
        kept.push_back({job.places[at].at, job.places[i].size});
      }
    }
    job.places = std::move(kept);
  }
  job.ids.resize(to);
  job.labels.resize(to);
  job.units = to;
  job.repeats = repeats;
}

// Finishes a batch on a CPU, whose images are decoded already.
void Pipeline::finish_on_cpu(Job& job) {
  check_orientations(job);
  const std::vector<bool> failed = gather_failures(job);
  if (job.failed == 0 || options_.on_error == L3_ON_ERROR_FAIL) return;
  if (!take_memory(job)) {  // it has none yet if no image was decoded
    (void)!fail(&job.fault.emplace(), L3_ERROR_MEMORY, "", "no memory for a batch");
    return;
  }
  for (const Tensor& tensor : units_.tensors()) {
    uint32_t to = 0;
    for (uint32_t i = 0; i < job.units; ++i) {
      const uint64_t bytes = unit_bytes(job, tensor, i);
      if (options_.on_error == L3_ON_ERROR_ZERO) {
        if (failed[i]) std::memset(unit_memory(job, tensor, i), 0, bytes);
      } else if (!failed[i] && options_.batching != L3_BATCHING_LIST) {
        // Those of a list stay where they are.
        if (to != i) std::memmove(unit_memory(job, tensor, to), unit_memory(job, tensor, i), bytes);
        ++to;
      }
    }
  }
  if (options_.on_error == L3_ON_ERROR_SKIP) return drop_units(job, failed);
  for (uint32_t i = 0; i < job.units; ++i) {
    if (failed[i]) job.labels[i] = -1;
  }
}

// ----------------------------------------------------------------------------------------------------- on a device

// Assigns each file its place in the staging memory of the slot, after the labels.
l3_status Pipeline::place_images(Job& job) {
  uint64_t at = align(options_.batch_size * sizeof(int64_t));
  for (Image& image : job.images) {
    image.at = at;
    at += align(image.sample.size);
  }
  uint8_t* staging = job.slot->staging(at);
  if (staging == nullptr) return L3_ERROR_MEMORY;
  for (Image& image : job.images) image.file = staging + image.at;
  return L3_OK;
}

// Takes a slot for a batch from a far store, and moves its files there. Until then the batch had none, because many
// batches may be on their way. Waits for a slot: other threads return theirs when their batches are decoded.
l3_status Pipeline::take_slot(Job& job) {
  uint64_t bytes = 0;
  std::vector<const uint8_t*> files;
  files.reserve(job.images.size());
  for (const Image& image : job.images) {
    files.push_back(image.file);
    bytes += image.sample.size;
  }
  {
    std::unique_lock lock(mutex_);
    slot_.wait(lock, [this] { return !free_slots_.empty(); });
    job.slot = free_slots_.back();
    free_slots_.pop_back();
  }
  const l3_status status = take_memory(job) ? place_images(job) : L3_ERROR_MEMORY;
  for (size_t i = 0; i < files.size(); ++i) {
    Image& image = job.images[i];
    if (status == L3_OK && !image.fault) {
      const l3_range whole{0, image.sample.size};
      const std::span<const l3_range> parts = image.is_whole ? std::span(&whole, 1) : std::span(image.present);
      for (const l3_range& part : parts) std::memcpy(image.file + part.offset, files[i] + part.offset, part.size);
    }
    files_.release(std::move(image.memory));
  }
  const std::lock_guard lock(mutex_);
  in_flight_ -= bytes;
  if (status != L3_OK) (void)!fail(&job.fault.emplace(), status, "", "no memory for a batch");
  return status;
}

l3_status Pipeline::run(Job& job, const DeviceWork& work, std::span<l3_error> verdicts) {
  l3_error error{};
  DeviceTimes times;
  const uint64_t begun = now();
  l3_status status = job.slot->begin(work, &error);
  if (status == L3_OK) status = job.slot->finish(verdicts, times, &error);
  if (status != L3_OK) {
    return fail(&job.fault.emplace(), status, "", error.reason);
  }
  if (job.times.copy_begun == 0) {
    job.times.copy_begun = begun;
    job.times.copied = begun + times.copied;
    job.times.decode_begun = job.times.copied;
  }
  job.times.decoded = begun + times.decoded;
  return L3_OK;
}

// Decodes images to the given places in the batch, and copies the labels. Images that fail get a fault.
l3_status Pipeline::decode_on_device(Job& job, std::span<Image* const> images, std::span<const uint32_t> places) {
  std::vector<DeviceImage> wanted;
  std::vector<Image*> of_wanted;
  std::deque<DeviceChange> changes;
  for (size_t i = 0; i < images.size(); ++i) {
    Image& image = *images[i];
    DeviceImage next;
    next.info = l3_info_init();
    if (check_head(image, next.info) != L3_OK) continue;
    const Tensor& tensor = *image.tensor;
    if (!settle(image, static_cast<size_t>(image.is_whole ? image.sample.size : image.prefix))) continue;
    next.at = image.at;
    next.size = image.sample.size;
    if (!image.is_whole) next.present = image.present;
    next.x = image.x;
    next.y = image.y;
    next.width = image.width;
    next.height = image.height;
    next.wanted = &tensor.wanted;
    next.channels = tensor.channels;
    next.out = unit_memory(job, tensor, places[i]);
    if (tensor.writer) {
      next.flip = image.steps.mirrored_x;
    } else {
      next.change = &changes.emplace_back(change_of(image, next.info, decoded_channels(image, next.info)));
    }
    wanted.push_back(next);
    of_wanted.push_back(&image);
  }
  check_orientations(job);
  const uint64_t label_bytes = job.labels.size() * sizeof(int64_t);
  uint8_t* const staging = job.slot->staging(0);
  if (label_bytes > 0) std::memcpy(staging, job.labels.data(), label_bytes);
  const DeviceCopy labels{0, label_bytes, job.memory + label_place(job)};
  std::vector<l3_error> verdicts(wanted.size());
  DeviceWork work;
  work.images = wanted;
  if (label_bytes > 0) work.copies = {&labels, 1};
  work.models = models_;
  work.output = job.memory;
  if (const l3_status status = run(job, work, verdicts); status != L3_OK) return status;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (verdicts[i].status != L3_OK) of_wanted[i]->fail(*set_.shards[of_wanted[i]->sample.shard], verdicts[i]);
  }
  return L3_OK;
}

// Reads files again that arrived damaged from a far store, and decodes them again.
l3_status Pipeline::decode_again_on_device(Job& job) {
  std::vector<Image*> images;
  std::vector<uint32_t> places;
  std::vector<Read> reads;
  for (Image& image : job.images) {
    if (!image.is_worth_reading_again()) continue;
    image.forget();
    images.push_back(&image);
    places.push_back(image.place);
    reads.push_back(set_.read_of(image.number, image.sample, 0, image.sample.size, image.file));
    reads.back().again = true;
  }
  if (images.empty()) return L3_OK;
  std::vector<StoreFault> faults(reads.size());
  try {
    set_.store->read(reads, faults);
  } catch (const std::system_error& why) {
    faults.assign(reads.size(), {L3_ERROR_MEMORY, 0, L3_DATA_NONE, why.what()});
  }
  size_t present = 0;
  for (size_t i = 0; i < images.size(); ++i) {
    const Shard& shard = *set_.shards[images[i]->sample.shard];
    if (faults[i]) images[i]->fail(shard, faults[i].status, faults[i].reason, faults[i].offset, faults[i].system_error);
    if (faults[i]) continue;
    images[present] = images[i];
    places[present++] = places[i];
  }
  return decode_on_device(job, {images.data(), present}, {places.data(), present});
}

// Writes zeros to the places of failed units. The files in the staging memory are no longer needed.
l3_status Pipeline::zero_on_device(Job& job, const std::vector<bool>& failed) {
  uint64_t largest = 0;
  for (const Tensor& tensor : units_.tensors()) {
    for (uint32_t i = 0; i < job.units; ++i) largest = std::max(largest, unit_bytes(job, tensor, i));
  }
  const uint64_t label_bytes = job.labels.size() * sizeof(int64_t);
  const uint64_t zeros_at = align(label_bytes);
  uint8_t* const staging = job.slot->staging(zeros_at + largest);
  if (staging == nullptr) {
    return fail(&job.fault.emplace(), L3_ERROR_MEMORY, "", "no pinned memory for a batch");
  }
  std::memcpy(staging, job.labels.data(), label_bytes);
  std::memset(staging + zeros_at, 0, largest);
  std::vector<DeviceCopy> copies{{0, label_bytes, job.memory + label_place(job)}};
  for (const Tensor& tensor : units_.tensors()) {
    for (uint32_t i = 0; i < job.units; ++i) {
      if (failed[i]) copies.push_back({zeros_at, unit_bytes(job, tensor, i), unit_memory(job, tensor, i)});
    }
  }
  DeviceWork work;
  work.copies = copies;
  work.output = job.memory;
  return run(job, work, {});
}

void Pipeline::finish_on_device(Job& job) {
  std::vector<Image*> images;
  std::vector<uint32_t> places;
  const auto collect_intact = [&](const std::vector<bool>& failed, bool packed) {
    images.clear();
    places.clear();
    uint32_t place = 0;
    for (size_t i = 0; i < job.images.size(); ++i) {
      Image& image = job.images[i];
      if (failed[image.place]) continue;
      if (image.tensor == units_.tensors().data() && !images.empty()) ++place;
      images.push_back(&image);
      places.push_back(packed ? place : image.place);
    }
  };
  if (is_far_ && take_slot(job) != L3_OK) return;
  // Images that could not be read are left out.
  collect_intact(gather_failures(job), false);
  if (decode_on_device(job, images, places) != L3_OK) return;
  if (is_far_ && decode_again_on_device(job) != L3_OK) return;
  const std::vector<bool> failed = gather_failures(job);
  if (job.failed == 0 || options_.on_error == L3_ON_ERROR_FAIL) return;
  if (options_.on_error == L3_ON_ERROR_SKIP) {
    // Decode the others again, without gaps between them.
    collect_intact(failed, true);
    drop_units(job, failed);
    if (job.units > 0) (void)!decode_on_device(job, images, places);
    return;
  }
  for (uint32_t i = 0; i < job.units; ++i) {
    if (failed[i]) job.labels[i] = -1;
  }
  (void)!zero_on_device(job, failed);
}

// ----------------------------------------------------------------------------------------------------- either way

void Pipeline::finish(Job& job) {
  try {
    if (device_ == nullptr) {
      finish_on_cpu(job);
    } else {
      finish_on_device(job);
    }
    for (const Tensor& tensor : units_.tensors()) {
      for (uint32_t i = 0; i < job.units; ++i) job.times.bytes_out += unit_bytes(job, tensor, i);
    }
  } catch (const std::bad_alloc&) {
    (void)!fail(&job.fault.emplace(), L3_ERROR_MEMORY, "", "out of memory");
  }
  std::deque<Image> images;  // destroyed without the lock
  {
    const std::lock_guard lock(mutex_);
    images.swap(job.images);
    if (job.slot != nullptr) free_slots_.push_back(std::exchange(job.slot, nullptr));
    job.next = 0;
    job.is_ready = true;
  }
  work_.notify_one();
  slot_.notify_one();
  ready_.notify_all();
}

void Pipeline::discard(Job& job) {
  if (job.memory != nullptr) batches_->release(std::exchange(job.memory, nullptr), nullptr, false);
}

}  // namespace loader
