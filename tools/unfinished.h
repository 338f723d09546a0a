// Temporary files: files that are being written and do not have their final name yet.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace tools {

// Removes temporary files when a signal ends the process. The constructor must run before any other thread starts. It
// blocks SIGINT, SIGTERM and SIGHUP, unless they are ignored, in this thread and in all threads that this one starts. A
// separate thread waits for these signals, removes the files, and ends the process with the signal. Unlike a signal
// handler, a thread may take locks, so no file can get its final name while files are being removed. If the thread
// cannot be started, signals end the process as usual, and temporary files stay.
//
// Threads may call all functions at the same time. The functions return 0 or an errno.
class Unfinished {
 public:
  Unfinished();
  Unfinished(const Unfinished&) = delete;
  Unfinished& operator=(const Unfinished&) = delete;

  // Creates a new file and opens it for writing. It is locked while it is open, so that other processes can tell it
  // from a file that was left behind.
  int create(const std::string& path, int& descriptor);
  // Gives the file its final name.
  int commit(const std::string& path, const std::string& final_path);
  // Removes the file.
  void discard(const std::string& path);

  // From now on a signal also does this. It must not use this object. Returns a number for clean_up().
  uint64_t add_cleanup(std::function<void()> cleanup);
  // Does it now, and no more after a signal.
  void clean_up(uint64_t number);

  // Sets the line that is printed on stderr when a signal ends the process, such as how to continue. Empty: no line.
  void set_last_words(const std::string& line);

 private:
  struct State;
  std::shared_ptr<State> state_;  // shared with the waiting thread, which may outlive this object
};

}  // namespace tools
