#include "command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "help.h"
#include "options.h"

namespace tools {
namespace {

Check one_of_check(const std::vector<std::string>& names) {
  return [names](const std::string& text) {
    if (std::find(names.begin(), names.end(), text) != names.end()) return std::string();
    return text + " is not one of " + joined(names, ", ");
  };
}

// Of what CLI11 takes for a number: a sign would wrap around.
std::string check_begins_with_digit(const std::string& text) {
  return !text.empty() && text[0] >= '0' && text[0] <= '9' ? "" : text + " is no number of at least 1";
}

}  // namespace

std::optional<uint64_t> whole_number(const std::string& text) {
  uint64_t number = 0;
  if (text.empty() || text.find_first_not_of("0123456789") != text.npos) return std::nullopt;
  return CLI::detail::lexical_cast(text, number) ? std::optional(number) : std::nullopt;
}

Option Option::required() { return Option(option_->required()); }
Option Option::type(const std::string& name) { return Option(option_->type_name(name)); }
Option Option::group(const std::string& heading) { return Option(option_->group(heading)); }
Option Option::check(const Check& check) { return Option(option_->check(CLI::Validator(check, ""))); }
Option Option::one_word() { return Option(option_->allow_extra_args(false)); }
Option Option::excludes(Option other) { return Option(option_->excludes(other.option_)); }
Option Option::needs(const std::string& other) { return Option(option_->needs(other)); }

// Ranges would stand in help with the types' names, but for an empty description.
Option Option::whole_between(uint64_t least, uint64_t most) {
  return Option(option_->check(CLI::Range(least, most).description("")));
}

Option Option::between(double least, double most) {
  return Option(option_->check(CLI::Range(least, most).description("")));
}

Option Option::one_of(const std::vector<std::string>& names) {
  return type(joined(names, "|")).check(one_of_check(names));
}

Option Option::list_of(const std::vector<std::string>& names) {
  option_->delimiter(',');
  // Without the last call a list would also swallow the words that follow it.
  return type(joined(names, "|").append(kListMark)).check(one_of_check(names)).one_word();
}

Option Option::size(Kilo kilo) {
  type("SIZE");
  option_->transform(CLI::AsSizeValue(kilo == Kilo::is_1000).description(""));
  option_->transform(CLI::Validator(Check(check_begins_with_digit), ""));  // comes first
  return *this;
}

Option Subcommand::option(const std::string& names, std::string& variable, const std::string& description) {
  return Option(app_->add_option(names, variable, description));
}

Option Subcommand::option(const std::string& names, std::vector<std::string>& variable,
                          const std::string& description) {
  return Option(app_->add_option(names, variable, description));
}

Option Subcommand::option(const std::string& names, uint32_t& variable, const std::string& description) {
  return Option(app_->add_option(names, variable, description));
}

Option Subcommand::option(const std::string& names, uint64_t& variable, const std::string& description) {
  return Option(app_->add_option(names, variable, description));
}

Option Subcommand::option(const std::string& names, double& variable, const std::string& description) {
  return Option(app_->add_option(names, variable, description));
}

Option Subcommand::flag(const std::string& names, bool& variable, const std::string& description) {
  return Option(app_->add_flag(names, variable, description));
}

void Subcommand::footer(const std::string& text) { app_->footer(text); }

void Subcommand::take_all_words() { app_->prefix_command(); }

void Subcommand::run(const Command& command) {
  app_->callback([chosen = chosen_, command] { *chosen = command; });
}

CommandLine::CommandLine(const std::string& about, const std::string& closing, const std::string& version)
    : app_(std::make_unique<CLI::App>(about, "l3")) {
  teach(*app_);
  app_->set_version_flag("--version", version);
  app_->require_subcommand(1);
  app_->footer(closing);
}

CommandLine::~CommandLine() = default;

Subcommand CommandLine::command(const std::string& name, const std::string& description) {
  return {app_->add_subcommand(name, description), &chosen_};
}

std::variant<Command, int> CommandLine::parse(int argc, char** argv, Context& context) {
  try {
    app_->parse(argc, argv);
    return chosen_;
  } catch (const CLI::ParseError& error) {
    // Help and version arrive as errors too.
    if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) return app_->exit(error);
    const auto used = app_->get_subcommands();
    if (used.empty() && argc > 1 && argv[1][0] != '-') {
      return wrong_usage(context, "no command " + one_line(argv[1]) + " (see l3 --help)");
    }
    const std::string command = used.empty() ? "" : used.front()->get_name() + ": ";
    const std::string help = used.empty() ? "l3 --help" : "l3 " + used.front()->get_name() + " --help";
    return wrong_usage(context, command + error.what() + " (see " + help + ")");
  }
}

CommandTree CommandLine::tree() const { return read_tree(*app_); }

}  // namespace tools
