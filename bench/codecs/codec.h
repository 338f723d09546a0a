// The interface that l3 bench measures. Each library has an adapter, in the file with its name.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "bridge/buffer.h"
#include "formats/formats.h"

namespace bench {

// The functions of a library. Each runs on the calling thread, may be called from many threads at once, and reuses the
// memory of its output. `level` is one of the library's levels, if it has levels.
struct Adapter {
  std::string (*version)();

  // Returns why the codec cannot store an image, as a short text for a table ("16 bits"). Returns an empty text if it
  // can store all samples (or, for a lossy codec, an approximation).
  std::string (*cannot_hold)(const formats::Image& image);

  std::optional<formats::Error> (*encode)(const formats::Image& image, int level, bridge::Buffer& file);

  // Decodes into `image`. The caller sets its width, height, bits and colour, which a training program knows; the codec
  // writes the samples. A codec that keeps everything sets all of `image` itself.
  std::optional<formats::Error> (*decode)(std::span<const uint8_t> file, formats::Image& image);

  // Returns whether to measure the source file itself, because this codec reads its format, instead of the output of
  // `encode`. Null means never.
  bool (*takes_supplied)(std::span<const uint8_t> supplied) = nullptr;

  bool keeps_everything = false;  // keeps palette, transparency and chunks too, not only samples
  bool decodes_only = false;      // `encode` belongs to another library, and is not timed
  bool gpu_decodes = false;       // writes l3 files, which a GPU (bench/gpu.h) can decode too
};

// Each returns null if the library was missing at build time.
const Adapter* png_adapter();        // the source files, if they are PNG
const Adapter* png_level_adapter();  // files that libpng writes
const Adapter* spng_adapter();
const Adapter* stb_adapter();
const Adapter* jpeg_adapter();
const Adapter* webp_adapter();
const Adapter* webp_lossy_adapter();
const Adapter* jxl_adapter();
const Adapter* jpegls_adapter();
const Adapter* qoi_adapter();
const Adapter* zstd_adapter();
const Adapter* l3_paper_adapter();
const Adapter* l3_fast_adapter();
const Adapter* l3_dense_adapter();

// A codec to measure: an adapter at a level.
struct Codec {
  const char* name;
  const char* title;
  const char* library;  // the library that contains it
  const Adapter* (*adapter)();
  int level;
  bool lossy;
  const char* package = "";  // the Debian package of an optional library
};

// Returns all codecs in the order of the reports, including those whose library is missing.
std::span<const Codec> all_codecs();

// Allocates the pixels of `image` for its size, bits and colour.
void make_room(formats::Image& image);

// Returns the size of its samples in bytes.
uint64_t sample_bytes(const formats::Image& image);

inline formats::Error failed(std::string reason) { return formats::Error{0, std::move(reason)}; }

}  // namespace bench
