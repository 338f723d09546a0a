// The command line, option by option. This is the part of CLI11 that the subcommands need; files that include this
// header need not compile CLI11, which takes seconds.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "command_tree.h"
#include "console.h"
#include "unfinished.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace tools {

// The one option that has short forms, -1 to -9.
inline constexpr const char* kEffort = "--effort";

// What each subcommand gets. Both members outlive it.
struct Context {
  Console& console;
  Unfinished& unfinished;
};

// A parsed command line, ready to run. Returns the exit code.
using Command = std::function<int(Context&)>;

// Returns what is wrong with a word, or an empty text if it is right.
using Check = std::function<std::string(const std::string&)>;

// Declares an option, a flag or a positional. Each call returns the same option, so that calls can be chained.
class Option {
 public:
  Option(CLI::Option* option, Texts* texts) : option_(option), texts_(texts) {}

  Option required();
  // What the option takes, as help shows it. Help shows nothing if the name is empty.
  Option type(const std::string& name);
  // The heading in help under which the option is listed.
  Option group(const std::string& heading);
  // Sentences that follow the description on the manual page only.
  Option details(const std::string& text);
  Option check(const Check& check);
  Option whole_between(uint64_t minimum, uint64_t maximum);
  Option above_0();
  // Takes one of these names, or a list of them separated by commas. The names are also the type.
  Option one_of(const std::vector<std::string>& names);
  Option list_of(const std::vector<std::string>& names);
  // A number with a unit. "10KiB" is always 10 x 1024 bytes; `kilo` tells what "10kB" is.
  enum class Kilo { is_1000, is_1024 };
  Option size(Kilo kilo);
  // Takes one word for each use, so that the word after it can be a positional.
  Option one_word();
  // A path, not a URL.
  Option local();
  // A URL.
  Option far();
  Option excludes(Option other);
  Option needs(const std::string& other);

 private:
  CLI::Option* option_;
  Texts* texts_;
};

// Declares a subcommand. The variables get their values when the command line is parsed.
class Subcommand {
 public:
  Subcommand(CLI::App* app, Texts* texts, Command* chosen) : app_(app), texts_(texts), chosen_(chosen) {}

  Option option(const std::string& names, std::string& variable, const std::string& description);
  Option option(const std::string& names, std::vector<std::string>& variable, const std::string& description);
  Option option(const std::string& names, uint32_t& variable, const std::string& description);
  Option option(const std::string& names, uint64_t& variable, const std::string& description);
  Option option(const std::string& names, double& variable, const std::string& description);
  Option flag(const std::string& names, bool& variable, const std::string& description);
  // Examples of calls, which help shows before the options: lines of "  CALL    what it does".
  void examples(const std::string& lines);
  // What help says below the options.
  void footer(const std::string& text);
  // Paragraphs for the manual page only.
  void manual(const std::string& text);
  // Accepts any words and options that follow.
  void take_all_words();
  // What the subcommand does.
  void run(const Command& command);

 private:
  CLI::App* app_;
  Texts* texts_;
  Command* chosen_;
};

// What --help and the manual page say of the command as a whole.
struct About {
  std::string purpose;   // "l3: what it is"
  std::string examples;  // lines of "  CALL    what it does"
  std::string closing;   // below the options
  std::string manual;    // paragraphs for the manual page only
};

class CommandLine {
 public:
  CommandLine(const About& about, const std::string& version);
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  Subcommand command(const std::string& name, const std::string& description);
  // Returns the command that the words ask for. If nothing remains to be done, because help was printed or the words
  // are wrong and an error was printed, returns the exit code.
  std::variant<Command, int> parse(int argc, char** argv, Context& context);
  CommandTree tree() const;

 private:
  std::shared_ptr<Texts> texts_;
  std::unique_ptr<CLI::App> app_;
  Command chosen_;
};

// Reads a whole number in decimal digits. Returns nothing if `text` is not one, or exceeds 64 bits.
std::optional<uint64_t> parse_integer(const std::string& text);

}  // namespace tools
