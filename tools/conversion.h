// Converts one image to one L3 file, in memory and on disk.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "bridge/buffer.h"
#include "failure.h"
#include "file_io.h"
#include "formats/formats.h"
#include "l3/l3.h"
#include "options.h"
#include "reshape.h"

namespace tools {

struct ConversionSettings {
  l3_encode_options encode = l3_encode_options_init();  // its parallel is used for decoding, too
  Reshaping reshaping;                                  // of the pixels, before they are encoded
  std::span<const l3_model* const> models;              // each is used, by name, for images that fit it
  l3_limits limits{};
  bool verify = true;  // decode the result and compare it before it gets its name
  Flush flush = Flush::none;
};

// Seconds of one thread in each stage.
struct StageTimes {
  double read = 0;     // reading the bytes of the source
  double unpack = 0;   // decoding the source to pixels
  double reshape = 0;  // turning pixels upright and resizing them
  double encode = 0;
  double verify = 0;  // decoding the result and comparing it
  double write = 0;

  void add(const StageTimes& other) {
    read += other.read;
    unpack += other.unpack;
    reshape += other.reshape;
    encode += other.encode;
    verify += other.verify;
    write += other.write;
  }
};

// Adds the time of its life to `seconds`.
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

inline constexpr const char* kChangedMeanwhile = "changed while it was read";

// Detects whether a file was written to while it was read. Cannot tell for stdin ("-").
class Stamp {
 public:
  explicit Stamp(const std::string& path);
  // Whether the file, checked again later, has not changed.
  bool is_still(const std::string& path) const;

 private:
  bool known_ = false;
  int64_t seconds_ = 0, nanoseconds_ = 0, size_ = 0;
};

// Whether the file has the signature of L3 files.
bool is_l3(std::span<const uint8_t> file);

// Decodes an image of another format, or one page of it (see ReadOptions::page), and reshapes it as the settings say.
// `role` is that of the sample. If `reshaped` is not null, it gets what was done.
Outcome<formats::Image> unpack(const std::string& name, std::span<const uint8_t> bytes,
                               const ConversionSettings& settings, StageTimes& times, Context& context,
                               uint32_t page = 0, std::string_view role = "", Reshaped* reshaped = nullptr);

// Encodes an image. If settings.verify is set, decodes the result and compares it. `name` is for messages.
Outcome<bridge::Buffer> encode_image(const std::string& name, const formats::Image& image,
                                     const ConversionSettings& settings, StageTimes& times);

// Reads an image file, encodes it, verifies the result and writes it. "-" stands for stdin and stdout. On failure `out`
// stays as it was. Threads may call this at the same time. It does not throw; running out of memory is a Failure.
Outcome<Converted> convert_file(const std::string& in, const std::string& out, const ConversionSettings& settings,
                                Context& context);

}  // namespace tools
