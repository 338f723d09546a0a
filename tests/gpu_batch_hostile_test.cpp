// Tests of bad files in batches with good ones: the reason and the offset are libl3's, nothing is written outside the
// output, and the good files are decoded correctly.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <tuple>

#include "fuzz/file_mutator.h"
#include "gpu_wishes.h"

// What fuzz/file_mutator.h takes from libFuzzer: some bytes changed, added or taken away.
extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size) {
  static drawing::Dice dice(77);
  if (size < max_size && dice.chance(4)) data[size++] = dice.byte();
  if (size > 1 && dice.chance(6)) --size;
  for (uint32_t changes = 1 + dice.roll(3); changes > 0 && size > 0; --changes) {
    uint8_t& byte = data[dice.roll(size)];
    byte = static_cast<uint8_t>(dice.chance(2) ? byte ^ 1u << dice.roll(8) : dice.roll(256));
  }
  return size;
}

namespace {

using namespace gpu_testing;
using codec_testing::encode;
using codec_testing::options_of;
using drawing::draw;

class GpuHostile : public Gpu {};

// An image that is not too large for a test; otherwise a part of it.
void keep_small(Dice& dice, Wish& wish) {
  const l3_cuda_image& image = wish.image;
  if (uint64_t{image.width} * image.height > scale().max_pixels) any_region(dice, wish, scale().max_pixels);
}

// What a hostile file is asked for, in an output that begins and ends with bytes of somebody else.
Wish hostile(Dice& dice, Bytes file, std::string name) {
  uint32_t flags = 0;
  if (dice.chance(3)) flags |= L3_CUDA_COLOURS;
  if (dice.chance(3)) flags |= L3_CUDA_STAGE;
  Wish wish = wish_for(std::move(file), flags);
  keep_small(dice, wish);
  const bool is_wide = wish.image.type == L3_CUDA_U16;
  if (dice.chance(4)) wish.image.type = is_wide ? 1 + dice.roll(4) : dice.roll(5);
  wish.image.layout = dice.roll(2);
  any_place(dice, wish);
  wish.name = std::move(name);
  return wish;
}

// Good ones, of each method, to stand between them.
std::vector<Wish> good_ones() {
  std::vector<Wish> wishes;
  wishes.push_back(wish_for(encode(draw({70, 20}, {L3_COLOUR_RGB, 8}, Pattern::natural))));
  wishes.push_back(
      wish_for(encode(drawing::draw_mixed({40, 33}, {L3_COLOUR_GRAY, 8}), options_of(L3_METHOD_DENSE, 32, 32, 1)),
               L3_CUDA_STAGE));
  wishes.push_back(wish_for(encode(draw({33, 9}, {L3_COLOUR_GRAY_ALPHA, 12}, Pattern::noise))));
  for (Wish& wish : wishes) wish.name = "a good one";
  return wishes;
}

// Runs them in batches of so many, with good ones before, between and after.
void expect_between_good_ones(Dice& dice, std::vector<Wish> wishes, size_t of) {
  const std::vector<Wish> good = good_ones();
  for (size_t first = 0; first < wishes.size(); first += of) {
    std::vector<Wish> some{good[0]};
    for (size_t i = first; i < std::min(first + of, wishes.size()); ++i) {
      some.push_back(std::move(wishes[i]));
      if (dice.chance(8)) some.push_back(dice.pick(good));
    }
    some.push_back(good[1]);
    some.push_back(good[2]);
    Batch batch(std::move(some), any_arrangement(dice));
    ASSERT_NO_FATAL_FAILURE(batch.expect_all());
  }
}

// L3_VECTORS is a folder that spec/vectors/build.py has filled.
TEST_F(GpuHostile, EveryVector) {
  const char* folder = std::getenv("L3_VECTORS");
  ASSERT_NE(folder, nullptr) << "L3_VECTORS must name a folder that spec/vectors/build.py has filled";
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().extension() == ".l3") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  ASSERT_GT(paths.size(), 400u);
  Dice dice(21);
  std::vector<Wish> wishes;
  for (const std::filesystem::path& path : paths) {
    std::ifstream in(path, std::ios::binary);
    const Bytes file{std::istreambuf_iterator<char>(in), {}};
    const std::string name = path.parent_path().filename() / path.stem();
    wishes.push_back(wish_for(file));
    keep_small(dice, wishes.back());
    wishes.back().name = name;
    if (!dice.chance(4)) continue;
    wishes.push_back(hostile(dice, file, name));
    any_region(dice, wishes.back(), scale().max_pixels);
  }
  // In an order in which they have not been drawn up: what one leaves behind is not what suits the next.
  shuffle(dice, wishes);
  ASSERT_NO_FATAL_FAILURE(expect_between_good_ones(dice, std::move(wishes), 40));
}

// Small files of all kinds, to be spoilt.
std::vector<Bytes> seeds() {
  std::vector<Bytes> files;
  const auto add = [&](const Drawing& d, l3_method method) {
    files.push_back(encode(d, options_of(method, 32, 32, 1)));
  };
  for (const l3_colour colour : {L3_COLOUR_GRAY, L3_COLOUR_GRAY_ALPHA, L3_COLOUR_RGB, L3_COLOUR_RGB_ALPHA}) {
    add(drawing::draw_mixed({32, 9}, {colour, 8}), L3_METHOD_FAST);
    add(drawing::draw_mixed({32, 34}, {colour, 8}), L3_METHOD_DENSE);
    add(drawing::draw_mixed({20, 9}, {colour, 11}), L3_METHOD_FAST);
  }
  add(drawing::with_sections(draw({40, 35}, {L3_COLOUR_PALETTE, 8}, Pattern::natural)), L3_METHOD_DENSE);
  add(drawing::with_sections(draw({40, 9}, {L3_COLOUR_PALETTE, 4}, Pattern::labels)), L3_METHOD_FAST);
  add(drawing::with_sections(drawing::draw_mixed({32, 9}, {L3_COLOUR_RGB, 8})), L3_METHOD_DENSE);
  add(draw({1, 1}, {L3_COLOUR_GRAY, 1}, Pattern::noise), L3_METHOD_FAST);
  Dice dice(22);
  for (int i = 0; i < 4; ++i) {
    files.push_back(by_hand::put_together(by_hand::any_parts(dice, {50, 40}, any_type(dice))));
  }
  const auto add_tokens = [&](drawing::Type type, uint32_t channels) {
    const by_hand::TokenModel model = by_hand::any_token_model(dice, channels, type.bits);
    files.push_back(by_hand::put_together(by_hand::any_token_file(dice, {40, 35}, type, model).parts));
  };
  add_tokens({L3_COLOUR_GRAY, 16}, 1);
  add_tokens({L3_COLOUR_GRAY, 2}, 1);
  add_tokens({L3_COLOUR_RGB, 8}, 3);
  add_tokens({L3_COLOUR_RGB_ALPHA, 12}, 4);
  add(draw({40, 35}, {L3_COLOUR_GRAY, 16}, Pattern::natural), L3_METHOD_AUTO);
  add(draw({40, 35}, {L3_COLOUR_RGB, 8}, Pattern::labels), L3_METHOD_AUTO);
  return files;
}

TEST_F(GpuHostile, MutationsWhoseChecksAreRight) {
  Dice dice(23);
  const std::vector<Bytes> from = seeds();
  std::vector<Wish> wishes;
  uint32_t refused = 0;
  for (uint32_t i = 0; i < scale().mutations; ++i) {
    Bytes file = dice.pick(from);
    const size_t size = file.size();
    file.resize(2 * size + 4096);
    file.resize(fuzz::mutate_file(file.data(), size, file.size(), static_cast<unsigned>(dice.next())));
    wishes.push_back(hostile(dice, std::move(file), "mutation " + std::to_string(i)));
    refused += Expected(wishes.back()).error.status != L3_OK;
  }
  EXPECT_GT(refused, scale().mutations / 3);
  EXPECT_LT(refused, scale().mutations * 9 / 10);
  ASSERT_NO_FATAL_FAILURE(expect_between_good_ones(dice, std::move(wishes), 25));
}

// Payloads of dense tiles reach the engine in many states.
TEST_F(GpuHostile, DamagedPayloadsWhoseChecksAreRight) {
  Dice dice(24);
  std::vector<Wish> wishes;
  for (const l3_method method : {L3_METHOD_DENSE, L3_METHOD_FAST}) {
    const by_hand::Parts good = by_hand::take_apart(
        encode(draw({90, 40}, {L3_COLOUR_RGB, 8}, Pattern::natural), options_of(method, 32, 32, 1)));
    for (uint32_t i = 0; i < scale().mutations / 25; ++i) {
      by_hand::Parts parts = good;
      for (uint32_t spoilt = 1 + dice.roll(3); spoilt > 0; --spoilt) {
        Bytes& payload = dice.pick(parts.tiles).payload;
        if (payload.empty()) continue;
        const size_t size = payload.size();
        switch (dice.roll(4)) {
          case 0: payload[dice.roll(size)] ^= static_cast<uint8_t>(1u << dice.roll(8)); break;
          case 1: payload[size - 1 - dice.roll(std::min<size_t>(size, 16))] ^= 0x80; break;
          case 2: payload.resize(std::max<size_t>(16, size - 16)); break;
          default:
            for (size_t k = std::min<size_t>(128, size / 2); k < size; ++k) payload[k] = dice.byte();
        }
      }
      wishes.push_back(hostile(dice, by_hand::put_together(parts), "damage " + std::to_string(i)));
    }
  }
  ASSERT_NO_FATAL_FAILURE(expect_between_good_ones(dice, std::move(wishes), 20));
}

// Cut anywhere, and longer than they are; the memory ends where the file does.
TEST_F(GpuHostile, TruncatedAndTooLong) {
  Dice dice(25);
  std::vector<Wish> wishes;
  for (const Bytes& file : seeds()) {
    std::vector<size_t> sizes{
        0, 1, 7, 8, 15, 16, 63, 64, 65, file.size() - 1, file.size() - 16, file.size() + 1, file.size() + 16};
    for (uint32_t i = 0; i < 3 + scale().mutations / 200; ++i) sizes.push_back(dice.roll(file.size()));
    for (const size_t size : sizes) {
      if (kEmulated && dice.chance(2)) continue;
      Bytes other = file;
      other.resize(size);
      // What the caller knows is the whole file.
      Wish wish = hostile(dice, file, "of " + std::to_string(file.size()) + " bytes " + std::to_string(size));
      wish.file = std::move(other);
      wishes.push_back(std::move(wish));
    }
  }
  ASSERT_NO_FATAL_FAILURE(expect_between_good_ones(dice, std::move(wishes), 30));
}

// Bytes that are no L3 at all.
TEST_F(GpuHostile, Noise) {
  Dice dice(26);
  std::vector<Wish> wishes;
  for (uint32_t i = 0; i < scale().mutations / 20; ++i) {
    Bytes file = dice.bytes(dice.roll(300));
    constexpr uint8_t kSignature[] = {0x8B, 0x4C, 0x33, 0x49, 0x0D, 0x0A, 0x1A, 0x0A};
    if (dice.chance(2)) std::copy_n(kSignature, std::min(file.size(), sizeof(kSignature)), file.begin());
    wishes.push_back(hostile(dice, std::move(file), "noise " + std::to_string(i)));
  }
  ASSERT_NO_FATAL_FAILURE(expect_between_good_ones(dice, std::move(wishes), 30));
}

// The caller made room for another image than the file has.
TEST_F(GpuHostile, FilesThatAreNotWhatTheCallerSays) {
  Dice dice(27);
  std::vector<Wish> wishes;
  std::map<std::tuple<const Drawing*, l3_method, bool>, Bytes> encoded;
  const auto lie = [&](const Drawing& d, uint32_t flags, const std::function<void(l3_cuda_image&)>& change) {
    for (const l3_method method : {L3_METHOD_FAST, L3_METHOD_DENSE}) {
      Bytes& file = encoded[{&d, method, d.transparency.empty()}];
      if (file.empty()) file = encode(d, options_of(method, 32, 32, 1));
      for (const uint32_t layout : {L3_CUDA_HWC, L3_CUDA_CHW}) {
        Wish wish = wish_for(file, flags);
        wish.image.layout = layout;
        change(wish.image);
        any_place(dice, wish);
        wish.name = d.name();
        ASSERT_TRUE(Expected(wish).is_lie);
        wishes.push_back(std::move(wish));
      }
    }
  };
  const Drawing rgb = drawing::draw_mixed({40, 50}, {L3_COLOUR_RGB, 8});
  for (const int by : {-1, 1, -32, 64}) {
    lie(rgb, 0, [&](l3_cuda_image& image) { image.width += static_cast<uint32_t>(by); });
    lie(rgb, 0, [&](l3_cuda_image& image) { image.height += static_cast<uint32_t>(by); });
  }
  lie(rgb, 0, [](l3_cuda_image& image) { std::swap(image.width, image.height); });
  lie(rgb, 0, [](l3_cuda_image& image) { image.width = image.height = 1; });
  for (const uint32_t channels : {1u, 2u, 4u}) lie(rgb, 0, [&](l3_cuda_image& image) { image.channels = channels; });
  const Drawing gray = draw({50, 40}, {L3_COLOUR_GRAY, 8}, Pattern::natural);
  lie(gray, 0, [](l3_cuda_image& image) { image.channels = 3; });
  Drawing palette = draw({50, 40}, {L3_COLOUR_PALETTE, 8}, Pattern::natural);
  lie(palette, L3_CUDA_COLOURS, [](l3_cuda_image& image) { image.channels = 1; });
  lie(palette, L3_CUDA_COLOURS, [](l3_cuda_image& image) { image.channels = 4; });
  lie(palette, 0, [](l3_cuda_image& image) { image.channels = 3; });
  palette.transparency = {0};
  lie(palette, L3_CUDA_COLOURS, [](l3_cuda_image& image) { image.channels = 3; });
  // Samples that do not fit bytes.
  const Drawing deep = draw({50, 40}, {L3_COLOUR_RGB, 9}, Pattern::natural);
  lie(deep, 0, [](l3_cuda_image& image) { image.type = L3_CUDA_U8; });
  ASSERT_NO_FATAL_FAILURE(expect_between_good_ones(dice, std::move(wishes), 30));
}

}  // namespace
