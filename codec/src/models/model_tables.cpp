// Reads models of all kinds (sections 12, 14 and 24 of the spec).
#include "models/model_tables.h"

#include <algorithm>
#include <cstring>

#include "models/model_reader.h"
#include "models/token_model_reader.h"

namespace l3 {

namespace {

// Reads channels and tables of a model whose head was read.
template <uint32_t kBuckets, class Reader, class Tables>
Fault read_parts(Reader& reader, uint32_t channels, Tables& tables) {
  std::memset(tables.table_of, 0, sizeof(tables.table_of));
  std::memset(tables.class_table_of, 0, sizeof(tables.class_table_of));
  bool is_read[kMaxChannels];
  uint32_t class_tables[kMaxChannels], first[kMaxChannels];
  for (uint32_t c = 0; c < channels; ++c) is_read[c] = reader.read_channel(c, class_tables[c]);
  Fault fault = reader.place_class_tables(is_read, class_tables, first);
  if constexpr (requires { reader.read_match(); }) {
    if (fault.reason == Reason::none) fault = reader.read_match();
  }
  if (fault.reason != Reason::none) return fault;
  for (uint32_t c = 0; c < channels; ++c) reader.move_class_tables(c, first[c]);
  for (uint32_t t = 0; t < tables.table_count; ++t) {
    uint16_t frequencies[kBuckets] = {};
    fault = reader.read_table(t, frequencies);
    if (fault.reason != Reason::none) return fault;
    build_buckets<kBuckets>(frequencies, tables.buckets + t * kBuckets);
  }
  for (uint32_t c = 0; c < channels; ++c) {
    for (uint32_t t = first[c]; t < first[c] + class_tables[c]; ++t) {
      uint16_t frequencies[kClassBuckets] = {};
      fault = reader.read_class_table(t, tables.classes[c], frequencies);
      if (fault.reason != Reason::none) return fault;
      build_buckets<kClassBuckets>(frequencies, tables.class_buckets + t * kClassBuckets);
    }
  }
  return {};
}

// Finds the slots of the symbol that fills up the last bucket, if it repeats a neighbour: see build_buckets().
FlatSlots find_flat(const Bucket* buckets) {
  constexpr uint32_t kSlots = kProbabilities / kTokenBuckets;
  const Bucket& last = buckets[kTokenBuckets - 1];
  const uint32_t symbol = last.other >> 24;
  FlatSlots flat{last.other % kProbabilities, {}};
  for (uint32_t q = 0; q < kTokenBuckets; ++q) {
    const uint32_t own = buckets[q].own >> 16 & 0xFF, other = buckets[q].other;
    flat.of[q] = {kSlots, 0};
    if (flat.frequency == 0 || symbol > kMatchNw) continue;
    if (q == symbol && own == kSlots) {
      flat.of[q] = {0, 0};
    } else if (own < kSlots && other >> 24 == symbol) {
      flat.of[q] = {static_cast<uint16_t>(own), static_cast<uint16_t>((other >> 12) % kProbabilities)};
    }
  }
  return flat;
}

void prepare_matches(TokenTables& tables) {
  for (uint32_t i = 0; i < kMatchPatterns; ++i) {
    tables.match_bucket[i] =
        static_cast<uint16_t>(tables.match_table[tables.match_row[i] * kMatchOctaves] * kTokenBuckets);
  }
  tables.flat = find_flat(tables.buckets + tables.match_bucket[kMatchPatterns - 1]);
}

}  // namespace

Fault DenseKind::read(const uint8_t* bytes, uint64_t size, uint32_t channels, uint32_t, DenseTables& tables) {
  ModelReader reader(bytes, size, tables);
  const Fault fault = reader.read_head(channels);
  return fault.reason == Reason::none ? read_parts<kTableBuckets>(reader, channels, tables) : fault;
}

Fault TokenKind::read(const uint8_t* bytes, uint64_t size, uint32_t channels, uint32_t bits, TokenTables& tables) {
  TokenModelReader reader(bytes, size, tables);
  Fault fault = reader.read_head(channels, bits);
  if (fault.reason == Reason::none) fault = reader.read_values();
  if (fault.reason == Reason::none && tables.channels == 1 && tables.listing != Listing::none) {
    // So that decoders need not ask whether a value is listed.
    std::fill(tables.values + tables.value_count[0], tables.values + (size_t{1} << tables.depth[0]), uint16_t{0});
  }
  if (fault.reason == Reason::none) fault = read_parts<kTokenBuckets>(reader, tables.engine_channels, tables);
  if (fault.reason == Reason::none && tables.match && tables.engine_channels == 1) prepare_matches(tables);
  return fault;
}

Fault BitKind::read(const uint8_t* bytes, uint64_t size, uint32_t channels, uint32_t bits, BitTables& tables) {
  BitModelReader reader(bytes, size, tables);
  const Fault fault = reader.read_head(channels, bits);
  if (fault.reason != Reason::none) return fault;
  // Which bit of an index each neighbour is: see BitTables.
  uint32_t place[kMaxBitNeighbours];
  for (uint32_t i = 0; i < tables.count; ++i) {
    place[i] = 2;
    const uint32_t neighbour = tables.neighbours[i];
    for (uint32_t k = 0; k < tables.count; ++k) {
      const uint32_t other = tables.neighbours[k];
      place[i] += bit_order(other) < bit_order(neighbour) && other != kNewestOwn && other != kNewestAbove;
    }
    if (neighbour == kNewestOwn) place[i] = 0;
    if (neighbour == kNewestAbove) place[i] = 1;
  }
  return reader.read_rest([&](uint32_t first, uint32_t count, uint32_t frequency) {
    uint32_t from = 0, others = 0;  // the index of the first context, and the bits that do not matter
    for (uint32_t i = 0; i < tables.count; ++i) {
      const uint32_t bit = 1u << (tables.count - 1 - i), own = 1u << place[i];
      if (bit < count) {
        others |= own;
      } else if ((first & bit) != 0) {
        from |= own;
      }
    }
    for (uint32_t some = 0, i = 0; i < count; ++i, some = (some - others) & others) {
      const uint32_t index = from | some;
      Bucket& four = tables.fours[index / 4];
      uint32_t& two = (index & 2) == 0 ? four.own : four.other;
      two = (index & 1) == 0 ? (two & 0xFFFF0000) | frequency : (two & 0xFFFF) | frequency << 16;
    }
  });
}

Fault read_tables(const uint8_t* bytes, uint64_t size, uint32_t channels, uint32_t bits, ModelTables& tables) {
  tables.kind = kind_of_model(bytes, size);
  Fault fault;
  ModelKinds::visit(tables.kind,
                    [&]<class Kind>() { fault = Kind::read(bytes, size, channels, bits, tables.of(Kind{})); });
  return fault;
}

}  // namespace l3
