// A thin C++20 wrapper of l3_loader.h. Destructors close and release, and errors are returned as values.
#pragma once

#if __cplusplus < 202002L
#error "l3_loader.hpp needs C++20: compile with -std=c++20, or use l3_loader.h, which is C"
#endif

#include <optional>
#include <span>

#include "l3/l3_data.hpp"
#include "l3/l3_loader.h"

namespace l3 {

// A batch. The destructor returns it to the loader for the default stream. If another CUDA stream still uses it, call
// release() with that stream instead, and do not use the batch afterwards.
class Batch {
 public:
  explicit Batch(l3_batch* batch) : batch_(batch) { (void)!l3_batch_describe(batch, &info_); }

  const l3_batch_info& info() const { return info_; }
  const l3_tensor& tensor(uint32_t number = 0) const { return info_.tensors[number]; }
  // One unit of a tensor: needed where images differ in size.
  l3_tensor unit(uint32_t unit, uint32_t number = 0) const {
    l3_tensor tensor{};
    (void)!l3_batch_unit(batch_.get(), number, unit, &tensor);
    return tensor;
  }
  std::span<const int64_t> ids() const { return {info_.ids, info_.units}; }
  std::span<const int64_t> labels() const { return {info_.labels, info_.units}; }
  void release(void* stream) { l3_batch_release(batch_.release(), stream); }

 private:
  struct Release {
    void operator()(l3_batch* batch) const { l3_batch_release(batch, nullptr); }
  };

  std::unique_ptr<l3_batch, Release> batch_;
  l3_batch_info info_ = l3_batch_info_init();
};

// A loader. The data set must outlive it.
class Loader {
 public:
  static DataResult<Loader> open(const DataSet& set, const l3_loader_options& options) {
    l3_loader* loader = nullptr;
    l3_data_error error{};
    if (l3_loader_open(set.get(), &options, &loader, &error) != L3_OK) return error;
    return Loader(loader);
  }

  l3_loader* get() const { return loader_.get(); }

  l3_loader_info info() const {
    l3_loader_info info = l3_loader_info_init();
    (void)!l3_loader_describe(get(), &info);
    return info;
  }
  DataResult<l3_explanation> explain(uint64_t epoch, uint64_t sample) const {
    l3_explanation explanation = l3_explanation_init();
    l3_data_error error{};
    if (l3_loader_explain(get(), epoch, sample, &explanation, &error) != L3_OK) return error;
    return explanation;
  }
  // Moves to a position of an epoch, as l3_loader_start does. Returns the error, or nothing on success.
  std::optional<l3_data_error> start(uint64_t epoch, uint64_t position = 0) {
    l3_data_error error{};
    return l3_loader_start(get(), epoch, position, &error) == L3_OK ? std::nullopt : std::optional(error);
  }
  // Returns the next batch, waiting as long as it takes, or nothing at the end of the epoch.
  DataResult<std::optional<Batch>> next() {
    l3_next next = L3_NEXT_WAITING;
    l3_batch* batch = nullptr;
    while (next == L3_NEXT_WAITING) {
      l3_failure failure{};
      if (l3_loader_next(get(), UINT32_MAX, &next, &batch, nullptr, &failure) != L3_OK) return failure.error;
    }
    return batch != nullptr ? std::optional<Batch>(std::in_place, batch) : std::nullopt;
  }

 private:
  struct Close {
    void operator()(l3_loader* loader) const { l3_loader_close(loader); }
  };

  explicit Loader(l3_loader* loader) : loader_(loader) {}

  std::unique_ptr<l3_loader, Close> loader_;
};

}  // namespace l3
