// Options that several subcommands share.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "bridge/image_bridge.h"
#include "command_line.h"
#include "formats/formats.h"
#include "l3/l3.h"

namespace tools {

constexpr int kExitDone = 0;
constexpr int kExitFailed = 1;  // some input failed
constexpr int kExitUsage = 2;   // the command line is wrong

void add_quiet(Subcommand& sub, bool& quiet);
// Adds --threads. `names` may include other names, such as "--jobs".
void add_threads(Subcommand& sub, uint32_t& threads, const std::string& names, const std::string& purpose);
// Adds --jobs to l3 upload and l3 download.
void add_transfer_jobs(Subcommand& sub, uint32_t& jobs, const std::string& verb);
void add_limits(Subcommand& sub, l3_limits& limits, bool with_metadata);
// Returns what is wrong with the edge of a tile, or an empty text if it is right.
std::string check_tile(const std::string& text);

struct MethodOptions {
  std::string method = "auto";
  uint32_t effort = 0;
  uint32_t tile = 0;
};
void add_method(Subcommand& sub, MethodOptions& options);
l3_encode_options encode_options(const MethodOptions& options);

l3_decode_options decode_options(const l3_limits& limits, std::span<const l3_model* const> models,
                                 l3_parallel parallel);

using bridge::read_options;

// Prints what is wrong with the command line and returns kExitUsage.
int wrong_usage(Context& context, const std::string& reason);

// One function for each subcommand, in the file of its name.
void add_encode(CommandLine& line);
void add_decode(CommandLine& line);
void add_info(CommandLine& line);
void add_show(CommandLine& line);
void add_verify(CommandLine& line);
void add_convert(CommandLine& line);
void add_merge(CommandLine& line);
void add_export(CommandLine& line);
void add_upload(CommandLine& line);
void add_download(CommandLine& line);
void add_list(CommandLine& line);
void add_cat(CommandLine& line);
void add_cache(CommandLine& line);
void add_train(CommandLine& line);
void add_bench(CommandLine& line);
void add_stalls(CommandLine& line);
void add_completion(CommandLine& line);
void add_manual(CommandLine& line);

}  // namespace tools
