#include "help.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <sstream>
#include <string>

namespace tools {
namespace {

constexpr size_t kColumn = 28;  // where descriptions begin
constexpr size_t kWidth = 110;
constexpr size_t kNamesWidth = 80, kNamesIndent = 6;

// CLI11 prints descriptions as one line each, however long; it indents the lines of those that have several.
class WrappedHelp : public CLI::Formatter {
 public:
  std::string make_option_desc(const CLI::Option* option) const override {
    return wrapped(CLI::Formatter::make_option_desc(option));
  }
  // Types, defaults and limits stand in the descriptions, where they can be said in words.
  std::string make_option_opts(const CLI::Option* option) const override {
    return option->get_type_name().empty() ? "" : " " + parted(option->get_type_name());
  }

 private:
  // A long list of names goes on in further lines.
  static std::string parted(const std::string& names) {
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

  static std::string wrapped(const std::string& text) {
    std::istringstream words(text);
    std::string result, word;
    size_t used = 0;
    while (words >> word) {
      if (used > 0 && used + 1 + word.size() > kWidth - kColumn) {
        result += '\n';
        used = 0;
      }
      if (used > 0) result += ' ';
      used += (used > 0 ? 1 : 0) + word.size();
      result += word;
    }
    return result;
  }
};

}  // namespace

void set_help_format(CLI::App& app) {
  auto formatter = std::make_shared<WrappedHelp>();
  formatter->column_width(kColumn);
  app.formatter(formatter);
}

}  // namespace tools
