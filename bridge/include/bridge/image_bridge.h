// Converts formats::Image to L3 and back without any loss, including palettes, transparency and all ancillary chunks.
//
// The chunks of an Image are stored as spec/format.md, section 4, describes:
//   cICP gAMA sRGB cHRM   the colour space section
//   iCCP, eXIf            the ICC and the EXIF section, as they are
//   all others            metadata records
// One of these six chunks becomes a metadata record, too, if a section could not give it back as it was: if it occurs
// twice, is empty, has an invalid length, or is a colour chunk after the palette. Chunks from sections come back before
// the palette and before all other chunks. The others keep their places and their order.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "bridge/buffer.h"
#include "formats/formats.h"
#include "l3/l3.h"

namespace bridge {

// The l3_image for an Image. It points into the Image, which must exist and not change while it is used.
class L3Image {
 public:
  explicit L3Image(const formats::Image& image);
  L3Image(const L3Image&) = delete;
  L3Image& operator=(const L3Image&) = delete;

  const l3_image& get() const { return image_; }

 private:
  void take_chunks(const std::vector<formats::Chunk>& chunks);

  l3_image image_ = l3_image_init();
  std::vector<uint8_t> transparency_;
  std::vector<uint8_t> colour_space_;
  std::vector<uint8_t> metadata_;
};

// Encodes an image as an L3 file. The memory of `file` is used again by the next call.
std::optional<formats::Error> encode_l3(const formats::Image& image, const l3_encode_options& options, Buffer& file);

struct Region {
  uint32_t x = 0, y = 0, width = 0, height = 0;
};

// Decodes a region as l3_decode_region does, for example on a GPU. Fills `out` with rows without padding, or returns an
// error.
using RegionDecoder = std::function<l3_error(std::span<const uint8_t> file, const Region& region,
                                             const l3_decode_options& options, std::span<uint8_t> out)>;

struct DecodeSettings {
  l3_limits limits{};
  l3_parallel parallel{};
  bool as_colours = false;  // palette images: RGB, or RGBA if there is transparency, instead of indices
  bool with_chunks = true;
  std::optional<Region> region;             // instead of the whole image; must be inside it
  RegionDecoder decoder;                    // used instead of libl3
  std::span<const l3_model* const> models;  // models that the file may name
};

// Decodes an L3 file to `image`, and uses the memory of its pixels again. If the metadata is damaged, its chunks are
// left out and *metadata_error is set; else *metadata_error is empty. Premultiplied alpha is returned as it is, because
// an Image cannot describe it.
std::optional<formats::Error> decode_l3(std::span<const uint8_t> file, const DecodeSettings& settings,
                                        formats::Image& image, std::optional<formats::Error>* metadata_error);

// Returns red, green and blue of each entry of the palette. Empty if there is no palette.
formats::Result<std::vector<uint8_t>> read_palette(std::span<const uint8_t> file);

// Returns a chunk for each record of the metadata section. Empty if there is no such section.
formats::Result<std::vector<formats::Chunk>> read_metadata(std::span<const uint8_t> file, const l3_limits& limits);

// Returns the chunks of the sections for the colour space, the ICC profile and EXIF.
formats::Result<std::vector<formats::Chunk>> read_section_chunks(std::span<const uint8_t> file);

// Converts an error of libl3. The reason includes the number of the tile, if any.
formats::Error to_error(const l3_error& error);
// The same for an error of `file`. The reason also includes the name of a missing model.
formats::Error to_error(const l3_error& error, std::span<const uint8_t> file);

}  // namespace bridge
