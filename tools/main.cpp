// The l3 command. Each subcommand stands in the file of its name.
#include <csignal>
#include <exception>
#include <new>
#include <string>
#include <variant>

#include "command_line.h"
#include "console.h"
#include "l3/l3.h"
#include "options.h"
#include "unfinished.h"

namespace {

constexpr const char* kAbout =
    "l3: lossless images that decode fast, tile by tile.\n"
    "\n"
    "Converts images and data sets of images to L3 and back. Nothing is lost: samples, bit depth, palette,\n"
    "transparency and ancillary chunks all come back.";

constexpr const char* kClosing =
    "Examples:\n"
    "  l3 encode photo.png photo.l3\n"
    "  l3 decode photo.l3 photo.png\n"
    "  l3 convert pngs/ set/\n"
    "  l3 verify --against pngs/ set/\n"
    "  l3 help convert                 what convert can do; the same as l3 convert --help\n"
    "\n"
    "An output gets its name only when it is whole: a run that is stopped leaves no half-written file.\n"
    "\n"
    "Exit codes:\n"
    "  0    done\n"
    "  1    something failed; stderr says what, as `l3: FILE: offset N: reason`\n"
    "  2    wrong usage\n"
    "\n"
    "Environment:\n"
    "  L3_CPU=portable|avx2|vnni|avx512    processor instructions to use; results are the same with all of them\n";

int run(int argc, char** argv, tools::Context& context) {
  tools::CommandLine line(kAbout, kClosing, std::string("l3 ") + l3_version_text());
  tools::add_encode(line);
  tools::add_decode(line);
  tools::add_info(line);
  tools::add_verify(line);
  tools::add_convert(line);
  tools::add_merge(line);
  tools::add_export(line);
  tools::add_list(line);
  tools::add_cat(line);
  tools::add_train(line);
  tools::add_bench(line);
  tools::add_completion(line);
  tools::add_manual(line);
  const auto parsed = line.parse(argc, argv, context);
  if (const int* code = std::get_if<int>(&parsed)) return *code;
  if (l3_cpu_target() == nullptr) {
    return tools::wrong_usage(context, "L3_CPU names instructions that this processor or this version does not have");
  }
  return std::get<tools::Command>(parsed)(context);
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
