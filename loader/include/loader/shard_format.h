// The constants of spec/shard.md, for reading and for writing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/little_endian.h"
#include "l3/l3.h"
#include "loader/names.h"

namespace loader {

constexpr uint64_t kAlignment = 64;
constexpr uint64_t kFirstSample = 4096;
constexpr size_t kHeadBytes = 64;
constexpr size_t kFooterBytes = 64;
constexpr size_t kEntryBytes = 80;
constexpr size_t kModelEntryBytes = 8;
constexpr size_t kRoleEntryBytes = 8;
constexpr uint32_t kMaxModels = 1024;
constexpr uint32_t kMaxModelBytes = 1u << 17;
constexpr uint64_t kMaxSampleBytes = uint64_t{1} << 36;
constexpr uint32_t kMaxEdge = 1u << 20;
constexpr uint16_t kNoModel = 65535;
constexpr uint32_t kNoLabel = UINT32_MAX;
enum Kind : uint8_t { kImage = 0, kBytes = 1 };

constexpr uint16_t kShardVersion = 1;  // also of index.json
constexpr std::string_view kHeadSignature("\x8BL3S\r\n\x1A\n", 8);
constexpr std::string_view kFooterSignature("\x8BL3E\r\n\x1A\n", 8);

namespace footer {
constexpr size_t kVersion = 8, kModels = 10, kRoles = 12, kReserved = 14, kIndexOffset = 16, kIndexSize = 24,
                 kEntries = 32, kGroups = 36, kTexts = 40, kIndexCheck = 44, kReserved2 = 48, kCheck = 60;
}

namespace entry {
constexpr size_t kOffset = 0, kSize = 8, kDigest = 16, kCheck = 32, kWidth = 36, kHeight = 40, kChannels = 44,
                 kBits = 46, kColour = 47, kKind = 48, kReserved = 49, kRole = 50, kModel = 52, kNameSize = 54,
                 kName = 56, kMetadata = 60, kMetadataSize = 64, kLabel = 68, kGroup = 72, kReserved2 = 76;
}

constexpr uint64_t padded(uint64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

using base::load_u16, base::load_u32, base::load_u64, base::store;

constexpr uint32_t channels_of(uint32_t colour) { return colour == L3_COLOUR_PALETTE ? 1 : colour + 1; }

}  // namespace loader
