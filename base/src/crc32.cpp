#include "base/crc32.h"

#include <array>

#include "base/little_endian.h"

namespace base {
namespace {

constexpr size_t kSlices = 8;

// The CRC of each byte followed by 0 to 7 zero bytes. Eight bytes then take eight independent look-ups.
constexpr std::array<std::array<uint32_t, 256>, kSlices> make_tables() {
  constexpr uint32_t kPolynomial = 0xEDB88320;
  std::array<std::array<uint32_t, 256>, kSlices> tables{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = value >> 1 ^ (value & 1) * kPolynomial;
    tables[0][i] = value;
  }
  for (size_t slice = 1; slice < kSlices; ++slice) {
    for (uint32_t i = 0; i < 256; ++i) {
      const uint32_t before = tables[slice - 1][i];
      tables[slice][i] = before >> 8 ^ tables[0][before & 255];
    }
  }
  return tables;
}

constexpr auto kTables = make_tables();

}  // namespace

uint32_t crc32(std::span<const uint8_t> bytes, uint32_t before) {
  uint32_t value = ~before;
  const uint8_t* at = bytes.data();
  size_t left = bytes.size();
  for (; left >= kSlices; at += kSlices, left -= kSlices) {
    const uint32_t low = load_u32(at) ^ value, high = load_u32(at + 4);
    value = 0;
    for (uint32_t i = 0; i < 4; ++i) {
      value ^= kTables[7 - i][low >> 8 * i & 255] ^ kTables[3 - i][high >> 8 * i & 255];
    }
  }
  for (; left > 0; ++at, --left) value = value >> 8 ^ kTables[0][(value ^ *at) & 255];
  return ~value;
}

}  // namespace base
