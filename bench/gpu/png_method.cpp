// The peer on the processor: libpng on all threads into pinned memory, and a copy of the pixels to the device.
#include <png.h>

#include <algorithm>
#include <csetjmp>
#include <cstring>
#include <map>

#include "device.h"
#include "formats/formats.h"
#include "l3/l3_cuda.hpp"
#include "method.h"

namespace gpu_bench {
namespace {

using base::Parallel;
using l3::cuda::PinnedBuffer;

constexpr int kLevel = 6;  // zlib's

using File = std::vector<uint8_t>;
using Files = std::vector<File>;

struct Reader {
  const uint8_t* at;
  size_t left;
};

void read_bytes(png_structp png, png_bytep out, size_t size) {
  auto* reader = static_cast<Reader*>(png_get_io_ptr(png));
  if (size > reader->left) png_error(png, "the file ends early");
  std::memcpy(out, reader->at, size);
  reader->at += size;
  reader->left -= size;
}

// Decodes to rows without padding, as straight as libpng goes. False where it fails.
bool decode(const File& file, uint8_t* out, size_t row_bytes, uint32_t height) {
  png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  if (png == nullptr) return false;
  png_infop info = png_create_info_struct(png);
  Reader reader{file.data(), file.size()};
  // Nothing with a destructor lives between here and the end: libpng leaves by longjmp.
  if (info == nullptr || setjmp(png_jmpbuf(png)) != 0) {
    png_destroy_read_struct(&png, &info, nullptr);
    return false;
  }
  png_set_read_fn(png, &reader, read_bytes);
  png_read_info(png, info);
  if (png_get_bit_depth(png, info) == 16) png_set_swap(png);
  png_read_update_info(png, info);
  if (png_get_rowbytes(png, info) != row_bytes || png_get_image_height(png, info) != height) {
    png_error(png, "not the size that was expected");
  }
  for (uint32_t y = 0; y < height; ++y) png_read_row(png, out + y * row_bytes, nullptr);
  png_read_end(png, nullptr);
  png_destroy_read_struct(&png, &info, nullptr);
  return true;
}

std::shared_ptr<const Files> encoded(const Case& a_case, Parallel& parallel) {
  static std::map<std::shared_ptr<const Pictures>, std::shared_ptr<const Files>> kept;
  std::shared_ptr<const Files>& files = kept[a_case.pictures];
  if (files != nullptr) return files;
  auto made = std::make_shared<Files>(a_case.pictures->size());
  parallel.for_each(made->size(), [&](uint64_t i) {
    formats::WriteOptions options;
    options.png_level = kLevel;
    auto file = formats::write(formats::Format::png, (*a_case.pictures)[i], options);
    if (!file) throw Failure("encoding PNG: " + file.error().reason);
    (*made)[i] = std::move(*file);
  });
  return files = std::move(made);
}

class PngJob : public Job {
 public:
  PngJob(const Case& a_case, std::shared_ptr<const Files> files, Parallel& parallel)
      : case_(a_case), files_(std::move(files)), parallel_(parallel) {
    for (const Item& item : case_.items) {
      offsets_.push_back(room_);
      room_ += row_bytes(item) * case_.picture(item).height;
      encoded_bytes_ += (*files_)[item.picture].size();
    }
  }

  uint64_t encoded_bytes() const override { return encoded_bytes_; }
  std::vector<Mode> modes() const override { return {Mode::pinned}; }

  void make_sets(std::span<uint8_t* const> outputs) override {
    outputs_.assign(outputs.begin(), outputs.end());
    for (PinnedBuffer& pinned : pinned_) {
      pinned = take(PinnedBuffer::make(room_), "pinned memory for pixels");
      std::memset(pinned.data(), 0, room_);
    }
  }

  void run(Mode, uint32_t set, cudaStream_t stream) override {
    check(cudaStreamSynchronize(stream), "the copy before");  // which may still read this memory
    const PinnedBuffer& pixels = pinned_[set];
    parallel_.for_each(case_.items.size(), [&](uint64_t i) {
      const Item& item = case_.items[i];
      if (!decode((*files_)[item.picture], pixels.bytes() + offsets_[i], row_bytes(item), case_.picture(item).height)) {
        throw Failure("libpng does not decode image " + std::to_string(i));
      }
    });
    for (size_t i = 0; i < case_.items.size(); ++i) {
      const Item& item = case_.items[i];
      const size_t pitch = row_bytes(item), width = pitch / case_.picture(item).width * item.width;
      const uint8_t* from = pixels.bytes() + offsets_[i] + item.y * pitch + pitch / case_.picture(item).width * item.x;
      check(cudaMemcpy2DAsync(outputs_[set] + item.offset, width, from, pitch, width, item.height,
                              cudaMemcpyHostToDevice, stream),
            "copying pixels");
    }
  }

  std::string problem(Mode, uint32_t) override { return ""; }

 private:
  size_t row_bytes(const Item& item) const {
    const formats::Image& picture = case_.picture(item);
    return size_t{picture.width} * formats::channels(picture.colour) * formats::bytes_per_sample(picture.bits);
  }

  const Case& case_;
  std::shared_ptr<const Files> files_;
  Parallel& parallel_;
  std::vector<uint64_t> offsets_;  // of each picture's pixels
  uint64_t room_ = 0, encoded_bytes_ = 0;
  PinnedBuffer pinned_[2];
  std::vector<uint8_t*> outputs_;
};

Prepared prepare(const Case& a_case, const Settings&, Parallel& parallel) {
  if (!a_case.plain()) return {nullptr, "writes samples as they are: interleaved, no floats, not flipped"};
  return {std::make_unique<PngJob>(a_case, encoded(a_case, parallel), parallel), ""};
}

}  // namespace

const Method kPngOnProcessor = {"png-cpu", prepare};

}  // namespace gpu_bench
