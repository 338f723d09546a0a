// Tests that libl3 allocates no more than l3.h documents, whatever a header claims: decoding allocates nothing unless a
// file has a model of its own, and the other calls stay below their bounds. It counts the calls of the C library's
// allocator.
#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>

#include "by_hand.h"
#include "codec_testing.h"
#include "l3/l3.hpp"
#include "screen_files.h"

#if defined(__SANITIZE_ADDRESS__)
// GCC has the function and not its header.
extern "C" int __sanitizer_install_malloc_and_free_hooks(void (*on_malloc)(const volatile void*, size_t),
                                                         void (*on_free)(const volatile void*));
#define L3_COUNTS_ALLOCATIONS 1
#elif defined(__GLIBC__)
#define L3_COUNTS_ALLOCATIONS 1
#endif

namespace {

using by_hand::Parts;
using codec_testing::Bytes;
using drawing::Dice;

// Bytes asked for on this thread while counting; those given back do not count.
thread_local bool counting = false;
thread_local size_t asked_for = 0;

void note(size_t size) {
  if (counting) asked_for += size;
}

// On threads that may run out of memory: how many more allocations succeed, and whether those after the first failure
// succeed again.
thread_local bool may_fail = false;
std::atomic<int64_t> succeeding = 0;
bool recovers = false;

[[maybe_unused]] bool fails() {
  if (!may_fail) return false;
  const int64_t left = succeeding.fetch_sub(1);
  return recovers ? left == 0 : left <= 0;
}

}  // namespace

#if defined(__SANITIZE_ADDRESS__)
namespace {
void note_malloc(const volatile void*, size_t size) { note(size); }
void note_free(const volatile void*) {}
const int installed = __sanitizer_install_malloc_and_free_hooks(note_malloc, note_free);
}  // namespace
#elif defined(__GLIBC__)
extern "C" {
// The allocator's own names for what is replaced here.
void* __libc_malloc(size_t size);                // NOLINT(bugprone-reserved-identifier)
void* __libc_calloc(size_t count, size_t size);  // NOLINT(bugprone-reserved-identifier)
void* __libc_realloc(void* old, size_t size);    // NOLINT(bugprone-reserved-identifier)
void* malloc(size_t size) {
  note(size);
  return fails() ? nullptr : __libc_malloc(size);
}
void* calloc(size_t count, size_t size) {
  note(count * size);
  return fails() ? nullptr : __libc_calloc(count, size);
}
// Tables of models are aligned.
void* __libc_memalign(size_t alignment, size_t size);  // NOLINT(bugprone-reserved-identifier)
void* aligned_alloc(size_t alignment, size_t size) {
  note(size);
  return fails() ? nullptr : __libc_memalign(alignment, size);
}
void* realloc(void* old, size_t size) {
  note(size);
  return fails() ? nullptr : __libc_realloc(old, size);
}
}
#endif

namespace {

template <class Call>
size_t bytes_of(const Call& call) {
  asked_for = 0;
  counting = true;
  call();
  counting = false;
  return asked_for;
}

constexpr size_t kMiB = 1 << 20;

TEST(Allocation, IsCounted) {
#if !defined(L3_COUNTS_ALLOCATIONS)
  GTEST_SKIP() << "no way to count here";
#endif
  static char* volatile kept = nullptr;  // or the compiler would leave both out
  EXPECT_GE(bytes_of([] { kept = new char[1000]; }), 1000);
  delete[] kept;
}

// A valid file of every type, with all sections.
std::vector<Bytes> files() {
  std::vector<Bytes> made;
  for (const drawing::Type& type : drawing::all_types()) {
    made.push_back(codec_testing::encode(drawing::with_sections(drawing::draw_mixed({32, 9}, type)),
                                         codec_testing::tiles_of(32, 32)));
    if (type.bits == 8) {
      l3_encode_options options = codec_testing::options_of(L3_METHOD_DENSE, 32, 32, 1);
      for (const l3_model_origin origin : {L3_MODEL_OWN, L3_MODEL_DEFAULT}) {
        options.model_origin = origin;
        made.push_back(codec_testing::encode(drawing::with_sections(drawing::draw_mixed({32, 20}, type)), options));
      }
    }
  }
  return made;
}

// Everything that reads and is said to allocate nothing, unless a file has a model of its own.
void read_all(const Bytes& file, Bytes& out) {
  l3_info info = l3_info_init();
  l3_error error{};
  (void)!l3_read_info(file.data(), file.size(), nullptr, &info, &error);
  (void)!l3_check(file.data(), file.size(), nullptr, &error);
  uint64_t count = 0;
  (void)!l3_count_tiles(file.data(), file.size(), 2, &count, &error);
  (void)!l3_count_tiles(file.data(), file.size(), 3, &count, &error);
  l3_sizes sizes = l3_sizes_init();
  (void)!l3_measure(file.data(), file.size(), nullptr, &sizes, &error);
  for (const uint32_t type : {1u, 2u, 3u, 4u, 5u, 6u, 0x8001u}) {
    const uint8_t* bytes = nullptr;
    size_t size = 0;
    (void)!l3_find_section(file.data(), file.size(), type, &bytes, &size, &error);
  }
  l3_decode_options options = l3_decode_options_init();
  for (options.as_colours = 0; options.as_colours < 2; ++options.as_colours) {
    (void)!l3_pixel_bytes(&info, file.data(), file.size(), &options);
    (void)!l3_decode(file.data(), file.size(), &options, out.data(), out.size(), 0, &error);
    (void)!l3_decode_region(file.data(), file.size(), 0, 0, 1, 1, &options, out.data(), out.size(), 0, &error);
  }
}

bool has_own_model(const Bytes& file) {
  l3_info info = l3_info_init();
  const l3_limits none{UINT64_MAX, UINT64_MAX, UINT64_MAX};
  return l3_read_info(file.data(), file.size(), &none, &info, nullptr) == L3_OK && info.model_origin == L3_MODEL_OWN;
}

// Calls of read_all() that need the model.
constexpr size_t kCallsWithModel = 8;

size_t most_of(const Bytes& file) { return has_own_model(file) ? kCallsWithModel * L3_WORKSPACE_BYTES : 0; }

TEST(Allocation, ReadingAndDecodingTakeNoneWithoutAnOwnModel) {
  Bytes out(kMiB);
  size_t most = 0;
  for (const Bytes& file : files()) {
    const size_t bytes = bytes_of([&] { read_all(file, out); });
    EXPECT_LE(bytes, most_of(file));
    most = std::max(most, bytes);
  }
  EXPECT_GT(most, 0u);
}

TEST(Allocation, OpenedFilesTakeNoneInAWorkspace) {
  Bytes out(kMiB), workspace(L3_WORKSPACE_BYTES);
  for (const Bytes& file : files()) {
    const auto use = [&](l3_file* opened) {
      (void)!l3_file_decode(opened, out.data(), out.size(), 0, nullptr);
      (void)!l3_file_decode_region(opened, 0, 0, 1, 1, out.data(), out.size(), 0, nullptr);
      l3_close(opened);
    };
    l3_file* opened = nullptr;
    EXPECT_EQ(bytes_of([&] {
                EXPECT_EQ(
                    l3_open(file.data(), file.size(), nullptr, workspace.data(), workspace.size(), &opened, nullptr),
                    L3_OK);
                use(opened);
              }),
              0);
    EXPECT_LE(bytes_of([&] {
                EXPECT_EQ(l3_open(file.data(), file.size(), nullptr, nullptr, 0, &opened, nullptr), L3_OK);
                use(opened);
              }),
              has_own_model(file) ? L3_WORKSPACE_BYTES : L3_WORKSPACE_MIN_BYTES);
  }
}

// Headers that claim anything, with checks that match.
Bytes with_any_header(Dice& dice, Parts parts) {
  constexpr size_t kFields[] = {10, 20, 21, 22, 24, 25, 26, 32, 34, 35, 36, 37, 38, 39};
  for (uint32_t changes = 1 + dice.roll(3); changes > 0; --changes) {
    parts.header[dice.pick(kFields)] = static_cast<uint8_t>(dice.chance(2) ? dice.roll(33) : dice.roll(256));
  }
  return by_hand::put_together(parts);
}

TEST(Allocation, NoHeaderMakesDecodingTakeMore) {
  Dice dice(1);
  Bytes out(kMiB);
  std::vector<Parts> parts;
  for (const Bytes& file : files()) parts.push_back(by_hand::take_apart(file));
  for (int round = 0; round < 20000; ++round) {
    const Bytes file = with_any_header(dice, dice.pick(parts));
    ASSERT_LE(bytes_of([&] { read_all(file, out); }), most_of(file)) << "round " << round;
  }
}

// l3.hpp makes room for the samples: never more than the limit, and none before there is a file behind the header.
TEST(Allocation, OfTheCppFaceStaysWithinTheLimit) {
  Dice dice(2);
  std::vector<Parts> parts;
  for (const Bytes& file : files()) parts.push_back(by_hand::take_apart(file));
  int decoded = 0;
  for (int round = 0; round < 20000; ++round) {
    const Bytes file = with_any_header(dice, dice.pick(parts));
    l3_decode_options options = l3_decode_options_init();
    options.limits.max_output_bytes = 1 + dice.roll(uint64_t{1} << dice.roll(20));
    l3_info info = l3_info_init();
    const bool sound = l3_check(file.data(), file.size(), nullptr, nullptr) == L3_OK &&
                       l3_read_info(file.data(), file.size(), nullptr, &info, nullptr) == L3_OK;
    const size_t bytes = bytes_of([&] { decoded += static_cast<bool>(l3::decode(file, options)); });
    ASSERT_LE(bytes, options.limits.max_output_bytes + L3_WORKSPACE_BYTES) << "round " << round;
    if (!sound) {
      ASSERT_LE(bytes, has_own_model(file) ? L3_WORKSPACE_BYTES : L3_WORKSPACE_MIN_BYTES) << "round " << round;
    }
  }
  EXPECT_GT(decoded, 100);
}

// Constant tiles: the most pixels for the fewest bytes of file.
TEST(Allocation, OfAnImageOfConstantTilesIsItsSamples) {
  Parts parts;
  parts.header = by_hand::header(16384, 16384, L3_COLOUR_GRAY, 8, 992, 1024);
  parts.tiles.resize(272);
  const Bytes file = by_hand::put_together(parts);
  l3_decode_options options = l3_decode_options_init();
  options.limits.max_output_bytes = kMiB;
  EXPECT_LE(bytes_of([&] { EXPECT_EQ(l3::decode(file, options).error().status, L3_ERROR_LIMIT); }),
            L3_WORKSPACE_MIN_BYTES);
  EXPECT_EQ(bytes_of([&] { (void)!l3_verify(file.data(), file.size(), nullptr, nullptr); }), 0);
}

TEST(Allocation, OfMetadataStaysWithinWhatIsSaid) {
  // 64 MiB of zeros in 2 KiB, with the largest window.
  const uint32_t unpacked = 64 * kMiB;
  Bytes section(4);
  by_hand::put(section.data(), 4, unpacked);
  section = drawing::joined(section, {0x28, 0xB5, 0x2F, 0xFD, 0x80, 13 << 3, 0, 0, 0, 4, 0x60, 0, 0});
  Bytes record = drawing::record("zero", 0, {});
  by_hand::put(&record[8], 4, unpacked - 12);
  section = drawing::joined(section, record);
  for (uint32_t left = unpacked - 12; left > 0;) {
    const uint32_t block = std::min(left, 1u << 17);
    left -= block;
    Bytes header(4);
    by_hand::put(header.data(), 3, block << 3 | 2 | (left == 0));
    section = drawing::joined(section, header);
  }
  Parts parts;
  parts.header = by_hand::header(1, 1, L3_COLOUR_GRAY, 8);
  parts.tiles.resize(1);
  parts.sections.push_back({L3_SECTION_METADATA, section});
  const Bytes file = by_hand::put_together(parts);
  EXPECT_LE(bytes_of([&] { EXPECT_EQ(l3_verify(file.data(), file.size(), nullptr, nullptr), L3_OK); }), 9 * kMiB);
  l3_limits limits{};
  limits.max_metadata_bytes = unpacked - 1;
  size_t needed = 0;
  Bytes out(unpacked);
  const auto unpack = [&](l3_status wanted) {
    EXPECT_EQ(l3_unpack_metadata(file.data(), file.size(), &limits, out.data(), out.size(), &needed, nullptr), wanted);
  };
  EXPECT_EQ(bytes_of([&] { unpack(L3_ERROR_LIMIT); }), 0);
  limits.max_metadata_bytes = unpacked;
  EXPECT_LE(bytes_of([&] { unpack(L3_OK); }), 256 * 1024);
}

// Zstandard stores a few bytes as they are.
TEST(Allocation, OfUnpackingAFewBytesIsNone) {
  drawing::Drawing drawn = drawing::draw_mixed({33, 20}, {L3_COLOUR_RGB, 8});
  drawn.metadata = drawing::record("tEXt", 0, {'T', 'i', 't', 'l', 'e', 0, 'x', 'y'});
  const Bytes file = codec_testing::encode(drawn, codec_testing::fast_options());
  Bytes out(drawn.metadata.size());
  size_t needed = 0;
  EXPECT_EQ(bytes_of([&] {
              EXPECT_EQ(l3_unpack_metadata(file.data(), file.size(), nullptr, out.data(), out.size(), &needed, nullptr),
                        L3_OK);
            }),
            0u);
  EXPECT_EQ(out, drawn.metadata);
}

TEST(Allocation, OfFastEncodingIsNoneButForMetadata) {
  for (const bool has_metadata : {false, true}) {
    drawing::Drawing d = drawing::with_sections(drawing::draw_mixed({300, 200}, {L3_COLOUR_RGB, 8}));
    if (!has_metadata) d.metadata.clear();
    const l3_image image = d.image();
    const l3_encode_options options = codec_testing::fast_options();
    Bytes out(l3_encode_bound(&image, &options));
    size_t written = 0;
    const size_t bytes =
        bytes_of([&] { EXPECT_EQ(l3_encode(&image, &options, out.data(), out.size(), &written, nullptr), L3_OK); });
    EXPECT_LE(bytes, has_metadata ? 8 * kMiB : 0);
  }
}

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__)
// ---- memory that runs out: an error of the call, on whatever thread, and never the program's end

// Two threads and the caller's, all of which may run out of memory.
void run_on_threads(void*, uint64_t count, void (*body)(void*, uint64_t), void* argument) {
  std::atomic<uint64_t> next{0};
  const bool may_fail_here = may_fail;
  const auto work = [&] {
    may_fail = may_fail_here;
    for (uint64_t i = next++; i < count; i = next++) body(argument, i);
    may_fail = false;
  };
  const bool may_have_failed = std::exchange(may_fail, false);  // the threads themselves are not libl3's
  std::thread first(work), second(work);
  work();
  first.join();
  second.join();
  may_fail = may_have_failed;
}

const l3_parallel kThreads = {run_on_threads, nullptr};

// Calls with one allocation after the other failing, alone and with all that follow it. The call gives a status. An
// encoder makes thousands of allocations, many of them in the same places: of those that come late, few fail, or
// each with L3_EVERY_ALLOCATION=1, which takes half an hour.
template <class Call>
void fail_each_allocation(const char* what, const Call& call) {
  const bool every = std::getenv("L3_EVERY_ALLOCATION") != nullptr;
  for (const bool alone : {false, true}) {
    recovers = alone;
    uint32_t failed = 0;
    for (int64_t n = 0;; n += every ? 1 : 1 + n / 8) {
      succeeding = n;
      may_fail = true;
      const l3_status status = call();
      may_fail = false;
      const bool ran_out = succeeding < 0;
      if (status == L3_OK && (!ran_out || !alone)) {
        ASSERT_FALSE(ran_out) << what << ": allocation " << n << " failed, and nobody said so";
        break;
      }
      // What an encoder can do without may be missing.
      if (status != L3_OK) {
        ASSERT_EQ(status, L3_ERROR_MEMORY) << what << ": allocation " << n;
        ++failed;
      }
      ASSERT_LT(n, 1 << 24) << what;
    }
    EXPECT_GT(failed, 0u) << what;
  }
}

TEST(OutOfMemory, IsAnErrorOfEveryEncoding) {
  const drawing::Type rgb{L3_COLOUR_RGB, 8}, gray{L3_COLOUR_GRAY, 8}, depth{L3_COLOUR_GRAY, 16};
  struct Case {
    const char* what;
    drawing::Drawing drawn;
    l3_method method;
    uint32_t effort;
  };
  const Case cases[] = {{"metadata", drawing::with_sections(drawing::draw_mixed({33, 20}, rgb)), L3_METHOD_FAST, 1},
                        {"dense", drawing::draw_mixed({70, 40}, rgb), L3_METHOD_DENSE, 1},
                        {"dense, effort 9", drawing::draw_mixed({40, 20}, gray), L3_METHOD_DENSE, 9},
                        {"tokens", drawing::draw_mixed({70, 40}, depth), L3_METHOD_DENSE, 1},
                        {"screen", drawing::screen({110, 70}, gray), L3_METHOD_DENSE, 6},
                        {"auto", drawing::draw_mixed({70, 40}, gray), L3_METHOD_AUTO, 1}};
  for (const Case& each : cases) {
    l3_encode_options options = codec_testing::options_of(each.method, 32, 32, each.effort);
    options.parallel = kThreads;
    const l3_image image = each.drawn.image();
    Bytes out(l3_encode_bound(&image, &options));
    size_t written = 0;
    fail_each_allocation(each.what,
                         [&] { return l3_encode(&image, &options, out.data(), out.size(), &written, nullptr); });
  }
}

TEST(OutOfMemory, IsAnErrorOfModels) {
  const drawing::Drawing drawn = drawing::draw_mixed({70, 40}, {L3_COLOUR_RGB, 8});
  const l3_image image = drawn.image();
  l3_train_options options = l3_train_options_init();
  options.parallel = kThreads;
  options.effort = 1;
  l3_model* model = nullptr;
  const auto train = [&] {
    l3_training* training = nullptr;
    l3_status status = l3_start_training(&options, &training, nullptr);
    if (status == L3_OK) status = l3_add_to_training(training, &image, nullptr);
    if (status == L3_OK) status = l3_finish_training(training, &model, nullptr);
    l3_close_training(training);
    return status;
  };
  fail_each_allocation("training", [&] {
    const l3_status status = train();
    l3_close_model(model);
    model = nullptr;
    return status;
  });
  ASSERT_EQ(train(), L3_OK);
  l3_model_info info{};
  info.struct_size = sizeof(info);
  ASSERT_EQ(l3_describe_model(model, &info, nullptr), L3_OK);
  fail_each_allocation("opening a model", [&] {
    l3_model* opened = nullptr;
    const l3_status status = l3_open_model(info.bytes, info.size, &opened, nullptr);
    l3_close_model(opened);
    return status;
  });
  l3_close_model(model);
}

TEST(OutOfMemory, IsAnErrorOfDecodingWithAnOwnModel) {
  l3_encode_options encoding = codec_testing::options_of(L3_METHOD_DENSE, 32, 32, 1);
  encoding.model_origin = L3_MODEL_OWN;
  const Bytes file = codec_testing::encode(drawing::draw_mixed({33, 20}, {L3_COLOUR_RGB, 8}), encoding);
  Bytes out(kMiB);
  fail_each_allocation(
      "decoding", [&] { return l3_decode(file.data(), file.size(), nullptr, out.data(), out.size(), 0, nullptr); });
  fail_each_allocation("opening", [&] {
    l3_file* opened = nullptr;
    const l3_status status = l3_open(file.data(), file.size(), nullptr, nullptr, 0, &opened, nullptr);
    l3_close(opened);
    return status;
  });
  // Tiles whose pixels follow others.
  const Bytes screen = codec_testing::screen_file({200, 130}, {L3_COLOUR_GRAY, 8}, 96, 96);
  fail_each_allocation("decoding a screen", [&] {
    return l3_decode(screen.data(), screen.size(), nullptr, out.data(), out.size(), 0, nullptr);
  });
}

TEST(OutOfMemory, IsAnErrorOfReadingMetadata) {
  drawing::Drawing drawn = drawing::draw_mixed({33, 20}, {L3_COLOUR_RGB, 8});
  drawn.metadata = drawing::record("tEXt", 0, Bytes(200, 'a'));  // compressed
  const Bytes file = codec_testing::encode(drawn, codec_testing::fast_options());
  Bytes out(kMiB);
  size_t needed = 0;
  fail_each_allocation("unpacking", [&] {
    return l3_unpack_metadata(file.data(), file.size(), nullptr, out.data(), out.size(), &needed, nullptr);
  });
  fail_each_allocation("verifying", [&] { return l3_verify(file.data(), file.size(), nullptr, nullptr); });
}
#endif

}  // namespace
