#include "request.h"

#include <cstring>

namespace l3_nvimgcodec {

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

nvimgcodecProcessingStatus_t Request::open(const Log& log, const nvimgcodecImageDesc_t& image,
                                           const nvimgcodecCodeStreamDesc_t& stream,
                                           const nvimgcodecDecodeParams_t* params) {
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
  if (!file.open(nullptr, error)) {
    log.error(error);
    return status_of(error);
  }
  const nvimgcodecCodeStreamView_t* view = stream_info.code_stream_view;
  const bool orients = params != nullptr && params->apply_exif_orientation != 0;
  const char* refusal = nullptr;
  const nvimgcodecProcessingStatus_t status =
      read_wish(file, info, view != nullptr ? &view->region : nullptr, orients, wish, refusal);
  if (status != NVIMGCODEC_PROCESSING_STATUS_SUCCESS) log.error(refusal);
  return status;
}

nvimgcodecStatus_t get_no_metadata(nvimgcodecDecoder_t, const nvimgcodecCodeStreamDesc_t*, nvimgcodecMetadata_t**,
                                   int* count) {
  if (count == nullptr) return NVIMGCODEC_STATUS_EXTENSION_INVALID_PARAMETER;
  *count = 0;
  return NVIMGCODEC_STATUS_SUCCESS;
}

}  // namespace l3_nvimgcodec
