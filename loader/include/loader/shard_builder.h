// Shards, written: what goes into the file, from front to back. The caller writes it.
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

// What the index says of a sample.
struct NewSample {
  std::string name, role;
  uint64_t size = 0;
  Digest digest{};
  uint32_t check = 0;
  uint32_t width = 0, height = 0, channels = 0, bits = 0, colour = 0;
  uint32_t kind = L3_DATA_IMAGE;
  uint32_t label = L3_NO_LABEL;
  std::optional<Digest> model;  // the name of the one that the L3 file names
  std::string metadata;
  bool opens_group = true;  // or belongs to that of the sample before
};

// Fills in what the bytes of a sample tell. False where those of an image are no L3 file.
bool describe(std::span<const uint8_t> bytes, uint32_t kind, NewSample& sample);

// Why the index of a shard cannot say this; null where it can.
const char* problem(const NewSample& sample);

class ShardBuilder {
 public:
  ShardBuilder();

  // The first bytes of every shard, up to where the first sample begins.
  static std::vector<uint8_t> head();

  // Where the next sample begins: zero bytes go up to there.
  uint64_t next() const { return next_after(end_); }
  // Where a sample begins that follows one that ends there.
  static uint64_t next_after(uint64_t end);
  // Where the last sample ends.
  uint64_t end() const { return end_; }
  // What the file comes to if it ends here.
  uint64_t finished_size() const;
  uint64_t samples() const { return samples_; }
  uint64_t groups() const { return groups_; }
  // Whether the index has room for `count` samples more with so many bytes of names, roles, metadata and models.
  bool has_room(uint64_t count, uint64_t texts) const;

  // Adds a sample without a problem; `model` are the bytes of the one it names.
  void add(const NewSample& sample, std::span<const uint8_t> model = {});

  // What follows the last sample: zero bytes, index, footer. Fills in all but the file's name.
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

}  // namespace loader
