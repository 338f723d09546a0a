#include "command_tree.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string_view>
#include <utility>

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

template <class Key>
std::string text_for(const std::map<const Key*, std::string>& texts, const Key& key) {
  const auto at = texts.find(&key);
  return at == texts.end() ? "" : at->second;
}

Argument read_argument(const CLI::Option& option, const Texts& texts) {
  Argument argument;
  argument.positional = option.get_positional();
  if (argument.positional) {
    argument.names = {option.get_name(true)};
  } else {
    for (const std::string& name : option.get_snames()) argument.names.push_back("-" + name);
    for (const std::string& name : option.get_lnames()) argument.names.push_back("--" + name);
  }
  argument.description = option.get_description();
  argument.details = text_for(texts.details, option);
  argument.group = option.get_group();
  argument.required = option.get_required();
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

// Puts the options of each group together. The groups come as they were declared first; --help, which CLI11 declares
// before all others, ends its group.
void sort_by_group(std::vector<Argument>& options) {
  std::vector<std::string> groups;
  for (const Argument& option : options) {
    if (std::find(groups.begin(), groups.end(), option.group) == groups.end()) groups.push_back(option.group);
  }
  const auto key = [&](const Argument& option) {
    const auto group = std::find(groups.begin(), groups.end(), option.group) - groups.begin();
    return std::pair(group, option.names.back() == "--help");
  };
  std::stable_sort(options.begin(), options.end(),
                   [&](const Argument& a, const Argument& b) { return key(a) < key(b); });
}

}  // namespace

std::string joined(const std::vector<std::string>& names, const char* between) {
  std::string result;
  for (const std::string& name : names) result += (result.empty() ? "" : between) + name;
  return result;
}

CommandEntry read_command(const CLI::App& app, const Texts& texts) {
  CommandEntry entry;
  entry.name = app.get_name();
  entry.description = app.get_description();
  entry.examples = text_for(texts.examples, app);
  entry.footer = app.get_footer();
  entry.manual = text_for(texts.manual, app);
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;  // hidden
    (option->get_positional() ? entry.positionals : entry.options).push_back(read_argument(*option, texts));
  }
  sort_by_group(entry.options);
  return entry;
}

CommandTree read_tree(const CLI::App& app, const Texts& texts) {
  CommandTree tree{read_command(app, texts), {}};
  for (const CLI::App* command : app.get_subcommands({})) tree.commands.push_back(read_command(*command, texts));
  return tree;
}

}  // namespace tools
