// The command line as data. Help, the manual and completion are all made from it, so that they always agree.
//
// The type name of an option tells what the option takes: "auto|fast" is one of these names, "png|l3-fast,..." is a
// list of them. Options of the types kPathType and kFolderType take paths, and so do positionals without such names.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace tools {

inline constexpr const char* kPathType = "SOURCE";
inline constexpr const char* kFolderType = "FOLDER";
inline constexpr const char* kListMark = ",...";  // follows the names that a list may contain

enum class Takes { nothing, name, names, path, other };

// Texts that CLI11 has no place for.
struct Texts {
  std::map<const CLI::App*, std::string> examples;    // lines of "  CALL    what it does"
  std::map<const CLI::App*, std::string> manual;      // paragraphs that only the manual page has
  std::map<const CLI::Option*, std::string> details;  // sentences that only the manual page has
};

// An option or a positional.
struct Argument {
  std::vector<std::string> names;  // "-j", "--jobs", "--threads"; a positional has one name
  std::string type;                // as help shows it
  std::string description;
  std::string details;  // for the manual only
  std::string group;
  Takes takes = Takes::nothing;
  std::vector<std::string> choices;  // the names that it takes
  bool positional = false;
  bool required = false;
  bool repeated = false;
};

// The command as a whole, or one of its subcommands.
struct CommandEntry {
  std::string name;
  std::string description;
  std::string examples;
  std::string footer;
  std::string manual;             // for the manual only
  std::vector<Argument> options;  // group after group
  std::vector<Argument> positionals;
};

struct CommandTree {
  CommandEntry whole;
  std::vector<CommandEntry> commands;
};

CommandEntry read_command(const CLI::App& app, const Texts& texts);
CommandTree read_tree(const CLI::App& app, const Texts& texts);

// joined({"auto", "fast"}, ", ") is "auto, fast".
std::string joined(const std::vector<std::string>& names, const char* between);

}  // namespace tools
