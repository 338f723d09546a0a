// Tests that reading takes no more stack than l3.h says, with files of every type on every target.
#include <pthread.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>

#include "codec_testing.h"
#include "screen_files.h"

namespace {

using codec_testing::Bytes;
using drawing::Pattern;

constexpr size_t kLimit = 120 << 10;  // as l3.h and docs/cpp.md say
constexpr size_t kStack = 1 << 20;
constexpr uint8_t kUntouched = 0xA5;

// Runs a call on a thread of its own. Returns how much of the thread's stack was written to, from its top.
size_t touched_by(const std::function<void()>& call) {
  constexpr size_t kAlignment = 1 << 16;
  const std::unique_ptr<uint8_t, void (*)(void*)> stack(static_cast<uint8_t*>(std::aligned_alloc(kAlignment, kStack)),
                                                        std::free);
  std::memset(stack.get(), kUntouched, kStack);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  EXPECT_EQ(pthread_attr_setstack(&attributes, stack.get(), kStack), 0);
  pthread_t thread{};
  const auto run = [](void* argument) -> void* {
    (*static_cast<const std::function<void()>*>(argument))();
    return nullptr;
  };
  EXPECT_EQ(pthread_create(&thread, &attributes, run, const_cast<std::function<void()>*>(&call)), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
  const uint8_t* const end = stack.get() + kStack;
  return static_cast<size_t>(end - std::find_if(static_cast<const uint8_t*>(stack.get()), end,
                                                [](uint8_t byte) { return byte != kUntouched; }));
}

// Files of all types, by both methods, among them depth with holes, label maps and screens.
std::vector<Bytes> files() {
  std::vector<Bytes> made;
  for (const drawing::Type& type : drawing::common_types()) {
    drawing::Drawing image = drawing::draw({70, 50}, type, Pattern::natural);
    if (type.colour == L3_COLOUR_GRAY && type.bits == 16) {
      for (uint32_t y = 0; y < 50; ++y) {
        for (uint32_t x = 0; x < 70; x += 1 + y % 3) image.set_sample(x, y, 0, 0);
      }
    }
    made.push_back(codec_testing::encode(image));
    for (const Pattern pattern : {Pattern::natural, Pattern::labels}) {
      if (pattern == Pattern::labels) image = drawing::draw({70, 50}, type, pattern);
      made.push_back(codec_testing::encode(image, codec_testing::options_of(L3_METHOD_DENSE, 64, 64, 1)));
    }
    if (type.bits < 8) continue;
    made.push_back(codec_testing::screen_file({160, 100}, type, 160, 128));
  }
  return made;
}

void read(const Bytes& file, Bytes& out) {
  l3_decode_options options = l3_decode_options_init();
  l3_error error{};
  for (options.as_colours = 0; options.as_colours < 2; ++options.as_colours) {
    EXPECT_EQ(l3_decode(file.data(), file.size(), &options, out.data(), out.size(), 0, &error), L3_OK) << error.reason;
  }
  EXPECT_EQ(l3_verify(file.data(), file.size(), nullptr, &error), L3_OK) << error.reason;
  l3_sizes sizes = l3_sizes_init();
  EXPECT_EQ(l3_measure(file.data(), file.size(), nullptr, &sizes, &error), L3_OK) << error.reason;
}

TEST(Stack, ReadingTakesNoMoreThanDocumented) {
#if defined(__SANITIZE_ADDRESS__) || !defined(__OPTIMIZE__)
  GTEST_SKIP() << "this build has larger frames";
#endif
  const size_t before = touched_by([] {});
  Bytes out(160 * 100 * 8);
  size_t most = 0;
  for (const Bytes& file : files()) {
    for (const char* target : codec_testing::targets()) {
      const codec_testing::ForcedTarget forced(target);
      const size_t taken = touched_by([&] { read(file, out); }) - before;
      EXPECT_LE(taken, kLimit) << target;
      most = std::max(most, taken);
    }
  }
  EXPECT_GT(most, kLimit / 2);  // or l3.h could promise less
  std::printf("at most %zu bytes\n", most);
}

}  // namespace
