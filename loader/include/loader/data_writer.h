// Writes data sets: builds the bytes of shards from front to back, and of index.json. The caller writes the files.
// shard_files.h has the files, and data_set_writer.h makes whole data sets of images in memory. l3_data_writer is a
// library of its own for the command, the Python package and the tests.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "l3/l3_data.h"
#include "loader/data_set_index.h"

namespace loader {

// The index entry of a new sample.
struct NewSample {
  std::string name, role;
  uint64_t size = 0;
  Digest digest{};
  uint32_t check = 0;
  uint32_t width = 0, height = 0, channels = 0, bits = 0, colour = 0;
  uint32_t kind = L3_DATA_IMAGE;
  uint32_t label = L3_NO_LABEL;
  std::optional<Digest> model;  // the name of the model that the L3 file names
  std::string metadata;
  bool opens_group = true;  // false: the sample belongs to the group of the sample before
};

// Fills in the members that follow from the bytes of a sample. Returns false if `kind` is image and they are no L3
// file.
bool describe(std::span<const uint8_t> bytes, uint32_t kind, NewSample& sample);

// Returns why a shard's index cannot hold this entry, or null if it can.
const char* problem(const NewSample& sample);

class ShardBuilder {
 public:
  ShardBuilder();

  // The first bytes of every shard, before the first sample.
  static std::vector<uint8_t> head();

  // The offset at which the next sample begins. The gap before it is filled with zero bytes.
  uint64_t next() const { return next_after(end_); }
  // The offset of a sample that follows one that ends at `end`.
  static uint64_t next_after(uint64_t end);
  // The end of the last sample.
  uint64_t end() const { return end_; }
  // The size of the file if no more samples are added.
  uint64_t finished_size() const;
  uint64_t samples() const { return samples_; }
  uint64_t groups() const { return groups_; }
  // Whether the index has room for `count` more samples, with `texts` bytes of names, roles, metadata and models.
  bool has_room(uint64_t count, uint64_t texts) const;

  // Adds a sample, for which problem() must return null. `model` holds the bytes of the model that it names.
  void add(const NewSample& sample, std::span<const uint8_t> model = {});

  // Returns the bytes after the last sample: zero bytes, index and footer. Fills in `summary` except the file name.
  std::vector<uint8_t> finish(ShardSummary& summary) const;

 private:
  struct Text {
    uint32_t place, size;
  };
  Text add_text(std::span<const uint8_t> bytes);
  Text add_text(std::string_view text) {
    return add_text({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
  }

  uint64_t end_;  // of the last sample
  uint64_t samples_ = 0, groups_ = 0;
  std::vector<uint8_t> entries_, texts_;
  std::vector<Text> models_, roles_;
  std::map<Digest, uint16_t> model_numbers_;
  std::map<std::string, uint16_t, std::less<>> role_numbers_;
};

// Returns the text of index.json. All classes must be UTF-8.
std::string to_json(const DataSetIndex& index);

}  // namespace loader
