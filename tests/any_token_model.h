// Makes valid token models that no encoder would make, with random flags, listings, predictors, rows and tables. It
// follows section 14 of spec/format.md, not codec/. any_token_tile.h codes tiles with them.
#pragma once

#include "any_model.h"

namespace by_hand {

// Flags.
constexpr uint32_t kMatch = 1, kLiteral = 2, kHole = 4, kRanks = 8, kColours = 16, kStill = 32, kFollow = 64,
                   kRows = 128;

// The section of a token model: its head and its parts, for tests to spoil.
struct TokenSection {
  uint8_t channels = 1, bits = 8, flags = 0;
  uint16_t hole = 0;
  std::array<uint8_t, 4> classes{1, 0, 0, 0};
  std::vector<Bytes> engine;  // the part of each engine channel
  Bytes match;
  std::vector<Bytes> tables, class_tables;
  Bytes values;

  size_t count() const { return engine.size() + 2 + tables.size() + class_tables.size(); }
  // The parts in their order: engine channels, match, tables, class tables, values.
  Bytes& part(size_t i) {
    if (i < engine.size()) return engine[i];
    i -= engine.size();
    if (i == 0) return match;
    --i;
    if (i < tables.size()) return tables[i];
    i -= tables.size();
    return i < class_tables.size() ? class_tables[i] : values;
  }
  const Bytes& part(size_t i) const { return const_cast<TokenSection*>(this)->part(i); }

  // Where the size of a part stands, and where a part begins.
  size_t size_at(size_t i) const { return 12 + (i <= engine.size() ? 2 * i : i + engine.size() + 1); }
  size_t begin(size_t i) const {
    size_t at = size_at(count() - 1);
    for (size_t k = 0; k < i; ++k) at += part(k).size();
    return at;
  }

  Bytes bytes() const {
    Bytes out(begin(0));
    out[0] = 1;
    out[1] = channels;
    out[2] = bits;
    out[3] = flags;
    put(&out[4], 2, hole);
    out[6] = static_cast<uint8_t>(tables.size());
    out[7] = static_cast<uint8_t>(class_tables.size());
    std::copy(classes.begin(), classes.end(), &out[8]);
    for (size_t i = 0; i + 1 < count(); ++i) put(&out[size_at(i)], i <= engine.size() ? 2 : 1, part(i).size());
    for (size_t i = 0; i < count(); ++i) out.insert(out.end(), part(i).begin(), part(i).end());
    return out;
  }
};

// Frequencies, and of each symbol its slots, in the order of their numbers.
struct SlotTable {
  std::vector<uint32_t> frequencies;
  std::vector<std::vector<uint32_t>> slots;

  SlotTable() = default;
  // Section 12.4, word for word.
  SlotTable(std::vector<uint32_t> f, uint32_t buckets) : frequencies(std::move(f)), slots(buckets) {
    const uint32_t per_bucket = 4096 / buckets;
    frequencies.resize(buckets);
    std::vector<uint32_t> left = frequencies, own(buckets, per_bucket), other(buckets), first(buckets), small, large;
    for (uint32_t z = 0; z < buckets; ++z) (frequencies[z] < per_bucket ? small : large).push_back(z);
    size_t i = 0, j = 0;
    while (i < small.size() || (j + 1 < large.size() && left[large[j]] < per_bucket)) {
      const uint32_t b = large[j];
      uint32_t a = b, q = b;
      if (left[b] < per_bucket) {
        a = large[++j];
        own[q] = left[b];
      } else {
        q = small[i++];
        own[q] = frequencies[q];
      }
      other[q] = a;
      left[a] -= per_bucket - own[q];
      first[q] = left[a];
    }
    for (uint32_t z = 0; z < buckets; ++z) slots[z].resize(frequencies[z]);
    for (uint32_t v = 0; v < 4096; ++v) {
      const uint32_t q = v / per_bucket, k = v % per_bucket;
      if (k < own[q]) {
        slots[q][k] = v;
      } else {
        slots[other[q]][first[q] + k - own[q]] = v;
      }
    }
  }
  uint32_t any_symbol(Dice& dice) const {
    uint32_t slot = dice.roll(4096), symbol = 0;
    while (slot >= frequencies[symbol]) slot -= frequencies[symbol++];
    return symbol;
  }
};

struct TokenChannel {
  Taps taps;
  std::vector<uint32_t> activity;
  Rows rows;
  uint32_t classes = 1, class_tables = 0, first_class_table = 0;
  std::vector<uint32_t> contexts;

  int weight(uint32_t tap, uint32_t of_class) const {
    if (tap == 0) return first_weight(taps, 0, 8, 64, of_class);
    if (tap == 16 || tap == 20) return first_weight(taps, tap, 4, 0, of_class);
    return taps[tap].weights.empty() ? 0 : taps[tap].weights[of_class];
  }
};

struct TokenModel {
  TokenSection section;
  std::vector<uint32_t> widths;        // `D` of each engine channel
  std::vector<TokenChannel> channels;  // empty with the flag literal
  std::vector<uint32_t> literal;       // the table of W = 0, 1, ...
  std::array<uint32_t, 2> still{};     // the frequencies of still blocks
  std::array<uint32_t, 16> rows{};     // those of still rows
  uint32_t mask = 0;
  std::vector<uint32_t> pattern_rows;
  std::vector<std::vector<uint32_t>> match_rows;
  std::vector<SlotTable> tables, class_tables;
  std::vector<std::vector<uint32_t>> listed;  // ranks: of each channel; colours: the samples of each colour

  bool has(uint32_t flag) const { return (section.flags & flag) != 0; }
  // What the values of a pixel stand for.
  std::vector<uint32_t> samples(const std::vector<uint32_t>& values) const {
    if (has(kColours)) {
      return values[0] < listed.size() ? listed[values[0]] : std::vector<uint32_t>(section.channels);
    }
    std::vector<uint32_t> result = values;
    for (size_t c = 0; has(kRanks) && c < result.size(); ++c) {
      result[c] = values[c] < listed[c].size() ? listed[c][values[c]] : 0;
    }
    return result;
  }
};

class TokenModelMaker {
 public:
  TokenModelMaker(Dice& dice, uint32_t channels, uint32_t bits, bool codes_all) : dice_(dice), codes_all_(codes_all) {
    model_.section.channels = static_cast<uint8_t>(channels);
    model_.section.bits = static_cast<uint8_t>(bits);
  }

  // A model with these flags, which fit each other.
  TokenModel make(uint32_t flags) {
    TokenSection& section = model_.section;
    section.flags = static_cast<uint8_t>(flags);
    const uint32_t channels = section.channels;
    const uint32_t engine_channels = model_.has(kColours) ? 1 : channels;
    if (model_.has(kRanks)) {
      put_ranks();
    } else if (model_.has(kColours)) {
      put_colours();
    } else {
      model_.widths.assign(channels, section.bits);
    }
    if (model_.has(kHole)) {
      section.hole = static_cast<uint16_t>(dice_.roll(uint64_t{1} << (dice_.chance(2) ? 1 : model_.widths[0])));
    }
    tables_ = dice_.chance(5) ? 64 : 1 + dice_.roll(8);
    for (uint32_t e = 0; e < engine_channels; ++e) {
      const uint32_t classes = model_.has(kLiteral) || dice_.chance(4) ? 1 : dice_.chance(6) ? 32 : 1 + dice_.roll(6);
      section.classes[e] = static_cast<uint8_t>(classes);
    }
    if (model_.has(kLiteral)) {
      BitString bits;
      const uint32_t last = put_below(bits, dice_, 256, 8);
      model_.literal = put_names(bits, dice_, last, tables_, 6);
      section.engine.push_back(bits.bytes());
    } else {
      for (uint32_t e = 0; e < engine_channels; ++e) put_channel(e);
    }
    if (model_.has(kMatch)) put_match();
    put_tables();
    return std::move(model_);
  }

 private:
  void put_ranks() {
    BitString bits;
    const uint32_t values = 1u << model_.section.bits, channels = model_.section.channels;
    for (uint32_t c = 0; c < channels; ++c) {
      const uint32_t maximum = std::min(values, dice_.chance(20) ? 32768 / channels : 1 + dice_.roll(200));
      const uint32_t wanted = dice_.chance(3) ? maximum : 1 + dice_.roll(maximum);
      // So many of all values, in order.
      std::vector<uint32_t> listed;
      for (uint32_t v = 0; v < values; ++v) {
        if (dice_.roll(values - v) < wanted - listed.size()) listed.push_back(v);
      }
      uint32_t minimum = 65535;
      for (size_t i = 1; i < listed.size(); ++i) minimum = std::min(minimum, listed[i] - listed[i - 1]);
      if (dice_.chance(4)) minimum = 1 + dice_.roll(minimum);
      bits.put(listed.size(), 16);
      bits.put(listed[0], 16);
      bits.put(minimum, 16);
      for (size_t i = 1; i < listed.size(); i += 32) {
        const size_t end = std::min(i + 32, listed.size());
        uint32_t width = 0;
        for (size_t k = i; k < end; ++k) {
          while ((listed[k] - listed[k - 1] - minimum) >> width != 0) ++width;
        }
        if (dice_.chance(4)) width += dice_.roll(17 - width);
        bits.put(width, 5);
        for (size_t k = i; k < end; ++k) bits.put(listed[k] - listed[k - 1] - minimum, width);
      }
      model_.widths.push_back(width_of(listed.size()));
      model_.listed.push_back(std::move(listed));
    }
    model_.section.values = bits.bytes();
  }

  void put_colours() {
    BitString bits;
    const uint32_t channels = model_.section.channels;
    const uint32_t count = dice_.chance(20) ? 32768 / channels : 1 + dice_.roll(dice_.chance(3) ? 600 : 20);
    bits.put(count, 16);
    for (uint32_t i = 0; i < count; ++i) {
      model_.listed.emplace_back();
      for (uint32_t c = 0; c < channels; ++c) {
        model_.listed.back().push_back(put_below(bits, dice_, 1u << model_.section.bits, model_.section.bits));
      }
    }
    model_.widths.push_back(width_of(count));
    model_.section.values = bits.bytes();
  }

  static uint32_t width_of(size_t count) {
    uint32_t width = 1;
    while ((count - 1) >> width != 0) ++width;
    return width;
  }

  void put_channel(uint32_t e) {
    BitString bits;
    TokenChannel channel;
    channel.classes = model_.section.classes[e];
    channel.taps = put_weights(bits, dice_, e, channel.classes, 256);
    channel.activity = put_activity_weights(bits, dice_, e, 1000);
    channel.rows = put_rows(bits, dice_, tables_, 84, 7, 6);
    if (channel.classes > 1) {
      const uint32_t before = e == 0 ? 1 : model_.section.classes[e - 1];
      channel.first_class_table = class_tables_;
      channel.contexts = put_class_contexts(bits, dice_, e, before, channel.class_tables);
      class_tables_ += channel.class_tables;
    }
    model_.channels.push_back(std::move(channel));
    model_.section.engine.push_back(bits.bytes());
  }

  void put_match() {
    BitString bits;
    const auto put_frequency = [&](uint32_t& frequency) {
      bits.put(frequency = dice_.chance(4) ? 4095 : 1 + dice_.roll(4095), 12);
    };
    if (model_.has(kStill)) std::for_each(model_.still.begin(), model_.still.end(), put_frequency);
    if (model_.has(kRows)) std::for_each(model_.rows.begin(), model_.rows.end(), put_frequency);
    model_.mask = dice_.chance(3) ? 0xFF : dice_.byte() & dice_.byte();
    bits.put(model_.mask, 8);
    uint32_t greatest = 0;
    std::vector<uint32_t>& rows = model_.pattern_rows;
    rows.push_back(0);
    const uint32_t news = 1 + dice_.roll(20);  // one pattern in so many has a new row
    for (uint32_t patterns = 1u << __builtin_popcount(model_.mask); rows.size() < patterns;) {
      if (greatest < 31 && dice_.chance(news)) {
        bits.put(1, 2);
        rows.push_back(++greatest);
      } else if (dice_.chance(2)) {
        bits.put(3, 2);
        rows.push_back(put_below(bits, dice_, greatest + 1, 5));
      } else {
        bits.put(0, 1);
        rows.push_back(rows.back());
      }
    }
    for (uint32_t row = 0; row <= greatest; ++row) {
      const uint32_t last = put_below(bits, dice_, 21, 5);
      model_.match_rows.push_back(put_names(bits, dice_, last, tables_, 6));
    }
    model_.section.match = bits.bytes();
  }

  void put_tables() {
    std::vector<uint32_t> frequencies;
    for (uint32_t t = 0; t < tables_; ++t) {
      const uint32_t last = codes_all_ ? 53 : dice_.chance(2) ? 1 + dice_.roll(12) : 1 + dice_.roll(53);
      model_.section.tables.push_back(any_table(dice_, last, codes_all_, frequencies));
      model_.tables.emplace_back(frequencies, 64);
    }
    for (const TokenChannel& channel : model_.channels) {
      for (uint32_t t = 0; t < channel.class_tables; ++t) {
        const uint32_t last = codes_all_ ? channel.classes - 1 : 1 + dice_.roll(channel.classes - 1);
        model_.section.class_tables.push_back(any_table(dice_, last, codes_all_, frequencies));
        model_.class_tables.emplace_back(frequencies, 32);
      }
    }
  }

  Dice& dice_;
  const bool codes_all_;
  uint32_t tables_ = 1, class_tables_ = 0;
  TokenModel model_;
};

// Flags that fit each other.
inline uint32_t any_token_flags(Dice& dice, uint32_t channels) {
  const uint32_t listing = dice.chance(2) ? 0 : dice.chance(2) ? kRanks : kColours;
  const bool has_one = channels == 1 || listing == kColours;
  const uint32_t modes[] = {0, kMatch, kMatch | kHole, kLiteral, kMatch | kLiteral};
  const uint32_t mode = modes[dice.roll(has_one ? 5 : 2)];
  uint32_t flags = listing | mode;
  if ((mode & kMatch) != 0 && dice.chance(2)) flags |= dice.chance(2) ? kStill : kStill | kRows;
  if ((mode & kMatch) != 0 && dice.chance(3)) flags |= kFollow;
  return flags;
}

// A valid model. Where it codes all, every table has all symbols.
inline TokenModel any_token_model(Dice& dice, uint32_t channels, uint32_t bits, uint32_t flags, bool codes_all = true) {
  return TokenModelMaker(dice, channels, bits, codes_all).make(flags);
}
inline TokenModel any_token_model(Dice& dice, uint32_t channels, uint32_t bits, bool codes_all = true) {
  return any_token_model(dice, channels, bits, any_token_flags(dice, channels), codes_all);
}

// Flags of a token model, with what they add to its match or take away from it, or one of its frequencies.
inline void mutate_token_flags(Dice& dice, Bytes& model) {
  constexpr size_t kStillBytes = 3, kRowsBytes = 24, kHead = 12;
  if (model.size() < kHead + 2) return;
  uint8_t& flags = model[3];
  const size_t engine_channels = (flags & kColours) != 0 ? 1 : std::min<size_t>(model[1], 4);
  const size_t size_at = kHead + 2 * engine_channels;
  size_t begin = size_at + 2 + model[6] + model[7];
  if (begin > model.size()) return;
  for (size_t e = 0; e < engine_channels; ++e) begin += get(&model[kHead + 2 * e], 2);
  const size_t size = get(&model[size_at], 2), rows_at = begin + kStillBytes;
  const bool has_rows = (flags & kRows) != 0;
  const size_t needed = kStillBytes + (has_rows ? kRowsBytes : 0);
  const uint32_t die = dice.roll(3);
  if (die == 0 || (flags & kStill) == 0 || size < needed || begin + size > model.size()) {
    flags ^= kFollow;
  } else if (die == 1 && has_rows) {
    const uint32_t frequency = dice.roll(16) * 12;
    uint8_t& byte = model[rows_at + frequency / 8 + dice.roll(2)];
    byte = static_cast<uint8_t>(dice.chance(3) ? 0 : dice.roll(256));
  } else {
    const auto at = model.begin() + static_cast<ptrdiff_t>(rows_at);
    put(&model[size_at], 2, has_rows ? size - kRowsBytes : size + kRowsBytes);
    flags ^= kRows;
    if (has_rows) {
      model.erase(at, at + kRowsBytes);
    } else {
      const Bytes frequencies = dice.bytes(kRowsBytes);
      model.insert(at, frequencies.begin(), frequencies.end());
    }
  }
}

}  // namespace by_hand
