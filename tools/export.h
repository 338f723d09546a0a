// What l3 export does for folders and for tars.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "command_line.h"
#include "failure.h"
#include "formats/formats.h"
#include "l3/l3.h"

namespace tools {

struct ExportOptions {
  std::string source, destination;
  std::vector<std::string> models;
  std::string on_error = "fail";
  std::string as = "png";  // the images in a tar
  uint32_t jobs = 0;
  l3_limits limits{};
  bool tar = false;
  bool force = false;
  bool resume = false;
  bool quiet = false;
};

// The extension for an image: .png, or .pgm, .ppm or .pam if PNG does not have its bit depth.
std::string exported_extension(uint32_t colour, uint32_t bits);

// Decodes an L3 file and returns it in another format. `pixels` becomes the number of its pixels, `name` is for
// messages.
Outcome<std::vector<uint8_t>> exported_image(const std::string& name, std::span<const uint8_t> file,
                                             formats::Format format, const l3_decode_options& options, Console& console,
                                             uint64_t& pixels);

// Writes a data set as a tar (--tar). Returns the exit code.
int export_tar(const ExportOptions& options, Context& context);

}  // namespace tools
