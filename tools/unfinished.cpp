#include "unfinished.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <map>
#include <mutex>
#include <set>
#include <system_error>
#include <thread>
#include <utility>

namespace tools {

struct Unfinished::State {
  std::mutex mutex;
  std::set<std::string> paths;
  std::map<uint64_t, std::function<void()>> cleanups;
  uint64_t last_cleanup = 0;
  std::string last_words;
};

namespace {

constexpr std::array kEndings = {SIGINT, SIGTERM, SIGHUP};

bool is_ignored(int signal) {
  struct sigaction action {};
  return sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

// Prints without waiting for a reader, because a full pipe must not keep the process alive.
void say(const std::string& words) {
  pollfd poll_for{STDERR_FILENO, POLLOUT, 0};
  if (words.empty() || poll(&poll_for, 1, 0) != 1 || (poll_for.revents & POLLOUT) == 0) return;
  [[maybe_unused]] const ssize_t count = write(STDERR_FILENO, words.data(), words.size());
}

void die_by(int signal) {
  std::signal(signal, SIG_DFL);
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, signal);
  pthread_sigmask(SIG_UNBLOCK, &only, nullptr);
  std::raise(signal);
}

}  // namespace

Unfinished::Unfinished() : state_(std::make_shared<State>()) {
  sigset_t awaited;
  sigemptyset(&awaited);
  for (const int signal : kEndings) {
    if (!is_ignored(signal)) sigaddset(&awaited, signal);  // nohup ignores SIGHUP, and it must stay ignored
  }
  sigset_t before;
  pthread_sigmask(SIG_BLOCK, &awaited, &before);
  try {
    std::thread([state = state_, awaited] {
      int signal = 0;
      while (sigwait(&awaited, &signal) != 0) {
      }
      // The lock is never released: from now on no file is created or renamed.
      state->mutex.lock();
      for (const std::string& path : state->paths) unlink(path.c_str());
      for (const auto& [number, cleanup] : state->cleanups) cleanup();
      say(state->last_words);
      die_by(signal);
    }).detach();
  } catch (const std::system_error&) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
}

uint64_t Unfinished::add_cleanup(std::function<void()> cleanup) {
  const std::lock_guard lock(state_->mutex);
  state_->cleanups.emplace(++state_->last_cleanup, std::move(cleanup));
  return state_->last_cleanup;
}

void Unfinished::clean_up(uint64_t number) {
  const std::lock_guard lock(state_->mutex);
  const auto cleanup = state_->cleanups.extract(number);
  if (!cleanup.empty()) cleanup.mapped()();
}

int Unfinished::create(const std::string& path, int& descriptor) {
  const std::lock_guard lock(state_->mutex);
  descriptor = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor < 0) return errno;
  (void)flock(descriptor, LOCK_EX | LOCK_NB);  // a file system may have no locks
  state_->paths.insert(path);
  return 0;
}

int Unfinished::commit(const std::string& path, const std::string& final_path) {
  const std::lock_guard lock(state_->mutex);
  if (std::rename(path.c_str(), final_path.c_str()) != 0) return errno;
  state_->paths.erase(path);
  return 0;
}

void Unfinished::discard(const std::string& path) {
  const std::lock_guard lock(state_->mutex);
  unlink(path.c_str());
  state_->paths.erase(path);
}

void Unfinished::set_last_words(const std::string& line) {
  // The line on the terminal may show the progress and ^C.
  const std::string erase = isatty(STDERR_FILENO) == 1 ? "\r\x1b[K" : "";
  const std::lock_guard lock(state_->mutex);
  state_->last_words = line.empty() ? "" : erase + line + "\n";
}

}  // namespace tools
