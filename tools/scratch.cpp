#include "scratch.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace tools {

namespace fs = std::filesystem;

namespace {

// Other threads may still write to it, so once may not be enough.
void remove_folder(const std::string& path) {
  std::error_code error;
  for (int i = 0; i < 3; ++i) {
    fs::remove_all(path, error);
    if (!error) return;
  }
}

}  // namespace

Scratch::Scratch(const std::string& below, Context& context) : context_(context) {
  std::error_code error;
  const fs::path folder = below.empty() ? fs::temp_directory_path(error) : fs::path(below);
  std::string pattern = folder / "l3-XXXXXX";
  if (!error && mkdtemp(pattern.data()) != nullptr) {
    folder_ = pattern;
    cleanup_ = context.unfinished.add_cleanup([folder = folder_] { remove_folder(folder); });
    return;
  }
  context.console.fail({below.empty() ? "the folder for temporary files" : below, std::nullopt,
                        std::string("cannot make a folder there: ") + std::generic_category().message(errno)});
}

Scratch::~Scratch() {
  if (!folder_.empty()) context_.unfinished.clean_up(cleanup_);
}

std::string Scratch::make_folder(const std::string& name) const {
  std::error_code ignored;
  fs::create_directories(folder_ + "/" + name, ignored);  // if this fails, writing a file fails, too
  return folder_ + "/" + name;
}

bool Scratch::write(const std::string& path, std::span<const uint8_t> bytes) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  int error = file < 0 ? errno : 0;
  for (size_t done = 0; done < bytes.size() && error == 0;) {
    const ssize_t written = ::write(file, bytes.data() + done, bytes.size() - done);
    if (written < 0 && errno != EINTR) error = errno;
    if (written > 0) done += static_cast<size_t>(written);
  }
  if (error == 0 && fsync(file) != 0) error = errno;
  if (file >= 0) close(file);
  if (error != 0) context_.console.fail({path, std::nullopt, std::generic_category().message(error)});
  return error == 0;
}

void forget_cached(std::span<const std::string> paths) {
  for (const std::string& path : paths) {
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) continue;
    posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
    close(file);
  }
}

}  // namespace tools
