// Images of which some channels need not be coded: they equal others, or have one sample everywhere.
#pragma once

#include <memory>
#include <optional>

#include "encode/encode_plan.h"

namespace l3 {

// Finds such channels. Returns nothing if there are none.
std::optional<ChannelMap> find_channel_map(const l3_image& image);

// A request for the coded channels of an image, which are copied.
class CodedImage {
 public:
  // May throw std::bad_alloc.
  CodedImage(const Request& request, const ChannelMap& map);

  const Request& request() const { return request_; }

 private:
  MappedImage mapped_;
  std::unique_ptr<uint8_t[]> pixels_;
  Request request_;
};

}  // namespace l3
