#include "bridge/image_bridge.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <map>
#include <string>
#include <utility>

#include "base/hex.h"
#include "base/little_endian.h"
#include "l3/l3.hpp"

namespace bridge {
namespace {

using formats::Chunk;
using formats::Colour;
using formats::Error;
using formats::Image;
using formats::Result;
using Bytes = std::span<const uint8_t>;

// The parts of the colour space section, in the order of their bits in its first byte: the chunk of each part, and the
// sizes of the part and of its numbers. Numbers are big-endian in PNG and little-endian in L3.
struct ColourPart {
  std::array<char, 4> type;
  size_t bytes;
  size_t number_bytes;
};

constexpr std::array<ColourPart, 4> kColourParts = {{{{'c', 'I', 'C', 'P'}, 4, 1},
                                                     {{'g', 'A', 'M', 'A'}, 4, 4},
                                                     {{'s', 'R', 'G', 'B'}, 1, 1},
                                                     {{'c', 'H', 'R', 'M'}, 32, 4}}};

constexpr std::array<char, 4> kIccType = {'i', 'C', 'C', 'P'};
constexpr std::array<char, 4> kExifType = {'e', 'X', 'I', 'f'};

constexpr size_t kRecordHeaderBytes = 12;

// Copies numbers of `number_bytes` bytes and reverses the byte order of each.
void copy_reversed(Bytes from, size_t number_bytes, uint8_t* to) {
  for (size_t i = 0; i < from.size(); i += number_bytes) {
    for (size_t k = 0; k < number_bytes; ++k) to[i + k] = from[i + number_bytes - 1 - k];
  }
}

// Makes the section from the parts that exist; their order is that of kColourParts. Empty if there are none.
std::vector<uint8_t> colour_space_of(const std::array<Bytes, kColourParts.size()>& chunks) {
  std::vector<uint8_t> section(1);
  for (size_t i = 0; i < kColourParts.size(); ++i) {
    if (chunks[i].empty()) continue;
    section[0] = static_cast<uint8_t>(section[0] | 1U << i);
    section.resize(section.size() + kColourParts[i].bytes);
    copy_reversed(chunks[i], kColourParts[i].number_bytes, section.data() + section.size() - kColourParts[i].bytes);
  }
  if (section[0] == 0) section.clear();
  return section;
}

std::vector<uint8_t> reversed(Bytes from, size_t number_bytes) {
  std::vector<uint8_t> to(from.size());
  copy_reversed(from, number_bytes, to.data());
  return to;
}

const ColourPart* colour_part_for(const Chunk& chunk) {
  for (const ColourPart& part : kColourParts) {
    if (chunk.type == part.type) {
      return chunk.data.size() == part.bytes && chunk.place == formats::kBeforePalette ? &part : nullptr;
    }
  }
  return nullptr;
}

// Counts how often each type occurs. A hostile file can have very many chunks, so this must not search them for each
// one.
std::map<std::array<char, 4>, size_t> count_types(const std::vector<Chunk>& chunks) {
  std::map<std::array<char, 4>, size_t> counts;
  for (const Chunk& chunk : chunks) ++counts[chunk.type];
  return counts;
}

void append_record(const Chunk& chunk, std::vector<uint8_t>& metadata) {
  std::array<uint8_t, kRecordHeaderBytes> header{};
  std::memcpy(header.data(), chunk.type.data(), chunk.type.size());
  header[4] = chunk.place;
  base::store(header.data() + 8, static_cast<uint32_t>(chunk.data.size()));
  metadata.insert(metadata.end(), header.begin(), header.end());
  metadata.insert(metadata.end(), chunk.data.begin(), chunk.data.end());
}

struct ColourNames {
  Colour image;
  l3_colour l3;
  l3_alpha alpha;
};

constexpr std::array<ColourNames, 5> kColours = {{{Colour::gray, L3_COLOUR_GRAY, L3_ALPHA_NONE},
                                                  {Colour::gray_alpha, L3_COLOUR_GRAY_ALPHA, L3_ALPHA_STRAIGHT},
                                                  {Colour::rgb, L3_COLOUR_RGB, L3_ALPHA_NONE},
                                                  {Colour::rgb_alpha, L3_COLOUR_RGB_ALPHA, L3_ALPHA_STRAIGHT},
                                                  {Colour::palette, L3_COLOUR_PALETTE, L3_ALPHA_NONE}}};

ColourNames names_of(Colour colour) {
  return *std::find_if(kColours.begin(), kColours.end(), [&](const ColourNames& n) { return n.image == colour; });
}

Colour colour_of(uint32_t colour) {
  return std::find_if(kColours.begin(), kColours.end(),
                      [&](const ColourNames& n) { return static_cast<uint32_t>(n.l3) == colour; })
      ->image;
}

// Reads the palette and the transparency, which tell what the samples mean.
std::optional<Error> read_colours(const l3::File& file, Image& image) {
  l3::Result<std::vector<uint8_t>> palette = file.palette();
  if (!palette) return to_error(palette.error());
  const l3::Result<Bytes> transparency = file.section(L3_SECTION_TRANSPARENCY);
  if (!transparency) return to_error(transparency.error());
  image.palette = std::move(*palette);
  image.transparency = reversed(*transparency, image.colour == Colour::palette ? 1 : 2);
  return std::nullopt;
}

// Reads the chunks of the sections for the colour space, the ICC profile and EXIF.
std::optional<Error> read_section_chunks(const l3::File& file, std::vector<Chunk>& chunks) {
  const l3::Result<Bytes> colour_space = file.section(L3_SECTION_COLOUR_SPACE);
  if (!colour_space) return to_error(colour_space.error());
  size_t at = 1;
  for (size_t i = 0; i < kColourParts.size(); ++i) {
    const ColourPart& part = kColourParts[i];
    // Opening the file verified the section, but its bytes may have changed since.
    if (colour_space->size() < at + part.bytes || ((*colour_space)[0] >> i & 1) == 0) continue;
    chunks.push_back(
        Chunk{part.type, formats::kBeforePalette, reversed(colour_space->subspan(at, part.bytes), part.number_bytes)});
    at += part.bytes;
  }
  for (const auto& [section, type] : {std::pair(L3_SECTION_ICC, kIccType), std::pair(L3_SECTION_EXIF, kExifType)}) {
    const l3::Result<Bytes> bytes = file.section(section);
    if (!bytes) return to_error(bytes.error());
    if (!bytes->empty()) {
      chunks.push_back(Chunk{type, formats::kBeforePalette, std::vector<uint8_t>(bytes->begin(), bytes->end())});
    }
  }
  return std::nullopt;
}

}  // namespace

Error to_error(const l3_error& error) {
  std::string reason = error.reason;
  if (error.tile != L3_NO_TILE) reason += " (tile " + std::to_string(error.tile) + ")";
  return {error.offset, std::move(reason)};
}

Error to_error(const l3_error& error, const l3::File& file) {
  Error result = to_error(error);
  l3_info info = l3_info_init();
  if (error.status != L3_ERROR_MODEL || l3_file_info(file.get(), &info, nullptr) != L3_OK) return result;
  result.reason += ": " + base::hexadecimal(info.model_name);
  return result;
}

formats::ReadOptions read_options(const l3_limits& limits) {
  formats::ReadOptions options;
  if (limits.max_pixels != 0) options.max_pixels = limits.max_pixels;
  if (limits.max_output_bytes != 0) options.max_bytes = limits.max_output_bytes;
  options.max_chunk_bytes = limits.max_metadata_bytes != 0 ? limits.max_metadata_bytes : L3_DEFAULT_MAX_METADATA_BYTES;
  return options;
}

L3Image::L3Image(const Image& image) {
  const ColourNames names = names_of(image.colour);
  image_.width = image.width;
  image_.height = image.height;
  image_.bits = image.bits;
  image_.colour = names.l3;
  image_.alpha = names.alpha;
  image_.pixels = image.pixels.data();
  if (!image.palette.empty()) {
    image_.palette = image.palette.data();
    image_.palette_entries = static_cast<uint32_t>(image.palette.size() / 3);
  }
  if (!image.transparency.empty()) {
    transparency_ = reversed(image.transparency, image.colour == Colour::palette ? 1 : 2);
    image_.transparency = transparency_.data();
    image_.transparency_size = static_cast<uint32_t>(transparency_.size());
  }
  take_chunks(image.chunks);
}

void L3Image::take_chunks(const std::vector<Chunk>& chunks) {
  const std::map<std::array<char, 4>, size_t> counts = count_types(chunks);
  std::array<Bytes, kColourParts.size()> colour_chunks;
  for (const Chunk& chunk : chunks) {
    if (!chunk.data.empty() && counts.at(chunk.type) == 1) {
      if (const ColourPart* part = colour_part_for(chunk)) {
        colour_chunks[static_cast<size_t>(part - kColourParts.data())] = chunk.data;
        continue;
      }
      if (chunk.type == kIccType && chunk.place == formats::kBeforePalette) {
        image_.icc = chunk.data.data();
        image_.icc_size = chunk.data.size();
        continue;
      }
      if (chunk.type == kExifType) {
        image_.exif = chunk.data.data();
        image_.exif_size = chunk.data.size();
        continue;
      }
    }
    append_record(chunk, metadata_);
  }
  colour_space_ = colour_space_of(colour_chunks);
  if (!colour_space_.empty()) image_.colour_space = colour_space_.data();
  if (!metadata_.empty()) {
    image_.metadata = metadata_.data();
    image_.metadata_size = metadata_.size();
  }
}

const l3_model* model_for(std::span<const l3_model* const> models, uint32_t channels, uint32_t bits) {
  for (const l3_model* model : models) {
    l3_model_info info = l3_model_info_init();
    if (l3_describe_model(model, &info, nullptr) == L3_OK && info.channels == channels && info.bits == bits)
      return model;
  }
  return nullptr;
}

std::optional<Error> encode_l3(const Image& image, const l3_encode_options& options, Buffer& file) {
  const L3Image source(image);
  const uint64_t bound = l3_encode_bound(&source.get(), &options);
  if (bound > SIZE_MAX) return Error{0, "the image is too large for this machine"};
  // If there is no bound, l3_encode is called nevertheless, because it returns the reason.
  uint8_t* out = file.reset(std::max<size_t>(static_cast<size_t>(bound), 1));
  size_t written = 0;
  l3_error error{};
  const l3_status status = l3_encode(&source.get(), &options, out, static_cast<size_t>(bound), &written, &error);
  file.truncate(status == L3_OK ? written : 0);
  if (status == L3_OK) return std::nullopt;
  return to_error(error);
}

std::optional<Error> decode_l3(const l3::File& file, const DecodeSettings& settings, Image& image,
                               std::optional<Error>* metadata_error) {
  metadata_error->reset();
  const l3_info& info = file.info();
  const Region region = settings.region.value_or(Region{0, 0, info.width, info.height});
  const auto decode = [&](uint8_t* out, size_t size, l3_error& error) {
    return l3_file_decode_region(file.get(), region.x, region.y, region.width, region.height, out, size, 0, &error);
  };
  // Without room for pixels the call verifies the region and the limits. Nothing is allocated before that.
  uint8_t none = 0;
  l3_error error{};
  if (decode(&none, 0, error) != L3_ERROR_BUFFER) return to_error(error, file);

  const size_t pixel_bytes = file.pixel_bytes();
  const bool became_colours = info.colour == L3_COLOUR_PALETTE && pixel_bytes > 1;
  image.width = region.width;
  image.height = region.height;
  image.bits = became_colours ? 8 : info.bits;
  image.colour = became_colours ? (pixel_bytes == 4 ? Colour::rgb_alpha : Colour::rgb) : colour_of(info.colour);
  image.palette.clear();
  image.transparency.clear();
  image.chunks.clear();
  image.pixels.resize(size_t{region.width} * region.height * pixel_bytes);

  if (settings.decoder) {
    error = settings.decoder(file, region, image.pixels);
  } else {
    (void)!decode(image.pixels.data(), image.pixels.size(), error);
  }
  if (error.status != L3_OK) return to_error(error, file);
  if (!became_colours) {
    if (std::optional<Error> problem = read_colours(file, image)) return problem;
  }
  if (std::optional<Error> problem = read_section_chunks(file, image.chunks)) return problem;
  Result<std::vector<Chunk>> records = read_metadata(file);
  if (!records) {
    *metadata_error = records.error();
  } else {
    image.chunks.insert(image.chunks.end(), std::make_move_iterator(records->begin()),
                        std::make_move_iterator(records->end()));
  }
  return std::nullopt;
}

std::optional<Error> decode_l3(const l3::File& file, Image& image) {
  std::optional<Error> metadata_error;
  if (auto error = decode_l3(file, {}, image, &metadata_error)) return error;
  return metadata_error;
}

std::optional<Error> decode_l3(Bytes file, const l3_decode_options& options, Image& image) {
  const l3::Result<l3::File> opened = l3::File::open_for_pixels(file, options);
  if (!opened) return to_error(opened.error());
  return decode_l3(*opened, image);
}

Result<std::vector<Chunk>> read_metadata(const l3::File& file) {
  const l3::Result<Bytes> section = file.section(L3_SECTION_METADATA);
  if (!section) return to_error(section.error());
  const l3::Result<std::vector<uint8_t>> unpacked = file.metadata();
  if (!unpacked) return to_error(unpacked.error());
  const Error damaged{static_cast<uint64_t>(section->data() - file.bytes().data()),
                      "the records of the metadata are damaged"};
  std::vector<Chunk> chunks;
  for (Bytes left = *unpacked; !left.empty();) {
    if (left.size() < kRecordHeaderBytes) return damaged;
    const uint32_t length = base::load_u32(left.data() + 8);
    if (length > left.size() - kRecordHeaderBytes) return damaged;
    Chunk& chunk = chunks.emplace_back();
    std::memcpy(chunk.type.data(), left.data(), chunk.type.size());
    chunk.place = left[4];
    const Bytes data = left.subspan(kRecordHeaderBytes, length);
    chunk.data.assign(data.begin(), data.end());
    left = left.subspan(kRecordHeaderBytes + length);
  }
  return chunks;
}

}  // namespace bridge
