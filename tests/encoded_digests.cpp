// Encodes drawn images and prints a line for each: its name, and the SHA-256 of its file. Every processor target, every
// schedule and every machine must print the same lines; encoded_digests_test.py and cross.sh compare them. Lines that
// begin with "metadata" also depend on the version of libzstd.
//
// Usage: encoded_digests [THREADS forward|reverse|interleaved]
// Exit status: 3 if this processor lacks the target in L3_CPU.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <thread>

#include "container/sha256.h"
#include "drawing.h"
#include "screen.h"

namespace {

using drawing::Bytes;
using drawing::Drawing;
using drawing::Pattern;
using drawing::Size;
using drawing::Type;

enum class Order { forward, reverse, interleaved };

struct Schedule {
  uint32_t threads = 1;
  Order order = Order::forward;

  // The index that comes at this position.
  uint64_t index(uint64_t position, uint64_t count) const {
    switch (order) {
      case Order::reverse: return count - 1 - position;
      case Order::interleaved: return position % 2 == 0 ? position / 2 : count - 1 - position / 2;
      default: return position;
    }
  }
};

// Runs l3_parallel as the Schedule in `context` says.
void run_scheduled(void* context, uint64_t count, void (*body)(void* argument, uint64_t index), void* argument) {
  const Schedule& schedule = *static_cast<const Schedule*>(context);
  std::atomic<uint64_t> next{0};
  const auto work = [&] {
    for (uint64_t position = next++; position < count; position = next++) {
      body(argument, schedule.index(position, count));
    }
  };
  std::vector<std::thread> others;
  for (uint32_t i = 1; i < schedule.threads; ++i) others.emplace_back(work);
  work();
  for (std::thread& thread : others) thread.join();
}

class Printer {
 public:
  explicit Printer(Schedule schedule) : schedule_(schedule) {}

  void print(const std::string& name, const Drawing& drawing, Size tile, l3_method method = L3_METHOD_FAST,
             uint32_t effort = 0) {
    const l3_image image = drawing.image();
    l3_encode_options options = l3_encode_options_init();
    options.method = method;
    options.effort = effort;
    options.tile_width = tile.width;
    options.tile_height = tile.height;
    options.parallel = {run_scheduled, &schedule_};
    Bytes file(l3_encode_bound(&image, &options));
    size_t written = 0;
    l3_error error{};
    if (l3_encode(&image, &options, file.data(), file.size(), &written, &error) != L3_OK) {
      std::fprintf(stderr, "encoded_digests: %s: %s\n", name.c_str(), error.reason);
      failed_ = true;
      return;
    }
    l3::Sha256 sha;
    sha.update(file.data(), written);
    uint8_t digest[l3::Sha256::kBytes];
    sha.finish(digest);
    std::printf("%s, %s, tiles of %ux%u: %zu bytes, ", name.c_str(), drawing.name().c_str(), tile.width, tile.height,
                written);
    for (const uint8_t byte : digest) std::printf("%02x", byte);
    std::printf("\n");
  }

  bool failed() const { return failed_; }

 private:
  Schedule schedule_;
  bool failed_ = false;
};

void print_all(Printer& printer) {
  for (const Type& type : drawing::all_types()) {
    for (const Pattern pattern : drawing::kPatterns) {
      printer.print(drawing::name_of(pattern), drawing::draw({67, 45}, type, pattern), {32, 32});
    }
  }
  for (const Type& type : drawing::common_types()) {
    for (const Size& size : drawing::kSizes) {
      for (const Pattern pattern : {Pattern::natural, Pattern::outliers}) {
        printer.print(drawing::name_of(pattern), drawing::draw(size, type, pattern), {128, 128});
      }
    }
    for (const Size& tile : {Size{64, 64}, Size{32, 128}, Size{96, 160}, Size{256, 32}}) {
      printer.print("mixed", drawing::draw_mixed({64, 70}, type), tile);
    }
    Drawing drawn = drawing::with_sections(drawing::draw({70, 50}, type, Pattern::natural));
    printer.print("metadata and sections", drawn, {64, 32});
    drawn.metadata.clear();
    printer.print("sections", drawn, {64, 32});
  }
}

void print_dense(Printer& printer) {
  for (const l3_colour colour :
       {L3_COLOUR_GRAY, L3_COLOUR_GRAY_ALPHA, L3_COLOUR_RGB, L3_COLOUR_RGB_ALPHA, L3_COLOUR_PALETTE}) {
    const Type type{colour, 8};
    for (const Pattern pattern : drawing::kPatterns) {
      const std::string name = drawing::name_of(pattern);
      printer.print("dense " + name, drawing::draw({67, 45}, type, pattern), {32, 32}, L3_METHOD_DENSE, 1);
      printer.print("auto " + name, drawing::draw({90, 70}, type, pattern), {64, 64}, L3_METHOD_AUTO, 3);
    }
    for (const Size& size : {Size{1, 1}, Size{1, 131}, Size{131, 1}, Size{33, 9}, Size{129, 157}}) {
      printer.print("dense", drawing::draw(size, type, Pattern::natural), {128, 128}, L3_METHOD_DENSE);
    }
    for (const uint32_t effort : {1u, 5u, 9u}) {
      printer.print("dense, effort " + std::to_string(effort), drawing::draw_mixed({64, 70}, type), {64, 64},
                    L3_METHOD_DENSE, effort);
    }
    for (const uint32_t effort : {5u, 6u}) {  // pixels follow others where that pays, which 6 says more often
      printer.print("screen", drawing::screen({230, 130}, type), {128, 128}, L3_METHOD_DENSE, effort);
    }
    for (const uint32_t effort : {6u, 7u, 9u}) {
      printer.print("dense, effort " + std::to_string(effort), drawing::draw({150, 130}, type, Pattern::natural),
                    {96, 96}, L3_METHOD_DENSE, effort);
    }
  }
}

bool read_schedule(int count, char** words, Schedule& schedule) {
  if (count == 1) return true;
  if (count != 3) return false;
  const int threads = std::atoi(words[1]);
  if (threads < 1 || threads > 64) return false;
  schedule.threads = static_cast<uint32_t>(threads);
  const std::string_view order = words[2];
  if (order == "reverse") schedule.order = Order::reverse;
  if (order == "interleaved") schedule.order = Order::interleaved;
  return schedule.order != Order::forward || order == "forward";
}

}  // namespace

int main(int count, char** words) {
  Schedule schedule;
  if (!read_schedule(count, words, schedule)) {
    std::fprintf(stderr, "usage: encoded_digests [THREADS forward|reverse|interleaved]\n");
    return 2;
  }
  if (l3_cpu_target() == nullptr) return 3;
  Printer printer(schedule);
  print_all(printer);
  print_dense(printer);
  return printer.failed() ? 1 : 0;
}
