// The CUDA decoder of the paper's scheme on an emulated GPU: the pixels and the reasons of paper_l3.cpp.
#include "emulated_gpu.h"

// What paper_l3.cu asks of a GPU, besides.
namespace paper {

using std::max;
using std::min;

inline uint32_t* shared_words() { return reinterpret_cast<uint32_t*>(l3::shared); }

template <class Choose>
uint32_t of_halves(uint32_t a, uint32_t b, Choose choose) {
  // Floating-point numbers are in another order above these.
  emulated::Block::running().expect(((a | b) & 0x80008000) == 0, "a half is too large");
  return choose(a & 0xFFFF, b & 0xFFFF) | choose(a >> 16, b >> 16) << 16;
}
inline uint32_t min_of_halves(uint32_t a, uint32_t b) {
  return of_halves(a, b, [](uint32_t x, uint32_t y) { return std::min(x, y); });
}
inline uint32_t max_of_halves(uint32_t a, uint32_t b) {
  return of_halves(a, b, [](uint32_t x, uint32_t y) { return std::max(x, y); });
}
inline uint32_t signs_of_halves(uint32_t a) { return (a >> 15 & 1) * 0xFFFF | (a >> 31) * 0xFFFF0000; }
inline uint32_t shift_right(uint32_t low, uint32_t high, uint32_t by) {
  return static_cast<uint32_t>((uint64_t{high} << 32 | low) >> (by % 32));
}

// Copies are made when their lane waits for them, as late as on a GPU.
struct Copy {
  uint32_t thread;
  uint32_t* to;
  const uint8_t* from;
};
inline std::vector<Copy> copies;
inline void start_copy(uint32_t* to, const uint8_t* from) {
  const emulated::Block& block = emulated::Block::running();
  block.expect(reinterpret_cast<uintptr_t>(to) % 16 == 0 && reinterpret_cast<uintptr_t>(from) % 16 == 0,
               "an unaligned copy");
  block.expect(to >= shared_words() && to + 4 <= shared_words() + block.shared_bytes() / 4,
               "a copy to where no shared memory is");
  copies.push_back({block.thread(), to, from});
}
inline void wait_for_copies() {
  const uint32_t thread = emulated::Block::running().thread();
  for (const Copy& copy : copies) {
    if (copy.thread == thread) std::memcpy(copy.to, copy.from, 16);
  }
  std::erase_if(copies, [&](const Copy& copy) { return copy.thread == thread; });
}

}  // namespace paper

#include "../bench/paper/paper_l3.cu"
#include "paper_l3_testing.h"

namespace {

using namespace paper_l3_testing;
using drawing::Pattern;
using paper::DeviceImage;

// An image of a batch: a file, and where it is decoded to, which need not be aligned.
struct Job {
  Job(const Bytes& bytes, const drawing::Drawing& d, size_t gap = 0, size_t shift = 0)
      : file(bytes),
        shape(shape_of(d)),
        stride(size_t{d.width} * d.channels() + gap),
        start(shift),
        out(shift + stride * d.height) {}

  uint8_t expected(size_t i) const { return i < start || (i - start) % stride >= stride_used() ? 0xA5 : pixel(i); }
  size_t stride_used() const { return size_t{shape.width} * shape.channels; }
  uint8_t pixel(size_t i) const { return wanted.pixels[(i - start) / stride * stride_used() + (i - start) % stride]; }

  Exact file;
  Shape shape;
  size_t stride, start;
  Exact out;
  Decoded wanted;
};

// Decodes a batch; expects what paper_l3.cpp makes of each file, and nothing beside the pixels.
void expect_as_on_cpu(std::vector<Job>& jobs, std::mt19937& dice) {
  std::vector<DeviceImage> images;
  for (Job& job : jobs) {
    job.wanted = decode(job.file, job.shape);
    images.push_back({job.file.data(), job.file.size(), job.out.data() + job.start, job.stride, job.shape.width,
                      job.shape.height, 0, 0});
  }
  const uint32_t channels = jobs[0].shape.channels;
  const paper::Batch batch = paper::plan(images, channels);
  ASSERT_EQ(batch.count, jobs.size());
  std::vector<uint32_t> offsets(batch.patches);
  std::vector<Reason> reasons(batch.count);
  for (uint32_t i = 0; i < batch.count; ++i) {
    emulated::Block::run(i, paper::kScanWarps * paper::kLanes, paper::kScanWarps * 4, dice,
                         [&] { paper::find_patches(images.data(), channels, offsets.data(), reasons.data()); });
  }
  using Kernel = void (*)(const DeviceImage*, uint32_t, uint32_t, const uint32_t*, Reason*);
  constexpr Kernel kDecode[] = {paper::decode_patches<1>, paper::decode_patches<2>, paper::decode_patches<3>,
                                paper::decode_patches<4>};
  for (uint32_t first = 0; first < batch.pairs; first += paper::kDecodeWarps) {
    emulated::Block::run(
        first / paper::kDecodeWarps, paper::kDecodeWarps * paper::kLanes,
        paper::kDecodeWarps * 4 * paper::warp_words(channels), dice,
        [&] { kDecode[channels - 1](images.data(), batch.count, batch.pairs, offsets.data(), reasons.data()); });
    ASSERT_TRUE(paper::copies.empty());
  }
  for (size_t k = 0; k < jobs.size(); ++k) {
    const Job& job = jobs[k];
    ASSERT_EQ(reasons[k], job.wanted.reason) << "image " << k;
    if (job.wanted.reason != Reason::none) continue;
    for (size_t i = 0; i < job.out.size(); ++i) {
      ASSERT_EQ(job.out.data()[i], job.expected(i)) << "image " << k << ", byte " << i;
    }
  }
}

TEST(PaperL3Cuda, PixelsAreThoseOfTheProcessor) {
  std::mt19937 order(1);
  for (const l3_colour colour : kColours) {
    std::vector<Job> jobs;
    for (const drawing::Size size :
         {drawing::Size{1, 1}, drawing::Size{3, 5}, drawing::Size{63, 3}, drawing::Size{64, 65}, drawing::Size{65, 9},
          drawing::Size{129, 5}, drawing::Size{200, 67}}) {
      for (const Pattern pattern : {Pattern::natural, Pattern::noise, Pattern::extremes, Pattern::outliers}) {
        const drawing::Drawing d = drawing::draw(size, {colour, 8}, pattern);
        jobs.emplace_back(encode(d), d);
      }
    }
    ASSERT_NO_FATAL_FAILURE(expect_as_on_cpu(jobs, order));
  }
  const drawing::Drawing d = every_width();
  std::vector<Job> jobs;
  jobs.emplace_back(encode(d), d);
  ASSERT_NO_FATAL_FAILURE(expect_as_on_cpu(jobs, order));
}

TEST(PaperL3Cuda, RowsAnywhereInMemory) {
  std::mt19937 order(2);
  for (const l3_colour colour : kColours) {
    std::vector<Job> jobs;
    for (const drawing::Size size :
         {drawing::Size{1, 2}, drawing::Size{2, 3}, drawing::Size{64, 5}, drawing::Size{131, 6}}) {
      for (const size_t shift : {0u, 1u, 2u, 3u}) {
        const drawing::Drawing d = drawing::draw(size, {colour, 8}, Pattern::noise);
        jobs.emplace_back(encode(d), d, shift + 1, shift);
      }
    }
    ASSERT_NO_FATAL_FAILURE(expect_as_on_cpu(jobs, order));
  }
}

// More than a warp finds at one look; more patches than the block that adds them up has threads.
TEST(PaperL3Cuda, ManyImagesAndPatches) {
  std::mt19937 order(3);
  Dice dice(1);
  std::vector<Job> jobs;
  for (uint32_t i = 0; i < 1100; ++i) {
    const drawing::Drawing d = drawing::draw({1 + dice.roll(140), 1}, {L3_COLOUR_GRAY, 8}, Pattern::natural, i);
    jobs.emplace_back(encode(d), d);
  }
  const drawing::Drawing wide = drawing::draw({64 * 300, 1}, {L3_COLOUR_GRAY, 8}, Pattern::natural);
  jobs.emplace_back(encode(wide), wide);
  ASSERT_NO_FATAL_FAILURE(expect_as_on_cpu(jobs, order));
}

TEST(PaperL3Cuda, HostileBytesAreRefusedForTheSameReason) {
  std::mt19937 order(4);
  Dice dice(11);
  for (const l3_colour colour : {L3_COLOUR_GRAY, L3_COLOUR_RGB}) {
    for (const drawing::Size size : {drawing::Size{70, 9}, drawing::Size{130, 30}}) {
      const drawing::Drawing d = drawing::draw(size, {colour, 8}, Pattern::natural);
      const Bytes file = encode(d);
      std::vector<Job> jobs;
      for (uint32_t round = 0; round < 100; ++round) jobs.emplace_back(damaged(file, shape_of(d), dice), d);
      ASSERT_NO_FATAL_FAILURE(expect_as_on_cpu(jobs, order));
    }
  }
}

}  // namespace
