// Makes the checks of a mutated file match again, as far as its parts can be found, so that mutations get past them.
// Follows spec/format.md; nothing here trusts the file.
#pragma once

#include <cstdint>
#include <cstring>

#include "check.h"
#include "format.h"
#include "target.h"

namespace fuzz {

inline void reseal(uint8_t* file, uint64_t size) {
  using namespace l3;
  if (size < kHeaderBytes) return;
  const auto& check = kPortableTarget.check;
  std::memcpy(file, kSignatureBytes, sizeof(kSignatureBytes));
  const uint64_t sections = load_u16(file + header::kSectionCount);
  const uint64_t head = kHeaderBytes + sections * kSectionEntryBytes;
  if (sections > kMaxSections || head > size) return;
  for (uint64_t i = 0; i < sections; ++i) {
    uint8_t* entry = file + kHeaderBytes + i * kSectionEntryBytes;
    const uint64_t offset = load_u64(entry + 8), bytes = load_u64(entry + 16);
    if (offset > size || bytes > size || pad_to_unit(bytes) > size - offset) continue;
    store_u32(entry + 4, check(file + offset, pad_to_unit(bytes) / 4));
  }
  const uint32_t tile_width = 32u * file[header::kTileWidth], tile_height = 32u * file[header::kTileHeight];
  if (tile_width == 0 || tile_height == 0) return;
  const uint64_t tiles = uint64_t{ceil_div(load_u32(file + header::kWidth), tile_width)} *
                         ceil_div(load_u32(file + header::kHeight), tile_height);
  if (tiles > size / kIndexEntryBytes) return;
  const uint64_t index_end = pad_to_unit(head + tiles * kIndexEntryBytes);
  if (index_end > size) return;
  for (uint64_t i = 0; i < tiles; ++i) {
    uint8_t* entry = file + head + i * kIndexEntryBytes;
    const uint64_t offset = uint64_t{load_u32(entry + 4)} * kUnit, bytes = uint64_t{load_u16(entry + 2)} * kUnit;
    if (entry[0] == 0 || offset > size || bytes > size - offset) continue;
    store_u32(entry + 8, check(file + offset, bytes / 4));
  }
  store_u32(file + header::kIndexCheck, check(file + head, (index_end - head) / 4));
  store_u32(file + header::kHeadCheck, 0);
  store_u32(file + header::kHeadCheck, check(file, head / 4));
}

}  // namespace fuzz
