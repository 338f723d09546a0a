// The metadata section (section 4): records, packed with Zstandard.
#pragma once

#include "container.h"

namespace l3 {

constexpr uint32_t kRecordHeaderBytes = 12;
constexpr uint32_t kMinMetadataBytes = 4 + 9;  // a Zstandard frame has at least nine

// Whether these bytes are a sequence of records, at least one.
bool are_records(const uint8_t* bytes, size_t size);

// The most that pack_metadata writes.
uint64_t metadata_bound(size_t size);

// Packs records to the contents of a metadata section. Gives its size, or 0 where memory is short.
size_t pack_metadata(const uint8_t* records, size_t size, uint8_t* out, size_t out_size);

// Unpacks a section whose check matches, and verifies its contents. `out` may be null: then nothing is written.
Verdict unpack_metadata(const uint8_t* data, const Section& section, uint64_t maximum, uint8_t* out, size_t out_size);

}  // namespace l3
