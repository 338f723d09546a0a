// A thin C++20 interface to l3_cuda.h and l3_cuda_encode.h: buffers that free themselves, a decoder and an encoder that
// own what a call needs, and errors as values (l3::Result).
//
// Lifetimes: do not change the descriptors in `images` until the stream has completed the call that reads them. `idle`
// tests that, and `wait` waits for it. Files and outputs must live until then too, unless they are freed or overwritten
// in the order of the same stream (cudaFreeAsync, cudaMemcpyAsync). Consecutive calls of one decoder in one stream need
// no waiting if the descriptors do not change.
//
// Streams: to decode in two streams at once, or to fill the next batch while one is decoded, make two decoders.
//
// Waiting: only `wait`, decode() and decode_region() of one image, and destructors wait for the device.
//
// Devices: an object belongs to the device that is current when it is made. That device must be current whenever the
// object is used.
//
// Threads: one thread at a time may use an object. Different threads may use different objects.
#pragma once

#if __cplusplus < 202002L
#error "l3_cuda.hpp needs C++20: compile with -std=c++20, or use l3_cuda.h, which is C"
#endif

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <type_traits>
#include <utility>

#include "l3/l3.hpp"
#include "l3/l3_cuda.h"
#include "l3/l3_cuda_encode.h"

namespace l3::cuda {

// Converts an error of the CUDA runtime to an l3_error.
inline l3_error failure(cudaError_t code) {
  (void)cudaGetLastError();  // clear it: the caller's next CUDA call must not report it again
  if (code == cudaErrorMemoryAllocation) return {L3_ERROR_MEMORY, 0, L3_NO_TILE, "the device is out of memory"};
  return {L3_ERROR_DEVICE, 0, L3_NO_TILE, cudaGetErrorString(code)};
}

struct DeviceMemory {
  static cudaError_t allocate(void** data, size_t size) { return cudaMalloc(data, size); }
  void operator()(void* data) const { (void)cudaFree(data); }
};

// Host memory that the device can access.
struct PinnedMemory {
  static cudaError_t allocate(void** data, size_t size) { return cudaHostAlloc(data, size, cudaHostAllocPortable); }
  void operator()(void* data) const { (void)cudaFreeHost(data); }
};

// Owns a block of memory of one kind; it may be empty. The memory is not initialised. Its address is a multiple of 256.
template <class Memory>
class Buffer {
 public:
  Buffer() = default;
  static Result<Buffer> make(uint64_t size) {
    Buffer buffer;
    if (size == 0) return buffer;
    void* data = nullptr;
    if (const cudaError_t code = Memory::allocate(&data, static_cast<size_t>(size)); code != cudaSuccess) {
      return failure(code);
    }
    buffer.data_.reset(data);
    buffer.size_ = size;
    return buffer;
  }

  void* data() const { return data_.get(); }
  uint8_t* bytes() const { return static_cast<uint8_t*>(data_.get()); }
  uint64_t size() const { return size_; }

 private:
  std::unique_ptr<void, Memory> data_;
  uint64_t size_ = 0;
};

using DeviceBuffer = Buffer<DeviceMemory>;
using PinnedBuffer = Buffer<PinnedMemory>;

struct DestroyStream {
  void operator()(cudaStream_t stream) const { (void)cudaStreamDestroy(stream); }
};
struct DestroyEvent {
  void operator()(cudaEvent_t event) const { (void)cudaEventDestroy(event); }
};
using Stream = std::unique_ptr<std::remove_pointer_t<cudaStream_t>, DestroyStream>;
using Event = std::unique_ptr<std::remove_pointer_t<cudaEvent_t>, DestroyEvent>;

// Makes a stream that does not synchronise with the default stream.
inline Result<Stream> make_stream() {
  cudaStream_t stream = nullptr;
  const cudaError_t code = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  if (code != cudaSuccess) return failure(code);
  return Stream(stream);
}

inline Result<Event> make_event(unsigned flags = cudaEventDisableTiming) {
  cudaEvent_t event = nullptr;
  const cudaError_t code = cudaEventCreateWithFlags(&event, flags);
  if (code != cudaSuccess) return failure(code);
  return Event(event);
}

// Owns what calls need: the descriptors of a batch's images, the workspace and the results.
class Decoder {
 public:
  // Makes a decoder for the current device. If that device cannot decode, the error is that of l3_cuda_check_device.
  static Result<Decoder> make(const l3_cuda_capacity& capacity) {
    l3_error error{};
    if (l3_cuda_check_device(&error) != L3_OK) return error;
    const uint64_t workspace_size = l3_cuda_workspace_size(&capacity);
    if (workspace_size == 0) return l3_error{L3_ERROR_ARGUMENT, 0, L3_NO_TILE, "invalid capacity"};
    auto workspace = DeviceBuffer::make(workspace_size);
    if (!workspace) return workspace.error();
    auto images = PinnedBuffer::make(uint64_t{capacity.images} * sizeof(l3_cuda_image));
    if (!images) return images.error();
    auto results = PinnedBuffer::make(uint64_t{capacity.images} * sizeof(l3_cuda_result));
    if (!results) return results.error();
    auto passed = make_event();
    if (!passed) return passed.error();

    Decoder decoder;
    decoder.capacity_ = capacity;
    decoder.workspace_ = std::move(*workspace);
    decoder.images_ = std::move(*images);
    decoder.results_ = std::move(*results);
    decoder.passed_ = std::move(*passed);
    std::uninitialized_fill_n(static_cast<l3_cuda_image*>(decoder.images_.data()), capacity.images,
                              l3_cuda_image_init());
    std::uninitialized_value_construct_n(static_cast<l3_cuda_result*>(decoder.results_.data()), capacity.images);
    return decoder;
  }

  // Waits for the last call to complete.
  ~Decoder() {
    if (passed_ != nullptr) (void)cudaEventSynchronize(passed_.get());
  }
  Decoder(Decoder&&) noexcept = default;
  Decoder& operator=(Decoder other) noexcept {
    std::swap(capacity_, other.capacity_);
    std::swap(workspace_, other.workspace_);
    std::swap(images_, other.images_);
    std::swap(results_, other.results_);
    std::swap(passed_, other.passed_);
    std::swap(models_, other.models_);
    std::swap(model_count_, other.model_count_);
    return *this;
  }

  const l3_cuda_capacity& capacity() const { return capacity_; }

  // Sets the models that files may name, from the next call on. The descriptors lie in memory that the device can read,
  // belong to the caller, and must live as long as calls use them. Models::data() returns such descriptors.
  void use_models(const l3_cuda_model* models, uint32_t count) {
    models_ = models;
    model_count_ = count;
  }

  // From now on images may have a `change`.
  void use_changes() { changes_ = true; }

  // The descriptors. Fill the first `count` of them, call `decode`, and do not change them until `idle` returns true.
  std::span<l3_cuda_image> images() const {
    return {static_cast<l3_cuda_image*>(images_.data()), images_.data() == nullptr ? 0 : capacity_.images};
  }

  // Decodes the first `count` images in the order of `stream`, and returns without waiting. Returns the errors of
  // l3_cuda_decode_batch_async. If `stream` is being captured, `idle` and `wait` do not cover the launches of the
  // graph: wait for the streams of the launches instead.
  [[nodiscard]] l3_status decode(uint32_t count, cudaStream_t stream, l3_error* error = nullptr) {
    l3_cuda_batch batch = l3_cuda_batch_init();
    batch.image_count = count;
    batch.images = images().data();
    batch.results = static_cast<l3_cuda_result*>(results_.data());
    batch.capacity = capacity_;
    batch.workspace = workspace_.data();
    batch.workspace_size = workspace_.size();
    batch.models = models_;
    batch.model_count = model_count_;
    batch.changes = changes_ ? 1 : 0;
    const l3_status status = l3_cuda_decode_batch_async(&batch, error, stream);
    // After a failure too: some of the work may be running.
    cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    cudaError_t code = cudaStreamIsCapturing(stream, &capture);
    if (code != cudaSuccess || capture == cudaStreamCaptureStatusNone) code = cudaEventRecord(passed_.get(), stream);
    if (status != L3_OK || code == cudaSuccess) return status;
    const l3_error result = failure(code);
    if (error != nullptr) *error = result;
    return result.status;
  }

  // Returns whether the last call is over: the stream has completed it, or the device failed.
  bool idle() const { return cudaEventQuery(passed_.get()) != cudaErrorNotReady; }

  // Waits until the stream has completed the last call. Returns L3_ERROR_DEVICE if the device failed.
  [[nodiscard]] l3_status wait(l3_error* error = nullptr) const {
    const cudaError_t code = cudaEventSynchronize(passed_.get());
    const l3_error result = code == cudaSuccess ? l3_error{L3_OK, 0, L3_NO_TILE, "no error"} : failure(code);
    if (error != nullptr) *error = result;
    return result.status;
  }

  // Returns the result of image `i`. Valid when the stream has completed the call.
  l3_error result(uint32_t i) const { return l3_cuda_explain(static_cast<const l3_cuda_result*>(results_.data()) + i); }

 private:
  Decoder() = default;

  l3_cuda_capacity capacity_{};
  DeviceBuffer workspace_;
  PinnedBuffer images_, results_;
  Event passed_;
  const l3_cuda_model* models_ = nullptr;
  uint32_t model_count_ = 0;
  bool changes_ = false;
};

// Encodes images with the method fast, and owns what the calls need. Its memory grows with the images.
class Encoder {
 public:
  // Makes an encoder for the current device. If that device cannot encode, the error is that of l3_cuda_check_encoder.
  static Result<Encoder> make() {
    l3_error error{};
    if (l3_cuda_check_encoder(&error) != L3_OK) return error;
    auto passed = make_event();
    if (!passed) return passed.error();
    Encoder encoder;
    encoder.passed_ = std::move(*passed);
    return encoder;
  }

  // Waits for the last call to complete.
  ~Encoder() {
    if (passed_ != nullptr) (void)cudaEventSynchronize(passed_.get());
  }
  Encoder(Encoder&&) noexcept = default;
  Encoder& operator=(Encoder other) noexcept {
    std::swap(workspace_, other.workspace_);
    std::swap(files_, other.files_);
    std::swap(sources_, other.sources_);
    std::swap(results_, other.results_);
    std::swap(passed_, other.passed_);
    std::swap(count_, other.count_);
    return *this;
  }

  // Encodes images in the order of `stream`, which must not be capturing. The files go to memory of this encoder: `out`
  // and `out_size` of the images are ignored. Waits for the call before, then returns without waiting for this one.
  [[nodiscard]] l3_status encode(std::span<const l3_cuda_source> images, cudaStream_t stream,
                                 l3_error* error = nullptr) {
    const auto give = [&](const l3_error& result) {
      if (error != nullptr) *error = result;
      return result.status;
    };
    count_ = 0;
    if (const cudaError_t code = cudaEventSynchronize(passed_.get()); code != cudaSuccess) return give(failure(code));
    l3_cuda_encode_batch batch = l3_cuda_encode_batch_init();
    uint64_t bytes = 0;
    for (const l3_cuda_source& image : images) {
      bytes += padded(l3_cuda_encode_bound(&image));
      if (l3_cuda_add_to_capacity(&batch.capacity, &image) != L3_OK) batch.capacity.images += 1;  // the call says why
    }
    batch.capacity.tiles += batch.capacity.tiles == 0 ? 1 : 0;
    const uint64_t workspace_size = images.empty() ? 0 : l3_cuda_encode_workspace_size(&batch.capacity);
    if (workspace_size == 0) {
      return images.empty() ? give({L3_OK, 0, L3_NO_TILE, "no error"})
                            : give({L3_ERROR_ARGUMENT, 0, L3_NO_TILE, "there are too many images or tiles"});
    }
    l3_error grown = grow(workspace_, workspace_size);
    if (grown.status == L3_OK) grown = grow(files_, bytes);
    if (grown.status == L3_OK) grown = grow(sources_, images.size() * sizeof(l3_cuda_source));
    if (grown.status == L3_OK) grown = grow(results_, images.size() * sizeof(l3_cuda_encoded));
    if (grown.status != L3_OK) return give(grown);
    auto* const sources = static_cast<l3_cuda_source*>(sources_.data());
    std::uninitialized_copy(images.begin(), images.end(), sources);
    std::uninitialized_value_construct_n(static_cast<l3_cuda_encoded*>(results_.data()), images.size());
    uint64_t at = 0;
    for (size_t i = 0; i < images.size(); ++i) {
      sources[i].out_size = l3_cuda_encode_bound(sources + i);
      sources[i].out = sources[i].out_size != 0 ? files_.bytes() + at : nullptr;
      at += padded(sources[i].out_size);
    }
    batch.image_count = images.size();
    batch.images = sources;
    batch.results = static_cast<l3_cuda_encoded*>(results_.data());
    batch.workspace = workspace_.data();
    batch.workspace_size = workspace_.size();
    const l3_status status = l3_cuda_encode_batch_async(&batch, error, stream);
    // After a failure too: some of the work may be running.
    const cudaError_t code = cudaEventRecord(passed_.get(), stream);
    if (status != L3_OK) return status;
    if (code != cudaSuccess) return give(failure(code));
    count_ = images.size();
    return L3_OK;
  }

  // Waits until the last call is complete. Returns L3_ERROR_DEVICE if the device failed.
  [[nodiscard]] l3_status wait(l3_error* error = nullptr) const {
    const cudaError_t code = cudaEventSynchronize(passed_.get());
    const l3_error result = code == cudaSuccess ? l3_error{L3_OK, 0, L3_NO_TILE, "no error"} : failure(code);
    if (error != nullptr) *error = result;
    return result.status;
  }

  // How many images the last call encoded, and of each, when the stream has completed the call: what became of it, and
  // its file in device memory, which is valid until the next call.
  size_t size() const { return count_; }
  l3_error result(size_t i) const { return l3_cuda_explain(&encoded(i).result); }
  std::span<const uint8_t> file(size_t i) const {
    if (encoded(i).result.status != L3_OK) return {};
    const auto* const sources = static_cast<const l3_cuda_source*>(sources_.data());
    return {static_cast<const uint8_t*>(sources[i].out), static_cast<size_t>(encoded(i).size)};
  }

 private:
  Encoder() = default;

  static uint64_t padded(uint64_t size) { return (size + 255) / 256 * 256; }
  template <class Memory>
  static l3_error grow(Buffer<Memory>& buffer, uint64_t size) {
    if (buffer.size() < size) {
      buffer = {};
      auto larger = Buffer<Memory>::make(size);
      if (!larger) return larger.error();
      buffer = std::move(*larger);
    }
    return {L3_OK, 0, L3_NO_TILE, "no error"};
  }
  const l3_cuda_encoded& encoded(size_t i) const { return static_cast<const l3_cuda_encoded*>(results_.data())[i]; }

  DeviceBuffer workspace_, files_;
  PinnedBuffer sources_, results_;
  Event passed_;
  size_t count_ = 0;
};

// Owns copies of models in pinned memory, which every device can read.
class Models {
 public:
  static Result<Models> make(std::span<const l3_model* const> models) {
    const auto padded = [](uint64_t size) { return (size + 15) / 16 * 16; };
    uint64_t bytes = padded(models.size() * sizeof(l3_cuda_model));
    for (const l3_model* model : models) bytes += padded(describe(model).size);
    auto memory = PinnedBuffer::make(bytes);
    if (!memory) return memory.error();
    Models copies;
    copies.memory_ = std::move(*memory);
    copies.count_ = static_cast<uint32_t>(models.size());
    uint64_t at = padded(models.size() * sizeof(l3_cuda_model));
    if (bytes != 0) std::memset(copies.memory_.data(), 0, bytes);
    for (size_t i = 0; i < models.size(); ++i) {
      const l3_model_info info = describe(models[i]);
      auto* const place = copies.memory_.bytes() + i * sizeof(l3_cuda_model);
      l3_cuda_model* const copy = ::new (static_cast<void*>(place)) l3_cuda_model{};
      copy->data = copies.memory_.bytes() + at;
      copy->size = info.size;
      std::memcpy(copy->name, info.name, sizeof(copy->name));
      std::memcpy(copies.memory_.bytes() + at, info.bytes, info.size);
      at += padded(info.size);
    }
    return copies;
  }

  const l3_cuda_model* data() const { return static_cast<const l3_cuda_model*>(memory_.data()); }
  uint32_t size() const { return count_; }

 private:
  static l3_model_info describe(const l3_model* model) {
    l3_model_info info = l3_model_info_init();
    (void)!l3_describe_model(model, &info, nullptr);
    return info;
  }

  PinnedBuffer memory_;
  uint32_t count_ = 0;
};

// Does what File::decode_region does, on the current device: returns pixels in host memory, and the same errors.
// `options` are those that the file was opened with. Each call allocates and frees what it needs, and waits for the
// device. Use a Decoder to decode more than one image.
inline Result<Pixels> decode_region(const File& opened, uint32_t x, uint32_t y, uint32_t width, uint32_t height,
                                    const l3_decode_options& options = l3_decode_options_init()) {
  l3_error error{};
  if (l3_cuda_check_device(&error) != L3_OK) return error;
  const std::span<const uint8_t> file = opened.bytes();
  const l3_info& info = opened.info();
  // With an output buffer of size 0, libl3 tests the other arguments, then stops with L3_ERROR_BUFFER.
  uint8_t nothing = 0;
  if (l3_file_decode_region(opened.get(), x, y, width, height, &nothing, 0, 0, &error) != L3_ERROR_BUFFER) {
    return error;
  }
  Pixels pixels{info, {}};
  if (!detail::resize(pixels.bytes, uint64_t{width} * height * opened.pixel_bytes(), error)) return error;
  auto stream = make_stream();
  if (!stream) return stream.error();
  const auto input = DeviceBuffer::make(file.size());
  if (!input) return input.error();
  const auto output = DeviceBuffer::make(pixels.bytes.size());
  if (!output) return output.error();
  const auto models = Models::make({options.models, options.model_count});
  if (!models) return models.error();
  const uint64_t follow_bytes =
      l3_cuda_count_follow_bytes(file.data(), file.size(), options.models, options.model_count, width, height);
  auto decoder = Decoder::make({1, 1, l3_cuda_count_tiles(&info, width, height), 0, follow_bytes});
  if (!decoder) return decoder.error();
  decoder->use_models(models->data(), models->size());

  l3_cuda_image& image = decoder->images()[0];
  image.data = input->data();
  image.size = file.size();
  image.width = info.width;
  image.height = info.height;
  image.channels = opened.pixel_bytes() / (info.sample_type == L3_SAMPLE_U16 ? 2 : 1);
  image.x = x;
  image.y = y;
  image.region_width = width;
  image.region_height = height;
  image.flags = options.as_colours != 0 ? L3_CUDA_COLOURS : 0;
  image.type = info.sample_type == L3_SAMPLE_U16 ? L3_CUDA_U16 : L3_CUDA_U8;
  image.layout = L3_CUDA_HWC;
  image.out = output->data();

  cudaError_t code = cudaMemcpyAsync(input->data(), file.data(), file.size(), cudaMemcpyHostToDevice, stream->get());
  if (code == cudaSuccess && decoder->decode(1, stream->get(), &error) == L3_OK) {
    code = cudaMemcpyAsync(pixels.bytes.data(), output->data(), pixels.bytes.size(), cudaMemcpyDeviceToHost,
                           stream->get());
  }
  const cudaError_t end = cudaStreamSynchronize(stream->get());  // after a failure too: the buffers are freed now
  if (code == cudaSuccess) code = end;
  if (code != cudaSuccess) return failure(code);
  if (error.status != L3_OK) return error;
  if (const l3_error result = decoder->result(0); result.status != L3_OK) return result;
  return pixels;
}

// Opens a file and decodes a region of it, as l3::decode_region does.
inline Result<Pixels> decode_region(std::span<const uint8_t> file, uint32_t x, uint32_t y, uint32_t width,
                                    uint32_t height, const l3_decode_options& options = l3_decode_options_init()) {
  const Result<File> opened = File::open(file, options);
  if (!opened) return opened.error();
  return decode_region(*opened, x, y, width, height, options);
}

// Opens a file and decodes the whole image, as l3::decode does.
inline Result<Pixels> decode(std::span<const uint8_t> file,
                             const l3_decode_options& options = l3_decode_options_init()) {
  const Result<File> opened = File::open(file, options);
  if (opened) return decode_region(*opened, 0, 0, opened->info().width, opened->info().height, options);
  // If an image above the limits is damaged too, the limit is the reason.
  const Result<l3_info> info = read_info(file, options.limits);
  return info ? opened.error() : info.error();
}

}  // namespace l3::cuda
