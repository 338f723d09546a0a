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
  const l3_loader_options* options = nullptr;
  uint64_t random = 0;            // the random number of its unit
  const l3_box* given = nullptr;  // the box that the options give it
  bool is_settled = false;        // the steps and the region are known
  bool tells_size = false;        // its place in a list has its size, which its orientation decides
  Steps steps;
  uint32_t x = 0, y = 0;  // the corner of its region
  uint32_t width = 0, height = 0;
  Size room;  // the size of its place in the batch, if it is padded to that

  uint8_t* file = nullptr;  // memory of the file's size; each part is read to its own offset
  Bytes memory;             // owns that memory, unless it is in the batch's staging memory
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

  Geometry geometry() const;
  // Draws the steps of an image of this orientation. Returns null, or why the options do not allow it.
  const char* settle(uint32_t orientation);
  // Does so for the orientation in the file, whose first bytes are present.
  const char* settle_by_file(size_t size);
  void fail(const Shard& shard, l3_status status, std::string_view reason, uint64_t offset, int system_error = 0);
  // Records an error of libl3.
  void fail(const Shard& shard, const l3_error& error);
  // Whether it failed because of what was read, and may be read a second time.
  bool is_worth_reading_again() const;
  // Forgets what was read and that it failed. The next plan reads the whole file, and no cache may answer.
  void forget();
};

// The orientation in the EXIF data of a file, whose first bytes are present; 1 if it has none.
uint32_t orientation_in(const uint8_t* file, size_t size);

// Sets `reads` to the next reads. They are empty if everything is present or the image has failed.
void plan_reads(Image& image, const l3_data_set& set);

}  // namespace loader
