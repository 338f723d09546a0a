// One image to one L3 file, in memory and on disk.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>

#include "bridge/buffer.h"
#include "failure.h"
#include "file_io.h"
#include "formats/formats.h"
#include "l3/l3.h"
#include "options.h"

namespace tools {

struct ConversionSettings {
  l3_encode_options encode = l3_encode_options_init();  // its parallel is used for decoding as well
  std::span<const l3_model* const> models;              // each is used, by name, for the images that it is for
  l3_limits limits{};
  bool verify = true;  // decode the result and compare before it gets its name
  Flush flush = Flush::none;
};

// Seconds that one thread spent.
struct StageTimes {
  double read = 0;    // of the source's bytes
  double unpack = 0;  // the source to pixels
  double encode = 0;
  double verify = 0;  // decoding the result, and comparing it
  double write = 0;

  void add(const StageTimes& other) {
    read += other.read;
    unpack += other.unpack;
    encode += other.encode;
    verify += other.verify;
    write += other.write;
  }
};

// Adds the time from its beginning to its end.
class Stopwatch {
 public:
  explicit Stopwatch(double& seconds) : seconds_(seconds) {}
  ~Stopwatch() { seconds_ += std::chrono::duration<double>(Clock::now() - start_).count(); }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  using Clock = std::chrono::steady_clock;
  double& seconds_;
  Clock::time_point start_ = Clock::now();
};

struct Converted {
  uint64_t pixels = 0;
  uint64_t bytes_in = 0;
  uint64_t bytes_out = 0;
};

inline constexpr const char* kChangedMeanwhile = "changed while it was being read";

// Tells whether a file was written to while it was read. Nothing is known of stdin ("-").
class Stamp {
 public:
  explicit Stamp(const std::string& path);
  // Of the same file, later.
  bool is_still(const std::string& path) const;

 private:
  bool known_ = false;
  int64_t seconds_ = 0, nanoseconds_ = 0, size_ = 0;
};

// Whether it begins as L3 files do.
bool is_l3(std::span<const uint8_t> file);

// Unpacks the bytes of a foreign image, or of a page of one (see ReadOptions::page).
Outcome<formats::Image> unpack(const std::string& name, std::span<const uint8_t> bytes, const l3_limits& limits,
                               Context& context, uint32_t page = 0);

// Encodes an image, decodes the result and compares, unless that is not wanted. `name` is for messages.
Outcome<bridge::Buffer> encode_image(const std::string& name, const formats::Image& image,
                                     const ConversionSettings& settings, StageTimes& times);

// Reads an image file, encodes it, proves the result and writes it. "-" stands for stdin and stdout. On failure
// `out` is what it was before. Safe to call from many threads at once; it throws nothing; out of memory is a failure.
Outcome<Converted> convert_file(const std::string& in, const std::string& out, const ConversionSettings& settings,
                                Context& context);

}  // namespace tools
