#include "console.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace tools {
namespace {

constexpr std::string_view kEraseLine = "\r\x1b[K";
constexpr uint64_t kMaxNotesAlike = 8;

void put(std::FILE* to, std::string_view text) { std::fwrite(text.data(), 1, text.size(), to); }

}  // namespace

Console::Console() : stderr_is_terminal_(isatty(STDERR_FILENO) == 1), stdout_is_terminal_(isatty(STDOUT_FILENO) == 1) {}

void Console::print(std::string_view line) {
  const std::lock_guard lock(mutex_);
  if (status_shown_) put(stderr, kEraseLine);
  status_shown_ = false;
  errno = 0;
  put(stdout, line);
  put(stdout, "\n");
  if (stdout_is_terminal_ || prompt_) std::fflush(stdout);
  // The call that fills the buffer gets the error. The last flush may have nothing to write and succeed.
  if (stdout_error_ == 0 && std::ferror(stdout) != 0) stdout_error_ = errno;
}

bool Console::can_print() const {
  const std::lock_guard lock(mutex_);
  return stdout_error_ == 0;
}

void Console::fail(const Failure& failure) {
  if (!failure.silent) write_error_line(message(failure));
}

void Console::note(const std::string& file, std::string_view text) {
  {
    const std::lock_guard lock(mutex_);
    auto at = notes_.find(text);
    if (at == notes_.end()) at = notes_.emplace(std::string(text), 0).first;
    if (++at->second > kMaxNotesAlike) return;
  }
  inform("l3: " + one_line(file) + ": note: " + one_line(text));
}

void Console::inform(std::string_view line) {
  if (!quiet_) write_error_line(line);
}

void Console::write_error_line(std::string_view line) {
  const std::lock_guard lock(mutex_);
  std::string whole(status_shown_ ? kEraseLine : "");
  status_shown_ = false;
  whole.append(line).append("\n");
  put(stderr, whole);
}

void Console::status(std::string_view text) {
  if (quiet_) return;
  if (!stderr_is_terminal_) return write_error_line(std::string("l3: ").append(text));
  const std::lock_guard lock(mutex_);
  put(stderr, std::string(kEraseLine).append(text));
  status_shown_ = true;
}

void Console::clear_status() {
  const std::lock_guard lock(mutex_);
  if (status_shown_) put(stderr, kEraseLine);
  status_shown_ = false;
}

void Console::summarise_hidden_notes() {
  for (const auto& [text, count] : notes_) {
    if (count <= kMaxNotesAlike) continue;
    inform("l3: note: " + one_line(text) + " (" + std::to_string(count - kMaxNotesAlike) + " more)");
  }
}

bool Console::finish() {
  clear_status();
  summarise_hidden_notes();
  errno = 0;
  if (std::fflush(stdout) != 0 && stdout_error_ == 0) stdout_error_ = errno;
  if (stdout_error_ == 0) return true;
  fail({"stdout", std::nullopt, std::string("cannot write: ") + std::strerror(stdout_error_), stdout_error_ == EPIPE});
  return false;
}

}  // namespace tools
