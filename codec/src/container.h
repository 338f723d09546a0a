// Head, sections and index of a file (sections 2 to 5), read in place.
#pragma once

#include "container_rules.h"
#include "model.h"
#include "target.h"

namespace l3 {

// The numbers of a limits structure, with defaults for null and zero.
l3_limits with_defaults(const l3_limits* limits);

// Reads and verifies the head. `size` may be less than the file's.
Verdict read_head(const uint8_t* data, uint64_t size, const Target& target, const l3_limits& limits, Head& head);

// Verifies the index, the sections that are not aside, the model, and that the file ends where it should. `model` is
// filled where there is one. Without `supplied` a named one is not looked for.
Verdict check_container(const uint8_t* data, uint64_t size, const Target& target, const Head& head,
                        const SuppliedModels* supplied, FileModel& model);

// Verifies the index, and that the payloads of which it tells end with the file. `data_size` bytes of it are there.
Verdict check_index(const uint8_t* data, uint64_t data_size, uint64_t size, const Target& target, const Head& head);

// Verifies check and padding of one section.
Verdict check_section(const uint8_t* data, uint64_t size, const Target& target, const Section& section);

// The digest of a file (section 9). `payload_start` bytes of it are read.
void digest_of(const uint8_t* data, uint64_t payload_start, uint8_t* digest);

}  // namespace l3
