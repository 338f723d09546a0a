#include "help.h"

#include <memory>
#include <sstream>
#include <string>

namespace tools {
namespace {

constexpr size_t kColumn = 28;  // where descriptions begin
constexpr size_t kWidth = 110;

// CLI11 prints descriptions as one line each, however long; it indents the lines of those that have several.
class WrappedHelp : public CLI::Formatter {
 public:
  std::string make_option_desc(const CLI::Option* option) const override {
    return wrapped(CLI::Formatter::make_option_desc(option));
  }
  // Types, defaults and limits stand in the descriptions, where they can be said in words.
  std::string make_option_opts(const CLI::Option* option) const override {
    return option->get_type_name().empty() ? "" : " " + option->get_type_name();
  }

 private:
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

void teach(CLI::App& app) {
  auto formatter = std::make_shared<WrappedHelp>();
  formatter->column_width(kColumn);
  app.formatter(formatter);
}

}  // namespace tools
