// The paper's decoder, as fast as its scheme allows: a warp decodes two patches side by side, all channels at once. 16
// lanes have four columns each of a patch, so that a lane's samples of a row are whole words, and a warp's row of up to
// 128 pixels is stored side by side.
//
// Files reach a warp through rings of shared memory, one for each patch and channel, that copies without registers fill
// ahead of the rows. Two columns are computed at once, in halves of a register.
#include "paper_l3_cuda.h"

namespace paper {

constexpr uint32_t kLanes = 32;
constexpr uint32_t kAllLanes = 0xFFFFFFFFu;
constexpr uint32_t kPatchLanes = 16;
constexpr uint32_t kColumns = kPatchEdge / kPatchLanes;  // of a lane
constexpr uint32_t kDecodeWarps = 4;                     // of a block
constexpr uint32_t kScanWarps = 8;

// A ring holds what two steps of kStepRows rows take at most, and the bytes around it: while a step is decoded, the
// next one's bytes arrive. A step brings at most a unit for each lane.
constexpr uint32_t kRingBytes = 512;
constexpr uint32_t kRingWords = kRingBytes / 4;
constexpr uint32_t kStepRows = 3;
static_assert(2 * kStepRows * kMaxRowBytes + kUnit + 8 <= kRingBytes);
static_assert(kStepRows * kMaxRowBytes <= kPatchLanes * kUnit);

#if !defined(L3_EMULATED_GPU)  // tests/paper_l3_cuda_test.cpp has its own

__device__ __forceinline__ uint32_t* shared_words() {
  extern __shared__ uint4 shared[];
  return reinterpret_cast<uint32_t*>(shared);
}

// Of each half; numbers up to 255 are in the order of the floating-point numbers that have their bits.
__device__ __forceinline__ uint32_t min_of_halves(uint32_t a, uint32_t b) {
  uint32_t r;
  asm("min.f16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
  return r;
}
__device__ __forceinline__ uint32_t max_of_halves(uint32_t a, uint32_t b) {
  uint32_t r;
  asm("max.f16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
  return r;
}

// For each half all bits, or none: as its top bit is.
__device__ __forceinline__ uint32_t signs_of_halves(uint32_t a) {
  uint32_t r;
  asm("prmt.b32 %0, %1, 0, 0xBB99;" : "=r"(r) : "r"(a));
  return r;
}

// The lower word of two, shifted right by `by` modulo 32.
__device__ __forceinline__ uint32_t shift_right(uint32_t low, uint32_t high, uint32_t by) {
  return __funnelshift_r(low, high, by);
}

// Copies a unit to shared memory, where it is for the calling lane after it has waited.
__device__ __forceinline__ void start_copy(uint32_t* to, const uint8_t* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(static_cast<uint32_t>(__cvta_generic_to_shared(to))),
               "l"(__cvta_generic_to_global(from))
               : "memory");
}
__device__ __forceinline__ void wait_for_copies() { asm volatile("cp.async.wait_all;" ::: "memory"); }

#endif

__device__ inline uint32_t load_u16(const uint8_t* p) { return *reinterpret_cast<const uint16_t*>(p); }

__device__ inline Shape shape_of(const DeviceImage& image, uint32_t channels) {
  return {image.width, image.height, channels};
}

// ---- where patches begin

// A block for each image: adds up the sizes of its patches, and reads its head as read_head does.
__global__ void __launch_bounds__(kScanWarps* kLanes)
    find_patches(const DeviceImage* images, uint32_t channels, uint32_t* offsets, Reason* reasons) {
  uint32_t* const sums = shared_words();  // of the warps
  const DeviceImage& image = images[blockIdx.x];
  const Shape shape = shape_of(image, channels);
  const uint32_t lane = threadIdx.x % kLanes, warp = threadIdx.x / kLanes;
  const uint32_t* const head = reinterpret_cast<const uint32_t*>(image.file);
  constexpr uint32_t kMagicWord = kMagic[0] | kMagic[1] << 8 | kMagic[2] << 16 | kMagic[3] << 24;
  Reason reason = Reason::none;
  if (image.file_bytes < kHeadBytes || head[0] != kMagicWord || head[1] != image.width || head[2] != image.height ||
      head[3] != channels) {
    reason = Reason::head;
  } else if (image.file_bytes < shape.payload_start() || image.file_bytes > kMaxFileBytes) {
    reason = Reason::sizes;
  }
  const uint32_t patches = reason == Reason::none ? static_cast<uint32_t>(shape.patches()) : 0;
  uint64_t at = shape.payload_start();
  // Sizes that are more than the file has are not added up: a number of 32 bits holds all that are.
  for (uint32_t begin = 0; begin < patches && at <= image.file_bytes; begin += kScanWarps * kLanes) {
    const uint32_t patch = begin + threadIdx.x;
    uint32_t size = 0;
    if (patch < patches) {
      const uint8_t* const sizes = image.file + kHeadBytes + 2 * uint64_t{patch} * channels;
      for (uint32_t c = 0; c < channels; ++c) size += load_u16(sizes + 2 * c);
    }
    uint32_t sum = size;
    for (uint32_t step = 1; step < kLanes; step *= 2) {
      const uint32_t before = __shfl_up_sync(kAllLanes, sum, step);
      if (lane >= step) sum += before;
    }
    if (lane == kLanes - 1) sums[warp] = sum;
    __syncthreads();
    uint32_t total = 0;
    for (uint32_t i = 0; i < kScanWarps; ++i) {
      if (i == warp) sum += total;
      total += sums[i];
    }
    __syncthreads();
    if (patch < patches) offsets[image.first_patch + patch] = static_cast<uint32_t>(at) + sum - size;
    at += total;
  }
  if (reason == Reason::none && (at + kUnit - 1) / kUnit * kUnit != image.file_bytes) reason = Reason::sizes;
  if (threadIdx.x == 0) reasons[blockIdx.x] = reason;
}

// ---- patches

// The last image that begins at a pair, or before it; a warp looks together.
__device__ inline uint32_t image_of(const DeviceImage* images, uint32_t count, uint32_t pair) {
  const uint32_t lane = threadIdx.x % kLanes;
  uint32_t first = 0;
  while (count > 1) {
    const uint32_t step = (count + kLanes - 1) / kLanes;
    const bool begun = lane * step < count && images[first + lane * step].first_pair <= pair;
    const uint32_t skipped = (static_cast<uint32_t>(__popc(__ballot_sync(kAllLanes, begun))) - 1) * step;
    first += skipped;
    count = count - skipped < step ? count - skipped : step;
  }
  return first;
}

// A channel of a patch on its way in. Positions are those in the file.
struct Stream {
  uint32_t at;     // of the next row
  uint32_t end;    // of the bytes that belong to it
  uint32_t asked;  // up to here the ring is, or will be, filled; a multiple of kUnit
};

// Asks for more of each channel. Lane c of a patch has the stream of channel c.
template <uint32_t kChannels>
__device__ inline void fill(Stream& stream, uint32_t* rings, const uint8_t* file) {
  const uint32_t lane = threadIdx.x % kLanes, lane_of_patch = lane % kPatchLanes;
  const uint32_t room = stream.at / kUnit * kUnit + kRingBytes;
  const uint32_t limit = min(room, stream.end);
  for (uint32_t c = 0; c < kChannels; ++c) {
    const uint32_t unit = __shfl_sync(kAllLanes, stream.asked, lane - lane_of_patch + c) + kUnit * lane_of_patch;
    const bool wanted = unit < __shfl_sync(kAllLanes, limit, lane - lane_of_patch + c);
    if (wanted) start_copy(rings + c * kRingWords + unit / 4 % kRingWords, file + unit);
  }
  stream.asked = min(stream.asked + kUnit * kPatchLanes, room);
}

// 32 bits of a ring, from a bit on; what is above the ring's bits does not matter.
__device__ inline uint32_t load_bits(const uint32_t* ring, uint32_t bit) {
  return shift_right(ring[bit / 32 % kRingWords], ring[(bit / 32 + 1) % kRingWords], bit);
}

// Four columns of a channel, as 0, 2 and 1, 3 in the halves of two registers.
struct Samples {
  uint32_t even = 0, odd = 0;
};

// Which of three samples is expected, in each half: as paper_l3.cpp's predict() says, or N where `bias` has more than
// the top bit of the half.
__device__ inline uint32_t predict(uint32_t nw, uint32_t n, uint32_t ne, uint32_t bias) {
  const uint32_t low = min_of_halves(nw, ne), high = max_of_halves(nw, ne), sum = nw + ne;
  // Top bits: 3 N is at least 2 low + high, and at most low + 2 high.
  const uint32_t from = signs_of_halves(bias + 3 * n - sum - low), to = signs_of_halves(bias + sum + high - 3 * n);
  const uint32_t below = (n & to) | (low & ~to);
  return (below & from) | (high & ~from);
}
constexpr uint32_t kBias = 0x8000, kBiasForN = 0xC000;

// The pixels of four columns, in memory's order, from the four samples of each channel.
template <uint32_t kChannels>
__device__ inline void interleave(const uint32_t (&planes)[kChannels], uint32_t (&words)[kChannels]) {
  if constexpr (kChannels == 1) {
    words[0] = planes[0];
  } else if constexpr (kChannels == 2) {
    words[0] = __byte_perm(planes[0], planes[1], 0x5140);
    words[1] = __byte_perm(planes[0], planes[1], 0x7362);
  } else if constexpr (kChannels == 3) {
    words[0] = __byte_perm(__byte_perm(planes[0], planes[1], 0x1040), planes[2], 0x3410);
    words[1] = __byte_perm(__byte_perm(planes[1], planes[2], 0x2051), planes[0], 0x3610);
    words[2] = __byte_perm(__byte_perm(planes[0], planes[1], 0x0730), planes[2], 0x7216);
  } else {
    const uint32_t a = __byte_perm(planes[0], planes[1], 0x5140), b = __byte_perm(planes[2], planes[3], 0x5140);
    const uint32_t c = __byte_perm(planes[0], planes[1], 0x7362), d = __byte_perm(planes[2], planes[3], 0x7362);
    words[0] = __byte_perm(a, b, 0x5410);
    words[1] = __byte_perm(a, b, 0x7632);
    words[2] = __byte_perm(c, d, 0x5410);
    words[3] = __byte_perm(c, d, 0x7632);
  }
}

// Stores `bytes` bytes side by side, as whole words of memory but for those at the ends.
template <uint32_t kChannels>
__device__ inline void store_row(uint8_t* to, const uint32_t* from, uint32_t bytes) {
  const uint32_t lane = threadIdx.x % kLanes;
  const uint32_t unaligned = static_cast<uint32_t>(-reinterpret_cast<uintptr_t>(to)) % 4;
  const uint32_t head = unaligned < bytes ? unaligned : bytes;
  const uint32_t words = (bytes - head) / 4, done = head + 4 * words;
  const uint8_t* const from_bytes = reinterpret_cast<const uint8_t*>(from);
  uint32_t* const to_words = reinterpret_cast<uint32_t*>(to + head);
  if (head == 0) {
    for (uint32_t k = 0; k < kChannels; ++k) {
      const uint32_t i = lane + k * kLanes;
      if (i < words) to_words[i] = from[i];
    }
  } else {
    if (lane < head) to[lane] = from_bytes[lane];
    for (uint32_t k = 0; k < kChannels; ++k) {
      const uint32_t i = lane + k * kLanes;
      if (i < words) to_words[i] = shift_right(from[i], from[i + 1], 8 * head);
    }
  }
  if (lane < bytes - done) to[done + lane] = from_bytes[done + lane];
}

// Words of shared memory for each warp: the rings, and two rows on their way out.
PAPER_HOST_AND_DEVICE constexpr uint32_t warp_words(uint32_t channels) {
  return channels * (2 * kRingWords + 2 * kLanes);
}

// A warp for each pair of patches.
template <uint32_t kChannels>
__global__ void __launch_bounds__(kDecodeWarps* kLanes)
    decode_patches(const DeviceImage* images, uint32_t count, uint32_t pairs, const uint32_t* offsets,
                   Reason* reasons) {
  const uint32_t lane = threadIdx.x % kLanes, warp = threadIdx.x / kLanes;
  const uint32_t pair = blockIdx.x * kDecodeWarps + warp;
  if (pair >= pairs) return;
  const uint32_t index = image_of(images, count, pair);
  const DeviceImage image = images[index];
  if (__shfl_sync(kAllLanes, static_cast<uint32_t>(reasons[index]), 0) != 0) return;

  const uint32_t across = shape_of(image, kChannels).across(), pairs_across = (across + 1) / 2;
  const uint32_t patch_row = (pair - image.first_pair) / pairs_across;
  const uint32_t left_patch = 2 * ((pair - image.first_pair) % pairs_across);
  const uint32_t half = lane / kPatchLanes, lane_of_patch = lane % kPatchLanes;
  const bool there = left_patch + half < across;                 // the last pair of a row may have one patch only
  const uint32_t right = image.width - left_patch * kPatchEdge;  // columns from here on
  const uint32_t columns = there ? min(kPatchEdge, right - half * kPatchEdge) : 0;
  const uint32_t rows = min(kPatchEdge, image.height - patch_row * kPatchEdge);
  const uint32_t bytes_out = min(2 * kPatchEdge, right) * kChannels;

  uint32_t* const rings = shared_words() + warp * warp_words(kChannels) + half * kChannels * kRingWords;
  uint32_t* staged = shared_words() + warp * warp_words(kChannels) + 2 * kChannels * kRingWords;
  const uint32_t own = min(lane_of_patch, kChannels - 1);  // the channel whose stream this lane has
  Stream stream{};
  if (there) {
    const uint32_t patch = patch_row * across + left_patch + half;
    const uint8_t* const sizes = image.file + kHeadBytes + 2 * uint64_t{patch} * kChannels;
    stream.end = offsets[image.first_patch + patch];
    for (uint32_t c = 0; c <= own; ++c) {
      stream.at = stream.end;
      stream.end += load_u16(sizes + 2 * c);
    }
    stream.asked = stream.at / kUnit * kUnit;
  }
  fill<kChannels>(stream, rings, image.file);
  fill<kChannels>(stream, rings, image.file);

  const bool first = lane_of_patch == 0;
  const uint32_t last = columns - 1 - kColumns * lane_of_patch;  // the last column, where it is one of this lane's
  const auto bias = [&](uint32_t column) { return (first && column == 0) || column == last ? kBiasForN : kBias; };
  const uint32_t even_bias = bias(0) | bias(2) << 16, odd_bias = bias(1) | bias(3) << 16;

  uint8_t* out =
      image.out + uint64_t{patch_row} * kPatchEdge * image.row_stride + uint64_t{left_patch} * kPatchEdge * kChannels;
  const bool whole = bytes_out == 2 * kPatchEdge * kChannels &&
                     (reinterpret_cast<uintptr_t>(image.out) % 4 | image.row_stride % 4) == 0;
  Samples samples[kChannels];
  uint32_t pixels[kChannels] = {};  // the same, as in memory
  uint32_t most_bits = 0;
  for (uint32_t step = 0; step < rows; step += kStepRows) {
    // What was asked for a step ago is there, and nobody reads what the next bytes overwrite.
    wait_for_copies();
    __syncwarp();
    fill<kChannels>(stream, rings, image.file);
    for (uint32_t y = step; y < rows && y < step + kStepRows; ++y) {
      const uint32_t before = __shfl_up_sync(kAllLanes, pixels[kChannels - 1], 1);
      const uint32_t behind = __shfl_down_sync(kAllLanes, pixels[0], 1);
      // Each lane reads the head of one channel's row, for all: where deltas begin, their base and their width.
      const uint32_t head = load_bits(rings + own * kRingWords, 8 * stream.at);
      most_bits = max(most_bits, head % 16);
      const uint32_t own_bits = min(head % 16, kMaxDeltaBits);
      const uint32_t begin = (8 * stream.at + kRowHeadBits) % (8 * kRingBytes);
      const uint32_t packed = begin | (head << 12 & 0xFF0000) | own_bits << 24;
      stream.at += (kRowHeadBits + columns * own_bits + 7) / 8;
      uint32_t planes[kChannels];
      for (uint32_t c = 0; c < kChannels; ++c) {
        const uint32_t row = __shfl_sync(kAllLanes, packed, lane - lane_of_patch + c);
        const uint32_t bits = row >> 24;
        const uint32_t base = __byte_perm(row, 0, 0x4242);  // in both halves
        const uint32_t mask = ((1u << bits) - 1) * 0x10001;
        const uint32_t deltas = load_bits(rings + c * kRingWords, row + kColumns * lane_of_patch * bits);
        const uint32_t two_and_two = __byte_perm(deltas, deltas << (16 - 2 * bits), 0x7610);
        const uint32_t even = samples[c].even, odd = samples[c].odd;
        const uint32_t nw = __byte_perm(before, odd, 0x5454 - kChannels + c);
        const uint32_t ne = __byte_perm(even, behind, 0x1412 + (c << 8));
        samples[c].even = (predict(nw, even, odd, even_bias) + base + (two_and_two & mask)) & 0x00FF00FF;
        samples[c].odd = (predict(even, odd, ne, odd_bias) + base + (two_and_two >> bits & mask)) & 0x00FF00FF;
        planes[c] = samples[c].even | samples[c].odd << 8;
      }
      interleave(planes, pixels);
      // Rows take turns with the places that they go out from, so that the lanes have to meet only once.
      uint32_t* const place = staged + y % 2 * kChannels * kLanes;
      for (uint32_t k = 0; k < kChannels; ++k) place[lane * kChannels + k] = pixels[k];
      __syncwarp();
      if (whole) {
        for (uint32_t k = 0; k < kChannels; ++k) {
          reinterpret_cast<uint32_t*>(out)[lane + k * kLanes] = place[lane + k * kLanes];
        }
      } else {
        store_row<kChannels>(out, place, bytes_out);
      }
      out += image.row_stride;
    }
  }
  wait_for_copies();  // a damaged file leaves some on their way
  const bool damaged = most_bits > kMaxDeltaBits || stream.at != stream.end;
  if (__ballot_sync(kAllLanes, there && damaged) != 0 && lane == 0) reasons[index] = Reason::patch;
}

// ---- host

Batch plan(std::span<DeviceImage> images, uint32_t channels) {
  uint64_t patches = 0, pairs = 0;
  for (DeviceImage& image : images) {
    const Shape shape{image.width, image.height, channels};
    image.first_patch = static_cast<uint32_t>(patches);
    image.first_pair = static_cast<uint32_t>(pairs);
    patches += shape.patches();
    pairs += shape.patches() / shape.across() * ((shape.across() + 1) / 2);
  }
  Batch batch{};
  if (patches > UINT32_MAX || images.size() > INT32_MAX) return batch;
  batch.count = static_cast<uint32_t>(images.size());
  batch.channels = channels;
  batch.patches = static_cast<uint32_t>(patches);
  batch.pairs = static_cast<uint32_t>(pairs);
  return batch;
}

#if !defined(L3_EMULATED_GPU)

const char* decode_batch_async(const Batch& batch, CUstream_st* stream) {
  if (batch.count == 0) return nullptr;
  using Kernel = void (*)(const DeviceImage*, uint32_t, uint32_t, const uint32_t*, Reason*);
  constexpr Kernel kDecode[] = {decode_patches<1>, decode_patches<2>, decode_patches<3>, decode_patches<4>};
  find_patches<<<batch.count, kScanWarps * kLanes, kScanWarps * 4, stream>>>(batch.images, batch.channels,
                                                                             batch.offsets, batch.reasons);
  const uint32_t blocks = (batch.pairs + kDecodeWarps - 1) / kDecodeWarps;
  kDecode[batch.channels - 1]<<<blocks, kDecodeWarps * kLanes, kDecodeWarps * 4 * warp_words(batch.channels), stream>>>(
      batch.images, batch.count, batch.pairs, batch.offsets, batch.reasons);
  const cudaError_t error = cudaGetLastError();
  return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}

#endif

}  // namespace paper
