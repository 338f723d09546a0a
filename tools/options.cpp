#include "options.h"

namespace tools {
namespace {

constexpr uint32_t kMaxThreads = 1024;
constexpr uint32_t kTileStep = 32;
constexpr uint32_t kMaxTile = 1024;

// 0 stands for the default.
std::string check_count(const std::string& text) {
  return parse_integer(text).value_or(0) > 0 ? "" : text + " is no number of at least 1";
}

void add_size(Subcommand& sub, const std::string& name, uint64_t& size, const std::string& purpose) {
  sub.option(name, size, purpose).size(Option::Kilo::is_1024).check(check_count).group("Limits");
}

}  // namespace

std::string check_tile(const std::string& text) {
  const auto tile = parse_integer(text);
  if (tile && *tile >= kTileStep && *tile <= kMaxTile && *tile % kTileStep == 0) return "";
  return text + " is not a multiple of 32 from 32 to 1024";
}

void add_quiet(Subcommand& sub, bool& quiet) { sub.flag("-q,--quiet", quiet, "Say nothing but what failed"); }

void add_threads(Subcommand& sub, uint32_t& threads, const std::string& names, const std::string& purpose) {
  sub.option(names, threads, purpose + ", 1 to 1024 (default: one for each processor)")
      .type("N")
      .whole_between(1, kMaxThreads);
}

void add_limits(Subcommand& sub, l3_limits& limits, bool with_metadata) {
  sub.option("--max-pixels", limits.max_pixels, "Refuse images of more pixels (default: 268435456)")
      .type("N")
      .check(check_count)
      .group("Limits");
  add_size(sub, "--max-bytes", limits.max_output_bytes, "Refuse images of more bytes of samples (default: 1GiB)");
  if (!with_metadata) return;
  add_size(sub, "--max-metadata", limits.max_metadata_bytes, "Refuse more bytes of metadata (default: 64MiB)");
}

void add_method(Subcommand& sub, MethodOptions& options) {
  sub.option("--method", options.method,
             "How to encode. auto: for each tile, what takes the fewest bytes (default). fast: quick to encode and "
             "decode. dense: small")
      .one_of({"auto", "fast", "dense"});
  sub.option(kEffort, options.effort,
             "Time that auto and dense may spend, 1 (least) to 9 (fewest bytes; default: 5), or -1 to -9 for short. On "
             "photographs, against 1: 3 takes 1.4 times as long for 3.5 % fewer bytes, 5 takes 5 times as long for "
             "4.7 %, 7 takes 14 times for 5.2 %, 9 takes 30 times for 5.3 %. The time to decode stays the same")
      .type("N")
      .whole_between(1, 9);
  sub.option("--tile", options.tile,
             "Edge of a tile in pixels, a multiple of 32 up to 1024 (default: 128). Small regions are read faster "
             "from small tiles. The samples of a tile must stay below 1 MiB: the edge is at most 992 for 8-bit gray, "
             "576 for RGB, 480 for RGBA, 416 for 16-bit RGB and 352 for 16-bit RGBA")
      .type("PIXELS")
      .check(check_tile);
}

l3_encode_options encode_options(const MethodOptions& options) {
  l3_encode_options result = l3_encode_options_init();
  result.method = options.method == "fast"    ? L3_METHOD_FAST
                  : options.method == "dense" ? L3_METHOD_DENSE
                                              : L3_METHOD_AUTO;
  result.effort = options.effort;
  result.tile_width = options.tile;
  result.tile_height = options.tile;
  return result;
}

formats::ReadOptions read_options(const l3_limits& limits) {
  formats::ReadOptions options;
  if (limits.max_pixels != 0) options.max_pixels = limits.max_pixels;
  if (limits.max_output_bytes != 0) options.max_bytes = limits.max_output_bytes;
  options.max_chunk_bytes = limits.max_metadata_bytes != 0 ? limits.max_metadata_bytes : L3_DEFAULT_MAX_METADATA_BYTES;
  return options;
}

int wrong_usage(Context& context, const std::string& reason) {
  context.console.fail({"", std::nullopt, reason});
  return kExitUsage;
}

}  // namespace tools
