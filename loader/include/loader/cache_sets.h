// What caches hold, for commands that fill, show and remove them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "l3/l3_data.h"

namespace loader {

struct CachedSet {
  std::string folder;                     // its path
  std::string data_set;                   // the path or URL that it was first read from, without secrets
  uint64_t size = 0;                      // the limit that the place was given, in bytes
  uint64_t samples = 0, bytes = 0;        // that are to be there
  uint64_t present = 0;                   // samples that are there
  uint64_t of_samples = 0, of_bytes = 0;  // of the data set
  uint64_t disk_bytes = 0;                // what the files really take
  std::string problem;                    // why it cannot be used; empty if it can
};

// Lists the data sets in a folder that is the place of a cache. Returns 0 or an errno.
int list_cached_sets(const std::string& place, std::vector<CachedSet>& sets);

// Removes one of them. Processes that use it go on without it. Returns 0 or an errno.
int remove_cached_set(const CachedSet& set);

// What a place of the cache of an open data set holds of it.
struct CachePart {
  std::string place;                        // its name, without secrets
  std::string folder;                       // of this data set there; empty if the place is a store
  uint64_t samples = 0, bytes = 0;          // that are to be there
  uint64_t missing = 0, missing_bytes = 0;  // that are not there; in a store, nobody knows: all
};

// The places in their order; empty if the data set has no cache.
std::vector<CachePart> cache_parts(const l3_data_set& set);

}  // namespace loader
