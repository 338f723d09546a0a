// The parts of models as warps of a GPU read them, against ModelParts of libl3: of default models and random token
// models, whole and damaged. Nothing of a model's checks is in the way here, so each damage reaches the parts.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "any_token_model.h"
#include "emulated_gpu.h"
#include "l3/l3.h"
#include "models/model_reader.h"
#include "models/token_model_reader.h"

// Behind the emulated GPU.
#include "../kernels/src/read_parts.cuh"

namespace {

using namespace l3;
using drawing::Bytes;

using DenseReader = ModelReader;
using DenseWarpReader = DenseModelReader<PartsOfWarp<DenseTables, DenseForm>>;
using TokenReader = TokenModelReader;
using TokenWarpReader = AnyTokenModelReader<PartsOfWarp<TokenTables, TokenForm>>;

// A model at an aligned place, with zeros up to a unit.
struct Aligned {
  explicit Aligned(const Bytes& model)
      : units(ceil_div(static_cast<uint32_t>(model.size()), kUnit)), size(static_cast<uint32_t>(model.size())) {
    std::memcpy(units.data(), model.data(), size);
  }
  const uint8_t* bytes() const { return reinterpret_cast<const uint8_t*>(units.data()); }

  struct alignas(kUnit) Unit {
    std::array<uint8_t, kUnit> bytes{};
  };
  std::vector<Unit> units;
  uint32_t size;
};

template <class Tables>
bool equal_channels(const Tables& a, const Tables& b, uint32_t c) {
  const auto same = [](const auto& x, const auto& y) { return std::memcmp(&x, &y, sizeof x) == 0; };
  return same(a.weights[c], b.weights[c]) && same(a.activity[c], b.activity[c]) && same(a.zone_row[c], b.zone_row[c]) &&
         same(a.pattern_row[c], b.pattern_row[c]) && same(a.table_of[c], b.table_of[c]) &&
         same(a.class_table_of[c], b.class_table_of[c]) && a.grouped[c] == b.grouped[c];
}

bool equal_faults(const Fault& a, const Fault& b) { return a.reason == b.reason && a.at == b.at; }

// How many parts both readers accept.
template <class Tables, class Reader, class WarpReader, class ReadHead>
uint32_t compare(const Aligned& model, ReadHead read_head, std::mt19937& dice) {
  const auto tables = std::make_unique<Tables>(), of_warp = std::make_unique<Tables>();
  Reader reader(model.bytes(), model.size, *tables);
  WarpReader warp_reader(model.bytes(), model.size, *of_warp);
  const Fault fault = read_head(reader);
  EXPECT_TRUE(equal_faults(fault, read_head(warp_reader)));
  if (fault.reason != Reason::none) return 0;
  uint32_t sound = 0;
  for (uint32_t c = 0; c < kMaxChannels && tables->classes[c] != 0; ++c) {
    uint32_t class_tables = 0;
    const bool is_read = reader.read_channel(c, class_tables);
    emulated::Block::run(0, kLanes, 0, dice, [&] {
      uint32_t of_lane = 0;
      const bool lane_read = warp_reader.read_channel(c, of_lane);
      EXPECT_EQ(lane_read, is_read) << "channel " << c;
      EXPECT_EQ(is_read ? of_lane : class_tables, class_tables);
    });
    if (!is_read) continue;
    ++sound;
    EXPECT_TRUE(equal_channels(*tables, *of_warp, c)) << "channel " << c;
  }
  for (uint32_t t = 0; t < tables->table_count; ++t) {
    std::array<uint16_t, kTableBuckets> frequencies{}, of_lane{};
    const Fault of_table = reader.read_table(t, frequencies.data());
    Fault found;
    emulated::Block::run(0, kLanes, 0, dice, [&] {
      if (lane_number() == 0) found = warp_reader.read_table(t, of_lane.data());
    });
    EXPECT_TRUE(equal_faults(of_table, found)) << "table " << t;
    if (of_table.reason != Reason::none) continue;
    ++sound;
    EXPECT_EQ(frequencies, of_lane) << "table " << t;
  }
  return sound;
}

Bytes damaged(Bytes model, uint32_t times, std::mt19937& dice) {
  for (uint32_t i = 0; i < times; ++i) {
    uint8_t& byte = model[dice() % model.size()];
    byte = static_cast<uint8_t>(dice() % 2 == 0 ? byte ^ 1u << dice() % 8 : dice());
  }
  return model;
}

TEST(GpuModelParts, OfDenseModels) {
  std::mt19937 dice(1);
  uint32_t sound = 0;
  for (uint32_t channels = 1; channels <= kMaxChannels; ++channels) {
    const uint8_t* bytes = nullptr;
    size_t size = 0;
    ASSERT_EQ(l3_default_model(channels, &bytes, &size), L3_OK);
    for (uint32_t i = 0; i < 1500; ++i) {
      const Aligned copy(damaged({bytes, bytes + size}, i == 0 ? 0 : 1 + i % 5, dice));
      sound += compare<DenseTables, DenseReader, DenseWarpReader>(
          copy, [&](auto& reader) { return reader.read_head(channels); }, dice);
    }
  }
  EXPECT_GT(sound, 50000u);
}

TEST(GpuModelParts, OfTokenModels) {
  std::mt19937 dice(2);
  drawing::Dice drawn(3);
  uint32_t sound = 0;
  for (uint32_t i = 0; i < 3000; ++i) {
    const uint32_t channels = 1 + i % 4, bits = 1 + i % 16;
    const Bytes model = by_hand::any_token_model(drawn, channels, bits).section.bytes();
    const Aligned copy(damaged(model, i % 4, dice));
    sound += compare<TokenTables, TokenReader, TokenWarpReader>(
        copy, [&](auto& reader) { return reader.read_head(channels, bits); }, dice);
  }
  EXPECT_GT(sound, 5000u);
}

}  // namespace
