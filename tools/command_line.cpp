#include "command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <sstream>

#include "help.h"
#include "loader/store.h"
#include "options.h"
#include "suggestion.h"

namespace tools {
namespace {

Check one_of_check(const std::vector<std::string>& names) {
  return [names](const std::string& text) {
    if (std::find(names.begin(), names.end(), text) != names.end()) return std::string();
    return text + " is not one of " + joined(names, ", ") + did_you_mean(text, names);
  };
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  return names;
}

// Names that other programs use, and the command that does this here.
std::string other_name(const std::string& word) {
  constexpr std::pair<const char*, const char*> kNames[] = {
      {"compress", "encode"}, {"pack", "convert"},   {"import", "convert"},  {"decompress", "decode"},
      {"unpack", "export"},   {"extract", "export"}, {"list", "ls"},         {"dir", "ls"},
      {"check", "verify"},    {"test", "verify"},    {"view", "show"},       {"display", "show"},
      {"identify", "info"},   {"man", "manual"},     {"benchmark", "bench"}, {"push", "upload"},
      {"pull", "download"}};
  const auto* const found =
      std::find_if(std::begin(kNames), std::end(kNames), [&](const auto& name) { return word == name.first; });
  return found == std::end(kNames) ? "" : found->second;
}

// The command that a user most likely wants who typed a file in place of a command.
std::string command_for_file(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return "";
  return std::filesystem::is_directory(path, error) ? "convert" : path.ends_with(".l3") ? "decode" : "encode";
}

std::string no_command(const CLI::App& app, const std::string& word) {
  std::vector<std::string> names = command_names(app);
  names.emplace_back("help");
  std::string other = other_name(word);
  if (other.empty()) other = command_for_file(word);
  return "no command " + word + (other.empty() ? did_you_mean(word, names) : "; did you mean " + other + "?") +
         " (see l3 --help)";
}

// Replaces "-9" by "--effort=9" if the command has efforts.
void spell_out_efforts(const CLI::App& app, std::vector<std::string>& words) {
  const auto commands = app.get_subcommands([&](const CLI::App* command) { return command->get_name() == words[0]; });
  if (commands.empty() || commands.front()->get_option_no_throw(kEffort) == nullptr) return;
  const auto end = std::find(words.begin(), words.end(), "--");
  for (auto word = words.begin(); word != end; ++word) {
    if (word->size() == 2 && (*word)[0] == '-' && (*word)[1] >= '0' && (*word)[1] <= '9') {
      *word = std::string(kEffort) + "=" + (*word)[1];
    }
  }
}

// Rewords the messages of CLI11 that count arguments.
std::string wrong_argument(const std::string& what) {
  const size_t twice = what.find(": At Most 1 required");
  if (twice != what.npos) return what.substr(0, twice) + " is given more than once";
  const size_t missing = what.find(": 1 required");
  return missing != what.npos ? what.substr(0, missing) + " needs a value" : what;
}

// Describes the first word that is neither an option of `app` nor one of its positionals. Returns an empty text if
// there is none.
std::string not_expected(const CLI::App& app) {
  const std::vector<std::string> words = app.remaining(true);
  if (words.empty()) return "";
  const auto option =
      std::find_if(words.begin(), words.end(), [](const std::string& word) { return word.starts_with('-'); });
  if (option == words.end()) return "one argument too many: " + words.front();
  std::error_code error;
  if (std::filesystem::exists(*option, error))
    return "no option " + *option + "; for the file of this name write ./" + *option;
  const std::string name = option->substr(0, option->find('='));
  return "no option " + name + did_you_mean(name, option_names(app));
}

// Stricter than CLI11, where a negative size would wrap around.
std::string check_size(const std::string& text) {
  const size_t unit = std::min(text.find_first_not_of("0123456789"), text.size());
  std::string rest = CLI::detail::to_lower(text.substr(unit));
  if (rest.ends_with('b')) rest.pop_back();
  if (rest.size() == 2 && rest[1] == 'i') rest.pop_back();
  const bool known = rest.empty() || (rest.size() == 1 && std::string("kmgtpe").find(rest) != std::string::npos);
  return unit > 0 && known ? "" : text + " is not a size such as 1000000, 500kB, 64MiB or 2GB";
}

}  // namespace

std::optional<uint64_t> parse_integer(const std::string& text) {
  uint64_t number = 0;
  if (text.empty() || text.find_first_not_of("0123456789") != text.npos) return std::nullopt;
  return CLI::detail::lexical_cast(text, number) ? std::optional(number) : std::nullopt;
}

Option Option::required() { return Option(option_->required(), texts_); }
Option Option::type(const std::string& name) { return Option(option_->type_name(name), texts_); }
Option Option::details(const std::string& text) {
  texts_->details[option_] = text;
  return *this;
}
Option Option::group(const std::string& heading) { return Option(option_->group(heading), texts_); }
Option Option::check(const Check& check) { return Option(option_->check(CLI::Validator(check, "")), texts_); }
Option Option::one_word() { return Option(option_->allow_extra_args(false), texts_); }
Option Option::excludes(Option other) { return Option(option_->excludes(other.option_), texts_); }
Option Option::needs(const std::string& other) { return Option(option_->needs(other), texts_); }

Option Option::whole_between(uint64_t minimum, uint64_t maximum) {
  return check([=](const std::string& text) {
    const auto number = parse_integer(text);
    if (number && *number >= minimum && *number <= maximum) return std::string();
    return text + " is not a whole number from " + std::to_string(minimum) + " to " + std::to_string(maximum);
  });
}

Option Option::local() {
  return check([](const std::string& text) {
    return loader::is_url(text) ? "is a URL, but must be a local path (l3 download copies a data set from a URL)"
                                : std::string();
  });
}

Option Option::far() {
  return check([](const std::string& text) {
    return loader::is_url(text) ? std::string() : text + " is not a URL such as s3://bucket/set";
  });
}

Option Option::above_0() {
  return check([](const std::string& text) {
    double number = 0;
    return CLI::detail::lexical_cast(text, number) && number > 0 && std::isfinite(number)
               ? std::string()
               : text + " is not a number above 0";
  });
}

Option Option::one_of(const std::vector<std::string>& names) {
  return type(joined(names, "|")).check(one_of_check(names));
}

Option Option::list_of(const std::vector<std::string>& names) {
  option_->delimiter(',');
  // Without one_word() a list would also take the words that follow it.
  return type(joined(names, "|").append(kListMark)).check(one_of_check(names)).one_word();
}

Option Option::size(Kilo kilo) {
  type("SIZE");
  option_->transform(CLI::AsSizeValue(kilo == Kilo::is_1000).description(""));
  option_->transform(CLI::Validator(Check(check_size), ""));  // runs before the one above
  return *this;
}

Option Subcommand::option(const std::string& names, std::string& variable, const std::string& description) {
  return Option(app_->add_option(names, variable, description), texts_);
}

Option Subcommand::option(const std::string& names, std::vector<std::string>& variable,
                          const std::string& description) {
  return Option(app_->add_option(names, variable, description), texts_);
}

Option Subcommand::option(const std::string& names, uint32_t& variable, const std::string& description) {
  return Option(app_->add_option(names, variable, description), texts_);
}

Option Subcommand::option(const std::string& names, uint64_t& variable, const std::string& description) {
  return Option(app_->add_option(names, variable, description), texts_);
}

Option Subcommand::option(const std::string& names, double& variable, const std::string& description) {
  return Option(app_->add_option(names, variable, description), texts_);
}

Option Subcommand::flag(const std::string& names, bool& variable, const std::string& description) {
  return Option(app_->add_flag(names, variable, description), texts_);
}

void Subcommand::examples(const std::string& lines) { texts_->examples[app_] = lines; }

void Subcommand::footer(const std::string& text) { app_->footer(text); }

void Subcommand::manual(const std::string& text) { texts_->manual[app_] = text; }

void Subcommand::take_all_words() { app_->prefix_command(); }

void Subcommand::run(const Command& command) {
  app_->callback([chosen = chosen_, command] { *chosen = command; });
}

CommandLine::CommandLine(const About& about, const std::string& version)
    : texts_(std::make_shared<Texts>()), app_(std::make_unique<CLI::App>(about.purpose, "l3")) {
  set_help_layout(*app_, texts_);
  texts_->examples[app_.get()] = about.examples;
  texts_->manual[app_.get()] = about.manual;
  app_->set_help_flag("-h,--help", "Print this help");
  app_->set_version_flag("--version", version, "Print version, commit, processor targets, and whether it can use CUDA");
  app_->require_subcommand(1);
  app_->footer(about.closing);
}

CommandLine::~CommandLine() = default;

Subcommand CommandLine::command(const std::string& name, const std::string& description) {
  return {app_->add_subcommand(name, description), texts_.get(), &chosen_};
}

std::variant<Command, int> CommandLine::parse(int argc, char** argv, Context& context) {
  std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  // "help X" means "X --help".
  if (!words.empty() && words.front() == "help") {
    const std::string of = words.size() > 1 && words[1] != "help" ? words[1] : "--help";
    words = {of, "--help"};
  }
  if (words.empty()) return wrong_usage(context, "no command given (see l3 --help)");
  const std::vector<std::string> names = command_names(*app_);
  if (!words.front().starts_with('-') && std::count(names.begin(), names.end(), words.front()) == 0) {
    return wrong_usage(context, no_command(*app_, words.front()));
  }
  spell_out_efforts(*app_, words);
  std::reverse(words.begin(), words.end());  // CLI11 reads them from the end
  try {
    app_->parse(std::move(words));
    return chosen_;
  } catch (const CLI::ParseError& error) {
    // CLI11 reports --help and --version as errors, too.
    if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) {
      std::ostringstream text, nothing;
      const int code = app_->exit(error, text, nothing);
      std::string lines = text.str();
      while (lines.ends_with('\n')) lines.pop_back();
      context.console.print(lines);
      return code;
    }
    const auto used = app_->get_subcommands();
    const CLI::App& app = used.empty() ? *app_ : *used.front();
    const std::string command = used.empty() ? "" : app.get_name() + ": ";
    // A mistyped option comes first, because it can leave another one without its value.
    std::string problem = not_expected(app);
    if (problem.empty()) problem = wrong_argument(error.what());
    return wrong_usage(context,
                       command + problem + " (see l3 " + (used.empty() ? "" : app.get_name() + " ") + "--help)");
  }
}

CommandTree CommandLine::tree() const { return read_tree(*app_, *texts_); }

}  // namespace tools
