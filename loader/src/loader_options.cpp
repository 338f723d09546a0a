#include "loader_options.h"

#include <algorithm>
#include <thread>

#include "read_engine.h"
#include "share.h"

namespace loader {
namespace {

constexpr uint32_t kMaxBatchSize = 1 << 20, kMaxThreads = 1024, kMaxPrefetch = 1024;
constexpr uint64_t kDefaultBytesInFlight = uint64_t{1} << 28;

bool is_between(float value, float least, float most) { return value >= least && value <= most; }

// What happens to each image.
const char* complete_steps(l3_loader_options& options) {
  if (options.box > L3_BOX_RANDOM) return "unknown kind of box";
  if (options.resize > L3_RESIZE_LONGEST) return "unknown resize";
  if (options.pad > L3_PAD_LETTERBOX) return "unknown pad";
  if (options.pad_mode > L3_PAD_REFLECT) return "unknown pad_mode";
  if (options.turn > L3_TURN_RANDOM) return "unknown turn";
  if (options.batching > L3_BATCHING_PAD) return "unknown batching";
  if (options.bucket_by > L3_BUCKET_ASPECT) return "unknown bucket_by";
  if (options.box == L3_BOX_GIVEN && options.boxes == nullptr) return "boxes is null";
  if (options.box == L3_BOX_RANDOM) {
    if (options.scale[0] == 0 && options.scale[1] == 0) options.scale[0] = 0.08f, options.scale[1] = 1;
    if (options.ratio[0] == 0 && options.ratio[1] == 0) options.ratio[0] = 3.0f / 4, options.ratio[1] = 4.0f / 3;
    if (!is_between(options.scale[0], 0, options.scale[1]) || !is_between(options.scale[1], 1e-6f, 1)) {
      return "scale must be two parts of the area, the smaller one first, above 0 and at most 1";
    }
    if (!is_between(options.ratio[0], 1e-3f, options.ratio[1]) || !is_between(options.ratio[1], 1e-3f, 1e3f)) {
      return "ratio must be two ratios of width to height, the smaller one first, from 0.001 to 1000";
    }
    if (options.batching == L3_BATCHING_STACK && options.resize != L3_RESIZE_EXACT && options.crop == L3_CROP_NONE &&
        options.pad == L3_PAD_NONE) {
      return "random boxes have different sizes: resize them to an exact size, or make batches as lists";
    }
  }
  constexpr uint32_t kMostEdge = 1 << 20;
  const bool is_exact = options.resize == L3_RESIZE_EXACT;
  if (options.resize != L3_RESIZE_NONE && (options.resize_width == 0 || (is_exact && options.resize_height == 0))) {
    return "the size to resize to is empty";
  }
  if (options.pad != L3_PAD_NONE && (options.pad_width == 0 || options.pad_height == 0)) return "the pad is empty";
  if (std::max({options.resize_width, options.resize_height, options.pad_width, options.pad_height,
                options.pad_multiple}) > kMostEdge) {
    return "resized and padded images have at most 2^20 pixels along an edge";
  }
  if (options.pad == L3_PAD_LETTERBOX && options.resize != L3_RESIZE_NONE) {
    return "a letterbox resizes by itself: leave resize out, or pad instead";
  }
  if (options.pad == L3_PAD_LETTERBOX && options.crop != L3_CROP_NONE) {
    return "a letterbox shows the whole image: leave crop out, or pad instead";
  }
  if (options.pad_mode != L3_PAD_VALUE && options.pad == L3_PAD_NONE) {
    return "pad_mode is for pad and letterbox; padded batches are filled with pad_value";
  }
  if (options.pad_multiple != 0 && options.batching != L3_BATCHING_PAD) return "pad_multiple is for padded batches";
  if (options.turn == L3_TURN_RANDOM && options.batching == L3_BATCHING_STACK) {
    const bool is_padded = options.pad != L3_PAD_NONE, is_cut = options.crop != L3_CROP_NONE;
    const uint32_t width = is_padded ? options.pad_width : is_cut ? options.crop_width : options.resize_width;
    const uint32_t height = is_padded ? options.pad_height : is_cut ? options.crop_height : options.resize_height;
    if ((is_padded || is_cut || is_exact) && width != height) {
      return "random turns by 90 degrees need square images: change the size, or make batches as lists";
    }
  }
  if (options.bucket_by != L3_BUCKET_NONE && options.order == L3_ORDER_STORED) {
    return "buckets change the order of units: ask for a shuffled order";
  }
  if (!is_between(options.brightness, 0, 16) || !is_between(options.contrast, 0, 16) ||
      !is_between(options.saturation, 0, 16)) {
    return "brightness, contrast and saturation must be from 0 to 16";
  }
  if (!is_between(options.hue, 0, 0.5f)) return "hue must be from 0 to 0.5";
  if (options.share != nullptr && options.batching != L3_BATCHING_STACK) {
    return "loaders that share batches need images of one size: leave share out, or batch as one array";
  }
  return nullptr;
}

}  // namespace

const char* complete_options(l3_loader_options& options) {
  const uint32_t processors = std::max(std::thread::hardware_concurrency(), 1u);
  const bool on_gpu = options.device == L3_DEVICE_CUDA;
  if (options.device > L3_DEVICE_CUDA) return "unknown kind of device";
  if (options.batch_size == 0) return "batch_size must be at least 1";
  if (options.batch_size > kMaxBatchSize) return "batch_size must be at most 2^20";
  if (options.world_size == 0) options.world_size = 1;
  if (options.rank >= options.world_size) return "the rank must be less than world_size";
  if (options.order > L3_ORDER_WINDOWS) return "unknown order";
  if (options.window == 0) options.window = 8;
  if (options.last_batch > L3_LAST_BATCH_UNEVEN) return "unknown ending of epochs";
  if (options.on_error > L3_ON_ERROR_ZERO) return "unknown on_error";
  if (options.delivery > L3_DELIVERY_ANY) return "unknown delivery";
  if (options.crop > L3_CROP_RANDOM) return "unknown crop";
  if (options.crop != L3_CROP_NONE && (options.crop_width == 0 || options.crop_height == 0)) return "the crop is empty";
  if (const char* reason = complete_steps(options); reason != nullptr) return reason;
  if (options.reading > L3_READING_THREADS) return "unknown way of reading";
  if (options.reading == L3_READING_URING && !has_uring()) return "this system has no io_uring, or does not allow it";
  if (options.threads == 0) options.threads = on_gpu ? std::min(processors, 8u) : processors;
  if (options.threads > kMaxThreads) return "threads must be at most 1024";
  if (options.prefetch == 0) options.prefetch = 3;
  if (options.prefetch > kMaxPrefetch) return "prefetch must be at most 1024 batches";
  if (options.max_bytes_in_flight == 0) options.max_bytes_in_flight = kDefaultBytesInFlight;
  return options.share != nullptr ? complete_share(options) : nullptr;
}

}  // namespace loader
