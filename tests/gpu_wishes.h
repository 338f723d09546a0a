// Makes random files of all kinds, with random regions, types and outputs.
#pragma once

#include <filesystem>
#include <fstream>

#include "any_bit_tile.h"
#include "any_channel_map.h"
#include "any_token_tile.h"
#include "gpu_testing.h"

namespace gpu_testing {

inline Size any_size(Dice& dice, uint32_t maximum) {
  switch (dice.roll(8)) {
    case 0: return {1, 1};
    case 1: return {1 + dice.roll(maximum), 1};
    case 2: return {1, 1 + dice.roll(maximum)};
    case 3: return {32 * (1 + dice.roll(3)), 32 * (1 + dice.roll(2))};
    case 4: return {32 * (1 + dice.roll(2)) + 1, 32 * (1 + dice.roll(2)) - 1};
    case 5: return {1 + dice.roll(maximum), 1 + dice.roll(20)};
    case 6: return {1 + dice.roll(20), 1 + dice.roll(maximum)};
    default: return {1 + dice.roll(70), 1 + dice.roll(70)};
  }
}

inline drawing::Type any_type(Dice& dice) {
  const uint32_t bits = dice.chance(2) ? 8 : 1 + dice.roll(16);
  return {static_cast<l3_colour>(dice.roll(bits <= 8 ? 5 : 4)), bits};
}

inline uint32_t channels_of(const drawing::Type& type) {
  return type.colour == L3_COLOUR_PALETTE ? 1 : static_cast<uint32_t>(type.colour) + 1;
}

inline Drawing any_drawing(Dice& dice, uint32_t maximum) {
  const Size size = any_size(dice, maximum);
  const drawing::Type type = any_type(dice);
  Drawing d = dice.chance(4) ? drawing::draw_mixed({(size.width + 2) / 3, size.height}, type, dice.next())
                             : drawing::draw(size, type, dice.pick(drawing::kPatterns), dice.next());
  return dice.chance(3) ? drawing::with_sections(std::move(d), dice.next()) : d;
}

// A file of any colour, depth, size and method; now and then one that no encoder would write.
inline Bytes any_coded_file(Dice& dice, uint32_t maximum, std::string* name = nullptr) {
  const uint32_t tile_width = 32 * (1 + dice.roll(dice.chance(6) ? 32 : 4));
  const uint32_t tile_height = 32 * (1 + dice.roll(tile_width > 512 ? 8 : dice.chance(6) ? 32 : 4));
  if (dice.chance(6)) {
    const Size size = any_size(dice, maximum);
    const drawing::Type type = any_type(dice);
    if (name != nullptr) *name = "by hand";
    // The edges of a tile are to suit all types.
    return by_hand::put_together(
        by_hand::any_parts(dice, size, type, std::min(tile_width, 256u), std::min(tile_height, 256u)));
  }
  if (dice.chance(6)) {
    const Size size = any_size(dice, std::min(maximum, 200u));
    const drawing::Type type = any_type(dice);
    if (name != nullptr) *name = "by hand, a token model";
    const by_hand::TokenModel model = by_hand::any_token_model(dice, channels_of(type), type.bits, dice.chance(2));
    return by_hand::put_together(
        by_hand::any_token_file(dice, size, type, model, std::min(tile_width, 256u), std::min(tile_height, 256u))
            .parts);
  }
  if (dice.chance(8)) {
    const Size size = any_size(dice, std::min(maximum, 200u));
    const drawing::Type type = any_type(dice);
    if (name != nullptr) *name = "by hand, a bit model";
    const by_hand::BitModel model = by_hand::any_bit_model(dice, channels_of(type), type.bits);
    return by_hand::put_together(
        by_hand::any_bit_file(dice, size, type, model, std::min(tile_width, 256u), std::min(tile_height, 256u)).parts);
  }
  const Drawing d = any_drawing(dice, maximum);
  constexpr l3_method kMethods[] = {L3_METHOD_FAST, L3_METHOD_DENSE, L3_METHOD_AUTO};
  l3_encode_options options =
      codec_testing::options_of(dice.pick(kMethods), std::min(tile_width, 256u), std::min(tile_height, 256u), 1);
  if (d.bits * d.channels() <= 8) {
    options.tile_width = tile_width;
    options.tile_height = tile_width > 512 ? std::min(tile_height, 512u) : tile_height;
  }
  Bytes model;
  if (d.bits == 8 && dice.chance(2)) {  // also saves the time to fit one
    model = by_hand::any_model(dice, d.channels());
    options.model = model.data();
    options.model_size = model.size();
  }
  if (name != nullptr) {
    *name = d.name() + " method " + std::to_string(options.method) + (model.empty() ? "" : " with a model given") +
            " tiles " + std::to_string(options.tile_width) + "x" + std::to_string(options.tile_height);
  }
  return codec_testing::encode(d, options);
}

// The same; now and then it has a channel map.
inline Bytes any_file(Dice& dice, uint32_t maximum, std::string* name = nullptr) {
  Bytes file = any_coded_file(dice, maximum, name);
  if (!dice.chance(3) || by_hand::is_tiny(file.data(), file.size())) return file;
  std::optional<by_hand::Parts> parts = by_hand::find_parts(file.data(), file.size());
  if (!parts || !by_hand::add_channel_map(dice, *parts)) return file;
  if (name != nullptr) *name += " with a channel map";
  return by_hand::put_together(*parts);
}

struct Vector {
  std::string name;
  Bytes file;
};

// The valid vectors in L3_VECTORS whose names contain this.
inline std::vector<Vector> vectors_with(const std::string& part) {
  std::vector<Vector> vectors;
  const char* folder = std::getenv("L3_VECTORS");
  if (folder == nullptr) return vectors;
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(folder) / "valid")) {
    const std::string name = entry.path().stem();
    if (name.find(part) == std::string::npos) continue;
    std::ifstream in(entry.path(), std::ios::binary);
    vectors.push_back({name, {std::istreambuf_iterator<char>(in), {}}});
  }
  std::sort(vectors.begin(), vectors.end(), [](const Vector& a, const Vector& b) { return a.name < b.name; });
  return vectors;
}
inline float any_number(Dice& dice) {
  constexpr float kNumbers[] = {1,        0,   -1,    0.5f,   1 / 255.0f, 1 / 65535.0f,
                                1.0f / 3, 257, 1e-6f, -1e-8f, 123.675f,   1e30f};
  if (dice.chance(2)) return dice.pick(kNumbers);
  return static_cast<float>(dice.roll(1u << 24)) * 0x1p-22f - 2;
}

inline void choose_region(Wish& wish, uint32_t x, uint32_t y, uint32_t width, uint32_t height) {
  wish.image.x = x;
  wish.image.y = y;
  wish.image.region_width = width;
  wish.image.region_height = height;
}
inline void any_region(Dice& dice, Wish& wish, uint64_t max_pixels = UINT64_MAX) {
  const l3_cuda_image& image = wish.image;
  uint32_t width = dice.chance(6) ? 1 : 1 + dice.roll(image.width);
  uint32_t height = dice.chance(6) ? 1 : 1 + dice.roll(image.height);
  while (uint64_t{width} * height > max_pixels) (width > height ? width : height) /= 2;
  const auto begin = [&](uint32_t room) { return dice.chance(4) ? 0 : dice.chance(4) ? room : dice.roll(room + 1); };
  choose_region(wish, begin(image.width - width), begin(image.height - height), width, height);
}

// Where the output goes: odd places, as far as the size of a sample allows them.
inline void any_place(Dice& dice, Wish& wish) {
  const size_t sample = type_bytes(wish.image.type);
  const auto gap = [&] { return dice.chance(3) ? 0 : sample * dice.roll(40); };
  wish.before = gap();
  wish.after = gap();
  wish.row_gap = gap();
  wish.plane_gap = wish.image.layout == L3_CUDA_CHW ? gap() : 0;
  wish.says_strides = dice.chance(2);
}

inline void any_numbers(Dice& dice, Wish& wish) {
  for (float& v : wish.image.scale) v = any_number(dice);
  for (float& v : wish.image.bias) v = any_number(dice);
}

// Any type that the samples fit, layout, place and region.
inline Wish any_wish(Dice& dice, Bytes file) {
  uint32_t flags = 0;
  if (dice.chance(3)) flags |= L3_CUDA_FLIP;
  if (dice.chance(2)) flags |= L3_CUDA_COLOURS;
  if (dice.chance(3)) flags |= L3_CUDA_STAGE;
  Wish wish = wish_for(std::move(file), flags);
  const bool is_wide = wish.image.type == L3_CUDA_U16;
  if (dice.chance(2)) wish.image.type = is_wide ? 1 + dice.roll(4) : dice.roll(5);
  wish.image.layout = dice.roll(2);
  if (dice.chance(5)) wish.place = Place::pinned;
  if (!dice.chance(3)) any_region(dice, wish);
  any_place(dice, wish);
  any_numbers(dice, wish);
  return wish;
}
inline Wish any_wish(Dice& dice, uint32_t maximum = 0) {
  std::string name;
  Bytes file = any_file(dice, maximum != 0 ? maximum : scale().edge, &name);
  Wish wish = any_wish(dice, std::move(file));
  wish.name = std::move(name);
  return wish;
}

// Adds wishes for every type that the samples fit, in both layouts and directions, with and without colours; for the
// emulated GPU, which is slow, only some of them.
inline void add_every_output(Dice& dice, const Bytes& file, const std::string& name, std::vector<Wish>& wishes) {
  for (uint32_t type = wish_for(file).image.type; type <= L3_CUDA_F32; ++type) {
    for (const uint32_t layout : {L3_CUDA_HWC, L3_CUDA_CHW}) {
      for (const uint32_t flags : {0u, uint32_t{L3_CUDA_FLIP}, uint32_t{L3_CUDA_COLOURS}}) {
        if (kEmulated && !dice.chance(codec_testing::kSanitized ? 10 : 3)) continue;
        Wish wish = wish_for(file, flags);
        wish.image.type = type;
        wish.image.layout = layout;
        any_place(dice, wish);
        any_numbers(dice, wish);
        wish.name = name;
        wishes.push_back(std::move(wish));
      }
    }
  }
}

inline void shuffle(Dice& dice, std::vector<Wish>& wishes) {
  for (size_t i = wishes.size(); i > 1; --i) std::swap(wishes[i - 1], wishes[dice.roll(i)]);
}

// Decodes them in batches of so many.
inline void expect_in_batches(Dice& dice, const std::vector<Wish>& wishes, size_t of) {
  for (auto first = wishes.begin(); first != wishes.end();) {
    const auto last = first + std::min(static_cast<ptrdiff_t>(of), wishes.end() - first);
    Batch batch({first, last}, any_arrangement(dice));
    ASSERT_NO_FATAL_FAILURE(batch.expect_all());
    first = last;
  }
}

// Changes one bit, if there are any.
inline void flip_bit(Dice& dice, Bytes& bytes) {
  if (!bytes.empty()) bytes[dice.roll(bytes.size())] ^= static_cast<uint8_t>(1u << dice.roll(8));
}

}  // namespace gpu_testing
