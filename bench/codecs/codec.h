// What a codec must be able to do to be measured. Each library that is compared has an adapter, in the file of its
// name.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "bridge/buffer.h"
#include "formats/formats.h"

namespace bench {

// What a library can do. All functions work on one thread, are safe to call from many, and keep the room of their
// output from call to call. Where a library has levels, `level` is one of them.
struct Adapter {
  std::string (*version)();

  // Why an image is not this codec's, in the words of a table ("16 bits"); empty where the codec holds all its samples
  // (or, if it is lossy, something like them).
  std::string (*cannot_hold)(const formats::Image& image);

  std::optional<formats::Error> (*encode)(const formats::Image& image, int level, bridge::Buffer& file);

  // `image` comes with the width, the height, the bits and the colour that the file's image has, as a training knows
  // them; the samples are to be filled in. A codec that keeps everything sets all of `image` itself.
  std::optional<formats::Error> (*decode)(std::span<const uint8_t> file, formats::Image& image);

  // Which file is sized and decoded: the one as supplied, where this codec reads such files, or what `encode` makes.
  // Null: always the latter.
  bool (*takes_supplied)(std::span<const uint8_t> supplied) = nullptr;

  bool keeps_everything = false;  // palette, transparency and chunks too; else samples alone
  bool decodes_only = false;      // `encode` is another library's, and is not timed
  bool gpu_decodes = false;       // its files are l3's, which a GPU (bench/gpu.h) decodes too
};

// Null where the library was not there when this was built.
const Adapter* png_adapter();        // the files as supplied, where they are PNG
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

// A codec as it is measured: an adapter at a level.
struct Codec {
  const char* name;
  const char* title;
  const char* library;  // where its code comes from
  const Adapter* (*adapter)();
  int level;
  bool lossy;
  const char* package = "";  // that brings the library in Debian, where this may be built without it
};

// All codecs, whether their library is there or not, in the order in which they are shown.
std::span<const Codec> all_codecs();

// Allocates pixels of the shape that `image` says.
void make_room(formats::Image& image);

// Bytes of its samples.
uint64_t sample_bytes(const formats::Image& image);

inline formats::Error failed(std::string reason) { return formats::Error{0, std::move(reason)}; }

}  // namespace bench
