// Damages files of every foreign format. Each must be refused or give an image, without reads past its end.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "formats_drawing.h"

namespace formats_drawing {

// A heap block of the exact size, so that a sanitizer detects a read of one byte too many.
inline formats::Result<Image> read_exact(const uint8_t* file, size_t size) {
  const std::unique_ptr<uint8_t[]> copy(new uint8_t[size]);
  std::copy_n(file, size, copy.get());
  return formats::read({copy.get(), size});
}

inline void expect_truncations_are_refused(const Bytes& file) {
  ASSERT_TRUE(formats::read(file)) << formats::read(file).error().reason;
  for (size_t size = 0; size < file.size(); ++size) {
    EXPECT_FALSE(read_exact(file.data(), size)) << "cut to " << size << " of " << file.size();
  }
}

// Changes one bit at a time, then random bytes.
inline void expect_flips_are_harmless(const Bytes& file) {
  const auto judge = [](const Bytes& damaged) {
    const auto image = read_exact(damaged.data(), damaged.size());
    if (image) {
      EXPECT_EQ(formats::problem(*image), "");
    } else {
      EXPECT_FALSE(image.error().reason.empty());
    }
  };
  for (size_t bit = 0; bit < 8 * file.size(); ++bit) {
    Bytes damaged = file;
    damaged[bit / 8] = static_cast<uint8_t>(damaged[bit / 8] ^ (1U << bit % 8));
    judge(damaged);
  }
  Dice dice;
  for (int round = 0; round < 1000; ++round) {
    Bytes damaged = file;
    for (uint32_t hits = 1 + dice.roll(4); hits > 0; --hits) {
      damaged[dice.roll(static_cast<uint32_t>(damaged.size()))] = static_cast<uint8_t>(dice.roll(256));
    }
    judge(damaged);
  }
}

}  // namespace formats_drawing
