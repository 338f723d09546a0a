// The open stage: a warp per image. It verifies the descriptor, the head, the sections and the index, and counts the
// tiles of the region. The lanes share the work of the checks and the index; otherwise they all do the same.
#include "container/check.h"
#include "cuda_warp.cuh"
#include "follow_room.h"
#include "launch.h"
#include "models/default_model.h"
#include "stages.h"

namespace l3 {

// The default models, in device memory.
#define L3_MODEL_BYTES(name) alignas(kUnit) __device__ const uint8_t name[]
#define L3_MODEL_TABLE __device__ const DefaultModel kDefaultModelTable[kDefaultModels]
#include "default_models.inc"

constexpr uint32_t kOpenWarps = 1;  // per block: images finish at different times

// Computes checks with a warp.
struct DeviceChecks {
  uint32_t* head_copy;  // in shared memory

  L3_INLINE uint32_t check(const uint8_t* bytes, uint64_t words) const { return check_of<CudaWarp>(bytes, words); }
  L3_INLINE uint32_t check_of_head(const uint8_t* data, uint64_t bytes) const {
    __syncwarp();
    for (uint32_t i = lane_number(); i < bytes / 4; i += kLanes) {
      head_copy[i] = i == header::kHeadCheck / 4 ? 0 : load_u32(data + 4 * i);
    }
    __syncwarp();
    return check(reinterpret_cast<const uint8_t*>(head_copy), bytes / 4);
  }
};

// Tests the descriptor's size and region against the head, as libl3 does.
L3_INLINE Reason plan_region(const l3_cuda_image& image, const Head& head, ImageState& state) {
  if (image.out == nullptr) return Reason::null_argument;
  if (image.width != head.width || image.height != head.height) return Reason::wrong_shape;
  state.x = image.x;
  state.y = image.y;
  state.region_width = image.region_width;
  state.region_height = image.region_height;
  if ((image.x | image.y | image.region_width | image.region_height) == 0) {
    state.region_width = head.width;
    state.region_height = head.height;
  }
  if (state.region_width == 0 || state.region_height == 0 || state.x >= head.width || state.y >= head.height ||
      state.region_width > head.width - state.x || state.region_height > head.height - state.y) {
    return Reason::bad_region;
  }
  state.first_column = state.x / head.tile_width;
  state.first_row = state.y / head.tile_height;
  state.columns = (state.x + state.region_width - 1) / head.tile_width - state.first_column + 1;
  state.rows = (state.y + state.region_height - 1) / head.tile_height - state.first_row + 1;
  return Reason::none;
}

// Samples that will be changed: as they are, one pixel after the other.
L3_INLINE Reason plan_samples(const l3_cuda_image& image, const Head& head, ImageState& state) {
  Output& out = state.out;
  const l3_cuda_change& change = *image.change;
  constexpr uint32_t kFlags = L3_CUDA_COLOURS | L3_CUDA_STAGE;
  if (image.type > L3_CUDA_I64 || image.layout > L3_CUDA_CHW || (image.flags & ~kFlags) != 0 ||
      (image.reserved[0] | image.reserved[1]) != 0 || change.rows.region != state.region_height ||
      change.columns.region != state.region_width || change.scratch == nullptr) {
    return Reason::bad_output;
  }
  out.as_colours = (image.flags & L3_CUDA_COLOURS) != 0 && head.colour == L3_COLOUR_PALETTE;
  out.channels = !out.as_colours ? head.channels : head.find(L3_SECTION_TRANSPARENCY) != nullptr ? 4 : 3;
  if (image.channels != out.channels) return Reason::wrong_channels;
  const uint32_t bits = out.as_colours != 0 ? 8 : head.bits;
  const uint32_t produced = change.mixes != 0 ? kMaxChannels : change.used;
  if (change.bits != bits || change.used == 0 || change.used > out.channels || change.channels == 0 ||
      change.channels > produced || reinterpret_cast<uintptr_t>(image.out) % bytes_of_type(image.type) != 0) {
    return Reason::bad_output;
  }
  out.type = bits > 8 ? L3_CUDA_U16 : L3_CUDA_U8;
  const uint32_t bytes = bytes_of_type(out.type);
  out.pixel_step = static_cast<int64_t>(bytes) * out.channels;
  out.row_step = static_cast<uint64_t>(out.pixel_step) * state.region_width;
  out.channel_step = bytes;
  out.first = static_cast<uint8_t*>(change.scratch);
  out.in_order = !out.as_colours;

  Output& result = state.result;
  const uint32_t width = change.transposed != 0 ? change.rows.total : change.columns.total;
  const uint32_t height = change.transposed != 0 ? change.columns.total : change.rows.total;
  const uint64_t value = bytes_of_type(image.type);
  const bool planar = image.layout == L3_CUDA_CHW;
  result.type = image.type;
  result.channels = change.channels;
  result.first = static_cast<uint8_t*>(image.out);
  result.pixel_step = static_cast<int64_t>(planar ? value : value * change.channels);
  result.row_step = image.row_stride != 0 ? image.row_stride : static_cast<uint64_t>(result.pixel_step) * width;
  result.channel_step = !planar ? value : image.plane_stride != 0 ? image.plane_stride : result.row_step * height;
  for (uint32_t c = 0; c < kMaxChannels; ++c) {
    result.scale[c] = image.scale[c];
    result.bias[c] = image.bias[c];
  }
  state.change = image.change;
  return Reason::none;
}

L3_INLINE Reason plan_output(const l3_cuda_image& image, const Head& head, ImageState& state) {
  Output& out = state.out;
  constexpr uint32_t kFlags = L3_CUDA_FLIP | L3_CUDA_COLOURS | L3_CUDA_STAGE;
  if (image.type > L3_CUDA_F32 || image.layout > L3_CUDA_CHW || (image.flags & ~kFlags) != 0 ||
      (image.reserved[0] | image.reserved[1]) != 0) {
    return Reason::bad_output;
  }
  out.type = image.type;
  out.as_colours = (image.flags & L3_CUDA_COLOURS) != 0 && head.colour == L3_COLOUR_PALETTE;
  out.channels = !out.as_colours ? head.channels : head.find(L3_SECTION_TRANSPARENCY) != nullptr ? 4 : 3;
  if (image.channels != out.channels) return Reason::wrong_channels;
  if (out.type == L3_CUDA_U8 && head.bits > 8) return Reason::bad_output;

  const uint32_t bytes = bytes_of_type(out.type);
  const bool planar = image.layout == L3_CUDA_CHW;
  const uint64_t pixel = planar ? bytes : uint64_t{bytes} * out.channels;
  const uint64_t row = pixel * state.region_width;
  out.row_step = image.row_stride == 0 ? row : image.row_stride;
  if (out.row_step < row || out.row_step > UINT64_MAX >> 24) return Reason::bad_stride;
  const uint64_t plane = out.row_step * (state.region_height - 1) + row;
  out.channel_step = bytes;
  if (planar) {
    out.channel_step = image.plane_stride == 0 ? out.row_step * state.region_height : image.plane_stride;
    if (out.channel_step < plane && out.channels > 1) return Reason::bad_stride;
    if (out.channel_step > UINT64_MAX >> 4) return Reason::bad_stride;
  }
  if ((reinterpret_cast<uintptr_t>(image.out) | out.row_step | out.channel_step) % bytes != 0) {
    return Reason::bad_output;
  }
  const bool mirrored = (image.flags & L3_CUDA_FLIP) != 0;
  out.first = static_cast<uint8_t*>(image.out) + (mirrored ? row - pixel : 0);
  out.pixel_step = mirrored ? -static_cast<int64_t>(pixel) : static_cast<int64_t>(pixel);
  const bool samples_as_they_are = out.type == (head.bits > 8 ? L3_CUDA_U16 : L3_CUDA_U8);
  out.in_order = samples_as_they_are && !out.as_colours && !mirrored && (!planar || out.channels == 1);
  for (uint32_t c = 0; c < kMaxChannels; ++c) {
    out.scale[c] = image.scale[c];
    out.bias[c] = image.bias[c];
  }
  return Reason::none;
}

// Tiles and models have the coded channels only.
L3_INLINE void take_map(const Head& head, ImageState& state) {
  state.channels = head.map.coded;
  state.out.in_order = 0;
  if (head.map.coded == 1 && head.bits <= 8) {
    state.out.as_colours = 1;
  } else {
    state.out.is_mapped = 1;
    state.out.map = head.map;
  }
}

// Checks the entries of the index, 32 at a time, and the end of the file.
L3_INLINE Verdict check_entries(const uint8_t* data, uint64_t size, const Head& head) {
  if (head.is_tiny()) return check_tiny(data, size, head);
  if (size < head.payload_start) return {Reason::section_truncated, size};
  const uint8_t* index = data + head.head_bytes;
  uint64_t next = head.payload_start / kUnit;
  for (uint64_t first = 0; first < head.tile_count; first += kLanes) {
    const uint64_t tile = first + lane_number();
    const bool present = tile < head.tile_count;
    const uint8_t* entry = index + tile * kIndexEntryBytes;
    const uint32_t units = present ? entry_units(entry) : 0;
    const uint32_t sum = running_sum(units);
    Verdict verdict;
    // The sums are correct up to the first wrong entry.
    if (present) verdict = check_entry(entry, head, tile, next + sum - units);
    const uint32_t wrong = __ballot_sync(kAllLanes, !verdict.ok());
    if (wrong != 0) {
      const uint64_t lowest = first + static_cast<uint32_t>(__ffs(static_cast<int>(wrong)) - 1);
      const uint8_t* of_lowest = index + lowest * kIndexEntryBytes;
      const uint32_t before = __shfl_sync(kAllLanes, sum - units, static_cast<int>(lowest - first));
      return check_entry(of_lowest, head, lowest, next + before);
    }
    next += __shfl_sync(kAllLanes, sum, kLanes - 1);
  }
  return check_end(size, next);
}

L3_INLINE void count_tiles(ImageState& state) {
  const uint32_t tiles = state.columns * state.rows;
  uint32_t dense = 0;
  for (uint32_t first = 0; first < tiles; first += kLanes) {
    const uint32_t i = first + lane_number();
    const bool is_dense = i < tiles && needs_model(state.method_at(i));
    dense += static_cast<uint32_t>(__popc(__ballot_sync(kAllLanes, is_dense)));
  }
  state.dense_tiles = dense;
  state.other_tiles = tiles - dense;
}

// Returns a secret number for each word: it depends on the seed of this call.
L3_INLINE uint32_t key_of_word(uint64_t seed, uint32_t i) {
  uint64_t v = (seed ^ i) * 0xD6E8FEB86659FD93u;
  v = (v ^ v >> 32) * 0xD6E8FEB86659FD93u;
  return static_cast<uint32_t>(v >> 32);
}

// Computes the key of a model. Equal models have equal keys. The author of a file does not know the seed, so cannot
// make a model with the key of another one. The key is a sum of products of two keyed words; two different models have
// equal keys once in 2^32 calls.
L3_INLINE ModelKey key_of_model(uint32_t words, const ImageState& state, uint64_t seed) {
  const uint32_t* const word = reinterpret_cast<const uint32_t*>(state.model);
  uint64_t sum = (uint64_t{words} << 8 | state.bits << 3 | state.channels) * 0xD6E8FEB86659FD93u;
  for (uint32_t i = 2 * lane_number(); i < words; i += 2 * kLanes) {
    sum += uint64_t{word[i] + key_of_word(seed, i)} * (word[i + 1] + key_of_word(seed, i + 1));
  }
  for (uint32_t step = 1; step < kLanes; step *= 2) sum += __shfl_xor_sync(kAllLanes, sum, step);
  return sum == 0 ? 1 : sum;  // 0 is an empty place
}

// Returns the model that the caller supplied with the name at `name`, or null.
L3_INLINE const l3_cuda_model* find_named(const Batch& batch, const uint8_t* name) {
  for (uint32_t first = 0; first < batch.model_count; first += kLanes) {
    const uint32_t i = first + lane_number();
    bool same = i < batch.model_count;
    for (uint32_t k = 0; k < kModelNameBytes && same; ++k) same = batch.models[i].name[k] == name[k];
    const uint32_t found = __ballot_sync(kAllLanes, same);
    if (found != 0) return batch.models + first + static_cast<uint32_t>(__ffs(static_cast<int>(found)) - 1);
  }
  return nullptr;
}

// Finds the file's model: in the file, among the default models, or among the caller's. Its content is verified later.
L3_INLINE Verdict find_model(const Batch& batch, const Head& head, ImageState& state) {
  const uint32_t origin = head.model_origin();
  if (origin == L3_MODEL_NONE) return {};
  state.model_place = model_place(head);
  if (origin == L3_MODEL_OWN) {
    const Section* section = head.find(L3_SECTION_MODEL);
    state.model = state.data + section->offset;
    state.model_size = static_cast<uint32_t>(section->size);
    state.model_place = section->offset;
    state.model_is_own = 1;
  } else if (origin == L3_MODEL_DEFAULT) {
    state.model = kDefaultModelTable[head.default_model - 1].bytes;
    state.model_size = kDefaultModelTable[head.default_model - 1].size;
  } else {
    const l3_cuda_model* named = find_named(batch, state.data + head.name_at());
    if (named == nullptr) return {Reason::model_missing, state.model_place};
    state.model = static_cast<const uint8_t*>(named->data);
    state.model_size = static_cast<uint32_t>(named->size);
  }
  if (!ModelKinds::suits(state.model[0], head.bits)) return {Reason::model_unexpected, model_place(head)};
  if (!is_announced(features_of_model(state.model, state.model_size), head.required_features)) {
    return state.verdict_of_model({Reason::model_kind, 0});
  }
  return {};
}

// Enters a model into the table of keys.
L3_INLINE void enter_model(const Batch& batch, uint32_t image, ImageState& state) {
  const uint32_t words = static_cast<uint32_t>(pad_to_unit(state.model_size) / 4);
  const ModelKey key = key_of_model(words, state, batch.seed);
  uint32_t place = 0;
  if (lane_number() == 0) {
    place = static_cast<uint32_t>(key >> 32) & batch.key_mask;
    // The table always has an empty place, since it has two places per image.
    for (uint32_t tried = 0; tried <= batch.key_mask; ++tried) {
      const ModelKey before = atomicCAS(&batch.model_keys[place], ModelKey{0}, key);
      if (before == 0 || before == key) break;
      place = (place + 1) & batch.key_mask;
    }
    atomicMax(&batch.key_owners[place], kMaxImages - image);
  }
  state.key = __shfl_sync(kAllLanes, place, 0);
}

L3_INLINE Verdict open_file(const Batch& batch, uint32_t i, const l3_cuda_image& image, const DeviceChecks& checks,
                            ImageState& state) {
  Head head;
  const Verdict of_head = read_head(checks, state.data, image.size, head);
  if (!of_head.ok()) return of_head;
  state.head_bytes = head.head_bytes;
  state.tiny = head.tiny;
  state.width = head.width;
  state.height = head.height;
  state.channels = head.channels;
  state.bits = head.bits;
  state.tile_width = head.tile_width;
  state.tile_height = head.tile_height;
  state.tiles_across = head.tiles_across;
  Reason reason = plan_region(image, head, state);
  if (reason == Reason::none && image.change == nullptr) reason = plan_output(image, head, state);
  if (reason == Reason::none && image.change != nullptr) {
    reason = batch.changes != 0 ? plan_samples(image, head, state) : Reason::bad_output;
  }
  if (reason != Reason::none) return {reason};
  const Verdict of_index = check_index(checks, state.data, image.size, head);
  if (!of_index.ok()) return of_index;
  const Verdict of_sections = check_sections(checks, state.data, image.size, head);
  if (!of_sections.ok()) return of_sections;
  if (head.map.coded != 0) take_map(head, state);
  const Verdict of_model = find_model(batch, head, state);
  if (!of_model.ok()) return of_model;
  if (state.model != nullptr) enter_model(batch, i, state);
  state.after_model = check_entries(state.data, image.size, head);
  if (!state.after_model.ok()) return {};
  count_tiles(state);
  if (state.model != nullptr) {
    state.follow_room = follow_room(TokenNeeds::of_model(state.model), smaller(state.width, state.tile_width),
                                    smaller(state.height, state.tile_height));
  }
  if (state.out.as_colours != 0) {
    const PixelTable pixels(state.data, head);
    for (uint32_t sample = lane_number(); sample < 256; sample += kLanes) {
      batch.colours[256 * i + sample] = pixels[sample];
    }
  }
  return {};
}

__global__ void __launch_bounds__(kOpenWarps* kLanes) open_kernel(const __grid_constant__ Batch batch) {
  extern __shared__ uint4 shared[];
  const uint32_t i = blockIdx.x;
  const l3_cuda_image image = batch.staged_images != nullptr
                                  ? batch.staged_images[i]
                                  : *reinterpret_cast<const l3_cuda_image*>(batch.images + i * batch.image_bytes);
  ImageState state{};
  state.data = static_cast<const uint8_t*>(image.data);
  state.slot = kNone;
  state.fault = kNoFault;
  const bool is_empty = image.data == nullptr && image.size == 0;
  if (!is_empty) {
    if (image.data == nullptr) {
      state.before_model = {Reason::null_argument};
    } else if (reinterpret_cast<uintptr_t>(image.data) % kUnit != 0) {
      state.before_model = {Reason::unaligned_file};
    } else {
      if ((image.flags & L3_CUDA_STAGE) != 0) {
        const uint64_t end = batch.staged_images != nullptr ? batch.staged_at[i + 1] : kMaxFileBytes;
        if (image.size > kMaxFileBytes || end > batch.staging_bytes) {
          state.before_model = {Reason::over_staging_capacity};
        } else {
          state.data = batch.staging + batch.staged_at[i];
        }
      }
      if (state.before_model.ok()) {
        const DeviceChecks checks{reinterpret_cast<uint32_t*>(shared)};
        state.before_model = open_file(batch, i, image, checks, state);
      }
    }
  }
  if (lane_number() == 0) {
    batch.states[i] = state;
    const bool with_model = state.model != nullptr && state.before_model.ok();
    const uint32_t tiles = state.dense_tiles + state.other_tiles;
    batch.summaries[i] = {tiles, with_model ? state.key : kNone, uint64_t{tiles} * state.follow_room};
  }
}

cudaError_t load_open() { return load(open_kernel); }

cudaError_t open_images(const Batch& batch, cudaStream_t stream) {
  return launch(open_kernel, batch.count, kOpenWarps * kLanes, (kMaxHeadBytes + 15) / 16 * 16, stream, batch);
}

}  // namespace l3
