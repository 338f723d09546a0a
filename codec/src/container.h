// Head, sections and index of a file (sections 2 to 5), read in place.
#pragma once

#include "container_rules.h"
#include "target.h"

namespace l3 {

// The numbers of a limits structure, with defaults for null and zero.
l3_limits with_defaults(const l3_limits* limits);

// Reads and verifies the head. `size` may be less than the file's.
Verdict read_head(const uint8_t* data, uint64_t size, const Target& target, const l3_limits& limits, Head& head);

// Verifies the index, the sections that are not aside, and that the file ends where it should. `model` is filled where
// there is one.
Verdict check_container(const uint8_t* data, uint64_t size, const Target& target, const Head& head, DenseTables& model);

// Verifies check and padding of one section.
Verdict check_section(const uint8_t* data, uint64_t size, const Target& target, const Section& section);

// The digest of a file (section 9). `payload_start` bytes of it are read.
void digest_of(const uint8_t* data, uint64_t payload_start, uint8_t* digest);

}  // namespace l3
