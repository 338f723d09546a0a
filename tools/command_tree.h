// The command line as data: what help, the manual and completion say, read from CLI11's tree of the command.
//
// What an option takes stands in its type name, so that it is said once: "auto|fast" is one of these names, and
// "png|l3-fast,..." a list of them. Positionals without such names, and options of the types kPathType and kFolderType,
// are paths.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}  // namespace CLI

namespace tools {

inline constexpr const char* kPathType = "SOURCE";
inline constexpr const char* kFolderType = "FOLDER";
inline constexpr const char* kListMark = ",...";  // behind the names that a list may have

enum class Takes { nothing, name, names, path, other };

// An option or a positional.
struct Argument {
  std::vector<std::string> names;  // "-j", "--jobs", "--threads"; of a positional the one that help shows
  std::string type;                // as help shows it
  std::string description;
  std::string group;
  Takes takes = Takes::nothing;
  std::vector<std::string> choices;  // where it takes names
  bool positional = false;
  bool repeated = false;
};

// The command as a whole, or one of its subcommands.
struct CommandEntry {
  std::string name;
  std::string description;
  std::string footer;
  std::vector<Argument> options;
  std::vector<Argument> positionals;
};

struct CommandTree {
  CommandEntry whole;
  std::vector<CommandEntry> commands;
};

CommandTree read_tree(const CLI::App& app);

// "auto, fast" of "auto" and "fast".
std::string joined(const std::vector<std::string>& names, const char* between);

}  // namespace tools
