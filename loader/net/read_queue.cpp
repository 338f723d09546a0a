#include "read_queue.h"

#include <algorithm>

namespace loader::net {
namespace {

constexpr uint64_t kLargestGap = 64 << 10;   // bytes that are read and dropped to save a request
constexpr uint64_t kLargestRange = 8 << 20;  // of a request for several reads

}  // namespace

void ReadQueue::add(Read& read, uint64_t owner) {
  const auto waiting = by_number_.emplace_hint(by_number_.end(), number_, Waiting{&read, owner, by_place_.end()});
  if (!read.from_end) {
    try {
      waiting->second.place = by_place_.emplace(Place{read.object, read.offset}, number_);
    } catch (...) {
      by_number_.erase(waiting);
      throw;
    }
  }
  ++number_;
}

void ReadQueue::remove(std::map<uint64_t, Waiting>::iterator waiting) {
  if (waiting->second.place != by_place_.end()) by_place_.erase(waiting->second.place);
  by_number_.erase(waiting);
}

std::vector<RangeJob::Piece> ReadQueue::take() {
  const auto oldest = by_number_.begin();
  const Read& read = *oldest->second.read;
  if (read.from_end) {
    std::vector<RangeJob::Piece> pieces{{oldest->second.read, oldest->second.owner, 0, 0, false}};
    remove(oldest);
    return pieces;
  }
  uint64_t first = read.offset, end = read.offset + read.size;
  auto begin = oldest->second.place, stop = std::next(begin);
  // Takes reads before and after it for as long as the gap and the whole are small.
  const auto fits = [&](const std::multimap<Place, uint64_t>::iterator& place) {
    if (place->first.first != read.object) return false;
    const Read& other = *by_number_.at(place->second).read;
    const uint64_t other_end = other.offset + other.size;
    const uint64_t new_first = std::min(first, other.offset), new_end = std::max(end, other_end);
    const bool is_near = other.offset <= end ? first <= other_end || first - other_end <= kLargestGap
                                             : other.offset - end <= kLargestGap;
    if (!is_near || new_end - new_first > kLargestRange) return false;
    first = new_first;
    end = new_end;
    return true;
  };
  while (stop != by_place_.end() && fits(stop)) ++stop;
  while (begin != by_place_.begin() && fits(std::prev(begin))) --begin;

  std::vector<RangeJob::Piece> pieces;
  pieces.reserve(static_cast<size_t>(std::distance(begin, stop)));
  while (begin != stop) {
    const auto waiting = by_number_.find(begin++->second);
    Read& piece = *waiting->second.read;
    pieces.push_back({&piece, waiting->second.owner, piece.offset, piece.offset + piece.size, false});
    remove(waiting);
  }
  return pieces;
}

Read* ReadQueue::take_of(uint64_t owner) {
  const auto waiting = std::find_if(by_number_.begin(), by_number_.end(), [owner](const auto& entry) {
    return owner == kNoOwner || entry.second.owner == owner;
  });
  if (waiting == by_number_.end()) return nullptr;
  Read* const read = waiting->second.read;
  remove(waiting);
  return read;
}

}  // namespace loader::net
