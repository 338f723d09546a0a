// The kernels' own source on a processor: tiles of every kind come out as libl3 decodes them, and damaged payloads are
// refused for the same reason at the same place.
#include "any_model.h"
#include "codec_testing.h"
#include "emulated_gpu.h"

// Behind the emulated GPU.
#include "../kernels/src/decode_dense.cu"
#include "../kernels/src/decode_tiles.cu"
#include "container.h"
#include "target.h"

namespace {

using namespace codec_testing;
using drawing::Dice;
using drawing::Pattern;
using drawing::Size;
using l3::DenseJob;
using l3::DenseTables;
using l3::Fault;
using l3::Head;
using l3::Method;
using l3::TileEntry;
using l3::TileJob;
using l3::TileOutput;
using l3::TileShape;

constexpr uint32_t kWarps = 2;  // of a block: they share the tables
constexpr size_t kGap = 12;     // bytes between rows that nobody may write to

// A file that is accepted, and its tiles.
struct Opened {
  explicit Opened(const Bytes& from) : file(from) {
    const l3_limits none{UINT64_MAX, UINT64_MAX, UINT64_MAX};
    const l3::Target& target = *l3::target();
    EXPECT_TRUE(l3::read_head(file.data(), file.size(), target, none, head).ok());
    EXPECT_TRUE(l3::check_container(file.data(), file.size(), target, head, *model).ok());
    for (uint64_t i = 0; i < head.tile_count; ++i) {
      shapes.push_back(head.tile_shape(i));
      entries.push_back(l3::read_entry(file.data(), head, i));
      payloads.emplace_back(entries[i].payload, entries[i].payload_bytes);
      entries[i].payload = payloads[i].data();
    }
  }

  Bytes file;
  Head head{};
  std::unique_ptr<DenseTables> model = std::make_unique<DenseTables>();
  std::vector<TileShape> shapes;
  std::vector<TileEntry> entries;
  std::vector<Exact> payloads;  // each in memory of its own
};

// Memory for a tile's pixels, rows apart from each other.
struct Pixels {
  explicit Pixels(const TileShape& shape)
      : stride((shape.width * shape.channels * (shape.bits > 8 ? 2 : 1) + kGap) / 4 * 4),
        bytes(stride * shape.height) {}
  size_t stride;
  Exact bytes;
};

// What libl3 makes of a tile. It knows that there is more of a file before a payload.
Fault expected(const Opened& opened, uint64_t i, const Pixels& out) {
  const TileShape& shape = opened.shapes[i];
  TileEntry entry = opened.entries[i];
  const Exact part_of_file(l3::kUnit + entry.payload_bytes);
  if (entry.payload_bytes != 0) std::memcpy(part_of_file.data() + l3::kUnit, entry.payload, entry.payload_bytes);
  entry.payload = part_of_file.data() + l3::kUnit;
  const TileOutput to{out.bytes.data(), out.stride, 0, 0, shape.width, shape.height, nullptr, 0};
  const l3::Target& target = *l3::target();
  return entry.method == Method::dense ? target.decode_dense(shape, entry, to, *opened.model)
                                       : target.decode(shape, entry, to);
}

// Decodes all tiles of a file, dense ones by one kernel and others by the other; expects what libl3 makes of each.
void expect_as_on_cpu(const Opened& opened, std::mt19937& dice) {
  std::vector<DenseJob> dense;
  std::vector<TileJob> others;
  std::vector<uint64_t> tiles[2];  // dense, others
  std::vector<Pixels> outs;
  l3::DenseRoom room{1, 4};
  uint32_t line_samples = 0;
  for (uint64_t i = 0; i < opened.entries.size(); ++i) {
    const TileShape& shape = opened.shapes[i];
    const TileEntry& entry = opened.entries[i];
    outs.emplace_back(shape);
    if (entry.method == Method::dense) {
      dense.push_back({shape, entry, outs[i].bytes.data(), outs[i].stride});
      tiles[0].push_back(i);
      room.delay_entries = std::max(room.delay_entries, l3::dense_delay(shape.width, 1u << entry.parameters));
      const uint32_t blocks = l3::ceil_div(shape.width, l3::kBlockEdge) * l3::ceil_div(shape.height, l3::kBlockEdge);
      room.class_words = std::max(room.class_words, (blocks + 3) / 4 * 4);
    } else {
      const TileOutput to{outs[i].bytes.data(), outs[i].stride, 0, 0, shape.width, shape.height, nullptr, 0};
      others.push_back({shape, entry, to});
      tiles[1].push_back(i);
      line_samples = std::max(line_samples, l3::ceil_div(shape.width, l3::kLanes) * l3::kMaxChannels * l3::kLanes);
    }
  }
  std::vector<Fault> faults[2] = {std::vector<Fault>(dense.size()), std::vector<Fault>(others.size())};
  constexpr uint32_t kThreads = kWarps * l3::kLanes;
  const size_t shared =
      sizeof(l3::CudaTables::Memory) + kWarps * (16 * size_t{room.delay_entries} + 4 * room.class_words);
  using Kernel = void (*)(const DenseTables*, const DenseJob*, uint32_t, l3::DenseRoom, Fault*);
  constexpr Kernel kKernels[] = {l3::decode_dense<1>, l3::decode_dense<2>, l3::decode_dense<3>, l3::decode_dense<4>};
  for (uint32_t first = 0; first < dense.size(); first += kWarps) {
    emulated::Block::run(first / kWarps, kThreads, shared, dice, [&] {
      kKernels[opened.head.channels - 1](opened.model.get(), dense.data(), static_cast<uint32_t>(dense.size()), room,
                                         faults[0].data());
    });
  }
  for (uint32_t first = 0; first < others.size(); first += kWarps) {
    emulated::Block::run(first / kWarps, kThreads, kWarps * line_samples * sizeof(uint16_t), dice, [&] {
      l3::decode_tiles(others.data(), static_cast<uint32_t>(others.size()), line_samples, faults[1].data());
    });
  }
  for (const uint32_t kind : {0u, 1u}) {
    for (size_t k = 0; k < tiles[kind].size(); ++k) {
      const uint64_t i = tiles[kind][k];
      const Pixels wanted(opened.shapes[i]);
      const Fault fault = expected(opened, i, wanted);
      const Fault& found = faults[kind][k];
      ASSERT_EQ(found.reason, fault.reason) << "tile " << i;
      ASSERT_EQ(found.at, fault.at) << "tile " << i;
      if (fault.reason == l3::Reason::none) {
        ASSERT_EQ(std::memcmp(outs[i].bytes.data(), wanted.bytes.data(), wanted.bytes.size()), 0) << "tile " << i;
      }
    }
  }
}

TEST(Kernels, DenseTilesAreWhatLibl3Makes) {
  std::mt19937 order(1);
  Dice dice(9);
  for (const l3_colour colour : {L3_COLOUR_GRAY, L3_COLOUR_GRAY_ALPHA, L3_COLOUR_RGB, L3_COLOUR_RGB_ALPHA}) {
    for (const Size size : {Size{1, 1}, Size{70, 3}, Size{3, 40}, Size{33, 9}, Size{100, 71}}) {
      for (const bool any : {false, true}) {
        const drawing::Drawing d = drawing::draw(size, {colour, 8}, any ? Pattern::noise : Pattern::natural);
        SCOPED_TRACE(d.name());
        l3_encode_options options = options_of(L3_METHOD_DENSE, 64, 64, 1);
        const Bytes model = by_hand::any_model(dice, d.channels());
        if (any) {
          options.model = model.data();
          options.model_size = model.size();
        }
        const Opened opened(encode(d, options));
        ASSERT_NO_FATAL_FAILURE(expect_as_on_cpu(opened, order));
      }
    }
  }
}

TEST(Kernels, OtherTilesAreWhatLibl3Makes) {
  std::mt19937 order(2);
  for (const drawing::Type& type : drawing::common_types()) {
    for (const Pattern pattern : {Pattern::flat, Pattern::natural, Pattern::noise, Pattern::extremes}) {
      const drawing::Drawing d = drawing::draw({70, 37}, type, pattern);
      SCOPED_TRACE(d.name());
      const Opened opened(encode(d, tiles_of(64, 32)));
      ASSERT_NO_FATAL_FAILURE(expect_as_on_cpu(opened, order));
    }
  }
}

// The check would have stopped these: here they reach the engine.
TEST(Kernels, DamagedPayloadsAreRefusedAsByLibl3) {
  std::mt19937 order(3);
  Dice dice(5);
  uint32_t refused = 0;
  for (const l3_method method : {L3_METHOD_DENSE, L3_METHOD_FAST}) {
    const drawing::Drawing d = drawing::draw({90, 40}, {L3_COLOUR_RGB, 8}, Pattern::natural);
    Opened opened(encode(d, options_of(method, 32, 32, 1)));
    for (uint32_t round = 0; round < 12; ++round) {
      std::vector<Exact> whole;
      for (size_t i = 0; i < opened.entries.size(); ++i) {
        TileEntry& entry = opened.entries[i];
        whole.emplace_back(opened.payloads[i].data(), opened.payloads[i].size());
        uint8_t* const bytes = whole[i].data();
        const uint32_t size = entry.payload_bytes;
        switch (dice.roll(3)) {
          case 0: bytes[dice.roll(size)] ^= static_cast<uint8_t>(1u << dice.roll(8)); break;
          case 1: bytes[size - 1 - dice.roll(std::min(size, 16u))] ^= 0x80; break;
          default:
            for (uint32_t k = 4 * l3::kLanes; k < size; ++k) bytes[k] = static_cast<uint8_t>(dice.roll(256));
        }
        entry.payload = bytes;
        entry.check = l3::target()->check(bytes, size / 4);
        const Pixels out(opened.shapes[i]);
        refused += expected(opened, i, out).reason != l3::Reason::none;
      }
      ASSERT_NO_FATAL_FAILURE(expect_as_on_cpu(opened, order));
    }
  }
  EXPECT_GT(refused, 60u);
}

}  // namespace
