// Implements tile_source.h.
#include "encode/tile_source.h"

#include <algorithm>
#include <cstring>

namespace l3 {

uint64_t TileSource::pixels() const {
  if (tiles_ == nullptr) return uint64_t{head_.width} * head_.height;
  uint64_t sum = 0;
  for (const SampleTile& tile : *tiles_) sum += uint64_t{tile.shape.width} * tile.shape.height;
  return sum;
}

TileShape TileSource::shape(uint64_t tile) const {
  return tiles_ == nullptr ? head_.tile_shape(tile) : (*tiles_)[tile].shape;
}

TileInput TileSource::input(uint64_t tile) const {
  if (tiles_ != nullptr) return (*tiles_)[tile].input();
  const uint64_t x = tile % head_.tiles_across * head_.tile_width;
  const uint64_t y = tile / head_.tiles_across * head_.tile_height;
  return {pixels_ + y * stride_ + x * head_.coded_pixel_bytes(), stride_};
}

namespace {

// A part of a tile.
struct Piece {
  TileShape shape;
  const uint8_t* first;
  size_t stride;
  uint32_t busy;  // bytes that differ from the pixel to the left, of a quarter of the rows

  size_t row_bytes() const { return shape.width * pixel_bytes(); }
  size_t pixel_bytes() const { return size_t{shape.channels} * (shape.bits > 8 ? 2 : 1); }
};

uint32_t busy_bytes(const Piece& piece) {
  uint32_t sum = 0;
  for (uint32_t y = 0; y < piece.shape.height; y += 4) {
    const uint8_t* const row = piece.first + y * piece.stride;
    const uint8_t* const left = row - piece.pixel_bytes();
    for (size_t i = piece.pixel_bytes(); i < piece.row_bytes(); ++i) sum += row[i] != left[i];
  }
  return sum;
}

void add_pieces(const TileSource& source, uint64_t tile, uint32_t edge, std::vector<Piece>& pieces) {
  const TileShape shape = source.shape(tile);
  const TileInput input = source.input(tile);
  for (uint32_t y = 0; y < shape.height; y += edge) {
    for (uint32_t x = 0; x < shape.width; x += edge) {
      Piece piece{shape, input.pixels + y * input.stride, input.stride, 0};
      piece.shape.width = smaller(edge, shape.width - x);
      piece.shape.height = smaller(edge, shape.height - y);
      piece.first += x * piece.pixel_bytes();
      piece.busy = busy_bytes(piece);
      pieces.push_back(piece);
    }
  }
}

}  // namespace

std::vector<SampleTile> pieces_of(const TileSource& source, uint64_t pixels, uint32_t edge) {
  std::vector<Piece> all;
  for (uint64_t tile = 0; tile < source.tile_count(); ++tile) add_pieces(source, tile, edge, all);
  // Of each group of pieces that are about equally busy, the first one that is as busy as their mean.
  std::stable_sort(all.begin(), all.end(), [](const Piece& a, const Piece& b) { return a.busy < b.busy; });
  const size_t count = std::clamp<size_t>(pixels / (uint64_t{edge} * edge), 1, all.size());
  std::vector<SampleTile> sample;
  for (size_t i = 0; i < count; ++i) {
    size_t place = i * all.size() / count;
    const size_t end = (i + 1) * all.size() / count;
    uint64_t sum = 0;
    for (size_t k = place; k < end; ++k) sum += all[k].busy;
    for (const size_t size = end - place; place + 1 < end && all[place].busy * size < sum;) ++place;
    const Piece& piece = all[place];
    SampleTile copy{piece.shape, std::vector<uint8_t>(piece.row_bytes() * piece.shape.height)};
    for (uint32_t y = 0; y < piece.shape.height; ++y) {
      std::memcpy(&copy.samples[y * piece.row_bytes()], piece.first + y * piece.stride, piece.row_bytes());
    }
    sample.push_back(std::move(copy));
  }
  return sample;
}

}  // namespace l3
