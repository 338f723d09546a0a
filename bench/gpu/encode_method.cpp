// Encoding with the method fast by libl3_cuda: from pixels in device memory to files there. To prove the files, the
// decoder makes the pixels of them again.
#include <algorithm>
#include <cstring>

#include "device.h"
#include "l3/l3_cuda_encode.h"
#include "method.h"

namespace gpu_bench {
namespace {

using l3::cuda::Decoder;
using l3::cuda::DeviceBuffer;
using l3::cuda::PinnedBuffer;

class EncodeJob : public Job {
 public:
  explicit EncodeJob(const Case& a_case) : case_(a_case) {
    for (const Item& item : case_.items) {
      const formats::Image& picture = case_.picture(item);
      l3_cuda_source source = l3_cuda_source_init();
      source.width = picture.width;
      source.height = picture.height;
      source.channels = formats::channels(picture.colour);
      source.bits = picture.bits;
      source.out_size = l3_cuda_encode_bound(&source);
      if (l3_cuda_add_to_capacity(&capacity_, &source) != L3_OK) throw Failure("a picture cannot be encoded");
      offsets_.push_back(room_);
      room_ += (source.out_size + 255) / 256 * 256;
      sources_.push_back(source);
    }
  }

  // What a batch takes in device memory beside its pixels.
  uint64_t encoded_bytes() const override { return files_size_ != 0 ? files_size_ : room_; }
  std::vector<Mode> modes() const override { return {Mode::kernel, Mode::graph}; }

  void make_sets(std::span<uint8_t* const> outputs) override {
    const uint64_t count = sources_.size();
    pixels_ = take(DeviceBuffer::make(case_.output_bytes), "memory for pixels");
    for (const Item& item : case_.items) {
      const std::vector<uint8_t>& pixels = case_.picture(item).pixels;
      check(cudaMemcpy(pixels_.bytes() + item.offset, pixels.data(), pixels.size(), cudaMemcpyHostToDevice), "copying");
    }
    for (uint8_t* output : outputs) {
      Set& set = sets_.emplace_back();
      set.output = output;
      set.files = take(DeviceBuffer::make(room_), "memory for files");
      set.workspace = take(DeviceBuffer::make(l3_cuda_encode_workspace_size(&capacity_)), "a workspace");
      set.sources = take(PinnedBuffer::make(count * sizeof(l3_cuda_source)), "pinned memory");
      set.results = take(PinnedBuffer::make(count * sizeof(l3_cuda_encoded)), "pinned memory");
      std::memset(set.results.data(), 0, set.results.size());
      for (size_t i = 0; i < count; ++i) {
        sources_[i].pixels = pixels_.bytes() + case_.items[i].offset;
        sources_[i].out = set.files.bytes() + offsets_[i];
      }
      std::memcpy(set.sources.data(), sources_.data(), set.sources.size());
      set.batch = l3_cuda_encode_batch_init();
      set.batch.image_count = count;
      set.batch.images = static_cast<const l3_cuda_source*>(set.sources.data());
      set.batch.results = static_cast<l3_cuda_encoded*>(set.results.data());
      set.batch.capacity = capacity_;
      set.batch.workspace = set.workspace.data();
      set.batch.workspace_size = set.workspace.size();
    }
    l3_cuda_capacity capacity{static_cast<uint32_t>(count), 1, capacity_.tiles, 0, 0};
    decoder_.push_back(take(Decoder::make(capacity), "a decoder"));
  }

  void run(Mode, uint32_t set, cudaStream_t stream) override {
    l3_error error{};
    if (l3_cuda_encode_batch_async(&sets_[set].batch, &error, stream) != L3_OK) {
      throw Failure("encoding: " + l3::message(error));
    }
  }

  std::string problem(Mode, uint32_t number) override {
    const Set& set = sets_[number];
    Decoder& decoder = decoder_[0];
    l3_error error{};
    files_size_ = 0;
    for (uint32_t i = 0; i < sources_.size(); ++i) {
      const l3_cuda_encoded& encoded = set.batch.results[i];
      error = l3_cuda_explain(&encoded.result);
      if (error.status != L3_OK) return "image " + std::to_string(i) + ": " + l3::message(error);
      files_size_ += encoded.size;
      l3_cuda_image& image = decoder.images()[i];
      image = l3_cuda_image_init();
      image.data = set.batch.images[i].out;
      image.size = encoded.size;
      image.width = sources_[i].width;
      image.height = sources_[i].height;
      image.channels = sources_[i].channels;
      image.type = case_.type;
      image.out = set.output + case_.items[i].offset;
    }
    if (decoder.decode(static_cast<uint32_t>(sources_.size()), nullptr, &error) != L3_OK ||
        decoder.wait(&error) != L3_OK) {
      return "decoding: " + l3::message(error);
    }
    for (uint32_t i = 0; i < sources_.size(); ++i) {
      error = decoder.result(i);
      if (error.status != L3_OK) return "decoding image " + std::to_string(i) + ": " + l3::message(error);
    }
    return "";
  }

 private:
  struct Set {
    uint8_t* output = nullptr;
    DeviceBuffer files, workspace;
    PinnedBuffer sources, results;
    l3_cuda_encode_batch batch{};
  };

  const Case& case_;
  std::vector<l3_cuda_source> sources_;
  std::vector<uint64_t> offsets_;  // of each item's file
  l3_cuda_encode_capacity capacity_{};
  uint64_t room_ = 0, files_size_ = 0;
  DeviceBuffer pixels_;
  std::vector<Set> sets_;
  std::vector<Decoder> decoder_;
};

Prepared prepare(const Case& a_case, const Settings&, base::Parallel&) {
  const auto is_whole = [&](const Item& item) {
    const formats::Image& picture = a_case.picture(item);
    return !item.flip && item.width == picture.width && item.height == picture.height &&
           picture.colour != formats::Colour::palette;
  };
  if (!a_case.plain() || !std::all_of(a_case.items.begin(), a_case.items.end(), is_whole)) {
    return {nullptr, "only whole images whose samples are unchanged are encoded"};
  }
  return {std::make_unique<EncodeJob>(a_case), ""};
}

}  // namespace

const Method kL3Encode = {"encode", prepare};

}  // namespace gpu_bench
