// The scheme of the paper arXiv 2208.08711, by our own implementation in ../paper: decoded on the device.
#include <cstring>
#include <map>

#include "device.h"
#include "l3/l3_cuda.hpp"
#include "method.h"
#include "paper_l3.h"
#include "paper_l3_cuda.h"

namespace gpu_bench {
namespace {

using base::Parallel;
using l3::cuda::DeviceBuffer;
using l3::cuda::PinnedBuffer;

using File = std::vector<uint8_t>;
using Files = std::vector<File>;

paper::Shape shape_of(const formats::Image& picture) {
  return {picture.width, picture.height, formats::channels(picture.colour)};
}

// Why the case is nothing for the scheme or its decoder; empty: it is not.
std::string obstacle(const Case& a_case) {
  if (a_case.type == L3_CUDA_U16) return "writes 8 bits, not 16";
  if (!a_case.plain()) return "writes samples as they are: interleaved, no floats, not flipped";
  for (const Item& item : a_case.items) {
    const formats::Image& picture = a_case.picture(item);
    if (picture.bits != 8) return "holds images of 8 bits, not of " + std::to_string(picture.bits);
    if (picture.colour == formats::Colour::palette) return "holds no images with a palette";
    if (item.width != picture.width || item.height != picture.height) return "decodes whole images, no regions";
    // A call of its decoder takes images of one kind.
    if (picture.colour != a_case.picture(a_case.items[0]).colour) return "decodes batches of one number of channels";
    if (paper::encode_bound(shape_of(picture)) == 0) return "holds no images of that size";
  }
  return "";
}

File encode(const formats::Image& picture) {
  const paper::Shape shape = shape_of(picture);
  File file(paper::encode_bound(shape));
  file.resize(paper::encode(shape, picture.pixels.data(), file.data()));
  return file;
}

// That a file is the picture again when the processor decodes it.
void check_lossless(const File& file, const formats::Image& picture) {
  paper::Shape shape;
  paper::Reason reason = paper::read_head(file, shape);
  std::vector<uint8_t> pixels(picture.pixels.size());
  if (reason == paper::Reason::none && shape.pixel_bytes() == pixels.size()) {
    reason = paper::decode(file, shape, pixels.data());
  }
  if (reason != paper::Reason::none) throw Failure(std::string("decoding by the processor: ") + paper::text(reason));
  if (pixels != picture.pixels) throw Failure("the processor does not decode what it encoded");
}

// Cases share pictures: each set of them is encoded once.
std::shared_ptr<const Files> encoded(const Case& a_case, Parallel& parallel) {
  static std::map<std::shared_ptr<const Pictures>, std::shared_ptr<const Files>> kept;
  std::shared_ptr<const Files>& files = kept[a_case.pictures];
  if (files != nullptr) return files;
  auto made = std::make_shared<Files>(a_case.pictures->size());
  parallel.for_each(made->size(), [&](uint64_t i) {
    const formats::Image& picture = (*a_case.pictures)[i];
    (*made)[i] = encode(picture);
    check_lossless((*made)[i], picture);
  });
  return files = std::move(made);
}

class PaperJob : public Job {
 public:
  PaperJob(const Case& a_case, std::shared_ptr<const Files> files) : case_(a_case), files_(std::move(files)) {
    for (const Item& item : case_.items) {
      offsets_.push_back(room_);
      room_ += (*files_)[item.picture].size();  // a multiple of paper::kUnit, as the decoder wants files to lie
    }
  }

  uint64_t encoded_bytes() const override { return room_; }
  std::vector<Mode> modes() const override { return {Mode::kernel, Mode::graph, Mode::pinned}; }

  void make_sets(std::span<uint8_t* const> outputs) override {
    pinned_ = take(PinnedBuffer::make(room_), "pinned memory for files");
    for (size_t i = 0; i < case_.items.size(); ++i) {
      const File& file = (*files_)[case_.items[i].picture];
      std::memcpy(pinned_.bytes() + offsets_[i], file.data(), file.size());
    }
    sets_.resize(outputs.size());
    for (size_t set = 0; set < outputs.size(); ++set) fill(sets_[set], outputs[set]);
  }

  void run(Mode mode, uint32_t set, cudaStream_t stream) override {
    const Set& own = sets_[set];
    if (mode == Mode::pinned) {
      check(cudaMemcpyAsync(own.files.data(), pinned_.data(), room_, cudaMemcpyHostToDevice, stream), "copying files");
    }
    if (const char* error = paper::decode_batch_async(own.batch, stream)) {
      throw Failure(std::string("decoding: ") + error);
    }
  }

  std::string problem(Mode, uint32_t set) override {
    std::vector<paper::Reason> reasons(case_.items.size());
    check(cudaMemcpy(reasons.data(), sets_[set].reasons.data(), reasons.size() * sizeof(paper::Reason),
                     cudaMemcpyDeviceToHost),
          "copying results back");
    for (size_t i = 0; i < reasons.size(); ++i) {
      if (reasons[i] != paper::Reason::none) return "image " + std::to_string(i) + ": " + paper::text(reasons[i]);
    }
    return "";
  }

 private:
  // All in the device's memory, but for the pointers of the batch.
  struct Set {
    DeviceBuffer files, images, offsets, reasons;
    paper::Batch batch{};
  };

  void fill(Set& set, uint8_t* output) const {
    set.files = take(DeviceBuffer::make(room_), "device memory for files");
    check(cudaMemcpy(set.files.data(), pinned_.data(), room_, cudaMemcpyHostToDevice), "copying files");

    std::vector<paper::DeviceImage> images;
    uint32_t channels = 0;
    for (size_t i = 0; i < case_.items.size(); ++i) {
      const Item& item = case_.items[i];
      const File& file = (*files_)[item.picture];
      paper::Shape shape;
      if (const paper::Reason reason = paper::read_head(file, shape); reason != paper::Reason::none) {
        throw Failure(std::string("reading the head of a file: ") + paper::text(reason));
      }
      channels = shape.channels;
      paper::DeviceImage image{};
      image.file = set.files.bytes() + offsets_[i];
      image.file_bytes = file.size();
      image.out = output + item.offset;
      image.row_stride = uint64_t{shape.width} * shape.channels;
      image.width = shape.width;
      image.height = shape.height;
      images.push_back(image);
    }
    set.batch = paper::plan(images, channels);
    if (set.batch.count != images.size()) throw Failure("more patches than a batch may have");

    const uint64_t image_bytes = images.size() * sizeof(images[0]);
    set.images = take(DeviceBuffer::make(image_bytes), "device memory for a batch");
    set.offsets = take(DeviceBuffer::make(uint64_t{set.batch.patches} * 4), "device memory for a batch");
    set.reasons = take(DeviceBuffer::make(images.size() * sizeof(paper::Reason)), "device memory for a batch");
    check(cudaMemcpy(set.images.data(), images.data(), image_bytes, cudaMemcpyHostToDevice), "copying a batch");
    set.batch.images = static_cast<const paper::DeviceImage*>(set.images.data());
    set.batch.offsets = static_cast<uint32_t*>(set.offsets.data());
    set.batch.reasons = static_cast<paper::Reason*>(set.reasons.data());
  }

  const Case& case_;
  std::shared_ptr<const Files> files_;
  std::vector<uint64_t> offsets_;  // of each item's file
  uint64_t room_ = 0;
  PinnedBuffer pinned_;
  std::vector<Set> sets_;
};

Prepared prepare(const Case& a_case, const Settings&, Parallel& parallel) {
  if (std::string why_not = obstacle(a_case); !why_not.empty()) return {nullptr, std::move(why_not)};
  return {std::make_unique<PaperJob>(a_case, encoded(a_case, parallel)), ""};
}

}  // namespace

const Method kPaper = {"l3-paper", prepare};

}  // namespace gpu_bench
