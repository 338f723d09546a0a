// Implements encoders.h.
#include "encoders.h"

namespace loader::cuda {
namespace {

l3_cuda_source source_of(const DevicePixels& image) {
  l3_cuda_source source = l3_cuda_source_init();
  source.pixels = image.pixels;
  source.row_stride = image.row_stride;
  source.plane_stride = image.plane_stride;
  source.width = image.width;
  source.height = image.height;
  source.channels = image.channels;
  source.bits = image.bits;
  source.layout = image.planar ? L3_CUDA_CHW : L3_CUDA_HWC;
  source.premultiplied = image.premultiplied ? 1 : 0;
  source.tile_width = image.tile_width;
  source.tile_height = image.tile_height;
  return source;
}

}  // namespace

l3_error Encoders::One::encode(std::span<const DevicePixels> images, cudaStream_t stream, std::span<DeviceFile> to) {
  std::vector<l3_cuda_source> sources;
  sources.reserve(images.size());
  for (const DevicePixels& image : images) sources.push_back(source_of(image));
  l3_error error = no_error();
  if (encoder.encode(sources, stream, &error) != L3_OK || encoder.wait(&error) != L3_OK) return error;
  uint64_t size = 0;
  for (size_t i = 0; i < encoder.size(); ++i) size += encoder.file(i).size();
  if (files.size() < size) {
    files = {};
    auto larger = l3::cuda::PinnedBuffer::make(size);
    if (!larger) return larger.error();
    files = std::move(*larger);
  }
  cudaError_t code = cudaSuccess;
  uint64_t at = 0;
  for (size_t i = 0; i < encoder.size() && code == cudaSuccess; ++i) {
    const std::span<const uint8_t> file = encoder.file(i);
    if (file.empty()) continue;
    code = cudaMemcpyAsync(files.bytes() + at, file.data(), file.size(), cudaMemcpyDeviceToHost, stream);
    at += file.size();
  }
  const cudaError_t end = cudaStreamSynchronize(stream);  // after a failure too: the memory is used again
  if (code != cudaSuccess || end != cudaSuccess) return from_cuda(code != cudaSuccess ? code : end);
  at = 0;
  for (size_t i = 0; i < encoder.size(); ++i) {
    const size_t bytes = encoder.file(i).size();
    to[i].error = encoder.result(i);
    to[i].bytes.assign(files.bytes() + at, files.bytes() + at + bytes);
    at += bytes;
  }
  return no_error();
}

l3::Result<Encoders::One> Encoders::take() {
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      One one = std::move(idle_.back());
      idle_.pop_back();
      return one;
    }
  }
  auto encoder = l3::cuda::Encoder::make();
  if (!encoder) return encoder.error();
  return One{std::move(*encoder), {}};
}

l3_error Encoders::encode(std::span<const DevicePixels> images, cudaStream_t stream, std::span<DeviceFile> files) {
  if (is_captured(stream)) return make_error(L3_ERROR_ARGUMENT, "the stream is capturing a graph");
  auto one = take();
  if (!one) return one.error();
  const l3_error error = one->encode(images, stream, files);
  if (error.status != L3_OK) return error;
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(*one));
  return error;
}

}  // namespace loader::cuda
