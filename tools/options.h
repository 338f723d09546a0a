// Options that several subcommands share.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <string>

#include "console.h"
#include "formats/formats.h"
#include "l3/l3.h"
#include "unfinished.h"

namespace tools {

constexpr int kExitDone = 0;
constexpr int kExitFailed = 1;  // some input failed
constexpr int kExitUsage = 2;   // the command line is wrong

// What a subcommand works with. Both outlive it.
struct Context {
  Console& console;
  Unfinished& unfinished;
};

// A parsed command line, ready to run; gives an exit code.
using Command = std::function<int(Context&)>;

void add_quiet(CLI::App& app, bool& quiet);
// --threads, and also by another name such as "--jobs".
void add_threads(CLI::App& app, uint32_t& threads, const std::string& names, const std::string& purpose);
void add_limits(CLI::App& app, l3_limits& limits, bool with_metadata);
// What is wrong with the edge of a tile; empty where nothing is.
std::string check_tile(const std::string& text);

struct MethodOptions {
  std::string method = "auto";
  uint32_t effort = 0;
  uint32_t tile = 0;
};
void add_method(CLI::App& app, MethodOptions& options);
l3_encode_options encode_options(const MethodOptions& options);

// The limits as formats/ takes them.
formats::ReadOptions read_options(const l3_limits& limits);

// Says what is wrong with the command line and gives kExitUsage.
int wrong_usage(Context& context, const std::string& reason);

// One for each subcommand, in the file of its name. Each adds it to `app`, and sets `chosen` when it was parsed.
void add_encode(CLI::App& app, Command& chosen);
void add_decode(CLI::App& app, Command& chosen);
void add_info(CLI::App& app, Command& chosen);
void add_verify(CLI::App& app, Command& chosen);
void add_convert(CLI::App& app, Command& chosen);
void add_merge(CLI::App& app, Command& chosen);
void add_export(CLI::App& app, Command& chosen);
void add_list(CLI::App& app, Command& chosen);
void add_cat(CLI::App& app, Command& chosen);
void add_train(CLI::App& app, Command& chosen);
void add_bench(CLI::App& app, Command& chosen);
void add_completion(CLI::App& app, Command& chosen);
void add_manual(CLI::App& app, Command& chosen);

}  // namespace tools
