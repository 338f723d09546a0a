#include "log.h"

#include <cinttypes>
#include <cstdio>

namespace l3_nvimgcodec {

void Log::error(const char* text) const {
  nvimgcodecDebugMessageData_t message{};
  message.struct_type = NVIMGCODEC_STRUCTURE_TYPE_DEBUG_MESSAGE_DATA;
  message.struct_size = sizeof(message);
  message.message = text;
  message.codec = kCodec;
  message.codec_id = id;
  message.codec_version = l3_version();
  framework->log(framework->instance, NVIMGCODEC_DEBUG_MESSAGE_SEVERITY_ERROR,
                 NVIMGCODEC_DEBUG_MESSAGE_CATEGORY_GENERAL, &message);
}

void Log::error(const l3_error& error) const {
  char text[256];
  if (error.status == L3_ERROR_ARGUMENT || error.status == L3_ERROR_BUFFER || error.status == L3_ERROR_MEMORY) {
    std::snprintf(text, sizeof(text), "%s", error.reason);
  } else if (error.tile == L3_NO_TILE) {
    std::snprintf(text, sizeof(text), "offset %" PRIu64 ": %s", error.offset, error.reason);
  } else {
    std::snprintf(text, sizeof(text), "offset %" PRIu64 ": %s (tile %" PRIu64 ")", error.offset, error.reason,
                  error.tile);
  }
  this->error(text);
}

}  // namespace l3_nvimgcodec
