// What the command says: results on stdout, everything else on stderr.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "failure.h"

namespace tools {

// Safe to use from many threads at once; every line comes out whole.
class Console {
 public:
  Console();

  // Leaves out notes and status lines. Failures and results are always printed.
  void set_quiet(bool quiet) { quiet_ = quiet; }
  // Whether each line on stdout is to be read at once, also through a pipe.
  void set_prompt(bool prompt) { prompt_ = prompt; }
  bool quiet() const { return quiet_; }
  bool stderr_is_terminal() const { return stderr_is_terminal_; }
  bool stdout_is_terminal() const { return stdout_is_terminal_; }

  // A line on stdout.
  void print(std::string_view line);
  // Whether all lines so far could be written. Where not, `finish` says why, and more of them are in vain.
  bool can_print() const;

  // On stderr: what went wrong, and what the user should know of although nothing did.
  void fail(const Failure& failure);
  // Of notes that say the same of many files the first ones come out, and how many more there were in the end.
  void note(const std::string& file, std::string_view text);

  // A line on stderr, unless it is to be quiet.
  void inform(std::string_view line);

  // How far the work has come: on a terminal a line that the next call writes over, else a line of its own.
  void status(std::string_view text);
  void clear_status();

  // To be called last. False if not all of stdout could be written, which is then said on stderr.
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
