// How the command's help looks.
#pragma once

namespace CLI {
class App;
}  // namespace CLI

namespace tools {

// Lets `app`, and the subcommands that are added to it later, print help whose lines fit a terminal.
void set_help_format(CLI::App& app);

}  // namespace tools
