// Names of samples, found in constant time.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

namespace loader {

// Numbers of things, by names that the things keep themselves. Names may be hostile: the hash has a secret.
class NameTable {
 public:
  // Gives the name of a number.
  using NameOf = std::function<std::string_view(uint64_t number)>;

  explicit NameTable(uint64_t maximum);
  // False where there is one of that name already, whose number `other` becomes then.
  bool add(std::string_view name, uint64_t number, const NameOf& name_of, uint64_t& other);
  // The number, or UINT64_MAX.
  uint64_t find(std::string_view name, const NameOf& name_of) const;

  static uint64_t bytes_for(uint64_t maximum);

 private:
  uint64_t hash(std::string_view name) const;
  // Where the name is, or where it would be.
  uint64_t slot_of(std::string_view name, const NameOf& name_of) const;

  std::vector<uint64_t> slots_;  // a number and, above it, bits of its name's hash, plus 1; 0: empty
  uint64_t secret_[2];
};

}  // namespace loader
