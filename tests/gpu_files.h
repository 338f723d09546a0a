// Small files of many kinds, good and damaged, and what the CUDA decoder must make of each, as libl3 says. For the
// programs that want a device.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "drawing.h"
#include "l3/l3.hpp"
#include "l3/l3_cuda.hpp"

namespace gpu_files {

using drawing::Bytes;

constexpr int kNoDevice = 77;
constexpr uint64_t kFileAlignment = 16, kOutputAlignment = 256;

[[noreturn]] inline void stop(const std::string& why) {
  std::fprintf(stderr, "FAILED: %s\n", why.c_str());
  std::exit(1);
}

inline void check(cudaError_t code, const char* what) {
  if (code != cudaSuccess) stop(std::string(what) + ": " + cudaGetErrorString(code));
}

template <class Value>
Value take(l3::Result<Value> result, const char* what) {
  if (!result) stop(std::string(what) + ": " + l3::message(result.error()));
  return std::move(*result);
}

// Exits if there is no device.
inline void want_device(const char* program) {
  l3_error error{};
  if (l3_cuda_check_device(&error) == L3_OK) return;
  std::fprintf(stderr, "%s: not run: no device: %s\n", program, error.reason);
  std::exit(kNoDevice);
}

inline uint64_t aligned(uint64_t size, uint64_t to) { return (size + to - 1) / to * to; }

// A file, what is wanted of it, and what must come out: rows without padding, or an error.
struct Sample {
  std::string name;
  Bytes file;
  l3_cuda_image wanted;  // without `data` and `out`
  l3_error error;
  Bytes pixels;

  uint64_t output_bytes = 0;  // also where it is to fail
};

// Reverses the order of pixels in each row.
inline void mirror(Bytes& pixels, size_t row_bytes, size_t pixel_bytes) {
  for (size_t row = 0; row < pixels.size(); row += row_bytes) {
    for (size_t a = row, b = row + row_bytes - pixel_bytes; a < b; a += pixel_bytes, b -= pixel_bytes) {
      std::swap_ranges(pixels.begin() + static_cast<std::ptrdiff_t>(a),
                       pixels.begin() + static_cast<std::ptrdiff_t>(a + pixel_bytes),
                       pixels.begin() + static_cast<std::ptrdiff_t>(b));
    }
  }
}

struct Region {
  uint32_t x, y, width, height;
};

// What libl3 makes of a file whose head was once as `info` says.
inline Sample sample(std::string name, Bytes file, const l3_info& info, const Region& region, uint32_t flags) {
  Sample made{std::move(name), std::move(file), l3_cuda_image_init(), {}, {}, 0};
  made.file.reserve(1);  // no null pointer for an empty file: it is a file all the same
  l3_cuda_image& image = made.wanted;
  image.size = made.file.size();
  image.width = info.width;
  image.height = info.height;
  image.channels = info.channels;
  image.x = region.x;
  image.y = region.y;
  image.region_width = region.width;
  image.region_height = region.height;
  image.flags = flags;
  image.type = info.sample_type == L3_SAMPLE_U16 ? L3_CUDA_U16 : L3_CUDA_U8;
  l3_decode_options options = l3_decode_options_init();
  options.limits = l3::no_limits();
  options.as_colours = (flags & L3_CUDA_COLOURS) != 0 ? 1 : 0;
  const size_t pixel_bytes = l3_pixel_bytes(&info, made.file.data(), made.file.size(), &options);
  if (options.as_colours != 0 && info.colour == L3_COLOUR_PALETTE) image.channels = pixel_bytes == 4 ? 4 : 3;
  made.pixels.resize(pixel_bytes * region.width * region.height);
  made.output_bytes = made.pixels.size();
  if (l3_decode_region(made.file.data(), made.file.size(), region.x, region.y, region.width, region.height, &options,
                       made.pixels.data(), made.pixels.size(), 0, &made.error) != L3_OK) {
    made.pixels.clear();
  } else if ((flags & L3_CUDA_FLIP) != 0) {
    mirror(made.pixels, pixel_bytes * region.width, pixel_bytes);
  }
  return made;
}

inline Bytes encode(const drawing::Drawing& drawing, l3_method method) {
  l3_encode_options options = l3_encode_options_init();
  options.method = method;
  options.effort = 1;
  return take(l3::encode(drawing.image(), options), "encoding");
}

inline std::vector<Sample> good_samples() {
  using drawing::draw;
  using drawing::Pattern;
  const struct {
    const char* name;
    drawing::Drawing drawing;
    l3_method method;
    uint32_t flags;
  } kinds[] = {
      {"fast rgb", draw({300, 200}, {L3_COLOUR_RGB, 8}, Pattern::natural), L3_METHOD_FAST, 0},
      {"dense rgb", draw({257, 190}, {L3_COLOUR_RGB, 8}, Pattern::natural), L3_METHOD_DENSE, 0},
      {"dense gray, flipped", draw({260, 140}, {L3_COLOUR_GRAY, 8}, Pattern::natural), L3_METHOD_DENSE, L3_CUDA_FLIP},
      {"16 bits", draw({131, 133}, {L3_COLOUR_GRAY, 16}, Pattern::gradient), L3_METHOD_FAST, 0},
      {"dense 16 bits", draw({131, 133}, {L3_COLOUR_GRAY, 16}, Pattern::natural), L3_METHOD_AUTO, 0},
      {"dense rgb of 12 bits", draw({131, 133}, {L3_COLOUR_RGB, 12}, Pattern::natural), L3_METHOD_AUTO, L3_CUDA_FLIP},
      {"labels", draw({260, 140}, {L3_COLOUR_GRAY, 8}, Pattern::labels), L3_METHOD_AUTO, 0},
      {"colours of labels", draw({260, 140}, {L3_COLOUR_RGB_ALPHA, 8}, Pattern::labels), L3_METHOD_AUTO, 0},
      {"rgba of 12 bits", draw({65, 127}, {L3_COLOUR_RGB_ALPHA, 12}, Pattern::natural), L3_METHOD_FAST, L3_CUDA_FLIP},
      {"palette", draw({129, 257}, {L3_COLOUR_PALETTE, 8}, Pattern::labels), L3_METHOD_AUTO, 0},
      {"palette as colours", with_sections(draw({129, 257}, {L3_COLOUR_PALETTE, 4}, Pattern::labels)), L3_METHOD_AUTO,
       L3_CUDA_COLOURS},
      {"all methods", drawing::draw_mixed({128, 96}, {L3_COLOUR_RGB, 8}), L3_METHOD_AUTO, L3_CUDA_FLIP},
      {"one pixel", draw({1, 1}, {L3_COLOUR_RGB_ALPHA, 8}, Pattern::noise), L3_METHOD_FAST, 0},
  };
  std::vector<Sample> samples;
  for (const auto& kind : kinds) {
    const Bytes file = encode(kind.drawing, kind.method);
    const l3_info info = take(l3::read_info(file), "reading a head");
    const std::string name = kind.name;
    samples.push_back(sample(name, file, info, {0, 0, info.width, info.height}, kind.flags));
    if (info.width < 64) continue;
    const Region part{info.width / 3, info.height / 4, info.width / 2, info.height / 3};
    samples.push_back(sample(name + ", a region", file, info, part, kind.flags ^ uint32_t{L3_CUDA_FLIP}));
  }
  for (const Sample& each : samples) {
    if (each.error.status != L3_OK) stop(each.name + " does not decode: " + l3::message(each.error));
  }
  return samples;
}

// The same files with something wrong: at the end of the payload, in the index, in the head, cut.
inline std::vector<Sample> bad_samples(std::span<const Sample> good) {
  std::vector<Sample> samples;
  for (const Sample& from : good) {
    const l3_info info = take(l3::read_info(from.file), "reading a head");
    const Region all{0, 0, info.width, info.height};
    const auto add = [&](const char* what, Bytes file) {
      samples.push_back(sample(from.name + ", " + what, std::move(file), info, all, from.wanted.flags));
    };
    const auto flipped = [&](uint64_t at) {
      Bytes file = from.file;
      file[std::min<size_t>(at, file.size() - 1)] ^= 0x10;
      return file;
    };
    add("the last byte flipped", flipped(from.file.size() - 1));
    add("the index flipped", flipped(info.head_bytes + 4));
    add("the head flipped", flipped(20));
    add("cut", Bytes(from.file.begin(), from.file.begin() + static_cast<std::ptrdiff_t>(from.file.size() * 3 / 4)));
    add("not an L3 file", Bytes(64, 0x55));
  }
  std::erase_if(samples, [](const Sample& each) { return each.error.status == L3_OK; });
  return samples;
}

// Where the files and the outputs of some samples lie, each behind the other.
struct Places {
  std::vector<uint64_t> files, outputs;
  uint64_t file_bytes = 0, output_bytes = 0;
  l3_cuda_capacity capacity{};

  explicit Places(std::span<const Sample* const> samples) {
    for (const Sample* each : samples) {
      files.push_back(file_bytes);
      file_bytes += aligned(each->file.size(), kFileAlignment);
      outputs.push_back(output_bytes);
      output_bytes += aligned(each->output_bytes + 1, kOutputAlignment);  // a byte at least that nobody writes
      ++capacity.images;
      // Tiles are 32 pixels wide at least.
      capacity.follow_bytes += l3_cuda_count_follow_bytes(each->file.data(), each->file.size(), nullptr, 0,
                                                          each->wanted.region_width, each->wanted.region_height);
      capacity.tiles += (uint64_t{each->wanted.region_width} / 32 + 2) * (each->wanted.region_height / 32 + 2);
    }
    capacity.staged_bytes = file_bytes;
  }
};

// What is wrong with what became of a sample; empty: nothing. `end` is where the next output begins.
inline std::string problem(const Sample& expected, const l3_error& said, const uint8_t* output, const uint8_t* end,
                           uint8_t poison) {
  if (said.status != expected.error.status ||
      (said.status != L3_OK && (said.offset != expected.error.offset || said.tile != expected.error.tile ||
                                std::string(said.reason) != expected.error.reason))) {
    return expected.name + ": libl3 says " + l3::message(expected.error) + ", the device " + l3::message(said);
  }
  if (said.status == L3_OK && std::memcmp(output, expected.pixels.data(), expected.pixels.size()) != 0) {
    return expected.name + ": other pixels than libl3's";
  }
  for (const uint8_t* at = output + expected.output_bytes; at < end; ++at) {
    if (*at != poison) return expected.name + ": something was written behind the image";
  }
  return "";
}

}  // namespace gpu_files
