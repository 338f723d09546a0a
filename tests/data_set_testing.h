// Writes data sets for tests, with the shard builder of loader/.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/crc32.h"
#include "l3/l3_data.hpp"
#include "loader/data_set_index.h"
#include "loader/data_writer.h"
#include "loader/names.h"

namespace data_set_testing {

namespace fs = std::filesystem;
using Bytes = std::vector<uint8_t>;

inline Bytes image_of(uint32_t width, uint32_t height, uint8_t value) {
  const Bytes pixels(size_t{width} * height, value);
  l3_image image = l3_image_init();
  image.width = width;
  image.height = height;
  image.bits = 8;
  image.pixels = pixels.data();
  l3_encode_options options = l3_encode_options_init();
  options.method = L3_METHOD_FAST;
  Bytes file(l3_encode_bound(&image, &options));
  size_t size = 0;
  EXPECT_EQ(l3_encode(&image, &options, file.data(), file.size(), &size, nullptr), L3_OK);
  file.resize(size);
  return file;
}

// A folder of its own, which goes with it.
class DataSets : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "l3-data-set-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  void write(const std::string& name, const Bytes& bytes) const {
    std::ofstream(path(name), std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  }

  struct Item {
    std::string name{};
    Bytes bytes{};
    uint32_t kind = L3_DATA_IMAGE;
    std::string role = "image";
    bool opens_group = true;
    uint32_t label = L3_NO_LABEL;
    std::string metadata{};
    Bytes described{};  // what the index says the bytes are, but for their check; empty: the bytes themselves
  };

  // Writes a shard, and gives what index.json says of it.
  loader::ShardSummary shard(const std::string& name, const std::vector<Item>& items) const {
    Bytes file = loader::ShardBuilder::head();
    loader::ShardBuilder builder;
    for (const Item& item : items) {
      loader::NewSample sample;
      sample.name = item.name;
      sample.role = item.role;
      sample.opens_group = item.opens_group;
      sample.label = item.label;
      sample.metadata = item.metadata;
      EXPECT_TRUE(loader::describe(item.described.empty() ? item.bytes : item.described, item.kind, sample));
      sample.check = base::crc32(item.bytes);
      EXPECT_EQ(loader::problem(sample), nullptr);
      file.resize(builder.next());
      file.insert(file.end(), item.bytes.begin(), item.bytes.end());
      builder.add(sample);
    }
    const uint64_t expected = builder.finished_size();
    loader::ShardSummary summary;
    const Bytes end = builder.finish(summary);
    file.insert(file.end(), end.begin(), end.end());
    EXPECT_EQ(file.size(), expected);
    EXPECT_EQ(file.size(), summary.bytes);
    summary.file = name;
    write(name, file);
    return summary;
  }

  // Puts what lies between two places of a shard into another one, as a copy does that was interrupted.
  void copy_between(const std::string& from, const std::string& to, uint64_t begin, uint64_t end) const {
    Bytes bytes(end - begin);
    std::ifstream in(from, std::ios::binary);
    in.seekg(static_cast<std::streamoff>(begin));
    in.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    std::fstream out(to, std::ios::binary | std::ios::in | std::ios::out);
    out.seekp(static_cast<std::streamoff>(begin));
    out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    EXPECT_TRUE(in && out);
  }

  void index(const loader::DataSetIndex& index) const {
    const std::string json = loader::to_json(index);
    write(loader::kIndexFile, Bytes(json.begin(), json.end()));
  }

  fs::path folder_;
};

}  // namespace data_set_testing
