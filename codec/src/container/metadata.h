// The metadata section (section 4 of the spec): records, packed with Zstandard.
#pragma once

#include "container/container_rules.h"

namespace l3 {

constexpr uint32_t kRecordHeaderBytes = 12;
constexpr uint32_t kMinMetadataBytes = 4 + 9;  // the shortest Zstandard frame has nine bytes

// Whether these bytes are a sequence of one or more records.
bool are_records(const uint8_t* bytes, size_t size);

// An upper bound of what pack_metadata writes.
uint64_t metadata_bound(size_t size);

// Packs records into the contents of a metadata section. Returns the size, or 0 if memory is short.
size_t pack_metadata(const uint8_t* records, size_t size, uint8_t* out, size_t out_size);

// Verifies the contents of a section whose check is right. Writes the unpacked records to `out` unless it is null.
Verdict unpack_metadata(const uint8_t* data, const Section& section, uint64_t maximum, uint8_t* out, size_t out_size);

}  // namespace l3
