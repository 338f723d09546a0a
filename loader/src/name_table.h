// Finds samples by name in constant time.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

namespace loader {

// A hash table from names to numbers. It stores no names; a callback returns the name of a number. Because names may be
// hostile, the hash has a secret.
class NameTable {
 public:
  // Returns the name of a number.
  using NameOf = std::function<std::string_view(uint64_t number)>;

  explicit NameTable(uint64_t maximum);
  // Returns false if the name exists already, and sets `other` to its number.
  bool add(std::string_view name, uint64_t number, const NameOf& name_of, uint64_t& other);
  // Returns the number, or UINT64_MAX.
  uint64_t find(std::string_view name, const NameOf& name_of) const;

  static uint64_t bytes_for(uint64_t maximum);

 private:
  uint64_t hash(std::string_view name) const;
  // The slot of the name, or the slot in which it would be inserted.
  uint64_t slot_of(std::string_view name, const NameOf& name_of) const;

  std::vector<uint64_t> slots_;  // a number and, above it, bits of its name's hash, plus 1; 0: empty
  uint64_t secret_[2];
};

}  // namespace loader
