#include "parser.h"

#include <cstring>

#include "file.h"

namespace l3_nvimgcodec {
namespace {

nvimgcodecStatus_t status_of(const l3_error& error) {
  switch (error.status) {
    case L3_ERROR_TRUNCATED: return NVIMGCODEC_STATUS_EXTENSION_INCOMPLETE_BITSTREAM;
    case L3_ERROR_NOT_L3:
    case L3_ERROR_CORRUPT: return NVIMGCODEC_STATUS_EXTENSION_BAD_CODE_STREAM;
    case L3_ERROR_UNSUPPORTED:
    case L3_ERROR_LIMIT: return NVIMGCODEC_STATUS_EXTENSION_CODESTREAM_UNSUPPORTED;
    case L3_ERROR_MEMORY: return NVIMGCODEC_STATUS_EXTENSION_ALLOCATOR_FAILURE;
    default: return NVIMGCODEC_STATUS_EXTENSION_INTERNAL_ERROR;
  }
}

nvimgcodecOrientation_t orientation_of(uint32_t exif) {
  // Rotation in degrees, to the left, and then the mirrors; the first entry is not used.
  constexpr int kRotated[] = {0, 0, 0, 180, 0, 90, 270, 270, 90};
  constexpr bool kFlipX[] = {false, false, true, false, false, false, false, false, false};
  constexpr bool kFlipY[] = {false, false, false, false, true, true, false, true, false};
  nvimgcodecOrientation_t orientation{};
  orientation.struct_type = NVIMGCODEC_STRUCTURE_TYPE_ORIENTATION;
  orientation.struct_size = sizeof(orientation);
  orientation.rotated = kRotated[exif];
  orientation.flip_x = kFlipX[exif];
  orientation.flip_y = kFlipY[exif];
  return orientation;
}

nvimgcodecStatus_t can_parse(void*, int* result, nvimgcodecCodeStreamDesc_t* stream) {
  if (result == nullptr || stream == nullptr) return NVIMGCODEC_STATUS_EXTENSION_INVALID_PARAMETER;
  uint8_t start[8];
  const size_t size = read_start(*stream->io_stream, start, sizeof(start));
  l3_info info = l3_info_init();
  const l3_status status = l3_read_info(start, size, nullptr, &info, nullptr);
  *result = size >= 4 && status != L3_ERROR_NOT_L3;
  return NVIMGCODEC_STATUS_SUCCESS;
}

nvimgcodecStatus_t create(void* instance, nvimgcodecParser_t* parser) {
  if (instance == nullptr || parser == nullptr) return NVIMGCODEC_STATUS_EXTENSION_INVALID_PARAMETER;
  *parser = static_cast<nvimgcodecParser_t>(instance);  // it has no state but its log
  return NVIMGCODEC_STATUS_SUCCESS;
}

nvimgcodecStatus_t destroy(nvimgcodecParser_t) { return NVIMGCODEC_STATUS_SUCCESS; }

nvimgcodecStatus_t get_stream_info(nvimgcodecParser_t parser, nvimgcodecCodeStreamInfo_t* info,
                                   nvimgcodecCodeStreamDesc_t* stream) {
  if (parser == nullptr || info == nullptr || stream == nullptr) return NVIMGCODEC_STATUS_EXTENSION_INVALID_PARAMETER;
  std::strcpy(info->codec_name, kCodec);
  info->num_images = 1;
  return stream->io_stream->size(stream->io_stream->instance, &info->size);
}

nvimgcodecStatus_t get_image_info(nvimgcodecParser_t parser, nvimgcodecImageInfo_t* info,
                                  nvimgcodecCodeStreamDesc_t* stream) {
  if (parser == nullptr || info == nullptr || stream == nullptr) return NVIMGCODEC_STATUS_EXTENSION_INVALID_PARAMETER;
  const auto& log = *reinterpret_cast<const Log*>(parser);
  // The framework allocates what this call tells. A few hostile bytes must not make it allocate terabytes.
  const l3_limits default_limits{};
  l3_error error;
  File file(*stream->io_stream);
  if (!file.open(&default_limits, error)) {
    log.error(error);
    return status_of(error);
  }
  constexpr nvimgcodecSampleFormat_t kFormats[] = {NVIMGCODEC_SAMPLEFORMAT_I_Y, NVIMGCODEC_SAMPLEFORMAT_I_YA,
                                                   NVIMGCODEC_SAMPLEFORMAT_I_RGB, NVIMGCODEC_SAMPLEFORMAT_I_RGBA};
  std::strcpy(info->codec_name, kCodec);
  info->sample_format = kFormats[file.channels() - 1];
  info->color_spec = file.channels() < 3 ? NVIMGCODEC_COLORSPEC_GRAY : NVIMGCODEC_COLORSPEC_SRGB;
  info->chroma_subsampling = file.channels() < 3 ? NVIMGCODEC_SAMPLING_GRAY : NVIMGCODEC_SAMPLING_NONE;
  info->orientation = orientation_of(file.orientation());
  info->num_planes = 1;
  nvimgcodecImagePlaneInfo_t& plane = info->plane_info[0];
  plane.width = file.width();
  plane.height = file.height();
  plane.num_channels = file.channels();
  plane.sample_type = file.bits() > 8 ? NVIMGCODEC_SAMPLE_DATA_TYPE_UINT16 : NVIMGCODEC_SAMPLE_DATA_TYPE_UINT8;
  plane.precision = static_cast<uint8_t>(file.bits());
  plane.row_stride = size_t{file.width()} * file.channels() * (file.bits() > 8 ? 2 : 1);
  return NVIMGCODEC_STATUS_SUCCESS;
}

}  // namespace

nvimgcodecParserDesc_t parser_of(Log& log) {
  return {NVIMGCODEC_STRUCTURE_TYPE_PARSER_DESC,
          sizeof(nvimgcodecParserDesc_t),
          nullptr,
          &log,
          log.id,
          kCodec,
          can_parse,
          create,
          destroy,
          get_stream_info,
          get_image_info};
}

}  // namespace l3_nvimgcodec
