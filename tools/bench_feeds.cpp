#include "bench_feeds.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <numeric>
#include <optional>
#include <random>
#include <thread>
#include <utility>

#include "file_io.h"
#include "l3/l3_loader.hpp"

namespace tools {
namespace {

constexpr uint64_t kAhead = 3;  // batches

class FilesFeed : public Feed {
 public:
  FilesFeed(const std::vector<std::string>& paths, const bench::OneCodec& codec, const FeedShape& shape,
            const FeedOptions& options)
      : paths_(paths),
        codec_(codec),
        shape_(shape),
        batch_(options.batch),
        order_(paths.size()),
        done_((paths.size() + options.batch - 1) / options.batch),
        rooms_(kAhead + 1, std::vector<uint8_t>(options.batch * shape.image_bytes())) {
    std::iota(order_.begin(), order_.end(), size_t{0});
    std::mt19937_64 random(options.epoch);
    for (size_t i = order_.size(); i > 1; --i) std::swap(order_[i - 1], order_[random() % i]);
    for (uint32_t i = 0; i < options.threads; ++i) threads_.emplace_back([this] { work(); });
  }

  ~FilesFeed() override {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  bool next() override {
    std::unique_lock lock(mutex_);
    if (taken_ == done_.size()) return false;
    const uint64_t wanted = std::min<uint64_t>(batch_, order_.size() - taken_ * batch_);
    changed_.wait(lock, [&] { return done_[taken_] == wanted || !problem_.empty(); });
    if (!problem_.empty()) return false;
    ++taken_;
    lock.unlock();
    changed_.notify_all();
    return true;
  }

  std::string problem() const override {
    const std::lock_guard lock(mutex_);
    return problem_;
  }

 private:
  void work() {
    formats::Image image;
    for (;;) {
      size_t at = 0;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] {
          return stop_ || begun_ == order_.size() || begun_ / batch_ < taken_ + kAhead || !problem_.empty();
        });
        if (stop_ || begun_ == order_.size() || !problem_.empty()) return;
        at = begun_++;
      }
      const std::string& path = paths_[order_[at]];
      std::optional<std::string> problem = load(path, image, at);
      {
        const std::lock_guard lock(mutex_);
        if (problem) problem_ = path + ": " + *problem;
        ++done_[at / batch_];
      }
      changed_.notify_all();
    }
  }

  std::optional<std::string> load(const std::string& path, formats::Image& image, size_t at) try {
    const Outcome<bridge::Buffer> file = read_file(path);
    if (!file) return file.failure().reason;
    image.width = shape_.width;
    image.height = shape_.height;
    image.bits = shape_.bits;
    image.colour = shape_.colour;
    if (const auto error = codec_.decode(file->bytes(), image)) return error->reason;
    if (image.pixels.size() != shape_.image_bytes()) return "the image has another shape";
    std::memcpy(&rooms_[at / batch_ % rooms_.size()][at % batch_ * shape_.image_bytes()], image.pixels.data(),
                image.pixels.size());
    return std::nullopt;
  } catch (...) {
    return caught(path).reason;
  }

  const std::vector<std::string>& paths_;
  const bench::OneCodec codec_;
  const FeedShape shape_;
  const uint64_t batch_;
  std::vector<size_t> order_;
  std::vector<uint64_t> done_;  // images of each batch
  std::vector<std::vector<uint8_t>> rooms_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  size_t begun_ = 0;    // images
  uint64_t taken_ = 0;  // batches
  std::string problem_;
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

class SetFeed : public Feed {
 public:
  SetFeed(const std::string& folder, bool on_gpu, const FeedOptions& options) {
    auto set = l3::DataSet::open(folder);
    if (!set) {
      problem_ = l3::message(set.error());
      return;
    }
    set_.emplace(std::move(*set));
    l3_tensor_options wanted{};
    wanted.layout = L3_LAYOUT_HWC;
    l3_loader_options wish = l3_loader_options_init();
    wish.batch_size = options.batch;
    wish.threads = options.threads;
    wish.order = L3_ORDER_SHUFFLED;
    wish.last_batch = L3_LAST_BATCH_UNEVEN;
    wish.device = on_gpu ? L3_DEVICE_CUDA : L3_DEVICE_CPU;
    wish.tensors = &wanted;
    wish.tensor_count = 1;
    auto loader = l3::Loader::open(*set_, wish);
    if (!loader) {
      problem_ = l3::message(loader.error());
      return;
    }
    loader_.emplace(std::move(*loader));
    if (const auto error = loader_->start(options.epoch)) problem_ = l3::message(*error);
  }

  bool next() override {
    if (!problem_.empty()) return false;
    const auto batch = loader_->next();
    if (!batch) {
      problem_ = l3::message(batch.error());
      return false;
    }
    return batch->has_value();
  }

  std::string problem() const override { return problem_; }

 private:
  std::optional<l3::DataSet> set_;
  std::optional<l3::Loader> loader_;
  std::string problem_;
};

}  // namespace

uint64_t FeedShape::image_bytes() const {
  return uint64_t{width} * height * formats::channels(colour) * formats::bytes_per_sample(bits);
}

std::unique_ptr<Feed> feed_of_files(const std::vector<std::string>& paths, const bench::OneCodec& codec,
                                    const FeedShape& shape, const FeedOptions& options) {
  return std::make_unique<FilesFeed>(paths, codec, shape, options);
}

std::unique_ptr<Feed> feed_of_set(const std::string& folder, bool on_gpu, const FeedOptions& options) {
  return std::make_unique<SetFeed>(folder, on_gpu, options);
}

}  // namespace tools
