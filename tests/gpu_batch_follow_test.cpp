// Token tiles with still rows, and with pixels that follow others, in batches: whole and in part, damaged, and with too
// little room. The files are test vectors, since an encoder uses both only where it pays.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "gpu_wishes.h"

namespace {

using namespace gpu_testing;
using codec_testing::encode;
using codec_testing::options_of;
using drawing::draw;

class GpuFollow : public Gpu {};

std::vector<Vector> all_vectors() {
  std::vector<Vector> vectors = vectors_with("token_follow");
  for (Vector& vector : vectors_with("token_still_rows")) vectors.push_back(std::move(vector));
  return vectors;
}

Bytes model_of(const Bytes& file) {
  const by_hand::Parts parts = by_hand::take_apart(file);
  for (const by_hand::SectionPart& section : parts.sections) {
    if (section.type == L3_SECTION_MODEL) return section.bytes;
  }
  return {};
}

TEST_F(GpuFollow, EveryVectorWholeAndInPart) {
  Dice dice(71);
  const std::vector<Vector> vectors = all_vectors();
  ASSERT_GE(vectors.size(), 5u);
  std::vector<Wish> wishes;
  for (const Vector& vector : vectors) {
    wishes.push_back(wish_for(vector.file));
    wishes.back().name = vector.name;
    for (uint32_t i = 0; i < (kEmulated ? 4 : 20); ++i) {
      wishes.push_back(any_wish(dice, vector.file));
      wishes.back().name = vector.name;
    }
  }
  shuffle(dice, wishes);
  Batch batch(std::move(wishes), any_arrangement(dice));
  ASSERT_NO_FATAL_FAILURE(batch.expect_all());
}

// Bits of models and of payloads are changed, and all checks are right: places and tables hold anything.
TEST_F(GpuFollow, Damaged) {
  Dice dice(72);
  const std::vector<Vector> vectors = all_vectors();
  ASSERT_GE(vectors.size(), 5u);
  std::vector<Wish> wishes;
  uint32_t refused = 0;
  for (uint32_t i = 0; i < scale().mutations / 4; ++i) {
    const Vector& vector = dice.pick(vectors);
    by_hand::Parts parts = by_hand::take_apart(vector.file);
    if (dice.chance(3)) {
      for (by_hand::SectionPart& section : parts.sections) {
        if (section.type != L3_SECTION_MODEL) continue;
        const size_t at = dice.chance(3) ? dice.roll(12) : dice.roll(section.bytes.size());
        section.bytes[at] ^= static_cast<uint8_t>(1u << dice.roll(8));
      }
    } else {
      Bytes& payload = dice.pick(parts.tiles).payload;
      if (payload.empty()) continue;
      for (uint32_t changes = 1 + dice.roll(3); changes > 0; --changes)
        payload[dice.roll(payload.size())] = dice.byte();
    }
    wishes.push_back(any_wish(dice, by_hand::put_together(parts)));
    wishes.back().name = vector.name + ", damage " + std::to_string(i);
    refused += Expected(wishes.back()).error.status != L3_OK;
  }
  EXPECT_GT(refused, wishes.size() / 2);
  ASSERT_NO_FATAL_FAILURE(expect_in_batches(dice, wishes, 50));
}

// Wide tiles with so many blocks that the table of places is not in shared memory.
TEST_F(GpuFollow, LargeTiles) {
  const std::vector<Vector> vectors = vectors_with("token_follow_channels");
  ASSERT_EQ(vectors.size(), 1u);
  Bytes model = model_of(vectors[0].file);
  ASSERT_EQ(model[1], 4u);
  model[2] = 1;  // bits
  l3_encode_options options = options_of(L3_METHOD_AUTO, 1024, 288, 1);
  options.model = model.data();
  options.model_size = model.size();
  std::vector<Wish> wishes{wish_for(vectors[0].file)};
  wishes.push_back(wish_for(encode(draw({1024, 260}, {L3_COLOUR_RGB_ALPHA, 1}, Pattern::labels), options)));
  ASSERT_EQ(model_of(wishes.back().file), model);
  // More than the values take.
  EXPECT_GE(follow_bytes_of(wishes.back()), uint64_t{8 * 1024 * 260 + 8192});
  Batch batch(std::move(wishes));
  ASSERT_NO_FATAL_FAILURE(batch.expect_all());
}

// Images are refused if the room is too small, and never decoded wrongly.
TEST_F(GpuFollow, RoomThatIsTooSmall) {
  std::vector<Wish> wishes;
  for (const Vector& vector : vectors_with("token_follow")) wishes.push_back(wish_for(vector.file));
  ASSERT_GE(wishes.size(), 4u);
  wishes.insert(wishes.begin() + 1, wish_for(vectors_with("token_still_rows").at(0).file));
  const std::vector<Wish> all = wishes;
  const l3_cuda_capacity enough = capacity_for(all);
  EXPECT_EQ(follow_bytes_of(all[1]), 0u);
  const uint64_t first = follow_bytes_of(all[0]);
  for (const uint64_t room : {enough.follow_bytes, enough.follow_bytes - 16, first, first - 16, uint64_t{0}}) {
    l3_cuda_capacity capacity = enough;
    capacity.follow_bytes = room;
    Batch batch(all, {}, capacity);
    ASSERT_EQ(batch.launch(), L3_OK);
    must(cudaDeviceSynchronize());
    uint64_t sum = 0;
    for (size_t i = 0; i < all.size(); ++i) {
      SCOPED_TRACE("image " + std::to_string(i) + ", room " + std::to_string(room));
      sum += follow_bytes_of(all[i]);
      const l3_cuda_result result = batch.results()[i];
      if (follow_bytes_of(all[i]) != 0 && sum > room) {
        EXPECT_EQ(result.status, static_cast<uint32_t>(L3_ERROR_LIMIT));
        EXPECT_STREQ(l3_cuda_explain(&result).reason,
                     "the pixels of the batch follow others in more tiles than the workspace allows");
      } else {
        EXPECT_EQ(result.status, static_cast<uint32_t>(L3_OK));
        ASSERT_NO_FATAL_FAILURE(batch.expect_output(i));
      }
    }
  }
}

// A file's beginning is enough to say how much room it needs; files without such a model need none.
TEST_F(GpuFollow, CountsRoom) {
  for (const Vector& vector : all_vectors()) {
    const auto count = [&](size_t size, uint32_t width = 0, uint32_t height = 0) {
      return l3_cuda_count_follow_bytes(vector.file.data(), size, nullptr, 0, width, height);
    };
    l3_info info{};
    ASSERT_EQ(read_info(vector.file, &info), L3_OK);
    const uint64_t all = count(vector.file.size());
    EXPECT_EQ(all != 0, vector.name.find("follow") != std::string::npos) << vector.name;
    EXPECT_EQ(count(info.payload_start), all);
    EXPECT_LE(count(vector.file.size(), 1, 1), all);
    EXPECT_EQ(count(63), 0u);
    EXPECT_EQ(count(info.head_bytes), 0u);  // the model is behind it
  }
  const Bytes other = encode(draw({70, 40}, {L3_COLOUR_RGB, 8}, Pattern::natural));
  EXPECT_EQ(l3_cuda_count_follow_bytes(other.data(), other.size(), nullptr, 0, 0, 0), 0u);
}

// The files in L3_IMAGES, which may name a folder.
TEST_F(GpuFollow, FilesOfAFolder) {
  const char* folder = std::getenv("L3_IMAGES");
  if (folder == nullptr) GTEST_SKIP() << "L3_IMAGES names no folder";
  std::vector<Wish> wishes;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".l3") continue;
    std::ifstream in(entry.path(), std::ios::binary);
    wishes.push_back(wish_for({std::istreambuf_iterator<char>(in), {}}));
    wishes.back().name = entry.path().stem();
  }
  Dice dice(75);
  ASSERT_NO_FATAL_FAILURE(expect_in_batches(dice, wishes, 4));
}

}  // namespace
