// Reads that wait to be sent. Neighbours leave together.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "range_job.h"

namespace loader::net {

class ReadQueue {
 public:
  bool empty() const { return by_number_.empty(); }
  // May throw std::bad_alloc, and then does not keep the read.
  void add(Read& read, uint64_t owner);
  // Removes the read that has waited longest and those near it, which one request can serve. May throw std::bad_alloc,
  // and then removes nothing.
  std::vector<RangeJob::Piece> take();
  // Removes one read of this owner, or of anybody if it is kNoOwner; null if there is none.
  Read* take_of(uint64_t owner);

 private:
  using Place = std::pair<const Object*, uint64_t>;
  struct Waiting {
    Read* read;
    uint64_t owner;
    std::multimap<Place, uint64_t>::iterator place;
  };
  void remove(std::map<uint64_t, Waiting>::iterator waiting);

  std::map<uint64_t, Waiting> by_number_;    // in the order in which they came
  std::multimap<Place, uint64_t> by_place_;  // their numbers; without reads from the end
  uint64_t number_ = 0;
};

}  // namespace loader::net
