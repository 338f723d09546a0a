// L3 by libl3_cuda: files of the methods fast and dense, encoded by libl3.
#include <algorithm>
#include <cstring>
#include <map>
#include <optional>

#include "bridge/image_bridge.h"
#include "device.h"
#include "l3/l3.hpp"
#include "l3/l3_cuda.hpp"
#include "method.h"

namespace gpu_bench {
namespace {

using base::Parallel;
using l3::cuda::Decoder;
using l3::cuda::DeviceBuffer;
using l3::cuda::PinnedBuffer;

constexpr uint64_t kAlignment = 16;  // of a file, as the decoder wants it

using File = std::vector<uint8_t>;
using Files = std::vector<File>;

uint64_t aligned(uint64_t size) { return (size + kAlignment - 1) / kAlignment * kAlignment; }

File encode(const formats::Image& picture, const l3_encode_options& options) {
  const bridge::L3Image image(picture);
  return take(l3::encode(image.get(), options), "encoding");
}

// That a file is the picture again when libl3 decodes it.
void check_lossless(const File& file, const formats::Image& picture) {
  l3_decode_options options = l3_decode_options_init();
  options.limits = l3::no_limits();
  if (take(l3::decode(file, options), "decoding by libl3").bytes != picture.pixels) {
    throw Failure("libl3 does not decode what it encoded");
  }
}

Files encode_all(const Case& a_case, l3_method method, const Settings& settings, Parallel& parallel) {
  const Pictures& pictures = *a_case.pictures;
  l3_encode_options options = l3_encode_options_init();
  options.method = method;
  options.effort = settings.effort;
  File first;  // has the model that serves all
  if (a_case.shared_model && method == L3_METHOD_DENSE) {
    first = encode(pictures[0], options);
    l3_error error{};
    if (l3_find_section(first.data(), first.size(), L3_SECTION_MODEL, &options.model, &options.model_size, &error) !=
        L3_OK) {
      throw Failure("finding the model: " + l3::message(error));
    }
  }
  Files files(pictures.size());
  if (pictures.size() < parallel.threads()) {
    options.parallel = parallel.for_l3();
    for (size_t i = 0; i < files.size(); ++i) files[i] = encode(pictures[i], options);
  } else {
    parallel.for_each(files.size(), [&](uint64_t i) { files[i] = encode(pictures[i], options); });
  }
  parallel.for_each(files.size(), [&](uint64_t i) { check_lossless(files[i], pictures[i]); });
  return files;
}

// Cases share pictures: each set of them is encoded once by a method.
std::shared_ptr<const Files> encoded(const Case& a_case, l3_method method, const Settings& settings,
                                     Parallel& parallel) {
  using Key = std::pair<std::shared_ptr<const Pictures>, l3_method>;
  static std::map<Key, std::shared_ptr<const Files>> kept;
  std::shared_ptr<const Files>& files = kept[{a_case.pictures, method}];
  if (files == nullptr) files = std::make_shared<Files>(encode_all(a_case, method, settings, parallel));
  return files;
}

class L3Job : public Job {
 public:
  L3Job(const Case& a_case, std::shared_ptr<const Files> files, bool one_model)
      : case_(a_case), files_(std::move(files)), one_model_(one_model) {
    for (const File& file : *files_) {
      infos_.push_back(take(l3::read_info(file, l3::no_limits()), "reading the head of a file"));
    }
    for (const Item& item : case_.items) {
      offsets_.push_back(room_);
      room_ += aligned((*files_)[item.picture].size());
      encoded_bytes_ += (*files_)[item.picture].size();
    }
  }

  uint64_t encoded_bytes() const override { return encoded_bytes_; }
  std::vector<Mode> modes() const override { return {Mode::kernel, Mode::graph, Mode::pinned, Mode::staged}; }

  // How many tiles the batch's files have of each method; and how many are touched at most, where that is fewer.
  std::vector<std::pair<std::string, uint64_t>> facts() const override {
    std::vector<std::pair<std::string, uint64_t>> facts;
    const char* name = nullptr;
    for (uint32_t method = 0; (name = l3_tile_method_text(method)) != nullptr; ++method) {
      uint64_t sum = 0;
      for (const Item& item : case_.items) {
        const File& file = (*files_)[item.picture];
        uint64_t count = 0;
        l3_error error{};
        if (l3_count_tiles(file.data(), file.size(), method, &count, &error) != L3_OK) {
          throw Failure("counting tiles: " + l3::message(error));
        }
        sum += count;
      }
      facts.emplace_back(std::string("tiles_") + name, sum);
    }
    facts.emplace_back("tiles_touched", touched());
    return facts;
  }

  void make_sets(std::span<uint8_t* const> outputs) override {
    pinned_ = take(PinnedBuffer::make(room_), "pinned memory for files");
    std::memset(pinned_.data(), 0, room_);
    for (size_t i = 0; i < case_.items.size(); ++i) {
      const File& file = (*files_)[case_.items[i].picture];
      std::memcpy(pinned_.bytes() + offsets_[i], file.data(), file.size());
    }
    for (size_t set = 0; set < outputs.size(); ++set) {
      resident_.push_back(take(DeviceBuffer::make(room_), "device memory for files"));
      check(cudaMemcpy(resident_[set].data(), pinned_.data(), room_, cudaMemcpyHostToDevice), "copying files");
      decoders_.push_back(make_decoder(resident_[set].bytes(), outputs[set], false));
      if (set < 2) staging_.push_back(make_decoder(pinned_.bytes(), outputs[set], true));
    }
  }

  void run(Mode mode, uint32_t set, cudaStream_t stream) override {
    if (mode == Mode::pinned) {
      check(cudaMemcpyAsync(resident_[set].data(), pinned_.data(), room_, cudaMemcpyHostToDevice, stream),
            "copying files");
    }
    Decoder& decoder = mode == Mode::staged ? staging_[set] : decoders_[set];
    l3_error error{};
    if (decoder.decode(static_cast<uint32_t>(case_.items.size()), stream, &error) != L3_OK) {
      throw Failure("decoding: " + l3::message(error));
    }
  }

  std::string problem(Mode mode, uint32_t set) override {
    const Decoder& decoder = mode == Mode::staged ? staging_[set] : decoders_[set];
    for (uint32_t i = 0; i < case_.items.size(); ++i) {
      const l3_error error = decoder.result(i);
      if (error.status != L3_OK) return "image " + std::to_string(i) + ": " + l3::message(error);
    }
    return "";
  }

 private:
  uint64_t touched() const {
    uint64_t tiles = 0;
    for (const Item& item : case_.items) {
      const l3_info& info = infos_[item.picture];
      const auto span = [](uint32_t from, uint32_t size, uint32_t tile) {
        return uint64_t{(from + size - 1) / tile - from / tile + 1};
      };
      tiles += span(item.x, item.width, info.tile_width) * span(item.y, item.height, info.tile_height);
    }
    return tiles;
  }

  Decoder make_decoder(const uint8_t* files, uint8_t* output, bool stage) const {
    l3_cuda_capacity capacity{static_cast<uint32_t>(case_.items.size()), one_model_ ? 1U : 0U, 0, stage ? room_ : 0, 0};
    for (const Item& item : case_.items) {
      const File& file = (*files_)[item.picture];
      capacity.tiles += l3_cuda_count_tiles(&infos_[item.picture], item.width, item.height);
      capacity.follow_bytes +=
          l3_cuda_count_follow_bytes(file.data(), file.size(), nullptr, 0, item.width, item.height);
    }
    Decoder decoder = take(Decoder::make(capacity), "a decoder");
    for (size_t i = 0; i < case_.items.size(); ++i) {
      const Item& item = case_.items[i];
      const l3_info& info = infos_[item.picture];
      l3_cuda_image& image = decoder.images()[i];
      image.data = files + offsets_[i];
      image.size = (*files_)[item.picture].size();
      image.width = info.width;
      image.height = info.height;
      image.channels = info.channels;
      image.x = item.x;
      image.y = item.y;
      image.region_width = item.width;
      image.region_height = item.height;
      image.flags = (item.flip ? uint32_t{L3_CUDA_FLIP} : 0) | (stage ? uint32_t{L3_CUDA_STAGE} : 0);
      image.type = case_.type;
      image.layout = case_.layout;
      image.out = output + item.offset;
      for (uint32_t c = 0; c < 4; ++c) {
        image.scale[c] = case_.scale;
        image.bias[c] = case_.bias_of(c);
      }
    }
    return decoder;
  }

  const Case& case_;
  std::shared_ptr<const Files> files_;
  bool one_model_;
  std::vector<l3_info> infos_;
  std::vector<uint64_t> offsets_;  // of each item's file
  uint64_t room_ = 0, encoded_bytes_ = 0;
  PinnedBuffer pinned_;
  std::vector<DeviceBuffer> resident_;
  std::vector<Decoder> decoders_, staging_;  // behind what they read, so that they go first
};

template <l3_method kWanted>
Prepared prepare(const Case& a_case, const Settings& settings, Parallel& parallel) {
  return {std::make_unique<L3Job>(a_case, encoded(a_case, kWanted, settings, parallel),
                                  a_case.shared_model && kWanted == L3_METHOD_DENSE),
          ""};
}

}  // namespace

const Method kL3Fast = {"fast", prepare<L3_METHOD_FAST>};
const Method kL3Dense = {"dense", prepare<L3_METHOD_DENSE>};

}  // namespace gpu_bench
