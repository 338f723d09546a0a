// Codes tiles of token models by hand: with random symbols, or with the symbols of given samples.
// It follows sections 13 and 15 of spec/format.md, not codec/.
#pragma once

#include "any_token_model.h"
#include "followed_pixels.h"
#include "lane_payload.h"

namespace by_hand {

class TokenTileWriter {
 public:
  TokenTileWriter(Dice& dice, const TokenModel& model, uint32_t width, uint32_t height, uint32_t log_lanes)
      : dice_(dice),
        model_(model),
        width_(width),
        height_(height),
        lanes_(1u << log_lanes),
        engine_channels_(model.widths.size()),
        blocks_across_((width + 15) / 16),
        values_(engine_channels_ * width * height),
        errors_(values_.size()),
        held_(lanes_),
        follows_(width, height, lanes_) {}

  // Of the tile, after its payload was made: its lanes and an ending.
  uint8_t parameters() const { return static_cast<uint8_t>(ending_ << 3 | log2(lanes_)); }

  // The payload. What symbols are is drawn.
  Bytes random() {
    given_ = nullptr;
    return write();
  }
  // The payload of these samples, pixel by pixel, each of which the model can code.
  Bytes of(const std::vector<uint32_t>& samples) {
    std::vector<uint32_t> values;
    for (size_t at = 0; at < samples.size(); at += model_.section.channels) {
      for (const uint32_t value : values_of(&samples[at])) values.push_back(value);
    }
    given_ = &values;
    return write();
  }
  // What decoding the payload gives, pixel by pixel.
  std::vector<uint32_t> samples() const {
    std::vector<uint32_t> result;
    for (uint32_t y = 0; y < height_; ++y) {
      for (uint32_t x = 0; x < width_; ++x) {
        std::vector<uint32_t> pixel;
        for (uint32_t e = 0; e < engine_channels_; ++e) pixel.push_back(values_[index(e, x, y)]);
        for (const uint32_t sample : model_.samples(pixel)) result.push_back(sample);
      }
    }
    return result;
  }

 private:
  using Event = LaneEvent;
  struct Place {
    uint32_t lane, x, y;
  };
  struct Coded {
    Place place;
    FollowedPixels::Source source;
  };
  enum Neighbour { W, N, NW, NE, WW, NN, NNE, NWW };

  Bytes write() {
    put_classes();
    const uint32_t pitch = std::max(width_, 2 * lanes_);
    const uint32_t last_step = pitch * ((height_ - 1) / lanes_) + width_ - 1 + 2 * ((height_ - 1) % lanes_);
    for (uint32_t step = 0; step <= last_step; ++step) {
      std::vector<Place> active;
      for (uint32_t lane = 0; lane < lanes_ && 2 * lane <= step; ++lane) {
        const uint32_t u = step - 2 * lane, x = u % pitch, y = lane + lanes_ * (u / pitch);
        if (x < width_ && y < height_) active.push_back({lane, x, y});
      }
      const size_t before = events_.size();
      put_step(active, step);
      for (size_t i = before; i < events_.size(); ++i) events_[i].step = step + 1;
    }
    ending_ = dice_.chance(3) ? dice_.roll(31) : dice_.roll(8);
    return payload_of(events_, width_, height_, lanes_, ending_);
  }

  void put_classes() {
    const uint32_t blocks = blocks_across_ * ((height_ + 15) / 16);
    classes_.assign(engine_channels_, std::vector<uint32_t>(blocks));
    still_.assign(blocks, false);
    moving_rows_.assign(size_t{16} * blocks, false);
    for (uint32_t i = 0; i < blocks; i += lanes_) {
      for (uint32_t block = i; block < std::min(i + lanes_, blocks) && model_.has(kStill); ++block) {
        const bool above = block - i < blocks_across_ && block >= blocks_across_ && still_[block - blocks_across_];
        still_[block] = given_ != nullptr ? stays_as_given(block, 0, 16) : dice_.chance(2);
        events_.push_back({block - i, nullptr, still_[block], 0, model_.still[above]});
      }
      if (model_.has(kRows)) put_rows(i, std::min(i + lanes_, blocks));
      for (size_t e = 0; e < model_.channels.size(); ++e) {
        const TokenChannel& channel = model_.channels[e];
        if (channel.classes == 1) continue;
        for (uint32_t block = i; block < std::min(i + lanes_, blocks); ++block) {
          if (still_[block]) continue;
          const uint32_t context = channel.contexts[e == 0 ? 0 : classes_[e - 1][block]];
          const SlotTable& table = model_.class_tables[channel.first_class_table + context];
          classes_[e][block] = put_symbol(block - i, table, table.any_symbol(dice_));
        }
      }
    }
  }

  // The rows of blocks from `begin` to `end`, which are decoded side by side.
  void put_rows(uint32_t begin, uint32_t end) {
    for (uint32_t k = 0; k < 16; ++k) {
      std::vector<std::pair<uint32_t, bool>> decoded;
      for (uint32_t block = begin; block < end; ++block) {
        if (still_[block] || block / blocks_across_ * 16 + k >= height_) continue;
        const bool stays = given_ != nullptr ? stays_as_given(block, k, 1) && !dice_.chance(4) : dice_.chance(2);
        events_.push_back({block - begin, nullptr, stays, 0, model_.rows[row_context(block, k)]});
        decoded.emplace_back(block, stays);
      }
      for (const auto& [block, stays] : decoded) moving_rows_[size_t{16} * block + k] = !stays;
    }
  }
  uint32_t row_context(uint32_t block, uint32_t k) const {
    const int64_t row = int64_t{block / blocks_across_} * 16 + k, column = block % blocks_across_;
    const auto moves = [&](int64_t at_column, int64_t at_row) {
      if (at_row < 0 || at_column < 0 || at_column >= blocks_across_) return false;
      const auto of = static_cast<size_t>(at_row / 16 * blocks_across_ + at_column);
      return bool{moving_rows_[of * 16 + static_cast<size_t>(at_row % 16)]};
    };
    return !moves(column, row - 1) + 2u * !moves(column, row - 2) + 4u * !moves(column + 1, row - 1) +
           8u * !moves(column - 1, row - 1);
  }
  bool is_still(const Place& place) const {
    const size_t block = place.y / 16 * blocks_across_ + place.x / 16;
    return still_[block] || (model_.has(kRows) && !moving_rows_[16 * block + place.y % 16]);
  }

  void put_step(const std::vector<Place>& active, uint32_t step) {
    std::vector<Place> escaped;
    std::vector<Coded> coded;
    for (const Place& place : active) {
      hold(place);
      if (is_still(place)) {
        stay(place);
        continue;
      }
      coded.push_back({place, model_.has(kFollow) ? source_of(place, step) : FollowedPixels::Source{}});
      if (!put_match(place, coded.back().source)) escaped.push_back(place);
    }
    for (uint32_t e = 0; e < engine_channels_; ++e) {
      std::vector<Event> raw;
      for (const Place& place : escaped) put_value(e, place, raw);
      events_.insert(events_.end(), raw.begin(), raw.end());
    }
    for (const Coded& pixel : coded) keep(pixel);
    if (!model_.has(kFollow)) return;
    for (const Place& place : active) {
      std::vector<uint32_t> values(engine_channels_);
      for (uint32_t e = 0; e < engine_channels_; ++e) values[e] = values_[index(e, place.x, place.y)];
      follows_.pass(place.x, place.y, values);
    }
  }

  // What a pixel follows.
  FollowedPixels::Source source_of(const Place& place, uint32_t step) const {
    constexpr Neighbour kAround[] = {W, N, NW, NE};
    FollowedPixels::Around around(engine_channels_);
    for (uint32_t e = 0; e < engine_channels_; ++e) {
      for (uint32_t i = 0; i < 4; ++i) around[e][i] = value(e, kAround[i], place);
    }
    return follows_.source_of(place.x, place.y, step, around,
                              [&](uint32_t e, uint32_t x, uint32_t y) { return values_[index(e, x, y)]; });
  }
  // After its step: what a pixel keeps, and what becomes of the entries that it asked.
  void keep(const Coded& pixel) {
    const auto& [place, source] = pixel;
    bool equals = source.at.has_value();
    for (uint32_t e = 0; e < engine_channels_ && equals; ++e) {
      equals = values_[index(e, place.x, place.y)] == followed(source, e);
    }
    follows_.keep(place.x, place.y, source, equals);
  }
  uint32_t followed(const FollowedPixels::Source& source, uint32_t e) const {
    return values_[index(e, source.at->x, source.at->y)];
  }

  // What the pixels of still blocks and rows are: W where N is as NW, else N.
  template <class ValueOf>
  Neighbour staying(const ValueOf& value_of) const {
    for (uint32_t e = 0; e < engine_channels_; ++e) {
      if (value_of(e, N) != value_of(e, NW)) return N;
    }
    return W;
  }
  void stay(const Place& place) {
    const Neighbour from = staying([&](uint32_t e, Neighbour which) { return value(e, which, place); });
    for (uint32_t e = 0; e < engine_channels_; ++e) values_[index(e, place.x, place.y)] = value(e, from, place);
  }
  // `rows` rows of a block from row `first` on.
  bool stays_as_given(uint32_t block, uint32_t first, uint32_t rows) const {
    const uint32_t left = block % blocks_across_ * 16, top = block / blocks_across_ * 16 + first;
    for (uint32_t y = top; y < std::min(top + rows, height_); ++y) {
      for (uint32_t x = left; x < std::min(left + 16, width_); ++x) {
        const auto value_of = [&](uint32_t e, Neighbour which) {
          const std::optional<Place> at = find(which, x, y);
          return at ? given(e, *at) : 0;
        };
        const Neighbour from = staying(value_of);
        for (uint32_t e = 0; e < engine_channels_; ++e) {
          if (value_of(e, from) != given(e, {0, x, y})) return false;
        }
      }
    }
    return true;
  }

  void hold(const Place& place) {
    if (!model_.has(kHole)) return;
    if (place.x == 0) held_[place.lane] = 0;
    const uint32_t w = value(0, W, place), n = value(0, N, place);
    if (w != model_.section.hole) {
      held_[place.lane] = w;
    } else if (n != model_.section.hole) {
      held_[place.lane] = n;
    }
  }

  // Whether the pixel is what a match says.
  bool put_match(const Place& place, const FollowedPixels::Source& source) {
    if (!model_.has(kMatch)) return false;
    uint32_t octave = source.number;
    if (!model_.has(kLiteral | kFollow)) octave = log2(activity(0, place)) - 3;
    const std::vector<uint32_t>& row = model_.match_rows[model_.pattern_rows[pattern(place)]];
    const SlotTable& table = model_.tables[row[std::min<size_t>(octave, row.size() - 1)]];
    uint32_t symbol = table.any_symbol(dice_);
    if (given_ != nullptr) {
      const uint32_t first = dice_.roll(54);
      for (uint32_t i = 0; i < 54; ++i) {
        symbol = (first + i) % 54;
        if (table.frequencies[symbol] > 0 && matches_given(symbol, place, source)) break;
      }
    }
    put_symbol(place.lane, table, symbol);
    if (escapes(symbol, source)) return false;
    for (uint32_t e = 0; e < engine_channels_; ++e) {
      values_[index(e, place.x, place.y)] = matched(symbol, e, place, source);
    }
    return true;
  }
  bool escapes(uint32_t symbol, const FollowedPixels::Source& source) const {
    return symbol > 3 && (symbol != 5 || !model_.has(kHole)) && (symbol != 6 || !source.at);
  }
  uint32_t matched(uint32_t symbol, uint32_t e, const Place& place, const FollowedPixels::Source& source) const {
    if (symbol == 6) return followed(source, e);
    constexpr Neighbour kRepeated[] = {W, N, NE, NW};
    return symbol == 5 ? model_.section.hole : value(e, kRepeated[symbol], place);
  }
  bool matches_given(uint32_t symbol, const Place& place, const FollowedPixels::Source& source) const {
    if (escapes(symbol, source)) return true;
    for (uint32_t e = 0; e < engine_channels_; ++e) {
      if (matched(symbol, e, place, source) != given(e, place)) return false;
    }
    return true;
  }

  // The token of a value; its raw bits go to `raw`.
  void put_value(uint32_t e, const Place& place, std::vector<Event>& raw) {
    const uint64_t size = uint64_t{1} << model_.widths[e];
    int64_t p = 0;
    bool up = false;
    const SlotTable& table = model_.tables[model_.has(kLiteral) ? literal_table(place) : predict(e, place, p, up)];
    uint32_t z = 0;
    if (given_ != nullptr) {
      z = given(e, place);
      if (!model_.has(kLiteral)) {
        const uint64_t away = static_cast<uint64_t>(up ? z - p : p - z) % size;  // in the direction of odd symbols
        z = static_cast<uint32_t>(away == 0 ? 0 : away <= size / 2 ? 2 * away - 1 : 2 * (size - away));
      }
    }
    uint32_t token = given_ != nullptr ? token_of(z) : table.any_symbol(dice_);
    put_symbol(place.lane, table, token);
    if (token >= 32) {
      const uint32_t bits = (token - 32) / 2 + 4, leading = (2 + token % 2) << bits;
      if (given_ == nullptr) z = leading + dice_.roll(uint64_t{1} << bits);
      raw.push_back({place.lane, nullptr, z - leading, bits, 0});
    } else {
      z = token;
    }
    int64_t result = z;
    if (!model_.has(kLiteral)) {
      const int64_t m = (z + 1) / 2;
      result = (z % 2 == 1) == up ? p + m : p - m;
    }
    const uint64_t decoded = static_cast<uint64_t>(result) % size;
    values_[index(e, place.x, place.y)] = static_cast<uint32_t>(decoded);
    errors_[index(e, place.x, place.y)] =
        static_cast<int32_t>(std::clamp<int64_t>(static_cast<int64_t>(decoded) - p, -32767, 32767));
  }
  static uint32_t token_of(uint32_t z) {
    if (z < 32) return z;
    const uint32_t bits = log2(z) - 1;
    return 32 + 2 * (bits - 4) + (z >> bits) % 2;
  }
  uint32_t literal_table(const Place& place) const {
    return model_.literal[std::min<size_t>(value(0, W, place), model_.literal.size() - 1)];
  }

  // The prediction, and the table of the token.
  uint32_t predict(uint32_t e, const Place& place, int64_t& p, bool& up) const {
    const TokenChannel& channel = model_.channels[e];
    const uint32_t of_class = classes_[e][place.y / 16 * blocks_across_ + place.x / 16];
    int64_t a = 32;
    for (uint32_t tap = 0; tap < 24; ++tap) {
      const int64_t weight = channel.weight(tap, of_class);
      if (weight != 0) a += weight * tap_value(e, tap, place);
    }
    const int64_t maximum = (int64_t{1} << model_.widths[e]) - 1;
    p = std::clamp<int64_t>(a >> 6, 0, maximum);
    up = a - 64 * p >= 32;

    const uint32_t distance = static_cast<uint32_t>(up ? maximum - p : p);
    const uint32_t zone = distance == 0 ? 0 : std::min(log2(distance) + 1, 15u);
    uint32_t signs = 0;
    for (uint32_t i = 0; i < 4; ++i) signs |= uint32_t{error(e, static_cast<Neighbour>(i), place) < 0} << i;
    signs |= uint32_t{held(e, W, place) >= p} << 4 | uint32_t{held(e, N, place) >= p} << 5;
    if (up) signs ^= 63;
    const uint32_t amount = activity(e, place), octave = log2(amount);
    const size_t level = 4 * (octave - 3) + (amount >> (octave - 2)) % 4;
    const Rows& rows = channel.rows;
    const std::vector<uint32_t>& row = rows.tables[rows.zones[zone] * rows.sign_groups + rows.signs[signs]];
    return row[std::min(level, row.size() - 1)];
  }

  int64_t tap_value(uint32_t e, uint32_t tap, const Place& place) const {
    if (tap < 8) return held(e, static_cast<Neighbour>(tap), place);
    if (tap < 14) return error(e, static_cast<Neighbour>(tap - 8), place);
    if (tap < 16) return errors_[index(e - (tap - 13), place.x, place.y)];
    const uint32_t earlier = e - (tap < 20 ? 1 : 2);
    if (tap % 4 == 3) return values_[index(earlier, place.x, place.y)];
    return held(earlier, static_cast<Neighbour>(tap % 4), place);
  }

  uint32_t activity(uint32_t e, const Place& place) const {
    const std::vector<uint32_t>& weights = model_.channels[e].activity;
    const auto between = [&](Neighbour a, Neighbour b) {
      return std::min<int64_t>(std::abs(held(e, a, place) - held(e, b, place)), 32767);
    };
    int64_t sum = 8 + weights[6] * between(W, NW) + weights[7] * between(N, NW) + weights[8] * between(N, NE);
    for (uint32_t i = 0; i < 6; ++i) sum += weights[i] * std::abs(error(e, static_cast<Neighbour>(i), place));
    for (uint32_t i = 9; i < weights.size(); ++i) {
      sum += weights[i] * std::abs(int64_t{errors_[index(e - (i - 8), place.x, place.y)]});
    }
    return static_cast<uint32_t>(std::min<int64_t>(sum, (1 << 24) - 1));
  }

  uint32_t pattern(const Place& place) const {
    constexpr Neighbour kPairs[8][2] = {{W, N}, {N, NE}, {N, NW}, {W, NW}, {WW, W}, {NN, N}, {NNE, NE}, {NWW, NW}};
    uint32_t result = 0, bit = 0;
    for (uint32_t i = 0; i < 8; ++i) {
      if ((model_.mask >> i & 1) == 0) continue;
      bool equal = true;
      for (uint32_t e = 0; e < engine_channels_; ++e) {
        equal = equal && value(e, kPairs[i][0], place) == value(e, kPairs[i][1], place);
      }
      result |= uint32_t{equal} << bit++;
    }
    return result;
  }

  // The place of a neighbour; nothing where there is none, and its value and error are 0.
  std::optional<Place> find(Neighbour which, uint32_t x, uint32_t y) const {
    const bool is_last = x + 1 == width_;
    if (y == 0) {
      const uint32_t back = which == WW ? 2 : 1;
      if (x < back) return {};
      return Place{0, x - back, 0};
    }
    if (x == 0 && (which == W || which == NW || which == WW || which == NWW)) return find(N, x, y);
    switch (which) {
      case W: return Place{0, x - 1, y};
      case N: return Place{0, x, y - 1};
      case NW: return Place{0, x - 1, y - 1};
      case NE: return is_last ? find(N, x, y) : Place{0, x + 1, y - 1};
      case WW: return x == 1 ? find(W, 0, y) : Place{0, x - 2, y};
      case NN: return y == 1 ? find(N, x, y) : Place{0, x, y - 2};
      case NNE: return y == 1 ? find(NE, x, y) : is_last ? find(NN, x, y) : Place{0, x + 1, y - 2};
      case NWW: return x == 1 ? find(NW, x, y) : Place{0, x - 2, y - 1};
    }
    return {};
  }
  uint32_t value(uint32_t e, Neighbour which, const Place& place) const {
    const std::optional<Place> at = find(which, place.x, place.y);
    return at ? values_[index(e, at->x, at->y)] : 0;
  }
  int64_t error(uint32_t e, Neighbour which, const Place& place) const {
    const std::optional<Place> at = find(which, place.x, place.y);
    return at ? errors_[index(e, at->x, at->y)] : 0;
  }
  // What stands for the value of a neighbour, which may be the hole.
  int64_t held(uint32_t e, Neighbour which, const Place& place) const {
    const uint32_t found = value(e, which, place);
    return model_.has(kHole) && found == model_.section.hole ? held_[place.lane] : found;
  }

  uint32_t put_symbol(uint32_t lane, const SlotTable& table, uint32_t symbol) {
    events_.push_back({lane, &table, symbol, 0, 0});
    return symbol;
  }

  std::vector<uint32_t> values_of(const uint32_t* samples) const {
    const uint32_t channels = model_.section.channels;
    if (model_.has(kColours)) {
      const std::vector<uint32_t> colour(samples, samples + channels);
      const auto found = std::find(model_.listed.begin(), model_.listed.end(), colour);
      return {static_cast<uint32_t>(found - model_.listed.begin())};
    }
    std::vector<uint32_t> values(samples, samples + channels);
    for (uint32_t c = 0; model_.has(kRanks) && c < channels; ++c) {
      const auto& listed = model_.listed[c];
      values[c] = static_cast<uint32_t>(std::lower_bound(listed.begin(), listed.end(), samples[c]) - listed.begin());
    }
    return values;
  }
  uint32_t given(uint32_t e, const Place& place) const {
    return (*given_)[(size_t{place.y} * width_ + place.x) * engine_channels_ + e];
  }

  static uint32_t log2(uint32_t number) { return 31 - static_cast<uint32_t>(__builtin_clz(number)); }
  size_t index(uint32_t e, uint32_t x, uint32_t y) const { return (size_t{e} * height_ + y) * width_ + x; }

  Dice& dice_;
  const TokenModel& model_;
  const uint32_t width_, height_, lanes_;
  const size_t engine_channels_;
  const uint32_t blocks_across_;
  std::vector<std::vector<uint32_t>> classes_;
  std::vector<bool> still_;        // of each block
  std::vector<bool> moving_rows_;  // of each row of each block: decoded, and not still
  std::vector<uint32_t> values_;
  std::vector<int32_t> errors_;
  std::vector<uint32_t> held_;
  FollowedPixels follows_;
  std::vector<Event> events_;
  uint32_t ending_ = 0;
  const std::vector<uint32_t>* given_ = nullptr;
};

// A file of a token model, and the samples that decoding it gives, as l3 hands them out.
struct TokenFile {
  Parts parts;
  TokenModel model;
  Bytes pixels;
};

// Tiles of any numbers of lanes, all of them dense or a few of them constant.
inline TokenFile any_token_file(Dice& dice, drawing::Size size, drawing::Type type, TokenModel model,
                                uint32_t tile_width = 32, uint32_t tile_height = 32) {
  TokenFile file{any_parts(dice, size, type, tile_width, tile_height), std::move(model), {}};
  const uint32_t channels = file.model.section.channels, sample_bytes = type.bits > 8 ? 2 : 1;
  file.parts.sections.push_back({L3_SECTION_MODEL, file.model.section.bytes()});
  file.pixels.resize(size_t{size.width} * size.height * channels * sample_bytes);
  size_t i = 0;
  for (uint32_t top = 0; top < size.height; top += tile_height) {
    for (uint32_t left = 0; left < size.width; left += tile_width, ++i) {
      const uint32_t width = std::min(tile_width, size.width - left), height = std::min(tile_height, size.height - top);
      TilePart& tile = file.parts.tiles[i];
      std::vector<uint32_t> samples;
      if (tile.method == 0) {
        for (uint32_t k = 0; k < width * height; ++k) {
          samples.insert(samples.end(), tile.value.begin(), tile.value.begin() + channels);
        }
      } else {
        TokenTileWriter writer(dice, file.model, width, height, dice.roll(6));
        tile = {3, 0, {}, writer.random()};
        tile.parameters = writer.parameters();
        samples = writer.samples();
      }
      for (uint32_t y = 0; y < height; ++y) {
        for (uint32_t k = 0; k < width * channels; ++k) {
          const size_t at = (size_t{top + y} * size.width + left) * channels + k;
          const uint16_t sample = static_cast<uint16_t>(samples[size_t{y} * width * channels + k]);
          if (sample_bytes == 1) {
            file.pixels[at] = static_cast<uint8_t>(sample);
          } else {
            std::memcpy(&file.pixels[2 * at], &sample, 2);
          }
        }
      }
    }
  }
  return file;
}

}  // namespace by_hand
