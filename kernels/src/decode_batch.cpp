// The functions of l3_cuda.h: they test the arguments, lay out the workspace, and start the stages in order.
#include <sys/random.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "call.h"
#include "changes.h"
#include "follow_room.h"
#include "l3/l3_cuda.h"
#include "stages.h"

namespace l3 {
namespace {

constexpr uint64_t kMaxFollowBytes = uint64_t{1} << 40;

uint32_t slots_of(const l3_cuda_capacity& capacity) {
  return capacity.models == 0 ? capacity.images : std::min(capacity.models, capacity.images);
}

bool is_possible(const l3_cuda_capacity& capacity) {
  return capacity.images != 0 && capacity.images <= kMaxImages && capacity.tiles != 0 && capacity.tiles <= kMaxTiles &&
         capacity.staged_bytes <= kMaxFileBytes && capacity.follow_bytes <= kMaxFollowBytes;
}

// Stores the parts of the workspace in `batch`. `zeros` becomes the number of bytes at its start that must be zeroed,
// `all` its total size.
void compute_layout(const l3_cuda_capacity& capacity, void* workspace, Batch& batch, uint64_t& zeros, uint64_t& all) {
  const uint64_t images = capacity.images;
  uint32_t keys = 2;
  while (keys < 2 * images) keys *= 2;
  batch.key_mask = keys - 1;
  batch.slot_count = slots_of(capacity);
  batch.tile_capacity = capacity.tiles;
  batch.follow_capacity = capacity.follow_bytes;
  batch.staging_bytes = (capacity.staged_bytes + kUnit - 1) / kUnit * kUnit;
  Parts parts(workspace);
  parts.take(batch.control, 1);
  parts.take(batch.slot_counts, batch.slot_count);
  parts.take(batch.model_keys, keys);
  parts.take(batch.key_owners, keys);
  zeros = parts.taken();
  parts.take(batch.states, images);
  parts.take(batch.summaries, images);
  parts.take(batch.colours, 256 * images);
  parts.take(batch.slots, batch.slot_count);
  parts.take(batch.dense_tiles, capacity.tiles);
  for (TileJob*& tiles : batch.other_tiles) parts.take(tiles, capacity.tiles);
  // The last chunk of each model may be partly filled, so there may be one more for each model.
  parts.take(batch.chunks, capacity.tiles + batch.slot_count);
  if (batch.staging_bytes != 0) {
    parts.take(batch.staged_images, images);
    parts.take(batch.staged_at, images + 1);
    parts.take(batch.staging, batch.staging_bytes);
  }
  parts.take(batch.follow, capacity.follow_bytes);
  all = parts.taken();
}

// The first bytes of a file's own model, or null. In a tiny file it follows the header.
const uint8_t* own_model(const uint8_t* file, uint64_t size) {
  if (file[3] == kTinyMark) return kTinyHeaderBytes + 4 <= size ? file + kTinyHeaderBytes : nullptr;
  for (uint32_t i = 0; i < load_u16(file + header::kSectionCount); ++i) {
    const uint8_t* const entry = file + kHeaderBytes + i * kSectionEntryBytes;
    const uint64_t offset = uint64_t{load_u32(entry + section_entry::kOffset)} * kUnit;
    if (load_u16(entry + section_entry::kType) == L3_SECTION_MODEL) return offset + 4 <= size ? file + offset : nullptr;
  }
  return nullptr;
}

// Returns a number that the author of a file cannot predict.
uint64_t any_seed() {
  uint64_t seed = 0;
  if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) == static_cast<ssize_t>(sizeof seed)) return seed;
  return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

// Fills in the launch sizes for the current device.
cudaError_t fit_to_device(Batch& batch) {
  int device = 0;
  cudaError_t error = cudaGetDevice(&device);
  if (error == cudaSuccess) error = shape_of_dense(device, batch.chunk_shapes[kPackedTiles]);
  if (error == cudaSuccess) error = shape_of_tokens(device, batch.chunk_shapes[kTokenTiles]);
  if (error == cudaSuccess) error = shape_of_wide_tokens(device, batch.chunk_shapes[kWideTokenTiles]);
  if (error == cudaSuccess) error = shape_of_rows(device, batch.chunk_shapes[kRowTiles]);
  if (error == cudaSuccess) error = shape_of_follow(device, batch.chunk_shapes[kFollowTiles]);
  if (error == cudaSuccess) error = shape_of_bits(device, batch.chunk_shapes[kBitTiles]);
  if (error == cudaSuccess) error = blocks_of_bytes(device, batch.byte_blocks);
  if (error == cudaSuccess) error = blocks_of_words(device, batch.word_blocks);
  return error;
}

cudaError_t decode(Batch& batch, uint64_t zeros, cudaStream_t stream) {
  cudaError_t error = fit_to_device(batch);
  if (error == cudaSuccess) error = cudaMemsetAsync(batch.control, 0, zeros, stream);
  if (error == cudaSuccess && batch.staging != nullptr) error = stage_files(batch, stream);
  using Stage = cudaError_t (*)(const Batch&, cudaStream_t);
  constexpr Stage kStages[] = {open_images,        build_models,        list_tiles,
                               decode_dense_tiles, decode_token_tiles,  decode_wide_token_tiles,
                               decode_row_tiles,   decode_follow_tiles, decode_bit_tiles,
                               decode_byte_tiles,  decode_word_tiles,   change_images,
                               report_results};
  for (const Stage stage : kStages) {
    if (error == cudaSuccess) error = stage(batch, stream);
  }
  return error;
}

}  // namespace
}  // namespace l3

using namespace l3;

l3_status l3_cuda_check_device(l3_error* error) {
  cudaError_t failure = check_for_device();
  Batch batch{};
  if (failure == cudaSuccess) failure = fit_to_device(batch);
  for (const auto load : {load_staging, load_open, load_models, load_lists, load_dense, load_tokens, load_rows,
                          load_follow, load_bits, load_bytes, load_words, load_changes}) {
    if (failure == cudaSuccess) failure = load();
  }
  return give_device(error, failure);
}

l3_status l3_cuda_set_resize(l3_cuda_image* image, l3_cuda_change* change, uint32_t x, uint32_t y, uint32_t width,
                             uint32_t height, uint32_t out_width, uint32_t out_height, uint32_t interpolation,
                             uint32_t flip) {
  constexpr uint32_t kMost = 1 << 20;
  if (image == nullptr || change == nullptr || width == 0 || height == 0 || out_width == 0 || out_height == 0 ||
      out_width > kMost || out_height > kMost || x >= image->width || y >= image->height || width > image->width - x ||
      height > image->height - y || interpolation > L3_CUDA_AREA || change->bits == 0) {
    return L3_ERROR_ARGUMENT;
  }
  const auto plan = [&](uint32_t box, uint32_t out, bool mirrored) {
    base::ResizeAxis axis{};
    axis.box = axis.region = box;
    axis.resized = axis.content = axis.out = axis.total = out;
    axis.filter = box == out ? uint32_t{base::kNearest} : interpolation;
    axis.out_mirrored = mirrored ? 1 : 0;
    return axis;
  };
  base::ResizeAxis rows = plan(height, out_height, false), columns = plan(width, out_width, flip != 0);
  const bool is_float = image->type >= L3_CUDA_F16 && image->type <= L3_CUDA_F32;
  change->limit_between = base::settle_between(rows, columns, change->bits, is_float, false);
  std::memcpy(&change->rows, &rows, sizeof rows);
  std::memcpy(&change->columns, &columns, sizeof columns);
  change->transposed = 0;
  change->channels = change->used = image->channels;
  change->most = static_cast<float>((1u << change->bits) - 1);
  image->x = x;
  image->y = y;
  image->region_width = width;
  image->region_height = height;
  return L3_OK;
}

uint64_t l3_cuda_change_bytes(const l3_cuda_image* image, const l3_cuda_change* change) {
  return image != nullptr && change != nullptr ? lay_out(*change, image->channels).all : 0;
}

l3_error l3_cuda_explain(const l3_cuda_result* result) {
  l3_error error{L3_ERROR_ARGUMENT, 0, L3_NO_TILE, kNullPointer};
  if (result == nullptr) return error;
  error.status = l3_describe_reason(result->reason, &error.reason);
  error.offset = result->offset;
  error.tile = result->tile;
  return error;
}

uint64_t l3_cuda_count_tiles(const l3_info* info, uint32_t region_width, uint32_t region_height) {
  if (info == nullptr || info->tile_width == 0 || info->tile_height == 0) return 0;
  // A region touches the most tiles if it begins at the last column of a tile.
  const auto maximum = [](uint32_t size, uint32_t region, uint32_t tile) {
    const uint64_t all = (uint64_t{size} + tile - 1) / tile;
    return region == 0 ? all : std::min(all, (uint64_t{region} + tile - 2) / tile + 1);
  };
  const bool whole = region_width == 0 && region_height == 0;
  if (!whole && (region_width == 0 || region_height == 0)) return 0;
  return maximum(info->width, region_width, info->tile_width) * maximum(info->height, region_height, info->tile_height);
}

uint64_t l3_cuda_count_follow_bytes(const void* data, size_t size, const l3_model* const* models, size_t model_count,
                                    uint32_t region_width, uint32_t region_height) {
  l3_info info = l3_info_init();
  const l3_limits any{UINT64_MAX, UINT64_MAX, UINT64_MAX};
  if (l3_read_info(data, size, &any, &info, nullptr) != L3_OK) return 0;
  const uint8_t* model = nullptr;
  if (info.model_origin == L3_MODEL_OWN) {
    model = own_model(static_cast<const uint8_t*>(data), size);
  } else if (info.model_origin == L3_MODEL_DEFAULT) {
    size_t model_size = 0;
    if (l3_default_model(info.default_model, &model, &model_size) != L3_OK) return 0;
  } else if (info.model_origin == L3_MODEL_NAMED) {
    for (size_t i = 0; i < model_count && model == nullptr; ++i) {
      l3_model_info known = l3_model_info_init();
      if (l3_describe_model(models[i], &known, nullptr) != L3_OK) continue;
      if (std::memcmp(known.name, info.model_name, sizeof(known.name)) == 0) model = known.bytes;
    }
  }
  if (model == nullptr) return 0;
  const uint32_t room = follow_room(TokenNeeds::of_model(model), std::min(info.width, info.tile_width),
                                    std::min(info.height, info.tile_height));
  return room == 0 ? 0 : room * l3_cuda_count_tiles(&info, region_width, region_height);
}

uint64_t l3_cuda_workspace_size(const l3_cuda_capacity* capacity) {
  if (capacity == nullptr || !is_possible(*capacity)) return 0;
  Batch batch{};
  uint64_t zeros = 0, all = 0;
  compute_layout(*capacity, nullptr, batch, zeros, all);
  return all;
}

l3_status l3_cuda_decode_batch_async(const l3_cuda_batch* batch, l3_error* error, l3_cuda_stream stream) {
  if (batch == nullptr) return give(error, L3_ERROR_ARGUMENT, kNullPointer);
  l3_cuda_batch own{};
  if (batch->struct_size < sizeof(uint32_t) || batch->image_bytes != sizeof(l3_cuda_image)) {
    return give(error, L3_ERROR_ARGUMENT, "struct_size or image_bytes is not set: use l3_cuda_batch_init");
  }
  std::memcpy(&own, batch, std::min<size_t>(batch->struct_size, sizeof(own)));
  if (!is_possible(own.capacity)) return give(error, L3_ERROR_ARGUMENT, kBadCapacity);
  if (own.image_count > own.capacity.images) return give(error, L3_ERROR_ARGUMENT, kTooManyImages);
  if (own.image_count == 0) return give(error, cudaSuccess);
  if (own.images == nullptr || own.results == nullptr || own.workspace == nullptr ||
      (own.models == nullptr && own.model_count != 0)) {
    return give(error, L3_ERROR_ARGUMENT, kNullPointer);
  }
  if (!is_aligned(own.workspace, kAlignment) || !is_aligned(own.images, alignof(l3_cuda_image)) ||
      !is_aligned(own.results, alignof(l3_cuda_result))) {
    return give(error, L3_ERROR_ARGUMENT, kUnaligned);
  }
  Batch call{};
  uint64_t zeros = 0, all = 0;
  compute_layout(own.capacity, own.workspace, call, zeros, all);
  if (own.workspace_size < all) return give(error, L3_ERROR_BUFFER, kSmallWorkspace);
  call.images = reinterpret_cast<const uint8_t*>(own.images);
  call.image_bytes = own.image_bytes;
  call.count = own.image_count;
  call.results = own.results;
  call.models = own.models;
  call.model_count = own.model_count;
  call.changes = own.changes;
  call.seed = any_seed();
  return give(error, decode(call, zeros, stream));
}
