#include "options.h"

namespace tools {
namespace {

constexpr uint32_t kMaxThreads = 1024;
constexpr uint32_t kTileStep = 32;
constexpr uint32_t kMaxTile = 1024;

// 0 is refused, because libl3 takes it as the default.
std::string check_count(const std::string& text) {
  return parse_integer(text).value_or(0) > 0 ? "" : text + " is not a whole number of at least 1";
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

void add_quiet(Subcommand& sub, bool& quiet) { sub.flag("-q,--quiet", quiet, "Print errors only"); }

void add_threads(Subcommand& sub, uint32_t& threads, const std::string& names, const std::string& purpose) {
  sub.option(names, threads, purpose + ", 1 to 1024 (default: one for each processor)")
      .type("N")
      .whole_between(1, kMaxThreads);
}

void add_transfer_jobs(Subcommand& sub, uint32_t& jobs, const std::string& verb) {
  sub.option("-j,--jobs", jobs, "Shards to " + verb + " at the same time, 1 to 64 (default: 4)")
      .type("N")
      .whole_between(1, 64);
}

void add_limits(Subcommand& sub, l3_limits& limits, bool with_metadata) {
  sub.option("--max-pixels", limits.max_pixels, "Refuse images with more pixels (default: 268435456)")
      .type("N")
      .check(check_count)
      .group("Limits");
  add_size(sub, "--max-bytes", limits.max_output_bytes, "Refuse images with more bytes of samples (default: 1GiB)");
  if (!with_metadata) return;
  add_size(sub, "--max-metadata", limits.max_metadata_bytes,
           "Refuse images with more bytes of metadata (default: 64MiB)");
}

void add_method(Subcommand& sub, MethodOptions& options) {
  sub.option("--method", options.method,
             "Method: fast = quick, dense = small, auto = the smaller for each tile (default)")
      .one_of({"auto", "fast", "dense"})
      .details("Files of the method fast are quick to encode and to decode");
  sub.option(kEffort, options.effort, "Effort from 1 (fastest) to 9 (smallest files), also as -1 to -9 (default: 5)")
      .type("N")
      .whole_between(1, 9)
      .details("The effort has no influence on the method fast, nor on the time to decode");
  sub.option("--tile", options.tile, "Edge of the square tiles, a multiple of 32 from 32 to 1024 (default: 128)")
      .type("PIXELS")
      .check(check_tile)
      .details(
          "Small regions decode faster from small tiles. The samples of a tile must take less than 1 MiB: the edge is "
          "at most 992 for 8-bit gray, 576 for RGB, 480 for RGBA, 416 for 16-bit RGB and 352 for 16-bit RGBA");
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

l3_decode_options decode_options(const l3_limits& limits, std::span<const l3_model* const> models,
                                 l3_parallel parallel) {
  l3_decode_options options = l3_decode_options_init();
  options.limits = limits;
  options.models = models.data();
  options.model_count = models.size();
  options.parallel = parallel;
  return options;
}

int wrong_usage(Context& context, const std::string& reason) {
  context.console.fail({"", std::nullopt, reason});
  return kExitUsage;
}

}  // namespace tools
