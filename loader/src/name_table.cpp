#include "name_table.h"

#include <sys/random.h>

#include <bit>
#include <chrono>
#include <cstring>

namespace loader {
namespace {

constexpr uint32_t kNumberBits = 40;
constexpr uint64_t kNumberMask = (uint64_t{1} << kNumberBits) - 1;

uint64_t slots_for(uint64_t maximum) { return std::bit_ceil(maximum * 2 + 2); }

// Folds both halves of a 128-bit product.
uint64_t mix(uint64_t a, uint64_t b) {
  const uint64_t low_a = a & UINT32_MAX, high_a = a >> 32, low_b = b & UINT32_MAX, high_b = b >> 32;
  const uint64_t low = low_a * low_b, high = high_a * high_b;
  const uint64_t middle = low_a * high_b + (low >> 32), other = high_a * low_b + (middle & UINT32_MAX);
  return (low & UINT32_MAX) ^ other << 32 ^ (high + (middle >> 32) + (other >> 32));
}

}  // namespace

uint64_t NameTable::bytes_for(uint64_t maximum) { return slots_for(maximum) * sizeof(uint64_t); }

NameTable::NameTable(uint64_t maximum) : slots_(slots_for(maximum)) {
  if (getrandom(secret_, sizeof secret_, GRND_NONBLOCK) != static_cast<ssize_t>(sizeof secret_)) {
    secret_[0] = static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
    secret_[1] = reinterpret_cast<uintptr_t>(this) * 0x9E3779B97F4A7C15;
  }
}

uint64_t NameTable::hash(std::string_view name) const {
  uint64_t state = secret_[0] ^ name.size();
  while (!name.empty()) {
    uint64_t word = 0;
    const size_t size = name.size() < 8 ? name.size() : 8;
    std::memcpy(&word, name.data(), size);
    name.remove_prefix(size);
    state = mix(state ^ word, secret_[1] | 1);
  }
  return mix(state, 0x9E3779B97F4A7C15);
}

uint64_t NameTable::slot_of(std::string_view name, const NameOf& name_of) const {
  const uint64_t hashed = hash(name), mask = slots_.size() - 1;
  for (uint64_t slot = hashed & mask;; slot = (slot + 1) & mask) {
    if (slots_[slot] == 0) return slot;
    const uint64_t held = slots_[slot] - 1;
    if (held >> kNumberBits == hashed >> kNumberBits && name_of(held & kNumberMask) == name) return slot;
  }
}

bool NameTable::add(std::string_view name, uint64_t number, const NameOf& name_of, uint64_t& other) {
  const uint64_t slot = slot_of(name, name_of);
  if (slots_[slot] != 0) {
    other = (slots_[slot] - 1) & kNumberMask;
    return false;
  }
  slots_[slot] = ((hash(name) & ~kNumberMask) | number) + 1;
  return true;
}

uint64_t NameTable::find(std::string_view name, const NameOf& name_of) const {
  const uint64_t slot = slot_of(name, name_of);
  return slots_[slot] == 0 ? UINT64_MAX : (slots_[slot] - 1) & kNumberMask;
}

}  // namespace loader
