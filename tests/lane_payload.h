// Codes what the lanes of a tile decode, from the last event to the first: the payload of a dense tile. It follows
// section 13 of spec/format.md, not codec/.
#pragma once

#include "any_token_model.h"

namespace by_hand {

// A symbol of a table; without one raw bits, or where there are none whether a block is still.
struct LaneEvent {
  uint32_t lane;
  const SlotTable* table;
  uint32_t value;  // the symbol, or the bits
  uint32_t bits;
  uint32_t frequency;  // of still blocks and rows
  uint32_t step = 0;   // the one after it, where it is in one
};

class LanePayload {
 public:
  LanePayload(const std::vector<LaneEvent>& events, uint32_t width, uint32_t height, uint32_t lanes, uint32_t ending)
      : events_(events), width_(width), height_(height), lanes_(lanes), ending_(ending) {}

  // False where a state does not hold what is in the ending.
  bool write(Bytes& out) const {
    const std::vector<uint32_t> starts = ending_starts();
    const auto is_in_ending = [&](const LaneEvent& event) { return event.step > starts[event.lane]; };
    std::vector<uint64_t> states(lanes_, 65536);
    for (uint32_t lane = 0; lane < lanes_ && ending_ > 0; ++lane) {
      for (uint64_t last = 1; last <= 65536; last *= 2) {
        uint64_t& x = states[lane] = last;
        for (size_t i = events_.size(); i-- > 0 && x >> 32 == 0;) {
          if (events_[i].lane == lane && is_in_ending(events_[i])) code(events_[i], x, false);
        }
        if (x >= 65536) break;
      }
      if (states[lane] >> 32 != 0) return false;
    }
    std::vector<uint16_t> words;
    for (size_t i = events_.size(); i-- > 0;) {
      if (is_in_ending(events_[i])) continue;
      if (const auto word = code(events_[i], states[events_[i].lane], true)) words.push_back(*word);
    }
    out.assign(4 * lanes_ + 2 * words.size(), 0);
    for (uint32_t lane = 0; lane < lanes_; ++lane) put(&out[4 * lane], 4, states[lane]);
    for (size_t i = 0; i < words.size(); ++i) put(&out[4 * lanes_ + 2 * i], 2, words[words.size() - 1 - i]);
    out.resize(pad(out.size()));
    return true;
  }

 private:
  // The first step of each lane in the ending; lanes without one are as those of tiles without ending.
  std::vector<uint32_t> ending_starts() const {
    std::vector<uint32_t> starts(lanes_, UINT32_MAX);
    if (ending_ == 0) return starts;
    const uint32_t columns = ending_ > 20 ? 1024 : (ending_ % 2 == 0 ? 2 : 3) * (1u << ending_ / 2) / 2;
    const uint32_t rows = ending_ > 20 ? lanes_ << (ending_ - 20) : lanes_;
    for (uint32_t y = height_; y-- > 0 && y + rows >= height_;) {
      const uint32_t x = columns < width_ ? width_ - columns : 0;
      starts[y % lanes_] = std::max(width_, 2 * lanes_) * (y / lanes_) + x + 2 * (y % lanes_);
    }
    return starts;
  }

  // Codes what a decoder undoes. Gives the word that goes out, or none.
  static std::optional<uint16_t> code(const LaneEvent& event, uint64_t& x, bool may_give) {
    const uint64_t frequency = event.value != 0 ? event.frequency : 4096 - event.frequency;
    const uint64_t limit = event.table            ? uint64_t{event.table->frequencies[event.value]} << 20
                           : event.frequency != 0 ? frequency << 20
                                                  : uint64_t{1} << (32 - event.bits);
    std::optional<uint16_t> word;
    if (x >= limit && may_give) {
      word = static_cast<uint16_t>(x);
      x >>= 16;
    }
    if (event.table) {
      const std::vector<uint32_t>& slots = event.table->slots[event.value];
      x = (x / slots.size() << 12) + slots[x % slots.size()];
    } else if (event.frequency != 0) {
      x = (x / frequency << 12) + x % frequency + (event.value != 0 ? 0 : event.frequency);
    } else {
      x = x << event.bits | event.value;
    }
    return word;
  }

  const std::vector<LaneEvent>& events_;
  const uint32_t width_, height_, lanes_, ending_;
};

// The payload of a tile. Where a state does not hold what is in the ending, that becomes a shorter one.
inline Bytes payload_of(const std::vector<LaneEvent>& events, uint32_t width, uint32_t height, uint32_t lanes,
                        uint32_t& ending) {
  Bytes out;
  while (!LanePayload(events, width, height, lanes, ending).write(out)) --ending;
  return out;
}

}  // namespace by_hand
