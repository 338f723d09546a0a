// The l3 command. Each subcommand is in the file of its name.
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
#include "version.h"

namespace {

constexpr const char* kPurpose = "l3: lossless images that decode fast";

constexpr const char* kExamples =
    "  l3 encode photo.png photo.l3      convert one image to L3\n"
    "  l3 decode photo.l3 photo.png      convert it back\n"
    "  l3 show photo.l3                  look at it in the terminal\n"
    "  l3 convert pngs/ set/             convert a folder of images to a data set\n"
    "  l3 verify --against pngs/ set/    check that the data set holds exactly these images\n"
    "  l3 upload set/ s3://bucket/set    copy a data set to a store; the other commands read it there\n"
    "  l3 convert --help                 show what a command can do\n";

constexpr const char* kClosing =
    "Nothing is lost: samples, bit depth, palette, transparency and ancillary PNG chunks all come back.\n"
    "\n"
    "Exit status:\n"
    "  0    success\n"
    "  1    something failed; stderr has the reason, as `l3: FILE: offset N: reason`\n"
    "  2    wrong usage\n"
    "  130  interrupted by Ctrl-C; `l3 convert --resume` continues\n";

constexpr const char* kManual =
    "An image is cut into tiles that are encoded independently, so that a region can be decoded without the rest\n"
    "of the image. A data set is a folder of shards, which are files that hold many images, and an index.json.\n"
    "\n"
    "An output file gets its name only when it is complete, so that no file with this name is ever partial.\n"
    "\n"
    "Environment:\n"
    "  L3_CPU=portable|neon|sse4|avx2|vnni|avx512\n"
    "                                      processor instructions to use; the results are always the same\n"
    "  L3_TIMEOUT=SECONDS                  how long a request to a far store may make no progress (default: 30)\n"
    "  L3_ATTEMPTS=N                       how often such a request is sent until it fails (default: 6)\n"
    "  L3_CONNECTIONS=N                    requests in progress at once (default: 256)\n"
    "  L3_HEDGE=1                          send a second request if the first one is slow\n"
    "  L3_CERTIFICATES=FILE                certificates of authorities to trust, in the form PEM\n";

int run(int argc, char** argv, tools::Context& context) {
  tools::CommandLine line({kPurpose, kExamples, kClosing, kManual}, tools::version_text());
  tools::add_encode(line);
  tools::add_decode(line);
  tools::add_info(line);
  tools::add_show(line);
  tools::add_verify(line);
  tools::add_convert(line);
  tools::add_merge(line);
  tools::add_export(line);
  tools::add_upload(line);
  tools::add_download(line);
  tools::add_list(line);
  tools::add_cat(line);
  tools::add_cache(line);
  tools::add_train(line);
  tools::add_bench(line);
  tools::add_stalls(line);
  tools::add_completion(line);
  tools::add_manual(line);
  const auto parsed = line.parse(argc, argv, context);
  if (const int* code = std::get_if<int>(&parsed)) return *code;
  if (l3_cpu_target() == nullptr) {
    return tools::wrong_usage(
        context,
        "L3_CPU names instructions that this processor or this build of l3 does not support (see l3 --version)");
  }
  return std::get<tools::Command>(parsed)(context);
}

}  // namespace

int main(int argc, char** argv) {
  // A closed pipe or a file size limit is an error of the write. A signal would end the process and leave files behind.
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
