// What the encoder decides about an image before it encodes, and the layout of the file that follows. All of these are
// values: nothing changes a plan, functions make a new one.
#pragma once

#include <span>

#include "container/palette.h"
#include "encode/token_encode.h"

namespace l3 {

constexpr uint32_t kDefaultTileEdge = 128;
constexpr uint32_t kDefaultEffort = 5;

// Whether a width or height of tiles is allowed; 0 stands for the default.
inline bool is_tile_edge(uint32_t edge) { return edge % 32 == 0 && edge <= kMaxTileEdge; }

// What a header says of an image of which only some channels are coded.
struct MappedImage {
  ChannelMap map;
  uint32_t channels, colour, alpha;
};

// A valid image with valid options.
struct Request {
  l3_image image;  // the coded channels
  l3_encode_options options;
  Palette palette{};                    // if the image has one
  const MappedImage* mapped = nullptr;  // null if all channels are coded

  uint32_t channels() const;
  uint64_t pixels() const { return uint64_t{image.width} * image.height; }
  uint64_t samples() const { return pixels() * channels(); }
  // Whether the image is small enough to try simpler models too.
  bool is_small() const;
};

// Checks what a caller passed. Does not look at the samples.
[[nodiscard]] Reason make_request(const l3_image* image, const l3_encode_options* options, Request& request);
// The same image without the caller's named model.
Request without_name(const Request& request);

constexpr uint32_t kMaxPlannedTileEdge = 512;
// Of images whose pixels take few bytes. Such a tile need not fit a payload without compression; where one does not
// fit, the file is written again with smaller tiles.
constexpr uint32_t kLargeTileEdge = 1024;

struct Plan {
  uint32_t tile_width, tile_height;
  uint32_t origin;                  // of the model: an l3_model_origin
  uint32_t effort;                  // 1 to 9
  uint32_t default_model = 0;       // its number, if the model is one
  uint32_t kind = kDenseModelKind;  // of a model that is fitted to the image
  TokenPlan token_plan{};           // for a token model
};

// The plan that follows from the options. A fitted model is preferred to a default one if both are allowed.
Plan first_plan(const Request& request);
Plan with_origin(const Plan& plan, uint32_t origin);
// With a default model, which there must be: that for photographs, or that for drawings.
Plan with_default(const Request& request, const Plan& plan, bool drawn);
Plan with_effort(const Plan& plan, uint32_t effort);
// With tiles of the size in the options, otherwise `edge`, less where a payload might not hold them (but for
// kLargeTileEdge).
Plan with_tile_edge(const Request& request, const Plan& plan, uint32_t edge);
// The tile edge for a token model with which a pixel takes this many bytes. If pixels follow others, the larger the
// better.
uint32_t edge_for(double bytes_of_pixel, bool follow);

// The bytes of the model that a plan uses, or empty if it has none or one that is to be fitted.
std::span<const uint8_t> known_model(const Request& request, const Plan& plan);
// The kind of the model that a plan uses.
uint32_t model_kind(const Request& request, const Plan& plan);
// Where the codes of that model are kept, or null if it is not known to be used again.
KeptCodes* kept_codes(const Request& request, const Plan& plan);

// The head of a file without sections: what the header says of image and tiles.
Head head_of(const Request& request, const Plan& plan);
// The same with all sections in their places. `model` is the size of the file's own model, if the plan has one;
// `metadata` the size of the packed metadata, if the image has any.
Head lay_out(const Request& request, const Plan& plan, uint64_t model, uint64_t metadata);
// Laid out with the largest sizes that are possible.
Head lay_out_largest(const Request& request, const Plan& plan);

}  // namespace l3
