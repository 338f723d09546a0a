// SHA-256 (FIPS 180-4) of bytes that come in parts.
#pragma once

#include <cstddef>
#include <cstdint>

namespace l3 {

class Sha256 {
 public:
  static constexpr size_t kBytes = 32;

  Sha256();
  void update(const uint8_t* data, uint64_t size);
  // Writes the digest. The object must not be used afterwards.
  void finish(uint8_t* digest);

 private:
  void compress(const uint8_t* block);

  uint32_t state_[8];
  uint8_t block_[64];
  uint64_t total_ = 0;
};

}  // namespace l3
