// l3 bench in a build that does not have bench/.
#include "command_line.h"
#include "options.h"

namespace tools {

void add_bench(CommandLine& line) {
  Subcommand sub = line.command("bench", "Compare image codecs (this build does not include it)");
  sub.take_all_words();
  sub.run([](Context& context) {
    context.console.fail({"bench", std::nullopt, "this l3 was built without it; `./run build` includes it"});
    return kExitFailed;
  });
}

}  // namespace tools
