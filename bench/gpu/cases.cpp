// The table of cases.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <iterator>

#include "base/files.h"
#include "bridge/image_bridge.h"
#include "case.h"
#include "device.h"
#include "formats/formats.h"
#include "scenes.h"

namespace gpu_bench {
namespace {

using base::Parallel;

constexpr uint32_t kBatch = 64;
constexpr uint64_t kAlignment = 256;

uint32_t shrunk(uint32_t value, const Settings& settings, uint32_t minimum) {
  return std::max(value / settings.shrink, minimum);
}

uint32_t distinct_of(uint32_t batch, const Settings& settings, const Parallel& parallel) {
  const uint32_t wanted = settings.distinct != 0 ? settings.distinct : 4 * parallel.threads();
  return std::min(wanted, batch);
}

// Numbers that look random, and are the same in every run.
uint32_t scattered(uint32_t i, uint32_t below) {
  return static_cast<uint32_t>((uint64_t{i + 1} * 0x9E3779B97F4A7C15 >> 32) % below);
}

// Gives each item its place behind the one before.
void arrange(Case& a_case) {
  a_case.output_bytes = 0;
  for (Item& item : a_case.items) {
    item.offset = a_case.output_bytes;
    const uint64_t bytes =
        uint64_t{item.width} * item.height * formats::channels(a_case.picture(item).colour) * a_case.sample_bytes();
    a_case.output_bytes += (bytes / kAlignment + 1) * kAlignment;  // a byte at least that nobody writes
  }
}

// A batch of whole pictures, in turn.
Case batch_of(std::shared_ptr<const Pictures> pictures, uint32_t batch, std::string source) {
  Case made;
  made.pictures = std::move(pictures);
  made.source = std::move(source);
  const auto distinct = static_cast<uint32_t>(made.pictures->size());
  for (uint32_t i = 0; i < batch; ++i) {
    const formats::Image& picture = (*made.pictures)[i % distinct];
    made.items.push_back({i % distinct, 0, 0, picture.width, picture.height, false, 0});
  }
  arrange(made);
  return made;
}

std::shared_ptr<const Pictures> draw_all(uint32_t count, Parallel& parallel,
                                         const std::function<formats::Image(uint32_t)>& draw) {
  auto pictures = std::make_shared<Pictures>(count);
  parallel.for_each(count, [&](uint64_t i) { (*pictures)[i] = draw(static_cast<uint32_t>(i)); });
  return pictures;
}

struct Street {
  std::shared_ptr<const Pictures> pictures;
  std::string source;
};

formats::Result<formats::Image> read(const std::filesystem::path& path) {
  std::vector<uint8_t> file;
  base::read_file(path.string(), file);  // what cannot be read is empty, and refused below
  if (formats::is_known(file)) return formats::read(file);
  formats::Image image;
  if (auto error = bridge::decode_l3(file, l3_decode_options_init(), image)) return *error;
  return image;
}

// Real images of a folder, those of 8 bits RGB: as many as there may be different ones, from all over the folder.
Street read_street(const Settings& settings, uint32_t maximum, Parallel& parallel) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(settings.images)) {
    if (entry.is_regular_file()) paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<std::filesystem::path> chosen;
  for (size_t i = 0; i < std::min<size_t>(maximum, paths.size()); ++i) {
    chosen.push_back(paths[i * paths.size() / std::min<size_t>(maximum, paths.size())]);
  }
  auto pictures = std::make_shared<Pictures>(chosen.size());
  parallel.for_each(chosen.size(), [&](uint64_t i) {
    auto image = read(chosen[i]);
    if (image && image->colour == formats::Colour::rgb && image->bits == 8) (*pictures)[i] = std::move(*image);
  });
  std::erase_if(*pictures, [](const formats::Image& image) { return image.pixels.empty(); });
  if (pictures->empty()) throw Failure("no RGB image of 8 bits in " + settings.images);
  for (formats::Image& image : *pictures) image.chunks.clear();
  return {pictures, "real: " + std::to_string(pictures->size()) + " files of " + settings.images};
}

// The pictures of most cases, made once.
const Street& street(const Settings& settings, Parallel& parallel) {
  static Street kept;
  if (kept.pictures != nullptr) return kept;
  const uint32_t count = distinct_of(kBatch, settings, parallel);
  if (!settings.images.empty()) return kept = read_street(settings, count, parallel);
  const uint32_t width = shrunk(2048, settings, 64), height = shrunk(1024, settings, 48);
  auto pictures = std::make_shared<Pictures>();
  for (uint32_t i = 0; i < count; ++i) pictures->push_back(draw_street(width, height, i, parallel));
  return kept = {pictures, "drawn: streets, with noise like a sensor's"};
}

Case cityscapes(const Settings& settings, Parallel& parallel) {
  const Street& from = street(settings, parallel);
  return batch_of(from.pictures, shrunk(kBatch, settings, 4), from.source);
}

Case single_2k(const Settings& settings, Parallel& parallel) {
  const Street& from = street(settings, parallel);
  return batch_of(from.pictures, 1, from.source);
}

Case single_8k(const Settings& settings, Parallel& parallel) {
  auto pictures = std::make_shared<Pictures>();
  pictures->push_back(draw_street(shrunk(7680, settings, 64), shrunk(4320, settings, 48), 77, parallel));
  return batch_of(pictures, 1, "drawn: a street, with noise like a sensor's");
}

Case imagenet(const Settings& settings, Parallel& parallel) {
  const uint32_t edge = shrunk(224, settings, 32), batch = shrunk(256, settings, 4),
                 count = distinct_of(batch, settings, parallel);
  const Street& from = street(settings, parallel);
  std::vector<const formats::Image*> large;
  for (const formats::Image& image : *from.pictures) {
    if (image.width >= edge && image.height >= edge) large.push_back(&image);
  }
  if (large.empty()) throw Failure("no picture is large enough to cut pieces out of it");
  const auto pictures = draw_all(count, parallel, [&](uint32_t i) {
    const formats::Image& whole = *large[i % large.size()];
    formats::Image part;
    part.width = part.height = edge;
    part.colour = whole.colour;
    const uint32_t x = scattered(2 * i, whole.width - edge + 1), y = scattered(2 * i + 1, whole.height - edge + 1);
    for (uint32_t row = 0; row < edge; ++row) {
      const auto at = whole.pixels.begin() + static_cast<std::ptrdiff_t>(3 * ((size_t{y} + row) * whole.width + x));
      part.pixels.insert(part.pixels.end(), at, at + 3 * edge);
    }
    return part;
  });
  Case made = batch_of(pictures, batch, "cut out of: " + from.source);
  made.shared_model = true;
  return made;
}

Case labels(const Settings& settings, Parallel& parallel) {
  const uint32_t batch = shrunk(kBatch, settings, 4);
  const auto pictures = draw_all(distinct_of(batch, settings, parallel), parallel, [&](uint32_t i) {
    return draw_labels(shrunk(2048, settings, 64), shrunk(1024, settings, 48), i, i % 2 == 1);
  });
  return batch_of(pictures, batch, "drawn: label maps of streets, every second one with a palette");
}

Case depth16(const Settings& settings, Parallel& parallel) {
  const uint32_t batch = shrunk(kBatch, settings, 4);
  const auto pictures = draw_all(distinct_of(batch, settings, parallel), parallel, [&](uint32_t i) {
    return draw_depth(shrunk(1024, settings, 64), shrunk(512, settings, 48), i);
  });
  Case made = batch_of(pictures, batch, "drawn: depth of streets, with noise and holes");
  made.type = L3_CUDA_U16;
  arrange(made);
  return made;
}

// A region of each picture, somewhere in it; all of it where `edge` is 0.
Case regions(const Settings& settings, Parallel& parallel, uint32_t edge) {
  Case made = cityscapes(settings, parallel);
  uint32_t i = 0;
  for (Item& item : made.items) {
    if (edge == 0) break;
    const uint32_t width = item.width, height = item.height, wanted = shrunk(edge, settings, 16);
    item.width = std::min(wanted, width);
    item.height = std::min(wanted, height);
    item.x = scattered(i++, width - item.width + 1);
    item.y = scattered(i++, height - item.height + 1);
  }
  arrange(made);
  return made;
}

Case normalised(const Settings& settings, Parallel& parallel) {
  Case made = cityscapes(settings, parallel);
  made.type = L3_CUDA_F16;
  made.layout = L3_CUDA_CHW;
  made.scale = 1 / 57.5f;
  made.bias = -1.9f;
  for (uint32_t i = 0; i < made.items.size(); ++i) made.items[i].flip = scattered(i, 2) == 1;
  arrange(made);
  return made;
}

}  // namespace

const std::vector<CaseRecipe> kCases = {
    {"cityscapes", cityscapes},
    {"imagenet-224", imagenet},
    {"chw-f16-normalised", normalised},
    {"roi-512", [](const Settings& s, Parallel& p) { return regions(s, p, 512); }},
    {"single-2k", single_2k},
    {"labels", labels},
    {"depth16", depth16},
    {"single-8k", single_8k},
    {"roi-256", [](const Settings& s, Parallel& p) { return regions(s, p, 256); }},
    {"roi-full", [](const Settings& s, Parallel& p) { return regions(s, p, 0); }},
};

}  // namespace gpu_bench
