// Shared by the tests of the codec: targets, threads, and calls that must succeed.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>

#include "drawing.h"
#include "l3/l3.h"

namespace codec_testing {

using drawing::Bytes;
using drawing::Drawing;

// Forces a processor target; afterwards it is as it was.
class ForcedTarget {
 public:
  explicit ForcedTarget(const char* name) : before_(l3_cpu_target()) { l3_force_cpu_target(name); }
  ~ForcedTarget() { l3_force_cpu_target(before_); }
  ForcedTarget(const ForcedTarget&) = delete;
  ForcedTarget& operator=(const ForcedTarget&) = delete;

 private:
  const char* before_;
};

// Those that this machine has; but vnni, which is made of parts of avx2 and avx512, only in the latter's place.
inline const std::vector<const char*>& targets() {
  static const std::vector<const char*> have = [] {
    std::vector<const char*> found;
    for (const char* name : {"portable", "neon", "sse4", "avx2", "avx512", "vnni"}) {
      const ForcedTarget forced(name);
      if (l3_cpu_target() == nullptr || (std::string(name) == "vnni" && found.back() == std::string("avx512")))
        continue;
      found.push_back(name);
    }
    return found;
  }();
  return have;
}

// A parallel-for that takes its indices from the end, on threads of its own.
inline l3_parallel three_threads() {
  const auto run = [](void*, uint64_t count, void (*body)(void*, uint64_t), void* argument) {
    std::atomic<uint64_t> left{count};
    const auto work = [&] {
      for (;;) {
        uint64_t i = left.load();
        while (i != 0 && !left.compare_exchange_weak(i, i - 1)) {
        }
        if (i == 0) return;
        body(argument, i - 1);
      }
    };
    std::thread first(work), second(work);
    work();
    first.join();
    second.join();
  };
  return {run, nullptr};
}

// Everything takes ten to fifty times as long then: tests do less of the same.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

// Heap memory of exactly that many bytes, so that a sanitizer sees every step beyond; also for none.
class Exact {
 public:
  explicit Exact(size_t size, uint8_t fill = 0xA5) : size_(size), bytes_(new uint8_t[size]) {
    std::memset(bytes_.get(), fill, size);
  }
  explicit Exact(const Bytes& from) : Exact(from.data(), from.size()) {}
  Exact(const uint8_t* from, size_t size) : size_(size), bytes_(new uint8_t[size]) {
    if (size != 0) std::memcpy(bytes_.get(), from, size);
  }
  uint8_t* data() const { return bytes_.get(); }
  size_t size() const { return size_; }

 private:
  size_t size_;
  std::unique_ptr<uint8_t[]> bytes_;
};

// Tiles of 0 are those of the default size.
inline l3_encode_options options_of(l3_method method, uint32_t tile_width = 0, uint32_t tile_height = 0,
                                    uint32_t effort = 0) {
  l3_encode_options options = l3_encode_options_init();
  options.method = method;
  options.effort = effort;
  options.tile_width = tile_width;
  options.tile_height = tile_height;
  return options;
}
// By the fast method, which takes little time: most tests are not about how small files are.
inline l3_encode_options fast_options() { return options_of(L3_METHOD_FAST); }
inline l3_encode_options tiles_of(uint32_t width, uint32_t height) { return options_of(L3_METHOD_FAST, width, height); }

// The file of an image; empty, and a failed test, where it is refused.
inline Bytes encode(const l3_image& image, const l3_encode_options& options = fast_options()) {
  const Exact room(l3_encode_bound(&image, &options));
  size_t written = 0;
  l3_error error{};
  const l3_status status = l3_encode(&image, &options, room.data(), room.size(), &written, &error);
  EXPECT_EQ(status, L3_OK) << error.reason;
  EXPECT_LE(written, room.size());
  return status == L3_OK ? Bytes(room.data(), room.data() + written) : Bytes{};
}
inline Bytes encode(const Drawing& drawing, const l3_encode_options& options = fast_options()) {
  return encode(drawing.image(), options);
}

inline l3_info info_of(const Bytes& file) {
  l3_info info = l3_info_init();
  l3_error error{};
  const l3_limits none{UINT64_MAX, UINT64_MAX, UINT64_MAX};
  EXPECT_EQ(l3_read_info(file.data(), file.size(), &none, &info, &error), L3_OK) << error.reason;
  return info;
}

// The samples of a file; empty, and a failed test, where it is refused.
inline Bytes decode(const Bytes& file, const l3_decode_options& options = l3_decode_options_init()) {
  const l3_info info = info_of(file);
  Bytes out(uint64_t{info.width} * info.height * l3_pixel_bytes(&info, file.data(), file.size(), &options), 0xA5);
  l3_error error{};
  const l3_status status = l3_decode(file.data(), file.size(), &options, out.data(), out.size(), 0, &error);
  EXPECT_EQ(status, L3_OK) << error.reason << " at " << error.offset;
  return status == L3_OK ? out : Bytes{};
}

// What a call said: status, reason, offset and tile.
struct Said {
  l3_status status = L3_OK;
  std::string reason;
  uint64_t offset = 0, tile = L3_NO_TILE;

  bool operator==(const Said&) const = default;
};
inline std::ostream& operator<<(std::ostream& out, const Said& said) {
  out << said.status << " '" << said.reason << "' at " << said.offset;
  if (said.tile != L3_NO_TILE) out << " in tile " << said.tile;
  return out;
}
inline Said said(l3_status status, const l3_error& error) {
  EXPECT_EQ(status, error.status);
  return {status, error.reason != nullptr ? error.reason : "(null)", error.offset, error.tile};
}

// Of any bytes: what l3_decode says, with its samples. The size of `out` is what the header claims, up to a mebibyte.
inline Said say_decode(const Exact& file, Bytes* out = nullptr) {
  l3_info info = l3_info_init();
  l3_error error{};
  Bytes samples;
  if (l3_read_info(file.data(), file.size(), nullptr, &info, nullptr) == L3_OK && info.image_bytes <= 1 << 20) {
    samples.resize(info.image_bytes);
  }
  uint8_t none = 0;
  const l3_status status =
      l3_decode(file.data(), file.size(), nullptr, samples.empty() ? &none : samples.data(), samples.size(), 0, &error);
  if (status == L3_OK && out != nullptr) *out = std::move(samples);
  return said(status, error);
}
inline Said say_verify(const Exact& file) {
  l3_error error{};
  const l3_status status = l3_verify(file.data(), file.size(), nullptr, &error);
  return said(status, error);
}

// Encodes on every target; expects one file, and on every target the samples. Gives the file.
inline Bytes expect_round_trip(const Drawing& d, const l3_encode_options& options = fast_options()) {
  SCOPED_TRACE(d.name());
  Bytes first;
  for (const char* target : targets()) {
    const ForcedTarget forced(target);
    const Bytes file = encode(d, options);
    if (first.empty()) first = file;
    EXPECT_EQ(file, first) << target;
    EXPECT_EQ(decode(first), d.pixels) << target;
    EXPECT_EQ(say_verify(Exact(first)).status, L3_OK) << target;
  }
  return first;
}

// Decodes a region by chance, and compares it with the same part of the whole image.
inline void expect_crop(drawing::Dice& dice, const Bytes& file, const Bytes& whole, drawing::Size size) {
  const size_t pixel = whole.size() / size.width / size.height;
  const uint32_t x = dice.roll(size.width), y = dice.roll(size.height);
  const uint32_t w = 1 + dice.roll(size.width - x), h = 1 + dice.roll(size.height - y);
  const Exact out(w * h * pixel);
  ASSERT_EQ(l3_decode_region(file.data(), file.size(), x, y, w, h, nullptr, out.data(), out.size(), 0, nullptr), L3_OK);
  for (uint32_t r = 0; r < h; ++r) {
    ASSERT_EQ(std::memcmp(out.data() + r * w * pixel, &whole[((y + r) * size.width + x) * pixel], w * pixel), 0)
        << "row " << r;
  }
}

}  // namespace codec_testing
