// Implements token_tile.h: the memory of a tile, and the symbols that code it (section 15 of the spec).
#include "encode/token_tile.h"

#include <algorithm>
#include <cstring>

namespace l3 {
namespace {

void read_literals(const TokenPlanes& planes, TokenSymbols& symbols) {
  for (uint32_t y = 0; y < planes.height; ++y) {
    const int32_t* const here = planes.values[0] + y * planes.pitch;
    const size_t first = size_t{y} * planes.width;
    int32_t w = y > 0 ? here[-static_cast<ptrdiff_t>(planes.pitch)] : 0;
    for (uint32_t x = 0; x < planes.width; ++x) {
      symbols.contexts[0][first + x] = static_cast<uint16_t>(std::min(w, static_cast<int32_t>(kLiteralContexts) - 1));
      symbols.numbers[0][first + x] = static_cast<uint16_t>(w = here[x]);
    }
  }
}

void read_channel(const TokenTile& tile, const TokenKernels& kernels, const TokenModel& model, uint32_t c,
                  TokenSymbols& symbols) {
  const auto places = std::make_unique_for_overwrite<TokenPlace[]>(tile.pixels());
  kernels.read_symbols(tile.planes(), c, model.activity[c], model.depth[c], places.get());
  const TokenRows rows(model, c);
  for (size_t i = 0; i < tile.pixels(); ++i) {
    if (symbols.symbols[i] != kMatchNone) continue;
    const TokenPlace& place = places[i];
    const uint32_t row = rows.of[place.zone][place.pattern];
    symbols.contexts[c][i] = static_cast<uint16_t>(row * kTokenLevels + place.level);
    symbols.numbers[c][i] = place.number;
  }
}

void read_matches(const TokenTile& tile, const TokenKernels& kernels, const TokenModel& model, TokenSymbols& symbols) {
  const TokenPlanes& planes = tile.planes();
  symbols.matches = std::make_unique_for_overwrite<uint16_t[]>(tile.pixels());
  const uint32_t octave_count = model.columns();
  const auto octaves = std::make_unique<uint8_t[]>(tile.pixels());
  if (model.follow) {
    for (uint32_t y = 0; y < planes.height; ++y) {
      std::memcpy(&octaves[size_t{y} * planes.width], planes.follows + y * planes.pitch, planes.width);
    }
  } else if (!model.literal) {
    kernels.read_octaves(planes, model.activity[0], octaves.get());
  }
  for (uint32_t y = 0; y < planes.height; ++y) {
    const uint8_t* const equalities = planes.equalities + y * planes.pitch;
    const size_t first = size_t{y} * planes.width;
    for (uint32_t x = 0; x < planes.width; ++x) {
      symbols.matches[first + x] = static_cast<uint16_t>(equalities[x] * octave_count + octaves[first + x]);
    }
  }
}

std::unique_ptr<uint8_t[]> copy_of(const uint8_t* from, size_t count) {
  auto copy = std::make_unique_for_overwrite<uint8_t[]>(count);
  std::memcpy(copy.get(), from, count);
  return copy;
}

}  // namespace

TokenTile::TokenTile(uint32_t width, uint32_t height, uint32_t engine_channels, int32_t hole) {
  TokenPlanes& p = planes_;
  p.width = width;
  p.height = height;
  p.channels = engine_channels;
  p.blocks_across = ceil_div(width, kBlockEdge);
  p.blocks_down = ceil_div(height, kBlockEdge);
  p.pitch = TokenPlanes::pitch_of(width);
  p.hole = hole;
  const size_t plane = p.pitch * height, blocks = p.block_count();
  numbers_ = std::make_unique<int32_t[]>(plane * (3 * engine_channels + (hole >= 0)));
  bytes_ = std::make_unique<uint8_t[]>(3 * plane + blocks * (engine_channels + 1));
  rows_ = std::make_unique<uint16_t[]>(blocks);
  p.rows = rows_.get();
  int32_t* numbers = numbers_.get() + kTokenMargin;
  uint8_t* bytes = bytes_.get() + 3 * plane;
  for (uint32_t c = 0; c < engine_channels; ++c, numbers += 3 * plane, bytes += blocks) {
    p.values[c] = numbers;
    p.errors[c] = numbers + plane;
    p.predicted[c] = numbers + 2 * plane;
    p.classes[c] = bytes;
  }
  p.held = numbers;
  p.still = bytes;
  p.equalities = bytes_.get() + kTokenMargin;
  p.symbols = p.equalities + plane;
  p.follows = p.symbols + plane;
  std::memset(bytes_.get() + plane, kNoSymbol, plane);
  for (uint32_t y = 0; y < height; ++y) std::memset(p.symbols + y * p.pitch, kMatchNone, width);
}

void TokenTile::finish() {
  const TokenPlanes& p = planes_;
  for (uint32_t c = 0; c < p.channels; ++c) {
    for (uint32_t y = 0; y < p.height; ++y) fill_margins(row(c, y), p.width, p.pitch);
  }
  for (uint32_t y = 0; y < p.height && p.hole >= 0; ++y) {
    const int32_t* const here = row(0, y);
    const int32_t* const above = y > 0 ? here - p.pitch : nullptr;
    int32_t held = 0;
    for (uint32_t x = 0; x < p.width; ++x) {
      const int32_t w = x > 0 ? here[x - 1] : above != nullptr ? above[0] : 0;
      const int32_t n = above != nullptr ? above[x] : w;
      held = w != p.hole ? w : n != p.hole ? n : held;
      p.held[y * p.pitch + x] = held;
    }
  }
}

TokenRows::TokenRows(const TokenModel& model, uint32_t c) {
  const auto groups_of = [](const uint8_t* groups, uint32_t count) {
    return *std::max_element(groups, groups + count) + 1u;
  };
  sign_groups = groups_of(model.sign_group[c], kSignPatterns);
  rows = groups_of(model.zone_group[c], kZones) * sign_groups;
  for (uint32_t zone = 0; zone < kZones; ++zone) {
    for (uint32_t pattern = 0; pattern < kSignPatterns; ++pattern) {
      of[zone][pattern] = static_cast<uint8_t>(model.zone_group[c][zone] * sign_groups + model.sign_group[c][pattern]);
    }
  }
}

std::vector<uint8_t> row_contexts(const TokenSymbols& symbols, uint32_t width, uint32_t height, uint32_t lanes) {
  const uint32_t across = ceil_div(width, kBlockEdge), blocks = across * ceil_div(height, kBlockEdge);
  std::vector<uint8_t> contexts(size_t{blocks} * kBlockEdge, kNoSymbol);
  std::vector<uint16_t> known(blocks, 0xFFFF);
  for (uint32_t first = 0; first < blocks; first += lanes) {
    const uint32_t end = std::min(first + lanes, blocks);
    for (uint32_t k = 0; k < kBlockEdge; ++k) {
      for (uint32_t block = first; block < end; ++block) {
        if (symbols.still[block] != 0 || block / across * kBlockEdge + k >= height) continue;
        contexts[size_t{block} * kBlockEdge + k] = static_cast<uint8_t>(row_context(known.data(), across, block, k));
      }
      for (uint32_t block = first; block < end; ++block)
        known[block] &= static_cast<uint16_t>(symbols.rows[block] | ~(1u << k));
    }
  }
  return contexts;
}

TokenSymbols read_symbols(const TokenTile& tile, const TokenKernels& kernels, const TokenModel& model) {
  const TokenPlanes& planes = tile.planes();
  TokenSymbols symbols;
  symbols.symbols = std::make_unique_for_overwrite<uint8_t[]>(tile.pixels());
  for (uint32_t y = 0; y < planes.height; ++y) {
    std::memcpy(&symbols.symbols[size_t{y} * planes.width], planes.symbols + y * planes.pitch, planes.width);
  }
  symbols.still = copy_of(planes.still, planes.block_count());
  if (model.rows) {
    symbols.rows = std::make_unique_for_overwrite<uint16_t[]>(planes.block_count());
    std::copy_n(planes.rows, planes.block_count(), symbols.rows.get());
  }
  if (model.match) read_matches(tile, kernels, model, symbols);
  for (uint32_t c = 0; c < planes.channels; ++c) {
    symbols.contexts[c] = std::make_unique_for_overwrite<uint16_t[]>(tile.pixels());
    symbols.numbers[c] = std::make_unique_for_overwrite<uint16_t[]>(tile.pixels());
    symbols.classes[c] = copy_of(planes.classes[c], planes.block_count());
    if (!model.literal) read_channel(tile, kernels, model, c, symbols);
  }
  if (model.literal) read_literals(planes, symbols);
  return symbols;
}

}  // namespace l3
