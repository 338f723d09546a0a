#include "help.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace tools {
namespace {

constexpr size_t kColumn = 28;  // where descriptions begin
constexpr size_t kWidth = 110;
constexpr size_t kNamesWidth = 80, kNamesIndent = 6;

// Breaks a long list of names, "png|jpeg|...", into several lines.
std::string broken(const std::string& names) {
  std::string result;
  size_t used = 0;
  for (size_t begin = 0; begin < names.size();) {
    const size_t end = std::min(names.find('|', begin), names.size() - 1) + 1;
    if (used > 0 && used + end - begin > kNamesWidth) {
      result += "\n" + std::string(kNamesIndent, ' ');
      used = 0;
    }
    result += names.substr(begin, end - begin);
    used += end - begin;
    begin = end;
  }
  return result;
}

// `text` from `column` on, in lines of at most kWidth columns.
std::string wrapped(std::string_view text, size_t column) {
  std::string result;
  size_t used = column;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (used > column && used + 1 + word.size() > kWidth) {
      result += "\n" + std::string(column, ' ');
      used = column;
    }
    if (used > column) {
      result += ' ';
      ++used;
    }
    result += word;
    used += word.size();
  }
  return result;
}

// Names on the left, the description on the right.
std::string entry(const std::string& names, const std::string& description) {
  std::string line = "  " + names;
  if (line.size() < kColumn) {
    line.resize(kColumn, ' ');
  } else {
    line += "\n" + std::string(kColumn, ' ');
  }
  return line + wrapped(description, kColumn) + "\n";
}

std::string entry(const Argument& argument) {
  std::string names = joined(argument.names, ",");
  if (!argument.type.empty() && !argument.positional) names += " " + broken(argument.type);
  return entry(names, argument.description);
}

std::string usage(const CommandEntry& command, bool has_commands) {
  std::string line = "Usage: l3";
  if (has_commands) return line + " COMMAND [OPTIONS] ...\n";
  line += " " + command.name + " [OPTIONS]";
  for (const Argument& positional : command.positionals) {
    const std::string name = positional.names.front() + (positional.repeated ? "..." : "");
    line += positional.required ? " " + name : " [" + name + "]";
  }
  return line + "\n";
}

// What to type comes first: the purpose, the usage and examples. Then follow the arguments, the options, and the notes.
std::string help(const CommandEntry& command, const std::vector<CommandEntry>& commands) {
  std::string text = command.description + "\n\n" + usage(command, !commands.empty());
  if (!command.examples.empty()) text += "\nExamples:\n" + command.examples;
  if (!commands.empty()) text += "\nCommands:\n";
  for (const CommandEntry& one : commands) text += entry(one.name, one.description);
  if (!command.positionals.empty()) text += "\nArguments:\n";
  for (const Argument& positional : command.positionals) text += entry(positional);
  std::string group;
  for (const Argument& option : command.options) {
    if (option.group != group) text += "\n" + option.group + ":\n";
    group = option.group;
    text += entry(option);
  }
  if (!command.footer.empty()) text += "\n" + command.footer;
  return text;
}

class HelpLayout : public CLI::Formatter {
 public:
  explicit HelpLayout(std::shared_ptr<const Texts> texts) : texts_(std::move(texts)) {}

  std::string make_help(const CLI::App* app, std::string /*name*/, CLI::AppFormatMode /*mode*/) const override {
    const CommandTree tree = read_tree(*app, *texts_);
    return help(tree.whole, tree.commands);
  }

 private:
  std::shared_ptr<const Texts> texts_;
};

}  // namespace

void set_help_layout(CLI::App& app, std::shared_ptr<const Texts> texts) {
  app.formatter(std::make_shared<HelpLayout>(std::move(texts)));
}

}  // namespace tools
