// formats::Image to L3 and back, with nothing lost: palettes, transparency and every ancillary chunk.
//
// The chunks of an Image become what spec/format.md, section 4, has for them:
//   cICP gAMA sRGB cHRM   the colour space section
//   iCCP, eXIf            the ICC and the EXIF section, as they are
//   all others            metadata records
// One of those six that the sections could not give back as it was (twice in the file, not of its legal length, empty,
// or a colour chunk after the palette) becomes a metadata record too. A chunk that had a section comes back before the
// palette, and before the chunks that had none; those keep their places and their order.
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

// An l3_image that says all that an Image says. Points into the Image, which must stay as it is.
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

// Encodes to a whole L3 file. `file` keeps its room from one call to the next.
std::optional<formats::Error> encode_l3(const formats::Image& image, const l3_encode_options& options, Buffer& file);

struct Region {
  uint32_t x = 0, y = 0, width = 0, height = 0;
};

// Decodes a region as l3_decode_region does, on some other machine: fills `out` with rows without padding, or says what
// is wrong.
using RegionDecoder = std::function<l3_error(std::span<const uint8_t> file, const Region& region,
                                             const l3_decode_options& options, std::span<uint8_t> out)>;

struct DecodeSettings {
  l3_limits limits{};
  l3_parallel parallel{};
  bool as_colours = false;  // palette images: RGB, or RGBA where there is transparency, instead of indices
  bool with_chunks = true;
  std::optional<Region> region;             // instead of the whole image; must lie inside it
  RegionDecoder decoder;                    // instead of libl3
  std::span<const l3_model* const> models;  // that the file may name
};

// Decodes a whole L3 file to `image`, whose pixels keep their room from one call to the next. Metadata that is damaged
// leaves out the chunks that were in it: *metadata_error is set then, and none otherwise.
// Alpha that is premultiplied is given as it is; an Image cannot say so.
std::optional<formats::Error> decode_l3(std::span<const uint8_t> file, const DecodeSettings& settings,
                                        formats::Image& image, std::optional<formats::Error>* metadata_error);

// Red, green, blue of each entry of the palette; nothing where there is none.
formats::Result<std::vector<uint8_t>> read_palette(std::span<const uint8_t> file);

// The records of the metadata section, one chunk each; none where there is no such section.
formats::Result<std::vector<formats::Chunk>> read_metadata(std::span<const uint8_t> file, const l3_limits& limits);

// The chunks of the sections for colour space, ICC profile and EXIF.
formats::Result<std::vector<formats::Chunk>> read_section_chunks(std::span<const uint8_t> file);

// What libl3 says, with the tile where there is one.
formats::Error to_error(const l3_error& error);
// The same of a file, with the name of a model that is missing.
formats::Error to_error(const l3_error& error, std::span<const uint8_t> file);

}  // namespace bridge
