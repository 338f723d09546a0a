// The output of the command: results go to stdout, everything else to stderr.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "failure.h"

namespace tools {

// Threads may use it at the same time. Lines are never mixed.
class Console {
 public:
  Console();

  // Leaves out notes and status lines. Failures and results are always printed.
  void set_quiet(bool quiet) { quiet_ = quiet; }
  // Flushes each line of stdout, even to a pipe.
  void set_prompt(bool prompt) { prompt_ = prompt; }
  bool quiet() const { return quiet_; }
  bool stderr_is_terminal() const { return stderr_is_terminal_; }
  bool stdout_is_terminal() const { return stdout_is_terminal_; }

  // Prints a line on stdout.
  void print(std::string_view line);
  // False if a line could not be written. There is no point in printing more then; finish() reports the reason.
  bool can_print() const;

  // Prints an error on stderr.
  void fail(const Failure& failure);
  // Prints a note on stderr about something that is not an error. If many files have the same note, only the first ones
  // are printed, and finish() prints the number of the others.
  void note(const std::string& file, std::string_view text);

  // Prints a line on stderr, unless the console is quiet.
  void inform(std::string_view line);

  // Shows the progress. On a terminal the next call overwrites the line.
  void status(std::string_view text);
  void clear_status();

  // Must be called last. If not everything could be written to stdout, prints an error and returns false.
  [[nodiscard]] bool finish();

 private:
  void write_error_line(std::string_view line);
  void summarise_hidden_notes();

  mutable std::mutex mutex_;
  bool stderr_is_terminal_;
  bool stdout_is_terminal_;
  bool quiet_ = false;
  bool prompt_ = false;
  bool status_shown_ = false;
  int stdout_error_ = 0;                                // the errno of the first line that could not be written
  std::map<std::string, uint64_t, std::less<>> notes_;  // how often each text came
};

}  // namespace tools
