// Reads and verifies a file's head, sections and index in place (sections 2 to 5 of the spec).
#pragma once

#include "container/container_rules.h"
#include "models/model.h"
#include "targets/target.h"

namespace l3 {

// The limits with defaults in place of zeros. `limits` may be null, which means all defaults.
l3_limits with_defaults(const l3_limits* limits);

// Whether an image is within the limits.
Verdict check_limits(const Head& head, const l3_limits& limits);

// Reads and verifies the head. `size` may be less than the size of the file.
Verdict read_head(const uint8_t* data, uint64_t size, const Target& target, Head& head);

// Verifies the check and the padding of the index.
Verdict check_index(const uint8_t* data, uint64_t size, const Target& target, const Head& head);

// Verifies all sections below 0x8000, except for the contents of a model.
Verdict check_sections(const uint8_t* data, uint64_t size, const Target& target, Head& head);

// Verifies the entries of an index whose check is right, and that a file of `file_size` bytes ends where its last
// payload ends. `data` must have the index.
Verdict check_entries(const uint8_t* data, uint64_t file_size, const Head& head);

// Verifies the check and the padding of one section.
Verdict check_section(const uint8_t* data, uint64_t size, const Target& target, const Section& section);

using CheckFunction = uint32_t (*)(const uint8_t* bytes, uint64_t words);

// Computes where index, sections and payloads of a file begin. Sections have types and sizes.
void place_sections(Head& head);

// Writes the head of a file that is not tiny, when sections and index are in their places. `name` is the name of a
// named model.
void write_head(const Head& head, CheckFunction check, const uint8_t* name, uint8_t* out);

// Computes the digest of a file (section 9) from its first `payload_start` bytes.
void digest_of(const uint8_t* data, uint64_t payload_start, uint8_t* digest);

}  // namespace l3
