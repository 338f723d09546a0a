// The command line, option by option: what of CLI11 the subcommands use, for files that need not compile all of it.
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

// What a subcommand works with. Both outlive it.
struct Context {
  Console& console;
  Unfinished& unfinished;
};

// A parsed command line, ready to run; gives an exit code.
using Command = std::function<int(Context&)>;

// What is wrong with a word; empty where nothing is.
using Check = std::function<std::string(const std::string&)>;

// An option, a flag or a positional, as it is declared. Each call gives the same option back.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}

  Option required();
  // What it takes, as help shows it. Nothing is shown of "".
  Option type(const std::string& name);
  // The heading in help that it stands under.
  Option group(const std::string& heading);
  Option check(const Check& check);
  Option whole_between(uint64_t minimum, uint64_t maximum);
  Option above_0();
  // One of these names, or a list of them with commas between. They are the type.
  Option one_of(const std::vector<std::string>& names);
  Option list_of(const std::vector<std::string>& names);
  // A number with a unit: "10kB" of 1000 bytes, or of 1024 as "10KiB" is.
  enum class Kilo { is_1000, is_1024 };
  Option size(Kilo kilo);
  // Takes one word each time, so that the next may be a positional.
  Option one_word();
  Option excludes(Option other);
  Option needs(const std::string& other);

 private:
  CLI::Option* option_;
};

// A subcommand, as it is declared. Variables get their values when the command line is parsed.
class Subcommand {
 public:
  Subcommand(CLI::App* app, Command* chosen) : app_(app), chosen_(chosen) {}

  Option option(const std::string& names, std::string& variable, const std::string& description);
  Option option(const std::string& names, std::vector<std::string>& variable, const std::string& description);
  Option option(const std::string& names, uint32_t& variable, const std::string& description);
  Option option(const std::string& names, uint64_t& variable, const std::string& description);
  Option option(const std::string& names, double& variable, const std::string& description);
  Option flag(const std::string& names, bool& variable, const std::string& description);
  // What help says below the options.
  void footer(const std::string& text);
  // Takes whatever words and options follow.
  void take_all_words();
  // What it does.
  void run(const Command& command);

 private:
  CLI::App* app_;
  Command* chosen_;
};

class CommandLine {
 public:
  CommandLine(const std::string& about, const std::string& closing, const std::string& version);
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  Subcommand command(const std::string& name, const std::string& description);
  // The command that the words ask for, or the exit code where there is nothing more to do: help is printed then, or
  // it is said what is wrong with them.
  std::variant<Command, int> parse(int argc, char** argv, Context& context);
  CommandTree tree() const;

 private:
  std::unique_ptr<CLI::App> app_;
  Command chosen_;
};

// A whole number as options take it.
std::optional<uint64_t> parse_integer(const std::string& text);

}  // namespace tools
