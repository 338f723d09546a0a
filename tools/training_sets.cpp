#include "training_sets.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "file_io.h"
#include "loader/data_set_index.h"
#include "loader/data_writer.h"
#include "options.h"

namespace tools {
namespace {

using bench::OneCodec;

// The most bytes of samples, and the most images, that are used.
constexpr uint64_t kMaxBytes = uint64_t{384} << 20;
constexpr size_t kMaxImages = 2000;
constexpr uint32_t kMaxBatch = 16;

FeedShape shape_of(const formats::Image& image) { return {image.width, image.height, image.bits, image.colour}; }

// Appends the header of a member (POSIX ustar), and its bytes.
void append_member(std::vector<uint8_t>& tar, const std::string& name, std::span<const uint8_t> bytes) {
  std::array<char, 512> header{};
  const auto put = [&](size_t at, const std::string& text) {
    std::copy(text.begin(), text.end(), header.begin() + static_cast<ptrdiff_t>(at));
  };
  char size[16];
  std::snprintf(size, sizeof size, "%011llo", static_cast<unsigned long long>(bytes.size()));
  put(0, name);
  put(100, "0000644");
  put(108, "0000000");
  put(116, "0000000");
  put(124, size);
  put(136, "00000000000");
  put(148, "        ");
  put(156, "0");
  put(257, std::string("ustar\0"
                       "00",
                       8));
  unsigned sum = 0;
  for (const char byte : header) sum += static_cast<uint8_t>(byte);
  std::snprintf(size, sizeof size, "%06o", sum);
  put(148, size);
  header[154] = 0;
  tar.insert(tar.end(), header.begin(), header.end());
  tar.insert(tar.end(), bytes.begin(), bytes.end());
  tar.resize((tar.size() + 511) / 512 * 512);
}

}  // namespace

std::vector<Picture> read_pictures(const std::vector<std::string>& paths, const l3_limits& limits, Context* context) {
  std::map<FeedShape, std::vector<Picture>> shapes;
  uint64_t bytes = 0;
  for (size_t i = 0; i < paths.size() && i < kMaxImages && bytes < kMaxBytes; ++i) {
    Outcome<bridge::Buffer> file = read_file(paths[i]);
    if (!file) {
      if (context != nullptr) context->console.fail(file.failure());
      continue;
    }
    formats::Result<formats::Image> image = formats::read(file->bytes(), read_options(limits));
    if (!image) {
      if (context != nullptr) context->console.fail({paths[i], std::nullopt, image.error().reason});
      continue;
    }
    bytes += image->pixels.size();
    shapes[shape_of(*image)].push_back({std::move(*file), std::move(*image)});
  }
  const auto maximum = std::max_element(shapes.begin(), shapes.end(), [](const auto& a, const auto& b) {
    return std::pair(a.second.size(), a.first.image_bytes()) < std::pair(b.second.size(), b.first.image_bytes());
  });
  return maximum == shapes.end() ? std::vector<Picture>() : std::move(maximum->second);
}

TrainingSets::TrainingSets(std::vector<Picture> pictures, const std::string& scratch, Context& context)
    : pictures_(std::move(pictures)),
      context_(context),
      scratch_(scratch, context),
      shape_(shape_of(pictures_[0].image)),
      batch_(static_cast<uint32_t>(std::clamp<size_t>(pictures_.size() / 4, 1, kMaxBatch))) {}

std::string TrainingSets::about() const {
  return std::to_string(pictures_.size()) + " images of " + std::to_string(shape_.width) + " x " +
         std::to_string(shape_.height) + ", " + formats::name(shape_.colour) + " of " + std::to_string(shape_.bits) +
         " bits";
}

bool TrainingSets::make_files(const std::string& codec_name, const std::string& name, const std::string& extension) {
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
  way.open = [paths = way.paths, codec = *codec, shape = shape_](const FeedOptions& options) {
    return feed_of_files(paths, codec, shape, options);
  };
  ways_.push_back(std::move(way));
  return true;
}

bool TrainingSets::make_set(const std::string& codec_name, const std::string& name) {
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
    one.open = [folder, on_gpu](const FeedOptions& options) { return feed_of_set(folder, on_gpu, options); };
    // Only opening the feed shows whether a GPU can be used.
    if (!on_gpu || one.open({1, batch_, 0, {}})->problem().empty()) ways_.push_back(std::move(one));
  }
  return true;
}

bool TrainingSets::make_tar(const std::string& codec_name, const std::string& name) {
  const std::optional<OneCodec> codec = OneCodec::find(codec_name);
  if (!codec || !codec->holds(pictures_[0].image)) return true;
  std::vector<uint8_t> tar;
  std::vector<TarPart> parts;
  for (size_t i = 0; i < pictures_.size(); ++i) {
    const Picture& picture = pictures_[i];
    bridge::Buffer encoded;
    if (!codec->takes(picture.file.bytes())) {
      if (const auto error = codec->encode(picture.image, encoded)) {
        context_.console.fail({name, std::nullopt, error->reason});
        return false;
      }
    }
    const std::span<const uint8_t> bytes = encoded.bytes().empty() ? picture.file.bytes() : encoded.bytes();
    parts.push_back({tar.size() + 512, bytes.size()});
    append_member(tar, std::to_string(i) + ".png", bytes);
  }
  tar.resize(tar.size() + 1024);
  Way way;
  way.figures.name = name;
  way.figures.bytes = tar.size();
  way.paths = {scratch_.make_folder("tar") + "/images.tar"};
  if (!scratch_.write(way.paths[0], tar)) return false;
  way.open = [path = way.paths[0], parts, codec = *codec, shape = shape_](const FeedOptions& options) {
    return feed_of_tar(path, parts, codec, shape, options);
  };
  ways_.push_back(std::move(way));
  return true;
}

}  // namespace tools
