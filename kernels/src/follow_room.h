// The memory that tiles of token models need for still rows and for following (sections 15.5 and 15.6 of the spec). For
// host and device code.
#pragma once

#include "engine/follow.h"
#include "models/token.h"

namespace l3 {

// What a model says of it.
struct TokenNeeds {
  uint32_t engine_channels;
  bool rows, follow;

  // From the first bytes of a valid model of any kind.
  L3_INLINE static constexpr TokenNeeds of_model(const uint8_t* bytes) {
    if (bytes[0] != kTokenModelKind) return {1, false, false};
    const uint32_t flags = bytes[3];
    const bool is_listed = static_cast<Listing>(flags >> 3 & 3) == Listing::colours;
    return {is_listed ? 1u : bytes[1], (flags & 128) != 0, (flags & kFollowFlag) != 0};
  }
  L3_INLINE static constexpr TokenNeeds of(const TokenTables& tables) {
    return {tables.engine_channels, tables.rows, tables.follow};
  }
};

L3_INLINE constexpr uint32_t pad_to_16(uint32_t bytes) { return (bytes + 15) & ~15u; }

// The parts of a tile's memory: masks of rows; the places that the pixels of the last lane keep, and their scenes, by
// column. They are in shared memory, or in the tile's room if not every device has so much.
struct FollowParts {
  uint32_t row_bytes, column_bytes;  // multiples of 16; the latter twice
  bool are_in_room;

  L3_INLINE static constexpr FollowParts of(const TokenNeeds& needs, uint32_t width, uint32_t height) {
    constexpr uint32_t kMostBlocks = 1024;  // of a wide tile with all of it in shared memory
    const uint32_t blocks = block_count(width, height);
    return {needs.rows ? pad_to_16(2 * blocks) : 0, needs.follow ? pad_to_16(4 * width) : 0,
            needs.engine_channels > 2 && blocks > kMostBlocks};
  }
  L3_INLINE constexpr uint32_t bytes() const { return row_bytes + 2 * column_bytes; }
  L3_INLINE constexpr uint32_t shared_bytes() const { return are_in_room ? 0 : bytes(); }
  L3_INLINE constexpr uint32_t room_bytes() const { return are_in_room ? bytes() : 0; }
};

// Both tables, which are always in the tile's room.
constexpr uint32_t kFollowTableBytes = 4 * (kNearEntries + kWideEntries);

// The values of a pixel that others may follow, in the tile's room.
L3_INLINE constexpr uint32_t value_bytes(uint32_t engine_channels) {
  return engine_channels == 1 ? 2 : engine_channels == 2 ? 4 : 8;
}
// The values of the pixels of a step are adjacent. The number of lanes is not known before a tile is read: this is
// enough for any, and for smaller tiles.
L3_INLINE constexpr uint32_t most_value_places(uint32_t width, uint32_t height) {
  uint32_t most = 0;
  for (uint32_t lanes = 1; lanes <= kLanes; lanes *= 2) {
    const uint32_t places = dense_steps(width, height, lanes) * lanes;
    most = places > most ? places : most;
  }
  return most;
}

// The room in the workspace of a tile. 0 for most models.
L3_INLINE constexpr uint32_t follow_room(const TokenNeeds& needs, uint32_t width, uint32_t height) {
  if (!needs.rows && !needs.follow) return 0;
  const uint32_t parts = FollowParts::of(needs, width, height).room_bytes();
  if (!needs.follow) return parts;
  return parts + kFollowTableBytes + pad_to_16(value_bytes(needs.engine_channels) * most_value_places(width, height));
}

}  // namespace l3
