// SHA-256's compression (FIPS 180-4), for processors and GPUs alike.
#pragma once

#include "container/format.h"

namespace l3 {

// The state before the first block.
constexpr uint32_t kSha256Words = 8;
L3_INLINE void start_sha256(uint32_t* state) {
  constexpr uint32_t kStart[kSha256Words] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                             0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  for (uint32_t i = 0; i < kSha256Words; ++i) state[i] = kStart[i];
}

// The first 32 bits of the fractional parts of the cube roots of the first 64 primes.
L3_INLINE const uint32_t* sha256_constants() {
  static constexpr uint32_t kConstants[64] = {
      0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
      0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
      0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
      0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
      0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
      0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
      0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
      0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};
  return kConstants;
}

// Adds a block to the state. `w` has 64 words; the first 16 are the block, and the others are overwritten.
L3_INLINE void add_sha256_block(uint32_t* state, uint32_t* w) {
  const uint32_t* const constants = sha256_constants();
  const auto rotated = [](uint32_t v, uint32_t by) { return v >> by | v << (32 - by); };
  for (uint32_t i = 16; i < 64; ++i) {
    const uint32_t s0 = rotated(w[i - 15], 7) ^ rotated(w[i - 15], 18) ^ w[i - 15] >> 3;
    const uint32_t s1 = rotated(w[i - 2], 17) ^ rotated(w[i - 2], 19) ^ w[i - 2] >> 10;
    w[i] = w[i - 16] + s0 + w[i - 7] + s1;
  }
  uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
  uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
  for (uint32_t i = 0; i < 64; ++i) {
    const uint32_t s1 = rotated(e, 6) ^ rotated(e, 11) ^ rotated(e, 25);
    const uint32_t t1 = h + s1 + ((e & f) ^ (~e & g)) + constants[i] + w[i];
    const uint32_t s0 = rotated(a, 2) ^ rotated(a, 13) ^ rotated(a, 22);
    const uint32_t t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
    h = g;
    g = f;
    f = e;
    e = d + t1;
    d = c;
    c = b;
    b = a;
    a = t1 + t2;
  }
  const uint32_t added[kSha256Words] = {a, b, c, d, e, f, g, h};
  for (uint32_t i = 0; i < kSha256Words; ++i) state[i] += added[i];
}

}  // namespace l3
