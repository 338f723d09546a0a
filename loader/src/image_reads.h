// Plans which parts of a sample's file to read: all of it, or the parts that a region needs.
#pragma once

#include <atomic>
#include <optional>
#include <vector>

#include "loader/store.h"
#include "memory_pool.h"
#include "units.h"

namespace loader {

struct Job;

// An image of a batch in preparation.
struct Image {
  Job* job = nullptr;
  uint32_t place = 0;  // the number of its unit in the batch
  const Tensor* tensor = nullptr;
  uint64_t number = 0;  // the number of its sample in the data set
  l3_data_sample sample = l3_data_sample_init();
  uint32_t x = 0, y = 0;  // the corner of its region
  bool flip = false;

  uint8_t* file = nullptr;  // memory of the file's size; each part is read to its own offset
  Bytes room;               // owns that memory, unless it is in the batch's staging memory
  uint64_t at = 0;          // its offset in the staging memory
  bool is_whole = true;
  uint64_t prefix = 0;            // how many bytes from the beginning of the file are present
  std::vector<l3_range> present;  // all parts that are present, if not the whole file
  bool is_planned = false;        // no further reads are needed after those in `reads`
  std::vector<Read> reads;
  std::atomic<uint32_t> pending{0};
  std::optional<StoreFault> read_fault;  // of the first read that failed
  bool has_waited = false;               // for a read that was not answered at once
  bool is_second_try = false;            // the file was damaged when it was read first

  uint64_t bytes_read = 0, reading = 0, decoding = 0, converting = 0, read_begun = 0;  // times in nanoseconds
  std::optional<l3_data_error> fault;
  Image* next = nullptr;  // in a list of the pipeline

  void fail(const Shard& shard, l3_status status, std::string_view reason, uint64_t offset, int system_error = 0);
  // Records an error of libl3.
  void fail(const Shard& shard, const l3_error& error);
  // Whether it failed because of what was read, and may be read a second time.
  bool is_worth_reading_again() const;
  // Forgets what was read and that it failed. The next plan reads the whole file, and no cache may answer.
  void forget();
};

// Sets `reads` to the next reads. They are empty if everything is present or the image has failed.
void plan_reads(Image& image, const l3_data_set& set);

}  // namespace loader
