#include "wish.h"

#include <initializer_list>
#include <utility>

namespace l3_nvimgcodec {
namespace {

// Chooses what the channels are made of. Returns false if the format is none of ours or does not have `count` channels.
bool choose_parts(const File& file, nvimgcodecSampleFormat_t format, uint32_t count, Wish& wish) {
  const bool has_colour = file.channels() >= 3, has_alpha = file.channels() % 2 == 0;
  const int luma = has_colour ? kLuma : 0, alpha = has_alpha ? static_cast<int>(file.channels()) - 1 : kOpaque;
  const int green = has_colour ? 1 : 0, blue = has_colour ? 2 : 0;
  const auto choose = [&](std::initializer_list<int> parts) {
    wish.count = 0;
    for (const int part : parts) wish.parts[wish.count++] = part;
    return wish.count == count;
  };
  switch (format) {
    case NVIMGCODEC_SAMPLEFORMAT_P_UNCHANGED:
    case NVIMGCODEC_SAMPLEFORMAT_I_UNCHANGED:
      if (count == file.channels())
        return has_colour ? choose_parts(file, NVIMGCODEC_SAMPLEFORMAT_I_RGB, count, wish)
                          : (count == 1 ? choose({0}) : choose({0, 1}));
      // Only the number of channels says what is wanted.
      return count == 1   ? choose({luma})
             : count == 2 ? choose({luma, alpha})
                          : choose_parts(file, NVIMGCODEC_SAMPLEFORMAT_I_RGB, count, wish);
    case NVIMGCODEC_SAMPLEFORMAT_P_Y:
    case NVIMGCODEC_SAMPLEFORMAT_I_Y: return choose({luma});
    case NVIMGCODEC_SAMPLEFORMAT_P_YA:
    case NVIMGCODEC_SAMPLEFORMAT_I_YA: return choose({luma, alpha});
    case NVIMGCODEC_SAMPLEFORMAT_P_RGB:
    case NVIMGCODEC_SAMPLEFORMAT_I_RGB:
      // There may be more channels than colours.
      return count == 4 ? choose({0, green, blue, alpha}) : choose({0, green, blue});
    case NVIMGCODEC_SAMPLEFORMAT_P_BGR:
    case NVIMGCODEC_SAMPLEFORMAT_I_BGR: return count == 4 ? choose({blue, green, 0, alpha}) : choose({blue, green, 0});
    case NVIMGCODEC_SAMPLEFORMAT_P_RGBA:
    case NVIMGCODEC_SAMPLEFORMAT_I_RGBA: return choose({0, green, blue, alpha});
    default: return false;
  }
}

bool is_planar(nvimgcodecSampleFormat_t format) { return format % 2 == 1; }  // so numbers the header all formats

// Sets the part of the file that makes `region` of the upright image.
bool choose_region(const File& file, const nvimgcodecRegion_t* region, Wish& wish) {
  const Turn turn = Turn::of(wish.orientation);
  uint32_t whole_x = file.width(), whole_y = file.height();
  if (turn.is_transposed) std::swap(whole_x, whole_y);
  uint32_t x = 0, y = 0, width = whole_x, height = whole_y;
  if (region != nullptr && region->ndim != 0) {
    if (region->ndim != 2) return false;
    for (int i = 0; i < 2; ++i) {
      const uint32_t end = i == 0 ? whole_y : whole_x;
      if (region->start[i] < 0 || region->end[i] <= region->start[i] || static_cast<uint32_t>(region->end[i]) > end) {
        return false;
      }
    }
    y = static_cast<uint32_t>(region->start[0]);
    x = static_cast<uint32_t>(region->start[1]);
    height = static_cast<uint32_t>(region->end[0]) - y;
    width = static_cast<uint32_t>(region->end[1]) - x;
  }
  if (turn.mirrors_x) x = whole_x - x - width;
  if (turn.mirrors_y) y = whole_y - y - height;
  if (turn.is_transposed) {
    std::swap(x, y);
    std::swap(width, height);
  }
  wish.x = x;
  wish.y = y;
  wish.width = width;
  wish.height = height;
  return true;
}

bool is_wide(const nvimgcodecImageInfo_t& info) {
  return info.plane_info[0].sample_type == NVIMGCODEC_SAMPLE_DATA_TYPE_UINT16;
}

}  // namespace

nvimgcodecProcessingStatus_t read_wish(const File& file, const nvimgcodecImageInfo_t& info,
                                       const nvimgcodecRegion_t* region, bool orient, Wish& wish,
                                       const char*& refusal) {
  const nvimgcodecImagePlaneInfo_t& plane = info.plane_info[0];
  wish.orientation = orient ? file.orientation() : 1;
  if (!choose_region(file, region, wish)) {
    refusal = "a region must have two dimensions and be inside the image";
    return NVIMGCODEC_PROCESSING_STATUS_ROI_UNSUPPORTED;
  }
  wish.is_planar = is_planar(info.sample_format);
  const uint32_t planes = wish.is_planar ? plane.num_channels * info.num_planes : info.num_planes;
  if (info.num_planes == 0 || info.num_planes > kMaxParts || planes != info.num_planes ||
      (!wish.is_planar && planes != 1)) {
    refusal = "planar formats must have one channel in each plane, others one plane";
    return NVIMGCODEC_PROCESSING_STATUS_NUM_PLANES_UNSUPPORTED;
  }
  if (!choose_parts(file, info.sample_format, wish.is_planar ? planes : plane.num_channels, wish)) {
    refusal = "only gray, RGB and BGR can be decoded, with alpha or without";
    return NVIMGCODEC_PROCESSING_STATUS_SAMPLE_FORMAT_UNSUPPORTED;
  }
  if (plane.sample_type != NVIMGCODEC_SAMPLE_DATA_TYPE_UINT8 && !is_wide(info)) {
    refusal = "samples can only be decoded to uint8 and uint16";
    return NVIMGCODEC_PROCESSING_STATUS_SAMPLE_TYPE_UNSUPPORTED;
  }
  const uint32_t most_bits = is_wide(info) ? 16 : 8;
  wish.bits = plane.precision == 0 ? most_bits : plane.precision;
  if (wish.bits > most_bits) {
    refusal = "the samples have no room for this precision";
    return NVIMGCODEC_PROCESSING_STATUS_SAMPLE_TYPE_UNSUPPORTED;
  }
  const bool is_transposed = Turn::of(wish.orientation).is_transposed;
  const uint32_t width = is_transposed ? wish.height : wish.width, height = is_transposed ? wish.width : wish.height;
  const size_t pixel = (wish.is_planar ? 1 : wish.count) * (is_wide(info) ? size_t{2} : size_t{1});
  for (uint32_t i = 0; i < planes; ++i) {
    const nvimgcodecImagePlaneInfo_t& each = info.plane_info[i];
    if (each.width != width || each.height != height || each.row_stride != plane.row_stride ||
        each.row_stride < width * pixel || each.sample_type != plane.sample_type) {
      refusal = "the result must have the size of the image or region, and room for each row";
      return NVIMGCODEC_PROCESSING_STATUS_RESOLUTION_UNSUPPORTED;
    }
  }
  wish.has_stored_samples = wish.orientation == 1 && wish.bits == file.bits() && wish.count == file.channels() &&
                            is_wide(info) == (file.bits() > 8);
  for (uint32_t c = 0; c < wish.count; ++c) wish.has_stored_samples &= wish.parts[c] == static_cast<int>(c);
  wish.is_as_stored = wish.has_stored_samples && (!wish.is_planar || wish.count == 1);
  return NVIMGCODEC_PROCESSING_STATUS_SUCCESS;
}

Target target_of(const Wish& wish, const nvimgcodecImageInfo_t& info) {
  const nvimgcodecImagePlaneInfo_t& plane = info.plane_info[0];
  const size_t sample = is_wide(info) ? 2 : 1;
  Target target{};
  target.parts = wish.parts;
  target.count = wish.count;
  for (uint32_t c = 0; c < wish.count; ++c) {
    target.channel[c] =
        static_cast<uint8_t*>(info.buffer) + c * (wish.is_planar ? plane.row_stride * plane.height : sample);
  }
  target.pixel = wish.is_planar ? sample : sample * wish.count;
  target.row = plane.row_stride;
  target.bits = wish.bits;
  target.is_wide = is_wide(info);
  target.orientation = wish.orientation;
  return target;
}

}  // namespace l3_nvimgcodec
