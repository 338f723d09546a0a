#include "aws_profile.h"

#include "http_url.h"

namespace loader::net {
namespace {

std::string_view trim(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

// What the section with this title is called; empty if it holds nothing that is used.
std::string section_name(std::string_view title, bool is_credentials) {
  if (is_credentials || title == "default") return std::string(title);
  const std::string_view kind = title.substr(0, title.find_first_of(" \t"));
  std::string_view name = trim(title.substr(kind.size()));
  if (name.size() >= 2 && name.front() == name.back() && (name.front() == '"' || name.front() == '\'')) {
    name = name.substr(1, name.size() - 2);
  }
  if (name.empty()) return {};
  if (kind == "profile") return std::string(name);
  return kind == "services" ? "services " + std::string(name) : std::string();
}

}  // namespace

void parse_aws_file(std::string_view text, bool is_credentials, AwsSections& sections) {
  AwsSection* section = nullptr;
  std::string outer;  // the setting whose nested settings follow
  while (!text.empty()) {
    const std::string_view line = take_until(text, '\n'), content = trim(line);
    if (content.empty() || content.front() == '#' || content.front() == ';') continue;
    if (line.front() == '[') {
      const std::string name = section_name(trim(content.substr(1, content.find(']') - 1)), is_credentials);
      section = name.empty() ? nullptr : &sections[name];
      outer.clear();
      continue;
    }
    const size_t equals = content.find('=');
    if (section == nullptr || equals == std::string_view::npos) continue;
    const std::string name = lower(trim(content.substr(0, equals)));
    const std::string value(trim(content.substr(equals + 1)));
    const bool is_nested = line.front() == ' ' || line.front() == '\t';
    if (is_nested && !outer.empty()) {
      (*section)[outer + "." + name] = value;
    } else if (!is_nested) {
      outer = value.empty() ? name : "";
      if (!value.empty()) (*section)[name] = value;
    }
  }
}

}  // namespace loader::net
