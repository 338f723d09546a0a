#include "command_tree.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string_view>

namespace tools {
namespace {

std::vector<std::string> split(std::string_view text, char at) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(at, begin), text.size());
    parts.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

Argument read_argument(const CLI::Option& option) {
  Argument argument;
  argument.positional = option.get_positional();
  if (argument.positional) {
    argument.names = {option.get_name(true)};
  } else {
    for (const std::string& name : option.get_snames()) argument.names.push_back("-" + name);
    for (const std::string& name : option.get_lnames()) argument.names.push_back("--" + name);
  }
  argument.description = option.get_description();
  argument.group = option.get_group();
  argument.repeated = option.get_expected_max() >= CLI::detail::expected_max_vector_size;
  if (option.get_items_expected_max() == 0) return argument;

  argument.type = option.get_type_name();
  if (argument.type.find('|') != std::string::npos) {
    std::string_view names = argument.type;
    const bool list = names.ends_with(kListMark);
    if (list) names.remove_suffix(std::string_view(kListMark).size());
    argument.takes = list ? Takes::names : Takes::name;
    argument.choices = split(names, '|');
  } else {
    argument.takes =
        argument.positional || argument.type == kPathType || argument.type == kFolderType ? Takes::path : Takes::other;
  }
  return argument;
}

CommandEntry read_command(const CLI::App& app) {
  CommandEntry entry{app.get_name(), app.get_description(), app.get_footer(), {}, {}};
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;  // hidden
    (option->get_positional() ? entry.positionals : entry.options).push_back(read_argument(*option));
  }
  return entry;
}

}  // namespace

std::string joined(const std::vector<std::string>& names, const char* between) {
  std::string result;
  for (const std::string& name : names) result += (result.empty() ? "" : between) + name;
  return result;
}

CommandTree read_tree(const CLI::App& app) {
  CommandTree tree{read_command(app), {}};
  for (const CLI::App* command : app.get_subcommands({})) tree.commands.push_back(read_command(*command));
  return tree;
}

}  // namespace tools
