// Implements SHA-256 (FIPS 180-4).
#include "container/sha256.h"

#include <cstring>

#include "container/sha256_block.h"
#include "container/sha256_x86.h"

namespace l3 {
namespace {

uint32_t load_big_endian(const uint8_t* p) {
  return static_cast<uint32_t>(p[0]) << 24 | static_cast<uint32_t>(p[1]) << 16 | static_cast<uint32_t>(p[2]) << 8 |
         p[3];
}

void store_big_endian(uint8_t* p, uint32_t v) {
  for (int i = 0; i < 4; ++i) p[i] = static_cast<uint8_t>(v >> (24 - 8 * i));
}

}  // namespace

Sha256::Sha256() { start_sha256(state_); }

void Sha256::update(const uint8_t* data, uint64_t size) {
  while (size > 0) {
    const uint64_t filled = total_ % sizeof(block_);
    const uint64_t room = sizeof(block_) - filled;
    const uint64_t part = size < room ? size : room;
    std::memcpy(block_ + filled, data, part);
    data += part;
    size -= part;
    total_ += part;
    if (total_ % sizeof(block_) == 0) compress(block_);
  }
}

void Sha256::finish(uint8_t* digest) {
  constexpr uint8_t kEnd[sizeof(block_)] = {0x80};
  const uint64_t bits = total_ * 8, filled = total_ % sizeof(block_), before_length = sizeof(block_) - 8;
  update(kEnd, filled < before_length ? before_length - filled : sizeof(block_) + before_length - filled);
  uint8_t length[8];
  store_big_endian(length, static_cast<uint32_t>(bits >> 32));
  store_big_endian(length + 4, static_cast<uint32_t>(bits));
  update(length, sizeof(length));
  for (int i = 0; i < 8; ++i) store_big_endian(digest + 4 * i, state_[i]);
}

void Sha256::compress(const uint8_t* block) {
#if defined(__x86_64__)
  static const bool has_instructions = has_sha256_instructions();
  if (has_instructions) return add_sha256_block_x86(state_, block);
#endif
  uint32_t words[64];
  for (int i = 0; i < 16; ++i) words[i] = load_big_endian(block + 4 * i);
  add_sha256_block(state_, words);
}

}  // namespace l3
