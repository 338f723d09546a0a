// Files that are being written and do not have their final name yet.
#pragma once

#include <memory>
#include <string>

namespace tools {

// Removes them when a signal ends the process. The constructor blocks SIGINT, SIGTERM and SIGHUP (those that are not
// ignored) in this thread and in all that it starts, so it must come before any other thread; a thread of its own waits
// for them, removes the files and then dies by that signal. A thread may take locks where a signal handler may not: no
// file can get its final name while others are being removed. Where the system allows no such thread, signals end the
// process as they always do, and temporary files stay.
//
// All functions are safe to call from many threads at once, and give 0 or an errno.
class Unfinished {
 public:
  Unfinished();
  Unfinished(const Unfinished&) = delete;
  Unfinished& operator=(const Unfinished&) = delete;

  // Creates a file that does not exist yet, open for writing, and locked as long as it is open: others can tell it from
  // one that was left behind.
  int create(const std::string& path, int& descriptor);
  // Gives it its final name.
  int commit(const std::string& path, const std::string& final_path);
  // Removes it.
  void discard(const std::string& path);

  // What to say on stderr when a signal ends the process, such as how to go on; empty: nothing.
  void set_last_words(const std::string& line);

 private:
  struct State;
  std::shared_ptr<State> state_;  // shared with the waiting thread, which may outlive this object
};

}  // namespace tools
