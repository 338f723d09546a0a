// What nvImageCodec asks a decoder for: an opened file, and what to decode of it.
#pragma once

#include <nvimgcodec.h>

#include "file.h"
#include "log.h"
#include "wish.h"

namespace l3_nvimgcodec {

struct Request {
  explicit Request(const nvimgcodecCodeStreamDesc_t& stream) : file(*stream.io_stream) {}

  // Opens the file and finds out what to decode. If this fails, it says why in the log. `params` may be null.
  nvimgcodecProcessingStatus_t open(const Log& log, const nvimgcodecImageDesc_t& image,
                                    const nvimgcodecCodeStreamDesc_t& stream, const nvimgcodecDecodeParams_t* params);

  File file;
  Wish wish{};
  nvimgcodecImageInfo_t info{};
};

nvimgcodecProcessingStatus_t status_of(const l3_error& error);

// What all our decoders say of metadata: there is none.
nvimgcodecStatus_t get_no_metadata(nvimgcodecDecoder_t decoder, const nvimgcodecCodeStreamDesc_t* stream,
                                   nvimgcodecMetadata_t** metadata, int* count);

}  // namespace l3_nvimgcodec
