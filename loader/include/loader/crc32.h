// The check of shards (spec/shard.md, section 1).
#pragma once

#include <cstdint>
#include <span>

namespace loader {

// Returns the CRC-32 (ISO-HDLC) of `bytes`. `before` is the CRC of the bytes before them.
uint32_t crc32(std::span<const uint8_t> bytes, uint32_t before = 0);

}  // namespace loader
