// The layout of --help.
#pragma once

#include <memory>

#include "command_tree.h"

namespace tools {

// Gives `app`, and all subcommands that are added to it later, help that fits a terminal.
void set_help_layout(CLI::App& app, std::shared_ptr<const Texts> texts);

}  // namespace tools
