// l3 manual: the manual page, in roff, from the same texts as --help.
#include <algorithm>
#include <cctype>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "command_tree.h"
#include "l3/l3.h"
#include "options.h"

namespace tools {
namespace {

// Text as roff takes it literally. Hyphens are to stay what a user can type.
std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '\\': result += "\\e"; break;
      case '-': result += "\\-"; break;
      case '`': result += "\\(ga"; break;
      case '\'': result += "\\(aq"; break;
      case '^': result += "\\(ha"; break;
      case '~': result += "\\(ti"; break;
      case '|': result += "|\\:"; break;  // where a list of names may be parted
      default: result += c;
    }
  }
  return result.starts_with('.') ? "\\&" + result : result;
}

std::string bold(std::string_view text) { return "\\fB" + escaped(text) + "\\fR"; }
std::string italic(std::string_view text) { return "\\fI" + escaped(text) + "\\fR"; }

std::string line_of(std::string_view text) { return escaped(text) + "\n"; }

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// A paragraph of a description or footer: lines up to an empty one. A first line that ends in a colon is its heading;
// lines under a heading, and those of a paragraph that has indented ones, are to stay lines.
struct Paragraph {
  std::string heading;
  std::vector<std::string> lines;
  bool as_it_is = false;
};

std::vector<Paragraph> paragraphs_of(const std::string& text) {
  std::vector<Paragraph> paragraphs;
  bool inside = false;
  for (const std::string& line : lines_of(text)) {
    if (line.empty()) {
      inside = false;
      continue;
    }
    const bool first = !inside;
    if (first) paragraphs.emplace_back();
    inside = true;
    Paragraph& paragraph = paragraphs.back();
    if (first && line.ends_with(':')) {
      paragraph.heading = line.substr(0, line.size() - 1);
      paragraph.as_it_is = true;
      continue;
    }
    paragraph.as_it_is = paragraph.as_it_is || line.front() == ' ';
    paragraph.lines.push_back(line);
  }
  return paragraphs;
}

std::string body(const Paragraph& paragraph) {
  std::string result = paragraph.as_it_is ? ".RS 4\n.nf\n" : "";
  size_t indent = std::string::npos;
  for (const std::string& line : paragraph.lines) indent = std::min(indent, line.find_first_not_of(' '));
  for (const std::string& line : paragraph.lines) result += line_of(line.substr(indent));
  return result + (paragraph.as_it_is ? ".fi\n.RE\n" : "");
}

std::string usage(const CommandEntry& command) {
  std::string result = bold("l3 " + command.name) + " [" + italic("OPTIONS") + "]";
  for (const Argument& positional : command.positionals) {
    result.append(" ").append(italic(positional.names.front())).append(positional.repeated ? " ..." : "");
  }
  return result;
}

std::string entry(const Argument& argument) {
  std::string names;
  for (const std::string& name : argument.names) {
    names += (names.empty() ? "" : ", ") + (argument.positional ? italic(name) : bold(name));
  }
  if (!argument.type.empty()) names += std::string(" ") + italic(argument.type);
  return ".TP\n" + names + "\n" + line_of(argument.description);
}

std::string options_of(const CommandEntry& command) {
  std::string result, group = "Options";
  for (const Argument& option : command.options) {
    if (option.group != group) result += ".PP\n" + line_of(option.group + ":");
    group = option.group;
    result += entry(option);
  }
  return result;
}

std::string chapter(const CommandEntry& command) {
  std::string result = ".SS " + bold("l3 " + command.name) + "\n" + usage(command) + "\n.PP\n";
  result += line_of(command.description + ".");
  for (const Argument& positional : command.positionals) result += entry(positional);
  result += options_of(command);
  for (const Paragraph& paragraph : paragraphs_of(command.footer)) {
    result += ".PP\n";
    if (!paragraph.heading.empty()) result += line_of(paragraph.heading + ":");
    result += body(paragraph);
  }
  return result;
}

std::string upper(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

// The page that `tree` makes. The description of the whole command begins with its name and purpose, "l3: purpose.".
std::string page(const CommandTree& tree) {
  const std::vector<Paragraph> about = paragraphs_of(tree.whole.description);
  const std::vector<Paragraph> closing = paragraphs_of(tree.whole.footer);
  std::string purpose = about.front().lines.front();
  purpose.erase(0, tree.whole.name.size() + 2);
  purpose.pop_back();

  std::string result = ".\\\" Printed by `l3 manual`, from the texts of --help.\n";
  result += std::string(".TH L3 1 \"\" \"l3 ") + l3_version_text() + "\" \"User Commands\"\n";
  // Long options and examples stand in narrow columns: ragged and without hyphens they read better.
  result += ".nh\n.ad l\n.SH NAME\nl3 \\- " + escaped(purpose) + "\n.SH SYNOPSIS\n";
  for (const CommandEntry& command : tree.commands) result += usage(command) + "\n.br\n";
  result += bold("l3") + " " + bold("--help") + "\n.br\n" + bold("l3") + " " + bold("--version") + "\n";
  result += ".SH DESCRIPTION\n";
  for (size_t i = 1; i < about.size(); ++i) result += ".PP\n" + body(about[i]);
  for (const Paragraph& paragraph : closing) {
    if (paragraph.heading.empty()) result += ".PP\n" + body(paragraph);
  }
  result += ".SH COMMANDS\n";
  for (const CommandEntry& command : tree.commands) result += chapter(command);
  result += ".SH OPTIONS\n" + options_of(tree.whole);
  for (const Paragraph& paragraph : closing) {
    if (!paragraph.heading.empty()) result += ".SH " + upper(paragraph.heading) + "\n" + body(paragraph);
  }
  result.pop_back();
  return result;
}

}  // namespace

void add_manual(CommandLine& line) {
  Subcommand sub = line.command("manual", "Print the manual page, in roff");
  sub.footer(
      "Examples:\n"
      "  l3 manual | man -l -\n");
  sub.run([&line](Context& context) {
    context.console.print(page(line.tree()));
    return kExitDone;
  });
}

}  // namespace tools
