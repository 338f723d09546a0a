// l3 completion: prints scripts with which a shell completes the words of an l3 command line.
#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "command_tree.h"
#include "l3/l3.h"
#include "options.h"

namespace tools {
namespace {

// `text` with a backslash before each of `special`.
std::string escaped(std::string_view text, std::string_view special) {
  std::string result;
  for (const char c : text) {
    if (special.find(c) != special.npos) result += '\\';
    result += c;
  }
  return result;
}

// Quotes any text as one word of bash and zsh.
std::string in_quotes(std::string_view text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

// The first clause, since menus have little room.
std::string brief(const std::string& description) {
  return description.substr(0, std::min({description.find(" ("), description.find("; "), description.find(". ")}));
}

std::string opening(const char* shell) {
  return std::string("# ") + shell + " completion for l3 " + l3_version_text() + ", printed by `l3 completion " +
         shell + "`\n";
}

// ----------------------------------------------------------------------------------------------------------- bash

constexpr const char* kBashBody = R"(
# Offers each line of stdin.
_l3_offer() {
    local line
    while IFS= read -r line; do COMPREPLY+=("$line"); done
}

_l3_words() { _l3_offer < <(compgen -P "$before" -W "$1" -- "$current"); }

# Completes the last name of a list and keeps the names before it.
_l3_list() {
    if [[ $current == *,* ]]; then
        before+=${current%,*},
        current=${current##*,}
    fi
    compopt -o nospace 2>/dev/null
    _l3_words "$1"
}

_l3_files() {
    compopt -o filenames 2>/dev/null
    _l3_offer < <(compgen -P "$before" -f -- "$current")
    # Readline completes words that are quoted in part.
    [[ ${#COMPREPLY[@]} -gt 0 ]] || compopt -o default 2>/dev/null
}

# The first word after the command is one of these names, and the others are files.
_l3_action() {
    if [[ $COMP_CWORD -eq 2 ]]; then _l3_words "$1"; else _l3_files; fi
}

# Completes an option, or an argument with the command in "$@".
_l3_argument() {
    local options=$1
    shift
    if [[ -z $only_arguments && $current == -* ]]; then
        _l3_words "$options"
    elif [[ $# -gt 0 ]]; then
        "$@"
    fi
}

_l3() {
    local current=${COMP_WORDS[COMP_CWORD]} option=${COMP_WORDS[COMP_CWORD - 1]} before='' command='' only_arguments='' at
    COMPREPLY=()
    # --name=value is three words, or one word if = does not separate words.
    if [[ $current == = ]]; then
        current=''
    elif [[ $option == = ]]; then
        option=${COMP_WORDS[COMP_CWORD - 2]}
    elif [[ $current == --*=* ]]; then
        option=${current%%=*}
        before=$option=
        current=${current#*=}
    fi
    for ((at = 1; at < COMP_CWORD; ++at)); do
        if [[ ${COMP_WORDS[at]} == -- ]]; then
            only_arguments=yes
            option=''
        elif [[ -z $command && ${COMP_WORDS[at]} != -* ]]; then
            command=${COMP_WORDS[at]}
        fi
    done
    case $command in
)";

// Whether the first positional takes names, and the others take paths.
bool is_mixed(const CommandEntry& command) {
  return command.positionals.size() > 1 && command.positionals.front().takes == Takes::name &&
         command.positionals.back().takes == Takes::path;
}

std::string bash_value(const Argument& argument) {
  switch (argument.takes) {
    case Takes::name: return " _l3_words " + in_quotes(joined(argument.choices, " "));
    case Takes::names: return " _l3_list " + in_quotes(joined(argument.choices, " "));
    case Takes::path: return " _l3_files";
    case Takes::nothing:
    case Takes::other: break;
  }
  return "";
}

// The script does not count positionals. Those of a command are of one kind, or names for the first and paths.
std::string bash_command(const CommandEntry& command, const std::string& pattern, const std::string& positional) {
  std::string result = "    " + pattern + ")\n        case $option in\n";
  std::vector<std::string> names, others;
  for (const Argument& option : command.options) {
    names.insert(names.end(), option.names.begin(), option.names.end());
    if (option.takes == Takes::other) others.insert(others.end(), option.names.begin(), option.names.end());
    if (bash_value(option).empty()) continue;
    result += "        " + joined(option.names, " | ") + ")" + bash_value(option) + " ;;\n";
  }
  if (!others.empty()) result += "        " + joined(others, " | ") + ") ;;\n";
  return result + "        *) _l3_argument " + in_quotes(joined(names, " ")) + positional +
         " ;;\n        esac\n        ;;\n";
}

std::string bash(const CommandTree& tree) {
  std::string result = opening("bash") + kBashBody;
  std::vector<std::string> names;
  for (const CommandEntry& command : tree.commands) {
    names.push_back(command.name);
    const bool none = command.positionals.empty();
    std::string value = none ? "" : bash_value(command.positionals.front());
    if (is_mixed(command)) value = " _l3_action " + in_quotes(joined(command.positionals.front().choices, " "));
    result += bash_command(command, command.name, value);
  }
  result += bash_command(tree.whole, "''", " _l3_words " + in_quotes(joined(names, " ")));
  return result + "    esac\n}\n\ncomplete -F _l3 l3";
}

// ------------------------------------------------------------------------------------------------------------ zsh

std::string zsh_value(const Argument& argument) {
  const std::string label = argument.positional ? argument.names.front() : argument.type;
  const std::string message = std::string(":") + escaped(label, "\\:") + ":";
  switch (argument.takes) {
    case Takes::nothing: return "";
    case Takes::name: return message + "(" + joined(argument.choices, " ") + ")";
    case Takes::names: return message + "_values -s , name " + joined(argument.choices, " ");
    case Takes::path: return message + "_files";
    case Takes::other: break;
  }
  return message + " ";
}

std::string zsh_option(const Argument& option, const std::string& excluded) {
  std::string result;
  for (const std::string& name : option.names) {
    const bool is_long = name.starts_with("--");
    const char* joint = option.takes == Takes::nothing ? "" : is_long ? "=" : "+";
    std::string spec = "(" + excluded + ")";
    spec += name + joint;
    spec += std::string("[") + escaped(brief(option.description), "\\[]") + "]" + zsh_value(option);
    result += " \\\n        " + in_quotes(spec);
  }
  return result;
}

std::string zsh_options(const CommandEntry& command) {
  std::string result;
  for (const Argument& option : command.options) {
    const bool ends = (option.names.back() == "--help" || option.names.back() == "--version");
    result += zsh_option(option, ends ? "- *" : joined(option.names, " "));
  }
  return result;
}

std::string zsh(const CommandTree& tree) {
  std::string result = "#compdef l3\n" + opening("zsh") +
                       "\n_l3() {\n    local curcontext=$curcontext state line\n    typeset -A opt_args\n"
                       "    _arguments -C" +
                       zsh_options(tree.whole) +
                       " \\\n        '1:command:->command' '*::argument:->argument' && return\n"
                       "    case $state in\n    command)\n        local -a commands=(\n";
  for (const CommandEntry& command : tree.commands) {
    result += "            " + in_quotes(command.name + ":" + escaped(command.description, "\\:")) + "\n";
  }
  result += "        )\n        _describe command commands\n        ;;\n    argument)\n        case $words[1] in\n";
  for (const CommandEntry& command : tree.commands) {
    result += "        " + command.name + ") _arguments -s -S" + zsh_options(command);
    for (const Argument& positional : command.positionals) {
      std::string value = positional.repeated ? "*" : "";
      value += zsh_value(positional);
      result += " \\\n        " + in_quotes(value);
    }
    result += " ;;\n";
  }
  return result +
         "        esac\n        ;;\n    esac\n}\n\n"
         "# Loaded by the shell as a function, or read as a script.\n"
         "if [[ ${funcstack[1]} == _l3 ]]; then _l3 \"$@\"; else compdef _l3 l3; fi";
}

// ----------------------------------------------------------------------------------------------------------- fish

std::string fish_quotes(std::string_view text) { return std::string("'") + escaped(text, "\\'") + "'"; }

std::string fish_value(const Argument& argument) {
  switch (argument.takes) {
    case Takes::nothing: return "";
    case Takes::name: return " -x -a " + fish_quotes(joined(argument.choices, " "));
    case Takes::names: return " -x -a " + fish_quotes("(__fish_append , " + joined(argument.choices, " ") + ")");
    case Takes::path: return " -r -F";
    case Takes::other: break;
  }
  return " -x";
}

std::string fish_options(const CommandEntry& command, const std::string& condition) {
  std::string result;
  for (const Argument& option : command.options) {
    result += "complete -c l3 -n " + condition;
    for (const std::string& name : option.names) {
      const bool is_long = name.starts_with("--");
      result += (is_long ? " -l " : " -s ") + name.substr(is_long ? 2 : 1);
    }
    result += fish_value(option) + " -d " + fish_quotes(brief(option.description)) + "\n";
  }
  return result;
}

std::string fish(const CommandTree& tree) {
  const std::string at_start = "__fish_use_subcommand";
  std::string result = opening("fish") + "\ncomplete -c l3 -f\n" + fish_options(tree.whole, at_start);
  for (const CommandEntry& command : tree.commands) {
    result +=
        "complete -c l3 -n " + at_start + " -a " + command.name + " -d " + fish_quotes(command.description) + "\n";
  }
  for (const CommandEntry& command : tree.commands) {
    const std::string condition = fish_quotes("__fish_seen_subcommand_from " + command.name);
    result += std::string("\n") + fish_options(command, condition);
    if (command.positionals.empty()) continue;
    const Argument& positional = command.positionals.front();
    const bool is_path = positional.takes == Takes::path;
    result += "complete -c l3 -n " + condition + (is_path || is_mixed(command) ? " -F" : "");
    result += is_path ? "\n" : " -a " + fish_quotes(joined(positional.choices, " ")) + "\n";
  }
  result.pop_back();
  return result;
}

struct Shell {
  const char* name;
  std::string (*script)(const CommandTree&);
};
constexpr Shell kShells[] = {{"bash", bash}, {"zsh", zsh}, {"fish", fish}};

}  // namespace

void add_completion(CommandLine& line) {
  Subcommand sub = line.command("completion", "Print a script that completes l3 commands and options in a shell");
  auto wanted = std::make_shared<std::string>();
  std::vector<std::string> names;
  for (const Shell& shell : kShells) names.emplace_back(shell.name);
  sub.option("SHELL", *wanted, "The shell: bash, zsh or fish").required().one_of(names);
  sub.examples(
      "  source <(l3 completion bash)                              in ~/.bashrc\n"
      "  l3 completion zsh > ~/.zfunc/_l3                          with ~/.zfunc in fpath\n"
      "  l3 completion fish > ~/.config/fish/completions/l3.fish\n");
  sub.footer("If l3 is installed, shells find its script by themselves.\n");
  sub.run([&line, wanted](Context& context) {
    const CommandTree tree = line.tree();
    for (const Shell& shell : kShells) {
      if (*wanted == shell.name) context.console.print(shell.script(tree));
    }
    return kExitDone;
  });
}

}  // namespace tools
