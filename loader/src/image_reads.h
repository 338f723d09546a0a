// What of a sample's file is read: all of it, or the parts that a region needs.
#pragma once

#include <atomic>
#include <optional>
#include <vector>

#include "memory_pool.h"
#include "read_engine.h"
#include "units.h"

namespace loader {

struct Job;

// An image of a batch on its way.
struct Image {
  Job* job = nullptr;
  uint32_t place = 0;  // of its unit in the batch
  const Tensor* tensor = nullptr;
  uint64_t number = 0;  // of its sample
  l3_data_sample sample = l3_data_sample_init();
  uint32_t x = 0, y = 0;  // where its region begins
  bool flip = false;

  uint8_t* file = nullptr;  // memory of the file's size, in which what is read goes to its place
  Bytes room;               // that memory, where it is the image's own
  uint64_t at = 0;          // or where it is in the batch's staging memory
  bool is_whole = true;
  uint64_t prefix = 0;            // so many bytes are there from the file's beginning on
  std::vector<l3_range> present;  // and these, where it is not whole
  bool is_planned = false;        // nothing is to be read any more when what was asked for is there
  std::vector<Read> reads;
  std::atomic<uint32_t> pending{0};
  std::atomic<int> read_error{0};
  ShardFile::Use use;

  uint64_t bytes_read = 0, reading = 0, decoding = 0, read_begun = 0;  // times in nanoseconds
  std::optional<l3_data_error> fault;
  Image* next_arrived = nullptr;  // the pipeline's

  void fail(const Shard& shard, l3_status status, std::string_view reason, uint64_t offset, int system_error = 0);
  // What libl3 said of the file.
  void fail(const Shard& shard, const l3_error& error);
};

// Sets `reads` to what is to be read next; none where all is there, or where the image has failed.
void plan_reads(Image& image, const Shard& shard);

}  // namespace loader
