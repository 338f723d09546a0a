// l3 manual: prints the manual page in roff. It has the texts of --help and the longer explanations.
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

// Escapes text for roff. A hyphen stays the character that a user types.
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
      case '|': result += "|\\:"; break;  // a list of names may be broken here
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

// A paragraph: the lines up to an empty line. If its first line ends in a colon, that is its heading. Line breaks are
// kept under a heading and in paragraphs that have indented lines.
struct Paragraph {
  std::string heading;
  std::vector<std::string> lines;
  bool keep_breaks = false;
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
      paragraph.keep_breaks = true;
      continue;
    }
    paragraph.keep_breaks = paragraph.keep_breaks || line.front() == ' ';
    paragraph.lines.push_back(line);
  }
  return paragraphs;
}

std::string body(const Paragraph& paragraph) {
  std::string result = paragraph.keep_breaks ? ".RS 4\n.nf\n" : "";
  size_t indent = std::string::npos;
  for (const std::string& line : paragraph.lines) indent = std::min(indent, line.find_first_not_of(' '));
  for (const std::string& line : paragraph.lines) result += line_of(line.substr(indent));
  return result + (paragraph.keep_breaks ? ".fi\n.RE\n" : "");
}

std::string display_name(const std::vector<Paragraph>& paragraphs) {
  std::string result;
  for (const Paragraph& paragraph : paragraphs) {
    result += ".PP\n";
    if (!paragraph.heading.empty()) result += line_of(paragraph.heading + ":");
    result += body(paragraph);
  }
  return result;
}

std::string examples(const CommandEntry& command) {
  return command.examples.empty() ? "" : display_name(paragraphs_of("Examples:\n" + command.examples));
}

std::string usage(const CommandEntry& command) {
  std::string result = bold("l3 " + command.name) + " [" + italic("OPTIONS") + "]";
  for (const Argument& positional : command.positionals) {
    const std::string name = italic(positional.names.front()) + (positional.repeated ? " ..." : "");
    result += positional.required ? " " + name : " [" + name + "]";
  }
  return result;
}

std::string entry(const Argument& argument) {
  std::string names;
  for (const std::string& name : argument.names) {
    names += (names.empty() ? "" : ", ") + (argument.positional ? italic(name) : bold(name));
  }
  if (!argument.type.empty()) names += std::string(" ") + italic(argument.type);
  std::string result = ".TP\n" + names + "\n" + line_of(argument.description + (argument.details.empty() ? "" : "."));
  return argument.details.empty() ? result : result + line_of(argument.details + ".");
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
  result += display_name(paragraphs_of(command.footer)) + display_name(paragraphs_of(command.manual));
  return result + examples(command);
}

std::string upper(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

// The page for `tree`. The description of the whole command is "l3: PURPOSE".
std::string page(const CommandTree& tree) {
  // Paragraphs without a heading describe the command; each heading begins a section of the page.
  const std::vector<Paragraph> paragraphs = paragraphs_of(tree.whole.footer + "\n" + tree.whole.manual);
  const std::string purpose = tree.whole.description.substr(tree.whole.name.size() + 2);

  std::string result = ".\\\" Printed by `l3 manual`, from the texts of --help.\n";
  result += std::string(".TH L3 1 \"\" \"l3 ") + l3_version_text() + "\" \"User Commands\"\n";
  // Long options and examples read better in narrow columns without justification and hyphenation.
  result += ".nh\n.ad l\n.SH NAME\nl3 \\- " + escaped(purpose) + "\n.SH SYNOPSIS\n";
  for (const CommandEntry& command : tree.commands) result += usage(command) + "\n.br\n";
  result += bold("l3") + " " + bold("--help") + "\n.br\n" + bold("l3") + " " + bold("--version") + "\n";
  result += ".SH DESCRIPTION\n";
  for (const Paragraph& paragraph : paragraphs) {
    if (paragraph.heading.empty()) result += ".PP\n" + body(paragraph);
  }
  result += examples(tree.whole);
  result += ".SH COMMANDS\n";
  for (const CommandEntry& command : tree.commands) result += chapter(command);
  result += ".SH OPTIONS\n" + options_of(tree.whole);
  for (const Paragraph& paragraph : paragraphs) {
    if (!paragraph.heading.empty()) result += ".SH " + upper(paragraph.heading) + "\n" + body(paragraph);
  }
  result.pop_back();
  return result;
}

}  // namespace

void add_manual(CommandLine& line) {
  Subcommand sub = line.command("manual", "Print the manual page");
  sub.examples(
      "  l3 manual | man -l -             read it\n"
      "  l3 manual > l3.1                 keep it as a file\n");
  sub.footer(
      "The page is in roff. It has all that --help prints, and the longer explanations. An installed l3 has the\n"
      "page already: `man l3` shows it.\n");
  sub.run([&line](Context& context) {
    context.console.print(page(line.tree()));
    return kExitDone;
  });
}

}  // namespace tools
