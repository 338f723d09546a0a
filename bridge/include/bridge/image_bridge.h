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
#include "l3/l3.hpp"

namespace bridge {

// The longest side of an L3 image.
inline constexpr uint32_t kMaxEdge = uint32_t{1} << 20;

// The limits for reading an image that becomes an L3 file. For those that are 0, the usual ones of formats/ and libl3.
formats::ReadOptions read_options(const l3_limits& limits);

// Finds the model for images with this number of channels and bits. Null if there is none.
const l3_model* model_for(std::span<const l3_model* const> models, uint32_t channels, uint32_t bits);

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

// Decodes a region of an opened file, for example on a GPU. Fills `out` with rows without padding, or returns an error.
using RegionDecoder = std::function<l3_error(const l3::File& file, const Region& region, std::span<uint8_t> out)>;

struct DecodeSettings {
  std::optional<Region> region;  // instead of the whole image; must be inside it
  RegionDecoder decoder;         // used instead of libl3
};

// Decodes an opened file to `image`, and uses the memory of its pixels again. If the metadata is damaged, its chunks
// are left out and *metadata_error is set; else *metadata_error is empty. Premultiplied alpha is returned as it is,
// because an Image cannot describe it.
std::optional<formats::Error> decode_l3(const l3::File& file, const DecodeSettings& settings, formats::Image& image,
                                        std::optional<formats::Error>* metadata_error);
// Decodes the whole image. Damaged metadata is an error.
std::optional<formats::Error> decode_l3(const l3::File& file, formats::Image& image);
// Opens a file and decodes the whole image. Damaged metadata is an error.
std::optional<formats::Error> decode_l3(std::span<const uint8_t> file, const l3_decode_options& options,
                                        formats::Image& image);

// Returns a chunk for each record of the metadata section. Empty if there is no such section.
formats::Result<std::vector<formats::Chunk>> read_metadata(const l3::File& file);

// Converts an error of libl3. The reason includes the number of the tile, if any.
formats::Error to_error(const l3_error& error);
// The same for an error of an opened file. The reason also includes the name of a missing model.
formats::Error to_error(const l3_error& error, const l3::File& file);

}  // namespace bridge
