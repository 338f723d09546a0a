#include "decoder.h"

#include <cstring>
#include <memory>
#include <new>

#include "file.h"
#include "pixels.h"
#include "wish.h"

namespace l3_nvimgcodec {
namespace {

nvimgcodecProcessingStatus_t status_of(const l3_error& error) {
  switch (error.status) {
    case L3_ERROR_NOT_L3:
    case L3_ERROR_CORRUPT:
    case L3_ERROR_TRUNCATED: return NVIMGCODEC_PROCESSING_STATUS_IMAGE_CORRUPTED;
    case L3_ERROR_UNSUPPORTED:
    case L3_ERROR_LIMIT:
    case L3_ERROR_MODEL: return NVIMGCODEC_PROCESSING_STATUS_CODESTREAM_UNSUPPORTED;
    default: return NVIMGCODEC_PROCESSING_STATUS_FAIL;
  }
}

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

// Opens the file and finds out what to decode. Then decodes it if `decodes`.
nvimgcodecProcessingStatus_t process(const Log& log, const nvimgcodecImageDesc_t& image,
                                     const nvimgcodecCodeStreamDesc_t& stream, bool orient, bool decodes) {
  nvimgcodecImageInfo_t info{};
  info.struct_type = NVIMGCODEC_STRUCTURE_TYPE_IMAGE_INFO;
  info.struct_size = sizeof(info);
  nvimgcodecCodeStreamInfo_t stream_info{};
  stream_info.struct_type = NVIMGCODEC_STRUCTURE_TYPE_CODE_STREAM_INFO;
  stream_info.struct_size = sizeof(stream_info);
  if (image.getImageInfo(image.instance, &info) != NVIMGCODEC_STATUS_SUCCESS ||
      stream.getCodeStreamInfo(stream.instance, &stream_info) != NVIMGCODEC_STATUS_SUCCESS) {
    return NVIMGCODEC_PROCESSING_STATUS_FAIL;
  }
  if (std::strcmp(stream_info.codec_name, kCodec) != 0) return NVIMGCODEC_PROCESSING_STATUS_CODEC_UNSUPPORTED;

  l3_error error{};
  File file(*stream.io_stream);
  if (!file.open(nullptr, error)) {
    log.error(error);
    return status_of(error);
  }
  const nvimgcodecCodeStreamView_t* view = stream_info.code_stream_view;
  Wish wish;
  const char* refusal = nullptr;
  const nvimgcodecProcessingStatus_t status =
      read_wish(file, info, view != nullptr ? &view->region : nullptr, orient, wish, refusal);
  if (status != NVIMGCODEC_PROCESSING_STATUS_SUCCESS) {
    log.error(refusal);
    return status;
  }
  if (!decodes) return NVIMGCODEC_PROCESSING_STATUS_SUCCESS;
  if (info.buffer == nullptr || info.buffer_kind != NVIMGCODEC_IMAGE_BUFFER_KIND_STRIDED_HOST) {
    log.error("the result must be in memory of the host");
    return NVIMGCODEC_PROCESSING_STATUS_FAIL;
  }
  return decode_to(file, wish, target_of(wish, info), log);
}

bool applies_orientation(const nvimgcodecDecodeParams_t* params) {
  return params != nullptr && params->apply_exif_orientation != 0;
}

nvimgcodecStatus_t create(void* instance, nvimgcodecDecoder_t* decoder, const nvimgcodecExecutionParams_t*,
                          const char*) {
  if (instance == nullptr || decoder == nullptr) return NVIMGCODEC_STATUS_EXTENSION_INVALID_PARAMETER;
  *decoder = static_cast<nvimgcodecDecoder_t>(instance);  // it has no state but its log
  return NVIMGCODEC_STATUS_SUCCESS;
}

nvimgcodecStatus_t destroy(nvimgcodecDecoder_t) { return NVIMGCODEC_STATUS_SUCCESS; }

nvimgcodecStatus_t get_metadata(nvimgcodecDecoder_t, const nvimgcodecCodeStreamDesc_t*, nvimgcodecMetadata_t**,
                                int* count) {
  if (count == nullptr) return NVIMGCODEC_STATUS_EXTENSION_INVALID_PARAMETER;
  *count = 0;
  return NVIMGCODEC_STATUS_SUCCESS;
}

nvimgcodecProcessingStatus_t can_decode(nvimgcodecDecoder_t decoder, const nvimgcodecImageDesc_t* image,
                                        const nvimgcodecCodeStreamDesc_t* stream,
                                        const nvimgcodecDecodeParams_t* params, int) {
  if (decoder == nullptr || image == nullptr || stream == nullptr) return NVIMGCODEC_PROCESSING_STATUS_FAIL;
  return process(*reinterpret_cast<const Log*>(decoder), *image, *stream, applies_orientation(params), false);
}

nvimgcodecStatus_t decode(nvimgcodecDecoder_t decoder, const nvimgcodecImageDesc_t* image,
                          const nvimgcodecCodeStreamDesc_t* stream, const nvimgcodecDecodeParams_t* params, int) {
  if (decoder == nullptr || image == nullptr || stream == nullptr) {
    return NVIMGCODEC_STATUS_EXTENSION_INVALID_PARAMETER;
  }
  const nvimgcodecProcessingStatus_t status =
      process(*reinterpret_cast<const Log*>(decoder), *image, *stream, applies_orientation(params), true);
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
          get_metadata,
          can_decode,
          decode,
          nullptr,
          nullptr};
}

}  // namespace l3_nvimgcodec
