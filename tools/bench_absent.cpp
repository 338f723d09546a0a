// l3 bench and l3 stalls in a build that does not have bench/.
#include "command_line.h"
#include "options.h"

namespace tools {
namespace {

void add_absent(CommandLine& line, const std::string& name, const std::string& purpose) {
  Subcommand sub = line.command(name, purpose + " (this build does not include it)");
  sub.take_all_words();
  sub.run([name](Context& context) {
    context.console.fail({name, std::nullopt, "this l3 was built without it; `./run build` includes it"});
    return kExitFailed;
  });
}

}  // namespace

void add_bench(CommandLine& line) { add_absent(line, "bench", "Compare image codecs"); }

void add_stalls(CommandLine& line) { add_absent(line, "stalls", "Find out what a training waits for"); }

}  // namespace tools
