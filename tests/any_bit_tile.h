// Makes files of bit models that no encoder would make: with random neighbours, trees and colours, and with random bits
// or bits near what the model expects. It follows section 24 of spec/format.md, not codec/.
#pragma once

#include "lane_payload.h"

namespace by_hand {

constexpr uint32_t kBitModelFeature = 2;

struct BitModel {
  std::vector<uint32_t> neighbours, frequencies;
  std::vector<std::array<uint16_t, 4>> colours;  // of the bits 0 and 1; none where the bit is the sample
  Bytes section;

  uint32_t sample(uint32_t channel, bool bit) const { return colours.empty() ? bit : colours[bit][channel]; }
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

// The neighbours are near in most models.
inline BitModel any_bit_model(Dice& dice, uint32_t channels, uint32_t bits, uint32_t count = 0) {
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
  model.section = {2, static_cast<uint8_t>(channels), static_cast<uint8_t>(bits), has_colours,
                   static_cast<uint8_t>(count)};
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
  model.section = drawing::joined(model.section, string.bytes());
  return model;
}

class BitTileWriter {
 public:
  BitTileWriter(Dice& dice, const BitModel& model, uint32_t width, uint32_t height, uint32_t log_lanes)
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
  }

  const Bytes& payload() const { return payload_; }
  uint8_t parameters() const { return static_cast<uint8_t>(ending_ << 3 | log_lanes_); }
  bool bit(uint32_t x, uint32_t y) const {
    const uint32_t lane = y % lanes_;
    return history_[size_t{lane} * steps_ + pitch_ * (y / lanes_) + x + 2 * lane];
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
  put(&file.parts.header[12], 2, kBitModelFeature);
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
