// Trains a model for many images: keeps a sample of their tiles and fits a model to it as if it were one image.
#include <cstring>
#include <memory>
#include <new>

#include "api/options.h"
#include "encode/dense_encode.h"
#include "encode/encode_search.h"
#include "encode/image_check.h"
#include "encode/token_encode.h"
#include "targets/encode_target.h"

namespace l3 {
namespace {

constexpr uint64_t kDefaultMaxPixels = uint64_t{1} << 23;

// Scrambles a number (SplitMix64), so that the sample is random and yet the same in each run.
uint64_t shuffled(uint64_t number) {
  uint64_t v = number + 0x9E3779B97F4A7C15u;
  v = (v ^ v >> 30) * 0xBF58476D1CE4E5B9u;
  v = (v ^ v >> 27) * 0x94D049BB133111EBu;
  return v ^ v >> 31;
}

// A random sample of all tiles that were added. Each tile is equally likely to be in it.
class TileSample {
 public:
  explicit TileSample(uint64_t max_pixels) : max_pixels_(max_pixels) {}

  void add(const l3_image& image, uint32_t tile_width, uint32_t tile_height) {
    for (uint32_t y = 0; y < image.height; y += tile_height) {
      for (uint32_t x = 0; x < image.width; x += tile_width) {
        const uint64_t ticket = shuffled(seen_++);
        if ((ticket & mask_) != 0) continue;
        tiles_.push_back(
            copy(image, x, y, smaller(tile_width, image.width - x), smaller(tile_height, image.height - y)));
        tickets_.push_back(ticket);
        pixels_ += pixels_of(tiles_.back());
        while (pixels_ > max_pixels_ && tiles_.size() > 1) halve();
      }
    }
  }
  const std::vector<SampleTile>& tiles() const { return tiles_; }

 private:
  static uint64_t pixels_of(const SampleTile& tile) { return uint64_t{tile.shape.width} * tile.shape.height; }

  static SampleTile copy(const l3_image& image, uint32_t x, uint32_t y, uint32_t width, uint32_t height) {
    const uint32_t channels = channels_of(image);
    const size_t pixel = channels * (image.bits > 8 ? 2 : 1);
    const size_t stride = stride_of(image);
    const uint8_t* from = static_cast<const uint8_t*>(image.pixels) + y * stride + x * pixel;
    const size_t row = width * pixel;
    SampleTile tile{{width, height, channels, image.bits}, std::vector<uint8_t>(row * height)};
    for (size_t i = 0; i < height; ++i) std::memcpy(tile.samples.data() + i * row, from + i * stride, row);
    return tile;
  }

  // Drops about half of the tiles, and from now on accepts half as many.
  void halve() {
    mask_ = 2 * mask_ + 1;
    size_t kept = 0;
    pixels_ = 0;
    for (size_t i = 0; i < tiles_.size(); ++i) {
      if ((tickets_[i] & mask_) != 0 && (kept > 0 || i + 1 < tiles_.size())) continue;
      tickets_[kept] = tickets_[i];
      if (kept != i) tiles_[kept] = std::move(tiles_[i]);
      pixels_ += pixels_of(tiles_[kept++]);
    }
    tiles_.resize(kept);
    tickets_.resize(kept);
  }

  uint64_t max_pixels_;
  uint64_t seen_ = 0, pixels_ = 0;
  uint64_t mask_ = 0;  // a tile is kept if its ticket has none of these bits set
  std::vector<SampleTile> tiles_;
  std::vector<uint64_t> tickets_;
};

// The size of the model and of the sample encoded with it, or of the sample's first tiles if it is large.
uint64_t bytes_with(const ModelEncoder& encoder, const std::vector<SampleTile>& tiles) {
  constexpr uint64_t kMaxPixels = uint64_t{1} << 20;
  uint64_t bytes = encoder.model().size(), pixels = 0;
  std::vector<uint8_t> out;
  for (size_t i = 0; i < tiles.size() && pixels < kMaxPixels; ++i) {
    const uint32_t raw = static_cast<uint32_t>(tiles[i].samples.size());
    out.resize(raw + kUnit);
    uint8_t parameters = 0;
    const uint32_t size = encoder.encode(i, out.data(), raw, parameters);
    bytes += size != 0 ? pad_to_unit(size) : raw;
    pixels += uint64_t{tiles[i].shape.width} * tiles[i].shape.height;
  }
  return bytes;
}

// Chooses the kind of model: kind 0 for 8 bits, a token model for other bits. For 8-bit images in which pixels repeat,
// a token model too if it makes the sample enough smaller.
std::vector<uint8_t> fit_model(const std::vector<SampleTile>& tiles, const l3_train_options& options,
                               const EncodeTarget& target) {
  const TileSource source(tiles);
  const ModelUse use = options.complete != 0 ? ModelUse::any : ModelUse::similar;
  const TokenRules rules = token_rules_of(options.effort);
  const bool bytes = tiles.front().shape.bits == 8;
  std::vector<uint8_t> best;
  uint64_t minimum = UINT64_MAX;
  if (!bytes || share_of_repeats(source) >= rules.repeats) {
    TokenEncoder encoder(source, options.parallel);
    encoder.fit(encoder.choose(options.effort, use).plan, options.effort, use);
    best = encoder.model();
    if (bytes) minimum = bytes_with(encoder, tiles);
  }
  if (bytes) {
    DenseEncoder encoder(source, target.dense, options.parallel);
    encoder.fit(options.effort, use);
    const double enough = best.empty() ? 0 : rules.share * static_cast<double>(bytes_with(encoder, tiles));
    if (best.empty() || static_cast<double>(minimum) >= enough) best = encoder.model();
  }
  return best;
}

}  // namespace
}  // namespace l3

using namespace l3;

struct l3_training {
  l3_train_options options;
  TileSample sample;
};

l3_status l3_start_training(const l3_train_options* options, l3_training** training, l3_error* error) {
  if (training == nullptr) return fail(error, Reason::null_argument);
  *training = nullptr;
  l3_train_options own{};
  if (!copy_sized(options, own)) return fail(error, Reason::bad_struct_size);
  if (own.effort > 9) return fail(error, Reason::bad_effort);
  if (!is_tile_edge(own.tile_width) || !is_tile_edge(own.tile_height)) return fail(error, Reason::bad_tile_size);
  if (own.effort == 0) own.effort = kDefaultEffort;
  if (own.tile_width == 0) own.tile_width = kDefaultTileEdge;
  if (own.tile_height == 0) own.tile_height = kDefaultTileEdge;
  if (own.max_pixels == 0) own.max_pixels = kDefaultMaxPixels;
  *training = new (std::nothrow) l3_training{own, TileSample(own.max_pixels)};
  return *training != nullptr ? succeed(error) : fail(error, Reason::out_of_memory);
}

l3_status l3_add_to_training(l3_training* training, const l3_image* image, l3_error* error) {
  if (training == nullptr || image == nullptr) return fail(error, Reason::null_argument);
  l3_image own{};
  if (!copy_sized(image, own)) return fail(error, Reason::bad_struct_size);
  const Reason reason = check_image(own);
  if (reason != Reason::none) return fail(error, reason);
  const uint32_t channels = channels_of(own);
  const auto& tiles = training->sample.tiles();
  if (!tiles.empty() && (tiles.front().shape.channels != channels || tiles.front().shape.bits != own.bits)) {
    return fail(error, Reason::unlike_images);
  }
  if (!samples_in_range(own)) return fail(error, Reason::sample_out_of_range);
  try {
    training->sample.add(own, training->options.tile_width, training->options.tile_height);
  } catch (const std::bad_alloc&) {
    return fail(error, Reason::out_of_memory);
  }
  return succeed(error);
}

l3_status l3_finish_training(l3_training* training, l3_model** model, l3_error* error) {
  if (training == nullptr || model == nullptr) return fail(error, Reason::null_argument);
  *model = nullptr;
  if (training->sample.tiles().empty()) return fail(error, Reason::no_images);
  const EncodeTarget* chosen = encode_target();
  if (chosen == nullptr) return fail(error, Reason::unknown_cpu_target);
  try {
    const std::vector<uint8_t> made = fit_model(training->sample.tiles(), training->options, *chosen);
    return l3_open_model(made.data(), made.size(), model, error);
  } catch (const std::bad_alloc&) {
    return fail(error, Reason::out_of_memory);
  }
}

void l3_close_training(l3_training* training) { delete training; }
