// Fills an l3_data_error.
#pragma once

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>

#include "l3/l3_data.h"
#include "loader/store.h"
#include "shard_index.h"

namespace loader {

// Copies as much as fits, and adds a zero byte.
template <size_t kSize>
void copy_text(char (&to)[kSize], std::string_view text) {
  const size_t size = std::min(text.size(), kSize - 1);
  if (size > 0) std::memcpy(to, text.data(), size);
  to[size] = 0;
}

inline l3_status fail(l3_data_error* error, l3_status status, std::string_view file, std::string_view reason,
                      uint64_t offset = L3_DATA_NONE, int system_error = 0) {
  if (error == nullptr) return status;
  error->status = status;
  error->system_error = system_error;
  error->offset = offset;
  copy_text(error->file, file);
  copy_text(error->reason, reason);
  return status;
}

inline l3_status fail(l3_data_error* error, std::string_view file, const Fault& fault) {
  return fail(error, fault.status, file, fault.reason, fault.offset);
}

inline l3_status fail(l3_data_error* error, std::string_view file, const StoreFault& fault) {
  return fail(error, fault.status, file, fault.reason, fault.offset, fault.system_error);
}

inline l3_status succeed(l3_data_error* error) {
  if (error != nullptr) *error = l3_data_error{};
  return L3_OK;
}

}  // namespace loader
