#include "image_head.h"

#include <algorithm>
#include <array>

namespace loader {
namespace {

using ModelName = std::array<uint8_t, L3_MODEL_NAME_BYTES>;

ModelName name_of_model(const l3_data_sample& sample) {
  ModelName name{};
  l3_model_info known = l3_model_info_init();
  if (l3_describe_model(sample.model, &known, nullptr) == L3_OK) {
    std::copy(std::begin(known.name), std::end(known.name), name.begin());
  } else {
    l3_digest(sample.model_bytes, sample.model_size, name.data());  // invalid models have names too
  }
  return name;
}

}  // namespace

const char* difference(const l3_data_sample& sample, const l3_info& info) {
  if (info.width != sample.width || info.height != sample.height || info.channels != sample.channels ||
      info.bits != sample.bits || info.colour != sample.colour) {
    return "the shape of an image differs from the index";
  }
  if (!std::equal(std::begin(info.digest), std::end(info.digest), std::begin(sample.digest))) {
    return "the digest of an image differs from the index";
  }
  if ((info.model_origin == L3_MODEL_NAMED) != (sample.model_bytes != nullptr)) {
    return "the index is wrong about whether an image names a model";
  }
  if (sample.model_bytes == nullptr) return nullptr;
  const ModelName name = name_of_model(sample);
  return std::equal(name.begin(), name.end(), std::begin(info.model_name))
             ? nullptr
             : "the model that an image names differs from the index";
}

l3_status check_image_head(const l3_data_sample& sample, std::span<const uint8_t> bytes, l3_info& info,
                           l3_error& error) {
  constexpr l3_limits kAny = {UINT64_MAX, UINT64_MAX, UINT64_MAX};
  if (l3_read_info(bytes.data(), bytes.size(), &kAny, &info, &error) != L3_OK) return error.status;
  const char* reason = difference(sample, info);
  if (reason == nullptr) return L3_OK;
  error = {L3_ERROR_CORRUPT, 0, L3_NO_TILE, reason};
  return error.status;
}

}  // namespace loader
