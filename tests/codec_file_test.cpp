// Tests of opened files: wrong calls, workspaces, limits, many calls and threads, and that they say what the calls that
// take bytes say.
#include <algorithm>
#include <thread>

#include "by_hand.h"
#include "codec_testing.h"
#include "l3/l3.hpp"

namespace {

using codec_testing::Bytes;
using codec_testing::Exact;
using codec_testing::Said;
using codec_testing::said;
using drawing::Drawing;

struct CloseFile {
  void operator()(l3_file* file) const { l3_close(file); }
};
using File = std::unique_ptr<l3_file, CloseFile>;

File open(const Bytes& bytes, const l3_decode_options* options = nullptr, void* workspace = nullptr, size_t size = 0) {
  l3_file* file = nullptr;
  l3_error error{};
  EXPECT_EQ(l3_open(bytes.data(), bytes.size(), options, workspace, size, &file, &error), L3_OK) << error.reason;
  return File(file);
}

Said say_open(const Bytes& bytes, void* workspace, size_t workspace_size) {
  l3_file* file = nullptr;
  l3_error error{};
  const l3_status status = l3_open(bytes.data(), bytes.size(), nullptr, workspace, workspace_size, &file, &error);
  const File closing(file);
  EXPECT_EQ(status == L3_OK, file != nullptr);
  return said(status, error);
}

const Drawing& rgb() {
  static const Drawing drawn = drawing::with_sections(drawing::draw_mixed({70, 45}, {L3_COLOUR_RGB, 8}));
  return drawn;
}
// Without a model, and with one of its own.
const Bytes& fast_file() {
  static const Bytes file = codec_testing::encode(rgb(), codec_testing::tiles_of(32, 32));
  return file;
}
const Bytes& dense_file() {
  static const Bytes file = [] {
    l3_encode_options options = codec_testing::options_of(L3_METHOD_DENSE, 32, 32, 1);
    options.model_origin = L3_MODEL_OWN;
    return codec_testing::encode(rgb(), options);
  }();
  return file;
}

TEST(OpenedFile, RefusesWrongCalls) {
  l3_file* file = nullptr;
  l3_error error{};
  const Bytes& bytes = fast_file();
  EXPECT_EQ(l3_open(nullptr, 0, nullptr, nullptr, 0, &file, &error), L3_ERROR_ARGUMENT);
  EXPECT_EQ(l3_open(bytes.data(), bytes.size(), nullptr, nullptr, 0, nullptr, &error), L3_ERROR_ARGUMENT);
  l3_decode_options options{};
  EXPECT_EQ(l3_open(bytes.data(), bytes.size(), &options, nullptr, 0, &file, &error), L3_ERROR_ARGUMENT);
  options = l3_decode_options_init();
  options.model_count = 1;
  EXPECT_EQ(l3_open(bytes.data(), bytes.size(), &options, nullptr, 0, &file, &error), L3_ERROR_ARGUMENT);
  EXPECT_EQ(file, nullptr);
  l3_close(nullptr);

  l3_info info = l3_info_init();
  l3_sizes sizes = l3_sizes_init();
  const uint8_t* section = nullptr;
  uint8_t out[8] = {};
  size_t size = 0;
  uint32_t entries = 0;
  uint64_t count = 0;
  const auto expect_refused = [&](const l3_file* of, void* to) {
    EXPECT_EQ(l3_file_info(of, nullptr, &error), L3_ERROR_ARGUMENT);
    EXPECT_EQ(l3_file_section(of, 1, nullptr, &size, &error), L3_ERROR_ARGUMENT);
    EXPECT_EQ(l3_file_section(of, 1, &section, nullptr, &error), L3_ERROR_ARGUMENT);
    EXPECT_EQ(l3_file_palette(of, nullptr, 0, nullptr, &error), L3_ERROR_ARGUMENT);
    EXPECT_EQ(l3_file_metadata(of, nullptr, 0, nullptr, &error), L3_ERROR_ARGUMENT);
    EXPECT_EQ(l3_file_count_tiles(of, 0, nullptr, &error), L3_ERROR_ARGUMENT);
    EXPECT_EQ(l3_file_measure(of, nullptr, &error), L3_ERROR_ARGUMENT);
    EXPECT_EQ(l3_file_decode(of, to, sizeof(out), 0, &error), L3_ERROR_ARGUMENT);
    EXPECT_EQ(l3_file_decode_region(of, 0, 0, 1, 1, to, sizeof(out), 0, &error), L3_ERROR_ARGUMENT);
  };
  expect_refused(nullptr, out);
  EXPECT_EQ(l3_file_info(nullptr, &info, &error), L3_ERROR_ARGUMENT);
  EXPECT_EQ(l3_file_section(nullptr, 1, &section, &size, &error), L3_ERROR_ARGUMENT);
  EXPECT_EQ(l3_file_palette(nullptr, nullptr, 0, &entries, &error), L3_ERROR_ARGUMENT);
  EXPECT_EQ(l3_file_metadata(nullptr, nullptr, 0, &size, &error), L3_ERROR_ARGUMENT);
  EXPECT_EQ(l3_file_count_tiles(nullptr, 0, &count, &error), L3_ERROR_ARGUMENT);
  EXPECT_EQ(l3_file_measure(nullptr, &sizes, &error), L3_ERROR_ARGUMENT);
  EXPECT_EQ(l3_file_verify(nullptr, &error), L3_ERROR_ARGUMENT);
  EXPECT_EQ(l3_file_pixel_bytes(nullptr), 0u);
  EXPECT_EQ(l3_file_tile_method(nullptr, 0), UINT32_MAX);
  const File opened = open(bytes);
  expect_refused(opened.get(), nullptr);
  info = {};
  EXPECT_EQ(l3_file_info(opened.get(), &info, &error), L3_ERROR_ARGUMENT);
  sizes = {};
  EXPECT_EQ(l3_file_measure(opened.get(), &sizes, &error), L3_ERROR_ARGUMENT);
}

TEST(OpenedFile, LivesInAnyWorkspaceThatIsLargeEnough) {
  struct Case {
    const Bytes& bytes;
    size_t enough;
  };
  for (const Case& each : {Case{fast_file(), L3_WORKSPACE_MIN_BYTES}, Case{dense_file(), L3_WORKSPACE_BYTES}}) {
    for (const size_t skew : {size_t{0}, size_t{1}, size_t{63}}) {
      const Exact memory(each.enough + skew);
      {
        const File file = open(each.bytes, nullptr, memory.data() + skew, each.enough);
        Bytes out(rgb().pixels.size());
        EXPECT_EQ(l3_file_decode(file.get(), out.data(), out.size(), 0, nullptr), L3_OK);
        EXPECT_EQ(out, rgb().pixels);
        // What decodes into the workspace would overwrite the file.
        l3_error error{};
        uint8_t* const inside = reinterpret_cast<uint8_t*>(file.get());
        EXPECT_EQ(l3_file_decode_region(file.get(), 0, 0, 1, 1, inside, 3, 0, &error), L3_ERROR_ARGUMENT);
        EXPECT_STREQ(error.reason, "input and output overlap in memory");
      }
      EXPECT_EQ(say_open(each.bytes, memory.data(), 0).status, L3_ERROR_BUFFER);
      EXPECT_EQ(say_open(each.bytes, memory.data(), 100).status, L3_ERROR_BUFFER);
    }
  }
  const Exact memory(L3_WORKSPACE_BYTES);
  EXPECT_EQ(say_open(dense_file(), memory.data(), L3_WORKSPACE_MIN_BYTES).status, L3_ERROR_BUFFER);
  for (size_t size = 0; size < L3_WORKSPACE_BYTES; size += 997) {
    const Exact exactly(size);  // a sanitizer sees what is written beyond
    const l3_status status = say_open(dense_file(), exactly.data(), size).status;
    EXPECT_TRUE(status == L3_OK || status == L3_ERROR_BUFFER);
  }
  // The file in its own workspace.
  Bytes both(L3_WORKSPACE_BYTES);
  std::copy(fast_file().begin(), fast_file().end(), both.begin());
  l3_file* file = nullptr;
  l3_error error{};
  EXPECT_EQ(l3_open(both.data(), fast_file().size(), nullptr, both.data(), both.size(), &file, &error),
            L3_ERROR_ARGUMENT);
  EXPECT_STREQ(error.reason, "input and output overlap in memory");
  EXPECT_TRUE(std::equal(fast_file().begin(), fast_file().end(), both.begin()));
}

TEST(OpenedFile, SaysWhatTheBytesSay) {
  for (const drawing::Type& type : drawing::all_types()) {
    const Drawing drawn = drawing::with_sections(drawing::draw_mixed({40, 33}, type));
    const Bytes bytes = codec_testing::encode(drawn, codec_testing::options_of(L3_METHOD_DENSE, 32, 32, 1));
    l3_decode_options options = l3_decode_options_init();
    for (options.as_colours = 0; options.as_colours < 2; ++options.as_colours) {
      const File file = open(bytes, &options);
      l3_info info = l3_info_init(), info_of_bytes = codec_testing::info_of(bytes);
      EXPECT_EQ(l3_file_info(file.get(), &info, nullptr), L3_OK);
      EXPECT_EQ(std::memcmp(&info, &info_of_bytes, sizeof(info)), 0);
      const uint32_t pixel_bytes = l3_file_pixel_bytes(file.get());
      EXPECT_EQ(pixel_bytes, l3_pixel_bytes(&info, bytes.data(), bytes.size(), &options));
      // Twice, and in parts.
      const Bytes whole = codec_testing::decode(bytes, options);
      for (int round = 0; round < 2; ++round) {
        Bytes out(whole.size());
        EXPECT_EQ(l3_file_decode(file.get(), out.data(), out.size(), 0, nullptr), L3_OK);
        EXPECT_EQ(out, whole);
      }
      Bytes pixel(pixel_bytes);
      EXPECT_EQ(l3_file_decode_region(file.get(), 33, 32, 1, 1, pixel.data(), pixel.size(), 0, nullptr), L3_OK);
      EXPECT_TRUE(std::equal(pixel.begin(), pixel.end(), &whole[(size_t{32} * drawn.width + 33) * pixel_bytes]));
      EXPECT_EQ(l3_file_verify(file.get(), nullptr), L3_OK);
      for (uint32_t method = 0; method < 5; ++method) {
        uint64_t count = 0, count_of_bytes = 0;
        EXPECT_EQ(l3_file_count_tiles(file.get(), method, &count, nullptr), L3_OK);
        EXPECT_EQ(l3_count_tiles(bytes.data(), bytes.size(), method, &count_of_bytes, nullptr), L3_OK);
        EXPECT_EQ(count, count_of_bytes);
        uint64_t found = 0;
        for (uint64_t tile = 0; tile < info.tile_count; ++tile) {
          found += l3_file_tile_method(file.get(), tile) == method;
        }
        EXPECT_EQ(found, count);
      }
      EXPECT_EQ(l3_file_tile_method(file.get(), info.tile_count), UINT32_MAX);
      l3_sizes sizes = l3_sizes_init(), sizes_of_bytes = l3_sizes_init();
      EXPECT_EQ(l3_file_measure(file.get(), &sizes, nullptr), L3_OK);
      EXPECT_EQ(l3_measure(bytes.data(), bytes.size(), nullptr, &sizes_of_bytes, nullptr), L3_OK);
      EXPECT_EQ(std::memcmp(&sizes, &sizes_of_bytes, sizeof(sizes)), 0);
      for (const uint32_t section : {1u, 2u, 3u, 4u, 5u, 6u, 0x8001u}) {
        const uint8_t *found = nullptr, *found_in_bytes = nullptr;
        size_t size = 0, size_in_bytes = 0;
        EXPECT_EQ(l3_file_section(file.get(), section, &found, &size, nullptr), L3_OK);
        EXPECT_EQ(l3_find_section(bytes.data(), bytes.size(), section, &found_in_bytes, &size_in_bytes, nullptr),
                  L3_OK);
        EXPECT_EQ(found, found_in_bytes);
        EXPECT_EQ(size, size_in_bytes);
      }
      uint32_t entries = 0, entries_of_bytes = 0;
      Bytes colours(768), colours_of_bytes(768);
      EXPECT_EQ(l3_file_palette(file.get(), colours.data(), colours.size(), &entries, nullptr), L3_OK);
      EXPECT_EQ(l3_read_palette(bytes.data(), bytes.size(), colours_of_bytes.data(), colours_of_bytes.size(),
                                &entries_of_bytes, nullptr),
                L3_OK);
      EXPECT_EQ(entries, entries_of_bytes);
      EXPECT_EQ(colours, colours_of_bytes);
      size_t needed = 0;
      Bytes records(drawn.metadata.size());
      EXPECT_EQ(l3_file_metadata(file.get(), records.data(), records.size(), &needed, nullptr), L3_OK);
      EXPECT_EQ(needed, records.size());
      EXPECT_EQ(records, drawn.metadata);

      const auto in_cpp = l3::File::open(bytes);
      ASSERT_TRUE(in_cpp);
      EXPECT_EQ(in_cpp->verify(), L3_OK);
      const auto section = in_cpp->section(L3_SECTION_METADATA);
      ASSERT_TRUE(section);
      EXPECT_EQ(section->empty(), drawn.metadata.empty());
      const auto palette = in_cpp->palette();
      ASSERT_TRUE(palette);
      EXPECT_EQ(*palette, Bytes(colours.begin(), colours.begin() + 3 * static_cast<ptrdiff_t>(entries)));
      const auto metadata = in_cpp->metadata();
      ASSERT_TRUE(metadata);
      EXPECT_EQ(*metadata, drawn.metadata);
    }
  }
}

TEST(OpenedFile, IsDecodedByManyThreads) {
  for (const Bytes* bytes : {&fast_file(), &dense_file()}) {
    const File file = open(*bytes);
    std::atomic<int> wrong = 0;
    const auto work = [&](uint32_t seed) {
      drawing::Dice dice(seed);
      for (int round = 0; round < (codec_testing::kSanitized ? 50 : 500); ++round) {
        const uint32_t columns = rgb().width, rows = rgb().height;
        const uint32_t x = dice.roll(columns), y = dice.roll(rows);
        const uint32_t width = 1 + dice.roll(columns - x), height = 1 + dice.roll(rows - y);
        Bytes out(size_t{3} * width * height);
        if (l3_file_decode_region(file.get(), x, y, width, height, out.data(), out.size(), 0, nullptr) != L3_OK)
          ++wrong;
        for (uint32_t row = 0; row < height; ++row) {
          const uint8_t* const expected = &rgb().pixels[3 * (size_t{columns} * (y + row) + x)];
          if (std::memcmp(&out[size_t{3} * width * row], expected, size_t{3} * width) != 0) ++wrong;
        }
      }
    };
    std::vector<std::thread> threads;
    for (uint32_t i = 0; i < 4; ++i) threads.emplace_back(work, i);
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
  }
}

// Counts loops, and runs them backwards on several threads.
struct Loops {
  std::vector<uint64_t> counts;

  l3_parallel parallel() {
    const auto run = [](void* context, uint64_t count, void (*body)(void*, uint64_t), void* argument) {
      static_cast<Loops*>(context)->counts.push_back(count);
      std::atomic<uint64_t> left = count;
      const auto work = [&] {
        for (uint64_t i = left.fetch_sub(1); i - 1 < count; i = left.fetch_sub(1)) body(argument, i - 1);
      };
      std::thread other(work);
      work();
      other.join();
    };
    return {run, this};
  }
};

l3_batch_image image_of(const l3_file* file, Bytes& out) { return {file, 0, 0, 0, 0, out.data(), out.size(), 0, {}}; }

TEST(Batch, IsDecodedInOneLoopOverAllTiles) {
  const File fast = open(fast_file()), dense = open(dense_file());
  uint64_t tiles = 0;
  for (const Bytes* bytes : {&fast_file(), &dense_file()}) tiles += codec_testing::info_of(*bytes).tile_count;
  Bytes first(rgb().pixels.size()), second(rgb().pixels.size()), pixel(3);
  l3_batch_image images[] = {image_of(fast.get(), first), image_of(dense.get(), second), image_of(dense.get(), pixel)};
  images[2].x = 5;
  images[2].y = 7;
  images[2].width = images[2].height = 1;
  l3_error error{};
  for (const bool threads : {false, true}) {
    Loops loops;
    const l3_parallel parallel = loops.parallel();
    for (Bytes* out : {&first, &second, &pixel}) std::fill(out->begin(), out->end(), uint8_t{1});
    EXPECT_EQ(l3_decode_batch(images, 3, threads ? &parallel : nullptr, &error), L3_OK);
    EXPECT_EQ(error.status, L3_OK);
    EXPECT_EQ(first, rgb().pixels);
    EXPECT_EQ(second, rgb().pixels);
    EXPECT_TRUE(std::equal(pixel.begin(), pixel.end(), &rgb().pixels[3 * (size_t{7} * rgb().width + 5)]));
    if (threads) {
      EXPECT_EQ(loops.counts, std::vector<uint64_t>{tiles + 1});
    }
  }
  EXPECT_EQ(l3_decode_batch(nullptr, 0, nullptr, &error), L3_OK);
  EXPECT_EQ(l3_decode_batch(nullptr, 1, nullptr, &error), L3_ERROR_ARGUMENT);
}

TEST(Batch, DecodesTheOthersWhenSomeFail) {
  Bytes damaged = dense_file();
  damaged[damaged.size() - 20] ^= 1;
  const File good = open(dense_file()), bad = open(damaged);
  Bytes out[4];
  for (Bytes& of : out) of.resize(rgb().pixels.size());
  l3_batch_image images[] = {image_of(bad.get(), out[0]), image_of(good.get(), out[1]), image_of(nullptr, out[2]),
                             image_of(good.get(), out[3])};
  images[3].out_size = 10;
  l3_error error{};
  Loops loops;
  const l3_parallel parallel = loops.parallel();
  EXPECT_EQ(l3_decode_batch(images, 4, &parallel, &error), L3_ERROR_CORRUPT);
  l3_error alone{};
  EXPECT_EQ(l3_file_decode(bad.get(), out[0].data(), out[0].size(), 0, &alone), L3_ERROR_CORRUPT);
  EXPECT_EQ(error.tile, alone.tile);
  EXPECT_EQ(error.offset, alone.offset);
  EXPECT_STREQ(error.reason, alone.reason);
  EXPECT_EQ(images[0].error.tile, alone.tile);
  EXPECT_EQ(images[1].error.status, L3_OK);
  EXPECT_EQ(out[1], rgb().pixels);
  EXPECT_EQ(images[2].error.status, L3_ERROR_ARGUMENT);
  EXPECT_EQ(images[3].error.status, L3_ERROR_BUFFER);
  // A region without pixels is not the whole image.
  images[1].x = 1;
  EXPECT_EQ(l3_decode_batch(images + 1, 1, nullptr, &error), L3_ERROR_ARGUMENT);
}

TEST(OpenedFile, AppliesLimitsToWhatIsDecoded) {
  l3_decode_options options = l3_decode_options_init();
  options.limits = {100, 0, 1};
  const File file = open(fast_file(), &options);
  Bytes out(rgb().pixels.size());
  EXPECT_EQ(l3_file_decode(file.get(), out.data(), out.size(), 0, nullptr), L3_ERROR_LIMIT);
  EXPECT_EQ(l3_file_decode_region(file.get(), 0, 0, 10, 11, out.data(), out.size(), 0, nullptr), L3_ERROR_LIMIT);
  EXPECT_EQ(l3_file_decode_region(file.get(), 0, 0, 10, 10, out.data(), out.size(), 0, nullptr), L3_OK);
  EXPECT_EQ(l3_file_verify(file.get(), nullptr), L3_ERROR_LIMIT);
  size_t needed = 0;
  EXPECT_EQ(l3_file_metadata(file.get(), nullptr, 0, &needed, nullptr), L3_ERROR_LIMIT);

  // In C++ a limit is the reason even if the file is damaged behind its head.
  Bytes cut = fast_file();
  cut.resize(cut.size() - 16);
  EXPECT_EQ(l3::decode(cut, options).error().status, L3_ERROR_LIMIT);
  EXPECT_EQ(l3::decode(cut).error().status, L3_ERROR_TRUNCATED);
  const auto opened = l3::File::open(fast_file());
  ASSERT_TRUE(opened);
  const auto pixels = opened->decode();
  ASSERT_TRUE(pixels);
  EXPECT_EQ(pixels->bytes, rgb().pixels);
  EXPECT_EQ(opened->decode_region(rgb().width - 1, 0, 2, 1).error().status, L3_ERROR_ARGUMENT);
}

TEST(OpenedFile, NeedsANamedModelOnlyForPixels) {
  l3_model* model = nullptr;
  const uint8_t* bytes = nullptr;
  size_t size = 0;
  ASSERT_EQ(l3_default_model(3, &bytes, &size), L3_OK);
  ASSERT_EQ(l3_open_model(bytes, size, &model, nullptr), L3_OK);
  l3_encode_options encoding = codec_testing::options_of(L3_METHOD_DENSE, 32, 32, 1);
  encoding.named_model = model;
  encoding.model_origin = L3_MODEL_NAMED;
  const Bytes named = codec_testing::encode(rgb(), encoding);
  const File without = open(named);
  Bytes out(rgb().pixels.size());
  l3_error error{};
  EXPECT_EQ(l3_file_decode(without.get(), out.data(), out.size(), 0, &error), L3_ERROR_MODEL);
  EXPECT_EQ(error.offset, 64u);
  EXPECT_EQ(l3_file_verify(without.get(), &error), L3_ERROR_MODEL);
  l3_sizes sizes = l3_sizes_init();
  EXPECT_EQ(l3_file_measure(without.get(), &sizes, &error), L3_ERROR_MODEL);
  uint64_t count = 0;
  EXPECT_EQ(l3_file_count_tiles(without.get(), L3_TILE_DENSE, &count, &error), L3_OK);
  EXPECT_GT(count, 0u);
  l3_decode_options options = l3_decode_options_init();
  const l3_model* const models[] = {model};
  options.models = models;
  options.model_count = 1;
  {
    const Exact workspace(L3_WORKSPACE_MIN_BYTES);  // the model is not copied
    const File with = open(named, &options, workspace.data(), workspace.size());
    EXPECT_EQ(l3_file_decode(with.get(), out.data(), out.size(), 0, &error), L3_OK);
    EXPECT_EQ(out, rgb().pixels);
  }
  l3_close_model(model);
}

// Bytes that change after they were verified are an error or other pixels, and never a step beyond the buffers.
TEST(OpenedFile, MayChangeWhileItIsOpen) {
  for (const Bytes* bytes : {&fast_file(), &dense_file()}) {
    drawing::Dice dice(3);
    for (int round = 0; round < (codec_testing::kSanitized ? 300 : 3000); ++round) {
      const Exact changing(*bytes);
      l3_file* opened = nullptr;
      ASSERT_EQ(l3_open(changing.data(), changing.size(), nullptr, nullptr, 0, &opened, nullptr), L3_OK);
      const File file(opened);
      const size_t end = dice.chance(2) ? 600 : changing.size();
      for (int i = 0; i < 8; ++i) changing.data()[dice.roll(end)] = static_cast<uint8_t>(dice.roll(256));
      const Exact out(rgb().pixels.size());
      (void)!l3_file_decode(file.get(), out.data(), out.size(), 0, nullptr);
      (void)!l3_file_verify(file.get(), nullptr);
      l3_sizes sizes = l3_sizes_init();
      if (round % 8 == 0 && bytes == &fast_file()) (void)!l3_file_measure(file.get(), &sizes, nullptr);
    }
  }
}

}  // namespace
