// The bytes of a tar: POSIX ustar, with pax headers for long names and large members. They depend only on the members:
// times, owners and permissions are always the same.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tools {

// What comes before the bytes of a member of this name and size.
std::vector<uint8_t> tar_header(const std::string& name, uint64_t size);

// The number of zeros that come after the bytes of a member.
uint64_t tar_padding(uint64_t size);

// The end mark of a tar of `size` bytes: zeros up to a multiple of 10,240 bytes, as tar writes them.
std::vector<uint8_t> tar_end(uint64_t size);

}  // namespace tools
