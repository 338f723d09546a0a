// The GPU decoder of the nvImageCodec extension on the emulated GPU, against libl3. The test calls it as nvImageCodec
// does, whose own library needs a real GPU for that.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "codec_testing.h"
#include "cuda_decoder.h"

namespace l3_nvimgcodec {
namespace {

using codec_testing::Bytes;
using drawing::Drawing;
using drawing::Pattern;

// A file in memory, as nvImageCodec hands it to a decoder.
class Stream {
 public:
  explicit Stream(Bytes bytes) : bytes_(std::move(bytes)) {
    io_.instance = this;
    io_.size = [](void* self, size_t* size) {
      *size = of(self).bytes_.size();
      return NVIMGCODEC_STATUS_SUCCESS;
    };
    io_.map = [](void* self, void** to, size_t offset, size_t) {
      *to = of(self).bytes_.data() + offset;
      return NVIMGCODEC_STATUS_SUCCESS;
    };
    io_.unmap = [](void*, void*, size_t) { return NVIMGCODEC_STATUS_SUCCESS; };
    description_.instance = this;
    description_.io_stream = &io_;
    description_.getCodeStreamInfo = [](void* self, nvimgcodecCodeStreamInfo_t* info) {
      std::strcpy(info->codec_name, of(self).codec_);
      info->code_stream_view = of(self).has_region_ ? &of(self).view_ : nullptr;
      return NVIMGCODEC_STATUS_SUCCESS;
    };
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  void set_region(int top, int left, int bottom, int right) {
    has_region_ = true;
    view_.region.ndim = 2;
    view_.region.start[0] = top;
    view_.region.start[1] = left;
    view_.region.end[0] = bottom;
    view_.region.end[1] = right;
  }
  void set_codec(const char* name) { codec_ = name; }
  const nvimgcodecCodeStreamDesc_t* get() const { return &description_; }

 private:
  static Stream& of(void* self) { return *static_cast<Stream*>(self); }

  Bytes bytes_;
  const char* codec_ = kCodec;
  bool has_region_ = false;
  nvimgcodecCodeStreamView_t view_{};
  nvimgcodecIoStreamDesc_t io_{};
  nvimgcodecCodeStreamDesc_t description_{};
};

// An image to decode to: device memory with rows that are wider than the pixels.
class Image {
 public:
  static constexpr size_t kGap = 6;
  static constexpr uint8_t kFill = 0x5A;

  Image(uint32_t width, uint32_t height, uint32_t channels, bool is_wide, bool is_planar, cudaStream_t stream) {
    const uint32_t sample = is_wide ? 2 : 1;
    row_ = size_t{width} * (is_planar ? 1 : channels) * sample;
    rows_ = size_t{height} * (is_planar ? channels : 1);
    info_.sample_format = is_planar ? NVIMGCODEC_SAMPLEFORMAT_P_UNCHANGED : NVIMGCODEC_SAMPLEFORMAT_I_UNCHANGED;
    info_.num_planes = is_planar ? channels : 1;
    for (uint32_t i = 0; i < info_.num_planes; ++i) {
      nvimgcodecImagePlaneInfo_t& plane = info_.plane_info[i];
      plane.width = width;
      plane.height = height;
      plane.row_stride = row_ + kGap;
      plane.num_channels = is_planar ? 1 : channels;
      plane.sample_type = is_wide ? NVIMGCODEC_SAMPLE_DATA_TYPE_UINT16 : NVIMGCODEC_SAMPLE_DATA_TYPE_UINT8;
    }
    EXPECT_EQ(cudaMalloc(&info_.buffer, size()), cudaSuccess);
    EXPECT_EQ(cudaMemset(info_.buffer, kFill, size()), cudaSuccess);
    info_.buffer_kind = NVIMGCODEC_IMAGE_BUFFER_KIND_STRIDED_DEVICE;
    info_.cuda_stream = stream;
    buffer_ = info_.buffer;
    description_.instance = this;
    description_.getImageInfo = [](void* self, nvimgcodecImageInfo_t* info) {
      *info = static_cast<Image*>(self)->info_;
      return NVIMGCODEC_STATUS_SUCCESS;
    };
    description_.imageReady = [](void* self, nvimgcodecProcessingStatus_t status) {
      static_cast<Image*>(self)->ready_.push_back(status);
      return NVIMGCODEC_STATUS_SUCCESS;
    };
  }
  ~Image() { EXPECT_EQ(cudaFree(buffer_), cudaSuccess); }
  Image(const Image&) = delete;
  Image& operator=(const Image&) = delete;

  nvimgcodecImageInfo_t& info() { return info_; }
  const nvimgcodecImageDesc_t* get() const { return &description_; }
  // What the decoder said, each time.
  const std::vector<nvimgcodecProcessingStatus_t>& ready() const { return ready_; }

  // The pixels without the gaps, in which nothing may have been written.
  Bytes pixels() const {
    Bytes all(size()), result;
    EXPECT_EQ(cudaMemcpy(all.data(), buffer_, size(), cudaMemcpyDeviceToHost), cudaSuccess);
    for (size_t y = 0; y < rows_; ++y) {
      const auto row = all.begin() + static_cast<ptrdiff_t>(y * (row_ + kGap));
      const auto end = row + static_cast<ptrdiff_t>(row_);
      result.insert(result.end(), row, end);
      EXPECT_EQ(Bytes(end, end + kGap), Bytes(kGap, kFill)) << "row " << y;
    }
    return result;
  }
  // Overwrites the memory in the order of its stream: what is decoded in that order stays. Often, so that it is not
  // over by chance before work of other streams.
  void fill_later() const {
    for (int i = 0; i < 200; ++i) {
      EXPECT_EQ(cudaMemsetAsync(buffer_, kFill, size(), info_.cuda_stream), cudaSuccess);
    }
  }
  bool is_untouched() const { return pixels() == Bytes(row_ * rows_, kFill); }

 private:
  size_t size() const { return (row_ + kGap) * rows_; }

  size_t row_ = 0, rows_ = 0;
  void* buffer_ = nullptr;
  nvimgcodecImageInfo_t info_{};
  nvimgcodecImageDesc_t description_{};
  std::vector<nvimgcodecProcessingStatus_t> ready_;
};

// The samples of each channel, one channel after the other.
Bytes planes_of(const Bytes& pixels, size_t channels, size_t sample) {
  Bytes planes;
  for (size_t c = 0; c < channels; ++c) {
    for (size_t at = c * sample; at < pixels.size(); at += channels * sample) {
      planes.insert(planes.end(), &pixels[at], &pixels[at] + sample);
    }
  }
  return planes;
}

using Statuses = std::vector<nvimgcodecProcessingStatus_t>;

class CudaDecoder : public testing::Test {
 protected:
  void SetUp() override {
    framework_.instance = this;
    framework_.log = [](void* self, nvimgcodecDebugMessageSeverity_t, nvimgcodecDebugMessageCategory_t,
                        const nvimgcodecDebugMessageData_t* message) {
      static_cast<CudaDecoder*>(self)->said_.emplace_back(message->message);
      return NVIMGCODEC_STATUS_SUCCESS;
    };
    ASSERT_EQ(cudaStreamCreate(&stream_), cudaSuccess);
    make(NVIMGCODEC_DEVICE_CURRENT);
  }
  void TearDown() override {
    EXPECT_EQ(description_.destroy(decoder_), NVIMGCODEC_STATUS_SUCCESS);
    EXPECT_EQ(cudaStreamDestroy(stream_), cudaSuccess);
  }
  void make(int device) {
    if (decoder_ != nullptr) {
      EXPECT_EQ(description_.destroy(decoder_), NVIMGCODEC_STATUS_SUCCESS);
    }
    nvimgcodecExecutionParams_t params{};
    params.device_id = device;
    ASSERT_EQ(description_.create(description_.instance, &decoder_, &params, ""), NVIMGCODEC_STATUS_SUCCESS);
  }

  nvimgcodecProcessingStatus_t can_decode(const Image& image, const Stream& stream) const {
    return description_.canDecode(decoder_, image.get(), stream.get(), &params_, -1);
  }
  nvimgcodecStatus_t decode(const Image& image, const Stream& stream, int thread = -1) const {
    return description_.decode(decoder_, image.get(), stream.get(), &params_, thread);
  }
  void expect_refused(const Image& image, const Stream& stream, nvimgcodecProcessingStatus_t status) const {
    EXPECT_EQ(decode(image, stream), NVIMGCODEC_STATUS_EXTENSION_EXECUTION_FAILED);
    EXPECT_EQ(image.ready(), Statuses{status});
  }

  nvimgcodecFrameworkDesc_t framework_{};
  Log log_{&framework_, kCudaDecoderId};
  nvimgcodecDecoderDesc_t description_ = cuda_decoder_of(log_);
  nvimgcodecDecoder_t decoder_ = nullptr;
  nvimgcodecDecodeParams_t params_{};
  cudaStream_t stream_ = nullptr;
  std::vector<std::string> said_;
};

TEST_F(CudaDecoder, GivesTheSamplesOfAllKindsOfImages) {
  EXPECT_EQ(description_.backend_kind, NVIMGCODEC_BACKEND_KIND_HYBRID_CPU_GPU);
  int batch = 0;
  EXPECT_EQ(description_.getMiniBatchSize(decoder_, &batch), NVIMGCODEC_STATUS_SUCCESS);
  EXPECT_EQ(batch, 32);
  for (const l3_method method : {L3_METHOD_FAST, L3_METHOD_DENSE}) {
    for (const auto& type : std::initializer_list<drawing::Type>{{L3_COLOUR_GRAY, 8},
                                                                 {L3_COLOUR_GRAY, 16},
                                                                 {L3_COLOUR_GRAY_ALPHA, 8},
                                                                 {L3_COLOUR_RGB, 8},
                                                                 {L3_COLOUR_RGB, 12},
                                                                 {L3_COLOUR_RGB_ALPHA, 8},
                                                                 {L3_COLOUR_PALETTE, 4}}) {
      const Drawing drawn = drawing::draw({40, 35}, type, Pattern::natural);
      SCOPED_TRACE(drawn.name());
      const Bytes file = codec_testing::encode(drawn, codec_testing::options_of(method, 32, 32));
      l3_decode_options options = l3_decode_options_init();
      options.as_colours = 1;
      const Bytes expected = codec_testing::decode(file, options);
      const uint32_t sample = drawn.sample_bytes();
      const auto channels = static_cast<uint32_t>(expected.size() / (size_t{40} * 35 * sample));
      const Stream stream(file);
      for (const bool is_planar : {false, true}) {
        Image image(40, 35, channels, sample == 2, is_planar, stream_);
        for (uint32_t i = 0; i < image.info().num_planes; ++i) {
          image.info().plane_info[i].precision = static_cast<uint8_t>(type.colour == L3_COLOUR_PALETTE ? 8 : type.bits);
        }
        EXPECT_EQ(can_decode(image, stream), NVIMGCODEC_PROCESSING_STATUS_SUCCESS);
        EXPECT_TRUE(image.is_untouched());
        EXPECT_EQ(decode(image, stream), NVIMGCODEC_STATUS_SUCCESS);
        EXPECT_EQ(image.ready(), Statuses{NVIMGCODEC_PROCESSING_STATUS_SUCCESS});
        EXPECT_EQ(image.pixels(), is_planar ? planes_of(expected, channels, sample) : expected);
      }
    }
  }
  EXPECT_EQ(said_, std::vector<std::string>{});
}

TEST_F(CudaDecoder, DecodesRegionsAndBatches) {
  // The second batch has more images, and larger ones; the third needs no more memory. Two streams take turns.
  cudaStream_t other = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking), cudaSuccess);
  for (const uint32_t count : {2u, 5u, 5u}) {
    std::deque<Stream> streams;
    std::deque<Image> images;
    std::vector<const nvimgcodecCodeStreamDesc_t*> stream_list;
    std::vector<const nvimgcodecImageDesc_t*> image_list;
    std::vector<Bytes> expected;
    for (uint32_t i = 0; i < count; ++i) {
      const uint32_t width = 30 + 7 * i * count, height = 33;
      const Drawing drawn = drawing::draw({width, height}, {L3_COLOUR_RGB, 8}, Pattern::natural, i);
      const Bytes file = codec_testing::encode(drawn, codec_testing::tiles_of(32, 32));
      streams.emplace_back(file);
      streams.back().set_region(3, 5, 31, static_cast<int>(width - i));
      images.emplace_back(width - i - 5, 28, 3, false, false, i % 2 == 0 ? stream_ : other);
      Bytes& part = expected.emplace_back(size_t{width - i - 5} * 28 * 3);
      ASSERT_EQ(l3_decode_region(file.data(), file.size(), 5, 3, width - i - 5, 28, nullptr, part.data(), part.size(),
                                 0, nullptr),
                L3_OK);
      stream_list.push_back(streams.back().get());
      image_list.push_back(images.back().get());
    }
    for (const Image& image : images) image.fill_later();
    EXPECT_EQ(description_.decodeBatch(decoder_, image_list.data(), stream_list.data(), static_cast<int>(count),
                                       &params_, -1),
              NVIMGCODEC_STATUS_SUCCESS);
    ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(other), cudaSuccess);
    for (uint32_t i = 0; i < count; ++i) {
      EXPECT_EQ(images[i].ready(), Statuses{NVIMGCODEC_PROCESSING_STATUS_SUCCESS});
      EXPECT_EQ(images[i].pixels(), expected[i]) << i;
    }
  }
  EXPECT_EQ(cudaStreamDestroy(other), cudaSuccess);
}

TEST_F(CudaDecoder, DecodesFilesOfAnySize) {
  std::deque<Stream> streams;
  std::deque<Image> images;
  std::vector<const nvimgcodecCodeStreamDesc_t*> stream_list;
  std::vector<const nvimgcodecImageDesc_t*> image_list;
  std::vector<Drawing> drawn;
  size_t odd = 0;
  for (uint32_t i = 0; i < 8; ++i) {
    drawn.push_back(drawing::draw({5 + i, 3}, {L3_COLOUR_GRAY, 8}, Pattern::noise, i));
    const Bytes file = codec_testing::encode(drawn.back(), codec_testing::options_of(L3_METHOD_AUTO));
    if (file.size() % 16 != 0) ++odd;
    stream_list.push_back(streams.emplace_back(file).get());
    image_list.push_back(images.emplace_back(5 + i, 3, 1, false, false, stream_).get());
  }
  EXPECT_GT(odd, 1u);
  EXPECT_EQ(description_.decodeBatch(decoder_, image_list.data(), stream_list.data(), 8, &params_, -1),
            NVIMGCODEC_STATUS_SUCCESS);
  for (uint32_t i = 0; i < 8; ++i) EXPECT_EQ(images[i].pixels(), drawn[i].pixels) << i;
}

TEST_F(CudaDecoder, SaysWhichImageOfABatchIsDamaged) {
  const Drawing drawn = drawing::draw({64, 64}, {L3_COLOUR_RGB, 8}, Pattern::noise);
  const Bytes good = codec_testing::encode(drawn);
  Bytes damaged = good, cut = good;
  damaged[damaged.size() - 9] ^= 1;  // in the payload: only the GPU reads it
  cut.resize(cut.size() / 2);
  std::deque<Stream> streams;
  std::deque<Image> images;
  std::vector<const nvimgcodecCodeStreamDesc_t*> stream_list;
  std::vector<const nvimgcodecImageDesc_t*> image_list;
  for (const Bytes& file : {good, damaged, cut, good}) {
    stream_list.push_back(streams.emplace_back(file).get());
    image_list.push_back(images.emplace_back(64, 64, 3, false, false, stream_).get());
  }
  EXPECT_EQ(description_.decodeBatch(decoder_, image_list.data(), stream_list.data(), 4, &params_, -1),
            NVIMGCODEC_STATUS_EXTENSION_EXECUTION_FAILED);
  const auto success = NVIMGCODEC_PROCESSING_STATUS_SUCCESS, corrupt = NVIMGCODEC_PROCESSING_STATUS_IMAGE_CORRUPTED;
  const nvimgcodecProcessingStatus_t expected[] = {success, corrupt, corrupt, success};
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(images[i].ready(), Statuses{expected[i]}) << i;
  EXPECT_EQ(images[0].pixels(), drawn.pixels);
  EXPECT_EQ(images[3].pixels(), drawn.pixels);
  ASSERT_EQ(said_.size(), 2u);
  EXPECT_NE(said_[1].find("check"), std::string::npos) << said_[1];
  EXPECT_NE(said_[1].find("(tile "), std::string::npos) << said_[1];
}

TEST_F(CudaDecoder, LeavesOtherWishesToTheCpu) {
  const Drawing drawn = drawing::draw({20, 10}, {L3_COLOUR_RGB_ALPHA, 8}, Pattern::natural);
  Stream stream(codec_testing::encode(drawn));
  const auto format = NVIMGCODEC_PROCESSING_STATUS_SAMPLE_FORMAT_UNSUPPORTED;
  Image without_alpha(20, 10, 3, false, false, stream_), wide(20, 10, 4, true, false, stream_),
      mirrored(20, 10, 4, false, false, stream_);
  mirrored.info().sample_format = NVIMGCODEC_SAMPLEFORMAT_I_BGR;
  for (const Image* image : {&without_alpha, &wide, &mirrored}) {
    EXPECT_EQ(can_decode(*image, stream), format);
    expect_refused(*image, stream, format);
    EXPECT_TRUE(image->is_untouched());
  }
  Image host(20, 10, 4, false, false, stream_);
  host.info().buffer_kind = NVIMGCODEC_IMAGE_BUFFER_KIND_STRIDED_HOST;
  EXPECT_EQ(can_decode(host, stream), NVIMGCODEC_PROCESSING_STATUS_BACKEND_UNSUPPORTED);
  expect_refused(host, stream, NVIMGCODEC_PROCESSING_STATUS_FAIL);
  Image good(20, 10, 4, false, false, stream_);
  stream.set_codec("png");
  EXPECT_EQ(can_decode(good, stream), NVIMGCODEC_PROCESSING_STATUS_CODEC_UNSUPPORTED);
  stream.set_codec(kCodec);
  stream.set_region(0, 0, 11, 20);
  EXPECT_EQ(can_decode(good, stream), NVIMGCODEC_PROCESSING_STATUS_ROI_UNSUPPORTED);
  EXPECT_EQ(said_.size(), 2u);

  const Drawing deep = drawing::draw({20, 10}, {L3_COLOUR_GRAY, 16}, Pattern::natural);
  Image odd(20, 10, 1, true, false, stream_);
  odd.info().buffer = static_cast<uint8_t*>(odd.info().buffer) + 1;
  expect_refused(odd, Stream(codec_testing::encode(deep)), NVIMGCODEC_PROCESSING_STATUS_FAIL);
}

TEST_F(CudaDecoder, RefusesAllIfTheDeviceCannotDecode) {
  const Drawing drawn = drawing::draw({20, 10}, {L3_COLOUR_RGB, 8}, Pattern::natural);
  const Stream stream(codec_testing::encode(drawn));
  for (const int device : {NVIMGCODEC_DEVICE_CPU_ONLY, 99}) {
    make(device);
    Image image(20, 10, 3, false, false, stream_);
    EXPECT_EQ(can_decode(image, stream), NVIMGCODEC_PROCESSING_STATUS_BACKEND_UNSUPPORTED);
    expect_refused(image, stream, NVIMGCODEC_PROCESSING_STATUS_BACKEND_UNSUPPORTED);
  }
  // A thread that nvImageCodec did not announce.
  make(0);
  Image image(20, 10, 3, false, false, stream_);
  EXPECT_EQ(decode(image, stream, 1000), NVIMGCODEC_STATUS_EXTENSION_EXECUTION_FAILED);
  EXPECT_EQ(decode(image, stream, 0), NVIMGCODEC_STATUS_SUCCESS);
  EXPECT_EQ(image.pixels(), drawn.pixels);
}

}  // namespace
}  // namespace l3_nvimgcodec
