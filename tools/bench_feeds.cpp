#include "bench_feeds.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <mutex>
#include <numeric>
#include <optional>
#include <random>
#include <thread>
#include <utility>

#include "image_tree.h"
#include "l3/l3_loader.hpp"

namespace tools {
namespace {

constexpr uint64_t kAhead = 3;  // batches

using Bytes = std::vector<uint8_t>;

// Gives the next file. Any thread may call it; `at` is how many files were asked for before.
using Files = std::function<Outcome<Bytes>(size_t at)>;

std::shared_ptr<loader::Store> store_behind(const Link& link) {
  std::shared_ptr<loader::Store> files = loader::make_local_store("", 0);
  return link ? make_slow_store(std::move(files), link) : files;
}

Outcome<Bytes> read_object(loader::Store& store, const std::string& path, uint64_t offset, uint64_t size) {
  Bytes bytes(size);
  const std::unique_ptr<loader::Object> object = store.open(path);
  loader::Read read;
  read.object = object.get();
  read.offset = offset;
  read.size = size;
  read.to = bytes.data();
  loader::StoreFault fault;
  if (size > 0) store.read({&read, 1}, {&fault, 1});
  if (fault) return Failure{path, std::nullopt, fault.reason};
  return bytes;
}

// Files in an order that depends on the epoch, each with a request of its own.
Files files_in_any_order(const std::vector<std::string>& paths, const FeedOptions& options) {
  std::vector<size_t> order(paths.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::mt19937_64 random(options.epoch);
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random() % i]);
  return [paths, order, store = store_behind(options.link)](size_t at) {
    const std::string& path = paths[order[at]];
    return read_object(*store, path, 0, listed_size(path));
  };
}

// Reads a tar from the beginning to the end on a thread of its own.
class TarStream {
 public:
  TarStream(std::string path, std::vector<TarPart> parts, const FeedOptions& options)
      : path_(std::move(path)), parts_(std::move(parts)), link_(options.link), random_(options.epoch) {
    thread_ = std::thread([this] { run(); });
  }
  ~TarStream() {
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  TarStream(const TarStream&) = delete;
  TarStream& operator=(const TarStream&) = delete;

  // Takes a member at random from those that have been read.
  Outcome<Bytes> take() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return members_.size() >= kMixed || is_read_ || failure_; });
    if (failure_) return *failure_;
    std::swap(members_[random_() % members_.size()], members_.back());
    Bytes member = std::move(members_.back());
    members_.pop_back();
    lock.unlock();
    changed_.notify_all();
    return member;
  }

 private:
  static constexpr size_t kMixed = 1000;

  void run() {
    // A stream waits once.
    std::this_thread::sleep_for(std::chrono::duration<double>(link_.delay));
    const std::shared_ptr<loader::Store> store = store_behind({link_.bytes_per_second, 0});
    for (const TarPart& part : parts_) {
      Outcome<Bytes> member = read_object(*store, path_, part.offset, part.size);
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return members_.size() < 2 * kMixed || ends_; });
      if (ends_) return;
      if (member) {
        members_.push_back(std::move(*member));
      } else {
        failure_ = member.failure();
      }
      changed_.notify_all();
      if (failure_) return;
    }
    const std::lock_guard lock(mutex_);
    is_read_ = true;
    changed_.notify_all();
  }

  const std::string path_;
  const std::vector<TarPart> parts_;
  const Link link_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::mt19937_64 random_;
  std::vector<Bytes> members_;
  std::optional<Failure> failure_;
  bool is_read_ = false, ends_ = false;
  std::thread thread_;
};

class FilesFeed : public Feed {
 public:
  FilesFeed(Files files, size_t count, const bench::OneCodec& codec, const FeedShape& shape, const FeedOptions& options)
      : files_(std::move(files)),
        count_(count),
        codec_(codec),
        shape_(shape),
        batch_(options.batch),
        done_((count + options.batch - 1) / options.batch),
        rooms_(kAhead + 1, std::vector<uint8_t>(options.batch * shape.image_bytes())) {
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
    const uint64_t wanted = std::min<uint64_t>(batch_, count_ - taken_ * batch_);
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
        changed_.wait(
            lock, [&] { return stop_ || begun_ == count_ || begun_ / batch_ < taken_ + kAhead || !problem_.empty(); });
        if (stop_ || begun_ == count_ || !problem_.empty()) return;
        at = begun_++;
      }
      std::string problem = load(image, at);
      {
        const std::lock_guard lock(mutex_);
        if (!problem.empty()) problem_ = std::move(problem);
        ++done_[at / batch_];
      }
      changed_.notify_all();
    }
  }

  std::string load(formats::Image& image, size_t at) try {
    const Outcome<Bytes> file = files_(at);
    if (!file) return file.failure().reason;
    image.width = shape_.width;
    image.height = shape_.height;
    image.bits = shape_.bits;
    image.colour = shape_.colour;
    if (const auto error = codec_.decode(*file, image)) return error->reason;
    if (image.pixels.size() != shape_.image_bytes()) return "the image has another shape";
    std::memcpy(&rooms_[at / batch_ % rooms_.size()][at % batch_ * shape_.image_bytes()], image.pixels.data(),
                image.pixels.size());
    return "";
  } catch (...) {
    return caught("").reason;
  }

  const Files files_;
  const size_t count_;
  const bench::OneCodec codec_;
  const FeedShape shape_;
  const uint64_t batch_;
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
    l3_data_set* set = nullptr;
    l3_data_error error{};
    std::shared_ptr<loader::Store> store = loader::make_local_store(folder, 0);
    if (options.link) store = make_slow_store(std::move(store), options.link);
    if (loader::open_data_set(std::move(store), "", l3_data_options_init(), &set, &error) != L3_OK) {
      fail(error);
      return;
    }
    set_.reset(set);
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
    l3_loader* loader = nullptr;
    if (l3_loader_open(set, &wish, &loader, &error) != L3_OK) {
      fail(error);
      return;
    }
    loader_.reset(loader);
    if (l3_loader_start(loader, options.epoch, 0, &error) != L3_OK) fail(error);
  }

  bool next() override {
    if (!problem_.empty()) return false;
    l3_next next = L3_NEXT_WAITING;
    l3_batch* batch = nullptr;
    l3_failure failure{};
    if (l3_loader_next(loader_.get(), UINT32_MAX, &next, &batch, nullptr, &failure) != L3_OK) fail(failure.error);
    l3_batch_release(batch, nullptr);
    return problem_.empty() && next == L3_NEXT_BATCH;
  }

  std::string problem() const override { return problem_; }

 private:
  struct Close {
    void operator()(l3_data_set* set) const { l3_data_close(set); }
    void operator()(l3_loader* loader) const { l3_loader_close(loader); }
  };

  void fail(const l3_data_error& error) { problem_ = l3::message(error); }

  std::unique_ptr<l3_data_set, Close> set_;
  std::unique_ptr<l3_loader, Close> loader_;
  std::string problem_;
};

}  // namespace

uint64_t FeedShape::image_bytes() const {
  return uint64_t{width} * height * formats::channels(colour) * formats::bytes_per_sample(bits);
}

std::unique_ptr<Feed> feed_of_files(const std::vector<std::string>& paths, const bench::OneCodec& codec,
                                    const FeedShape& shape, const FeedOptions& options) {
  return std::make_unique<FilesFeed>(files_in_any_order(paths, options), paths.size(), codec, shape, options);
}

std::unique_ptr<Feed> feed_of_tar(const std::string& path, const std::vector<TarPart>& parts,
                                  const bench::OneCodec& codec, const FeedShape& shape, const FeedOptions& options) {
  const auto stream = std::make_shared<TarStream>(path, parts, options);
  return std::make_unique<FilesFeed>([stream](size_t) { return stream->take(); }, parts.size(), codec, shape, options);
}

std::unique_ptr<Feed> feed_of_set(const std::string& folder, bool on_gpu, const FeedOptions& options) {
  return std::make_unique<SetFeed>(folder, on_gpu, options);
}

}  // namespace tools
