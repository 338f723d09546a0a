#include "cache_plan.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <numeric>
#include <utility>

#include "sampler.h"

namespace loader {
namespace {

constexpr uint64_t kRunBytes = 256 << 10, kPage = 4096;

// Neighbouring samples of a shard.
struct Run {
  uint64_t first = 0;  // the number of its first sample in the data set
  uint32_t samples = 0;
  uint64_t bytes = 0;  // the pages that they touch in the shard's file
};

void add_runs(const Shard& shard, std::vector<Run>& runs) {
  uint64_t begin = 0, end = 0;  // in the shard's file
  bool is_new = true;
  for (uint32_t i = 0; i < shard.index.footer().entries; ++i) {
    const uint8_t* const at = shard.index.entry(i);
    const uint64_t offset = load_u64(at + entry::kOffset), sample_end = offset + load_u64(at + entry::kSize);
    if (is_new || sample_end - begin > kRunBytes) {
      runs.push_back({shard.first_sample + i, 0, 0});
      begin = end = offset;
      is_new = false;
    }
    end = std::max(end, sample_end);
    Run& run = runs.back();
    ++run.samples;
    run.bytes = (end + kPage - 1) / kPage * kPage - begin / kPage * kPage;
  }
}

// Mixes the runs: the shuffle of Fisher and Yates.
void shuffle(std::vector<Run>& runs, const Digest& seed) {
  const uint64_t key = load_u64(seed.data());
  for (size_t i = runs.size(); i > 1; --i) std::swap(runs[i - 1], runs[scale_to(hash_of(key, i), i)]);
}

bool parse_size(std::string_view text, PlaceSize& place) {
  struct Unit {
    std::string_view name;
    double factor;
  };
  static constexpr std::array<Unit, 12> kUnits = {{{"", 1},
                                                   {"B", 1},
                                                   {"kB", 1e3},
                                                   {"KB", 1e3},
                                                   {"MB", 1e6},
                                                   {"GB", 1e9},
                                                   {"TB", 1e12},
                                                   {"KiB", 1024.0},
                                                   {"MiB", 1048576.0},
                                                   {"GiB", 1073741824.0},
                                                   {"TiB", 1099511627776.0},
                                                   {"%", 0}}};
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (error != std::errc() || !(number >= 0)) return false;
  const std::string_view name(end, static_cast<size_t>(text.data() + text.size() - end));
  const auto unit = std::find_if(kUnits.begin(), kUnits.end(), [&](const Unit& one) { return one.name == name; });
  if (unit == kUnits.end()) return false;
  if (name == "%") {
    place.share = number / 100;
    return number > 0 && number <= 100;
  }
  if (number * unit->factor >= 9e18) return false;
  place.bytes = static_cast<uint64_t>(number * unit->factor);
  return true;
}

}  // namespace

std::string parse_places(std::string_view text, std::vector<PlaceSize>& places) {
  places.clear();
  while (!text.empty()) {
    const std::string_view one = text.substr(0, text.find(','));
    text.remove_prefix(std::min(one.size() + 1, text.size()));
    const size_t equals = one.rfind('=');
    if (equals == one.npos || equals == 0) {
      return "a place of a cache is written PLACE=SIZE, such as /dev/shm/l3=8GB";
    }
    PlaceSize place;
    place.where = one.substr(0, equals);
    if (!parse_size(one.substr(equals + 1), place)) {
      return "the size of a cache is written as 500GB or 65%, and not \"" + std::string(one.substr(equals + 1)) + "\"";
    }
    const auto is_same = [&](const PlaceSize& other) { return other.where == place.where; };
    if (std::any_of(places.begin(), places.end(), is_same)) return "a cache names the same place twice";
    places.push_back(std::move(place));
    if (places.size() > CachePlan::kMaxPlaces) return "a cache has at most 250 places";
  }
  return {};
}

CachePlan::CachePlan(std::span<const std::unique_ptr<Shard>> shards, std::span<const PlaceSize> places)
    : data_set_(digest_of(shards)), parts_(places.size()) {
  std::vector<Run> runs;
  for (const auto& shard : shards) add_runs(*shard, runs);
  shuffle(runs, data_set_);
  const Shard& last = *shards.back();
  place_of_.assign(static_cast<size_t>(last.first_sample + last.index.footer().entries), kNowhere);
  const uint64_t all = std::accumulate(runs.begin(), runs.end(), uint64_t{0},
                                       [](uint64_t sum, const Run& run) { return sum + run.bytes; });
  size_t next = 0;
  double share = 0;
  for (size_t i = 0; i < places.size(); ++i) {
    Part& part = parts_[i];
    part.size = places[i].bytes;
    if (places[i].share > 0) {
      // Rounded up for the sum, so that places of 50 % and 50 % hold everything.
      share += places[i].share;
      part.size = static_cast<uint64_t>(std::ceil(static_cast<double>(all) * places[i].share));
    }
    part.begin = next;
    while (next < runs.size() &&
           (runs[next].bytes <= part.size - part.bytes || (share >= 1 && i + 1 == places.size()))) {
      const Run& run = runs[next++];
      std::fill_n(place_of_.begin() + static_cast<ptrdiff_t>(run.first), run.samples, static_cast<uint8_t>(i));
      part.samples += run.samples;
      part.bytes += run.bytes;
    }
    part.end = next;
  }
}

}  // namespace loader
