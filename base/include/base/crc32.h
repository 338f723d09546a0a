// The check of shards (spec/shard.md, section 1) and of the journal of a conversion.
#pragma once

#include <cstdint>
#include <span>

namespace base {

// Returns the CRC-32 (ISO-HDLC) of `bytes`. `before` is the CRC of the bytes before them.
uint32_t crc32(std::span<const uint8_t> bytes, uint32_t before = 0);

}  // namespace base
