// Reads and verifies a file's head, sections and index in place (sections 2 to 5 of the spec).
#pragma once

#include "container/container_rules.h"
#include "models/model.h"
#include "targets/target.h"

namespace l3 {

// The limits with defaults in place of zeros. `limits` may be null, which means all defaults.
l3_limits with_defaults(const l3_limits* limits);

// Reads and verifies the head. `size` may be less than the size of the file.
Verdict read_head(const uint8_t* data, uint64_t size, const Target& target, const l3_limits& limits, Head& head);

// Verifies the index, the sections below 0x8000, the model, and that the file ends where it should. Fills `model` if
// the file has one. If `supplied` is null, a named model is not looked up.
Verdict check_container(const uint8_t* data, uint64_t size, const Target& target, const Head& head,
                        const SuppliedModels* supplied, FileModel& model);

// Verifies the index, and that a file of `size` bytes ends where its last payload ends. `data` has `data_size` bytes.
Verdict check_index(const uint8_t* data, uint64_t data_size, uint64_t size, const Target& target, const Head& head);

// Verifies the check and the padding of one section.
Verdict check_section(const uint8_t* data, uint64_t size, const Target& target, const Section& section);

// Computes the digest of a file (section 9) from its first `payload_start` bytes.
void digest_of(const uint8_t* data, uint64_t payload_start, uint8_t* digest);

}  // namespace l3
