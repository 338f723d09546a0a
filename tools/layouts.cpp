#include "layouts.h"

#include <algorithm>
#include <chrono>

#include "bench/machine.h"
#include "disk_limit.h"
#include "image_tree.h"
#include "training_sets.h"

namespace tools {
namespace {

using Clock = std::chrono::steady_clock;

// A slow disk, and an object store on another machine.
constexpr Link kDisk{100e6, 0.005}, kFar{100e6, 0.05};
constexpr uint64_t kMaxEpochs = 1000;

enum class Place : uint8_t { memory, disk, far };

std::vector<std::string> images_in(const std::string& path) {
  if (!is_folder(path)) return {path};
  std::vector<std::string> paths;
  for (const std::string& file : list_tree(path, Kind::foreign).files) paths.push_back(join(path, file));
  return paths;
}

class Layouts {
 public:
  Layouts(std::vector<Picture> pictures, const StallOptions& options, Context& context)
      : options_(options), context_(context), sets_(std::move(pictures), options.scratch, context) {}

  std::optional<bench::LayoutFigures> measure() {
    if (!sets_.has_folder()) return std::nullopt;
    context_.console.status("writing the images in each way");
    if (!sets_.make_files("png", "PNG tree", "png") || !sets_.make_tar("png", "WebDataset tar of the PNGs") ||
        !sets_.make_files("jpeg90", "JPEG tree, quality 90", "jpg") ||
        !sets_.make_files("l3-fast", "l3 files, fast", "l3") ||
        !sets_.make_files("l3-dense5", "l3 files, dense", "l3") || !sets_.make_set("l3-fast", "l3 shards, fast") ||
        !sets_.make_set("l3-dense5", "l3 shards, dense")) {
      return std::nullopt;
    }
    bench::LayoutFigures figures;
    figures.machine = bench::this_machine();
    figures.about = sets_.about() + ", shuffled, into batches of samples as stored";
    figures.images = sets_.images();
    figures.threads = options_.threads;
    figures.batch = sets_.batch();

    const Link far = options_.link ? options_.link : kFar;
    const std::string rate = link_text({kDisk.bytes_per_second, 0});
    std::string reason;
    limit_ = DiskLimit::make(sets_.ways()[0].paths[0], kDisk.bytes_per_second, context_.unfinished, reason);
    figures.places = {"page cache", "slow disk", "far store"};
    figures.details = {
        "files in the memory of this machine",
        limit_ ? "the disk of this machine, limited by the system to " + rate
               : "simulated: " + link_text(kDisk) + " (the system's own limit cannot be used: " + reason + ")",
        "simulated: " + link_text(far) +
            ", a request for each file or part of a shard; epochs include opening the set"};

    const double seconds = std::max(options_.seconds / static_cast<double>(3 * sets_.ways().size()), 0.2);
    for (const Way& way : sets_.ways()) {
      bench::LayoutRow row{way.figures.name, way.figures.lossy, way.figures.bytes, {}};
      for (const Place place : {Place::memory, Place::disk, Place::far}) {
        context_.console.status("measuring: " + way.figures.name + ", " + figures.places[row.images_per_second.size()]);
        const Link link = place == Place::far ? far : place == Place::disk && !limit_ ? kDisk : Link{};
        const std::optional<double> speed = measure(way, link, seconds, place == Place::disk && limit_ != nullptr);
        if (!speed) return std::nullopt;
        row.images_per_second.push_back(*speed);
      }
      figures.rows.push_back(std::move(row));
    }
    context_.console.clear_status();
    return figures;
  }

 private:
  // Whole epochs from memory; the first one, which may read from the disk, does not count. From the disk or through a
  // link the time is limited: an epoch may be cut, but not before its first batch.
  std::optional<double> measure(const Way& way, const Link& link, double seconds, bool from_disk) {
    uint64_t images = 0;
    double passed = 0;
    if (!link && !from_disk && !run(way, {options_.threads, sets_.batch(), 0, {}}, 1e9, images, passed))
      return std::nullopt;
    images = 0;
    passed = 0;
    for (uint64_t epoch = 1; passed < seconds && epoch < kMaxEpochs; ++epoch) {
      if (from_disk) forget_cached(way.paths);
      const DiskLimit::Use limited(from_disk ? limit_.get() : nullptr);
      const double left = link || from_disk ? seconds - passed : 1e9;
      if (!run(way, {options_.threads, sets_.batch(), epoch, link}, left, images, passed)) return std::nullopt;
    }
    return static_cast<double>(images) / passed;
  }

  bool run(const Way& way, const FeedOptions& options, double seconds, uint64_t& images, double& passed) {
    const Clock::time_point begun = Clock::now();
    const auto since = [&] { return std::chrono::duration<double>(Clock::now() - begun).count(); };
    const std::unique_ptr<Feed> feed = way.open(options);
    uint64_t taken = 0;
    while ((taken == 0 || since() < seconds) && feed->next()) ++taken;
    passed += since();
    images += std::min<uint64_t>(taken * sets_.batch(), sets_.images());
    if (feed->problem().empty()) return true;
    context_.console.fail({way.figures.name, std::nullopt, feed->problem()});
    return false;
  }

  const StallOptions& options_;
  Context& context_;
  TrainingSets sets_;
  std::unique_ptr<DiskLimit> limit_;
};

}  // namespace

std::optional<bench::LayoutFigures> measure_layouts(const StallOptions& options, Context& context) {
  context.console.status("reading the images");
  std::vector<Picture> pictures = read_pictures(images_in(options.path), {}, &context);
  if (pictures.empty()) {
    context.console.fail({options.path, std::nullopt, "no images that can be read, and not a data set"});
    return std::nullopt;
  }
  Layouts layouts(std::move(pictures), options, context);
  return layouts.measure();
}

}  // namespace tools
