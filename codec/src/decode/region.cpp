// Decodes images and regions.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <mutex>
#include <vector>

#include "api/parallel.h"
#include "decode/file.h"

namespace l3 {
namespace {

// Makes the pixels of a row from coded ones, which lie side by side where the row begins.
template <class Sample>
void make_all_channels(const ChannelMap& map, uint32_t channels, size_t width, uint8_t* row) {
  for (size_t x = width; x-- > 0;) {
    Sample coded[kMaxChannels], pixel[kMaxChannels];
    std::memcpy(coded, row + x * map.coded * sizeof(Sample), map.coded * sizeof(Sample));
    for (uint32_t c = 0; c < channels; ++c) {
      pixel[c] = static_cast<Sample>(map.sample_of(c, [&](uint32_t source) -> uint32_t { return coded[source]; }));
    }
    std::memcpy(row + x * channels * sizeof(Sample), pixel, channels * sizeof(Sample));
  }
}

// Decodes the tiles that a region touches, in parallel.
class RegionDecoder {
 public:
  RegionDecoder(const l3_file& file, const Region& region, uint8_t* out, size_t stride)
      : file_(file),
        head_(file.head),
        region_(region),
        out_(out),
        stride_(stride),
        pixel_bytes_(file.pixel_bytes()),
        adds_fourth_(head_.map.adds_fourth() && head_.bits <= 8),
        first_column_(region.x / head_.tile_width),
        first_row_(region.y / head_.tile_height),
        columns_((region.x + region.width - 1) / head_.tile_width - first_column_ + 1),
        rows_((region.y + region.height - 1) / head_.tile_height - first_row_ + 1) {}

  uint64_t tiles() const { return uint64_t{columns_} * rows_; }

  Verdict run() {
    run_parallel(file_.options.parallel, tiles(), *this);
    return verdict();
  }

  // After all tiles: of the lowest one that failed. Which one fails first in time depends on the threads.
  const Verdict& verdict() const { return verdict_; }

  void operator()(uint64_t i) {
    if (i >= failed_.load(std::memory_order_relaxed)) return;
    const Verdict verdict = decode_tile(i);
    if (verdict.ok()) return;
    const std::lock_guard lock(mutex_);
    if (i >= failed_.load(std::memory_order_relaxed)) return;
    failed_.store(i, std::memory_order_relaxed);
    verdict_ = verdict;
  }

 private:
  // Decodes the i-th tile of the region, counted row by row.
  Verdict decode_tile(uint64_t i) const {
    const uint32_t column = first_column_ + static_cast<uint32_t>(i % columns_);
    const uint32_t row = first_row_ + static_cast<uint32_t>(i / columns_);
    const uint64_t tile = uint64_t{row} * head_.tiles_across + column;
    const TileShape shape = head_.tile_shape(tile);
    TileEntry entry;
    const Verdict verdict = check_tile(file_, tile, entry);
    if (!verdict.ok()) return verdict;
    TileOutput out = output(column * head_.tile_width, row * head_.tile_height, shape);
    out.has_fourth = adds_fourth_ && needs_model(entry.method);
    out.fourth = static_cast<uint8_t>(head_.map.constant[3]);
    const bool is_mapped = head_.map.coded != 0 && out.colours == nullptr && !out.has_fourth && out.pixels != nullptr;
    const Fault fault = is_mapped ? decode_mapped(shape, entry, out) : decode(shape, entry, out);
    const uint64_t offset = static_cast<uint64_t>(entry.payload - file_.data);
    return {fault.reason, offset + fault.at, fault.reason == Reason::none ? L3_NO_TILE : tile};
  }
  Fault decode(const TileShape& shape, const TileEntry& entry, const TileOutput& out) const {
    const Target& target = *file_.target;
    Fault fault;
    if (needs_model(entry.method)) {
      ModelKinds::visit(file_.model->kind, [&]<class Kind>() {
        fault = target.decoder(Kind{})(shape, entry, out, file_.model->of(Kind{}));
      });
    } else {
      fault = target.decode(shape, entry, out);
    }
    return fault;
  }
  // Decodes the coded channels to where rows begin, and makes the others of them.
  Fault decode_mapped(const TileShape& shape, const TileEntry& entry, const TileOutput& out) const {
    const Fault fault = decode(shape, entry, out);
    if (fault.reason != Reason::none) return fault;
    for (uint32_t y = 0; y < out.y1 - out.y0; ++y) {
      uint8_t* const row = out.pixels + y * out.stride;
      if (head_.bits > 8) {
        make_all_channels<uint16_t>(head_.map, head_.channels, out.x1 - out.x0, row);
      } else {
        make_all_channels<uint8_t>(head_.map, head_.channels, out.x1 - out.x0, row);
      }
    }
    return {};
  }

  // The part of the region that lies in the tile at (x, y), relative to the tile.
  TileOutput output(uint32_t x, uint32_t y, const TileShape& shape) const {
    TileOutput part{};
    part.x0 = x < region_.x ? region_.x - x : 0;
    part.y0 = y < region_.y ? region_.y - y : 0;
    part.x1 = smaller(shape.width, region_.x + region_.width - x);
    part.y1 = smaller(shape.height, region_.y + region_.height - y);
    part.stride = stride_;
    part.colours = out_ != nullptr && file_.writes_colours() ? file_.colours : nullptr;
    part.colour_bytes = pixel_bytes_;
    if (out_ != nullptr) {
      part.pixels = out_ + (y + part.y0 - region_.y) * stride_ + size_t{x + part.x0 - region_.x} * pixel_bytes_;
    }
    return part;
  }

  const l3_file& file_;
  const Head& head_;
  Region region_;
  uint8_t* out_;
  size_t stride_;
  uint32_t pixel_bytes_;
  bool adds_fourth_;  // whether decoders of dense tiles do what the channel map says
  uint32_t first_column_, first_row_, columns_, rows_;
  std::atomic<uint64_t> failed_{L3_NO_TILE};  // the lowest tile that failed so far, and its verdict
  std::mutex mutex_;                          // of writers of both
  Verdict verdict_;
};

// Verifies where the pixels of a region shall go, and fills in `step`, the bytes from one row to the next.
Verdict check_output(const l3_file& file, const Region& region, const void* out, size_t out_size, size_t stride,
                     uint64_t& step) {
  if (out == nullptr) return {Reason::null_argument};
  if (!is_inside(region, file.head)) return {Reason::bad_region};
  const uint64_t row = uint64_t{region.width} * file.pixel_bytes();
  step = stride == 0 ? row : stride;
  if (step < row) return {Reason::bad_stride};
  // An image has at most 2^20 rows, so this keeps the products below from overflowing.
  if (step > (UINT64_MAX >> 21)) return {Reason::bad_stride};
  if (uint64_t{region.width} * region.height > file.limits.max_pixels) {
    return {Reason::over_pixel_limit, header::kWidth};
  }
  if (row * region.height > file.limits.max_output_bytes) return {Reason::over_output_limit, header::kWidth};
  const uint64_t needed = step * (region.height - 1) + row;
  if (needed > out_size) return {Reason::buffer_too_small};
  if (overlap(file.data, file.size, out, needed) || overlap(&file, sizeof(file), out, needed) ||
      overlap(file.workspace, file.workspace_size, out, needed)) {
    return {Reason::buffers_overlap};
  }
  return {};
}

// Decodes the tiles of several regions in one loop.
class BatchDecoder {
 public:
  // Verifies the arguments of an image, and adds its tiles.
  Verdict add(l3_batch_image& image) {
    if (image.file == nullptr) return {Reason::null_argument};
    const l3_file& file = *image.file;
    const bool is_whole = image.width == 0 && image.height == 0 && image.x == 0 && image.y == 0;
    const Region region = is_whole ? whole(file.head) : Region{image.x, image.y, image.width, image.height};
    uint64_t step = 0;
    Verdict verdict = check_output(file, region, image.out, image.out_size, image.stride, step);
    if (verdict.ok()) verdict = file.of_model;
    if (!verdict.ok()) return verdict;
    parts_.emplace_back(image, file, region, static_cast<uint8_t*>(image.out), step);
    ends_.push_back(tiles() + parts_.back().decoder.tiles());
    return {};
  }

  void run(const l3_parallel& parallel) {
    run_parallel(parallel, tiles(), *this);
    for (const Part& part : parts_) (void)report(&part.image.error, part.decoder.verdict());
  }

  void operator()(uint64_t i) {
    const auto part = static_cast<size_t>(std::upper_bound(ends_.begin(), ends_.end(), i) - ends_.begin());
    parts_[part].decoder(part == 0 ? i : i - ends_[part - 1]);
  }

 private:
  struct Part {
    Part(l3_batch_image& of, const l3_file& file, const Region& region, uint8_t* out, size_t stride)
        : image(of), decoder(file, region, out, stride) {}
    l3_batch_image& image;
    RegionDecoder decoder;
  };
  uint64_t tiles() const { return ends_.empty() ? 0 : ends_.back(); }

  std::deque<Part> parts_;      // the images that can be decoded
  std::vector<uint64_t> ends_;  // how many tiles each of them and those before it have
};

// Decodes from bytes whose head was read.
l3_status decode(l3_file& file, const Region& region, void* out, size_t out_size, size_t stride, l3_error* error) {
  uint64_t step = 0;
  Verdict verdict = check_output(file, region, out, out_size, stride, step);
  if (verdict.ok()) verdict = file.check_container(NamedModel::required);
  if (verdict.ok()) verdict = decode_tiles(file, region, static_cast<uint8_t*>(out), step);
  return report(error, verdict);
}

}  // namespace

Verdict check_tile(const l3_file& file, uint64_t tile, TileEntry& entry) {
  if (file.head.is_tiny()) {
    entry = read_entry(file.head.tiny, file.data);
    return {};
  }
  // The index was verified, but another thread may have changed it since. Check again what is used.
  uint8_t copy[kIndexEntryBytes];
  const uint64_t at = file.head.head_bytes + tile * kIndexEntryBytes;
  std::memcpy(copy, file.data + at, sizeof(copy));
  const Verdict changed{Reason::index_check, at, tile};
  entry = read_entry(copy, file.data);
  if (check_fields(entry, file.head, file.head.tile_shape(tile), kUnit).reason != Reason::none) return changed;
  const uint64_t offset = static_cast<uint64_t>(entry.payload - file.data);
  if (entry.payload_bytes > file.size || offset > file.size - entry.payload_bytes) return changed;
  if (entry.has_check && file.target->check(entry.payload, entry.payload_bytes / 4) != entry.check) {
    return {Reason::tile_check, offset, tile};
  }
  return {};
}

Verdict decode_tiles(const l3_file& file, const Region& region, uint8_t* out, size_t stride) {
  return RegionDecoder(file, region, out, stride).run();
}

}  // namespace l3

using namespace l3;

l3_status l3_decode(const void* data, size_t size, const l3_decode_options* options, void* out, size_t out_size,
                    size_t stride, l3_error* error) {
  l3_file file;
  Verdict verdict = file.read(data, size, options);
  if (verdict.ok()) verdict = file.check_limits();
  if (!verdict.ok()) return report(error, verdict);
  return decode(file, whole(file.head), out, out_size, stride, error);
}

l3_status l3_decode_region(const void* data, size_t size, uint32_t x, uint32_t y, uint32_t width, uint32_t height,
                           const l3_decode_options* options, void* out, size_t out_size, size_t stride,
                           l3_error* error) {
  l3_file file;
  const Verdict verdict = file.read(data, size, options);
  if (!verdict.ok()) return report(error, verdict);
  return decode(file, {x, y, width, height}, out, out_size, stride, error);
}

l3_status l3_file_decode(const l3_file* file, void* out, size_t out_size, size_t stride, l3_error* error) {
  if (file == nullptr) return fail(error, Reason::null_argument);
  const Verdict verdict = file->check_limits();
  if (!verdict.ok()) return report(error, verdict);
  return l3_file_decode_region(file, 0, 0, file->head.width, file->head.height, out, out_size, stride, error);
}

l3_status l3_file_decode_region(const l3_file* file, uint32_t x, uint32_t y, uint32_t width, uint32_t height, void* out,
                                size_t out_size, size_t stride, l3_error* error) {
  if (file == nullptr) return fail(error, Reason::null_argument);
  const Region region{x, y, width, height};
  uint64_t step = 0;
  Verdict verdict = check_output(*file, region, out, out_size, stride, step);
  if (verdict.ok()) verdict = file->of_model;
  if (verdict.ok()) verdict = decode_tiles(*file, region, static_cast<uint8_t*>(out), step);
  return report(error, verdict);
}

l3_status l3_decode_batch(l3_batch_image* images, size_t count, const l3_parallel* parallel, l3_error* error) {
  if (images == nullptr && count != 0) return fail(error, Reason::null_argument);
  try {
    BatchDecoder batch;
    for (size_t i = 0; i < count; ++i) (void)report(&images[i].error, batch.add(images[i]));
    batch.run(parallel != nullptr ? *parallel : l3_parallel{});
  } catch (const std::bad_alloc&) {
    for (size_t i = 0; i < count; ++i) (void)fail(&images[i].error, Reason::out_of_memory);
  }
  for (size_t i = 0; i < count; ++i) {
    if (images[i].error.status == L3_OK) continue;
    if (error != nullptr) *error = images[i].error;
    return images[i].error.status;
  }
  return succeed(error);
}
