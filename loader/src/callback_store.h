// The store of a caller, who implements it with the callbacks of l3_data.h.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "l3/l3_data.h"
#include "loader/store.h"

namespace loader {

// Releases the caller's context at its end.
class CallerStore {
 public:
  explicit CallerStore(const l3_store& store) : store_(store) {}
  CallerStore(CallerStore&& other) noexcept : store_(std::exchange(other.store_, l3_store{})) {}
  CallerStore& operator=(CallerStore&&) = delete;
  ~CallerStore() { release(); }

  void forget() { store_.release = nullptr; }
  const l3_store& operator*() const { return store_; }
  void release() {
    if (const auto call = std::exchange(store_.release, nullptr)) call(store_.context);
  }

 private:
  l3_store store_;
};

// Of the options only the timeout and the number of connections count, and neither may be 0.
std::shared_ptr<Store> make_callback_store(CallerStore store, const std::string& name, const StoreOptions& options);

// What a caller says about an error, fit for messages: one short line, and without secrets in URLs.
std::string cleaned_reason(std::string_view text);

}  // namespace loader
