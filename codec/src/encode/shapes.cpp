// Implements shapes.h.
#include "encode/shapes.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <unordered_map>

#include "models/bits.h"

namespace l3 {
namespace {

// Smaller shapes are never worth their place in a list.
constexpr uint32_t kMinOnes = 8;
// Decoding a pixel of a shape as other pixels takes about this share of the bits that it takes in a model.
constexpr double kShareOfBits = 0.5;
// What it takes to put a shape.
constexpr double kBitsOfPut = 18;

uint64_t hash_of(const Picture& picture) {
  uint64_t hash = picture.width;
  for (uint32_t y = 0; y < picture.height; ++y) {
    hash = (hash ^ picture.rows[y]) * 0x9E3779B97F4A7C15;
    hash ^= hash >> 29;
  }
  return hash;
}

// Adjacent ones of a row.
struct Run {
  uint32_t y, first, end;
  uint32_t part;  // of a shape
};

// The runs of a tile, row by row, and which of them are connected.
class Runs {
 public:
  explicit Runs(const BitPlane& plane) {
    size_t above = 0;
    for (uint32_t y = 0; y < plane.height(); ++y) {
      const size_t begin = all_.size();
      add_row(plane, y);
      connect(above, begin);
      above = begin;
    }
  }

  const std::vector<Run>& all() const { return all_; }
  size_t parts() const { return parent_.size(); }
  // The part that stands for all that are connected with this one.
  uint32_t root(uint32_t part) {
    while (parent_[part] != part) part = parent_[part] = parent_[parent_[part]];
    return part;
  }

 private:
  void add_row(const BitPlane& plane, uint32_t y) {
    const uint64_t* const row = plane.row(y);
    uint64_t before = 0;
    for (uint32_t i = 0; i < plane.row_words(); ++i) {
      // A run begins or ends where a pixel differs from the one to its left.
      for (uint64_t changes = row[i] ^ (row[i] << 1 | before); changes != 0; changes &= changes - 1) {
        const uint32_t x = 64 * i + lowest_of_64(changes);
        if (is_open_) {
          all_.back().end = x;
        } else {
          all_.push_back({y, x, 0, 0});
        }
        is_open_ = !is_open_;
      }
      before = row[i] >> 63;
    }
    if (is_open_) all_.back().end = plane.width();
    is_open_ = false;
  }
  // Connects the runs from `begin` on with those of the row above, also where only corners touch.
  void connect(size_t above, size_t begin) {
    const size_t end_above = begin;
    for (size_t i = begin; i < all_.size(); ++i) {
      Run& run = all_[i];
      run.part = static_cast<uint32_t>(parent_.size());
      bool is_new = true;
      while (above < end_above && all_[above].end < run.first) ++above;
      for (size_t k = above; k < end_above && all_[k].first <= run.end; ++k) {
        const uint32_t other = root(all_[k].part);
        if (is_new) {
          run.part = other;
          is_new = false;
        } else {
          parent_[other] = root(run.part);
        }
      }
      if (is_new) parent_.push_back(run.part);
    }
  }

  std::vector<Run> all_;
  std::vector<uint32_t> parent_;
  bool is_open_ = false;
};

// Codes a row of a shape.
template <class Bits>
void put_row(Bits& bits, uint32_t width, uint64_t above, uint64_t row) {
  const uint64_t above_changes[2] = {above & ~(above << 1), ~above & above << 1};
  const uint64_t changes = row ^ row << 1;
  uint32_t colour = 0, next = 0;
  while (true) {
    const uint32_t change = smaller(width, lowest_of_64(changes & ~lowest_bits_of_64(next)));
    const uint32_t likely = smaller(width, lowest_of_64(above_changes[colour] & ~lowest_bits_of_64(next)));
    switch (change - likely) {
      case 0: bits.put(1, 1); break;
      case UINT32_MAX: bits.put(2, 3); break;
      case 1: bits.put(6, 3); break;
      case UINT32_MAX - 1: bits.put(4, 4); break;
      case 2: bits.put(12, 4); break;
      default: bits.put(change << 3, 10); break;
    }
    if (change == width) return;
    next = change + 1;
    colour ^= 1;
  }
}

template <class Bits>
void put_picture(Bits& bits, const Picture& picture) {
  bits.put(picture.width - 1, kShapeEdgeBits);
  bits.put(picture.height - 1, kShapeEdgeBits);
  for (uint32_t y = 0; y < picture.height; ++y) {
    put_row(bits, picture.width, y == 0 ? 0 : picture.rows[y - 1], picture.rows[y]);
  }
}

uint32_t bits_of_picture(const Picture& picture) {
  BitCounter bits;
  put_picture(bits, picture);
  return bits.bits();
}

// Equal pictures.
struct Recurring {
  Picture picture;
  size_t count;
  uint32_t bits;

  // The bits that the shape saves, if it is put wherever it occurs.
  double gain() const {
    return static_cast<double>(count) * (kShareOfBits * bits - kBitsOfPut) - static_cast<double>(bits);
  }
};

std::vector<Recurring> recurring_of(const FoundShapes& found) {
  std::vector<const FoundShape*> sorted;
  for (const FoundShape& shape : found.all()) sorted.push_back(&shape);
  std::sort(sorted.begin(), sorted.end(), [](const FoundShape* a, const FoundShape* b) { return a->hash < b->hash; });
  std::vector<Recurring> result;
  for (size_t i = 0, end; i < sorted.size(); i = end) {
    for (end = i + 1; end < sorted.size() && sorted[end]->picture == sorted[i]->picture;) ++end;
    if (end == i + 1) continue;
    const Recurring shape{sorted[i]->picture, end - i, bits_of_picture(sorted[i]->picture)};
    if (shape.gain() > 0) result.push_back(shape);
  }
  return result;
}

// The numbers of a list: which shape is put, and how far its columns and rows are from those of the one before.
template <class Use>
void for_numbers(const std::vector<PutShape>& put, const std::vector<Picture>& pictures, const Use& use) {
  const auto unsigned_of = [](int32_t v) { return static_cast<uint32_t>(v > 0 ? 2 * v - 1 : -2 * v); };
  int32_t x = 0, y = 0;
  for (const PutShape& shape : put) {
    const Picture& picture = pictures[shape.number];
    const int32_t end = shape.y + static_cast<int32_t>(picture.height);
    use(0, shape.number);
    use(1, unsigned_of(shape.x - x));
    use(2, unsigned_of(end - y));
    x = shape.x + static_cast<int32_t>(picture.width);
    y = end;
  }
}
uint32_t bits_of_number(uint32_t number, uint32_t parameter) {
  return 2 * bit_length((number >> parameter) + 1) - 1 + parameter;
}
void put_number(BitWriter& bits, uint32_t number, uint32_t parameter) {
  const uint32_t high = (number >> parameter) + 1, zeros = bit_length(high) - 1;
  bits.put(0, zeros);
  bits.put(1, 1);
  bits.put(high - (1u << zeros), zeros);
  bits.put(number, parameter);
}

// Puts shapes in the order in which one reads: lines, and in a line from left to right.
void sort_by_lines(std::vector<PutShape>& put, const std::vector<Picture>& pictures) {
  const auto end = [&](const PutShape& shape) { return shape.y + static_cast<int32_t>(pictures[shape.number].height); };
  std::stable_sort(put.begin(), put.end(), [&](const PutShape& a, const PutShape& b) {
    return end(a) != end(b) ? end(a) < end(b) : a.x < b.x;
  });
  for (auto line = put.begin(); line != put.end();) {
    const int32_t last = end(*line) + static_cast<int32_t>(pictures[line->number].height / 2);
    const auto next = std::find_if(line, put.end(), [&](const PutShape& shape) { return end(shape) > last; });
    std::stable_sort(line, next, [](const PutShape& a, const PutShape& b) { return a.x < b.x; });
    line = next;
  }
}

}  // namespace

bool Picture::operator==(const Picture& other) const {
  return width == other.width && height == other.height && std::memcmp(rows, other.rows, height * sizeof(*rows)) == 0;
}

FoundShapes::FoundShapes(const TileSource& source, const BitColours& colours) {
  BitPlane plane;
  for (uint64_t tile = 0; tile < source.tile_count(); ++tile) {
    if (plane.load(source, tile, colours)) add(plane, tile);
  }
}

void FoundShapes::add(const BitPlane& plane, uint64_t tile) {
  Runs runs(plane);
  struct Box {
    uint32_t x0 = UINT32_MAX, y0 = UINT32_MAX, x1 = 0, y1 = 0, ones = 0;
    uint64_t* rows = nullptr;
    bool fits() const { return ones >= kMinOnes && x1 - x0 <= kMaxShapeEdge && y1 - y0 <= kMaxShapeEdge; }
  };
  std::vector<Box> boxes(runs.parts());
  for (const Run& run : runs.all()) {
    Box& box = boxes[runs.root(run.part)];
    box.x0 = std::min(box.x0, run.first);
    box.x1 = std::max(box.x1, run.end);
    box.y0 = std::min(box.y0, run.y);
    box.y1 = run.y + 1;
    box.ones += run.end - run.first;
  }
  size_t rows = 0;
  for (const Box& box : boxes) rows += box.fits() ? box.y1 - box.y0 : 0;
  rows_.emplace_back(rows);
  uint64_t* next = rows_.back().data();
  for (Box& box : boxes) {
    if (!box.fits()) continue;
    box.rows = next;
    next += box.y1 - box.y0;
  }
  for (const Run& run : runs.all()) {
    const Box& box = boxes[runs.root(run.part)];
    if (box.rows == nullptr) continue;
    box.rows[run.y - box.y0] |= lowest_bits_of_64(run.end - box.x0) & ~lowest_bits_of_64(run.first - box.x0);
  }
  for (const Box& box : boxes) {
    if (box.rows == nullptr) continue;
    const Picture picture{box.x1 - box.x0, box.y1 - box.y0, box.rows};
    all_.push_back({picture, tile, hash_of(picture), box.x0, box.y0});
  }
}

ImageShapes::ImageShapes(const TileSource& source, const FoundShapes& found) {
  std::vector<Recurring> chosen = recurring_of(found);
  std::stable_sort(chosen.begin(), chosen.end(),
                   [](const Recurring& a, const Recurring& b) { return a.gain() > b.gain(); });
  size_t count = 0, rows = 0, bits = 0;
  for (; count < std::min<size_t>(chosen.size(), kMaxShapes); ++count) {
    rows += chosen[count].picture.height;
    bits += chosen[count].bits;
    if (rows > kMaxShapeRows || bits > 8 * (kMaxBytes - 4)) break;
  }
  chosen.resize(count);
  // The numbers of those that occur often take few bits.
  std::stable_sort(chosen.begin(), chosen.end(),
                   [](const Recurring& a, const Recurring& b) { return a.count > b.count; });
  for (const Recurring& shape : chosen) {
    saved_bytes_ += shape.gain() / 8;
    rows_.emplace_back(shape.picture.rows, shape.picture.rows + shape.picture.height);
    pictures_.push_back({shape.picture.width, shape.picture.height, rows_.back().data()});
  }
  place(source, found);
  choose_parameters();
}

ImageShapes::ImageShapes(const TileSource& source, const FoundShapes& found, const BitShapes& of_model) {
  for (uint32_t i = 0; i < of_model.count; ++i) {
    const BitShape& shape = of_model.of[i];
    pictures_.push_back({shape.width, shape.height, of_model.rows + shape.first_row});
  }
  place(source, found);
  std::copy_n(of_model.number, 3, parameters_);
}

void ImageShapes::place(const TileSource& source, const FoundShapes& found) {
  put_.resize(source.tile_count());
  if (empty()) return;
  std::unordered_map<uint64_t, uint32_t> numbers;
  for (uint32_t i = 0; i < pictures_.size(); ++i) numbers.emplace(hash_of(pictures_[i]), i);
  std::vector<uint64_t> area(put_.size());
  for (const FoundShape& shape : found.all()) {
    const auto at = numbers.find(shape.hash);
    if (at == numbers.end() || !(pictures_[at->second] == shape.picture)) continue;
    const TileShape tile = source.shape(shape.tile);
    uint64_t& sum = area[shape.tile];
    const uint64_t with_this = sum + uint64_t{shape.picture.width} * shape.picture.height;
    if (with_this > uint64_t{tile.width} * tile.height ||
        put_[shape.tile].size() == max_listed_shapes(tile.width, tile.height))
      continue;
    sum = with_this;
    put_[shape.tile].push_back({at->second, static_cast<int32_t>(shape.x), static_cast<int32_t>(shape.y)});
  }
  for (std::vector<PutShape>& of_tile : put_) sort_by_lines(of_tile, pictures_);
}

void ImageShapes::choose_parameters() {
  uint64_t bits[3][1u << kParameterBits] = {};
  for (const std::vector<PutShape>& of_tile : put_) {
    for_numbers(of_tile, pictures_, [&](uint32_t kind, uint32_t number) {
      for (uint32_t k = 0; k < 1u << kParameterBits; ++k) bits[kind][k] += bits_of_number(number, k);
    });
  }
  for (uint32_t kind = 0; kind < 3; ++kind) {
    parameters_[kind] =
        static_cast<uint32_t>(std::min_element(std::begin(bits[kind]), std::end(bits[kind])) - std::begin(bits[kind]));
  }
}

double ImageShapes::bytes() const {
  uint64_t bits = 0;
  for (const Picture& picture : pictures_) bits += bits_of_picture(picture);
  for (const std::vector<PutShape>& of_tile : put_) {
    bits += 8 * (kShapeListHeadBytes + kUnit / 2);
    for_numbers(of_tile, pictures_,
                [&](uint32_t kind, uint32_t number) { bits += bits_of_number(number, parameters_[kind]); });
  }
  return static_cast<double>(bits) / 8;
}

void ImageShapes::put(BitWriter& bits) const {
  for (const uint32_t parameter : parameters_) bits.put(parameter, kParameterBits);
  bits.put(static_cast<uint32_t>(pictures_.size()) - 1, kShapeCountBits);
  for (const Picture& picture : pictures_) put_picture(bits, picture);
}

void ImageShapes::take_out(uint64_t tile, BitPlane& plane) const {
  if (empty()) return;
  for (const PutShape& put : put_[tile]) {
    const Picture& picture = pictures_[put.number];
    for (uint32_t i = 0; i < picture.height; ++i) {
      plane.clear(static_cast<uint32_t>(put.x), static_cast<uint32_t>(put.y) + i, picture.rows[i]);
    }
  }
}

uint32_t ImageShapes::write_list(uint64_t tile, uint8_t* out, uint32_t room) const {
  uint64_t bits = 8 * kShapeListHeadBytes;
  for_numbers(put_[tile], pictures_,
              [&](uint32_t kind, uint32_t number) { bits += bits_of_number(number, parameters_[kind]); });
  const uint64_t units = (bits + 8 * kUnit - 1) / (8 * kUnit);
  if (units > UINT16_MAX || units * kUnit > room) return 0;
  const auto size = static_cast<uint32_t>(units * kUnit);
  std::memset(out, 0, size);
  store_u16(out, static_cast<uint32_t>(units));
  store_u16(out + 2, static_cast<uint32_t>(put_[tile].size()));
  BitWriter writer(out + kShapeListHeadBytes);
  for_numbers(put_[tile], pictures_,
              [&](uint32_t kind, uint32_t number) { put_number(writer, number, parameters_[kind]); });
  return size;
}

}  // namespace l3
