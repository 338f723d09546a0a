// A file that was opened, stage by stage. l3_open runs all stages; calls that take bytes run those that they need.
#pragma once

#include <memory>

#include "decode/container.h"

namespace l3 {

// What a named model that is missing or unfit means. `later`: nothing yet, l3_file::of_model keeps the verdict.
enum class NamedModel { required, later };

}  // namespace l3

// After its stages have passed it is read-only.
struct l3_file {
  const uint8_t* data = nullptr;
  uint64_t size = 0;
  const l3::Target* target = nullptr;
  l3_decode_options options{};
  l3_limits limits{};  // the limits of the options, with defaults in place of zeros
  l3::Head head{};
  bool is_container_checked = false;
  l3::Verdict of_model;
  const l3::ModelTables* model = nullptr;  // null if the file has no model, or if of_model says why not
  uint8_t colours[4 * 256];                // if writes_colours(): the samples of a pixel for each decoded one

  // The caller's memory, or null: then memory for tables is allocated if the file has a model of its own.
  uint8_t* workspace = nullptr;
  size_t workspace_size = 0;
  std::unique_ptr<l3::ModelTables> allocated;

  // Verifies the arguments and the head.
  l3::Verdict read(const void* bytes, size_t bytes_size, const l3_decode_options* wanted);
  // Whether the whole image is within the limits.
  l3::Verdict check_limits() const { return l3::check_limits(head, limits); }
  // Verifies the index, the sections below 0x8000, the model, and that the file ends where it should.
  l3::Verdict check_container(l3::NamedModel named);

  bool has_colours() const { return options.as_colours != 0 && head.colour == L3_COLOUR_PALETTE; }
  // Whether a table says the pixel of each decoded sample: as colours, or since one channel is coded of several.
  bool writes_colours() const { return has_colours() || (head.map.coded == 1 && head.bits <= 8); }
  uint32_t pixel_bytes() const;

 private:
  l3::Verdict find_model();
};

namespace l3 {

// The status of a verdict. Fills in *error unless it is null.
inline l3_status report(l3_error* error, const Verdict& verdict) {
  return verdict.ok() ? succeed(error) : fail(error, verdict.reason, verdict.offset, verdict.tile);
}

struct Region {
  uint32_t x, y, width, height;
};

inline Region whole(const Head& head) { return {0, 0, head.width, head.height}; }

// Whether a region has pixels and lies in the image.
inline bool is_inside(const Region& region, const Head& head) {
  return region.width != 0 && region.height != 0 && region.x < head.width && region.y < head.height &&
         region.width <= head.width - region.x && region.height <= head.height - region.y;
}

// Reads the index entry of a tile and verifies its payload, whatever happened to the file since it was verified.
Verdict check_tile(const l3_file& file, uint64_t tile, TileEntry& entry);

// Decodes the tiles of a region. The container was checked, and the model is there. If `out` is null, the tiles are
// only verified.
Verdict decode_tiles(const l3_file& file, const Region& region, uint8_t* out, size_t stride);

}  // namespace l3
