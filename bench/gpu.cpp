// Decoding on a GPU, by libl3_cuda.
#include "bench/gpu.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <vector>

#include "l3/l3_cuda.hpp"

namespace bench {
namespace {

using l3::cuda::Decoder;
using l3::cuda::DeviceBuffer;
using l3::cuda::PinnedBuffer;

constexpr uint64_t kAlignment = 256;  // of files and outputs; libl3_cuda wants 16

uint64_t aligned(uint64_t size) { return (size + kAlignment - 1) / kAlignment * kAlignment; }

class CudaBatch : public GpuBatch {
 public:
  std::optional<std::string> add(std::span<const uint8_t> file, const formats::Image& image) override {
    const auto info = l3::read_info(file, l3::no_limits());
    if (!info) return l3::message(info.error());
    items_.push_back({*info, files_.size(), file.size(), wanted_.size(), image.pixels.size()});
    files_.insert(files_.end(), file.begin(), file.end());
    files_.resize(aligned(files_.size()));
    wanted_.insert(wanted_.end(), image.pixels.begin(), image.pixels.end());
    wanted_.resize(aligned(wanted_.size()));
    return std::nullopt;
  }

  std::optional<std::string> check_lossless() override {
    if (const auto problem = prepare()) return problem;
    if (const auto problem = decode()) return problem;
    for (uint32_t i = 0; i < items_.size(); ++i) {
      const l3_error error = decoder_->result(i);
      if (error.status != L3_OK) return l3::message(error);
    }
    std::vector<uint8_t> got(wanted_.size());
    const cudaError_t code = cudaMemcpy(got.data(), samples_.data(), got.size(), cudaMemcpyDeviceToHost);
    if (code != cudaSuccess) return cudaGetErrorString(code);
    for (const Item& item : items_) {
      const auto begin = [&](const std::vector<uint8_t>& bytes) {
        return bytes.begin() + static_cast<std::ptrdiff_t>(item.samples);
      };
      if (!std::equal(begin(got), begin(got) + static_cast<std::ptrdiff_t>(item.sample_bytes), begin(wanted_))) {
        return "the GPU decoded other samples";
      }
    }
    return std::nullopt;
  }

  double run() override {
    const auto start = std::chrono::steady_clock::now();
    // It went well in `prove`, on the same input.
    (void)decode();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

 private:
  struct Item {
    l3_info info;
    uint64_t file, file_size, samples, sample_bytes;  // places and sizes
  };

  std::optional<std::string> prepare() {
    auto pinned = PinnedBuffer::make(std::max<uint64_t>(files_.size(), 1));
    if (!pinned) return l3::message(pinned.error());
    auto samples = DeviceBuffer::make(std::max<uint64_t>(wanted_.size(), 1));
    if (!samples) return l3::message(samples.error());
    pinned_ = std::move(*pinned);
    samples_ = std::move(*samples);
    std::copy(files_.begin(), files_.end(), pinned_.bytes());
    l3_cuda_capacity capacity{static_cast<uint32_t>(items_.size()), 0, 0, 0, 0};
    for (const Item& item : items_) {
      capacity.tiles += l3_cuda_count_tiles(&item.info, 0, 0);
      capacity.staged_bytes += aligned(item.file_size);
      capacity.follow_bytes += l3_cuda_count_follow_bytes(files_.data() + item.file, item.file_size, nullptr, 0, 0, 0);
    }
    auto decoder = Decoder::make(capacity);
    if (!decoder) return l3::message(decoder.error());
    decoder_.emplace(std::move(*decoder));
    for (size_t i = 0; i < items_.size(); ++i) {
      const Item& item = items_[i];
      l3_cuda_image image = l3_cuda_image_init();
      image.data = pinned_.bytes() + item.file;
      image.size = item.file_size;
      image.flags = L3_CUDA_STAGE;
      image.width = item.info.width;
      image.height = item.info.height;
      image.channels = item.info.channels;
      image.type = item.info.bits > 8 ? L3_CUDA_U16 : L3_CUDA_U8;
      image.layout = L3_CUDA_HWC;
      image.out = samples_.bytes() + item.samples;
      decoder_->images()[i] = image;
    }
    return std::nullopt;
  }

  std::optional<std::string> decode() {
    l3_error error{};
    if (decoder_->decode(static_cast<uint32_t>(items_.size()), nullptr, &error) != L3_OK) return l3::message(error);
    if (decoder_->wait(&error) != L3_OK) return l3::message(error);
    return std::nullopt;
  }

  std::vector<Item> items_;
  std::vector<uint8_t> files_, wanted_;
  PinnedBuffer pinned_;
  DeviceBuffer samples_;
  std::optional<Decoder> decoder_;  // goes first, as it may still use the others
};

class CudaGpu : public Gpu {
 public:
  explicit CudaGpu(std::string name) : name_(std::move(name)) {}
  std::string name() const override { return name_; }
  std::unique_ptr<GpuBatch> make_batch() override { return std::make_unique<CudaBatch>(); }

 private:
  std::string name_;
};

}  // namespace

std::unique_ptr<Gpu> find_gpu() {
  l3_error error{};
  if (l3_cuda_check_device(&error) != L3_OK) return nullptr;
  int device = 0;
  cudaDeviceProp properties{};
  if (cudaGetDevice(&device) != cudaSuccess || cudaGetDeviceProperties(&properties, device) != cudaSuccess) {
    return nullptr;
  }
  return std::make_unique<CudaGpu>(properties.name);
}

}  // namespace bench
