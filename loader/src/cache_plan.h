// Which samples a cache holds, and where. A pure function of the data set and the sizes of the places, so that all
// processes and all nodes agree without asking each other.
//
// Samples are chosen in runs: neighbours in a shard, up to 256 KiB. Small samples then waste no pages of a file, and
// filling a cache reads many of them at once. The runs are put in a random order that depends on the data set only, and
// each place takes the next ones until its size is reached. Nothing is ever replaced. So in each epoch, whatever its
// order, the share of hits equals the share of the data set that the cache holds.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data_set.h"

namespace loader {

// A place as the caller names it: "/nvme/l3=500GB" or "redis://node1=65%".
struct PlaceSize {
  std::string where;
  uint64_t bytes = 0;
  double share = 0;  // of the data set, if not 0: replaces `bytes`
};

// Reads "PLACE=SIZE,PLACE=SIZE". Returns why it is wrong, or an empty text.
std::string parse_places(std::string_view text, std::vector<PlaceSize>& places);

class CachePlan {
 public:
  static constexpr uint8_t kNowhere = 255;
  static constexpr size_t kMaxPlaces = 250;

  struct Part {
    uint64_t begin = 0, end = 0;  // the runs of a place, in the random order
    uint64_t samples = 0, bytes = 0;
    uint64_t size = 0;  // that the place was given
  };

  CachePlan(std::span<const std::unique_ptr<Shard>> shards, std::span<const PlaceSize> places);

  // Identifies the contents of the data set, wherever it is.
  const Digest& data_set() const { return data_set_; }
  // The number of the place for a sample, or kNowhere.
  uint8_t place_of(uint64_t sample) const { return place_of_[static_cast<size_t>(sample)]; }
  const Part& part(size_t place) const { return parts_[place]; }
  uint64_t samples() const { return place_of_.size(); }  // of the data set

 private:
  Digest data_set_{};
  std::vector<uint8_t> place_of_;
  std::vector<Part> parts_;
};

}  // namespace loader
