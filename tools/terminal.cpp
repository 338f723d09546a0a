#include "terminal.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string>
#include <string_view>

namespace tools {
namespace {

constexpr uint32_t kColumns = 80;                      // if stdout is not a terminal
constexpr uint32_t kCellWidth = 10, kCellHeight = 20;  // in pixels, if the terminal does not tell
constexpr uint32_t kMostColumns = 10000;               // a terminal may say anything
constexpr std::string_view kQuestion = "\x1b[c";       // the primary device attributes
constexpr std::chrono::milliseconds kPatience{500};
constexpr size_t kMostBytes = 4096;  // of an answer

std::string_view variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Reads the answer to the question: ESC [ ? N ; N ... c. Returns an empty text if none comes in time. What the user
// typed before is skipped.
std::string read_answer() {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point end = Clock::now() + kPatience;
  std::string got;
  while (got.size() < kMostBytes) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
    pollfd wait_for{STDIN_FILENO, POLLIN, 0};
    if (left <= 0 || poll(&wait_for, 1, static_cast<int>(left)) != 1) return "";
    char bytes[64];
    const ssize_t count = read(STDIN_FILENO, bytes, sizeof bytes);
    if (count <= 0) return "";
    got.append(bytes, static_cast<size_t>(count));
    const size_t begin = got.find("\x1b[?"), last = begin == got.npos ? got.npos : got.find('c', begin);
    if (last != got.npos) return got.substr(begin + 3, last - begin - 3);
  }
  return "";
}

bool lists(std::string_view numbers, std::string_view wanted) {
  while (!numbers.empty()) {
    const size_t end = std::min(numbers.find(';'), numbers.size());
    if (numbers.substr(0, end) == wanted) return true;
    numbers.remove_prefix(std::min(end + 1, numbers.size()));
  }
  return false;
}

// Asks the terminal what it can do. Its modes are those from before afterwards, also if a signal ends the process.
std::string ask_terminal(Context& context) {
  termios before{};
  // Only if stdin is a terminal, and this process in its foreground: the terminal would stop another one.
  if (tcgetpgrp(STDIN_FILENO) != getpgrp() || tcgetattr(STDIN_FILENO, &before) != 0) return "";
  const uint64_t cleanup =
      context.unfinished.add_cleanup([before] { (void)tcsetattr(STDIN_FILENO, TCSANOW, &before); });
  termios quiet = before;
  quiet.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);  // the answer has no end of a line, and is not for the eye
  quiet.c_cc[VMIN] = 1;
  quiet.c_cc[VTIME] = 0;
  quiet.c_cc[VSUSP] = _POSIX_VDISABLE;  // a stopped process could not restore the modes
  std::string answer;
  if (tcsetattr(STDIN_FILENO, TCSANOW, &quiet) == 0 &&
      write(STDOUT_FILENO, kQuestion.data(), kQuestion.size()) == static_cast<ssize_t>(kQuestion.size())) {
    answer = read_answer();
  }
  context.unfinished.clean_up(cleanup);
  return answer;
}

}  // namespace

loader::Size room_of_terminal(Protocol protocol, uint32_t columns) {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) size = {};
  const uint32_t wide = columns != 0       ? columns
                        : size.ws_col != 0 ? std::min<uint32_t>(size.ws_col, kMostColumns)
                                           : kColumns;
  const uint32_t rows = columns != 0 || size.ws_row == 0 ? 0 : std::max(size.ws_row - 1u, 1u);
  uint32_t cell_width = 1, cell_height = 2;  // of half blocks
  if (protocol != Protocol::blocks) {
    const bool tells =
        size.ws_col != 0 && size.ws_row != 0 && size.ws_xpixel >= size.ws_col && size.ws_ypixel >= size.ws_row;
    cell_width = tells ? uint32_t{size.ws_xpixel} / size.ws_col : kCellWidth;
    cell_height = tells ? uint32_t{size.ws_ypixel} / size.ws_row : kCellHeight;
  }
  return {wide * cell_width, rows == 0 ? UINT32_MAX : rows * cell_height};
}

Protocol protocol_of_terminal(Context& context) {
  const std::string_view term = variable("TERM"), program = variable("TERM_PROGRAM");
  // tmux and screen stand between the programs and the terminal, and inherit its variables.
  const bool is_between = !variable("TMUX").empty() || term.starts_with("screen") || term.starts_with("tmux");
  if (!is_between && (!variable("KITTY_WINDOW_ID").empty() || term == "xterm-kitty" || term == "xterm-ghostty" ||
                      program == "WezTerm" || program == "ghostty")) {
    return Protocol::kitty;
  }
  if (term.empty() || term == "dumb") return Protocol::blocks;
  return lists(ask_terminal(context), "4") ? Protocol::sixel : Protocol::blocks;
}

bool has_true_colour() {
  const std::string_view says = variable("COLORTERM");
  return says == "truecolor" || says == "24bit";
}

}  // namespace tools
