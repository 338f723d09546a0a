// A link that limits what a store delivers, so that slow disks and far stores can be measured without having them.
#pragma once

#include <memory>

#include "loader/store.h"

namespace tools {

struct Link {
  double bytes_per_second = 0;  // 0: no limit
  double delay = 0;             // of each answer, in seconds

  explicit operator bool() const { return bytes_per_second > 0 || delay > 0; }
};

// A far store that answers as `behind` does, but no faster than a link lets through. Any number of requests may be in
// progress. All of them share the link, one after the other.
std::shared_ptr<loader::Store> make_slow_store(std::shared_ptr<loader::Store> behind, const Link& link);

}  // namespace tools
