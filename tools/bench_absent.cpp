// l3 bench in a build without bench/.
#include "command_line.h"
#include "options.h"

namespace tools {

void add_bench(CommandLine& line) {
  Subcommand sub = line.command("bench", "Measure size and speed of codecs (left out of this build)");
  sub.take_all_words();
  sub.run([](Context& context) {
    context.console.fail({"bench", std::nullopt, "this l3 was built without it; `./run build` builds it in"});
    return kExitFailed;
  });
}

}  // namespace tools
