#include "cuda_decoder.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <memory>
#include <new>
#include <optional>
#include <vector>

#include "l3/l3_cuda.hpp"
#include "request.h"

namespace l3_nvimgcodec {
namespace {

constexpr uint64_t kAlignment = 16;  // of files in device memory
constexpr int kMiniBatch = 32;       // images, whose tiles keep a GPU busy

// Makes a device current for its lifetime.
class CurrentDevice {
 public:
  explicit CurrentDevice(int device) {
    is_set_ = cudaGetDevice(&before_) == cudaSuccess && cudaSetDevice(device) == cudaSuccess;
  }
  ~CurrentDevice() {
    if (is_set_) (void)cudaSetDevice(before_);
  }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

  bool is_set() const { return is_set_; }

 private:
  int before_ = 0;
  bool is_set_ = false;
};

// What one thread of nvImageCodec decodes with. Its memory grows with the batches.
struct Slot {
  l3::cuda::DeviceBuffer files;
  std::optional<l3::cuda::Decoder> decoder;
};

struct CudaDecoder {
  const Log& log;
  int device = 0;
  l3_error unusable{};      // why the device cannot decode; its status is L3_OK if it can
  std::vector<Slot> slots;  // of threads -1, 0, 1 ...
};

// An image of a batch.
struct Job {
  Job(const nvimgcodecImageDesc_t& to, const nvimgcodecCodeStreamDesc_t& stream) : image(to), request(stream) {}

  const nvimgcodecImageDesc_t& image;
  Request request;
  nvimgcodecProcessingStatus_t status = NVIMGCODEC_PROCESSING_STATUS_SUCCESS;
  uint64_t at = 0;  // of the file, in device memory
};

// What the kernels write. The CPU decodes the rest: colours that are mixed, other depths, turned images.
nvimgcodecProcessingStatus_t check_wish(const Wish& wish) {
  if (wish.orientation != 1) return NVIMGCODEC_PROCESSING_STATUS_ORIENTATION_UNSUPPORTED;
  return wish.has_stored_samples ? NVIMGCODEC_PROCESSING_STATUS_SUCCESS
                                 : NVIMGCODEC_PROCESSING_STATUS_SAMPLE_FORMAT_UNSUPPORTED;
}

nvimgcodecProcessingStatus_t check_buffer(const Request& request, const Log& log) {
  const nvimgcodecImageInfo_t& info = request.info;
  const size_t sample = request.file.bits() > 8 ? 2 : 1;
  const char* refusal = nullptr;
  if (info.buffer == nullptr || info.buffer_kind != NVIMGCODEC_IMAGE_BUFFER_KIND_STRIDED_DEVICE) {
    refusal = "the result must be in memory of the device";
  } else if (reinterpret_cast<uintptr_t>(info.buffer) % sample != 0 || info.plane_info[0].row_stride % sample != 0) {
    refusal = "the result must begin, and its rows too, at a multiple of the size of a sample";
  }
  if (refusal == nullptr) return NVIMGCODEC_PROCESSING_STATUS_SUCCESS;
  log.error(refusal);
  return NVIMGCODEC_PROCESSING_STATUS_FAIL;
}

l3_cuda_image describe(const Job& job, const uint8_t* files) {
  const Request& request = job.request;
  const nvimgcodecImagePlaneInfo_t& plane = request.info.plane_info[0];
  l3_cuda_image image = l3_cuda_image_init();
  image.data = files + job.at;
  image.size = request.file.bytes().size();
  image.width = request.file.width();
  image.height = request.file.height();
  image.channels = request.file.channels();
  image.x = request.wish.x;
  image.y = request.wish.y;
  image.region_width = request.wish.width;
  image.region_height = request.wish.height;
  image.flags = L3_CUDA_COLOURS;
  image.type = request.file.bits() > 8 ? L3_CUDA_U16 : L3_CUDA_U8;
  image.layout = request.wish.is_planar ? L3_CUDA_CHW : L3_CUDA_HWC;
  image.out = request.info.buffer;
  image.row_stride = plane.row_stride;
  image.plane_stride = uint64_t{plane.row_stride} * plane.height;
  return image;
}

// Makes a decoder that has room for the batch, unless there is one.
bool make_room(Slot& slot, const l3_cuda_capacity& needed, uint64_t file_bytes, l3_error& error) {
  if (slot.files.size() < file_bytes) {
    slot.files = {};
    auto files = l3::cuda::DeviceBuffer::make(file_bytes);
    if (!files) {
      error = files.error();
      return false;
    }
    slot.files = std::move(*files);
  }
  l3_cuda_capacity capacity = needed;
  if (slot.decoder) {
    const l3_cuda_capacity& have = slot.decoder->capacity();
    capacity.images = std::max(capacity.images, have.images);
    capacity.tiles = std::max(capacity.tiles, have.tiles);
    capacity.follow_bytes = std::max(capacity.follow_bytes, have.follow_bytes);
    if (capacity.images == have.images && capacity.tiles == have.tiles && capacity.follow_bytes == have.follow_bytes) {
      return true;
    }
    slot.decoder.reset();
  }
  auto decoder = l3::cuda::Decoder::make(capacity);
  if (!decoder) {
    error = decoder.error();
    return false;
  }
  slot.decoder.emplace(std::move(*decoder));
  return true;
}

// Decodes images that are to be in the order of one stream, and waits for them: only the GPU reads the payloads, so it
// alone knows whether they are damaged.
l3_error run(Slot& slot, const std::vector<Job*>& jobs) {
  l3_error error{};
  l3_cuda_capacity needed{};
  uint64_t file_bytes = 0;
  for (Job* job : jobs) {
    const File& file = job->request.file;
    const Wish& wish = job->request.wish;
    job->at = file_bytes;
    file_bytes += (file.bytes().size() + kAlignment - 1) / kAlignment * kAlignment;
    needed.images += 1;
    needed.tiles += l3_cuda_count_tiles(&file.info(), wish.width, wish.height);
    needed.follow_bytes +=
        l3_cuda_count_follow_bytes(file.bytes().data(), file.bytes().size(), nullptr, 0, wish.width, wish.height);
  }
  if (!make_room(slot, needed, file_bytes, error)) return error;
  cudaStream_t const stream = jobs[0]->request.info.cuda_stream;
  cudaError_t code = cudaSuccess;
  for (size_t i = 0; i < jobs.size(); ++i) {
    const std::span<const uint8_t> bytes = jobs[i]->request.file.bytes();
    if (code == cudaSuccess) {
      code =
          cudaMemcpyAsync(slot.files.bytes() + jobs[i]->at, bytes.data(), bytes.size(), cudaMemcpyHostToDevice, stream);
    }
    slot.decoder->images()[i] = describe(*jobs[i], slot.files.bytes());
  }
  if (code == cudaSuccess) (void)!slot.decoder->decode(needed.images, stream, &error);
  // After a failure too: some of the work may be running, and it reads the files.
  const cudaError_t end = cudaStreamSynchronize(stream);
  if (error.status != L3_OK) return error;
  if (code == cudaSuccess) code = end;
  return code == cudaSuccess ? error : l3::cuda::failure(code);
}

// Decodes the jobs that nothing is wrong with so far.
void decode_jobs(const Log& log, Slot& slot, const std::vector<std::unique_ptr<Job>>& jobs) {
  std::vector<bool> is_done(jobs.size());
  for (size_t i = 0; i < jobs.size(); ++i) {
    std::vector<Job*> together;  // those of the same stream
    for (size_t k = i; k < jobs.size(); ++k) {
      if (is_done[k] || jobs[k]->status != NVIMGCODEC_PROCESSING_STATUS_SUCCESS ||
          jobs[k]->request.info.cuda_stream != jobs[i]->request.info.cuda_stream) {
        continue;
      }
      is_done[k] = true;
      together.push_back(jobs[k].get());
    }
    if (together.empty()) continue;
    const l3_error failure = run(slot, together);
    for (size_t k = 0; k < together.size(); ++k) {
      const l3_error error = failure.status != L3_OK ? failure : slot.decoder->result(static_cast<uint32_t>(k));
      if (error.status == L3_OK) continue;
      log.error(error);
      together[k]->status = status_of(error);
    }
  }
}

// -------------------------------------------------------------------------------------------- called by nvImageCodec

// A device that cannot decode does not fail here: nvImageCodec asks the next decoder if can_decode says no.
nvimgcodecStatus_t create(void* instance, nvimgcodecDecoder_t* to, const nvimgcodecExecutionParams_t* params,
                          const char*) try {
  if (instance == nullptr || to == nullptr || params == nullptr) return NVIMGCODEC_STATUS_EXTENSION_INVALID_PARAMETER;
  auto decoder = std::make_unique<CudaDecoder>(CudaDecoder{*static_cast<const Log*>(instance), 0, {}, {}});
  const nvimgcodecExecutorDesc_t* executor = params->executor;
  const int threads = executor != nullptr ? executor->getNumThreads(executor->instance) : 0;
  decoder->slots.resize(static_cast<size_t>(std::max(threads, 0)) + 2);  // indices of threads are -1 to `threads`
  decoder->device = params->device_id;
  if (params->device_id == NVIMGCODEC_DEVICE_CPU_ONLY) {
    decoder->unusable = {L3_ERROR_DEVICE, 0, L3_NO_TILE, "only the CPU may decode"};
  } else if (params->device_id == NVIMGCODEC_DEVICE_CURRENT) {
    if (const cudaError_t code = cudaGetDevice(&decoder->device); code != cudaSuccess) {
      decoder->unusable = l3::cuda::failure(code);
    }
  }
  if (decoder->unusable.status == L3_OK) {
    const CurrentDevice current(decoder->device);
    if (!current.is_set()) {
      decoder->unusable = {L3_ERROR_DEVICE, 0, L3_NO_TILE, "there is no such device"};
    } else {
      (void)!l3_cuda_check_device(&decoder->unusable);
    }
  }
  *to = reinterpret_cast<nvimgcodecDecoder_t>(decoder.release());
  return NVIMGCODEC_STATUS_SUCCESS;
} catch (...) {
  return NVIMGCODEC_STATUS_EXTENSION_ALLOCATOR_FAILURE;
}

nvimgcodecStatus_t destroy(nvimgcodecDecoder_t handle) {
  if (handle == nullptr) return NVIMGCODEC_STATUS_EXTENSION_INVALID_PARAMETER;
  auto* const decoder = reinterpret_cast<CudaDecoder*>(handle);
  const CurrentDevice current(decoder->device);
  delete decoder;
  return NVIMGCODEC_STATUS_SUCCESS;
}

nvimgcodecProcessingStatus_t can_decode(nvimgcodecDecoder_t handle, const nvimgcodecImageDesc_t* image,
                                        const nvimgcodecCodeStreamDesc_t* stream,
                                        const nvimgcodecDecodeParams_t* params, int) {
  if (handle == nullptr || image == nullptr || stream == nullptr) return NVIMGCODEC_PROCESSING_STATUS_FAIL;
  const auto& decoder = *reinterpret_cast<const CudaDecoder*>(handle);
  if (decoder.unusable.status != L3_OK) return NVIMGCODEC_PROCESSING_STATUS_BACKEND_UNSUPPORTED;
  Request request(*stream);
  const nvimgcodecProcessingStatus_t status = request.open(decoder.log, *image, *stream, params);
  if (status != NVIMGCODEC_PROCESSING_STATUS_SUCCESS) return status;
  // What is wanted in memory of the host, the CPU decodes there.
  if (request.info.buffer_kind == NVIMGCODEC_IMAGE_BUFFER_KIND_STRIDED_HOST) {
    return NVIMGCODEC_PROCESSING_STATUS_BACKEND_UNSUPPORTED;
  }
  return check_wish(request.wish);
}

nvimgcodecStatus_t decode_batch(nvimgcodecDecoder_t handle, const nvimgcodecImageDesc_t** images,
                                const nvimgcodecCodeStreamDesc_t** streams, int count,
                                const nvimgcodecDecodeParams_t* params, int thread) {
  if (handle == nullptr || images == nullptr || streams == nullptr || count < 0) {
    return NVIMGCODEC_STATUS_EXTENSION_INVALID_PARAMETER;
  }
  auto& decoder = *reinterpret_cast<CudaDecoder*>(handle);
  const auto slot = static_cast<size_t>(std::max(thread, -1) + 1);
  const auto fail_all = [&](nvimgcodecProcessingStatus_t status) {
    for (int i = 0; i < count; ++i) images[i]->imageReady(images[i]->instance, status);
    return NVIMGCODEC_STATUS_EXTENSION_EXECUTION_FAILED;
  };
  if (decoder.unusable.status != L3_OK || slot >= decoder.slots.size()) {
    return fail_all(NVIMGCODEC_PROCESSING_STATUS_BACKEND_UNSUPPORTED);
  }
  std::vector<std::unique_ptr<Job>> jobs;
  try {
    const CurrentDevice current(decoder.device);
    if (!current.is_set()) return fail_all(NVIMGCODEC_PROCESSING_STATUS_FAIL);
    for (int i = 0; i < count; ++i) {
      jobs.push_back(std::make_unique<Job>(*images[i], *streams[i]));
      Job& job = *jobs.back();
      job.status = job.request.open(decoder.log, *images[i], *streams[i], params);
      if (job.status == NVIMGCODEC_PROCESSING_STATUS_SUCCESS) job.status = check_wish(job.request.wish);
      if (job.status == NVIMGCODEC_PROCESSING_STATUS_SUCCESS) job.status = check_buffer(job.request, decoder.log);
    }
    decode_jobs(decoder.log, decoder.slots[slot], jobs);
  } catch (...) {
    return fail_all(NVIMGCODEC_PROCESSING_STATUS_FAIL);
  }
  bool all = true;
  for (const auto& job : jobs) {
    all &= job->status == NVIMGCODEC_PROCESSING_STATUS_SUCCESS;
    job->image.imageReady(job->image.instance, job->status);
  }
  return all ? NVIMGCODEC_STATUS_SUCCESS : NVIMGCODEC_STATUS_EXTENSION_EXECUTION_FAILED;
}

nvimgcodecStatus_t decode(nvimgcodecDecoder_t handle, const nvimgcodecImageDesc_t* image,
                          const nvimgcodecCodeStreamDesc_t* stream, const nvimgcodecDecodeParams_t* params,
                          int thread) {
  if (image == nullptr || stream == nullptr) return NVIMGCODEC_STATUS_EXTENSION_INVALID_PARAMETER;
  return decode_batch(handle, &image, &stream, 1, params, thread);
}

nvimgcodecStatus_t get_mini_batch_size(nvimgcodecDecoder_t handle, int* size) {
  if (handle == nullptr || size == nullptr) return NVIMGCODEC_STATUS_EXTENSION_INVALID_PARAMETER;
  *size = kMiniBatch;
  return NVIMGCODEC_STATUS_SUCCESS;
}

}  // namespace

nvimgcodecDecoderDesc_t cuda_decoder_of(Log& log) {
  return {NVIMGCODEC_STRUCTURE_TYPE_DECODER_DESC,
          sizeof(nvimgcodecDecoderDesc_t),
          nullptr,
          &log,
          log.id,
          kCodec,
          NVIMGCODEC_BACKEND_KIND_HYBRID_CPU_GPU,
          create,
          destroy,
          get_no_metadata,
          can_decode,
          decode,
          decode_batch,
          get_mini_batch_size};
}

}  // namespace l3_nvimgcodec
