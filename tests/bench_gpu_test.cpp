// Tests the GPU measurements of l3 bench on the emulated GPU.
#include <gtest/gtest.h>

#include <random>

#include "bench/gpu.h"
#include "bridge/image_bridge.h"
#include "emulated_gpu.h"

namespace {

using formats::Colour;
using formats::Image;

Image draw(uint32_t width, uint32_t height, uint32_t bits, Colour colour, uint32_t seed) {
  Image image;
  image.width = width;
  image.height = height;
  image.bits = bits;
  image.colour = colour;
  std::mt19937 random(seed);
  const size_t samples = size_t{width} * height * formats::channels(colour);
  for (size_t i = 0; i < samples; ++i) {
    const uint32_t value = (static_cast<uint32_t>(i) / 7 + random() % 4) & ((1U << bits) - 1);
    image.pixels.push_back(static_cast<uint8_t>(value));
    if (bits > 8) image.pixels.push_back(static_cast<uint8_t>(value >> 8));
  }
  if (colour == Colour::palette) image.palette.resize(size_t{3} << bits);
  return image;
}

bridge::Buffer encoded(const Image& image, l3_method method) {
  l3_encode_options options = l3_encode_options_init();
  options.method = method;
  options.effort = 1;
  bridge::Buffer file;
  EXPECT_FALSE(bridge::encode_l3(image, options, file).has_value());
  return file;
}

TEST(BenchGpu, BatchesComeBackAsTheyWere) {
  const std::unique_ptr<bench::Gpu> gpu = bench::find_gpu();
  ASSERT_NE(gpu, nullptr);
  EXPECT_FALSE(gpu->name().empty());
  for (const l3_method method : {L3_METHOD_FAST, L3_METHOD_DENSE}) {
    const std::unique_ptr<bench::GpuBatch> batch = gpu->make_batch();
    uint32_t seed = 0;
    for (const Image& image : {draw(140, 70, 8, Colour::rgb, ++seed), draw(33, 90, 16, Colour::gray, ++seed),
                               draw(50, 40, 4, Colour::palette, ++seed), draw(1, 1, 8, Colour::rgb_alpha, ++seed)}) {
      EXPECT_EQ(batch->add(encoded(image, method).bytes(), image), std::nullopt);
    }
    EXPECT_EQ(batch->check_lossless(), std::nullopt);
    EXPECT_GT(batch->run(), 0);
    EXPECT_GT(batch->run(), 0);
  }
}

TEST(BenchGpu, WhatIsWrongIsSaid) {
  const std::unique_ptr<bench::Gpu> gpu = bench::find_gpu();
  ASSERT_NE(gpu, nullptr);
  Image image = draw(140, 70, 8, Colour::rgb, 9);
  const bridge::Buffer file = encoded(image, L3_METHOD_FAST);

  image.pixels.back() ^= 1;
  std::unique_ptr<bench::GpuBatch> batch = gpu->make_batch();
  EXPECT_EQ(batch->add(file.bytes(), image), std::nullopt);
  EXPECT_EQ(batch->check_lossless(), "the GPU decoded other samples");
  image.pixels.back() ^= 1;

  std::vector<uint8_t> broken(file.bytes().begin(), file.bytes().end());
  broken.back() ^= 1;
  batch = gpu->make_batch();
  EXPECT_EQ(batch->add(broken, image), std::nullopt);
  EXPECT_NE(batch->check_lossless(), std::nullopt);

  broken[0] ^= 1;
  EXPECT_NE(gpu->make_batch()->add(broken, image), std::nullopt);
}

}  // namespace
