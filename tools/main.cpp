// The l3 command. Each subcommand stands in the file of its name.
#include <CLI/CLI.hpp>
#include <csignal>
#include <exception>
#include <new>
#include <string>

#include "console.h"
#include "help.h"
#include "l3/l3.h"
#include "options.h"
#include "unfinished.h"

namespace {

constexpr const char* kAbout =
    "l3: lossless images that decode fast, tile by tile.\n"
    "\n"
    "Converts images and data sets of images to L3 and back, with nothing lost: samples, bit depth, palette,\n"
    "transparency and ancillary chunks.";

constexpr const char* kClosing =
    "l3 COMMAND --help tells more, with examples.\n"
    "\n"
    "An output has its name only once it is whole: whatever ends a run leaves no half file.\n"
    "\n"
    "Exit codes:\n"
    "  0    done\n"
    "  1    some input failed, each named on stderr as `l3: FILE: offset N: reason`\n"
    "  2    wrong usage\n"
    "\n"
    "Environment:\n"
    "  L3_CPU=portable|avx2|vnni|avx512    the processor's instructions to use; results do not depend on it\n";

int run(int argc, char** argv, tools::Context& context) {
  CLI::App app(kAbout, "l3");
  tools::teach(app);
  app.set_version_flag("--version", std::string("l3 ") + l3_version_text());
  app.require_subcommand(1);
  app.footer(kClosing);
  tools::Command chosen;
  tools::add_encode(app, chosen);
  tools::add_decode(app, chosen);
  tools::add_info(app, chosen);
  tools::add_verify(app, chosen);
  tools::add_convert(app, chosen);
  tools::add_merge(app, chosen);
  tools::add_export(app, chosen);
  tools::add_list(app, chosen);
  tools::add_cat(app, chosen);
  tools::add_train(app, chosen);
  tools::add_bench(app, chosen);
  tools::add_completion(app, chosen);
  tools::add_manual(app, chosen);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // Help and version arrive as errors too.
    if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) return app.exit(error);
    const auto used = app.get_subcommands();
    if (used.empty() && argc > 1 && argv[1][0] != '-') {
      return tools::wrong_usage(context, "no command " + tools::one_line(argv[1]) + " (see l3 --help)");
    }
    const std::string command = used.empty() ? "" : used.front()->get_name() + ": ";
    const std::string help = used.empty() ? "l3 --help" : "l3 " + used.front()->get_name() + " --help";
    return tools::wrong_usage(context, command + error.what() + " (see " + help + ")");
  }
  if (l3_cpu_target() == nullptr) {
    return tools::wrong_usage(context, "L3_CPU names instructions that this processor or this version does not have");
  }
  return chosen(context);
}

}  // namespace

int main(int argc, char** argv) {
  // A closed pipe and a file size limit are errors of the write that meets them, not deaths that leave files behind.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  tools::Unfinished unfinished;
  tools::Console console;
  tools::Context context{console, unfinished};
  int code = tools::kExitFailed;
  try {
    code = run(argc, argv, context);
  } catch (const std::bad_alloc&) {
    console.fail({"", std::nullopt, "out of memory"});
  } catch (const std::exception& error) {
    console.fail({"", std::nullopt, error.what()});
  }
  if (!console.finish() && code == tools::kExitDone) code = tools::kExitFailed;
  return code;
}
