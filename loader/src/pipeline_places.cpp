// Where a batch has the images of each tensor, and what is done with their samples.
#include <algorithm>
#include <utility>

#include "pipeline.h"

namespace loader {

uint64_t Pipeline::random_of(uint64_t unit, uint64_t epoch) const {
  return random_of_group(options_.seed, epoch, units_.group(unit));
}

// Gives each image of a batch of different sizes its place.
bool Pipeline::place_units(Job& job) const {
  const size_t tensors = units_.tensors().size();
  job.rooms.assign(tensors, {});
  job.places.assign(tensors * job.units, {});
  for (Image& image : job.images) {
    const size_t number = static_cast<size_t>(image.tensor - units_.tensors().data());
    // If the orientation is not known yet, it does not change the number of pixels, but not every one may be possible.
    Steps steps = image.steps;
    if (!image.is_settled && !image.fault) {
      const auto draw = [&](uint32_t orientation) {
        return draw_steps(options_, {image.sample.width, image.sample.height}, orientation, image.random, image.given,
                          steps);
      };
      if (draw(1) != nullptr && draw(6) != nullptr) steps = {};
    }
    const Size size = steps.output();
    job.places[number * job.units + image.place].size = size;
    job.rooms[number].width = std::max(job.rooms[number].width, size.width);
    job.rooms[number].height = std::max(job.rooms[number].height, size.height);
  }
  constexpr uint64_t kOf = 256;
  const bool pads = options_.batching == L3_BATCHING_PAD;
  for (size_t number = 0; number < tensors; ++number) {
    const Tensor& tensor = units_.tensors()[number];
    Size& room = job.rooms[number];
    const uint32_t multiple = std::max(options_.pad_multiple, 1u);
    room = {(room.width + multiple - 1) / multiple * multiple, (room.height + multiple - 1) / multiple * multiple};
    for (uint32_t i = 0; i < job.units; ++i) {
      UnitPlace& place = job.places[number * job.units + i];
      const Size takes = pads ? room : place.size;
      place.at = job.bytes;
      const uint64_t bytes = uint64_t{takes.width} * takes.height * tensor.channels * value_bytes(tensor.wanted.type);
      // Padded images are adjacent, as in one tensor.
      job.bytes += pads ? bytes : (bytes + kOf - 1) / kOf * kOf;
      if (job.bytes > kMaxBatchBytes) return false;
    }
    job.bytes = (job.bytes + kOf - 1) / kOf * kOf;
    if (!pads) room = {};
  }
  for (Image& image : job.images) {
    const size_t number = static_cast<size_t>(image.tensor - units_.tensors().data());
    image.room = job.rooms[number];
  }
  return true;
}

// Draws the steps of an image if its orientation was not known before its file, whose first bytes are present.
bool Pipeline::settle(Image& image, size_t known) const {
  if (!image.is_settled) {
    if (const char* reason = image.settle_by_file(known); reason != nullptr) {
      image.fail(*set_.shards[image.sample.shard], L3_ERROR_ARGUMENT, reason, L3_DATA_NONE);
      return false;
    }
  }
  if (options_.orient == 0 || !units_.is_ragged() || std::exchange(image.tells_size, true)) return true;
  const size_t number = static_cast<size_t>(image.tensor - units_.tensors().data());
  Size& planned = image.job->places[number * image.job->units + image.place].size;
  const Size size = image.steps.output();
  // A list has room for an image that lies on its side.
  const bool may_turn = options_.batching == L3_BATCHING_LIST;
  if (size != planned && !(may_turn && size == Size{planned.height, planned.width})) {
    image.fail(*set_.shards[image.sample.shard], L3_ERROR_CORRUPT,
               "its orientation gives it another size than its batch has room for", L3_DATA_NONE);
    return false;
  }
  planned = size;
  return true;
}

// Where a tensor has a unit.
uint8_t* Pipeline::unit_memory(const Job& job, const Tensor& tensor, uint32_t place) const {
  if (!units_.is_ragged()) return job.memory + tensor.place + place * tensor.image_bytes;
  const size_t number = static_cast<size_t>(&tensor - units_.tensors().data());
  return job.memory + job.places[number * job.units + place].at;
}

uint64_t Pipeline::unit_bytes(const Job& job, const Tensor& tensor, uint32_t place) const {
  if (!units_.is_ragged()) return tensor.image_bytes;
  const size_t number = static_cast<size_t>(&tensor - units_.tensors().data());
  const Size size =
      options_.batching == L3_BATCHING_PAD ? job.rooms[number] : job.places[number * job.units + place].size;
  return uint64_t{size.width} * size.height * tensor.channels * value_bytes(tensor.wanted.type);
}

// What is done with the samples of an image, which has that many channels when it is decoded.
DeviceChange Pipeline::change_of(const Image& image, const l3_info& info, uint32_t channels) const {
  const Tensor& tensor = *image.tensor;
  DeviceChange change;
  change.bits = tensor.bits_of(image.sample);
  change.geometry = image.geometry();
  const Jitter jitter = draw_jitter(options_, image.random);
  const uint32_t out_bits = tensor.wanted.bits != 0 ? tensor.wanted.bits : change.bits;
  change.colours = colours_of(tensor.wanted, channels, change.bits, out_bits, jitter);
  change.colours.is_premultiplied = info.alpha == L3_ALPHA_PREMULTIPLIED;
  change.values = tensor.values();
  change.geometry.set_between(change.bits, change.values.type);
  const uint64_t size = value_bytes(change.values.type);
  const Geometry& geometry = change.geometry;
  change.values.row_stride = size * geometry.width() * (change.values.layout == L3_LAYOUT_CHW ? 1 : change.colours.to);
  change.values.plane_stride = size * geometry.width() * geometry.height();
  return change;
}

}  // namespace loader
