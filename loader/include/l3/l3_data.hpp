// A thin C++20 wrapper of l3_data.h and l3_writer.h. Destructors close what was opened, and errors are returned as
// values. Nothing here throws, except that std::string may throw std::bad_alloc.
#pragma once

#if __cplusplus < 202002L
#error "l3_data.hpp needs C++20: compile with -std=c++20, or use l3_data.h, which is C"
#endif

#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "l3/l3_data.h"
#include "l3/l3_writer.h"

namespace l3 {

// An error as one line: "set/shard-00000.l3s: offset 4096: the check of a sample does not match".
inline std::string message(const l3_data_error& error) {
  std::string text = error.file[0] != 0 ? std::string(error.file) + ": " : std::string();
  if (error.offset != L3_DATA_NONE) text += "offset " + std::to_string(error.offset) + ": ";
  return text + error.reason;
}

// A value, or the error that took its place. Test it before use: `*` and `->` need a value, error() needs an error.
template <class Value>
class [[nodiscard]] DataResult {
 public:
  DataResult(Value value) : value_(std::in_place_index<0>, std::move(value)) {}
  DataResult(const l3_data_error& error) : value_(std::in_place_index<1>, error) {}

  explicit operator bool() const { return value_.index() == 0; }
  Value& operator*() { return *std::get_if<0>(&value_); }
  const Value& operator*() const { return *std::get_if<0>(&value_); }
  Value* operator->() { return std::get_if<0>(&value_); }
  const Value* operator->() const { return std::get_if<0>(&value_); }
  const l3_data_error& error() const { return *std::get_if<1>(&value_); }

 private:
  std::variant<Value, l3_data_error> value_;
};

// The index entry of a sample. Its pointers and views are valid until the data set is closed.
struct Sample : l3_data_sample {
  std::string_view name_text() const { return {name, name_size}; }
  std::string_view role_text() const { return {role, role_size}; }
  std::string_view metadata_text() const { return {reinterpret_cast<const char*>(metadata), metadata_size}; }
  bool is_image() const { return kind == L3_DATA_IMAGE; }
};

// An open data set or shard. Any number of threads may use it at once. The destructor closes it.
class DataSet {
 public:
  static DataResult<DataSet> open(const std::string& path, const l3_data_options& options = l3_data_options_init()) {
    l3_data_set* set = nullptr;
    l3_data_error error{};
    if (l3_data_open(path.c_str(), &options, &set, &error) != L3_OK) return error;
    return DataSet(set);
  }

  // Opens the data set in a store of the caller, as l3_data_open_store does.
  static DataResult<DataSet> open(const l3_store& store, const std::string& name,
                                  const l3_data_options& options = l3_data_options_init()) {
    l3_data_set* set = nullptr;
    l3_data_error error{};
    if (l3_data_open_store(&store, name.c_str(), &options, &set, &error) != L3_OK) return error;
    return DataSet(set);
  }

  const l3_data_set* get() const { return set_.get(); }

  l3_data_info info() const {
    l3_data_info info = l3_data_info_init();
    (void)!l3_data_describe(get(), &info);
    return info;
  }
  uint64_t count() const { return info().samples; }

  // `index` must be below count().
  Sample sample(uint64_t index) const {
    Sample sample{l3_data_sample_init()};
    (void)!l3_data_get(get(), index, &sample);
    return sample;
  }
  std::optional<uint64_t> find(std::string_view name) const {
    const uint64_t index = l3_data_find(get(), name.data(), name.size());
    return index != L3_DATA_NONE ? std::optional(index) : std::nullopt;
  }
  // Reads and verifies all bytes of a sample, as l3_data_read does.
  DataResult<std::vector<uint8_t>> read(uint64_t index) const {
    l3_data_error error{};
    std::vector<uint8_t> bytes;
    try {
      bytes.resize(static_cast<size_t>(sample(index).size));
    } catch (const std::bad_alloc&) {
      error = {L3_ERROR_MEMORY, 0, L3_DATA_NONE, "", "out of memory"};
      return error;
    }
    if (l3_data_read(get(), index, bytes.data(), bytes.size(), &error) != L3_OK) return error;
    return bytes;
  }
  // What the cache did; `places` is 0 if there is none.
  l3_data_cache_info cache() const {
    l3_data_cache_info info = l3_data_cache_info_init();
    (void)!l3_data_cache(get(), &info);
    return info;
  }
  // Returns decode options with the models that samples of this data set name. They are valid until it is closed.
  l3_decode_options decode_options() const {
    l3_decode_options options = l3_decode_options_init();
    options.models = l3_data_models(get(), &options.model_count);
    return options;
  }

 private:
  struct Close {
    void operator()(l3_data_set* set) const { l3_data_close(set); }
  };

  explicit DataSet(l3_data_set* set) : set_(set) {}

  std::unique_ptr<l3_data_set, Close> set_;
};

// Writes a data set, as l3_writer.h describes. The functions that return an optional return the error, or nothing on
// success. The destructor removes what was not finished.
class DataSetWriter {
 public:
  static DataResult<DataSetWriter> open(const std::string& path,
                                        const l3_writer_options& options = l3_writer_options_init()) {
    l3_writer* writer = nullptr;
    l3_data_error error{};
    if (l3_writer_open(path.c_str(), &options, &writer, &error) != L3_OK) return error;
    return DataSetWriter(writer);
  }

  l3_writer* get() const { return writer_.get(); }

  [[nodiscard]] std::optional<l3_data_error> add(const l3_image& image,
                                                 const l3_writer_sample& sample = l3_writer_sample_init()) {
    l3_data_error error{};
    return l3_writer_add_image(get(), &image, &sample, &error) == L3_OK ? std::nullopt : std::optional(error);
  }
  // The bytes of an L3 file.
  [[nodiscard]] std::optional<l3_data_error> add_file(std::span<const uint8_t> file,
                                                      const l3_writer_sample& sample = l3_writer_sample_init()) {
    l3_data_error error{};
    return l3_writer_add_file(get(), file.data(), file.size(), &sample, &error) == L3_OK ? std::nullopt
                                                                                         : std::optional(error);
  }
  // Bytes that are no image.
  [[nodiscard]] std::optional<l3_data_error> add_bytes(std::span<const uint8_t> bytes, const l3_writer_sample& sample) {
    l3_data_error error{};
    return l3_writer_add_bytes(get(), bytes.data(), bytes.size(), &sample, &error) == L3_OK ? std::nullopt
                                                                                            : std::optional(error);
  }
  [[nodiscard]] std::optional<l3_data_error> finish() {
    l3_data_error error{};
    return l3_writer_finish(get(), &error) == L3_OK ? std::nullopt : std::optional(error);
  }

 private:
  struct Close {
    void operator()(l3_writer* writer) const { l3_writer_close(writer); }
  };

  explicit DataSetWriter(l3_writer* writer) : writer_(writer) {}

  std::unique_ptr<l3_writer, Close> writer_;
};

}  // namespace l3
