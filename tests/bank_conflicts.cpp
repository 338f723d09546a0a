// Counts the conflicts of banks when dense tiles look up tables in shared memory, on the emulated GPU: of a drawn
// image, or of the L3 files that are named. kernels/model.py takes its figures for look-ups from here.
#include <algorithm>
#include <array>
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
// By the bytes that a lane loads, and whether all lanes load the same ones.
std::map<std::pair<uint32_t, bool>, Loads> all_loads;

// The loads of a warp's lanes that are not matched yet. Lanes of the emulated GPU run one after the other, so the n-th
// loads of all lanes belong together.
using Pending = std::array<std::deque<uint32_t>, kLanes>;
std::map<std::array<uint32_t, 3>, Pending> pending;  // by block, warp and bytes

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
  Pending& of = pending[{block.index(), block.thread() / kLanes, bytes}];
  of[block.thread() % kLanes].push_back(address);
  if (std::any_of(of.begin(), of.end(), [](const auto& lane) { return lane.empty(); })) return;
  std::array<uint32_t, kLanes> addresses;
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    addresses[lane] = of[lane].front();
    of[lane].pop_front();
  }
  const bool same = std::all_of(addresses.begin(), addresses.end(), [&](uint32_t a) { return a == addresses[0]; });
  Loads& loads = all_loads[{bytes, same}];
  ++loads.of_warps;
  loads.wavefronts += same ? 1 : wavefronts_of(bytes, addresses);
}

bool count(const std::string& name, std::vector<uint8_t> file) {
  all_loads.clear();
  pending.clear();
  emulated::on_load_shared = note_load;
  const auto found = l3::cuda::decode(file, l3_decode_options_init());
  emulated::on_load_shared = nullptr;
  const auto expected = l3::decode(file, l3_decode_options_init());
  const bool equal = found && expected && found->bytes == expected->bytes;
  std::printf("%s: %s\n", name.c_str(), equal ? "equal" : "NOT EQUAL");
  for (const auto& [kind, loads] : all_loads) {
    std::printf("  %2u bytes, %s: %llu loads of a warp, %.2f wavefronts each\n", kind.first,
                kind.second ? "the same address" : "several addresses",
                static_cast<unsigned long long>(loads.of_warps),  // NOLINT(google-runtime-int)
                static_cast<double>(loads.wavefronts) / static_cast<double>(loads.of_warps));
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
