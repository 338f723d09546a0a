// The check of shards (spec/shard.md, section 1).
#pragma once

#include <cstdint>
#include <span>

namespace loader {

// CRC-32 of ISO-HDLC, of `bytes` behind those whose CRC is `before`.
uint32_t crc32(std::span<const uint8_t> bytes, uint32_t before = 0);

}  // namespace loader
