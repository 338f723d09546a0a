// Head, sections and index of a file (sections 2 to 5), read in place.
#pragma once

#include "format.h"
#include "reason.h"
#include "target.h"
#include "tile.h"

namespace l3 {

struct Section {
  uint32_t type, check;
  uint64_t offset, size;
};

struct Head {
  uint32_t optional_features;
  uint32_t width, height;
  uint32_t channels, bits;
  uint32_t sample_type, colour, alpha;
  uint32_t tile_width, tile_height;  // in pixels
  uint32_t tiles_across, tiles_down;
  uint64_t tile_count;
  uint32_t index_check;
  uint32_t section_count;
  Section sections[kMaxSections];
  uint64_t head_bytes;  // also where the index begins
  uint64_t index_end;   // padded
  uint64_t payload_start;

  uint32_t pixel_bytes() const { return channels * (bits > 8 ? 2 : 1); }
  const Section* find(uint32_t type) const;
  TileShape tile_shape(uint64_t tile) const;
};

// What is wrong with a file, and where.
struct Verdict {
  Reason reason = Reason::none;
  uint64_t offset = 0;
  uint64_t tile = L3_NO_TILE;

  bool ok() const { return reason == Reason::none; }
};

// The numbers of a limits structure, with defaults for null and zero.
l3_limits with_defaults(const l3_limits* limits);

// Reads and verifies the head. `size` may be less than the file's.
Verdict read_head(const uint8_t* data, uint64_t size, const Target& target, const l3_limits& limits, Head& head);

// Verifies the index, the sections that are not aside, and that the file ends where it should. `model` is filled where
// there is one.
Verdict check_container(const uint8_t* data, uint64_t size, const Target& target, const Head& head, DenseTables& model);

// Verifies check and padding of one section.
Verdict check_section(const uint8_t* data, uint64_t size, const Target& target, const Section& section);

// An entry of an index that check_container accepted.
TileEntry read_entry(const uint8_t* data, const Head& head, uint64_t tile);

// The digest of a file (section 9). `payload_start` bytes of it are read.
void digest_of(const uint8_t* data, uint64_t payload_start, uint8_t* digest);

}  // namespace l3
