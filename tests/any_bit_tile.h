// Makes files of bit models that no encoder would make: with random neighbours, trees, colours and shapes, and with
// random bits or bits near what the model expects. It follows section 24 of spec/format.md, not codec/.
#pragma once

#include "lane_payload.h"

namespace by_hand {

constexpr uint32_t kBitModelFeature = 2, kShapesFeature = 8;

struct BitShape {
  uint32_t width, height;
  std::vector<bool> ones;
};

struct BitModel {
  std::vector<uint32_t> neighbours, frequencies;
  std::vector<std::array<uint16_t, 4>> colours;  // of the bits 0 and 1; none where the bit is the sample
  std::vector<BitShape> shapes;
  std::array<uint32_t, 3> parameters{};  // kI, kX and kY, where it has shapes
  Bytes section;

  uint32_t sample(uint32_t channel, bool bit) const { return colours.empty() ? bit : colours[bit][channel]; }
  uint8_t features() const { return shapes.empty() ? kBitModelFeature : kBitModelFeature | kShapesFeature; }
};

inline void put_tree(BitString& bits, Dice& dice, uint32_t depth, uint32_t leaf_chance, BitModel& model) {
  const size_t count = model.neighbours.size();
  if (depth < count) {
    const bool splits = !dice.chance(leaf_chance);
    bits.put(splits, 1);
    if (splits) {
      put_tree(bits, dice, depth + 1, leaf_chance, model);
      put_tree(bits, dice, depth + 1, leaf_chance, model);
      return;
    }
  }
  constexpr uint32_t kFrequencies[32] = {1,   2,   3,   4,   5,   6,    8,    10,   13,   16,  20,
                                         25,  32,  40,  51,  64,  81,   102,  128,  161,  203, 256,
                                         323, 406, 512, 645, 813, 1024, 1218, 1448, 1722, 1930};
  const uint32_t level = dice.roll(64), frequency = level < 32 ? kFrequencies[level] : 4096 - kFrequencies[63 - level];
  bits.put(level, 6);
  model.frequencies.insert(model.frequencies.end(), size_t{1} << (count - depth), frequency);
}

// Changes that can be coded in several ways take any of them.
inline void put_row(BitString& bits, Dice& dice, uint32_t width, const bool* above, const bool* row) {
  uint32_t colour = 0, next = 0;
  for (uint32_t change = 0;; ++change) {
    if (change < width && row[change] == (colour != 0)) continue;
    uint32_t b = next;
    while (b < width && !(above[b] != (colour != 0) && (b > 0 && above[b - 1]) == (colour != 0))) ++b;
    if (change == b && !dice.chance(10)) {
      bits.put(1, 1);
    } else if ((change + 1 == b || change == b + 1) && !dice.chance(10)) {
      bits.put(change > b ? 6 : 2, 3);
    } else if ((change + 2 == b || change == b + 2) && !dice.chance(10)) {
      bits.put(change > b ? 12 : 4, 4);
    } else {
      bits.put(change << 3, 10);
    }
    if (change == width) return;
    colour ^= 1;
    next = change + 1;
  }
}

// Rows are noise, or like the one above, and most shapes are small.
inline void put_shapes(BitString& bits, Dice& dice, uint32_t count, BitModel& model) {
  for (uint32_t& parameter : model.parameters) bits.put(parameter = dice.roll(8), 3);
  bits.put(count - 1, 10);
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t edge = dice.chance(4) ? 64 : 20, width = 1 + dice.roll(edge),
                   height = 1 + dice.roll(std::min(edge, 8192 / count));
    bits.put(width - 1, 6);
    bits.put(height - 1, 6);
    BitShape shape{width, height, {}};
    bool above[64] = {}, row[64];
    const uint32_t change = 2 + dice.roll(10);
    for (uint32_t y = 0; y < height; ++y) {
      const bool is_noise = y == 0 || dice.chance(6);
      const uint32_t move = dice.roll(3);  // of the row above, by a column
      for (uint32_t x = 0; x < width; ++x) {
        const uint32_t from = x + move > 0 && x + move <= width ? x + move - 1 : x;
        row[x] = is_noise ? (x > 0 && row[x - 1]) != dice.chance(change) : above[from] != dice.chance(40);
      }
      put_row(bits, dice, width, above, row);
      std::copy_n(row, width, above);
      shape.ones.insert(shape.ones.end(), row, row + width);
    }
    model.shapes.push_back(std::move(shape));
  }
}

// The neighbours are near in most models. Some models have shapes, unless it is said how many.
inline BitModel any_bit_model(Dice& dice, uint32_t channels, uint32_t bits, uint32_t count = 0, int shapes = -1) {
  if (shapes < 0) shapes = dice.chance(3) ? static_cast<int>(1 + dice.roll(dice.chance(6) ? 100 : 8)) : 0;
  BitModel model;
  if (count == 0) count = 2 + dice.roll(13);
  model.neighbours = {0, 16};
  const uint32_t columns = dice.chance(3) ? 16 : 5;
  while (model.neighbours.size() < count) {
    const uint32_t neighbour = dice.roll(4) * 16 + dice.roll(columns);
    if (neighbour == 32 || neighbour == 48) continue;
    if (std::find(model.neighbours.begin(), model.neighbours.end(), neighbour) != model.neighbours.end()) continue;
    model.neighbours.push_back(neighbour);
  }
  for (size_t i = count; i > 1; --i) std::swap(model.neighbours[i - 1], model.neighbours[dice.roll(i)]);
  const bool has_colours = channels != 1 || bits != 1 || dice.chance(2);
  model.section = {2, static_cast<uint8_t>(channels), static_cast<uint8_t>(bits),
                   static_cast<uint8_t>(has_colours | (shapes > 0) << 1), static_cast<uint8_t>(count)};
  for (const uint32_t neighbour : model.neighbours) model.section.push_back(static_cast<uint8_t>(neighbour));
  BitString string;
  for (uint32_t bit = 0; bit < 2 && has_colours; ++bit) {
    model.colours.push_back({});
    for (uint32_t c = 0; c < channels; ++c) {
      model.colours[bit][c] = static_cast<uint16_t>(dice.roll(uint64_t{1} << bits));
      string.put(model.colours[bit][c], bits);
    }
  }
  put_tree(string, dice, 0, dice.chance(4) ? 1000 : 3 + dice.roll(20), model);
  if (shapes > 0) put_shapes(string, dice, static_cast<uint32_t>(shapes), model);
  model.section = drawing::joined(model.section, string.bytes());
  return model;
}

// What is wrong with a list of shapes.
enum class ListFault {
  none,
  no_units,
  many_units,
  zeros,
  shape,
  left,
  right,
  above,
  below,
  area,
  count,
  rest,
};
inline constexpr uint32_t kListFaults = 12;

// Lists where a tile has shapes.
class ShapeListWriter {
 public:
  explicit ShapeListWriter(const BitModel& model) : model_(model) {}

  // Shape i from column x on, in the rows above y.
  void add(uint32_t i, int32_t x, int32_t y) {
    put_number(i, model_.parameters[0]);
    put_number(of_signed(x - x_), model_.parameters[1]);
    put_number(of_signed(y - y_), model_.parameters[2]);
    x_ = x + (i < model_.shapes.size() ? static_cast<int32_t>(model_.shapes[i].width) : 0);
    y_ = y;
    ++count_;
  }
  void add_bits(uint32_t value, uint32_t bits) { bits_.put(value, bits); }
  void count_one() { ++count_; }

  Bytes bytes(uint32_t more_units = 0) const {
    Bytes list = drawing::joined(Bytes(4), bits_.bytes());
    list.resize(pad(list.size()) + 16 * size_t{more_units});
    put(&list[0], 2, list.size() / 16);
    put(&list[2], 2, count_);
    return list;
  }

 private:
  static uint32_t of_signed(int32_t v) { return static_cast<uint32_t>(v > 0 ? 2 * v - 1 : -2 * v); }
  void put_number(uint32_t v, uint32_t k) {
    const uint32_t high = v >> k;
    uint32_t zeros = 0;
    while (high + 1 >= 2u << zeros) ++zeros;
    bits_.put(0, zeros);
    bits_.put(1, 1);
    bits_.put(high + 1 - (1u << zeros), zeros);
    bits_.put(v, k);
  }

  const BitModel& model_;
  BitString bits_;
  uint32_t count_ = 0;
  int32_t x_ = 0, y_ = 0;
};

// A list for a tile, inside it and across its edges. Sets `ones`, of a tile of zeros, where the shapes have them. A
// fault comes behind a few shapes.
inline Bytes any_shape_list(Dice& dice, const BitModel& model, uint32_t width, uint32_t height, std::vector<bool>& ones,
                            ListFault fault = ListFault::none) {
  ShapeListWriter list(model);
  const auto w = static_cast<int32_t>(width), h = static_cast<int32_t>(height);
  uint32_t area = 0;
  for (uint32_t n = std::min(dice.roll(dice.chance(4) ? 100 : 12), 8 + width * height / 128); n > 0; --n) {
    const uint32_t i = dice.roll(model.shapes.size());
    const BitShape& shape = model.shapes[i];
    area += shape.width * shape.height;
    if (area > width * height) break;
    const int32_t x = static_cast<int32_t>(dice.roll(width + shape.width - 1) + 1 - shape.width),
                  top = static_cast<int32_t>(dice.roll(height + shape.height - 1) + 1 - shape.height);
    list.add(i, x, top + static_cast<int32_t>(shape.height));
    for (uint32_t k = 0; k < shape.ones.size(); ++k) {
      const int32_t column = x + static_cast<int32_t>(k % shape.width),
                    row = top + static_cast<int32_t>(k / shape.width);
      if (!shape.ones[k] || column < 0 || column >= w || row < 0 || row >= h) continue;
      ones[static_cast<uint32_t>(row) * width + static_cast<uint32_t>(column)] = true;
    }
  }
  const uint32_t i = dice.roll(model.shapes.size());
  const auto shape_w = static_cast<int32_t>(model.shapes[i].width),
             shape_h = static_cast<int32_t>(model.shapes[i].height);
  switch (fault) {
    case ListFault::zeros:
      list.add_bits(0, 13);
      list.add_bits(~0u, 32);
      list.count_one();
      break;
    case ListFault::shape: list.add(static_cast<uint32_t>(model.shapes.size()), 0, 1); break;
    case ListFault::left: list.add(i, -shape_w, 1); break;
    case ListFault::right: list.add(i, w, 1); break;
    case ListFault::above: list.add(i, 0, 0); break;
    case ListFault::below: list.add(i, 0, h + shape_h); break;
    case ListFault::area:
      for (uint32_t n = std::min(width * height / (model.shapes[i].width * model.shapes[i].height), 5000u) + 1; n > 0;
           --n) {
        list.add(i, 0, 1);
      }
      break;
    case ListFault::count: list.count_one(); break;
    default: break;
  }
  Bytes bytes = list.bytes(dice.chance(8) || fault == ListFault::rest);
  if (fault == ListFault::no_units) put(&bytes[0], 2, 0);
  if (fault == ListFault::many_units)
    put(&bytes[0], 2, dice.chance(2) ? 0xFFFF : bytes.size() / 16 + 1 + dice.roll(40));
  if (fault == ListFault::rest) bytes.back() = 0x80;
  return bytes;
}

class BitTileWriter {
 public:
  BitTileWriter(Dice& dice, const BitModel& model, uint32_t width, uint32_t height, uint32_t log_lanes,
                ListFault fault = ListFault::none)
      : model_(model), width_(width), height_(height), log_lanes_(log_lanes), lanes_(1u << log_lanes) {
    steps_ = pitch_ * ((height - 1) / lanes_) + width + 2 * ((height - 1) % lanes_);
    history_.assign(size_t{lanes_} * steps_, false);
    std::vector<LaneEvent> events;
    const bool is_likely = dice.chance(2);
    for (uint32_t step = 0; step < steps_; ++step) {
      for (uint32_t lane = 0; lane < lanes_ && 2 * lane <= step; ++lane) {
        const uint32_t u = step - 2 * lane;
        if (u % pitch_ >= width || lane + lanes_ * (u / pitch_) >= height) continue;
        const uint32_t frequency = model.frequencies[context(lane, step)];
        const bool bit = is_likely ? dice.roll(4096) < frequency : dice.chance(2);
        events.push_back({lane, nullptr, bit, 0, frequency, step + 1});
        history_[size_t{lane} * steps_ + step] = bit;
      }
    }
    ending_ = dice.chance(3) ? dice.roll(31) : dice.roll(8);
    payload_ = payload_of(events, width, height, lanes_, ending_);
    ones_.assign(size_t{width} * height, false);
    if (!model.shapes.empty()) {
      payload_ = drawing::joined(any_shape_list(dice, model, width, height, ones_, fault), payload_);
    }
  }

  const Bytes& payload() const { return payload_; }
  uint8_t parameters() const { return static_cast<uint8_t>(ending_ << 3 | log_lanes_); }
  bool bit(uint32_t x, uint32_t y) const {
    const uint32_t lane = y % lanes_;
    return ones_[size_t{y} * width_ + x] || history_[size_t{lane} * steps_ + pitch_ * (y / lanes_) + x + 2 * lane];
  }

 private:
  // H(l, s), word for word.
  bool decoded(int64_t lane, int64_t step) const {
    if (step < 0) return false;
    if (lane < 0) return decoded(lane + lanes_, step - pitch_ + 2 * lanes_);
    return history_[static_cast<size_t>(lane * steps_ + step)];
  }
  uint32_t context(uint32_t lane, uint32_t step) const {
    uint32_t result = 0;
    for (const uint32_t q : model_.neighbours) {
      result = 2 * result + decoded(int64_t{lane} - q / 16, int64_t{step} - 1 - q % 16);
    }
    return result;
  }

  const BitModel& model_;
  const uint32_t width_, height_, log_lanes_, lanes_;
  const uint32_t pitch_ = std::max(width_, 2 * lanes_);
  uint32_t steps_ = 0, ending_ = 0;
  std::vector<bool> history_;  // of each lane, of each step
  std::vector<bool> ones_;     // of shapes
  Bytes payload_;
};

// A file of a bit model, and the samples that decoding it gives.
struct BitFile {
  Parts parts;
  std::vector<uint16_t> samples;
};

// Tiles of any numbers of lanes, or of as many as are given; all of them dense or a few of them constant.
inline BitFile any_bit_file(Dice& dice, drawing::Size size, drawing::Type type, const BitModel& model,
                            uint32_t tile_width = 32, uint32_t tile_height = 32, int log_lanes = -1) {
  BitFile file{any_parts(dice, size, type, tile_width, tile_height), {}};
  const uint32_t channels = model.section[1];
  put(&file.parts.header[12], 2, model.features());
  file.parts.sections.push_back({L3_SECTION_MODEL, model.section});
  file.samples.resize(size_t{size.width} * size.height * channels);
  size_t i = 0;
  for (uint32_t top = 0; top < size.height; top += tile_height) {
    for (uint32_t left = 0; left < size.width; left += tile_width, ++i) {
      const uint32_t width = std::min(tile_width, size.width - left), height = std::min(tile_height, size.height - top);
      TilePart& tile = file.parts.tiles[i];
      const bool is_constant = tile.method == 0;
      const BitTileWriter writer(dice, model, width, height,
                                 log_lanes < 0 ? dice.roll(6) : static_cast<uint32_t>(log_lanes));
      if (!is_constant) tile = {3, writer.parameters(), {}, writer.payload()};
      for (uint32_t y = 0; y < height; ++y) {
        for (uint32_t x = 0; x < width; ++x) {
          uint16_t* const pixel = &file.samples[(size_t{top + y} * size.width + left + x) * channels];
          for (uint32_t c = 0; c < channels; ++c) {
            pixel[c] = static_cast<uint16_t>(is_constant ? tile.value[c] : model.sample(c, writer.bit(x, y)));
          }
        }
      }
    }
  }
  return file;
}

}  // namespace by_hand
