#include "decoder.h"

#include <memory>
#include <new>

#include "pixels.h"
#include "request.h"

namespace l3_nvimgcodec {
namespace {

// Decodes straight into the result if it has the pixels of the file as they are.
nvimgcodecProcessingStatus_t decode_to(const File& file, const Wish& wish, const Target& target, const Log& log) {
  l3_error error{};
  const size_t row = size_t{wish.width} * file.channels() * (file.bits() > 8 ? 2 : 1);
  if (wish.is_as_stored) {
    const size_t size = target.row * (wish.height - 1) + row;
    if (file.decode(wish.x, wish.y, wish.width, wish.height, target.channel[0], size, target.row, error)) {
      return NVIMGCODEC_PROCESSING_STATUS_SUCCESS;
    }
    log.error(error);
    return status_of(error);
  }
  const size_t size = row * wish.height;
  const std::unique_ptr<uint8_t[]> samples(new (std::nothrow) uint8_t[size]);
  if (samples == nullptr) {
    log.error("not enough memory for the decoded samples");
    return NVIMGCODEC_PROCESSING_STATUS_FAIL;
  }
  if (!file.decode(wish.x, wish.y, wish.width, wish.height, samples.get(), size, 0, error)) {
    log.error(error);
    return status_of(error);
  }
  write_pixels({samples.get(), wish.width, wish.height, file.channels(), file.bits()}, target);
  return NVIMGCODEC_PROCESSING_STATUS_SUCCESS;
}

nvimgcodecStatus_t create(void* instance, nvimgcodecDecoder_t* decoder, const nvimgcodecExecutionParams_t*,
                          const char*) {
  if (instance == nullptr || decoder == nullptr) return NVIMGCODEC_STATUS_EXTENSION_INVALID_PARAMETER;
  *decoder = static_cast<nvimgcodecDecoder_t>(instance);  // it has no state but its log
  return NVIMGCODEC_STATUS_SUCCESS;
}

nvimgcodecStatus_t destroy(nvimgcodecDecoder_t) { return NVIMGCODEC_STATUS_SUCCESS; }

nvimgcodecProcessingStatus_t can_decode(nvimgcodecDecoder_t decoder, const nvimgcodecImageDesc_t* image,
                                        const nvimgcodecCodeStreamDesc_t* stream,
                                        const nvimgcodecDecodeParams_t* params, int) {
  if (decoder == nullptr || image == nullptr || stream == nullptr) return NVIMGCODEC_PROCESSING_STATUS_FAIL;
  return Request(*stream).open(*reinterpret_cast<const Log*>(decoder), *image, *stream, params);
}

nvimgcodecStatus_t decode(nvimgcodecDecoder_t decoder, const nvimgcodecImageDesc_t* image,
                          const nvimgcodecCodeStreamDesc_t* stream, const nvimgcodecDecodeParams_t* params, int) {
  if (decoder == nullptr || image == nullptr || stream == nullptr) {
    return NVIMGCODEC_STATUS_EXTENSION_INVALID_PARAMETER;
  }
  const Log& log = *reinterpret_cast<const Log*>(decoder);
  Request request(*stream);
  nvimgcodecProcessingStatus_t status = request.open(log, *image, *stream, params);
  if (status == NVIMGCODEC_PROCESSING_STATUS_SUCCESS) {
    const nvimgcodecImageInfo_t& info = request.info;
    if (info.buffer == nullptr || info.buffer_kind != NVIMGCODEC_IMAGE_BUFFER_KIND_STRIDED_HOST) {
      log.error("the result must be in memory of the host");
      status = NVIMGCODEC_PROCESSING_STATUS_FAIL;
    } else {
      status = decode_to(request.file, request.wish, target_of(request.wish, info), log);
    }
  }
  image->imageReady(image->instance, status);
  return status == NVIMGCODEC_PROCESSING_STATUS_SUCCESS ? NVIMGCODEC_STATUS_SUCCESS
                                                        : NVIMGCODEC_STATUS_EXTENSION_EXECUTION_FAILED;
}

}  // namespace

nvimgcodecDecoderDesc_t decoder_of(Log& log) {
  return {NVIMGCODEC_STRUCTURE_TYPE_DECODER_DESC,
          sizeof(nvimgcodecDecoderDesc_t),
          nullptr,
          &log,
          log.id,
          kCodec,
          NVIMGCODEC_BACKEND_KIND_CPU_ONLY,
          create,
          destroy,
          get_no_metadata,
          can_decode,
          decode,
          nullptr,
          nullptr};
}

}  // namespace l3_nvimgcodec
