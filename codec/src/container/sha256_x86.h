// SHA-256's compression with the instructions that x86 processors have for it, since Goldmont, Zen and Ice Lake.
#pragma once

#include <cstdint>

namespace l3 {

#if defined(__x86_64__)
bool has_sha256_instructions();
// As add_sha256_block() does, from the bytes of the block.
void add_sha256_block_x86(uint32_t* state, const uint8_t* block);
#endif

}  // namespace l3
