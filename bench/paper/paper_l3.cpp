#include "paper_l3.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

namespace paper {
namespace {

// Eight deltas of b bits take b bytes, and begin in the middle of a byte.
constexpr uint32_t kGroup = 8;
constexpr uint32_t kRowRoom = kMaxRowBytes + 8;  // of words that begin in the row's last bytes

uint32_t row_bytes(uint32_t columns, uint32_t bits) { return (kRowHeadBits + columns * bits + 7) / 8; }

uint32_t load_u16(const uint8_t* p) { return p[0] | static_cast<uint32_t>(p[1]) << 8; }
uint32_t load_u32(const uint8_t* p) { return load_u16(p) | load_u16(p + 2) << 16; }
uint64_t load_u64(const uint8_t* p) { return load_u32(p) | static_cast<uint64_t>(load_u32(p + 4)) << 32; }
void store(uint8_t* p, uint64_t v, uint32_t bytes) {
  for (uint32_t i = 0; i < bytes; ++i) p[i] = static_cast<uint8_t>(v >> (8 * i));
}

// Numbers of 16 bits, which compilers know how to compare side by side on every processor.
using Columns = std::array<int16_t, kPatchEdge>;

// What is expected below a row. Next to NW + NE - N is N where it lies in the middle third between the others, and
// otherwise the farther one of them. All columns are worked on, whether the patch has them or not: then loops have a
// fixed length.
Columns predict(const Columns& above, uint32_t columns) {
  std::array<int16_t, 1 + kPatchEdge + 1> n{};
  std::copy(above.begin(), above.end(), n.begin() + 1);
  Columns result;
  for (uint32_t x = 0; x < kPatchEdge; ++x) {
    const int16_t low = std::min(n[x], n[x + 2]), high = std::max(n[x], n[x + 2]), middle = n[x + 1];
    const int16_t three = static_cast<int16_t>(3 * middle);
    const bool too_low = three < static_cast<int16_t>(2 * low + high);
    const bool too_high = three > static_cast<int16_t>(low + 2 * high);
    const int16_t not_high = too_high ? low : middle;
    result[x] = too_low ? high : not_high;
  }
  result[0] = above[0];
  result[columns - 1] = above[columns - 1];
  return result;
}

// Writes a row of residuals; returns how many bytes it took.
uint32_t encode_row(std::array<uint8_t, kPatchEdge>& residuals, uint32_t columns, uint8_t* out) {
  // Residuals are numbers modulo 256, and lie close to each other either as signed or as unsigned ones.
  uint8_t minimum[2] = {UINT8_MAX, UINT8_MAX}, maximum[2] = {0, 0};
  for (uint32_t k = 0; k < 2; ++k) {
    for (uint32_t x = 0; x < columns; ++x) {
      const uint8_t r = static_cast<uint8_t>(residuals[x] ^ (k << 7));
      minimum[k] = std::min(minimum[k], r);
      maximum[k] = std::max(maximum[k], r);
    }
  }
  const uint32_t chosen = maximum[1] - minimum[1] < maximum[0] - minimum[0] ? 1 : 0;
  const uint32_t base = minimum[chosen] ^ (chosen << 7);
  const uint32_t bits = static_cast<uint32_t>(std::bit_width(static_cast<uint32_t>(maximum[chosen] - minimum[chosen])));

  uint8_t row[kRowRoom] = {static_cast<uint8_t>(bits | base << 4), static_cast<uint8_t>(base >> 4)};
  std::fill(residuals.begin() + columns, residuals.end(), static_cast<uint8_t>(base));
  for (uint32_t group = 0; group * kGroup < columns; ++group) {
    uint64_t deltas = 0;
    for (uint32_t k = 0; k < kGroup; ++k) {
      deltas |= uint64_t{static_cast<uint8_t>(residuals[group * kGroup + k] - base)} << (k * bits);
    }
    uint8_t* const at = row + 1 + group * bits;
    store(at, load_u64(at) | deltas << 4, 8);
    at[8] = static_cast<uint8_t>(deltas >> 60);
  }
  std::memcpy(out, row, row_bytes(columns, bits));
  return row_bytes(columns, bits);
}

// Reads the deltas of a row.
void read_deltas(const uint8_t* from, uint32_t bytes, uint32_t bits, uint8_t* deltas) {
  uint8_t row[kRowRoom] = {};
  std::memcpy(row, from, bytes);
  const uint64_t mask = (1u << bits) - 1;
  for (uint32_t group = 0; group < kPatchEdge / kGroup; ++group) {
    const uint8_t* const at = row + 1 + group * bits;
    const uint64_t eight = load_u64(at) >> 4 | uint64_t{at[8]} << 60;
    for (uint32_t k = 0; k < kGroup; ++k) deltas[group * kGroup + k] = static_cast<uint8_t>(eight >> (k * bits) & mask);
  }
}

// Where a patch lies in the samples of an image.
struct Place {
  Place(const Shape& shape, uint64_t patch)
      : columns(std::min(kPatchEdge, shape.width - static_cast<uint32_t>(patch % shape.across()) * kPatchEdge)),
        rows(std::min(kPatchEdge, shape.height - static_cast<uint32_t>(patch / shape.across()) * kPatchEdge)),
        stride(size_t{shape.width} * shape.channels),
        start(patch / shape.across() * kPatchEdge * stride + patch % shape.across() * kPatchEdge * shape.channels) {}

  uint32_t columns, rows;
  size_t stride, start;
};

// Writes a channel of a patch, whose first sample is `samples`; returns how many bytes it took.
template <uint32_t kChannels>
uint32_t encode_channel(const Place& place, const uint8_t* samples, uint8_t* out) {
  uint8_t* const begin = out;
  Columns above{};
  for (uint32_t y = 0; y < place.rows; ++y) {
    Columns row{};
    for (uint32_t x = 0; x < place.columns; ++x) row[x] = samples[y * place.stride + x * kChannels];
    const Columns prediction = predict(above, place.columns);
    std::array<uint8_t, kPatchEdge> residuals;
    for (uint32_t x = 0; x < kPatchEdge; ++x) residuals[x] = static_cast<uint8_t>(row[x] - prediction[x]);
    out += encode_row(residuals, place.columns, out);
    above = row;
  }
  return static_cast<uint32_t>(out - begin);
}

// Reads a channel of a patch from exactly the bytes `payload`.
template <uint32_t kChannels>
Reason decode_channel(const Place& place, std::span<const uint8_t> payload, uint8_t* samples) {
  Columns row{};
  for (uint32_t y = 0; y < place.rows; ++y) {
    if (payload.size() < 2) return Reason::patch;
    const uint32_t head = load_u16(payload.data());
    const uint32_t bits = head % 16;
    const int base = static_cast<int>(head / 16 % 256);
    if (bits > kMaxDeltaBits) return Reason::patch;
    const uint32_t bytes = row_bytes(place.columns, bits);
    if (bytes > payload.size()) return Reason::patch;
    uint8_t deltas[kPatchEdge];
    read_deltas(payload.data(), bytes, bits, deltas);
    const Columns prediction = predict(row, place.columns);
    for (uint32_t x = 0; x < kPatchEdge; ++x) row[x] = static_cast<int16_t>((prediction[x] + base + deltas[x]) & 255);
    for (uint32_t x = 0; x < place.columns; ++x) {
      samples[y * place.stride + x * kChannels] = static_cast<uint8_t>(row[x]);
    }
    payload = payload.subspan(bytes);
  }
  return payload.empty() ? Reason::none : Reason::patch;
}

constexpr decltype(&encode_channel<1>) kEncodeChannel[] = {encode_channel<1>, encode_channel<2>, encode_channel<3>,
                                                           encode_channel<4>};
constexpr decltype(&decode_channel<1>) kDecodeChannel[] = {decode_channel<1>, decode_channel<2>, decode_channel<3>,
                                                           decode_channel<4>};

bool possible(const Shape& shape) {
  return shape.width >= 1 && shape.width <= kMaxEdge && shape.height >= 1 && shape.height <= kMaxEdge &&
         shape.channels >= 1 && shape.channels <= kMaxChannels;
}

}  // namespace

const char* text(Reason reason) {
  switch (reason) {
    case Reason::none: return "no error";
    case Reason::head: return "not a file of the paper's scheme, or an unsupported image shape";
    case Reason::sizes: return "the sizes of the patches do not match the file";
    case Reason::patch: return "the rows of a patch are damaged";
  }
  return "unknown";
}

uint64_t encode_bound(const Shape& shape) {
  if (!possible(shape)) return 0;
  const uint64_t maximum =
      shape.payload_start() + shape.patches() * shape.channels * (kPatchEdge * kMaxRowBytes) + kUnit;
  return maximum <= kMaxFileBytes ? maximum : 0;
}

uint64_t encode(const Shape& shape, const uint8_t* pixels, uint8_t* file) {
  std::memset(file, 0, kHeadBytes);
  std::memcpy(file, kMagic, sizeof kMagic);
  store(file + 4, shape.width, 4);
  store(file + 8, shape.height, 4);
  file[12] = static_cast<uint8_t>(shape.channels);
  uint8_t* size = file + kHeadBytes;
  uint8_t* out = file + shape.payload_start();
  for (uint64_t patch = 0; patch < shape.patches(); ++patch) {
    const Place place(shape, patch);
    for (uint32_t c = 0; c < shape.channels; ++c, size += 2) {
      const uint32_t bytes = kEncodeChannel[shape.channels - 1](place, pixels + place.start + c, out);
      store(size, bytes, 2);
      out += bytes;
    }
  }
  while ((out - file) % kUnit != 0) *out++ = 0;
  return static_cast<uint64_t>(out - file);
}

Reason read_head(std::span<const uint8_t> file, Shape& shape) {
  if (file.size() < kHeadBytes || std::memcmp(file.data(), kMagic, sizeof kMagic) != 0) return Reason::head;
  shape = {load_u32(&file[4]), load_u32(&file[8]), file[12]};
  if (!possible(shape) || file[13] != 0 || file[14] != 0 || file[15] != 0) return Reason::head;
  if (file.size() > kMaxFileBytes || file.size() < shape.payload_start()) return Reason::sizes;
  uint64_t bytes = shape.payload_start();
  for (uint64_t i = 0; i < shape.patches() * shape.channels; ++i) bytes += load_u16(&file[kHeadBytes + 2 * i]);
  return (bytes + kUnit - 1) / kUnit * kUnit == file.size() ? Reason::none : Reason::sizes;
}

Reason decode(std::span<const uint8_t> file, const Shape& shape, uint8_t* pixels) {
  const uint8_t* size = &file[kHeadBytes];
  uint64_t at = shape.payload_start();
  for (uint64_t patch = 0; patch < shape.patches(); ++patch) {
    const Place place(shape, patch);
    for (uint32_t c = 0; c < shape.channels; ++c, size += 2) {
      const uint32_t bytes = load_u16(size);
      const Reason reason =
          kDecodeChannel[shape.channels - 1](place, file.subspan(at, bytes), pixels + place.start + c);
      if (reason != Reason::none) return reason;
      at += bytes;
    }
  }
  return Reason::none;
}

}  // namespace paper
