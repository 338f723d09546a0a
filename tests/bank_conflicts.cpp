// Counts what warps do in the steps of dense and token tiles, on the emulated GPU: how often a vote of the lanes says
// yes, and the conflicts of banks when tables are looked up in shared memory. Of a drawn image, or of the L3 files that
// are named. kernels/report.py takes its figures from here.
#include <algorithm>
#include <array>
#include <bit>
#include <cstdio>
#include <deque>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "drawing.h"
#include "emulated_gpu.h"
#include "l3/l3.hpp"
#include "l3/l3_cuda.hpp"

namespace {

using l3::kLanes;
constexpr uint32_t kBanks = 32;

struct Loads {
  uint64_t of_warps = 0, wavefronts = 0;
};
struct Vote {
  uint64_t yes = 0, lanes = 0;  // steps in which a lane says yes; how many lanes say so
};
// What warps do in steps.
struct Steps {
  uint64_t count = 0;
  std::vector<Vote> votes;  // in the order of a step
  // By the bytes that a lane loads, and whether all lanes load the same ones.
  std::map<std::pair<uint32_t, bool>, Loads> loads;

  void add(const Steps& other) {
    count += other.count;
    votes.resize(std::max(votes.size(), other.votes.size()));
    for (size_t i = 0; i < other.votes.size(); ++i) {
      votes[i].yes += other.votes[i].yes;
      votes[i].lanes += other.votes[i].lanes;
    }
    for (const auto& [kind, of_other] : other.loads) {
      loads[kind].of_warps += of_other.of_warps;
      loads[kind].wavefronts += of_other.wavefronts;
    }
  }
};

// The loads of a warp's lanes that are not matched yet. Lanes of the emulated GPU run one after the other, so the n-th
// loads of all lanes belong together.
using Pending = std::array<std::deque<uint32_t>, kLanes>;
// The tile that a warp decodes.
struct Tile {
  Steps steps;
  std::map<uint32_t, Pending> pending;  // by bytes
  uint32_t lanes = 0;                   // a bit for each that was at an edge of the tile
  uint32_t shuffles = 0;                // one after the other
  size_t votes = 0;                     // in this step
  int line = 0;                         // where they are asked
};
std::map<std::pair<uint32_t, uint32_t>, Tile> tiles;  // by block and warp
std::map<uint32_t, Steps> all_steps;                  // by the lanes of a tile

void end_tile(Tile& tile) {
  if (tile.steps.count > 0) all_steps[static_cast<uint32_t>(std::bit_width(tile.lanes))].add(tile.steps);
  tile = {};
}

// A step begins with shuffles, and then asks whether a lane is at an edge. Later votes are asked at the same line;
// ballots for words are not.
void note_meeting(const emulated::WarpMeeting& at) {
  Tile& tile = tiles[{at.block, at.warp}];
  if (at.meeting == emulated::Meeting::sum) end_tile(tile);  // of the check of the next payload
  if (at.meeting == emulated::Meeting::ballot) {
    if (tile.shuffles >= 2) {
      ++tile.steps.count;
      tile.votes = 0;
      tile.line = at.line;
      tile.lanes |= at.bits;
    }
    if (tile.steps.count > 0 && at.line == tile.line) {
      tile.steps.votes.resize(std::max(tile.steps.votes.size(), tile.votes + 1));
      Vote& vote = tile.steps.votes[tile.votes++];
      vote.yes += at.bits != 0 ? 1 : 0;
      vote.lanes += static_cast<uint32_t>(std::popcount(at.bits));
    }
  }
  tile.shuffles = at.meeting == emulated::Meeting::shuffle ? tile.shuffles + 1 : 0;
}

// Eight lanes share a wavefront if each loads 16 bytes, 16 lanes if 8. Each different word of a bank takes one more.
uint32_t wavefronts_of(uint32_t bytes, const std::array<uint32_t, kLanes>& addresses) {
  const uint32_t words = std::max(bytes / 4, 1u), lanes = kLanes / words;
  uint32_t wavefronts = 0;
  for (uint32_t first = 0; first < kLanes; first += lanes) {
    std::array<std::set<uint32_t>, kBanks> banks;
    for (uint32_t lane = first; lane < first + lanes; ++lane) {
      for (uint32_t i = 0; i < words; ++i) {
        const uint32_t word = addresses[lane] / 4 + i;
        banks[word % kBanks].insert(word);
      }
    }
    size_t most = 0;
    for (const auto& bank : banks) most = std::max(most, bank.size());
    wavefronts += static_cast<uint32_t>(most);
  }
  return wavefronts;
}

void note_load(uint32_t bytes, uint32_t address) {
  const emulated::Block& block = emulated::Block::running();
  Tile& tile = tiles[{block.index(), block.thread() / kLanes}];
  Pending& of = tile.pending[bytes];
  of[block.thread() % kLanes].push_back(address);
  if (std::any_of(of.begin(), of.end(), [](const auto& lane) { return lane.empty(); })) return;
  std::array<uint32_t, kLanes> addresses;
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    addresses[lane] = of[lane].front();
    of[lane].pop_front();
  }
  const bool same = std::all_of(addresses.begin(), addresses.end(), [&](uint32_t a) { return a == addresses[0]; });
  Loads& loads = tile.steps.loads[{bytes, same}];
  ++loads.of_warps;
  loads.wavefronts += same ? 1 : wavefronts_of(bytes, addresses);
}

void print(uint32_t lanes, const Steps& steps) {
  const auto of_steps = [&](uint64_t number) { return static_cast<double>(number) / static_cast<double>(steps.count); };
  std::printf("  tiles of %u lanes: %.0f steps\n", lanes, static_cast<double>(steps.count));
  for (size_t i = 0; i < steps.votes.size(); ++i) {
    const Vote& vote = steps.votes[i];
    std::printf("    vote %zu: yes in %.3f of the steps, then %.1f lanes\n", i + 1, of_steps(vote.yes),
                vote.yes == 0 ? 0 : static_cast<double>(vote.lanes) / static_cast<double>(vote.yes));
  }
  for (const auto& [kind, loads] : steps.loads) {
    std::printf("    %2u bytes, %s: %.2f loads of a warp in a step, %.2f wavefronts each\n", kind.first,
                kind.second ? "the same address" : "several addresses", of_steps(loads.of_warps),
                static_cast<double>(loads.wavefronts) / static_cast<double>(loads.of_warps));
  }
}

bool count(const std::string& name, std::vector<uint8_t> file) {
  all_steps.clear();
  emulated::on_load_shared = note_load;
  emulated::on_warp_meets = note_meeting;
  const auto found = l3::cuda::decode(file, l3_decode_options_init());
  emulated::on_load_shared = nullptr;
  emulated::on_warp_meets = nullptr;
  for (auto& [place, tile] : tiles) end_tile(tile);
  tiles.clear();
  const auto expected = l3::decode(file, l3_decode_options_init());
  const bool equal = found && expected && found->bytes == expected->bytes;
  std::printf("%s: %s\n", name.c_str(), equal ? "equal" : found ? "NOT EQUAL" : l3::message(found.error()).c_str());
  // Other kernels have meetings that look like a few steps.
  for (const auto& [lanes, steps] : all_steps) {
    if (std::has_single_bit(lanes) && steps.count >= kLanes) print(lanes, steps);
  }
  return equal;
}

}  // namespace

int main(int argc, char** argv) {
  bool equal = true;
  for (int i = 1; i < argc; ++i) {
    std::ifstream in(argv[i], std::ios::binary);
    equal = count(argv[i], {std::istreambuf_iterator<char>(in), {}}) && equal;
  }
  if (argc == 1) {
    const auto drawn = drawing::draw({96, 64}, {L3_COLOUR_RGB, 8}, drawing::Pattern::natural);
    l3_encode_options options = l3_encode_options_init();
    options.method = L3_METHOD_DENSE;
    const auto file = l3::encode(drawn.image(), options);
    equal = file && count("drawn", *file);
  }
  return equal ? 0 : 1;
}
