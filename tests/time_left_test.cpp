// Compares the estimated time left of a conversion with the real one.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "time_left.h"

namespace {

struct File {
  double bytes, pixels;
};

struct Estimate {
  double elapsed, left;
};

// Two threads, each of which takes the next file and works on it at one pixel a second.
struct Work {
  std::vector<Estimate> estimates;
  double seconds = 0;

  explicit Work(const std::vector<File>& files) {
    tools::Pieces all;
    for (const File& file : files) {
      ++all.count;
      all.bytes += file.bytes;
    }
    tools::TimeLeft left(all);
    double free_at[2] = {0, 0};
    const File* working[2] = {nullptr, nullptr};
    for (size_t next = 0; next < files.size() || working[0] != nullptr || working[1] != nullptr;) {
      for (int i = 0; i < 2; ++i) {
        if (working[i] != nullptr || next == files.size()) continue;
        working[i] = &files[next++];
        free_at[i] = seconds + working[i]->pixels;
        left.begin(working[i]->bytes);
      }
      const int first = working[1] == nullptr || (working[0] != nullptr && free_at[0] <= free_at[1]) ? 0 : 1;
      seconds = free_at[first];
      left.end(working[first]->bytes, working[first]->pixels);
      working[first] = nullptr;
      if (const auto estimate = left.seconds(seconds)) estimates.push_back({seconds, *estimate});
    }
  }

  // The most by which an estimate of all the time was off, as a factor.
  double worst() const {
    double worst = 1;
    for (const Estimate& estimate : estimates) {
      const double whole = estimate.elapsed + estimate.left;
      worst = std::max({worst, whole / seconds, seconds / whole});
    }
    return worst;
  }
};

TEST(TimeLeft, IsRightForFilesThatAreAlike) {
  const Work work(std::vector<File>(100, {1000, 2}));
  ASSERT_GT(work.estimates.size(), 90U);
  EXPECT_LT(work.estimates.front().elapsed, 5);
  EXPECT_LT(work.worst(), 1.3);
}

TEST(TimeLeft, AFewSmallFilesFirstDoNotMakeHours) {
  std::vector<File> files(100, {1000000, 2});
  for (size_t i = 0; i < 3; ++i) files[i] = {100, 0.4};
  const Work work(files);
  EXPECT_GT(work.estimates.size(), 90U);
  EXPECT_LT(work.worst(), 2);
}

TEST(TimeLeft, ScreensHaveMorePixelsForEachByteThanPhotographs) {
  std::vector<File> files;
  for (int i = 0; i < 100; ++i) files.push_back(i < 10 ? File{20000 + 100.0 * i, 4} : File{3e6 + 1000 * i, 3});
  EXPECT_LT(Work(files).worst(), 8);
  for (int i = 0; i < 100; ++i) files[static_cast<size_t>(i)] = i % 2 == 0 ? File{20000, 4} : File{3e6, 3};
  EXPECT_LT(Work(files).worst(), 1.5);
}

TEST(TimeLeft, SaysNothingTooEarly) {
  tools::TimeLeft left({10, 1000});
  left.begin(100);
  left.begin(100);
  EXPECT_FALSE(left.seconds(5));
  left.end(100, 7);
  EXPECT_FALSE(left.seconds(0.5));
  EXPECT_FALSE(left.seconds(5)) << "one file of ten";
  EXPECT_TRUE(left.seconds(20));
  left.end(100, 7);
  left.end(100, 0);
  EXPECT_TRUE(left.seconds(5));
}

TEST(TimeLeft, TakesFilesOfNoBytesAndFailuresAlone) {
  tools::TimeLeft left({4, 0});
  for (int i = 0; i < 3; ++i) left.end(0, 5);
  EXPECT_DOUBLE_EQ(left.seconds(3).value_or(-1), 1);
  tools::TimeLeft failures({4, 400});
  for (int i = 0; i < 3; ++i) failures.end(100, 0);
  EXPECT_FALSE(failures.seconds(3));
}

}  // namespace
