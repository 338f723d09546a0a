// One image file to one L3 file.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "failure.h"
#include "file_io.h"
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

struct Converted {
  uint64_t pixels = 0;
  uint64_t bytes_in = 0;
  uint64_t bytes_out = 0;
};

// Reads a PNG, PNM or PAM, encodes it, proves the result and writes it. "-" stands for stdin and stdout. On failure
// `out` is what it was before. Safe to call from many threads at once; it throws nothing; out of memory is a failure.
Outcome<Converted> convert_file(const std::string& in, const std::string& out, const ConversionSettings& settings,
                                Context& context);

}  // namespace tools
