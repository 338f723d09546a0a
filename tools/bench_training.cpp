#include "bench_training.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>

#include "base/median.h"
#include "bench/timing.h"
#include "bench_feeds.h"
#include "file_io.h"
#include "loader/data_set_index.h"
#include "loader/data_writer.h"

namespace tools {
namespace {

namespace fs = std::filesystem;
using bench::OneCodec;

// The most bytes of samples, and the most images, that are used.
constexpr uint64_t kMaxBytes = uint64_t{384} << 20;
constexpr size_t kMaxImages = 2000;
constexpr uint32_t kMaxBatch = 16;
// A measurement runs whole epochs until this time has passed.
constexpr double kMinSeconds = 1;
constexpr uint64_t kSteps = 24;  // of the simulated training

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

struct Picture {
  bridge::Buffer file;
  formats::Image image;
};

FeedShape shape_of(const formats::Image& image) { return {image.width, image.height, image.bits, image.colour}; }

// Reads the images of the most frequent shape. If two shapes are as frequent, takes the larger one.
std::vector<Picture> read_pictures(const std::vector<std::string>& paths, const l3_limits& limits) {
  std::map<FeedShape, std::vector<Picture>> shapes;
  uint64_t bytes = 0;
  for (size_t i = 0; i < paths.size() && i < kMaxImages && bytes < kMaxBytes; ++i) {
    Outcome<bridge::Buffer> file = read_file(paths[i]);
    if (!file) continue;  // the error was printed when the codecs were measured
    formats::Result<formats::Image> image = formats::read(file->bytes(), read_options(limits));
    if (!image) continue;
    bytes += image->pixels.size();
    shapes[shape_of(*image)].push_back({std::move(*file), std::move(*image)});
  }
  const auto maximum = std::max_element(shapes.begin(), shapes.end(), [](const auto& a, const auto& b) {
    return std::pair(a.second.size(), a.first.image_bytes()) < std::pair(b.second.size(), b.first.image_bytes());
  });
  return maximum == shapes.end() ? std::vector<Picture>() : std::move(maximum->second);
}

// A folder for data sets. The destructor removes it with everything in it. If a signal ends the process, the files are
// removed, but empty folders stay.
class Scratch {
 public:
  Scratch(const std::string& below, Context& context) : context_(context) {
    std::string pattern = (below.empty() ? fs::temp_directory_path() : fs::path(below)) / "l3-bench-XXXXXX";
    if (mkdtemp(pattern.data()) != nullptr) folder_ = pattern;
  }
  ~Scratch() {
    for (const std::string& path : paths_) context_.unfinished.discard(path);
    std::error_code ignored;
    if (!folder_.empty()) fs::remove_all(folder_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  const std::string& folder() const { return folder_; }

  std::string make_folder(const std::string& name) const {
    std::error_code ignored;
    fs::create_directories(folder_ + "/" + name, ignored);  // if this fails, writing a file fails, too
    return folder_ + "/" + name;
  }

  // Flushes the file to the disk, so that reading it from there can be measured.
  bool write(const std::string& path, std::span<const uint8_t> bytes) {
    int file = -1;
    int error = context_.unfinished.create(path, file);
    if (error != 0) return fail(path, error);
    paths_.push_back(path);
    for (size_t done = 0; done < bytes.size() && error == 0;) {
      const ssize_t written = ::write(file, bytes.data() + done, bytes.size() - done);
      if (written < 0) error = errno;
      if (written > 0) done += static_cast<size_t>(written);
    }
    if (error == 0 && fsync(file) != 0) error = errno;
    close(file);
    return error == 0 || fail(path, error);
  }

 private:
  bool fail(const std::string& path, int error) {
    context_.console.fail({path, std::nullopt, std::generic_category().message(error)});
    return false;
  }

  Context& context_;
  std::string folder_;
  std::vector<std::string> paths_;
};

// Asks the system to drop files from its cache. Not all systems do.
void forget(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) continue;
    posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
    close(file);
  }
}

// One way to feed the training, ready to run.
struct Way {
  bench::FeedFigures figures;
  std::vector<std::string> paths;  // of all its files
  std::function<std::unique_ptr<Feed>(uint64_t epoch)> open;
};

class Training {
 public:
  Training(std::vector<Picture> pictures, const TrainingOptions& options, Context& context)
      : pictures_(std::move(pictures)),
        options_(options),
        context_(context),
        scratch_(options.scratch, context),
        shape_(shape_of(pictures_[0].image)) {
    batch_ = static_cast<uint32_t>(std::clamp<size_t>(pictures_.size() / 4, 1, kMaxBatch));
  }

  std::optional<bench::TrainingFigures> measure() {
    if (scratch_.folder().empty()) {
      context_.console.fail({options_.scratch.empty() ? "the folder for temporary files" : options_.scratch,
                             std::nullopt, "cannot create a folder there"});
      return std::nullopt;
    }
    if (!make_ways()) return std::nullopt;
    for (uint32_t round = 0; round < options_.rounds; ++round) {
      for (Way& way : ways_) {
        if (!measure_once(way)) return std::nullopt;
      }
    }
    bench::TrainingFigures figures;
    for (Way& way : ways_) {
      way.figures.warm = base::median(warm_[way.figures.name]);
      way.figures.cold = base::median(cold_[way.figures.name]);
    }
    const double first = ways_[0].figures.warm;
    figures.step_seconds = options_.step_seconds > 0 ? options_.step_seconds : batch_ / (2 * first);
    for (Way& way : ways_) {
      way.figures.stalled = stalled(way, figures.step_seconds);
      figures.feeds.push_back(way.figures);
    }
    figures.about = std::to_string(pictures_.size()) + " images of " + std::to_string(shape_.width) + " x " +
                    std::to_string(shape_.height) + ", " + formats::name(shape_.colour) + " of " +
                    std::to_string(shape_.bits) + " bits, shuffled, into batches of samples as stored";
    figures.images = pictures_.size();
    figures.threads = options_.threads;
    figures.batch = batch_;
    return figures;
  }

 private:
  bool make_ways() {
    const bool had_png = make_files("png", "PNG files", "png");
    if (!had_png) return false;
    return make_files("jpeg90", "JPEG files, quality 90", "jpg") &&
           make_files("webp", "WebP files, lossless", "webp") && make_files("l3-fast", "l3 files, fast", "l3") &&
           make_files("l3-dense5", "l3 files, dense", "l3") && make_set("l3-fast", "l3 shards, fast") &&
           make_set("l3-dense5", "l3 shards, dense");
  }

  // Also returns true if the codec is missing or cannot hold such images. It is not measured then.
  bool make_files(const std::string& codec_name, const std::string& name, const std::string& extension) {
    const std::optional<OneCodec> codec = OneCodec::find(codec_name);
    if (!codec || !codec->holds(pictures_[0].image)) return true;
    const std::string folder = scratch_.make_folder(codec_name);
    Way way;
    way.figures.name = name;
    way.figures.lossy = codec_name.starts_with("jpeg");
    for (size_t i = 0; i < pictures_.size(); ++i) {
      const Picture& picture = pictures_[i];
      bridge::Buffer encoded;
      const bool as_supplied = codec->takes(picture.file.bytes());
      if (!as_supplied) {
        if (const auto error = codec->encode(picture.image, encoded)) {
          context_.console.fail({name, std::nullopt, error->reason});
          return false;
        }
      }
      const std::span<const uint8_t> bytes = as_supplied ? picture.file.bytes() : encoded.bytes();
      way.paths.push_back(folder + "/" + std::to_string(i) + "." + extension);
      way.figures.bytes += bytes.size();
      if (!scratch_.write(way.paths.back(), bytes)) return false;
      if (extension == "l3") files_[codec_name].emplace_back(bytes.begin(), bytes.end());
    }
    ways_.push_back(std::move(way));
    const size_t at = ways_.size() - 1;
    ways_.back().open = [this, at, codec](uint64_t epoch) {
      return feed_of_files(ways_[at].paths, *codec, shape_, {options_.threads, batch_, epoch});
    };
    return true;
  }

  bool make_set(const std::string& codec_name, const std::string& name) {
    const std::string folder = scratch_.make_folder(codec_name + "-set");
    std::vector<uint8_t> shard = loader::ShardBuilder::head();
    loader::ShardBuilder builder;
    const std::vector<std::vector<uint8_t>>& files = files_[codec_name];
    for (size_t i = 0; i < files.size(); ++i) {
      loader::NewSample sample;
      sample.name = std::to_string(i);
      sample.role = "image";
      if (!loader::describe(files[i], L3_DATA_IMAGE, sample)) return false;
      shard.resize(builder.next());
      shard.insert(shard.end(), files[i].begin(), files[i].end());
      builder.add(sample);
    }
    loader::DataSetIndex index;
    loader::ShardSummary summary;
    const std::vector<uint8_t> end = builder.finish(summary);
    shard.insert(shard.end(), end.begin(), end.end());
    summary.file = "shard-000000.l3s";
    index.shards.push_back(summary);
    const std::string json = loader::to_json(index);
    Way way;
    way.figures.name = name;
    way.figures.bytes = shard.size() + json.size();
    way.paths = {folder + "/" + summary.file, folder + "/" + loader::kIndexFile};
    if (!scratch_.write(way.paths[0], shard)) return false;
    if (!scratch_.write(way.paths[1], {reinterpret_cast<const uint8_t*>(json.data()), json.size()})) return false;
    for (const bool on_gpu : {false, true}) {
      Way one = way;
      if (on_gpu) one.figures.name += ", into a GPU";
      one.open = [this, folder, on_gpu](uint64_t epoch) {
        return feed_of_set(folder, on_gpu, {options_.threads, batch_, epoch});
      };
      // Only opening the feed shows whether a GPU can be used.
      if (!on_gpu || one.open(0)->problem().empty()) ways_.push_back(std::move(one));
    }
    return true;
  }

  bool failed(const Way& way, const Feed& feed) {
    const std::string problem = feed.problem();
    if (!problem.empty()) context_.console.fail({way.figures.name, std::nullopt, problem});
    return !problem.empty();
  }

  // Measures one epoch from the disk, then epochs from memory.
  bool measure_once(Way& way) {
    const double images = static_cast<double>(pictures_.size());
    forget(way.paths);
    const double cold_begun = now();
    const auto through = [&](uint64_t epoch) {
      const std::unique_ptr<Feed> feed = way.open(epoch);
      while (feed->next()) {
      }
      return !failed(way, *feed);
    };
    if (!through(0)) return false;
    cold_[way.figures.name].push_back(images / (now() - cold_begun));
    const double warm_begun = now();
    double epochs = 0;
    while (now() - warm_begun < kMinSeconds) {
      if (!through(static_cast<uint64_t>(++epochs))) return false;
    }
    warm_[way.figures.name].push_back(images * epochs / (now() - warm_begun));
    return true;
  }

  // The share of the time that the training waits. Waiting for the first batch does not count.
  double stalled(const Way& way, double step_seconds) {
    double waited = 0;
    uint64_t steps = 0;
    for (uint64_t epoch = 0; steps < kSteps; ++epoch) {
      const std::unique_ptr<Feed> feed = way.open(epoch);
      for (; steps < kSteps; ++steps) {
        const double asked = now();
        if (!feed->next()) break;
        if (steps > 0) waited += now() - asked;
        std::this_thread::sleep_for(std::chrono::duration<double>(step_seconds));
      }
      if (failed(way, *feed)) return 1;
    }
    return waited / (waited + static_cast<double>(steps - 1) * step_seconds);
  }

  std::vector<Picture> pictures_;
  const TrainingOptions& options_;
  Context& context_;
  Scratch scratch_;
  FeedShape shape_;
  uint32_t batch_ = 1;
  std::vector<Way> ways_;
  std::map<std::string, std::vector<std::vector<uint8_t>>> files_;  // of l3, by codec
  std::map<std::string, std::vector<double>> warm_, cold_;          // images a second of each round, by way
};

}  // namespace

std::optional<bench::TrainingFigures> run_training(const std::vector<std::string>& paths,
                                                   const TrainingOptions& options, Context& context) {
  std::vector<Picture> pictures = read_pictures(paths, options.limits);
  if (pictures.empty()) return std::nullopt;
  Training training(std::move(pictures), options, context);
  return training.measure();
}

}  // namespace tools
