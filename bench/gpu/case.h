// A case of the GPU benchmark: a batch of images, and the output of each in device memory.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/parallel.h"
#include "formats/image.h"
#include "l3/l3_cuda.h"

namespace gpu_bench {

struct Settings {
  std::string images;             // a folder of real ones
  uint32_t distinct = 0;          // different images in a batch; 0: four for each thread
  uint32_t effort = 1;            // of the dense method
  uint32_t shrink = 1;            // divides edges and batch sizes
  std::vector<std::string> only;  // cases and methods, by parts of "CASE/METHOD"; empty: all
};

using Pictures = std::vector<formats::Image>;

// A part of a picture, and where it goes.
struct Item {
  uint32_t picture;
  uint32_t x, y, width, height;
  bool flip;
  uint64_t offset;  // in the output, a multiple of 256
};

struct Case {
  std::string name;
  std::string source;  // where the pictures are from, in words
  std::shared_ptr<const Pictures> pictures;
  std::vector<Item> items;
  bool shared_model = false;  // of the dense method: the first picture's model serves all
  uint32_t type = L3_CUDA_U8, layout = L3_CUDA_HWC;
  float scale = 1, bias = 0;  // of channel c: bias - 0.25 c
  uint64_t output_bytes = 0;  // the offset behind the last item

  const formats::Image& picture(const Item& item) const { return (*pictures)[item.picture]; }
  // Of a sample as it is written.
  uint32_t sample_bytes() const { return type == L3_CUDA_U8 ? 1 : type == L3_CUDA_F32 ? 4 : 2; }
  float bias_of(uint32_t channel) const { return bias - 0.25f * static_cast<float>(channel); }
  // Bytes of samples as the files have them, and as they are written.
  uint64_t decoded_bytes() const;
  uint64_t written_bytes() const;
  // Returns whether other image libraries could produce the output: whole or cropped images with samples unchanged.
  bool plain() const;
};

// Makes a case. Cases are made one by one, since drawing takes time. Returns nothing if the settings exclude the case.
// Throws a Failure if it cannot be made.
struct CaseRecipe {
  const char* name;
  Case (*make)(const Settings& settings, base::Parallel& parallel);
};
extern const std::vector<CaseRecipe> kCases;

// Checks that all items are correct and that the bytes between them are still `poison`. Returns a text that describes
// the first difference, or an empty text.
std::string difference(const Case& a_case, const uint8_t* output, uint8_t poison, base::Parallel& parallel);

}  // namespace gpu_bench
